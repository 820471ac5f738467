package all_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"contend/targets"
	"contend/targets/forge/emulator"
	"contend/targets/forge/server"
	"contend/targets/targettest/servers"
	"contend/targets/targettest/try"
)

// raw is a call of the wire protocol of Forge KVS.
func raw(path, body string) targets.Op {
	return targets.Op{Kind: targets.Raw, Key: "contend-RUN-probe", Raw: json.RawMessage(`{"path":"` + path + `","body":` + body + `}`)}
}

// restTarget is the REST form of an emulator, and its store.
func restTarget(t *testing.T, o emulator.Options) targets.Target {
	t.Helper()
	if o.Entities == nil {
		o.Entities = server.DefaultEntities()
	}
	s := httptest.NewServer(server.New(emulator.New(o), server.Options{}))
	t.Cleanup(s.Close)
	t.Setenv("CONTEND_FORGE_TOKEN", "any")
	return try.Open(t, "forge+rest+"+s.URL)
}

// A raw call is answered in the process as over HTTP, whatever the strategy of the
// target; one that is none is not sent.
func TestRawForgeCalls(t *testing.T) {
	inProcess, overHTTP := try.Open(t, "sim:?latency=0"), restTarget(t, emulator.Options{})
	for name, s := range map[string]targets.Session{"sim": try.Session(t, inProcess, 0), "rest": try.Session(t, overHTTP, 0)} {
		for _, c := range []struct {
			op   targets.Op
			want targets.Reply
		}{
			{raw("/api/v1/set", `{"key":"contend-RUN-a","value":1,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}`), targets.Reply{Outcome: targets.OK, Status: 204}},
			{raw("/api/v1/set", `{"key":"contend-RUN-a","value":2,"options":{"keyPolicy":"FAIL_IF_EXISTS"}}`), targets.Reply{Outcome: targets.Conflict,
				Code: "KEY_CONFLICT", Status: 409, Message: "Provided key already exists and cannot be overwritten",
				Raw: []byte(`{"code":"KEY_CONFLICT","message":"Provided key already exists and cannot be overwritten"}`)}},
			{raw("/api/v1/get", `{"key":"contend-RUN-a"}`), targets.Reply{Outcome: targets.OK, Status: 200, Raw: []byte(`{"key":"contend-RUN-a","value":1}`)}},
			{raw("/api/v1/entity/set", `{"entityName":"contend-record","key":"contend-RUN-a","value":{"version":2147483648}}`), targets.Reply{Outcome: targets.Invalid,
				Code: "INCORRECT_PROPERTY_TYPE", Status: 400, Message: `Data type for property "version" is defined as "integer"`,
				Raw: []byte(`{"code":"INCORRECT_PROPERTY_TYPE","message":"Data type for property \"version\" is defined as \"integer\""}`)}},
			{raw("/api/v1/delete", `{"key":"contend-RUN-a"}`), targets.Reply{Outcome: targets.OK, Status: 204}},
			{raw("/api/v1/get", `{"key":"contend-RUN-a"}`), targets.Reply{Outcome: targets.Missing, Code: "KEY_NOT_FOUND", Status: 404,
				Message: "Provided key does not exist", Raw: []byte(`{"code":"KEY_NOT_FOUND","message":"Provided key does not exist"}`)}},
			{raw("/api/v1/transaction", `"text"`), targets.Reply{Outcome: targets.Invalid, Code: "BAD_REQUEST", Status: 400,
				Message: "Provided request body is invalid", Raw: []byte(`{"code":"BAD_REQUEST","message":"Provided request body is invalid"}`)}},
		} {
			got := s.Do(t.Context(), c.op)
			if got.Attempts != 1 {
				t.Errorf("%s: %s: %d attempts", name, c.op.Raw, got.Attempts)
			}
			got.Attempts, got.RoundTrips, got.Sent, got.Trace = 0, 0, time.Time{}, ""
			if g, w := asJSON(t, got), asJSON(t, c.want); g != w {
				t.Errorf("%s: %s\nis answered with %s\nwant             %s", name, c.op.Raw, g, w)
			}
		}
		for _, op := range []targets.Op{raw("/api/v1/nope", `{}`), raw("/api/v2/get", `{}`), raw("get", `{}`), raw("/api/v1/../v1/get", `{}`),
			{Kind: targets.Raw, Raw: []byte(`["get"]`)}, {Kind: targets.Raw}} {
			if got := s.Do(t.Context(), op); got.Outcome != targets.Unsupported || got.Attempts != 0 || !strings.Contains(got.Message, "no path") {
				t.Errorf("%s: %s is answered with %+v", name, op.Raw, got)
			}
		}
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The fault unmapped strikes refusals of raw calls too, and spares what is accepted.
func TestRawCallIsStruck(t *testing.T) {
	s := try.Session(t, try.Open(t, "sim:?latency=0&fault=unmapped"), 0)
	if r := s.Do(t.Context(), raw("/api/v1/set", `{"key":"contend-RUN-a","value":1}`)); r.Outcome != targets.OK {
		t.Errorf("accepted: %+v", r)
	}
	if r := s.Do(t.Context(), raw("/api/v1/set", `{"key":"","value":1}`)); r.Outcome != targets.Unmapped || r.Code != "OUT_OF_CHEESE" {
		t.Errorf("refused: %+v", r)
	}
}

// A raw transaction takes as long as any other.
func TestRawTransactionTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := try.Session(t, try.Open(t, "sim:?seed=1"), 0)
		for path, published := range map[string][2]time.Duration{"/api/v1/get": {37, 93}, "/api/v1/transaction": {212, 319}} {
			began := time.Now()
			s.Do(t.Context(), raw(path, `{}`))
			if took := time.Since(began); took < published[0]*time.Millisecond || took > published[1]*time.Millisecond {
				t.Errorf("%s took %s, published are %d to %d ms", path, took, published[0], published[1])
			}
		}
	})
}

// A raw command is answered as Redis answers it; what nil means depends on the
// command.
func TestRawRedisCommands(t *testing.T) {
	s := try.Session(t, try.Open(t, servers.Redis(t)), 0)
	wrong := "WRONGTYPE Operation against a key holding the wrong kind of value"
	for _, c := range []struct {
		command string
		want    targets.Reply
	}{
		{`["SET","contend-RUN-a","1","NX"]`, targets.Reply{Outcome: targets.OK, Raw: []byte(`"OK"`)}},
		{`["SET","contend-RUN-a","2","NX"]`, targets.Reply{Outcome: targets.Conflict, Code: "nil", Raw: []byte(`null`)}},
		{`["set","contend-RUN-b","2","xx"]`, targets.Reply{Outcome: targets.Conflict, Code: "nil", Raw: []byte(`null`)}},
		{`["set","contend-RUN-b","2","nx","get"]`, targets.Reply{Outcome: targets.OK, Code: "nil", Raw: []byte(`null`)}},
		{`["GET","contend-RUN-c"]`, targets.Reply{Outcome: targets.Missing, Code: "nil", Raw: []byte(`null`)}},
		{`["GET","contend-RUN-a"]`, targets.Reply{Outcome: targets.OK, Raw: []byte(`"1"`)}},
		{`["INCR","contend-RUN-a"]`, targets.Reply{Outcome: targets.OK, Raw: []byte(`2`)}},
		{`["MGET","contend-RUN-a","contend-RUN-c"]`, targets.Reply{Outcome: targets.OK, Raw: []byte(`["2",null]`)}},
		{`["RPUSH","contend-RUN-d","x"]`, targets.Reply{Outcome: targets.OK, Raw: []byte(`1`)}},
		{`["GET","contend-RUN-d"]`, targets.Reply{Outcome: targets.Invalid, Code: "WRONGTYPE", Message: wrong, Raw: []byte(`"` + wrong + `"`)}},
	} {
		got := s.Do(t.Context(), targets.Op{Kind: targets.Raw, Raw: []byte(c.command)})
		if got.Attempts != 1 || got.Sent.IsZero() {
			t.Errorf("%s: %d attempts, sent %s", c.command, got.Attempts, got.Sent)
		}
		got.Attempts, got.RoundTrips, got.Sent = 0, 0, time.Time{}
		if g, w := asJSON(t, got), asJSON(t, c.want); g != w {
			t.Errorf("%s is answered with %s, want %s", c.command, g, w)
		}
	}
	for _, wrong := range []string{`[]`, `{}`, `["GET",1]`, `"GET"`, ``} {
		if got := s.Do(t.Context(), targets.Op{Kind: targets.Raw, Raw: []byte(wrong)}); got.Outcome != targets.Unsupported || got.Attempts != 0 {
			t.Errorf("%s is answered with %+v", wrong, got)
		}
	}
}

// Raw statements are answered by the last of them, with the error object as the
// server sends it.
func TestRawPostgresStatements(t *testing.T) {
	target := try.Open(t, servers.Postgres(t))
	if _, err := target.Prepare(t.Context(), targets.Needs{Sessions: 1, Timeout: time.Second}); err != nil {
		t.Fatal(err)
	}
	s := try.Session(t, target, 0)
	const insert = "insert into contend_records (key, token, version) values ('contend-RUN-a', 't', "
	for _, c := range []struct {
		statements string
		want       targets.Reply
	}{
		{insert + "0)", targets.Reply{Outcome: targets.OK, Raw: []byte(`{"command":"INSERT 0 1"}`)}},
		{insert + "0)", targets.Reply{Outcome: targets.Conflict, Code: "23505",
			Message: `ERROR: duplicate key value violates unique constraint "contend_records_pkey" (SQLSTATE 23505)`,
			Raw: []byte(`{"severity":"ERROR","code":"23505","message":"duplicate key value violates unique constraint \"contend_records_pkey\"",` +
				`"detail":"Key (key)=(contend-RUN-a) already exists.","table":"contend_records","constraint":"contend_records_pkey"}`)}},
		{insert + "0) on conflict do nothing", targets.Reply{Outcome: targets.Conflict, Code: "0 rows", Raw: []byte(`{"command":"INSERT 0 0"}`)}},
		{insert + "null)", targets.Reply{Outcome: targets.Invalid, Code: "23502",
			Message: `ERROR: null value in column "version" of relation "contend_records" violates not-null constraint (SQLSTATE 23502)`,
			Raw: []byte(`{"severity":"ERROR","code":"23502","message":"null value in column \"version\" of relation \"contend_records\" violates not-null constraint",` +
				`"detail":"Failing row contains (contend-RUN-a, t, null, null, null, null).","table":"contend_records","column":"version"}`)}},
		{"select 1; select version, updated_at, 'x' from contend_records where key = 'contend-RUN-a'",
			targets.Reply{Outcome: targets.OK, Raw: []byte(`{"command":"SELECT 1","rows":[["0",null,"x"]]}`)}},
		{"select 1 where false", targets.Reply{Outcome: targets.OK, Raw: []byte(`{"command":"SELECT 0"}`)}},
		{"begin", targets.Reply{Outcome: targets.OK, Raw: []byte(`{"command":"BEGIN"}`)}},
		{"rollback", targets.Reply{Outcome: targets.OK, Raw: []byte(`{"command":"ROLLBACK"}`)}},
	} {
		raw, _ := json.Marshal(c.statements)
		got := s.Do(t.Context(), targets.Op{Kind: targets.Raw, Raw: raw})
		if got.Attempts != 1 || got.Sent.IsZero() {
			t.Errorf("%s: %d attempts, sent %s", c.statements, got.Attempts, got.Sent)
		}
		got.Attempts, got.RoundTrips, got.Sent = 0, 0, time.Time{}
		if g, w := asJSON(t, got), asJSON(t, c.want); g != w {
			t.Errorf("%s is answered with %s, want %s", c.statements, g, w)
		}
	}
	for _, wrong := range []string{`""`, `{}`, `["select 1"]`, ``} {
		if got := s.Do(t.Context(), targets.Op{Kind: targets.Raw, Raw: []byte(wrong)}); got.Outcome != targets.Unsupported || got.Attempts != 0 {
			t.Errorf("%s is answered with %+v", wrong, got)
		}
	}
	// One that does not end in time is cut off, and may have been applied.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got := s.Do(ctx, targets.Op{Kind: targets.Raw, Raw: []byte(`"select pg_sleep(60)"`)}); got.Outcome != targets.Unknown || got.Raw != nil {
		t.Errorf("cut off: %+v", got)
	}
	if got := s.Do(t.Context(), targets.Op{Kind: targets.Raw, Raw: []byte(`"select 1"`)}); got.Outcome != targets.NotSent {
		t.Errorf("after that: %+v", got)
	}
}
