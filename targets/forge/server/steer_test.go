package server

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"contend/targets/forge/emulator"
)

// steer posts from an address to a host, and gives the status and the body.
func steer(t *testing.T, o Options, from, host, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.RemoteAddr, r.Host = from, host
	w := request(t, newHandler(o), r)
	return w.Code, w.Body.String()
}

func TestSteeringIsForThisMachine(t *testing.T) {
	local := Options{Steerable: true}
	for name, c := range map[string]struct {
		o          Options
		from, host string
		refused    string // "": it is not
	}{
		"IPv4":             {local, "127.0.0.1:5000", "127.0.0.1:7077", ""},
		"IPv6":             {local, "[::1]:5000", "[::1]:7077", ""},
		"by name":          {local, "127.0.0.9:5000", "localhost:7077", ""},
		"IPv4 in IPv6":     {local, "[::ffff:127.0.0.1]:5000", "LOCALHOST", ""},
		"listens for all":  {Options{}, "127.0.0.1:5000", "127.0.0.1:7077", "start it with --listen 127.0.0.1:PORT"},
		"a remote client":  {local, "192.0.2.7:5000", "127.0.0.1:7077", "from another machine"},
		"no address":       {local, "@", "127.0.0.1:7077", "from another machine"},
		"through a tunnel": {local, "127.0.0.1:5000", "abc.example.com", "names another host"},
		"no host":          {local, "127.0.0.1:5000", "", "names another host"},
		"like a loopback":  {local, "127.0.0.1:5000", "127.0.0.1.example.com", "names another host"},
	} {
		for path, body := range map[string]string{"/emulator/reset": "", "/emulator/clock": `{"forward":"15m"}`} {
			status, got := steer(t, c.o, c.from, c.host, path, body)
			if c.refused == "" && (status != 200 || !strings.HasPrefix(got, `{"now":"`)) {
				t.Errorf("%s: %s: %d %s", name, path, status, got)
			}
			if c.refused != "" && (status != 403 || !strings.Contains(got, `"FORBIDDEN"`) || !strings.Contains(got, c.refused)) {
				t.Errorf("%s: %s: %d %s; want %q", name, path, status, got, c.refused)
			}
		}
	}
}

func TestSteeringRefuses(t *testing.T) {
	for _, c := range []struct{ path, body string }{
		{"/emulator/clock", ``},
		{"/emulator/clock", `{}`},
		{"/emulator/clock", `{"forward":15}`},
		{"/emulator/clock", `{"forward":"15"}`},
		{"/emulator/clock", `{"forward":"0s"}`},
		{"/emulator/clock", `{"forward":"-1s"}`},
		{"/emulator/clock", `{"forward":"1ns"}`},
		{"/emulator/clock", `{"forward":"876001h"}`},
		{"/emulator/clock", `{"Forward":"1s"}`},
		{"/emulator/clock", `{"forward":"1s","back":"1s"}`},
		{"/emulator/", ``},
		{"/emulator/clocks", `{"forward":"1s"}`},
	} {
		status, got := steer(t, Options{Steerable: true}, "127.0.0.1:1", "localhost", c.path, c.body)
		if status != 400 || !strings.Contains(got, "BAD_REQUEST") {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, got)
		}
	}
}

// A ghost of a lease, and a quota, without waiting for either.
func TestTheClockGoesForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sweep, err := emulator.Sweeper("10m", 1)
		if err != nil {
			t.Fatal(err)
		}
		store := emulator.New(emulator.Options{Entities: entities(), Sweep: sweep})
		h := New(store, Options{Steerable: true, Quota: emulator.NewQuota("RATE_LIMIT_EXCEEDED")})
		ask := func(path, body string) (int, string) {
			r := httptest.NewRequest("POST", path, strings.NewReader(body))
			r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
			w := request(t, h, r)
			return w.Code, w.Body.String()
		}
		forward := func(d, want string) {
			t.Helper()
			if status, got := ask("/emulator/clock", `{"forward":"`+d+`"}`); status != 200 || got != `{"now":"`+want+`"}` {
				t.Errorf("forward %s: %d %s", d, status, got)
			}
		}
		const claim = `{"key":"k","value":1,"options":{"keyPolicy":"FAIL_IF_EXISTS","ttl":{"value":30,"unit":"SECONDS"}}}`
		secret := `{"key":"k","value":1}`
		post(t, h, kvs+"set", claim, 204, "")
		post(t, h, kvs+"secret/set", secret, 204, "")
		post(t, h, kvs+"entity/set", `{"entityName":"lease","key":"k","value":{}}`, 204, "")
		forward("31s", "2000-01-01T00:00:31Z")
		refuses(t, h, kvs+"set", claim, 409, "KEY_CONFLICT")
		forward("10m", "2000-01-01T00:10:31Z")
		post(t, h, kvs+"set", claim, 204, "")
		post(t, h, kvs+"get", `{"key":"k","options":{"metadataFields":["EXPIRE_TIME"]}}`, 200,
			`{"key":"k","value":1,"expireTime":"2000-01-01T00:11:01.000Z"}`)

		full := `{"key":"q","value":1}` + strings.Repeat(" ", 15<<20) // 1537 units
		post(t, h, kvs+"set", full, 204, "")
		post(t, h, kvs+"set", full, 204, "")
		refuses(t, h, kvs+"set", full, 429, "RATE_LIMIT_EXCEEDED")
		forward("1m", "2000-01-01T00:11:31Z")
		post(t, h, kvs+"set", full, 204, "")
		post(t, h, kvs+"set", full, 204, "")

		if status, got := ask("/emulator/reset", ""); status != 200 || got != `{"now":"2000-01-01T00:00:00Z"}` {
			t.Errorf("reset: %d %s", status, got)
		}
		post(t, h, kvs+"set", full, 204, "") // the quota is new
		refuses(t, h, kvs+"get", `{"key":"k"}`, 404, "KEY_NOT_FOUND")
		refuses(t, h, kvs+"secret/get", `{"key":"k"}`, 404, "KEY_NOT_FOUND")
		refuses(t, h, kvs+"entity/get", `{"entityName":"lease","key":"k"}`, 404, "KEY_NOT_FOUND")
		if w := request(t, h, httptest.NewRequest("GET", "/emulator/reset", nil)); w.Code != 403 {
			t.Errorf("from afar: %d", w.Code)
		}
	})
}
