package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"contend/report"
	"contend/scenarios/probe"
	"contend/targets/targettest/servers"
)

// probeReal probes a real server: every question is answered, as it is known; nothing
// is left behind; and asked once more nothing has changed.
func probeReal(t *testing.T, url string, more ...string) report.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "first.json")
	code, r := resultOf(t, append([]string{"probe", "-t", url}, more...)...)
	p := r.Detail.Probe
	if code != 0 || p.Unanswered != 0 || p.NotAsKnown != 0 || p.Answered+p.NotAsked != len(p.Answers) || r.Target.Simulated || r.Target.Server == "" {
		t.Errorf("exit %d: %s", code, r.VerdictLine())
	}
	for _, a := range p.Answers {
		if a.AsKnown != nil && !*a.AsKnown || a.State == probe.Unanswered || a.Outcome == "unmapped" || a.Listed != nil {
			t.Errorf("%s: %s %s %s %q, known is %+v; %s", a.ID, a.Outcome, a.Code, a.Message, a.Answer, a.Known, a.Why)
		}
	}
	if n := keys(t, url); n != 0 {
		t.Errorf("%d keys were left behind", n)
	}
	contend(t, append([]string{"probe", "-t", url, "-q", "-o", "json=" + file}, more...)...)
	if code, again := resultOf(t, append([]string{"probe", "-t", url, "--since", file}, more...)...); code != 0 || again.Detail.Probe.Since.Compared != p.Answered {
		t.Errorf("once more: exit %d: %s", code, again.VerdictLine())
	}
	return r
}

func TestProbeRealRedis(t *testing.T) {
	t.Parallel()
	r := probeReal(t, servers.Redis(t))
	if p := r.Detail.Probe; p.Answered < 30 || p.NotAsked != 0 {
		t.Error(r.VerdictLine())
	}
	if a := answers(r)["types/list-read"]; string(a.Raw) != `"WRONGTYPE Operation against a key holding the wrong kind of value"` {
		t.Errorf("the error object: %s", a.Raw)
	}
	// The other ways of its conditions are asked by the target's URL.
	_, r = resultOf(t, "probe", "-t", servers.Redis(t)+"?create=watch&cas=watch", "--only", "strategy")
	if all := answers(r); all["strategy/create-present"].Code != "exists" || all["strategy/version-stale"].Code != "stale" {
		t.Errorf("%+v", all)
	}
}

func TestProbeRealPostgres(t *testing.T) {
	t.Parallel()
	url := servers.Postgres(t)
	r := probeReal(t, url)
	all := answers(r)
	if a := all["strategy/ttl"]; r.Detail.Probe.NotAsked != 1 || a.State != probe.NotAsked || a.Why == "" {
		t.Errorf("%s; %+v", r.VerdictLine(), a)
	}
	var failure struct{ Severity, Code, Constraint string }
	if err := json.Unmarshal(all["conditions/insert-present"].Raw, &failure); err != nil || failure.Code != "23505" || failure.Constraint != "contend_records_pkey" {
		t.Errorf("the error object: %s, %v", all["conditions/insert-present"].Raw, err)
	}
	query := "?"
	if strings.Contains(url, "?") {
		query = "&"
	}
	r = probeReal(t, url+query+"ttl=expires-column", "--only", "strategy")
	if a := answers(r)["strategy/ttl"]; a.Answer != "it is told" || a.Figure != "1.5s" {
		t.Errorf("%+v", a)
	}
}
