// Package try is what the tests of stores share: sessions on a target by its URL, and
// what is expected of them.
package try

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"contend/targets"
	"contend/targets/all"
	"contend/targets/targettest"
)

// NeedsOf n sessions; nothing of it is reached on a machine that merely is slow.
func NeedsOf(n int) targets.Needs {
	return targets.Needs{Guards: []targets.Guard{targets.IfAbsent, targets.IfVersion}, Sessions: n, Timeout: time.Minute}
}

func Open(t testing.TB, url string) targets.Target {
	t.Helper()
	target, err := all.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { target.Close() })
	return target
}

func Prepared(t testing.TB, url string, needs targets.Needs) targets.Target {
	t.Helper()
	target := Open(t, url)
	if _, err := target.Prepare(t.Context(), needs); err != nil {
		t.Fatal(err)
	}
	return target
}

func Session(t testing.TB, target targets.Target, contender int) targets.Session {
	t.Helper()
	session, err := target.Open(t.Context(), contender)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// SessionOn opens a session on a target of its own.
func SessionOn(t testing.TB, url string) targets.Session {
	t.Helper()
	return Session(t, Prepared(t, url, NeedsOf(1)), 0)
}

func Write(key, token string, cond targets.Condition) targets.Op {
	return targets.Op{Kind: targets.Write, Key: key, If: cond, Value: targets.Record{Token: token, Version: cond.Counter + 1}}
}

func Read(key string) targets.Op { return targets.Op{Kind: targets.Read, Key: key} }

var IfAbsent, IfFirst = targets.Condition{Guard: targets.IfAbsent}, targets.Condition{Guard: targets.IfVersion}

// Expect sends an op and checks outcome and code of the reply.
func Expect(t testing.TB, s targets.Session, op targets.Op, want targets.Outcome, code string) targets.Reply {
	t.Helper()
	got := s.Do(t.Context(), op)
	if got.Outcome != want || got.Code != code {
		t.Errorf("%s of %q under %q: got %s %q (%s), want %s %q", op.Kind, op.Key, op.If.Guard, got.Outcome, got.Code, got.Message, want, code)
	}
	return got
}

// RacesOnVersion lets n sessions write one record on its version at once.
func RacesOnVersion(t testing.TB, target targets.Target, n, rounds int) {
	t.Helper()
	var sessions []targets.Session
	for i := range n {
		sessions = append(sessions, Session(t, target, i))
	}
	for round := range rounds {
		key := fmt.Sprintf("contend-test-version-%d", round)
		Expect(t, sessions[0], targets.Op{Kind: targets.Write, Key: key, Value: targets.Record{Token: "seed"}}, targets.OK, "")
		replies, called, returned := make([]targets.Reply, n), make([]time.Time, n), make([]time.Time, n)
		start, done := make(chan struct{}), sync.WaitGroup{}
		for i, session := range sessions {
			done.Go(func() {
				<-start
				called[i] = time.Now()
				replies[i] = session.Do(t.Context(), Write(key, fmt.Sprint("token-", i), IfFirst))
				returned[i] = time.Now()
			})
		}
		close(start)
		done.Wait()
		var winners []string
		for i, reply := range replies {
			switch reply.Outcome {
			case targets.OK:
				winners = append(winners, fmt.Sprint("token-", i))
			case targets.Conflict, targets.Aborted:
			default:
				t.Errorf("got %s %s (%s)", reply.Outcome, reply.Code, reply.Message)
			}
			if reply.Sent.Before(called[i]) || reply.Sent.After(returned[i]) || reply.Attempts != 1 {
				t.Errorf("sent at %s in %d attempts, between %s and %s", reply.Sent, reply.Attempts, called[i], returned[i])
			}
		}
		stored := Expect(t, sessions[0], Read(key), targets.OK, "").Record
		if len(winners) != 1 || stored.Token != winners[0] || stored.Version != 1 {
			t.Errorf("won by %q, stored is %s at version %d", winners, stored.Token, stored.Version)
		}
	}
}

// ClosedPort gives an address that nobody listens on.
func ClosedPort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// ExpectError checks what an error says and that it keeps the secret.
func ExpectError(t testing.TB, err error, secret string, says ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
	if secret != "" && strings.Contains(err.Error(), secret) {
		t.Errorf("the error tells the secret: %v", err)
	}
}

// ExpectUsageError checks that a URL is refused before anything is sent.
func ExpectUsageError(t testing.TB, url, secret string) {
	t.Helper()
	_, err := all.Open(url)
	var usage *targets.UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("%s: got %v, want a usage error", url, err)
	}
	ExpectError(t, err, secret)
}

// Eventually polls until the condition holds or the test's time is up.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not seen: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// RemoveListed deletes what a listing gives.
func RemoveListed(t testing.TB, target targets.Target, prefix string) (removed int, err error) {
	t.Helper()
	deletes, _, err := target.List(t.Context(), prefix)
	if len(deletes) == 0 {
		return 0, err
	}
	session := Session(t, target, -1)
	for _, op := range deletes {
		Expect(t, session, op, targets.OK, "")
	}
	return len(deletes), err
}

// Described is a target by its URL, with what its server tells of itself.
func Described(t testing.TB, url string, needs targets.Needs) targets.Description {
	t.Helper()
	target := Open(t, url)
	server, err := target.Prepare(t.Context(), needs)
	if err != nil {
		t.Fatal(err)
	}
	return target.Describe().With(server)
}

// Suite is targettest.Suite of a target of one of the kinds that there are.
func Suite(ctx context.Context, t targets.Target, needs targets.Needs, options ...targettest.Option) error {
	for _, d := range all.Drivers() {
		if d.Name == t.Describe().Kind {
			return targettest.Suite(ctx, d, t, needs, options...)
		}
	}
	return fmt.Errorf("there is no kind of target %q", t.Describe().Kind)
}

// Within is a context that ends after a while.
func Within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Prepare opens a target and prepares it, where its description has what the run needs.
func Prepare(ctx context.Context, t testing.TB, url string, needs targets.Needs) error {
	t.Helper()
	target := Open(t, url)
	if err := target.Describe().Check(needs); err != nil {
		return err
	}
	_, err := target.Prepare(ctx, needs)
	return err
}

// ExpectLost checks a reply without an answer, whose session is broken by it.
func ExpectLost(t testing.TB, session targets.Session, got targets.Reply, code string) {
	t.Helper()
	if got.Outcome != targets.Unknown || got.Code != code || got.Attempts != 1 || got.Sent.IsZero() {
		t.Errorf("in mid-operation: got %+v, want unknown %q", got, code)
	}
	Expect(t, session, Read("key"), targets.NotSent, "connection")
}
