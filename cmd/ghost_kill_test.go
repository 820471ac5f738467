package cmd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
)

// chain is a watch that dies, is taken up again, and dies again.
type chain struct {
	*testing.T
	site   *forgeSite
	file   string
	deaths map[string]int // of the processes that watched a run
	all    int
	where  map[string]int // they died → how often
	begun  int            // processes
	checks map[string]int // a key of the checks → the process that wrote it
}

func newChain(t *testing.T, s *forgeSite) *chain {
	return &chain{T: t, site: s, file: filepath.Join(t.TempDir(), "ghosts.db"),
		deaths: make(map[string]int), where: make(map[string]int), checks: make(map[string]int)}
}

const (
	chainKeys  = 5                                   // in each of the three large arms
	chainAll   = 3*chainKeys + min(chainKeys, 6) + 4 // with the early arm and the twin
	chainSweep = 2 * time.Second
	// rounding of the emulator's clock, which counts in whole milliseconds.
	rounding = 2 * time.Millisecond
)

// process gives one that begins a watch, or goes on with the one that is on disk.
func (c *chain) process() *process {
	c.Helper()
	if c.ended() {
		return command(c.T, "ttl-ghost", "-t", c.site.url, "--store", c.file, "--keys", fmt.Sprint(chainKeys), "--watch", "2500ms",
			"--timeout", "2s", "--no-progress")
	}
	return command(c.T, "ttl-ghost", "--resume", "--store", c.file, "--no-progress")
}

// ended tells whether every watch on disk has come to its end.
func (c *chain) ended() bool {
	c.Helper()
	ghosts, _ := kept(c.T, c.file)
	return openOf(ghosts) == 0 && (len(ghosts) == 0 || !stored(c.T, c.file, newest(ghosts)).Interrupted)
}

// newest is the run that began last.
func newest(ghosts []*runner.Ghost) (run string) {
	for _, g := range ghosts {
		run = max(run, g.Run)
	}
	return run
}

// kill lets a process live until the site has seen so many requests of it, and a
// little longer. It tells whether the process was still there.
func (c *chain) kill(p *process, requests int, longer time.Duration) bool {
	c.Helper()
	reached := make(chan request, 1)
	c.begun++
	begun, seen := c.begun, 0
	c.site.tell(func(r request) {
		// Two processes that write to the same keys see each other's records.
		if by, found := c.checks[r.key]; found && by != begun {
			c.Errorf("%s is of the processes %d and %d", r.key, by, begun)
		}
		if r.ofRun && !r.ofGhost() {
			c.checks[r.key] = begun
		}
		if seen++; seen == requests {
			reached <- r
		}
	})
	ended := p.begin(c.T)
	late := time.NewTimer(longer)
	if requests > 0 {
		late.Stop()
	}
	var at request
	select {
	case at = <-reached:
		time.Sleep(longer)
	case <-late.C:
	case <-ended:
	}
	_ = p.Process.Kill()
	<-ended
	c.site.tell(nil)
	if p.ProcessState.ExitCode() >= 0 {
		return false
	}
	c.all++
	switch {
	case at.n == 0:
		c.where["by the clock"]++
	case !at.ofGhost():
		c.where["during the checks"]++
	case at.path == "delete":
		c.where["while the keys were removed"]++
	case c.site.asked(at.key) == 1:
		c.where["while the keys were created"]++
	default:
		c.where["while the keys were asked about"]++
	}
	if ghosts, _ := kept(c.T, c.file); len(ghosts) > 0 {
		c.deaths[newest(ghosts)]++
	}
	return true
}

// finish goes on with what is on disk until it has ended, and checks all that is
// left.
func (c *chain) finish() {
	c.Helper()
	for attempts := 0; attempts < 3 && !c.ended(); attempts++ {
		p := c.process()
		<-p.begin(c.T)
		c.wantEnd(p)
		c.audit()
	}
	ghosts, probes := kept(c.T, c.file)
	for _, complaint := range unaccounted(ghosts, probes, c.deaths) {
		c.Error(complaint)
	}
	runs := make(map[string]int)
	for _, g := range ghosts {
		runs[g.Run]++
	}
	for run, n := range runs {
		c.checkResult(run, n)
	}
	for _, key := range c.site.keys(c.T) {
		if (request{key: key}).ofGhost() {
			c.Errorf("%s was left in the store", key)
		}
	}
}

// wantEnd wants a process to have ended well.
func (c *chain) wantEnd(p *process) {
	c.Helper()
	if code := p.ProcessState.ExitCode(); code != 0 && code != 1 && code != 3 {
		c.Fatalf("%v: exit %d: %s", p.Args, code, p.stderr.String())
	}
}

// checkResult wants the result of a run that has ended, with the truth inside of
// its intervals.
func (c *chain) checkResult(run string, keys int) {
	c.Helper()
	r := stored(c.T, c.file, run)
	if r.Interrupted || r.Detail.Ghosts == nil {
		c.Errorf("run %s has ended and is kept as %s", run, r.VerdictLine())
		return
	}
	if want := chainAll; keys != want || len(r.Detail.Ghosts.Keys) != want {
		c.Errorf("run %s has %d keys and tells of %d, want %d", run, keys, len(r.Detail.Ghosts.Keys), want)
	}
	for _, control := range r.Controls {
		// The keys of live and twin may have been missed by every process.
		if !control.AsExpected && control.Name != "live" && control.Name != "twin" {
			c.Errorf("control %s: %s", control.Name, control.Detail)
		}
	}
	for _, complaint := range outside(r.Detail.Ghosts.Keys, chainSweep) {
		c.Error(complaint)
	}
}

// audit holds what is on disk against what the site has seen.
func (c *chain) audit() {
	c.Helper()
	ghosts, probes := kept(c.T, c.file)
	for _, complaint := range lost(ghosts, probes, c.site.askedAll(), c.deaths) {
		c.Error(complaint)
	}
}

// lost gives what was not written down: a key is on disk before it is created,
// and each process that died leaves at most one request a key unwritten.
func lost(ghosts []*runner.Ghost, probes map[string][]*runner.Exchange, asked, deaths map[string]int) (complaints []string) {
	complain := func(format string, a ...any) { complaints = append(complaints, fmt.Sprintf(format, a...)) }
	known := make(map[string]bool)
	for _, g := range ghosts {
		known[g.Key] = true
		if sent, noted := asked[g.Key], len(probes[g.Key]); sent < noted || sent > noted+deaths[g.Run] {
			complain("%s was asked about %d times, %d are on disk, after %d deaths", g.Key, sent, noted, deaths[g.Run])
		}
		created := slices.ContainsFunc(probes[g.Key], func(e *runner.Exchange) bool {
			return e.Op.Value.Token == runner.Token(g.Key, 0, 1) && e.Reply.Outcome == targets.OK
		})
		if created != (g.Created != nil) || created && g.State == runner.GhostAbandoned {
			complain("%s: that it was created is on disk: %v; it is %s", g.Key, created, story(g, probes[g.Key]))
		}
	}
	for key := range asked {
		if (request{key: key}).ofGhost() && !known[key] {
			complain("%s was sent and is not on disk", key)
		}
	}
	return complaints
}

// unaccounted gives the keys of which it is not said what became of them.
func unaccounted(ghosts []*runner.Ghost, probes map[string][]*runner.Exchange, deaths map[string]int) (complaints []string) {
	for _, g := range ghosts {
		// Refused by what may have been an earlier write of our own, and gone before a
		// read could tell.
		untold := g.Closed && g.Doubt && g.FirstGone != nil && g.FirstFree == nil
		switch {
		case !g.Closed, g.State == runner.GhostPending && !untold,
			g.State == runner.GhostAbandoned && (deaths[g.Run] == 0 || len(probes[g.Key]) > 0):
			complaints = append(complaints, fmt.Sprintf("%s after %d deaths: %s", g.Key, deaths[g.Run], story(g, probes[g.Key])))
		}
	}
	return complaints
}

// outside gives the keys whose interval does not contain the truth: they were
// swept so long after their expiry.
func outside(keys []scenarios.GhostKey, sweep time.Duration) (complaints []string) {
	for i := range keys {
		k := &keys[i]
		last, first := k.LastBlocked, k.FirstFree
		if k.Arm == scenarios.ReadArm {
			last, first = k.LastShown, k.FirstGone
		}
		if k.Arm != scenarios.TwinArm && (last != nil && *last > sweep+rounding || first != nil && *first < sweep-rounding) {
			complaints = append(complaints, fmt.Sprintf("%s: from %v to %v, swept at %s", k.Key, last, first, sweep))
		}
	}
	return complaints
}

// story tells what is kept of a key.
func story(g *runner.Ghost, probes []*runner.Exchange) string {
	text, _ := json.Marshal(g)
	for _, e := range probes {
		text = fmt.Appendf(text, "\n  %s %s from %s to %s: %s %s %s", e.Op.Kind, e.Op.Value.Token, e.Call, e.Return,
			e.Reply.Outcome, e.Reply.Code, e.Reply.Record.Token)
	}
	return string(text)
}

// A watch dies at fifty moments, is taken up each time, and accounts for every key
// at its end.
func ghostsSurviveKills(t *testing.T) {
	const chains, deathsOfEach = 10, 5
	all := make(map[string]func(*testing.T))
	for i := range uint64(chains) {
		all[fmt.Sprint(i)] = func(t *testing.T) {
			random := rand.New(rand.NewPCG(i, 4))
			c := newChain(t, newForgeSite(t, chainSweep, "0ms..20ms"))
			for c.all < deathsOfEach {
				requests, longer := 1+random.IntN(150), time.Duration(random.IntN(20_000))*time.Microsecond
				if random.IntN(10) == 0 {
					requests, longer = 0, 5*longer
				}
				if p := c.process(); !c.kill(p, requests, longer) {
					c.wantEnd(p)
				}
				c.audit()
			}
			c.finish()
			t.Log(c.where)
		}
	}
	sideBySide(t, all)
}

// Where all is known and nothing has been removed there is no key left to ask
// about, and still something to do.
func ghostsKilledAtTheEnd(t *testing.T) {
	c := newChain(t, newForgeSite(t, chainSweep, "0ms"))
	p := c.process()
	ended := p.begin(t)
	c.site.tell(func(r request) {
		if r.ofGhost() && r.path == "delete" {
			_ = p.Process.Kill()
		}
	})
	<-ended
	c.site.tell(nil)
	ghosts, _ := kept(t, c.file)
	if p.ProcessState.ExitCode() >= 0 || openOf(ghosts) > 0 || c.ended() {
		t.Fatalf("exit %d, %d of %d keys are open: %s", p.ProcessState.ExitCode(), openOf(ghosts), len(ghosts), p.stderr.String())
	}
	c.deaths[newest(ghosts)]++
	c.finish()
	if r := stored(t, c.file, newest(ghosts)); r.Requests < int64(len(ghosts)) || r.Verdict.Status != scenarios.Violated {
		t.Errorf("%d requests: %s", r.Requests, r.VerdictLine())
	}
}

// A create that frees a key is applied, and its process dies before it knows: what
// is refused from then on is refused for our own record, and is no ghost.
func ghostKilledOverACreate(t *testing.T) {
	c := newChain(t, newForgeSite(t, chainSweep, "0ms"))
	p := c.process()
	ended := p.begin(t)
	struck := make(chan string, 1)
	c.site.mu.Lock()
	c.site.served = func(r request, status int) bool {
		if !strings.Contains(r.key, "-"+scenarios.WriteArm) || r.path != "set" || status >= 300 || c.site.asked(r.key) == 1 {
			return true
		}
		select {
		case struck <- r.key:
			_ = p.Process.Kill()
		default:
		}
		return false
	}
	c.site.mu.Unlock()
	<-ended
	c.site.mu.Lock()
	c.site.served = nil
	c.site.mu.Unlock()
	ghosts, _ := kept(t, c.file)
	if p.ProcessState.ExitCode() >= 0 || len(ghosts) == 0 {
		t.Fatalf("exit %d: %.500s%s", p.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String())
	}
	c.deaths[newest(ghosts)]++
	c.audit()
	c.finish()
	key := <-struck
	ghosts, probes := kept(t, c.file)
	for _, g := range ghosts {
		if g.Key == key && (g.State != runner.GhostFree || g.FirstFree == nil) {
			t.Errorf("%s", story(g, probes[key]))
		}
	}
}

// What the checks above are for is seen by them.
func TestChecksOfKillsSee(t *testing.T) {
	const key = "contend-01M8P4QDXB77DTFBJ75KQR8WX4-write0"
	told := &runner.Exchange{Op: targets.Op{Kind: targets.Write, Value: targets.Record{Token: runner.Token(key, 0, 1)}}, Reply: targets.Reply{Outcome: targets.OK}}
	age := func(d time.Duration) *time.Duration { return &d }
	for name, c := range map[string]struct {
		ghost   func(*runner.Ghost)
		probes  int // besides the create
		asked   int
		deaths  int
		nothing bool // is on disk
		want    string
	}{
		"all is well":               {asked: 1},
		"one in flight":             {asked: 2, deaths: 1},
		"a lost reply":              {asked: 2, want: "was asked about 2 times, 1 are on disk, after 0 deaths"},
		"two lost replies":          {asked: 3, deaths: 1, want: "was asked about 3 times, 1 are on disk, after 1 deaths"},
		"a reply from nowhere":      {asked: 1, probes: 1, want: "was asked about 1 times, 2 are on disk"},
		"an unknown key":            {asked: 1, nothing: true, want: "was sent and is not on disk"},
		"a forgotten create":        {asked: 1, ghost: func(g *runner.Ghost) { g.Created = nil }, want: "that it was created is on disk: true"},
		"an open key":               {asked: 1, ghost: func(g *runner.Ghost) { g.Closed = false }, want: "after 0 deaths"},
		"a key of unknown fate":     {asked: 1, ghost: func(g *runner.Ghost) { g.State = runner.GhostPending }, want: "after 0 deaths"},
		"abandoned though answered": {asked: 1, deaths: 1, ghost: func(g *runner.Ghost) { g.State = runner.GhostAbandoned }, want: "after 1 deaths"},
	} {
		g := &runner.Ghost{Run: "01M8P4QDXB77DTFBJ75KQR8WX4", Key: key, State: runner.GhostFree, Closed: true, Created: &runner.Observation{}}
		if c.ghost != nil {
			c.ghost(g)
		}
		ghosts, probes := []*runner.Ghost{g}, map[string][]*runner.Exchange{key: {told}}
		for range c.probes {
			probes[key] = append(probes[key], &runner.Exchange{})
		}
		if c.nothing {
			ghosts, probes = nil, nil
		}
		deaths := map[string]int{g.Run: c.deaths}
		complaints := slices.Concat(lost(ghosts, probes, map[string]int{key: c.asked}, deaths), unaccounted(ghosts, probes, deaths))
		if text := strings.Join(complaints, "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q", name, complaints)
		}
	}
	for _, c := range []struct {
		last, first *time.Duration
		wrong       bool
	}{{age(time.Second), age(3 * time.Second), false}, {age(3 * time.Second), nil, true}, {nil, age(time.Second), true}} {
		write := scenarios.GhostKey{Arm: scenarios.WriteArm, LastBlocked: c.last, FirstFree: c.first}
		read := scenarios.GhostKey{Arm: scenarios.ReadArm, LastShown: c.last, FirstGone: c.first}
		for _, k := range []scenarios.GhostKey{write, read} {
			if got := len(outside([]scenarios.GhostKey{k}, 2*time.Second)) > 0; got != c.wrong {
				t.Errorf("%s from %v to %v: outside %v", k.Arm, c.last, c.first, got)
			}
		}
	}
}

// stored is the result of a run.
func stored(t *testing.T, file, run string) report.Result {
	t.Helper()
	s, err := store.OpenToRead(file)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Result(run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
