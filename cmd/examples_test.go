package cmd_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// shortNight is a suite for what examples/night.yaml is for, in less than a second.
const shortNight = `
runs:
  - scenario: fail-if-exists
    target: "${CONTEND_SITE}"
    labels: {site: "${CONTEND_SITE_NAME}"}
    contenders: 4
    rounds: 2
    min-contended: 1
    rate: 1000
`

// redNight is one that ends with exit status 1.
const redNight = shortNight + `
  - scenario: check-then-set
    target: "${CONTEND_SITE}"
    contenders: 4
    rounds: 2
    rate: 1000
`

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// assigned gives the variables that a comment tells to set, as NAME=VALUE.
func assigned(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^#     (?:export )?([A-Z_]+=\S+)`).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// namesOf gives the names of variables.
func namesOf(assignments []string) string {
	var names []string
	for _, a := range assignments {
		name, _, _ := strings.Cut(a, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// site serves an emulator for the time of a test, slow enough for a contest.
func site(t *testing.T) (target string) {
	t.Helper()
	url, _ := serve(t, "--latency", "20ms..40ms", "--sweep", "1h..2h")
	return "forge+rest+" + url
}

// onSite gives what stands in for the assignments of an example.
func onSite(t *testing.T) *strings.Replacer {
	t.Helper()
	return strings.NewReplacer("forge+https://…", site(t), "CONTEND_FORGE_TOKEN=…", "CONTEND_FORGE_TOKEN=any")
}

// job runs a program of an example in an environment of its own, and gives its
// exit status and what it wrote.
func job(t *testing.T, dir string, environ []string, stdin string, words ...string) (int, string) {
	t.Helper()
	command := exec.Command(words[0], words[1:]...)
	command.Dir, command.Env, command.Stdin = dir, environ, strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(out)
}

// with gives the folder in which contend and other programs are.
func with(t *testing.T, scripts map[string]string) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(program, filepath.Join(bin, "contend")); err != nil {
		t.Fatal(err)
	}
	for name, text := range scripts {
		write(t, filepath.Join(bin, name), text, 0o700)
	}
	return bin
}

func write(t *testing.T, file, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// wantRuns looks at how many runs a store has that is copied without what may lie
// beside it.
func wantRuns(t *testing.T, store string, want int) {
	t.Helper()
	text, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "copy.db")
	write(t, alone, string(text), 0o600)
	if _, stdout, stderr := contend(t, "results", "list", "--store", alone); !strings.HasPrefix(stdout, fmt.Sprintf("%d run", want)) {
		t.Errorf("want %d runs in %s:\n%s%s", want, store, stdout, stderr)
	}
}

// Every example has its test.
func TestExamplesAreTested(t *testing.T) {
	entries, err := os.ReadDir("../examples")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "contend-nightly.service contend-nightly.timer crontab github-nightly.yml night.yaml suite.schema.json suite.yaml" {
		t.Errorf("there are %s", got)
	}
}

// The suites are read without a problem where the variables are set that they
// tell, and their own command lines plan them.
func TestExampleSuites(t *testing.T) {
	for name, documented := range map[string]string{"suite.yaml": "", "night.yaml": "CONTEND_FORGE_TOKEN CONTEND_SITE CONTEND_SITE_NAME"} {
		t.Run(name, func(t *testing.T) {
			text := example(t, name)
			variables := assigned(text)
			if got := namesOf(variables); got != documented {
				t.Errorf("it tells to set %q", got)
			}
			for _, v := range variables {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
			command := regexp.MustCompile(`(?m)^#     contend (\S+) (\S+)$`).FindStringSubmatch(text)
			if command == nil {
				t.Fatal("it tells no command")
			}
			for _, url := range []string{"forge+https://example.org/x", "sim:"} {
				t.Setenv("CONTEND_SITE", url)
				code, stdout, stderr := contend(t, command[1], filepath.Join("..", command[2]), "--dry-run")
				if code != 0 || strings.Count(stdout, "nothing was sent") < 7 {
					t.Errorf("exit %d: %s%s", code, stdout, stderr)
				}
			}
		})
	}
}

// cronjob is an entry of a crontab: what cron sets, and what it gives to the shell.
type cronjob struct {
	environ []string
	command string
}

// cronjobOf reads a crontab of one entry as cron does.
func cronjobOf(text string) (cronjob, error) {
	var job cronjob
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		fields := strings.Fields(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case regexp.MustCompile(`^[A-Z]+=`).MatchString(line):
			job.environ = append(job.environ, line)
		case len(fields) < 6 || job.command != "":
			return job, fmt.Errorf("%q is no entry, or a second one", line)
		default:
			for i, most := range []int{59, 23, 31, 12, 7} {
				if n, err := strconv.Atoi(fields[i]); fields[i] != "*" && (err != nil || n < 0 || n > most) {
					return job, fmt.Errorf("%q: field %d is none", line, i+1)
				}
			}
			job.command = regexp.MustCompile(`^(\S+\s+){5}`).ReplaceAllString(line, "")
			if strings.Contains(job.command, "%") {
				return job, errors.New("% is a new line to cron")
			}
		}
	}
	if job.command == "" {
		return job, errors.New("there is no entry")
	}
	return job, nil
}

func TestExampleCrontab(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "PATH=/bin\n", "17 3 * * contend\n", "17 24 * * * contend\n", "17 3 * * * date +%H\n", "1 1 * * * a\n1 1 * * * b\n"} {
		if _, err := cronjobOf(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
	text := example(t, "crontab")
	cron, err := cronjobOf(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(assigned(text)); got != namesOf(assigned(example(t, "night.yaml"))) {
		t.Errorf("it tells to set %s", got)
	}
	environment := onSite(t).Replace(strings.Join(assigned(text), "\n") + "\n")
	home := t.TempDir()
	environ := []string{"HOME=" + home, "LOGNAME=someone", "SHELL=/bin/sh"}
	for _, v := range cron.environ {
		environ = append(environ, strings.Replace(v, "/usr/local/bin", with(t, nil), 1))
	}
	installs := 0
	for _, m := range regexp.MustCompile(`(?m)^#     ([a-z(].*)$`).FindAllStringSubmatch(text, -1) {
		if installs++; strings.Contains(m[1], "contend") {
			if code, out := job(t, "../examples", environ, environment, "sh", "-c", m[1]); code != 0 {
				t.Fatalf("$ %s\nexit %d: %s", m[1], code, out)
			}
		}
	}
	folder := filepath.Join(home, "contend")
	for name, want := range map[string]os.FileMode{folder: 0o700 | os.ModeDir, filepath.Join(folder, "environment"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%v, %v", info, err)
		}
	}
	night := func(t *testing.T, wantMail, wantFile string, more ...string) {
		t.Helper()
		_, mail := job(t, home, slices.Concat(environ, more), "", "sh", "-c", cron.command)
		file, err := os.ReadFile(filepath.Join(folder, "last-night.txt"))
		if err != nil || !strings.Contains(string(file), wantFile) || (mail == "") != (wantMail == "") || !strings.Contains(mail, wantMail) {
			t.Errorf("%v, mail:\n%s\nfile:\n%s", err, mail, file)
		}
	}
	night(t, "", "Plan of contend ttl-ghost; nothing was sent", "CONTEND_DRY_RUN=true")
	write(t, filepath.Join(folder, "night.yaml"), shortNight, 0o600)
	night(t, "", ": 1 held")
	report, err := os.ReadFile(filepath.Join(folder, "last-night.txt"))
	store := regexp.MustCompile(`(?m)^contend: results are kept in (.+)$`).FindSubmatch(report)
	if err != nil || store == nil || !strings.HasPrefix(string(store[1]), home) {
		t.Fatalf("%v: where is the store?\n%s", err, report)
	}
	wantRuns(t, string(store[1]), 1)
	write(t, filepath.Join(folder, "night.yaml"), redNight, 0o600)
	night(t, ": 1 held, 1 violated", ": 1 held, 1 violated")
	write(t, filepath.Join(folder, "environment"), "CONTEND_SITE=sim:\n", 0o600)
	night(t, "CONTEND_SITE_NAME is not set", "CONTEND_SITE_NAME is not set")
}

// unit is a unit of systemd: a key's values, by "Section.Key".
type unit map[string][]string

func unitOf(text string) unit {
	u := make(unit)
	section := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, isKey := strings.Cut(line, "=")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isKey:
			u[section+"."+key] = append(u[section+"."+key], value)
		default:
			section = strings.Trim(line, "[]")
		}
	}
	return u
}

func (u unit) one(t *testing.T, key string) string {
	t.Helper()
	if len(u[key]) != 1 {
		t.Fatalf("%s is %q", key, u[key])
	}
	return u[key][0]
}

// span reads a time span of systemd that is also one of Go, but for the names.
func span(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(strings.NewReplacer(" ", "", "min", "m").Replace(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// within gives what a command line says of it.
func within(t *testing.T, command string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(` --within (\S+)`).FindStringSubmatch(command)
	if m == nil {
		t.Fatalf("no --within in %s", command)
	}
	return span(t, m[1])
}

func TestExampleService(t *testing.T) {
	t.Parallel()
	text := example(t, "contend-nightly.service")
	u := unitOf(text)
	start := u.one(t, "Service.ExecStart")
	if got := namesOf(assigned(text)); got != namesOf(assigned(example(t, "night.yaml"))) {
		t.Errorf("it tells to set %s", got)
	}
	if limit := span(t, u.one(t, "Service.TimeoutStartSec")); limit < within(t, start)+10*time.Minute {
		t.Errorf("it is stopped after %s", limit)
	}
	var suite struct {
		Defaults struct{ Timeout time.Duration }
	}
	if err := yaml.Unmarshal([]byte(example(t, "night.yaml")), &suite); err != nil {
		t.Fatal(err)
	}
	if limit := span(t, u.one(t, "Service.TimeoutStopSec")); suite.Defaults.Timeout == 0 || limit < 10*suite.Defaults.Timeout {
		t.Errorf("it is killed after %s, while a request takes up to %s", limit, suite.Defaults.Timeout)
	}
	if !strings.Contains(start, " --store /var/lib/"+u.one(t, "Service.StateDirectory")+"/") {
		t.Errorf("the store of %s is in no folder of the service's own", start)
	}
	for key, want := range map[string]string{"Type": "oneshot", "SuccessExitStatus": "130", "EnvironmentFile": "-/etc/contend/environment", "DynamicUser": "yes"} {
		if got := u.one(t, "Service."+key); got != want {
			t.Errorf("%s=%s", key, got)
		}
	}

	state, suiteFile := t.TempDir(), filepath.Join(t.TempDir(), "night.yaml")
	place := strings.NewReplacer("/usr/local/bin", with(t, nil), "/var/lib/contend", state, "/etc/contend/night.yaml", suiteFile)
	words := strings.Fields(place.Replace(start))
	var environ []string
	for _, v := range strings.Fields(onSite(t).Replace(strings.Join(assigned(text), "\n"))) {
		name, value, _ := strings.Cut(v, "=")
		environ = append(environ, name+"="+strings.Trim(value, "'"))
	}
	write(t, suiteFile, example(t, "night.yaml"), 0o600)
	if code, out := job(t, "/", append(environ, "CONTEND_DRY_RUN=true"), "", words...); code != 0 || !strings.Contains(out, "Plan of contend ttl-ghost") {
		t.Errorf("exit %d: %s", code, out)
	}
	write(t, suiteFile, shortNight, 0o600)
	if code, out := job(t, "/", environ, "", words...); code != 0 || !strings.Contains(out, ": 1 held") {
		t.Errorf("exit %d: %s", code, out)
	}
	wantRuns(t, filepath.Join(state, "results.db"), 1)

	// Stopped in the middle of a watch, it ends with what SuccessExitStatus says.
	write(t, suiteFile, shortNight+"  - {scenario: ttl-ghost, target: \"${CONTEND_SITE}\", keys: 5, watch: 1h}\n", 0o600)
	command := exec.Command(words[0], words[1:]...)
	command.Env = environ
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, stdout, stderr := contend(t, "results", "ghosts", "--store", filepath.Join(state, "results.db")); !strings.HasPrefix(stdout, "0 keys ") {
			break
		} else if time.Now().After(end) {
			t.Fatalf("no watch: %s%s", stdout, stderr)
		}
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if got := strconv.Itoa(command.ProcessState.ExitCode()); got != u.one(t, "Service.SuccessExitStatus") || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("exit %s: %s", got, &out)
	}
	wantRuns(t, filepath.Join(state, "results.db"), 3)
}

func TestExampleTimer(t *testing.T) {
	t.Parallel()
	u := unitOf(example(t, "contend-nightly.timer"))
	for key, want := range map[string]string{"Timer.OnCalendar": "*-*-* 03:00:00", "Timer.Persistent": "true", "Install.WantedBy": "timers.target"} {
		if got := u.one(t, key); got != want {
			t.Errorf("%s=%s", key, got)
		}
	}
	if unit := u["Timer.Unit"]; unit != nil {
		t.Errorf("it is for %v", unit)
	}
}

// systemd itself finds nothing wrong with the units, where it is present.
func TestExampleUnitsVerify(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	bin := with(t, nil)
	verify := func(t *testing.T, change ...string) (int, string) {
		t.Helper()
		dir := t.TempDir()
		names := []string{"contend-nightly.service", "contend-nightly.timer"}
		for i, name := range names {
			names[i] = filepath.Join(dir, name)
			text := strings.ReplaceAll(example(t, name), "/usr/local/bin", bin)
			write(t, names[i], strings.NewReplacer(change...).Replace(text), 0o600)
		}
		return job(t, dir, os.Environ(), "", append([]string{"systemd-analyze", "verify", "--man=no"}, names...)...)
	}
	if code, out := verify(t); code != 0 || strings.Contains(out, "contend") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, planted := range [][]string{
		{bin, "/nowhere"},
		{"Type=oneshot", "Typ=oneshot"},
		{"Type=oneshot", "Type=onceshot"},
		{"@system-service", "@no-such-set"},
		{"2h 30min", "long"},
		{"OnCalendar=*-*-*", "OnCalendar=*-*-*-*"},
	} {
		if _, out := verify(t, planted...); !strings.Contains(out, "contend-nightly.") {
			t.Errorf("%v is not seen: %s", planted, out)
		}
	}
}

// workflow is what is looked at of a workflow.
type workflow struct {
	On struct {
		Schedule []struct{ Cron string }
	}
	Concurrency struct {
		Group            string
		CancelInProgress bool `yaml:"cancel-in-progress"`
	}
	Permissions map[string]string
	Jobs        map[string]struct {
		TimeoutMinutes int `yaml:"timeout-minutes"`
		Steps          []step
	}
}

type step struct {
	ID, Name, If, Uses, Run string
	Env                     map[string]string
	With                    map[string]any
}

// workspace is where the steps of a workflow are played.
type workspace struct {
	dir, artifacts, temp string
	environ              []string
	values               map[string]string // of ${{ }}
}

// play runs the steps of a job as a runner does, and tells whether they all were
// good.
func (w *workspace) play(t *testing.T, steps []step) (good bool, out string) {
	t.Helper()
	good = true
	outcomes := make(map[string]bool)
	path := filepath.Join(w.temp, "path")
	for _, s := range steps {
		switch always, needed, _ := strings.Cut(s.If, " && "); {
		case s.If == "" && !good, needed != "" && !outcomes[strings.TrimSuffix(strings.TrimPrefix(needed, "steps."), ".outcome == 'success'")]:
			continue
		case always != "" && always != "always()":
			t.Fatalf("if: %s", s.If)
		}
		switch action, _, _ := strings.Cut(s.Uses, "@"); action {
		case "actions/checkout", "actions/setup-go":
			if s.Uses == "actions/setup-go" && s.With["go-version-file"] != "go.mod" {
				t.Errorf("%v", s.With)
			}
		case "actions/upload-artifact":
			kept := filepath.Join(w.artifacts, s.With["name"].(string))
			if err := os.RemoveAll(kept); err != nil {
				t.Fatal(err)
			}
			for file := range strings.FieldsSeq(s.With["path"].(string)) {
				text, err := os.ReadFile(filepath.Join(w.dir, file))
				if errors.Is(err, os.ErrNotExist) {
					continue
				}
				if err := cmp.Or(err, os.MkdirAll(kept, 0o700)); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(kept, filepath.Base(file)), string(text), 0o644)
			}
		case "":
			environ := slices.Clone(w.environ)
			for name, value := range s.Env {
				environ = append(environ, name+"="+regexp.MustCompile(`\${{ .*? }}`).ReplaceAllStringFunc(value, func(e string) string {
					value, ok := w.values[strings.Trim(e, "${} ")]
					if !ok {
						t.Errorf("%s is %s", name, e)
					}
					return value
				}))
			}
			script, dir := filepath.Join(w.temp, "step.sh"), w.dir
			write(t, script, s.Run, 0o600)
			if strings.HasPrefix(s.Run, "go build") {
				dir = ".."
			}
			added, _ := os.ReadFile(path)
			environ = append(environ, "GITHUB_PATH="+path, "PATH="+strings.ReplaceAll(string(added), "\n", ":")+os.Getenv("PATH"))
			code, text := job(t, dir, environ, "", "bash", "-e", script)
			out += text
			good = good && code == 0
			outcomes[s.ID] = code == 0
		default:
			t.Errorf("uses %s", s.Uses)
		}
	}
	return good, out
}

func TestExampleWorkflow(t *testing.T) {
	t.Parallel()
	var flow workflow
	if err := yaml.Unmarshal([]byte(example(t, "github-nightly.yml")), &flow); err != nil {
		t.Fatal(err)
	}
	night := flow.Jobs["night"]
	if len(flow.Jobs) != 1 || len(flow.On.Schedule) != 1 || flow.Concurrency.Group == "" || flow.Concurrency.CancelInProgress ||
		fmt.Sprint(flow.Permissions) != "map[actions:read contents:read]" {
		t.Errorf("%+v", flow)
	}
	if _, err := cronjobOf(flow.On.Schedule[0].Cron + " x"); err != nil {
		t.Error(err)
	}
	for _, s := range night.Steps {
		if s.Uses != "" && !regexp.MustCompile(`^actions/[a-z-]+@v[0-9]+$`).MatchString(s.Uses) {
			t.Errorf("uses %s", s.Uses)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("what an expression gives becomes a part of the script: %s", s.Run)
		}
		if strings.Contains(s.Run, " --within ") && within(t, s.Run)+10*time.Minute > time.Duration(night.TimeoutMinutes)*time.Minute {
			t.Errorf("it is stopped after %d minutes: %s", night.TimeoutMinutes, s.Run)
		}
	}

	w := workspace{artifacts: t.TempDir(), temp: t.TempDir(), values: map[string]string{"github.token": "t0ken",
		"secrets.CONTEND_SITE": site(t), "secrets.CONTEND_FORGE_TOKEN": "any", "vars.CONTEND_SITE_NAME": "ours"}}
	summary := filepath.Join(t.TempDir(), "summary")
	var names []string
	for name := range w.values {
		if _, variable, _ := strings.Cut(name, "."); variable != "token" {
			names = append(names, variable)
		}
	}
	if slices.Sort(names); strings.Join(names, " ") != namesOf(assigned(example(t, "night.yaml"))) {
		t.Errorf("it sets %s", names)
	}
	// gh knows of an artifact if there is one, and gets it.
	gh := map[string]string{"gh": "cd " + w.artifacts + `
[ "$GH_TOKEN" = t0ken ] || exit 1
case "$1 $2 $3 $4 $5 $6" in
"api repos/us/contend/actions/artifacts?name=contend-results&per_page=100 --jq "*) [ ! -d contend-results ] || echo 17 ;;
"run download 17 --name contend-results --dir") cp contend-results/* "$OLDPWD/$7/" ;;
*) exit 1 ;;
esac
`}
	// play plays a night on a runner that has some programs.
	play := func(t *testing.T, suite string, programs map[string]string, more ...string) (bool, string) {
		t.Helper()
		w.dir = t.TempDir()
		if err := os.Mkdir(filepath.Join(w.dir, "examples"), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(w.dir, "examples", "night.yaml"), suite, 0o600)
		bin := t.TempDir()
		for name, text := range programs {
			write(t, filepath.Join(bin, name), "#!/bin/sh\n"+text, 0o700)
		}
		write(t, filepath.Join(w.temp, "path"), bin+"\n", 0o600)
		w.environ = append(append(os.Environ(), "RUNNER_TEMP="+w.temp, "GITHUB_REPOSITORY=us/contend", "GITHUB_REF_NAME=main", "GITHUB_STEP_SUMMARY="+summary), more...)
		return w.play(t, night.Steps)
	}
	kept := filepath.Join(w.artifacts, "contend-results", "results.db")
	if good, out := play(t, example(t, "night.yaml"), gh, "CONTEND_DRY_RUN=true"); !good || !strings.Contains(out, "Plan of contend ttl-ghost") {
		t.Errorf("planned: %s", out)
	}
	if good, out := play(t, shortNight, gh); !good {
		t.Errorf("the first night: %s", out)
	}
	wantRuns(t, kept, 1)
	if good, out := play(t, redNight, gh); good || !strings.Contains(out, "1 held, 1 violated") {
		t.Errorf("the second night: %s", out)
	}
	wantRuns(t, kept, 3)
	entries, err := os.ReadDir(filepath.Dir(kept))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v are kept", err, entries)
	}
	// Where gh fails there is no night, and the store stays.
	if good, out := play(t, shortNight, map[string]string{"gh": "exit 1\n"}); good || strings.Contains(out, "held") {
		t.Errorf("the third night: %s", out)
	}
	wantRuns(t, kept, 3)
	// What a night has stored that is killed in the middle of a watch is kept too.
	killed := map[string]string{"gh": gh["gh"], "contend": `
"$RUNNER_TEMP/bin/contend" "$@" &
until "$RUNNER_TEMP/bin/contend" results ghosts --store store/results.db 2>&1 | grep -q '^ *contend-'; do sleep 0.1; done
kill -9 $!
wait $!
`}
	if good, out := play(t, shortNight+"  - {scenario: ttl-ghost, target: \"${CONTEND_SITE}\", keys: 5, watch: 1h, expect-verdict: violated}\n", killed); good {
		t.Errorf("the fourth night: %s", out)
	}
	if good, out := play(t, shortNight, gh); !good {
		t.Errorf("the fifth night: %s", out)
	}
	wantRuns(t, kept, 6)
	text, err := os.ReadFile(summary)
	if err != nil || bytes.Count(text, []byte("## contend nightly examples/night.yaml")) != 3 || !bytes.Contains(text, []byte("1 held, 1 violated")) {
		t.Errorf("%v, the summary is\n%s", err, text)
	}
}

// The page about schedules is followed step by step, in a folder that has the
// examples.
func TestDocsScheduleIt(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	if err := os.CopyFS(filepath.Join(r.dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.EvalSymlinks(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, b := range blocksOf(t, "schedule-it.md") {
		if b.name != "" {
			write(t, filepath.Join(r.dir, b.name), r.stand.Replace(b.text), 0o600)
			continue
		}
		for _, s := range samplesOf("```console\n" + b.text + "```\n") {
			ran++
			if strings.HasPrefix(s.command, "contend sim serve") {
				port := regexp.MustCompile(`127\.0\.0\.1:\d+`)
				r.stand = strings.NewReplacer(port.FindString(s.command), port.FindString(r.serve(t, s.command)))
				continue
			}
			got := strings.ReplaceAll(r.shell(t, s.command), here, "/home/you")
			if s.output == "" && got == "" {
				t.Errorf("$ %s prints nothing", s.command)
			}
			if s.output != "" && upToNumbers(got) != upToNumbers(s.output) {
				t.Errorf("$ %s\nprints\n%s\nthe page says\n%s", s.command, got, s.output)
			}
		}
	}
	if ran != 9 {
		t.Errorf("%d commands ran, want 9", ran)
	}
}

// The page names the examples, and every exit status.
func TestDocsScheduleItNamesEverything(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/schedule-it.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\(\.\./(examples/[^)]*)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, status := range []int{0, 1, 2, 3, 4, 5, 130} {
		if !strings.Contains(string(text), fmt.Sprintf("\n| %d | ", status)) {
			t.Errorf("exit status %d is missing", status)
		}
	}
}
