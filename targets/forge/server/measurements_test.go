package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets/forge/emulator"
)

// Published measurements of the live platform, as a server has to answer them.

const (
	conflict89 = `{"code":"KEY_CONFLICT","message":"Provided key already exists and cannot be overwritten"}`
	checkFails = `{"code":"CONDITIONAL_CHECK_FAILED","message":"Request failed due to conditional check specified or optimistic locking"}`
	semantics  = `{"code":"UNPROCESSABLE_ENTITY","message":"Request cannot be processed due to one or more semantic errors"}`
)

// contest lets twelve requests go over HTTP and gives what they were answered,
// sorted.
func contest(t *testing.T, path string, body func(contender int) string) []string {
	t.Helper()
	h := newHandler(Options{})
	post(t, h, kvs+"entity/set", `{"entityName":"lease","key":"seeded","value":{"version":0}}`, 204, "")
	s := httptest.NewServer(h)
	defer s.Close()
	answers := make([]string, 12)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			r, err := http.Post(s.URL+path, "application/json", strings.NewReader(body(i)))
			if err != nil {
				answers[i] = err.Error()
				return
			}
			defer r.Body.Close()
			text, err := io.ReadAll(r.Body)
			answers[i] = fmt.Sprintf("%d %s", r.StatusCode, text)
			if err != nil {
				answers[i] = err.Error()
			}
		})
	}
	group.Wait()
	slices.Sort(answers)
	return answers
}

func TestOfTwelveFailIfExistsOneAcquires(t *testing.T) {
	if len(conflict89) != 89 {
		t.Fatalf("the body has %d bytes", len(conflict89))
	}
	got := contest(t, kvs+"set", func(i int) string {
		return fmt.Sprintf(`{"key":"lock","value":%d,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}`, i)
	})
	if want := append([]string{"204 "}, slices.Repeat([]string{"409 " + conflict89}, 11)...); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestExpiredLeaseBlocksUntilItsSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sweep, err := emulator.Sweeper("516s..1117s", 1) // between the two
		if err != nil {
			t.Fatal(err)
		}
		h := New(emulator.New(emulator.Options{Sweep: sweep}), Options{})
		const claim = `{"key":"lease","value":"first","options":{"keyPolicy":"FAIL_IF_EXISTS","ttl":{"value":30,"unit":"SECONDS"}}}`
		post(t, h, kvs+"set", claim, 204, "")
		expiry := time.Now().Add(30 * time.Second)
		for _, seconds := range []time.Duration{27, 89, 212, 515} {
			time.Sleep(time.Until(expiry.Add(seconds * time.Second)))
			post(t, h, kvs+"set", claim, 409, conflict89)
			post(t, h, kvs+"get", `{"key":"lease","options":{"metadataFields":["EXPIRE_TIME"]}}`, 200,
				`{"key":"lease","value":"first","expireTime":"2000-01-01T00:00:30.000Z"}`)
		}
		time.Sleep(time.Until(expiry.Add(1117 * time.Second)))
		post(t, h, kvs+"set", claim, 204, "")
	})
}

func TestOfTwelveConditionalTransactionsOneWins(t *testing.T) {
	got := contest(t, kvs+"transaction", func(i int) string {
		return fmt.Sprintf(`{"set":[{"key":"seeded","entityName":"lease","value":{"version":1,"holder":"h%d"},"conditions":{"and":[{"property":"version","condition":"EQUAL_TO","values":[0]}]}}]}`, i)
	})
	if want := append([]string{"204 "}, slices.Repeat([]string{"400 " + checkFails}, 11)...); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// guardedSet sets a field of the lease e under a condition.
func guardedSet(value, property, equals string) string {
	return `{"set":[{"key":"e","entityName":"lease","value":` + value + `,"conditions":{"and":[{"property":"` + property + `","condition":"EQUAL_TO","values":[` + equals + `]}]}}]}`
}

func TestConditionTypes(t *testing.T) {
	h := newHandler(Options{})
	post(t, h, kvs+"entity/set", `{"entityName":"lease","key":"e","value":{"version":0}}`, 204, "")
	post(t, h, kvs+"transaction", guardedSet(`{"version":0}`, "version", `0`), 204, "")
	post(t, h, kvs+"transaction", guardedSet(`{"version":1}`, "version", `7`), 400, checkFails)
	post(t, h, kvs+"transaction", guardedSet(`{"version":1}`, "version", `"0"`), 422, semantics)
	post(t, h, kvs+"entity/get", `{"entityName":"lease","key":"e"}`, 200, `{"key":"e","value":{"version":0}}`)
}

func TestIntegerBounds(t *testing.T) {
	h := newHandler(Options{})
	for version, fits := range map[string]bool{"2147483647": true, "-2147483648": true, "2147483648": false, "-2147483649": false} {
		direct := `{"entityName":"lease","key":"e","value":{"version":` + version + `}}`
		inside := `{"set":[{"entityName":"lease","key":"e","value":{"version":` + version + `}}]}`
		if fits {
			post(t, h, kvs+"entity/set", direct, 204, "")
			post(t, h, kvs+"transaction", inside, 204, "")
			post(t, h, kvs+"entity/get", `{"entityName":"lease","key":"e"}`, 200, `{"key":"e","value":{"version":`+version+`}}`)
			continue
		}
		post(t, h, kvs+"entity/set", direct, 400, `{"code":"INCORRECT_PROPERTY_TYPE","message":"Data type for property \"version\" is defined as \"integer\""}`)
		post(t, h, kvs+"transaction", inside, 422, semantics)
	}
}

func TestFloatIsExact(t *testing.T) {
	h := newHandler(Options{})
	post(t, h, kvs+"entity/set", `{"entityName":"lease","key":"e","value":{"expiresAt":1787116436381}}`, 204, "")
	post(t, h, kvs+"entity/get", `{"entityName":"lease","key":"e"}`, 200, `{"key":"e","value":{"expiresAt":1787116436381}}`)
	post(t, h, kvs+"transaction", guardedSet(`{}`, "expiresAt", `1787116436381`), 204, "")
}

func TestConditionOnAnAttributeInNoIndex(t *testing.T) {
	h := newHandler(Options{})
	post(t, h, kvs+"entity/set", `{"entityName":"lease","key":"e","value":{"holder":"ann"}}`, 204, "")
	post(t, h, kvs+"transaction", guardedSet(`{"holder":"bob"}`, "holder", `"bob"`), 400, checkFails)
	post(t, h, kvs+"transaction", guardedSet(`{"holder":"bob"}`, "holder", `"ann"`), 204, "")
}

func TestATransactionHas25Operations(t *testing.T) {
	h := newHandler(Options{})
	sets := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"key":"k%d","value":1}`, i))
		}
		return `{"set":[` + strings.Join(all, ",") + `]}`
	}
	post(t, h, kvs+"transaction", sets(26), 422, semantics)
	post(t, h, kvs+"get", `{"key":"k0"}`, 404, `{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`)
	post(t, h, kvs+"transaction", sets(25), 204, "")
	post(t, h, kvs+"transaction", `{"set":[{"key":"k","value":1},{"key":"k","value":2}]}`, 400,
		`{"code":"KEY_DUPLICATION_ERROR","message":"Duplicate key found in request"}`)
}
