package cmd_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	recorded = regexp.MustCompile("^`go run \\./targets/targettest/wrong (.+) -- go run \\. (.+) -t (?:URL|'URL[?&](.+)')`$")
	reported = regexp.MustCompile(`^\[([\w.-]+/[\w.-]+) (\d+)\]\(https://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)\)(?:, .+)?$`)
)

// verdicts are the words that a page has for an exit status.
var verdicts = map[int]string{heldOr3: "held", 1: "violated", 3: "inconclusive", 4: "exit 4"}

// untested is what a row of the page says that no case does; "" if one does.
func untested(row string) string {
	cells := strings.Split(strings.Trim(row, "| "), " | ")
	if len(cells) != 4 {
		return "there are not four cells"
	}
	if m := reported.FindStringSubmatch(cells[0]); cells[0] != "the same" && (m == nil || m[1] != m[3] || m[2] != m[4]) {
		return "the first cell is not a report's owner, repository, number and link"
	}
	words := recorded.FindStringSubmatch(cells[2])
	if words == nil {
		return "the command is not one to copy"
	}
	for _, c := range wrongCases {
		if c.store != words[1] || c.command != words[2] || c.query != words[3] {
			continue
		}
		verdict, says, _ := strings.Cut(cells[3], ": ")
		verdict, _, _ = strings.Cut(verdict, ",")
		if verdict == verdicts[c.code] && says == c.says {
			return ""
		}
	}
	return "no case has this store and command with this verdict"
}

// What the page says of a report is what the tests run, and want.
func TestTrackRecord(t *testing.T) {
	page, err := os.ReadFile("../docs/track-record.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| report |") || strings.HasPrefix(line, "|---") {
			continue
		}
		rows++
		if wrong := untested(line); wrong != "" {
			t.Errorf("%s:\n%s", wrong, line)
		}
	}
	if rows < 28 {
		t.Errorf("the page has %d rows", rows)
	}
}

// The check sees a row that the tests do not hold.
func TestTrackRecordCheckSeesAChange(t *testing.T) {
	const right = "| [o/r 1](https://github.com/o/r/issues/1), another | a fault | `go run ./targets/targettest/wrong loser-ok -- go run . fail-if-exists -r 10 -t URL` | violated: a second create of one key was accepted |"
	if wrong := untested(right); wrong != "" {
		t.Fatal(wrong)
	}
	for _, change := range [][2]string{
		{"loser-ok", "loser-zero"}, {"-r 10", "-r 11"}, {"violated", "inconclusive"}, {"a second create", "a third create"},
		{"-t URL", "-t 'URL?create=watch'"}, {"/issues/1)", "/issues/2)"}, {"[o/r 1]", "[o/s 1]"}, {"go run .", "contend"}, {" | a fault", ""},
	} {
		if changed := strings.Replace(right, change[0], change[1], 1); untested(changed) == "" {
			t.Errorf("it does not see that %q became %q", change[0], change[1])
		}
	}
}
