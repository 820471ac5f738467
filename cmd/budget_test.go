package cmd_test

import (
	"strings"
	"testing"
)

// The plan keeps to 90 % of a documented quota, and says what the windows of that give.
func TestPlanKeepsToTheQuota(t *testing.T) {
	const target = "forge+rest+http://127.0.0.1:1"
	for name, c := range map[string]struct {
		flags []string
		want  []string
	}{
		"by default": {[]string{"-t", target, "-n", "50", "-r", "75"}, []string{"duration     at least 1m1s, at 900 requests in 1s and 3600 requests in 1m0s"}},
		"a rate below": {[]string{"-t", target, "-n", "5", "-r", "20", "--rate", "50"},
			[]string{"at 3600 requests in 1m0s and 50 requests in 1s"}},
		"a rate above": {[]string{"-t", target, "-n", "5", "-r", "20", "--rate", "1001"},
			[]string{"and 1001 requests in 1s", "warning      --rate 1001 is above the documented quota of 1000 requests a second"}},
		"large values": {[]string{"-t", target, "-n", "5", "-r", "20", "--value-size", "15000"}, []string{"and 1800 requests in 1m0s"}},
		"sim":          {[]string{"-n", "5", "-r", "20"}, []string{"no limit is set"}},
	} {
		code, out, stderr := contend(t, append([]string{"fail-if-exists", "--dry-run"}, c.flags...)...)
		if code != 0 {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, out)
			}
		}
		if strings.Contains(out, "warning") != (name == "a rate above") {
			t.Errorf("%s: warned wrongly:\n%s", name, out)
		}
	}
}

// A round that cannot fit into the quota is refused before anything is sent.
func TestARoundThatCannotFitTheQuota(t *testing.T) {
	for _, flags := range [][]string{{"-n", "901"}, {"-n", "12", "--rate", "11"}} {
		code, _, stderr := contend(t, append([]string{"fail-if-exists", "-t", "forge+rest+http://127.0.0.1:1", "--dry-run"}, flags...)...)
		if code != 2 || !strings.Contains(stderr, "is above the rate of") {
			t.Errorf("%q: exit %d: %s", flags, code, stderr)
		}
	}
}

// A start against a spent quota says so.
func TestStartAgainstASpentQuota(t *testing.T) {
	url, _ := serve(t, "--quota")
	ask(t, url+"/kvs/api/v1/set", `{"key":"k","value":"`+strings.Repeat("x", 240<<10-2)+`"}`) // 25 units to read
	large := `[` + strings.TrimSuffix(strings.Repeat(`{"key":"k"},`, 25), ",") + `]`
	for spent := false; !spent; {
		status, _ := ask(t, url+"/kvs/api/v1/batch/get", large)
		spent = status == 429
	}
	for spent := false; !spent; {
		status, _ := ask(t, url+"/kvs/api/v1/get", `{"key":"absent"}`)
		spent = status == 429
	}
	target := strings.Replace(url, "http://", "forge+rest+http://", 1)
	for _, command := range []string{"fail-if-exists", "probe"} {
		code, _, stderr := contend(t, command, "-t", target)
		if code != 4 || !strings.Contains(stderr, "the quota of the installation is spent (status 429 RATE_LIMIT_EXCEEDED") || !strings.Contains(stderr, "wait until it is there again") {
			t.Errorf("%s: exit %d: %s", command, code, stderr)
		}
	}
}
