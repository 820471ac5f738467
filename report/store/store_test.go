package store

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// roles are what this test binary does when it is started again as a process of
// its own, with the role in the environment and the store as its argument.
var roles = map[string]func(file string) error{
	"write": writeSome, "go on": goOn, "guard": holdGuard, "hold": holdFile,
}

const roleVariable = "CONTEND_STORE_TEST_ROLE"

func TestMain(m *testing.M) {
	name := os.Getenv(roleVariable)
	role := roles[name]
	if role == nil {
		role = rolesHere()[name]
	}
	if role == nil {
		os.Exit(m.Run())
	}
	if err := role(os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func process(role, file string) *exec.Cmd {
	c := exec.Command(os.Args[0], file)
	c.Env = append(os.Environ(), roleVariable+"="+role)
	c.Stderr = os.Stderr
	return c
}

// outcome is what a process of a role prints, and whether it failed.
func outcome(t *testing.T, role, file string) (string, error) {
	t.Helper()
	output, err := process(role, file).Output()
	return strings.TrimSpace(string(output)), err
}

func fresh(t *testing.T) (*Store, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "results.db")
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, file
}

var epoch = time.Date(2026, 11, 30, 3, 0, 0, 5, time.UTC)

func result(n int) report.Result {
	return report.Result{Schema: report.ResultSchema, RunHeader: report.RunHeader{Run: fmt.Sprintf("01M8P4QDXB77DTFBJ75KQR8%03d", n),
		Scenario: "fail-if-exists", Started: epoch.AddDate(0, 0, n), Labels: map[string]string{"site": "test", "n": fmt.Sprint(n)},
		Tool: report.Tool{Version: "v1", Go: "go1.26"}, Target: report.Target{Kind: "redis", URL: "redis://a:6379", Server: "Redis 8", Notes: []string{}}},
		Elapsed: 5 * time.Second, Verdict: scenarios.Verdict{Status: scenarios.Held, Reasons: []string{}, Violations: []scenarios.Violation{}},
		Controls: []scenarios.Control{}, Expectations: []report.Expectation{}}
}

func ghost(run, n int) *runner.Ghost {
	r := result(run)
	return &runner.Ghost{Run: r.Run, Target: r.Target.URL, Key: fmt.Sprintf("contend-%s-w%d", r.Run, n), Arm: "write", Number: n,
		Epoch: r.Started, Terms: runner.GhostTerms{TTL: 30 * time.Second, Watch: 48 * time.Hour, Tolerance: time.Second,
			First: 100 * time.Millisecond, Factor: 1.5, Cap: 10 * time.Minute, Seed: 1<<64 - 1, Offset: time.Duration(n) * time.Millisecond},
		State: runner.GhostPending, Due: time.Duration(n) * time.Millisecond}
}

func exchange(g *runner.Ghost, n int) *runner.Exchange {
	at := 30*time.Second + time.Duration(n)*time.Minute
	return &runner.Exchange{Contender: g.Number, Call: at, Return: at + 40*time.Millisecond, Sent: at + time.Microsecond,
		Op: targets.Op{Kind: targets.Write, Key: g.Key, If: targets.Condition{Guard: targets.IfAbsent}, TTL: 30 * time.Second,
			Value: targets.Record{Token: fmt.Sprintf("%s-p%d", g.Key, n), UpdatedAt: epoch}},
		Reply: targets.Reply{Outcome: targets.Conflict, Code: "KEY_CONFLICT", Status: 409, Message: "Provided key already exists and cannot be overwritten",
			Raw: json.RawMessage(`{"code":"KEY_CONFLICT"}`)}}
}

// probed is a ghost as a probe that it refused leaves it.
func probed(g *runner.Ghost, e *runner.Exchange) *runner.Ghost {
	next := *g
	next.State, next.Probes, next.Due = runner.GhostBlocked, g.Probes+1, e.Return+time.Minute
	next.Created = &runner.Observation{Call: time.Second, Return: 2 * time.Second, Outcome: targets.OK, Status: 204}
	next.LastBlocked = &runner.Observation{Call: e.Call, Return: e.Return, Outcome: e.Reply.Outcome, Code: e.Reply.Code, Status: e.Reply.Status}
	return &next
}

func all[T any](t *testing.T, seq iter.Seq2[T, error]) []T {
	t.Helper()
	var found []T
	for each, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, each)
	}
	return found
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestResultsComeBack(t *testing.T) {
	s, file := fresh(t)
	for _, n := range []int{2, 0, 1} {
		try(t, s.SaveResult(result(n)))
	}
	// A resumed run is stored again.
	later := result(1)
	later.Verdict.Status, later.Labels = scenarios.Violated, map[string]string{"site": "other"}
	later.Target.URL, later.Scenario = "sim:", "version-cas"
	try(t, s.SaveResult(later))
	try(t, s.Close())

	s, err := OpenToRead(file)
	try(t, err)
	defer s.Close()
	got := all(t, s.Results(Runs{}))
	if diff := cmp.Diff([]report.Result{result(0), later, result(2)}, got); diff != "" {
		t.Error(diff)
	}
	first := Run{ID: result(0).Run, Started: result(0).Started, Elapsed: 5 * time.Second, Scenario: "fail-if-exists", Verdict: "held",
		Target: "redis://a:6379", Kind: "redis", Server: "Redis 8", Tool: "v1", Go: "go1.26", Labels: map[string]string{"site": "test", "n": "0"}}
	if diff := cmp.Diff(first, all(t, s.Runs(Runs{}))[0]); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		which Runs
		want  string
	}{
		{Runs{}, "012"},
		{Runs{Scenario: "version-cas"}, "1"},
		{Runs{Target: "redis:"}, "02"},
		{Runs{Labels: map[string]string{"site": "test"}}, "02"},
		{Runs{Labels: map[string]string{"site": "test", "n": "2"}}, "2"},
		{Runs{Labels: map[string]string{"n": "1"}}, ""},
		{Runs{Since: later.Started}, "12"},
		{Runs{Until: later.Started}, "0"},
		{Runs{ID: "01m8p"}, "012"},
		{Runs{ID: "01M8P4QDXB77DTFBJ75KQR8002"}, "2"},
		{Runs{ID: "1M8P"}, ""},
		{Runs{ID: "%"}, ""},
	} {
		ids := ""
		for _, r := range all(t, s.Runs(c.which)) {
			ids += r.ID[len(r.ID)-1:]
		}
		if ids != c.want {
			t.Errorf("%+v gives %q, want %q", c.which, ids, c.want)
		}
	}
	if r, err := s.Result(strings.ToLower(later.Run)); err != nil || r.Run != later.Run {
		t.Errorf("%s, %v", r.Run, err)
	}
	if err := s.SaveResult(later); !errors.Is(err, ErrReading) {
		t.Errorf("a store that was opened to read is written: %v", err)
	}
}

func TestOneRunByItsID(t *testing.T) {
	s, _ := fresh(t)
	try(t, s.SaveResult(result(1)))
	try(t, s.SaveResult(result(2)))
	for id, want := range map[string]string{
		"01M8": `2 IDs begin with "01M8", from 01M8P4QDXB77DTFBJ75KQR8001 to 01M8P4QDXB77DTFBJ75KQR8002: give more`,
		"02":   `no ID begins with "02": ` + "`contend results list` shows them", "": `no ID begins with ""`,
	} {
		if _, err := s.Result(id); !errors.Is(err, ErrNoRun) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestJournal(t *testing.T) {
	s, file := fresh(t)
	a, b, c := ghost(0, 1), ghost(0, 2), ghost(1, 0)
	c.Target = "redis://b:6379"
	try(t, s.Intend([]*runner.Ghost{a, b}))
	try(t, s.Intend([]*runner.Ghost{c}))
	a = probed(a, exchange(a, 0))
	try(t, s.Note(a, exchange(a, 0)))
	a = probed(a, exchange(a, 1))
	try(t, s.Note(a, exchange(a, 1)))
	try(t, s.Close())

	s, err := Open(file)
	try(t, err)
	defer s.Close()
	open, err := s.OpenGhosts("redis://a:6379")
	if diff := cmp.Diff([]*runner.Ghost{b, a}, open); diff != "" || err != nil { // a was due first, before it was probed
		t.Error(diff, err)
	}
	if diff := cmp.Diff([]*runner.Exchange{exchange(a, 0), exchange(a, 1)}, all(t, s.Probes(a))); diff != "" {
		t.Error(diff)
	}
	if n := len(all(t, s.Probes(b))); n != 0 {
		t.Errorf("%d probes of a key that none was sent for", n)
	}
	b.State, b.Closed, b.Why = runner.GhostAbandoned, true, "its store died"
	try(t, s.UpdateGhosts([]*runner.Ghost{b}))
	open, err = s.OpenGhosts("")
	if diff := cmp.Diff([]*runner.Ghost{a, c}, open); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, c := range []struct {
		which Ghosts
		want  []int
	}{
		{Ghosts{}, []int{1, 2, 0}},
		{Ghosts{Open: true}, []int{1, 0}},
		{Ghosts{Run: "01m8p4qdxb77dtfbj75kqr8001"}, []int{0}},
		{Ghosts{Target: "a:6379"}, []int{1, 2}},
		{Ghosts{State: runner.GhostAbandoned}, []int{2}},
		{Ghosts{State: runner.GhostAbandoned, Siblings: true}, []int{1, 2}},
		{Ghosts{Since: result(1).Started}, []int{0}},
		{Ghosts{Until: result(1).Started}, []int{1, 2}},
	} {
		var got []int
		for _, g := range all(t, s.Ghosts(c.which)) {
			got = append(got, g.Number)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v gives %v, want %v", c.which, got, c.want)
		}
	}
}

// Many ghosts are read by several at once: each must land in its place.
func TestManyOpenGhosts(t *testing.T) {
	s, _ := fresh(t)
	var ghosts []*runner.Ghost
	for n := range 2503 {
		ghosts = append(ghosts, ghost(0, n))
	}
	try(t, s.Intend(ghosts))
	got, err := s.OpenGhosts("")
	if diff := cmp.Diff(ghosts, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := s.writer.Exec("UPDATE ghosts SET ghost = '{' WHERE id = 1700"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.OpenGhosts(""); err == nil || got != nil {
		t.Errorf("%d ghosts from a damaged row, %v", len(got), err)
	}
}

func TestIntendIsAllOrNothing(t *testing.T) {
	s, _ := fresh(t)
	bad := ghost(0, 2)
	bad.Epoch = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC) // has no JSON
	if err := s.Intend([]*runner.Ghost{ghost(0, 1), bad}); err == nil {
		t.Error("kept what cannot be written")
	}
	if open, err := s.OpenGhosts(""); len(open) != 0 || err != nil {
		t.Errorf("%d ghosts, %v", len(open), err)
	}
}

func TestEntries(t *testing.T) {
	s, _ := fresh(t)
	try(t, s.SaveResult(result(1)))
	try(t, s.SaveResult(result(0)))
	killed, g := ghost(2, 0), ghost(0, 1)
	try(t, s.Intend([]*runner.Ghost{killed, ghost(0, 7), g}))
	try(t, s.Note(g, exchange(g, 0)))
	try(t, s.Note(g, exchange(g, 1)))
	var got []string
	for _, e := range all(t, s.Entries(Runs{})) {
		var ids struct{ Run, Key string }
		if e.Run != nil {
			try(t, json.Unmarshal(e.Run, &ids))
			got = append(got, "run "+ids.Run[23:])
			continue
		}
		var probes []runner.Exchange
		if e.Probes != nil {
			try(t, json.Unmarshal(e.Probes, &probes))
		}
		try(t, json.Unmarshal(e.Ghost, &ids))
		got = append(got, fmt.Sprintf("ghost %s %d", ids.Key[31:], len(probes)))
	}
	if want := []string{"run 000", "ghost 000-w7 0", "ghost 000-w1 2", "run 001", "ghost 002-w0 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for which, want := range map[string]Runs{"a": {Since: result(1).Started}, "b": {ID: killed.Run}, "c": {Scenario: "fail-if-exists", ID: killed.Run}} {
		if n, wanted := len(all(t, s.Entries(want))), map[string]int{"a": 2, "b": 1, "c": 0}[which]; n != wanted {
			t.Errorf("%+v gives %d entries, want %d", want, n, wanted)
		}
	}
}

// A trend takes a run with its keys, whatever its result was when it was killed,
// and takes no key for one of a run that was killed because the run was not
// asked for.
func TestTrendRuns(t *testing.T) {
	s, _ := fresh(t)
	watch, race := result(0), result(1)
	watch.Scenario = "ttl-ghost"
	try(t, s.SaveResult(race))
	try(t, s.SaveResult(watch))
	once := ghost(0, 7)
	once.Arm = scenarios.OnceArm
	killed := ghost(2, 0)
	killed.Target = "redis://b:6379"
	try(t, s.Intend([]*runner.Ghost{ghost(0, 1), once, ghost(0, 0), killed}))
	for _, c := range []struct {
		which Runs
		want  string
	}{
		{Runs{}, "0: 1 0; 1:; 2 killed: 0"},
		{Runs{Scenario: "ttl-ghost"}, "0: 1 0; 2 killed: 0"},
		{Runs{Scenario: "fail-if-exists"}, "1:"},
		{Runs{Labels: map[string]string{"n": "1"}}, "1:"},
		{Runs{Target: "b:6379"}, "2 killed: 0"},
		{Runs{Target: "a:6379"}, "0: 1 0; 1:"},
		{Runs{Since: race.Started}, "1:; 2 killed: 0"},
		{Runs{Until: killed.Epoch}, "0: 1 0; 1:"},
		{Runs{ID: strings.ToLower(killed.Run)}, "2 killed: 0"},
	} {
		runs, err := s.TrendRuns(c.which)
		try(t, err)
		var got []string
		for _, r := range runs {
			text := r.Run[len(r.Run)-1:]
			if r.Killed {
				text += " killed"
			}
			text += ":"
			for _, g := range r.Ghosts {
				text += fmt.Sprint(" ", g.Number)
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%+v gives %q, want %q", c.which, got, c.want)
		}
	}
	runs, err := s.TrendRuns(Runs{})
	try(t, err)
	if r := runs[1]; r.Scenario != race.Scenario || r.Target.Server != "Redis 8" || r.Verdict.Status != scenarios.Held || !r.Started.Equal(race.Started) {
		t.Errorf("%+v", r)
	}
	if r := runs[2]; r.Scenario != "ttl-ghost" || r.Target.URL != killed.Target || !r.Started.Equal(killed.Epoch) {
		t.Errorf("%+v", r)
	}
}

func TestPrune(t *testing.T) {
	s, file := fresh(t)
	for n := range 5 {
		try(t, s.SaveResult(result(n)))
	}
	var closed []*runner.Ghost
	for n := range 400 {
		g := ghost(0, n)
		g.Closed = true
		closed = append(closed, g)
	}
	watched, forgotten, killed := ghost(2, 0), ghost(1, 0), ghost(5, 0)
	killed.Epoch = result(0).Started
	try(t, s.Intend(closed))
	try(t, s.Intend([]*runner.Ghost{watched, forgotten, killed}))
	for _, g := range append(closed, watched, forgotten) {
		try(t, s.Note(g, exchange(g, 0)))
	}
	// The watch of run 1 ends on day 3, that of run 2 on day 4.
	before := result(3).Started.Add(time.Minute)
	want := Pruned{Runs: 3, Ghosts: 402, Probes: 401, Kept: 1}
	if p, err := s.Prune(before, true); p != want || err != nil {
		t.Errorf("a dry one gives %+v, %v, want %+v", p, err, want)
	}
	if n := len(all(t, s.Runs(Runs{}))); n != 5 {
		t.Fatalf("a dry one leaves %d runs", n)
	}
	p, err := s.Prune(before, false)
	if want.Bytes = p.Bytes; p != want || err != nil || p.Bytes < 100_000 {
		t.Errorf("gives %+v, %v, want %+v", p, err, want)
	}
	var left []string
	for _, r := range all(t, s.Runs(Runs{})) {
		left = append(left, r.ID[25:])
	}
	if open, err := s.OpenGhosts(""); !slices.Equal(left, []string{"2", "4"}) || len(open) != 1 || open[0].Key != watched.Key || err != nil {
		t.Errorf("left are runs %v and %d ghosts, %v", left, len(open), err)
	}
	if n := len(all(t, s.Probes(watched))); n != 1 {
		t.Errorf("%d probes of the ghost that is left", n)
	}
	var probes int
	if err := s.reader.QueryRow("SELECT count(*) FROM probes").Scan(&probes); probes != 1 || err != nil {
		t.Errorf("%d probes in all, %v", probes, err)
	}
	try(t, s.Close())
	if info, err := os.Stat(file); err != nil || info.Size() > 100_000 {
		t.Errorf("the file has %d bytes, %v", info.Size(), err)
	}
	s, err = Open(file)
	try(t, err)
	defer s.Close()
	// Once it is closed it goes.
	watched.Closed = true
	try(t, s.UpdateGhosts([]*runner.Ghost{watched}))
	if p, err := s.Prune(before, false); p.Runs != 1 || p.Kept != 0 || err != nil {
		t.Errorf("gives %+v, %v", p, err)
	}
}

// writeSome is one of eight who write at once.
func writeSome(file string) error {
	s, err := Open(file)
	if err != nil {
		return err
	}
	defer s.Close()
	who := os.Getpid()
	for n := range 5 {
		r := result(n)
		r.Run = fmt.Sprintf("%d-%d", who, n)
		if err := s.SaveResult(r); err != nil {
			return err
		}
		g := ghost(n, who)
		if err := s.Intend([]*runner.Ghost{g, ghost(n, who+1<<30)}); err != nil {
			return err
		}
		for k := range 10 {
			if err := s.Note(g, exchange(g, k)); err != nil {
				return err
			}
		}
		if _, err := s.OpenGhosts(""); err != nil {
			return err
		}
	}
	return nil
}

// The store does not even have to be there before.
func TestEightProcessesAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.db")
	const processes = 8
	failed := make(chan error, processes)
	for range processes {
		go func() {
			output, err := process("write", file).Output()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, output)
			}
			failed <- err
		}()
	}
	for range processes {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	s, err := OpenToRead(file)
	try(t, err)
	defer s.Close()
	probes := 0
	ghosts := all(t, s.Ghosts(Ghosts{}))
	for _, g := range ghosts {
		probes += len(all(t, s.Probes(g)))
	}
	if runs := len(all(t, s.Runs(Runs{}))); runs != processes*5 || len(ghosts) != processes*10 || probes != processes*50 {
		t.Errorf("%d runs, %d ghosts, %d probes", runs, len(ghosts), probes)
	}
	whole(t, s)
}

func whole(t *testing.T, s *Store) {
	t.Helper()
	var verdict string
	if err := s.reader.QueryRow("PRAGMA integrity_check").Scan(&verdict); verdict != "ok" || err != nil {
		t.Errorf("integrity: %s, %v", verdict, err)
	}
}

// goOn writes until it is killed, and tells of each step when it is done.
func goOn(file string) error {
	s, err := Open(file)
	if err != nil {
		return err
	}
	run := os.Getpid()
	for n := 0; ; n++ {
		g := ghost(run, n)
		if err := s.Intend([]*runner.Ghost{g}); err != nil {
			return err
		}
		fmt.Printf("%s %s intended\n", g.Run, g.Key)
		for k := range 4 {
			if err := s.Note(g, exchange(g, k)); err != nil {
				return err
			}
			fmt.Printf("%s %s %s\n", g.Run, g.Key, exchange(g, k).Op.Value.Token)
		}
	}
}

// What a killed process has told to be kept is there.
func TestKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.db")
	random := rand.New(rand.NewPCG(1, 2))
	told := map[string][]string{} // steps by run and key
	steps := 0
	for range 10 {
		p := process("go on", file)
		out, err := p.StdoutPipe()
		try(t, err)
		try(t, p.Start())
		// The first kills come while the store is made.
		time.AfterFunc(time.Duration(random.IntN(120))*time.Millisecond, func() { _ = p.Process.Kill() })
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if f := strings.Fields(lines.Text()); len(f) == 3 {
				told[f[0]+" "+f[1]] = append(told[f[0]+" "+f[1]], f[2])
				steps++
			} else {
				t.Errorf("the process says %q", lines.Text())
			}
		}
		_ = p.Wait()
	}
	t.Logf("%d steps were told", steps)
	if steps == 0 {
		t.Fatal("the processes did nothing")
	}
	s, err := Open(file)
	try(t, err)
	defer s.Close()
	whole(t, s)
	found := map[string][]string{}
	open, err := s.OpenGhosts("")
	try(t, err)
	for _, g := range open {
		kept := []string{"intended"}
		for _, e := range all(t, s.Probes(g)) {
			kept = append(kept, e.Op.Value.Token)
		}
		found[g.Run+" "+g.Key] = kept
	}
	for key, steps := range told {
		if kept := found[key]; len(kept) < len(steps) || !slices.Equal(kept[:len(steps)], steps) {
			t.Errorf("%s: told %q, kept %q", key, steps, kept)
		}
	}
}

// holdGuard has the nightly lock until its input ends.
func holdGuard(file string) error {
	s, err := Open(file)
	if err != nil {
		return err
	}
	if _, err = s.Guard("nightly"); err != nil {
		return err
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

func TestGuard(t *testing.T) {
	s, file := fresh(t)
	p := process("guard", file)
	_, err := p.StdinPipe()
	try(t, err)
	out, err := p.StdoutPipe()
	try(t, err)
	try(t, p.Start())
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the process says %q", line)
	}
	// By another name of the same file too.
	link := filepath.Join(t.TempDir(), "link.db")
	try(t, os.Symlink(file, link))
	linked, err := Open(link)
	try(t, err)
	defer linked.Close()
	for _, s := range []*Store{s, linked} {
		if _, err := s.Guard("nightly"); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "contend nightly is running") {
			t.Errorf("while another process has it: %v", err)
		}
	}
	other, err := s.Guard("watch")
	try(t, err)
	try(t, s.SaveResult(result(0))) // who only writes is not in the way
	try(t, p.Process.Kill())
	_ = p.Wait()
	lock, err := linked.Guard("nightly")
	try(t, err)
	if _, err := s.Guard("nightly"); !errors.Is(err, ErrHeld) {
		t.Errorf("twice in one process: %v", err)
	}
	try(t, lock.Close())
	lock, err = s.Guard("nightly")
	try(t, err)
	try(t, lock.Close())
	try(t, other.Close())
}

func TestDefaultFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the folders of other systems are not the test's to make")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	for state, want := range map[string]string{
		"": home + "/.local/state/contend/results.db", "relative": home + "/.local/state/contend/results.db", home + "/s": home + "/s/contend/results.db",
	} {
		t.Setenv("XDG_STATE_HOME", state)
		got, err := DefaultFile()
		if got != want || err != nil {
			t.Errorf("XDG_STATE_HOME=%s gives %s, %v, want %s", state, got, err, want)
		}
		if _, err := OpenToRead(got); !errors.Is(err, ErrMissing) && state != "relative" && state != "" {
			t.Errorf("%v", err)
		}
		s, err := Open(got)
		try(t, err)
		try(t, s.SaveResult(result(0)))
		for name, want := range map[string]os.FileMode{filepath.Dir(got): 0o700, got: 0o600, got + "-wal": 0o600} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
			}
		}
		try(t, s.Close())
	}
}

// A name is a name, whatever a URL would make of it.
func TestOddNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{":memory:", "a b?mode=memory#c%20d", "file:x", "ü'\"", "-"} {
		s, err := Open(name)
		try(t, err)
		try(t, s.SaveResult(result(0)))
		try(t, s.Close())
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
		s, err = OpenToRead(name)
		try(t, err)
		if n := len(all(t, s.Runs(Runs{}))); n != 1 {
			t.Errorf("%q: %d runs", name, n)
		}
		try(t, s.Close())
	}
	if entries, _ := os.ReadDir("."); len(entries) != 5 {
		t.Errorf("%v", entries)
	}
}

// Every trouble is told, and what is in the file stays as it is.
func TestTroubles(t *testing.T) {
	folder := t.TempDir()
	sqlite := func(name string, statements ...string) string {
		name = filepath.Join(folder, name)
		db, err := connect(name, settings{}, "mode=rwc")
		try(t, err)
		defer db.Close()
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		return name
	}
	made := func(name string, change func([]byte) []byte) string {
		name = filepath.Join(folder, name)
		s, err := Open(name)
		try(t, err)
		for n := range 20 {
			try(t, s.SaveResult(result(n)))
		}
		try(t, s.Close())
		content, err := os.ReadFile(name)
		try(t, err)
		try(t, os.WriteFile(name, change(content), 0o600))
		return name
	}
	text := filepath.Join(folder, "text")
	try(t, os.WriteFile(text, []byte(strings.Repeat("not a database\n", 1000)), 0o600))
	note := filepath.Join(folder, "note")
	try(t, os.WriteFile(note, []byte("less than a page"), 0o600))
	for _, c := range []struct {
		file string
		is   error
		says string
	}{
		{filepath.Join(folder, "none", "results.db"), ErrMissing, `its folder "` + folder + `/none" is not there: make it`},
		{folder, ErrForeign, "it is no regular file"},
		{text, ErrForeign, "it is no file of SQLite"},
		{note, ErrForeign, "it is no file of SQLite"},
		{sqlite("other", "CREATE TABLE t (a)"), ErrForeign, "another program made"},
		{sqlite("wal", "PRAGMA journal_mode=WAL", "CREATE TABLE t (a)", "PRAGMA user_version=1"), ErrForeign, "another program made"},
		{sqlite("ids", "PRAGMA application_id=7"), ErrForeign, "another program made"},
		{sqlite("newer", fmt.Sprintf("PRAGMA application_id=%d", applicationID), "PRAGMA user_version=99", "CREATE TABLE runs (a)"),
			ErrNewer, "its format is version 99 and this contend knows up to 1: upgrade contend"},
		{made("short", func(b []byte) []byte { return b[:3*4096] }), ErrDamaged, "put a copy in its place"},
		{made("cut", func(b []byte) []byte { return b[:50] }), ErrDamaged, "put a copy in its place"},
		{made("schema", func(b []byte) []byte { return slices.Concat(b[:100], bytes.Repeat([]byte("x"), 3996), b[4096:]) }), ErrDamaged, "move it away"},
	} {
		before, _ := os.ReadFile(c.file)
		for name, open := range map[string]func(string) (*Store, error){"Open": Open, "OpenToRead": OpenToRead} {
			s, err := open(c.file)
			if err == nil {
				// What is damaged may show only when it is read.
				for _, err = range s.Runs(Runs{}) {
				}
				s.Close()
			}
			says := c.says
			if name == "OpenToRead" && errors.Is(c.is, ErrMissing) {
				says = "a run with --store makes it"
			}
			if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), says) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("store %q ", c.file)) {
				t.Errorf("%s of %s: %v", name, c.file, err)
			}
		}
		if after, _ := os.ReadFile(c.file); !bytes.Equal(before, after) {
			t.Errorf("%s was changed", c.file)
		}
	}
	entries, err := os.ReadDir(folder)
	try(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), "-wal") || strings.Contains(e.Name(), "-shm") || strings.Contains(e.Name(), "-journal") {
			t.Errorf("%s was left", e.Name())
		}
	}
	if _, err := Open(""); err == nil {
		t.Error("opened without a name")
	}
}

// Rows that are damaged where the header is not.
func TestDamageFurtherIn(t *testing.T) {
	s, file := fresh(t)
	for n := range 200 {
		try(t, s.SaveResult(result(n)))
	}
	try(t, s.Close())
	content, err := os.ReadFile(file)
	try(t, err)
	for at := 20 * 4096; at < len(content); at++ {
		content[at] = 0xaa
	}
	try(t, os.WriteFile(file, content, 0o600))
	s, err = Open(file)
	try(t, err)
	defer s.Close()
	for _, err = range s.Runs(Runs{}) {
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("reading: %v", err)
	}
	for n := range 200 {
		if err = s.SaveResult(result(n)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("writing: %v", err)
	}
}

// An empty file is ours to make: a first start may have been killed there.
func TestEmptyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.db")
	try(t, os.WriteFile(file, nil, 0o600))
	s, err := Open(file)
	try(t, err)
	try(t, s.SaveResult(result(0)))
	try(t, s.Close())
}

// holdFile keeps a transaction of its own open until its input ends.
func holdFile(file string) error {
	s, err := Open(file)
	if err != nil {
		return err
	}
	return s.write(func(*sql.Tx) error {
		fmt.Println("held")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return nil
	})
}

func TestLocked(t *testing.T) {
	s, file := fresh(t)
	try(t, s.SaveResult(result(0)))
	p := process("hold", file)
	in, err := p.StdinPipe()
	try(t, err)
	out, err := p.StdoutPipe()
	try(t, err)
	try(t, p.Start())
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the process says %q", line)
	}
	with, err := usual()
	try(t, err)
	with.wait = 10 * time.Millisecond
	short, err := open(file, with)
	try(t, err)
	defer short.Close()
	if err := short.SaveResult(result(1)); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "another process holds it: try again") {
		t.Errorf("%v", err)
	}
	// Who reads is not in the way, nor has to wait.
	if n := len(all(t, short.Runs(Runs{}))); n != 1 {
		t.Errorf("%d runs", n)
	}
	try(t, in.Close())
	try(t, p.Wait())
	try(t, short.SaveResult(result(1)))
}

// A full disk loses what did not fit, and nothing else.
func TestFull(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results.db")
	with, err := usual()
	try(t, err)
	with.maxPages = 40
	s, err := open(file, with)
	try(t, err)
	defer s.Close()
	kept := 0
	for ; err == nil && kept < 1000; kept++ {
		err = s.SaveResult(result(kept))
	}
	if !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "make room on its disk") {
		t.Errorf("%v", err)
	}
	kept--
	if n := len(all(t, s.Runs(Runs{}))); n != kept {
		t.Errorf("%d runs, want %d", n, kept)
	}
	if p, err := s.Prune(result(kept/2).Started, false); p.Runs != kept/2 || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	try(t, s.SaveResult(result(kept)))
	whole(t, s)
}

// A file of an older version is brought to the newest, once, or not at all.
func TestMigration(t *testing.T) {
	s, file := fresh(t)
	try(t, s.SaveResult(result(0)))
	try(t, s.Close())
	with, err := usual()
	try(t, err)
	next := with
	next.migrations = append(slices.Clone(with.migrations), "ALTER TABLE runs ADD COLUMN extra INTEGER; CREATE TABLE extras (a)", "UPDATE runs SET extra = 7")
	broken := next
	broken.migrations = append(slices.Clone(next.migrations), "UPDATE runs SET nothing = 7")
	if _, err := open(file, broken); err == nil || !strings.Contains(err.Error(), "step 4 of the format") {
		t.Errorf("a step that fails: %v", err)
	}
	s, err = open(file, with)
	if err != nil {
		t.Fatalf("after a step that failed: %v", err)
	}
	try(t, s.Close())
	for _, open := range []func(string, settings) (*Store, error){openToRead, open} {
		s, err := open(file, next)
		try(t, err)
		var extra int
		if err := s.reader.QueryRow("SELECT extra FROM runs").Scan(&extra); extra != 7 || err != nil {
			t.Errorf("%d, %v", extra, err)
		}
		try(t, s.Close())
	}
	if _, err := Open(file); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
}

// What is written in the same moment is not in the way of who reads, and what
// is read is not in the way of who writes.
func TestReadWhileWriting(t *testing.T) {
	s, file := fresh(t)
	for n := range 50 {
		try(t, s.SaveResult(result(n)))
	}
	other, err := OpenToRead(file)
	try(t, err)
	defer other.Close()
	n := 0
	for _, err := range other.Results(Runs{}) {
		try(t, err)
		try(t, s.SaveResult(result(100+n)))
		n++
	}
	if n != 50 {
		t.Errorf("%d runs", n)
	}
	if n := len(all(t, other.Runs(Runs{}))); n != 100 {
		t.Errorf("%d runs afterwards", n)
	}
}
