package cmd_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"contend/cmd"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/forge/emulator"
	"contend/targets/forge/server"
)

// forgeSite is the emulator behind HTTP in the process of the test, which sees every
// request that reaches it.
type forgeSite struct {
	store *emulator.Store
	url   string // of the target
	http  *httptest.Server

	mu    sync.Mutex
	about map[string]int // requests about a key, but for deletes
	n     int            // requests in all
	told  func(request)  // of each before it is served, one at a time; may be nil
	dead  bool

	// served is told of each when it was served, with the status; false: the answer
	// is not sent. May be nil.
	served func(request, int) bool
}

// request is one that reached a site.
type request struct {
	n         int
	path, key string
	ofRun     bool
}

var (
	runKey   = regexp.MustCompile(`-[0-9A-Z]{26}-`)
	ghostKey = regexp.MustCompile(`-[0-9A-Z]{26}-(write|read|once|early|twin)\d+$`)
)

// ofGhost tells a watched key from those of the checks.
func (r request) ofGhost() bool { return ghostKey.MatchString(r.key) }

// newForgeSite starts one that sweeps a key so long after its expiry; negative: never.
func newForgeSite(t *testing.T, sweep time.Duration, latency string) *forgeSite {
	t.Helper()
	drawn, err := emulator.NewLatency(latency, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := &forgeSite{about: make(map[string]int), store: emulator.New(emulator.Options{Entities: server.DefaultEntities(),
		Sweep: func() time.Duration { return sweep }})}
	inner := server.New(s.store, server.Options{Latency: drawn})
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		seen, ok := s.see(r.URL.Path, body)
		if !ok {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer := &statusWriter{ResponseWriter: w}
		inner.ServeHTTP(answer, r)
		s.mu.Lock()
		served := s.served
		s.mu.Unlock()
		if served != nil && !served(seen, answer.status) {
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(s.http.Close)
	s.url = "forge+rest+" + s.http.URL
	return s
}

// statusWriter keeps the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// see notes a request; ok tells whether to serve it.
func (s *forgeSite) see(path string, body []byte) (r request, ok bool) {
	var sent struct{ Key string }
	_ = json.Unmarshal(body, &sent)
	r = request{path: path[strings.LastIndex(path, "/")+1:], key: sent.Key, ofRun: runKey.MatchString(sent.Key)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	r.n = s.n
	if r.path != "delete" {
		s.about[r.key]++
	}
	if s.told != nil && !s.dead {
		s.told(r)
	}
	return r, !s.dead
}

// tell has do called with every request that comes from now on.
func (s *forgeSite) tell(do func(request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = do
}

// die is for the function that is told: nothing is answered from now on, and
// nobody can connect.
func (s *forgeSite) die() {
	s.dead = true
	s.http.Listener.Close()
}

func (s *forgeSite) askedAll() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.about)
}

// asked is how many requests about a key came, but for deletes.
func (s *forgeSite) asked(key string) int { return s.askedAll()[key] }

// keys gives those that are in the store, of both collections.
func (s *forgeSite) keys(t *testing.T) (all []string) {
	t.Helper()
	limit := 100
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := s.store.Query(emulator.Query{Limit: &limit, After: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Data {
			all = append(all, item.Key)
		}
		cursor = page.Cursor
	}
	page, err := s.store.EntityQuery(emulator.EntityQuery{EntityName: "contend-record", IndexName: "version", Limit: &limit})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Data {
		all = append(all, item.Key)
	}
	return all
}

// command is the built program with a command line.
func command(t *testing.T, args ...string) *process {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(program, args...)}
	p.Env = append(os.Environ(), "CONTEND_FORGE_TOKEN=test", "XDG_STATE_HOME="+filepath.Join(t.TempDir(), "state"))
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	return p
}

// begin starts a program; what it gives is closed when the program has ended.
func (p *process) begin(t *testing.T) <-chan struct{} {
	t.Helper()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	// None takes so long but one that does not end.
	hung := time.AfterFunc(2*time.Minute, func() { _ = p.Process.Kill() })
	go func() {
		defer close(ended)
		_ = p.Wait()
		hung.Stop()
	}()
	t.Cleanup(func() { _ = p.Process.Kill(); <-ended })
	return ended
}

// kept is what is on disk of the keys, with their exchanges.
func kept(t *testing.T, file string) (ghosts []*runner.Ghost, probes map[string][]*runner.Exchange) {
	t.Helper()
	probes = make(map[string][]*runner.Exchange)
	if info, err := os.Stat(file); os.IsNotExist(err) || err == nil && info.Size() == 0 {
		return nil, probes
	}
	s, err := store.OpenToRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for g, err := range s.Ghosts(store.Ghosts{}) {
		if err != nil {
			t.Fatal(err)
		}
		ghosts = append(ghosts, g)
		for e, err := range s.Probes(g) {
			if err != nil {
				t.Fatal(err)
			}
			probes[g.Key] = append(probes[g.Key], e)
		}
	}
	return ghosts, probes
}

func openOf(ghosts []*runner.Ghost) (n int) {
	for _, g := range ghosts {
		if !g.Closed {
			n++
		}
	}
	return n
}

// sideBySide runs tests at once, however few the processors: they wait most of the
// time.
func sideBySide(t *testing.T, tests map[string]func(*testing.T)) {
	t.Helper()
	var all sync.WaitGroup
	defer all.Wait()
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
}

// What a watch is to whom uses it, kills it, interrupts it or reads what it left.
func TestGhosts(t *testing.T) {
	t.Parallel()
	sideBySide(t, map[string]func(*testing.T){
		"kills": ghostsSurviveKills, "a kill at the end": ghostsKilledAtTheEnd, "a kill over a create": ghostKilledOverACreate, "a full disk": ghostsOnAFullDisk,
		"interrupted": ghostInterruptedAndResumed, "interrupted and violated": ghostInterruptedViolated, "interrupted without a store": ghostInterruptedWithoutStore,
		"the server stops": ghostServerStops, "result": ghostResult, "result in the store": ghostResultInTheStore, "a newer store": ghostStoreOfANewerContend,
		"record": ghostRecord, "a record that is cut": ghostRecordThatIsCut, "a record that is tampered with": ghostRecordThatIsTamperedWith,
	})
}

// ghostRun is a watch with all that it left.
type ghostRun struct {
	code           int
	result         report.Result
	json           []byte
	store, record  string
	stdout, stderr string
}

// watched runs a watch on the emulator in this process, once for all tests.
func watched(folder string, args ...string) func() (ghostRun, error) {
	return sync.OnceValues(func() (r ghostRun, err error) {
		dir := filepath.Join(builtIn, folder)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return r, err
		}
		r.store, r.record = filepath.Join(dir, "ghosts.db"), filepath.Join(dir, "run.jsonl")
		file := filepath.Join(dir, "run.json")
		var out, errs bytes.Buffer
		r.code = cmd.Run(context.Background(), append([]string{"ttl-ghost", "--no-progress", "--store", r.store, "--record", r.record, "-o", "json=" + file}, args...),
			strings.NewReader(""), &out, &errs)
		r.stdout, r.stderr = out.String(), errs.String()
		if r.json, err = os.ReadFile(file); err != nil {
			return r, fmt.Errorf("exit %d: %w: %s", r.code, err, r.stderr)
		}
		return r, json.Unmarshal(r.json, &r.result)
	})
}

const sweptAfter = 1500 * time.Millisecond

var (
	// sweptRun is on a store with ghosts of one age, freeRun on one without.
	sweptRun = watched("swept", "-t", "sim:?sweep=1500ms&latency=1ms..9ms", "--keys", "6", "--watch", "2500ms", "--tolerance", "500ms", "--label", "site=test")
	freeRun  = watched("free", "-t", "sim:?sweep=0s&latency=1ms..9ms", "--keys", "6", "--ttl", "2s", "--watch", "1500ms")
)

func must(t *testing.T, run func() (ghostRun, error)) ghostRun {
	t.Helper()
	r, err := run()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What is promised of the result of a watch is in its JSON, and the truth is inside
// of every interval.
func ghostResult(t *testing.T) {
	run := must(t, sweptRun)
	if violated := run.result.Verdict.Status == scenarios.Violated; violated != (run.code == 1) || violated && run.result.Verdict.Violations[0].Kind != "ghost" {
		t.Errorf("exit %d: %s", run.code, run.result.VerdictLine())
	}
	for _, complaint := range outside(run.result.Detail.Ghosts.Keys, sweptAfter) {
		t.Error(complaint)
	}
	// By its names alone, as a script reads it.
	var read struct {
		Labels map[string]string
		Target struct{ Simulated bool }
		Detail struct {
			Ghosts struct {
				TTL       int64 `json:"ttl_ns"`
				Tolerance int64 `json:"tolerance_ns"`
				Watch     int64 `json:"watch_ns"`
				Keys      []struct {
					Key, Arm, State, Code string
					Status, Probes        int
					LastBlocked           *int64 `json:"last_blocked_ns"`
					FirstFree             *int64 `json:"first_free_ns"`
					LastShown             *int64 `json:"last_shown_ns"`
					FirstGone             *int64 `json:"first_gone_ns"`
				}
				Arms []struct {
					Arm    string
					Keys   int
					States map[string]int
				}
				Median struct {
					From int64 `json:"from_ns"`
					To   int64 `json:"to_ns"`
				}
				Longest struct{ Key string }
			}
		}
	}
	if err := json.Unmarshal(run.json, &read); err != nil {
		t.Fatal(err)
	}
	g := read.Detail.Ghosts
	if read.Labels["site"] != "test" || !read.Target.Simulated || g.TTL != 1e9 || g.Tolerance != 5e8 || g.Watch != 25e8 {
		t.Errorf("%+v", read)
	}
	arms := make(map[string]int)
	for _, k := range g.Keys {
		arms[k.Arm]++
		switch k.Arm {
		case scenarios.WriteArm:
			// That it was seen to block depends on the machine.
			if k.State != "free" || k.FirstFree == nil || k.LastBlocked != nil && (*k.LastBlocked >= *k.FirstFree || k.Code != "KEY_CONFLICT" || k.Status != 409 || k.Probes < 2) {
				t.Errorf("%+v", k)
			}
		case scenarios.ReadArm:
			if k.State != "free" || k.FirstGone == nil || k.LastShown != nil && *k.LastShown >= *k.FirstGone || k.FirstFree == nil {
				t.Errorf("%+v", k)
			}
		case scenarios.TwinArm:
			if k.State != "blocked" || k.FirstFree != nil {
				t.Errorf("%+v", k)
			}
		}
	}
	for _, a := range g.Arms {
		states := 0
		for _, n := range a.States {
			states += n
		}
		if a.Keys != arms[a.Arm] || states != a.Keys {
			t.Errorf("%+v, of %d keys", a, arms[a.Arm])
		}
	}
	if want := map[string]int{"write": 6, "read": 6, "once": 6, "early": 6, "twin": 4}; !maps.Equal(arms, want) {
		t.Errorf("%v", arms)
	}
	// Every interval has the truth inside, and so has what they have in common.
	if m := g.Median; time.Duration(m.From) > sweptAfter+rounding || time.Duration(m.To) < sweptAfter-rounding {
		t.Errorf("the median is from %s to %s", time.Duration(m.From), time.Duration(m.To))
	}
}

// A result comes out of the store as it went in, and every exchange with it.
func ghostResultInTheStore(t *testing.T) {
	for _, run := range []ghostRun{must(t, sweptRun), must(t, freeRun)} {
		again, err := stored(t, run.store, run.result.Run).MarshalIndent()
		if err != nil || !bytes.Equal(again, run.json) {
			t.Errorf("%v: the store gives\n%.500s\nwhere the run told\n%.500s", err, again, run.json)
		}
		if code, stdout, stderr := contend(t, "results", "show", run.result.Run, "--store", run.store, "-o", "json"); code != 0 || stdout != string(run.json) {
			t.Errorf("results show: exit %d: %s", code, stderr)
		}
		ghosts, probes := kept(t, run.store)
		exchanges := 0
		for i, g := range ghosts {
			k := run.result.Detail.Ghosts.Keys[i]
			if g.Key != k.Key || g.State != k.State || !g.Closed || g.Probes != k.Probes || len(probes[g.Key]) != g.Probes+1 {
				t.Errorf("%s is told as %+v", story(g, probes[g.Key]), k)
			}
			exchanges += g.Probes
		}
		counted := 0
		for _, o := range run.result.Outcomes {
			counted += o.Count
		}
		if counted != exchanges {
			t.Errorf("%d probes are on disk, %d in the outcomes", exchanges, counted)
		}
	}
}

// lines gives the lines of a record, and writes others to a file of their own.
func lines(t *testing.T, file string) (all []string, write func(...string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n"), func(changed ...string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "changed.jsonl")
		if err := os.WriteFile(file, []byte(strings.Join(changed, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
}

// askedLine is a line of a record about a key.
type askedLine struct {
	Ghost *runner.Ghost
	Asked *struct {
		Key      string           `json:"key"`
		Exchange *runner.Exchange `json:"exchange"`
	} `json:"asked,omitempty"`
}

func readLine(t *testing.T, text string) (l askedLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return l
}

// is tells whether the line is a reply of that outcome to a probe of a key of the
// arm.
func (l askedLine) is(arm string, outcome targets.Outcome) bool {
	return l.Asked != nil && strings.Contains(l.Asked.Key, "-"+arm) && l.Asked.Exchange.Reply.Outcome == outcome &&
		l.Asked.Exchange.Op.Kind == targets.Write && strings.Contains(l.Asked.Exchange.Op.Value.Token, "-c1-a")
}

func (l askedLine) text(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"asked": l.Asked})
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// The record holds everything: judged again, a watch is what it was.
func ghostRecord(t *testing.T) {
	for _, run := range []ghostRun{must(t, sweptRun), must(t, freeRun)} {
		code, stdout, stderr := contend(t, "judge", run.record, "-o", "json")
		if code != run.code || stdout != string(run.json) {
			t.Errorf("exit %d, and %d of the run: %s\n%.500s", code, run.code, stderr, stdout)
		}
		// Neither how it ended nor what it concluded is needed for that.
		all, write := lines(t, run.record)
		var again report.Result
		code, stdout, stderr = contend(t, "judge", write(all[:len(all)-2]...), "-o", "json")
		if err := json.Unmarshal([]byte(stdout), &again); err != nil || !reflect.DeepEqual(again.Detail, run.result.Detail) {
			t.Errorf("exit %d, %v: %s\n%.500s", code, err, stderr, stdout)
		}
	}
}

// A record that was cut off is judged as far as it goes.
func ghostRecordThatIsCut(t *testing.T) {
	run := must(t, sweptRun)
	all, write := lines(t, run.record)
	first := slices.IndexFunc(all, func(line string) bool {
		l := readLine(t, line)
		return l.Asked != nil && strings.Contains(l.Asked.Exchange.Op.Value.Token, "-c1-a")
	})
	code, stdout, stderr := contend(t, "judge", write(append(all[:first:first], all[first][:100])...))
	if code != 130 || !strings.Contains(stdout, "INCONCLUSIVE") || !strings.Contains(stdout, "interrupted") {
		t.Errorf("cut before the first probe: exit %d: %.500s%s", code, stdout, stderr)
	}
	code, stdout, stderr = contend(t, "judge", write(append(all[:len(all)-2:len(all)-2], `{"end":{"requ`)...))
	if want := map[bool]int{true: 1, false: 130}[run.code == 1]; code != want || !strings.Contains(stdout, "interrupted") {
		t.Errorf("cut before its end: exit %d: %.500s%s", code, stdout, stderr)
	}
}

// Who changes a record is found out, or changes the verdict: it rests on the
// replies alone.
func ghostRecordThatIsTamperedWith(t *testing.T) {
	swept, free := must(t, sweptRun), must(t, freeRun)
	judged := func(what, file string, want int, text string) {
		t.Helper()
		if code, stdout, stderr := contend(t, "judge", file); code != want || !strings.Contains(stdout+stderr, text) {
			t.Errorf("%s: exit %d, want %d, %q: %.500s%s", what, code, want, text, stdout, stderr)
		}
	}
	find := func(all []string, arm string, outcome targets.Outcome) int {
		t.Helper()
		i := slices.IndexFunc(all, func(line string) bool { return readLine(t, line).is(arm, outcome) })
		if i < 0 {
			t.Fatalf("no probe of %s was answered with %s", arm, outcome)
		}
		return i
	}
	all, write := lines(t, swept.record)
	// Not the last reply of its key.
	refused := find(all, scenarios.EarlyArm, targets.Conflict)
	changed := slices.Clone(all)
	changed[refused] = strings.Replace(all[refused], `"outcome":"conflict"`, `"outcome":"ok"`, 1)
	judged("a refusal turned into an acceptance", write(changed...), 2, "is closed")
	key := slices.IndexFunc(all, func(line string) bool { return strings.HasPrefix(line, `{"ghost":`) })
	judged("a key left out", write(slices.Delete(slices.Clone(all), key, key+1)...), 2, "is not watched")
	judged("a key twice", write(slices.Insert(slices.Clone(all), key, all[key])...), 2, "once more")
	changed[refused] = strings.Replace(all[refused], `"outcome":"conflict"`, `"outcome":"refused"`, 1)
	judged("an unheard-of outcome", write(changed...), 2, `unknown outcome "refused"`)
	judged("a watch called a race", write(strings.Replace(strings.Join(all, ""), `"scenario":"ttl-ghost"`, `"scenario":"fail-if-exists"`, 1)), 2, "not a record")
	judged("lines after the end", write(slices.Insert(slices.Clone(all), len(all)-1, all[refused])...), 2, "after the end")
	// The last refusals of each key left out, and its acceptance after them: the rest
	// does not show that anything blocked for long.
	var early []string
	for _, line := range all {
		if l := readLine(t, line); l.Asked == nil || !strings.Contains(l.Asked.Exchange.Op.Value.Token, "-c1-a") {
			early = append(early, line)
		}
	}
	judged("the probes left out", write(early...), 3, "INCONCLUSIVE")

	// What was free is refused long after; what was refused before the expiry is
	// accepted.
	all, write = lines(t, free.record)
	if free.code == 1 {
		t.Fatalf("violated: %s", free.result.VerdictLine())
	}
	accepted := find(all, scenarios.WriteArm, targets.OK)
	l := readLine(t, all[accepted])
	l.Asked.Exchange.Reply.Outcome, l.Asked.Exchange.Reply.Code = targets.Conflict, "KEY_CONFLICT"
	e := l.Asked.Exchange
	for _, at := range []*time.Duration{&e.Call, &e.Began, &e.Sent, &e.Guard, &e.Return} {
		*at += time.Hour
	}
	shown := readLine(t, all[accepted])
	*shown.Asked.Exchange = runner.Exchange{Op: targets.Op{Kind: targets.Read, Key: l.Asked.Key, Collection: targets.Plain}, Call: e.Return, Began: e.Return, Sent: e.Return, Guard: e.Return, Return: e.Return,
		Reply: targets.Reply{Outcome: targets.OK, Attempts: 1, Record: targets.Record{Token: runner.Token(l.Asked.Key, 0, 1)}}}
	changed = slices.Clone(all)
	changed[accepted] = l.text(t) + shown.text(t)
	judged("an acceptance turned into a late refusal", write(changed...), 1, "VIOLATED by 1 of the 6 keys")
	created := slices.IndexFunc(all, func(line string) bool {
		l := readLine(t, line)
		return l.Asked != nil && strings.Contains(l.Asked.Key, "-early") && l.Asked.Exchange.Reply.Outcome == targets.OK
	})
	changed = nil
	for i, line := range all {
		key := readLine(t, all[created]).Asked.Key
		switch l := readLine(t, line); {
		case i == created:
			x := l.Asked.Exchange
			x.Op.Value.Token = runner.Token(key, 1, 1)
			x.Call, x.Began, x.Sent, x.Guard = x.Return, x.Return, x.Return, x.Return
			line += l.text(t)
		case l.Asked != nil && l.Asked.Key == key:
			continue
		}
		changed = append(changed, line)
	}
	judged("an acceptance right after the create", write(changed...), 1, "before the key expired")
}

// A store of a newer contend is left as it is, and so is one that a watch cannot
// be taken up from.
func ghostStoreOfANewerContend(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ghosts.db")
	text, err := os.ReadFile(must(t, sweptRun).store)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint32(text[60:], 1000) // SQLite's user_version
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-t", "sim:?sweep=0s", "--keys", "1"}, {"--resume"}} {
		code, stdout, stderr := contend(t, append([]string{"ttl-ghost", "--store", file}, args...)...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "is of a newer contend: its format is version 1000 and this contend knows up to") {
			t.Errorf("%v: exit %d: %.500s%s", args, code, stdout, stderr)
		}
	}
	if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, text) {
		t.Errorf("%v: the file was changed", err)
	}
}

// until waits for something to become so while a process runs.
func until(t *testing.T, p *process, ended <-chan struct{}, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-ended:
			t.Fatalf("%v: exit %d: %.500s%s", p.Args, p.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// interrupt interrupts a process once and gives its exit code.
func interrupt(t *testing.T, p *process, ended <-chan struct{}) int {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-ended
	return p.ProcessState.ExitCode()
}

// flat is a report without its line breaks.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// blockedFor tells whether every key of the write arm is on disk as blocked for
// so long.
func blockedFor(t *testing.T, file string, age time.Duration) bool {
	t.Helper()
	ghosts, _ := kept(t, file)
	for _, g := range ghosts {
		if g.Arm == scenarios.WriteArm && (g.LastBlocked == nil || g.LastBlocked.Call-g.Created.Return-g.Terms.TTL <= age) {
			return false
		}
	}
	return len(ghosts) > 0
}

// A watch that is interrupted reports, keeps its keys, and is gone on with, by one
// process at a time.
func ghostInterruptedAndResumed(t *testing.T) {
	s := newForgeSite(t, -1, "0ms..5ms")
	dir := t.TempDir()
	file := filepath.Join(dir, "ghosts.db")
	p := command(t, "ttl-ghost", "-t", s.url, "--store", file, "--keys", "5", "--tolerance", "1h", "--watch", "2h", "--rate", "900", "--label", "site=test")
	ended := p.begin(t)
	until(t, p, ended, func() bool { return blockedFor(t, file, 0) })
	code := interrupt(t, p, ended)
	if out := flat(p.stdout.String()); code != 130 || !strings.Contains(out, "INCONCLUSIVE") || !strings.Contains(out, "were still watched when the watch ended (go on with --resume, or let it end)") ||
		!strings.Contains(out, "How long expired keys still block") {
		t.Errorf("exit %d: %.500s", code, out)
	}
	if errs := p.stderr.String(); !strings.Contains(errs, "contend: interrupted: no more probes; what was measured is reported") {
		t.Errorf("%s", errs)
	}
	ghosts, before := kept(t, file)
	open := make(map[string]bool)
	for _, g := range ghosts {
		open[g.Key] = !g.Closed
	}
	left := make(map[string]bool)
	for _, key := range s.keys(t) {
		left[key] = true
	}
	maps.DeleteFunc(open, func(_ string, is bool) bool { return !is })
	if len(open) == 0 || !maps.Equal(open, left) {
		t.Errorf("%d keys are to be asked about; the store holds %d: %v", len(open), len(left), left)
	}

	// The rest is planned, and nothing is sent.
	asked := s.askedAll()
	dry := command(t, "ttl-ghost", "--resume", "--dry-run", "--store", file)
	<-dry.begin(t)
	if out := dry.stdout.String(); dry.ProcessState.ExitCode() != 0 || !strings.Contains(out, "all beginning with contend-"+ghosts[0].Run+"-") || !strings.Contains(out, "duration     at most about ") || !maps.Equal(asked, s.askedAll()) {
		t.Errorf("exit %d: %s%s", dry.ProcessState.ExitCode(), out, dry.stderr.String())
	}

	again := command(t, "ttl-ghost", "--resume", "--store", file, "-o", "json="+filepath.Join(dir, "run.json"))
	ended = again.begin(t)
	until(t, again, ended, func() bool {
		ghosts, probes := kept(t, file)
		return slices.ContainsFunc(ghosts, func(g *runner.Ghost) bool { return len(probes[g.Key]) > len(before[g.Key]) })
	})
	for _, args := range [][]string{{}, {"-t", s.url}} {
		second := command(t, append([]string{"ttl-ghost", "--resume", "--store", file}, args...)...)
		<-second.begin(t)
		if errs := second.stderr.String(); second.ProcessState.ExitCode() != 4 || !strings.Contains(errs, "another process watches the keys of run "+ghosts[0].Run) || second.stdout.Len() > 0 {
			t.Errorf("a second one: exit %d: %.500s%s", second.ProcessState.ExitCode(), second.stdout.String(), errs)
		}
	}
	if code := interrupt(t, again, ended); code != 130 {
		t.Errorf("exit %d: %s", code, again.stderr.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "run.json"))
	var r report.Result
	if err != nil || json.Unmarshal(text, &r) != nil {
		t.Fatalf("%v: %s", err, text)
	}
	_, probes := kept(t, file)
	noted, counted := 0, 0
	for _, exchanges := range probes {
		noted += len(exchanges) - 1
	}
	for _, o := range r.Outcomes {
		counted += o.Count
	}
	if noted != counted || r.Run != ghosts[0].Run || r.Labels["site"] != "test" || r.Params.Rate != 900 || !r.Interrupted || r.Requests <= int64(noted) {
		t.Errorf("%d probes are on disk, %d told: %+v", noted, counted, r.RunHeader)
	}
}

// One that has seen a violation is violated however it ends, and goes on to its
// end.
func ghostInterruptedViolated(t *testing.T) {
	s := newForgeSite(t, -1, "0ms..5ms")
	dir := t.TempDir()
	file, record := filepath.Join(dir, "ghosts.db"), filepath.Join(dir, "run.jsonl")
	p := command(t, "ttl-ghost", "-t", s.url, "--store", file, "--keys", "5", "--tolerance", "300ms", "--watch", "7s", "-q")
	ended := p.begin(t)
	until(t, p, ended, func() bool { return blockedFor(t, file, 300*time.Millisecond) })
	if code := interrupt(t, p, ended); code != 1 || !strings.Contains(p.stdout.String(), "violated by 5 of the 5 keys") {
		t.Errorf("exit %d: %s%s", code, p.stdout.String(), p.stderr.String())
	}
	again := command(t, "ttl-ghost", "--resume", "-t", s.url, "--store", file, "-o", "json", "--no-progress", "--record", record)
	<-again.begin(t)
	var r, judged report.Result
	if err := json.Unmarshal(again.stdout.Bytes(), &r); err != nil || again.ProcessState.ExitCode() != 1 || r.Interrupted {
		t.Fatalf("exit %d, %v: %.500s%s", again.ProcessState.ExitCode(), err, again.stdout.String(), again.stderr.String())
	}
	ghosts, _ := kept(t, file)
	for _, g := range ghosts {
		if !g.Closed || g.State != runner.GhostBlocked && g.State != runner.GhostVisible {
			t.Errorf("%s is %s, closed: %v", g.Key, g.State, g.Closed)
		}
	}
	if left := s.keys(t); len(left) > 0 {
		t.Errorf("%d keys were left: %v", len(left), left)
	}
	// The record of the second process has the keys as the first left them.
	code, stdout, stderr := contend(t, "judge", record, "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &judged); err != nil || code != 1 || !reflect.DeepEqual(judged.Detail, r.Detail) || !reflect.DeepEqual(judged.Verdict, r.Verdict) {
		t.Errorf("judged: exit %d, %v: %s%.500s", code, err, stderr, stdout)
	}
	if code, _, stderr := contend(t, "ttl-ghost", "--resume", "--store", file); code != 2 || !strings.Contains(stderr, "holds no watch that has not ended") {
		t.Errorf("once more: exit %d: %s", code, stderr)
	}
}

// Without a store nobody can go on, so that nothing is left behind.
func ghostInterruptedWithoutStore(t *testing.T) {
	s := newForgeSite(t, -1, "0ms..5ms")
	p := command(t, "ttl-ghost", "-t", s.url, "--store", "", "--keys", "2", "--tolerance", "1h", "--watch", "2h", "-q")
	ended := p.begin(t)
	until(t, p, ended, func() bool {
		created := 0
		for key := range s.askedAll() {
			if (request{key: key}).ofGhost() {
				created++
			}
		}
		return created == 3*2+2*2
	})
	if code := interrupt(t, p, ended); code != 130 {
		t.Errorf("exit %d: %s", code, p.stderr.String())
	}
	if left := s.keys(t); len(left) > 0 {
		t.Errorf("%d keys were left: %v", len(left), left)
	}
}

// A server that stops in mid-watch is told, and is no reason for a verdict.
func ghostServerStops(t *testing.T) {
	s := newForgeSite(t, -1, "0ms")
	file := filepath.Join(t.TempDir(), "ghosts.db")
	// It dies at the first create after an expiry, so that none is ever refused.
	s.tell(func(r request) {
		if strings.Contains(r.key, "-write") && r.path == "set" && s.about[r.key] == 2 {
			s.die()
		}
	})
	p := command(t, "ttl-ghost", "-t", s.url, "--store", file, "--keys", "5", "--watch", "2s", "--factor", "1", "--tolerance", "1500ms", "--timeout", "1s", "--no-progress")
	<-p.begin(t)
	out, errs := p.stdout.String(), p.stderr.String()
	if code := p.ProcessState.ExitCode(); code != 4 || !strings.Contains(flat(out), "INCONCLUSIVE: the target served none of the last ") {
		t.Errorf("exit %d: %.500s%s", code, out, errs)
	}
	if !strings.Contains(errs, "contend: stopped: the target served none of the last ") || !strings.Contains(errs, "keys may have been left behind: ") || !strings.Contains(errs, "contend clean -t "+s.url+" --run ") {
		t.Errorf("%s", errs)
	}
	ghosts, _ := kept(t, file)
	if r := stored(t, file, newest(ghosts)); r.Stopped == "" || len(r.Verdict.Violations) > 0 || openOf(ghosts) > 0 {
		t.Errorf("%s; %d keys are open", r.VerdictLine(), openOf(ghosts))
	}
}

// roomVariable tells a test to be the process that may write no more than so many
// bytes to a file; argsVariable has its command line, and dirVariable the folder
// for what it says.
const roomVariable, argsVariable, dirVariable = "CONTEND_TEST_ROOM", "CONTEND_TEST_ARGS", "CONTEND_TEST_DIR"

// A disk that is full in mid-watch is told, the result is printed, and once there
// is room the watch goes on.
func ghostsOnAFullDisk(t *testing.T) {
	c := newChain(t, newForgeSite(t, chainSweep, "0ms..5ms"))
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(self, "-test.run=^TestSqueezed$")}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	args := []string{"ttl-ghost", "-t", c.site.url, "--store", c.file, "--keys", fmt.Sprint(chainKeys), "--watch", "2500ms", "--tolerance", "1500ms",
		"--no-progress", "-o", "json"}
	p.Env = append(os.Environ(), "CONTEND_FORGE_TOKEN=test", roomVariable+"=1000000", argsVariable+"="+strings.Join(args, "\n"), dirVariable+"="+dir)
	<-p.begin(t)
	var said [3]string
	for i, name := range []string{"code", "stdout", "stderr"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("%v: %s%s", err, p.stdout.String(), p.stderr.String())
		}
		said[i] = string(text)
	}
	var r report.Result
	if err := json.Unmarshal([]byte(said[1]), &r); err != nil {
		t.Fatalf("%v: exit %s: %.500s%s", err, said[0], said[1], said[2])
	}
	want := "4"
	if r.Verdict.Status == scenarios.Violated {
		want = "1" // a machine that stood still may have seen a ghost before
	}
	if said[0] != want || !strings.Contains(r.Stopped, "the store of results: store") || len(r.Detail.Ghosts.Keys) != chainAll {
		t.Errorf("exit %s: %s; %s", said[0], r.VerdictLine(), r.Stopped)
	}
	if !strings.Contains(said[2], "see whether its disk is full or gone") && !strings.Contains(said[2], "make room on its disk") || !strings.Contains(said[2], "the result could not be kept") {
		t.Errorf("%s", said[2])
	}
	ghosts, probes := kept(t, c.file)
	noted := 0
	for _, exchanges := range probes {
		noted += len(exchanges)
	}
	if len(ghosts) != chainAll || noted == 0 || openOf(ghosts) == 0 {
		t.Fatalf("%d replies of %d keys are on disk, %d are open: the disk was not full in mid-watch", noted, len(ghosts), openOf(ghosts))
	}
	c.deaths[newest(ghosts)]++
	c.audit()
	c.finish()
}

// Runs the command line of another test with little room.
func TestSqueezed(t *testing.T) {
	room, err := strconv.ParseUint(os.Getenv(roomVariable), 10, 64)
	if err != nil {
		return // it is for the test of a full disk
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: room, Max: room}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := contend(t, strings.Split(os.Getenv(argsVariable), "\n")...)
	for name, text := range map[string]string{"code": fmt.Sprint(code), "stdout": stdout, "stderr": stderr} {
		if err := os.WriteFile(filepath.Join(os.Getenv(dirVariable), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
