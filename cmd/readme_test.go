package cmd_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"contend/targets/targettest/servers"
)

// sample is a command in the README with the output that stands below it.
type sample struct{ command, output string }

func samplesOf(text string) []sample {
	var samples []sample
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = strings.HasPrefix(line, "```console")
		case inside && strings.HasPrefix(line, "$ "):
			samples = append(samples, sample{command: strings.TrimSpace(line[2:])})
		case inside:
			samples[len(samples)-1].output += line
		}
	}
	return samples
}

var (
	runID   = regexp.MustCompile(`[0-9A-Z]{26}`)
	numbers = regexp.MustCompile(`[0-9][0-9.:,-]*(µs|ns|ms|s\b)?`)
	spaces  = regexp.MustCompile(`[ ─┼]+`)
)

// upToNumbers leaves of an output what must be the same each time.
func upToNumbers(output string) string {
	output = runID.ReplaceAllString(output, "#")
	output = numbers.ReplaceAllString(output, "#")
	return spaces.ReplaceAllString(output, " ")
}

// The README's commands run, and print what it says, up to numbers.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	samples := samplesOf(string(text))
	if len(samples) < 4 {
		t.Fatalf("only %d samples found", len(samples))
	}
	for _, s := range samples {
		if strings.Contains(s.command, onRedis) {
			continue
		}
		line, isRun := strings.CutPrefix(s.command, "go run . ")
		if !isRun {
			line = strings.TrimPrefix(s.command, "contend ")
		}
		var args []string
		for _, word := range strings.Fields(line) {
			args = append(args, strings.Trim(word, "'"))
		}
		_, stdout, _ := contend(t, args...)
		want := s.output
		if isRun {
			stdout = strings.Replace(stdout, "go run .", "contend", 1)
		}
		if got, want := upToNumbers(stdout), upToNumbers(want); got != want {
			t.Errorf("$ %s\nprints\n%s\nthe README says\n%s", s.command, got, want)
		}
	}
}

// onRedis is the target of the README's run on a real store.
const onRedis = "redis://127.0.0.1:6379"

// The README's run on Redis says what it shows, up to numbers and where lines end,
// and is held.
func TestReadmeOnRedis(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	url, shown := servers.Redis(t), 0
	for _, s := range samplesOf(string(text)) {
		if !strings.Contains(s.command, onRedis) {
			continue
		}
		shown++
		words := strings.Fields(strings.ReplaceAll(s.command, onRedis, url))
		code, stdout, stderr := contend(t, words[3:]...)
		want, cut := strings.CutSuffix(s.output, "…\n")
		line := func(text string) string { return strings.Join(strings.Fields(upToNumbers(text)), " ") }
		if code != 0 || !cut || !strings.HasPrefix(line(stdout), line(want)) {
			t.Errorf("$ %s\nexit %d: %s\n%s\nthe README says\n%s", s.command, code, stdout, stderr, s.output)
		}
		for _, word := range []string{"HELD: ", "Reach: in "} {
			if !strings.Contains(want, word) {
				t.Errorf("the README does not show %q", word)
			}
		}
	}
	if shown != 1 {
		t.Errorf("%d runs on %s are shown", shown, onRedis)
	}
}

// The check sees an output that has changed.
func TestReadmeCheckSeesAChange(t *testing.T) {
	const block = "```console\n$ contend x\nHELD: 20 of 20 rounds, run 01M8NZTG4NGKXTWKCQJ3D09H27, 5.51s\n```\n"
	s := samplesOf(block)
	if len(s) != 1 || s[0].command != "contend x" {
		t.Fatalf("%+v", s)
	}
	if upToNumbers(s[0].output) != upToNumbers("HELD: 3 of 4 rounds, run 01ARZ3NDEKTSV4RRFFQ69G5FAV, 7ms\n") {
		t.Error("another run's numbers are taken for a change")
	}
	if upToNumbers(s[0].output) == upToNumbers("HELD: 20 of 20 round, run 01M8NZTG4NGKXTWKCQJ3D09H27, 5.51s\n") {
		t.Error("a changed word is not seen")
	}
}

// Every command and every target of the program stands in the README, and so
// does every exit code.
func TestReadmeNamesEverything(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, help, _ := contend(t, "--help")
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z-]+) {2,}\S`).FindAllStringSubmatch(help, -1) {
		if name := m[1]; name != "help" && name != "completion" && !strings.Contains(string(text), "| `contend "+name) {
			t.Errorf("the README does not list contend %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^  (\d+) +(\S.*)$`).FindAllStringSubmatch(help, -1) {
		if row := "| " + m[1] + " | "; !strings.Contains(string(text), row) {
			t.Errorf("the README does not list exit status %s", m[1])
		}
	}
}
