package suite_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"contend/cmd/suite"
)

// shared are the flags that every scenario has, as the program would tell them.
func shared() []suite.Parameter {
	return []suite.Parameter{
		{Name: "target", Type: "string", Usage: "the `URL` to run against; `contend targets` lists the kinds", Default: "sim:"},
		{Name: "contenders", Type: "int", Usage: "how many are released at once", Default: "12"},
		{Name: "rounds", Type: "int", Usage: "independent rounds, each on a fresh key", Default: "20", Excludes: []string{"duration"}},
		{Name: "max-rounds", Type: "int", Usage: "rounds raced at most", Default: "0"},
		{Name: "duration", Type: "duration", Usage: "run rounds until the time is up, instead of --rounds", Default: "0s"},
		{Name: "timeout", Type: "duration", Usage: "of one request", Default: "10s"},
		{Name: "release", Type: "string", Usage: "how contenders are released", Default: "auto", Values: []string{"auto", "gate"}},
		{Name: "stagger", Type: "duration", Usage: "delay between one contender's release and the next", Default: "0s"},
		{Name: "rate", Type: "float64", Usage: "requests a second at most", Default: "0"},
		{Name: "unguarded", Type: "bool", Usage: "run only the negative control, the unguarded twin", Default: "false"},
		{Name: "skip-controls", Type: "bool", Usage: "skip the controls", Default: "false"},
		{Name: "max-uncertain", Type: "float64", Usage: "share of a round that may be uncertain", Default: "0.8"},
		{Name: "value-size", Type: "int", Usage: "bytes of body in each write", Default: "64"},
		{Name: "key-prefix", Type: "string", Usage: "what every key of the run begins with", Default: "contend-"},
		{Name: "dry-run", Type: "bool", Usage: "print the plan and send nothing", Default: "false"},
		{Name: "seed", Type: "string", Usage: "of the random source"},
		{Name: "record", Type: "string", Usage: "write every request and reply to this `FILE`"},
		{Name: "expect", Type: "stringArray", Usage: "threshold such as 'p90(won)<250ms'; repeatable", Default: "[]"},
		{Name: "expect-verdict", Type: "string", Usage: "held, or violated", Default: "held", Values: []string{"held", "violated"}},
		{Name: "label", Type: "stringArray", Usage: "`KEY=VALUE` that goes into every output", Default: "[]"},
		{Name: "no-progress", Type: "bool", Usage: "tell nothing on standard error while running", Default: "false"},
		{Name: "output", Type: "stringArray", Usage: "`FORMAT[=FILE]`", Default: "[]"},
		{Name: "quiet", Type: "bool", Usage: "the verdict line only", Default: "false"},
		{Name: "no-color", Type: "bool", Usage: "no colour", Default: "false"},
	}
}

func sample() []suite.Scenario {
	return []suite.Scenario{
		{Name: "fail-if-exists", Aliases: []string{"create-if-absent"}, Summary: "N contenders create one absent key", Parameters: shared(), Removed: map[string]string{"max-troubled": "is no more: use --max-uncertain"}},
		{Name: "version-cas", Summary: "N contenders write it on condition of version 0", Parameters: shared()},
		{Name: "check-then-set", Summary: "the unguarded claim", Parameters: shared()},
		{Name: "ttl-ghost", Summary: "a key with a TTL", Parameters: append(slices.DeleteFunc(shared(), func(p suite.Parameter) bool {
			return p.Name == "contenders" || p.Name == "rounds" || p.Name == "max-rounds" || p.Name == "unguarded"
		}),
			suite.Parameter{Name: "keys", Type: "int", Usage: "keys in each arm", Default: "20"},
			suite.Parameter{Name: "ttl", Type: "duration", Usage: "time to live of each key", Default: "1s"},
			suite.Parameter{Name: "watch", Type: "duration", Usage: "how long after its expiry a key is watched", Default: "12s"},
			suite.Parameter{Name: "first", Type: "duration", Usage: "age at the first probe", Default: "100ms"},
			suite.Parameter{Name: "factor", Type: "float64", Usage: "by which the time between two probes grows", Default: "1.5"},
			suite.Parameter{Name: "cap", Type: "duration", Usage: "the longest time between two probes", Default: "10m0s"},
			suite.Parameter{Name: "tolerance", Type: "duration", Usage: "how long after its expiry a key may block", Default: "1s"},
			suite.Parameter{Name: "budget", Type: "uint64", Usage: "requests at most", Default: "0"},
			suite.Parameter{Name: "page-token", Type: "string", Usage: "a secret"},
			suite.Parameter{Name: "fencing-token", Type: "bool", Usage: "no secret, whatever its name says", Default: "false"},
		)},
	}
}

// checked is a scenario's own check, as far as the tests need one.
func checked(run suite.Run) error {
	var wrong []error
	given := make(map[string]string)
	for _, a := range run.Arguments {
		given[a.Name] = strings.Join(a.Values, "|")
	}
	refuse := func(bad bool, format string, a ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, a...))
		}
	}
	refuse(given["contenders"] == "0", "--contenders 0: at least 1 must contend")
	refuse(given["expect"] == "partial", "--expect: not all that the file has")
	refuse(given["rounds"] == "0", "--rounds 0: at least 1 is needed")
	refuse(given["rounds"] != "" && given["duration"] != "", "--duration and --rounds exclude each other: leave one out")
	if given["skip-controls"] == "true" {
		wrong = append(wrong, fmt.Errorf("whatever: %w and\n%w", errors.New("one"), errors.New("two")),
			errors.Join(errors.New("a third"), errors.Join(errors.New("--skip-controls: a fourth"))))
	}
	refuse(given["stagger"] == "1s" && given["target"] == "", "a target is wanted\nfor --stagger")
	refuse(run.Labels["bad"] != "", "--label bad=: is bad")
	refuse(given["seed"] == "7", "--key-prefix: the default is bad for this seed")
	if given["seed"] == "8" && given["unguarded"] == "true" {
		return errors.New("--unguarded alone\nis wrong") // not joined
	}
	return errors.Join(wrong...)
}

var environment = map[string]string{
	"SITE": "forge+https://example.hello.atlassian-dev.net/x1/hunter2?create=kvs", "PASSWORD": "hunter2", "PORT": "6379", "EMPTY": "",
	"NAME": "our-site", "REDIS": "redis://h", "JOB": "https://ci.example.com/jobs/12", "DOLLAR": "${NAME}",
	"CONTEND_SITE": "sim:", "CONTEND_SITE_NAME": "our-site",
}

func getenv(name string) (string, bool) {
	value, ok := environment[name]
	return value, ok
}

func read(text string) (*suite.Suite, error) {
	return suite.Read("s.yaml", []byte(text), sample(), getenv, checked)
}

// lines gives each run as "name: scenario parameter=value|value …; labels".
func lines(s *suite.Suite) []string {
	var all []string
	for _, run := range s.Runs {
		line := run.Name + ": " + run.Scenario
		for _, a := range run.Arguments {
			line += " " + a.Name + "=" + strings.Join(a.Values, "|")
		}
		if len(run.Labels) > 0 {
			line += "; " + strings.TrimPrefix(fmt.Sprint(run.Labels), "map")
		}
		all = append(all, line)
	}
	return all
}

// good are suites that are taken, with what becomes of them.
var good = []struct {
	name, text string
	want       []string
}{
	{
		"one run", "runs: [{scenario: fail-if-exists}]",
		[]string{"fail-if-exists: fail-if-exists"},
	},
	{
		"of the promise", `
# suite.yaml
defaults:
  target: "sim:"
  timeout: 10s
runs:
  - name: create race
    scenario: fail-if-exists
    contenders: [2, 12, 50]
    rounds: 100
    expect: ["p99(won)<250ms", "throttled==0"]
    labels: {site: test}
  - scenario: ttl-ghost
    target: "sim:?sweep=5s..15s"
    keys: 20
    ttl: 1s
    watch: 1m
    expect-verdict: violated
`,
		[]string{
			"create race contenders=2: fail-if-exists target=sim: timeout=10s contenders=2 rounds=100 expect=p99(won)<250ms|throttled==0; [site:test]",
			"create race contenders=12: fail-if-exists target=sim: timeout=10s contenders=12 rounds=100 expect=p99(won)<250ms|throttled==0; [site:test]",
			"create race contenders=50: fail-if-exists target=sim: timeout=10s contenders=50 rounds=100 expect=p99(won)<250ms|throttled==0; [site:test]",
			"ttl-ghost: ttl-ghost timeout=10s target=sim:?sweep=5s..15s keys=20 ttl=1s watch=1m expect-verdict=violated",
		},
	},
	{
		"lists multiply each other, the last fastest, defaults first", `
defaults: {value-size: [0, 9]}
runs:
  - scenario: version-cas
    rounds: [1]
    contenders: [2, 12]
    unguarded: [false, true]
`,
		[]string{
			"version-cas value-size=0 contenders=2 unguarded=false: version-cas value-size=0 rounds=1 contenders=2 unguarded=false",
			"version-cas value-size=0 contenders=2 unguarded=true: version-cas value-size=0 rounds=1 contenders=2 unguarded=true",
			"version-cas value-size=0 contenders=12 unguarded=false: version-cas value-size=0 rounds=1 contenders=12 unguarded=false",
			"version-cas value-size=0 contenders=12 unguarded=true: version-cas value-size=0 rounds=1 contenders=12 unguarded=true",
			"version-cas value-size=9 contenders=2 unguarded=false: version-cas value-size=9 rounds=1 contenders=2 unguarded=false",
			"version-cas value-size=9 contenders=2 unguarded=true: version-cas value-size=9 rounds=1 contenders=2 unguarded=true",
			"version-cas value-size=9 contenders=12 unguarded=false: version-cas value-size=9 rounds=1 contenders=12 unguarded=false",
			"version-cas value-size=9 contenders=12 unguarded=true: version-cas value-size=9 rounds=1 contenders=12 unguarded=true",
		},
	},
	{
		"an alias, and names where runs differ", `
runs:
  - {scenario: create-if-absent, contenders: 2, timeout: 1s}
  - {scenario: fail-if-exists, contenders: 3, timeout: 1s, seed: 8}
  - {scenario: fail-if-exists, contenders: 3, timeout: 1s, key-prefix: "a b"}
  - {scenario: version-cas, contenders: 3}
  - {scenario: fail-if-exists, name: named, rounds: 3, contenders: 9}
  - {scenario: fail-if-exists, name: 12, rounds: 4}
`,
		[]string{
			"fail-if-exists contenders=2: fail-if-exists contenders=2 timeout=1s",
			"fail-if-exists contenders=3 seed=8: fail-if-exists contenders=3 timeout=1s seed=8",
			`fail-if-exists contenders=3 key-prefix="a b": fail-if-exists contenders=3 timeout=1s key-prefix=a b`,
			"version-cas: version-cas contenders=3",
			"named: fail-if-exists rounds=3 contenders=9",
			"12: fail-if-exists rounds=4",
		},
	},
	{
		"a parameter that only one of the runs has is a difference", `
runs:
  - {scenario: version-cas, rounds: 1, seed: 2}
  - {scenario: version-cas, unguarded: true, seed: 2}
  - {scenario: fail-if-exists}
  - {scenario: fail-if-exists, rounds: 1}
`,
		[]string{
			"version-cas rounds=1: version-cas rounds=1 seed=2",
			"version-cas unguarded=true: version-cas unguarded=true seed=2",
			"fail-if-exists: fail-if-exists",
			"fail-if-exists rounds=1: fail-if-exists rounds=1",
		},
	},
	{
		"the same name again is numbered, and a number that is a name is left alone", `
runs:
  - {scenario: version-cas, rounds: 2}
  - {scenario: version-cas, rounds: 2}
  - {scenario: fail-if-exists, name: a}
  - {scenario: fail-if-exists, name: a}
  - {scenario: fail-if-exists, name: "a #2"}
  - {scenario: fail-if-exists, name: a}
  - {scenario: fail-if-exists, name: b, rounds: [1, 1]}
`,
		[]string{
			"version-cas: version-cas rounds=2",
			"version-cas #2: version-cas rounds=2",
			"a: fail-if-exists",
			"a #3: fail-if-exists",
			"a #2: fail-if-exists",
			"a #4: fail-if-exists",
			"b rounds=1: fail-if-exists rounds=1",
			"b rounds=1 #2: fail-if-exists rounds=1",
		},
	},
	{
		"defaults go where the scenario has them, and behind a run's own", `
defaults: {rounds: 3, keys: 4, expect: [a, b], labels: {a: 1, b: 2}}
runs:
  - {scenario: fail-if-exists, labels: {b: 3, c: true}}
  - {scenario: fail-if-exists, rounds: 5, expect: c}
  - {scenario: fail-if-exists, duration: 1m}
  - {scenario: ttl-ghost}
`,
		[]string{
			"fail-if-exists rounds=3 expect=a,b: fail-if-exists rounds=3 expect=a|b; [a:1 b:3 c:true]",
			"fail-if-exists rounds=5 expect=c: fail-if-exists rounds=5 expect=c; [a:1 b:2]",
			"fail-if-exists expect=a,b duration=1m: fail-if-exists expect=a|b duration=1m; [a:1 b:2]",
			"ttl-ghost: ttl-ghost keys=4 expect=a|b; [a:1 b:2]",
		},
	},
	{
		"an excluded default the other way round", `
defaults: {duration: 1m}
runs: [{scenario: fail-if-exists, rounds: 5}]
`,
		[]string{"fail-if-exists: fail-if-exists rounds=5"},
	},
	{
		"every type", `
runs:
  - scenario: ttl-ghost
    keys: -3
    budget: 18446744073709551615
    factor: 1e3
    max-uncertain: .5
    rate: 7
    stagger: -1.5h2m
    timeout: 1µs
    cap: "3s"
    skip-controls: False
    seed: 0x10
    key-prefix: true
    release: gate
    fencing-token: true
`,
		[]string{"ttl-ghost: ttl-ghost keys=-3 budget=18446744073709551615 factor=1e3 max-uncertain=.5 rate=7 stagger=-1.5h2m timeout=1µs cap=3s " +
			"skip-controls=false seed=0x10 key-prefix=true release=gate fencing-token=true"},
	},
	{
		"texts as they are written", `
runs:
  - {scenario: fail-if-exists, seed: [2026-11-30, .inf, 1_0, '', "<<", yes], expect: [1, true]}
`,
		[]string{
			"fail-if-exists seed=2026-11-30: fail-if-exists seed=2026-11-30 expect=1|true",
			"fail-if-exists seed=.inf: fail-if-exists seed=.inf expect=1|true",
			"fail-if-exists seed=1_0: fail-if-exists seed=1_0 expect=1|true",
			`fail-if-exists seed="": fail-if-exists seed= expect=1|true`,
			"fail-if-exists seed=<<: fail-if-exists seed=<< expect=1|true",
			"fail-if-exists seed=yes: fail-if-exists seed=yes expect=1|true",
		},
	},
	{
		"the environment, in target and in labels", `
defaults: {target: "${SITE}"}
runs:
  - {scenario: fail-if-exists, labels: {site: "the ${NAME}, $NAME, $${NAME} and $$${NAME}", job: "${JOB}", none: "${EMPTY}", once: "${DOLLAR}"}}
  - {scenario: fail-if-exists, target: ["redis://:${PASSWORD}@h:${PORT}/0", "redis://h:${PORT}", "${REDIS}:${PORT}", "${REDIS}:6379"]}
  - {scenario: version-cas, target: "postgres://u@h/db?password=${PASSWORD}&create=on-conflict"}
  - {scenario: version-cas, target: "forge+https://h/x1/${PASSWORD}?create=kvs&b=1&a=2"}
  - {scenario: version-cas, target: "${REDIS}/0?create=nx"}
  - {scenario: version-cas, target: "forge+https://h/a%2Fb/${PASSWORD}"}
`,
		[]string{
			"fail-if-exists target=${SITE}: fail-if-exists target=" + environment["SITE"] +
				"; [job:https://ci.example.com/jobs/12 none: once:${NAME} site:the our-site, $NAME, ${NAME} and $${NAME}]",
			"fail-if-exists target=redis://:${PASSWORD}@h:${PORT}/0: fail-if-exists target=redis://:hunter2@h:6379/0",
			"fail-if-exists target=redis://h:${PORT}: fail-if-exists target=redis://h:6379",
			"fail-if-exists target=${REDIS}:${PORT}: fail-if-exists target=redis://h:6379",
			"fail-if-exists target=${REDIS}:6379: fail-if-exists target=redis://h:6379",
			"version-cas target=postgres://u@h/db?password=${PASSWORD}&create=on-conflict: version-cas target=postgres://u@h/db?password=hunter2&create=on-conflict",
			"version-cas target=forge+https://h/x1/${PASSWORD}?create=kvs&b=1&a=2: version-cas target=forge+https://h/x1/hunter2?create=kvs&b=1&a=2",
			"version-cas target=${REDIS}/0?create=nx: version-cas target=redis://h/0?create=nx",
			"version-cas target=forge+https://h/a%2Fb/${PASSWORD}: version-cas target=forge+https://h/a%2Fb/hunter2",
		},
	},
	{
		"targets without a secret", `
runs:
  - scenario: fail-if-exists
    target: ["sim:?sweep=5s..15s&fault=gap=5ms", sim, "postgres://u@127.0.0.1:5432/db?create=on-conflict&b=2&a=1", "redis://127.0.0.1:6379", "forge+rest://h", "a b"]
    name: many
    labels: {link: "https://wiki.example.com/pages/123?a=b", text: "see https://x y", mail: "mailto:a@b"}
`,
		[]string{
			"many target=sim:?sweep=5s..15s&fault=gap=5ms: fail-if-exists target=sim:?sweep=5s..15s&fault=gap=5ms; [link:https://wiki.example.com/pages/123?a=b mail:mailto:a@b text:see https://x y]",
			"many target=sim: fail-if-exists target=sim; [link:https://wiki.example.com/pages/123?a=b mail:mailto:a@b text:see https://x y]",
			"many target=postgres://u@127.0.0.1:5432/db?create=on-conflict&b=2&a=1: fail-if-exists target=postgres://u@127.0.0.1:5432/db?create=on-conflict&b=2&a=1; [link:https://wiki.example.com/pages/123?a=b mail:mailto:a@b text:see https://x y]",
			"many target=redis://127.0.0.1:6379: fail-if-exists target=redis://127.0.0.1:6379; [link:https://wiki.example.com/pages/123?a=b mail:mailto:a@b text:see https://x y]",
			"many target=forge+rest://h: fail-if-exists target=forge+rest://h; [link:https://wiki.example.com/pages/123?a=b mail:mailto:a@b text:see https://x y]",
			`many target="a b": fail-if-exists target=a b; [link:https://wiki.example.com/pages/123?a=b mail:mailto:a@b text:see https://x y]`,
		},
	},
	{
		"an end of the document, and a first line that names the schema",
		"# yaml-language-server: $schema=suite.schema.json\n---\nruns:\n- scenario: fail-if-exists\n...\n",
		[]string{"fail-if-exists: fail-if-exists"},
	},
}

func TestRead(t *testing.T) {
	for _, test := range good {
		t.Run(test.name, func(t *testing.T) {
			s, err := read(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, lines(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	s, err := read(`defaults:
  rounds: 3
runs:
  - scenario: create-if-absent
    contenders: [2,
      12]
    expect: [a, b]
`)
	if err != nil {
		t.Fatal(err)
	}
	rounds := suite.Argument{Name: "rounds", Values: []string{"3"}, Line: 2, Column: 11}
	expect := suite.Argument{Name: "expect", Values: []string{"a", "b"}, Line: 7, Column: 13}
	want := &suite.Suite{File: "s.yaml", Runs: []suite.Run{
		{
			Name: "fail-if-exists contenders=2", Scenario: "fail-if-exists", Labels: map[string]string{}, Line: 4, Column: 5,
			Arguments: []suite.Argument{rounds, {Name: "contenders", Values: []string{"2"}, Line: 5, Column: 18}, expect},
		},
		{
			Name: "fail-if-exists contenders=12", Scenario: "fail-if-exists", Labels: map[string]string{}, Line: 4, Column: 5,
			Arguments: []suite.Argument{rounds, {Name: "contenders", Values: []string{"12"}, Line: 6, Column: 7}, expect},
		},
	}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

// Labels of runs are not shared, so that who changes one does not change others.
func TestRunsShareNoLabels(t *testing.T) {
	s, err := read("defaults: {labels: {a: b}}\nruns: [{scenario: version-cas, rounds: [1, 2]}]")
	if err != nil {
		t.Fatal(err)
	}
	s.Runs[0].Labels["a"] = "c"
	if s.Runs[1].Labels["a"] != "b" {
		t.Error("a label of another run changed too")
	}
}

func TestExamples(t *testing.T) {
	for name, want := range map[string][]string{
		"suite.yaml": {
			"create race contenders=2", "create race contenders=12", "create race contenders=50",
			"compare-and-set race contenders=2", "compare-and-set race contenders=12", "claim without a guard", "expired keys",
		},
		"night.yaml": {
			"create contenders=2", "create contenders=12", "compare-and-set contenders=2", "compare-and-set contenders=12",
			"claim without a guard", "ghosts", "create on the emulator",
		},
	} {
		text, err := os.ReadFile("../../examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# yaml-language-server: $schema=suite.schema.json\n") {
			t.Errorf("%s does not begin with its schema", name)
		}
		s, err := read(string(text))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, run := range s.Runs {
			names = append(names, run.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// words are what suites are made of, rightly or wrongly.
var words = []string{
	"1", "0", "-3", "12", "1.5", "true", "yes", "10s", "1m", "10", "auto", "gate", "held", "violated", "~", "''", `"12"`, "text",
	"[1, 2]", "[]", "[a, b]", "[10s, 1s]", "[[1]]", "{a: 1}", "{site: \"${NAME}\"}", `"${NAME}"`, "*a", "&a 1", "!!str 1",
	`"sim:"`, `"redis://:hunter2@h"`, "0x1", "012", ".inf", "1e3", "99999999999999999999", "2026-11-30", `"p90(won)<250ms"`, "fail-if-exists",
}

// drawSuite draws a text that is a suite, or nearly one.
func drawSuite(t *rapid.T) string {
	keys := []string{"name", "labels", "bogus", "<<", "1", "[a]"}
	for _, s := range sample() {
		for _, p := range s.Parameters {
			keys = append(keys, p.Name)
		}
	}
	likely := map[string][]string{
		"int": {"1", "2", "[1, 2]", "12"}, "float64": {"1.5", "1", "[.5, 1e2]"}, "bool": {"true", "[true, false]"}, "duration": {"10s", "[1s, 2m]"},
		"string": {"a", "12", "true", "held", "auto", "[gate, auto]"}, "stringArray": {"a", "[a, 1, true]"}, "uint64": {"7"},
	}
	mapping := func(indent string, parameters []suite.Parameter, name string) string {
		var b strings.Builder
		for range rapid.IntRange(0, 5).Draw(t, name) {
			key, value := rapid.SampledFrom(keys).Draw(t, "key"), rapid.SampledFrom(words).Draw(t, "value")
			if rapid.IntRange(0, 9).Draw(t, "likely") > 0 {
				p := rapid.SampledFrom(parameters).Draw(t, "parameter")
				key, value = p.Name, rapid.SampledFrom(likely[p.Type]).Draw(t, "right")
				if p.Values != nil {
					value = rapid.SampledFrom(p.Values).Draw(t, "enumerated")
				}
			}
			fmt.Fprintf(&b, "%s%s: %s\n", indent, key, value)
		}
		return b.String()
	}
	var b strings.Builder
	if d := mapping("  ", shared(), "defaults"); d != "" {
		b.WriteString("defaults:\n" + d)
	}
	b.WriteString("runs:\n")
	for range rapid.IntRange(0, 4).Draw(t, "runs") {
		s := rapid.SampledFrom(sample()).Draw(t, "scenario")
		b.WriteString("  - scenario: " + s.Name + "\n" + mapping("    ", s.Parameters, "run"))
	}
	return b.String()
}

// accepted tells what is wrong with a suite that Read has taken.
func accepted(s *suite.Suite) error {
	if len(s.Runs) == 0 || len(s.Runs) > suite.MaxRuns {
		return fmt.Errorf("%d runs", len(s.Runs))
	}
	names := make(map[string]bool)
	for _, run := range s.Runs {
		if names[run.Name] || run.Name == "" {
			return fmt.Errorf("name %q is there twice, or empty", run.Name)
		}
		names[run.Name] = true
		i := slices.IndexFunc(sample(), func(s suite.Scenario) bool { return s.Name == run.Scenario })
		if i < 0 {
			return fmt.Errorf("scenario %q", run.Scenario)
		}
		given := make(map[string]bool)
		for _, a := range run.Arguments {
			if given[a.Name] || len(a.Values) == 0 || a.Line < 1 || a.Column < 1 {
				return fmt.Errorf("argument %+v", a)
			}
			given[a.Name] = true
			if !slices.ContainsFunc(sample()[i].Parameters, func(p suite.Parameter) bool {
				return p.Name == a.Name && (len(a.Values) == 1 || p.Type == "stringArray") && (p.Values == nil || slices.Contains(p.Values, a.Values[0]))
			}) || slices.Contains(strings.Fields(suite.GivenToRun+" label page-token"), a.Name) {
				return fmt.Errorf("argument %+v of %s", a, run.Scenario)
			}
		}
	}
	return nil
}

func TestReadAnything(t *testing.T) {
	try := func(t *rapid.T, text []byte) bool {
		s, err := suite.Read("s.yaml", text, sample(), getenv, checked)
		if err != nil {
			problems, ok := errors.AsType[*suite.Problems](err)
			if !ok || len(problems.List) == 0 || strings.Count(err.Error(), "\n") != len(problems.List)-1 {
				t.Fatalf("error %#v", err)
			}
			for _, p := range problems.List {
				if p.Line < 1 || p.Column < 1 || p.Text == "" {
					t.Fatalf("problem %+v", p)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("the secret is told: %v", err)
			}
			return false
		}
		if err := accepted(s); err != nil {
			t.Fatal(err)
		}
		return true
	}
	t.Run("bytes", rapid.MakeCheck(func(t *rapid.T) { try(t, rapid.SliceOf(rapid.Byte()).Draw(t, "text")) }))
	t.Run("text", rapid.MakeCheck(func(t *rapid.T) {
		alphabet := []rune("runs:{}[]- \n\"'&*!<>?|%@`#,$\t~0a\u00e9\u2028")
		try(t, []byte(rapid.StringOf(rapid.RuneFrom(alphabet)).Draw(t, "text")))
	}))
	taken := 0
	t.Run("suites", rapid.MakeCheck(func(t *rapid.T) {
		if try(t, []byte(drawSuite(t))) {
			taken++
		}
	}))
	if taken == 0 {
		t.Error("no suite was taken: nothing was tested")
	}
}
