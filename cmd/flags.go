package cmd

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/pflag"

	"contend/cmd/paste"
	"contend/cmd/quota"
	"contend/report"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// commonFlags are the flags that every scenario has.
type commonFlags struct {
	target       string
	timeout      time.Duration
	rate         float64
	skipControls bool
	valueSize    int
	keyPrefix    string
	dryRun       bool
	seed         string
	outputs      []string
	record       string
	store        string
	// unjudged: the scenario has no controls, no verdict, and nothing drawn at random.
	unjudged bool
	// storeByDefault: results are kept in the user's own store unless --store says
	// otherwise.
	storeByDefault, storeGiven bool
	expect                     []string
	expectVerdict              string
	labels                     []string
	quiet                      bool
	noProgress                 bool
	noColour                   bool
}

// contestFlags are those of a race.
type contestFlags struct {
	commonFlags
	contenders    int
	several       []int // --contenders, where it has more than one number
	rounds        int
	maxRounds     int
	duration      time.Duration
	release       string
	stagger       time.Duration
	sweep         runner.Sweep // where Most is above 0
	unguarded     bool
	controlRounds int
	minContended  int
	thresholds    scenarios.Thresholds
	settle        time.Duration
	settleGiven   bool
	late          time.Duration
}

const (
	leastLate     = time.Second
	goingOn       = 10 // times --rounds are raced at most
	defaultTarget = "sim:"
)

func (f *contestFlags) register(fs *pflag.FlagSet, own *flag.FlagSet) {
	f.registerTarget(fs, defaultTarget)
	fs.AddGoFlagSet(own)
	if f.contenders == 0 {
		f.contenders = 12
	}
	fs.VarP((*crowd)(f), "contenders", "n", "how many are released at once; several numbers, as 2,4,8, make a run each")
	fs.IntVarP(&f.rounds, "rounds", "r", 20, "independent rounds that count, each on a fresh key; the run goes on until so many do")
	fs.IntVar(&f.maxRounds, "max-rounds", 0, "rounds raced at most (default: 10 times --rounds; --rounds where the target documents a quota)")
	fs.DurationVar(&f.duration, "duration", 0, "run rounds until the time is up, instead of --rounds")
	fs.StringVar(&f.release, "release", "auto", "how contenders are released: gate, last-byte (all of a request is sent before but its last byte), or auto (the gate; last-byte for HTTP over TLS)")
	fs.DurationVar(&f.stagger, "stagger", 0, "delay between one contender's release and the next")
	fs.DurationVar(&f.sweep.Most, "offset-sweep", 0, "map the race window: of two contenders (-n 2) the second is released from so long before the first to so long after it, "+
		"for --rounds at each offset; never held: the exit status is 1 or 3")
	fs.IntVar(&f.sweep.Steps, "offset-steps", 21, "offsets of --offset-sweep, an odd number: the one in the middle is 0")
	fs.BoolVar(&f.unguarded, "unguarded", false, "run only the negative control, the unguarded twin")
	fs.IntVar(&f.controlRounds, "control-rounds", 3, "rounds of the negative control (the unguarded twin) before the scenario")
	fs.IntVar(&f.minContended, "min-contended", scenarios.DefaultMinContended, "counted rounds that held needs")
	usual := scenarios.DefaultThresholds
	fs.IntVar(&f.thresholds.Rivals, "min-rivals", 0, "rivals that the winner must have met at the guard for a round to count (default: half of the others, 5 at most)")
	fs.Float64Var(&f.thresholds.Uncertain, "max-uncertain", usual.Uncertain, "share of a round's contenders that may be throttled, invalid, not sent, or unknown after the read-back")
	fs.Float64Var(&f.thresholds.UncertainRounds, "max-uncertain-rounds", usual.UncertainRounds, "share of the raced rounds that may be uncertain for held")
	fs.DurationVar(&f.thresholds.Reach, "max-reach", 0, "count only rounds whose reach is at most this (default: all)")
	registerRemoved(fs)
	fs.DurationVar(&f.settle, "settle", 0, "how long a round with an unknown outcome waits before its read-back, and a missing or old state is doubted (default: the timeout)")
	fs.DurationVar(&f.late, "late", leastLate, "at least so long after the last answer on a key it is read once more")
	f.registerRest(fs)
}

// removedFlag is a threshold that there was before: it says by what it was replaced.
type removedFlag struct{ by string }

// Set refuses every value.
func (r removedFlag) Set(string) error { return errors.New(r.by) }
func (removedFlag) String() string     { return "" }

// Type is none that a value could have.
func (removedFlag) Type() string { return "removed" }

func registerRemoved(fs *pflag.FlagSet) {
	const rivals = "is no more: a round counts when its winner met rivals at the guard; use --min-rivals"
	for name, by := range map[string]string{"min-in-flight": rivals, "min-winner-overlap": rivals, "min-guard-contention": rivals,
		"min-contended-share": "is no more: the run goes on until --rounds count, and held needs --min-contended of them, by --min-rivals",
		"max-troubled":        "is no more: use --max-uncertain, and --min-rivals for what counts"} {
		fs.Var(removedFlag{by}, name, by)
		_ = fs.MarkHidden(name)
	}
}

// crowd is the flag --contenders: a number, or several.
type crowd contestFlags

// Set reads numbers with commas between.
func (c *crowd) Set(text string) error {
	c.several = nil
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return errors.New("needs a whole number, or several with commas between")
		}
		c.several = append(c.several, n)
	}
	c.contenders = c.several[0]
	if len(c.several) == 1 {
		c.several = nil
	}
	return nil
}

// String writes what Set reads.
func (c *crowd) String() string {
	if len(c.several) == 0 {
		return strconv.Itoa(c.contenders)
	}
	var parts []string
	for _, n := range c.several {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}

// Type is that of a single number, which a suite file gives.
func (c *crowd) Type() string { return "int" }

// registerTarget is the head of a scenario's flags, registerRest their end.
func (f *commonFlags) registerTarget(fs *pflag.FlagSet, target string) {
	fs.SortFlags = false
	fs.StringVarP(&f.target, "target", "t", target, "the `URL` to run against; `contend targets` lists the kinds")
}

func (f *commonFlags) registerRest(fs *pflag.FlagSet) {
	fs.DurationVar(&f.timeout, "timeout", 10*time.Second, "of one request; when it runs out the outcome is unknown, not lost")
	fs.Float64Var(&f.rate, "rate", 0, "requests a second at most (default: 90 % of the target's documented limit; none for sim:)")
	if !f.unjudged {
		fs.BoolVar(&f.skipControls, "skip-controls", false, "skip the controls that go before the scenario; at best inconclusive then")
		fs.IntVar(&f.valueSize, "value-size", 64, "bytes of body in each write")
	}
	fs.StringVar(&f.keyPrefix, "key-prefix", paste.DefaultPrefix, "what every key of the run begins with")
	fs.BoolVar(&f.dryRun, "dry-run", false, "print the plan and send nothing")
	if !f.unjudged {
		fs.StringVar(&f.seed, "seed", "", "of the random source, a whole number (default: random, printed)")
	}
	fs.StringVar(&f.record, "record", "", "write every request and reply to this `FILE`, as JSON lines")
	fs.StringVar(&f.store, "store", "", "keep the result in this `FILE` (SQLite)")
	fs.StringArrayVar(&f.expect, "expect", nil, "threshold such as 'p90(won)<250ms' or 'throttled==0'; repeatable")
	if !f.unjudged {
		fs.StringVar(&f.expectVerdict, "expect-verdict", "held", "held, or violated for what is known to be broken")
	}
	fs.StringArrayVar(&f.labels, "label", nil, "`KEY=VALUE` that goes into every output; repeatable")
	fs.BoolVar(&f.noProgress, "no-progress", false, "report nothing on standard error while running")
	registerOutputs(fs, &f.outputs, &f.quiet, &f.noColour)
}

func registerOutputs(fs *pflag.FlagSet, outputs *[]string, quiet, noColour *bool) {
	fs.StringArrayVarP(outputs, "output", "o", nil, "`FORMAT[=FILE]`: table, json, markdown, jira, csv, quiet; repeatable (default table)")
	fs.BoolVarP(quiet, "quiet", "q", false, "the verdict line only: the same as -o quiet --no-progress")
	fs.BoolVar(noColour, "no-color", false, "no colour; also NO_COLOR, TERM=dumb, and off a terminal")
}

var prefixPattern = regexp.MustCompile(`^[a-zA-Z0-9:._#{}-]{1,100}$`)

func checkPrefix(prefix string) error {
	if !prefixPattern.MatchString(prefix) {
		return fmt.Errorf("--key-prefix %q: use 1 to 100 of the characters a-z A-Z 0-9 : . _ - # { }", prefix)
	}
	return nil
}

// openTarget opens a target whose keys can begin with the prefix.
func openTarget(url, prefix string) (targets.Target, error) {
	t, err := all.Open(url)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(prefix, "{}") && !t.Describe().HashTags {
		t.Close()
		return nil, fmt.Errorf("--key-prefix %q: keys of this target cannot hold { or }: leave the hash tag out, which only a Redis Cluster needs", prefix)
	}
	return t, nil
}

// refusals gathers what is wrong with a command line.
type refusals []error

func (r *refusals) refuse(bad bool, format string, a ...any) {
	if bad {
		*r = append(*r, fmt.Errorf(format, a...))
	}
}

// check refuses what can be refused before anything is sent; all of it at once.
func (f *contestFlags) check(fs *pflag.FlagSet) error {
	f.settleGiven = fs.Changed("settle")
	wrong := f.checkSweep(fs)
	for _, n := range append([]int{f.contenders}, f.several...) {
		wrong.refuse(n < 2, "--contenders %d: at least 2 must contend, or nobody has a rival", n)
		wrong.refuse(n >= 2 && f.thresholds.Rivals > n-1, "--min-rivals %d: of %d contenders the winner meets %d at most", f.thresholds.Rivals, n, n-1)
		wrong.refuse(n > 100_000, "--contenders %d: more than 100000 do not fit one machine", n)
	}
	wrong.refuse(f.rounds < 1, "--rounds %d: at least 1 is needed", f.rounds)
	wrong.refuse(fs.Changed("duration") && f.duration <= 0, "--duration %s: must be above 0", f.duration)
	wrong.refuse(fs.Changed("duration") && fs.Changed("rounds"), "--duration and --rounds exclude each other: leave one out")
	wrong.refuse(f.stagger < 0, "--stagger %s: must not be negative", f.stagger)
	wrong.refuse(f.late < leastLate, "--late %s: at least %s is needed, or a write that is applied late would not be seen", f.late, leastLate)
	wrong.refuse(f.settle < 0, "--settle %s: must not be negative", f.settle)
	wrong.refuse(!slices.Contains(releases, f.release), "--release %q: there are %s", f.release, strings.Join(releases, ", "))
	wrong.refuse(f.release == string(targets.LastByte) && f.stagger > 0, "--stagger %s: goes with the gate; by --release last-byte all are released at once", f.stagger)
	wrong.refuse(f.release == string(targets.LastByte) && f.sweep.Most > 0, "--offset-sweep %s: goes with the gate; by --release last-byte all are released at once", f.sweep.Most)
	wrong.refuse(f.controlRounds < 1, "--control-rounds %d: at least 1 is needed; --skip-controls does without", f.controlRounds)
	wrong.refuse(f.minContended < 1, "--min-contended %d: at least 1 is needed", f.minContended)
	wrong.refuse(fs.Changed("min-rivals") && f.thresholds.Rivals < 1, "--min-rivals %d: at least 1 is needed: a winner that met nobody is no contest", f.thresholds.Rivals)
	wrong.refuse(fs.Changed("max-reach") && f.thresholds.Reach <= 0, "--max-reach %s: must be above 0", f.thresholds.Reach)
	wrong.refuse(fs.Changed("max-rounds") && f.maxRounds < f.rounds, "--max-rounds %d: must not be below --rounds %d", f.maxRounds, f.rounds)
	wrong.refuse(fs.Changed("max-rounds") && fs.Changed("duration"), "--max-rounds: goes with --rounds, not with --duration")
	for _, name := range []string{"max-uncertain", "max-uncertain-rounds"} {
		share, _ := fs.GetFloat64(name)
		wrong.refuse(!(share >= 0 && share <= 1), "--%s %v: must be a share from 0 to 1", name, share)
	}
	return errors.Join(append(wrong, f.commonFlags.check(fs)...)...)
}

// checkSweep gives what is wrong with a sweep; one has two contenders.
func (f *contestFlags) checkSweep(fs *pflag.FlagSet) (wrong refusals) {
	if !fs.Changed("offset-sweep") {
		wrong.refuse(fs.Changed("offset-steps"), "--offset-steps: goes with --offset-sweep")
		f.sweep = runner.Sweep{}
		return wrong
	}
	if !typed(fs, "contenders") {
		f.contenders, f.several = 2, nil
	}
	for _, n := range append([]int{f.contenders}, f.several...) {
		wrong.refuse(n != 2, "--contenders %d: --offset-sweep has 2; leave one of the two out", n)
	}
	s := f.sweep
	steps := s.Steps >= runner.LeastOffsetSteps && s.Steps <= runner.MostOffsetSteps && s.Steps%2 == 1
	wrong.refuse(!steps, "--offset-steps %d: an odd number from %d to %d, so that the offset in the middle is 0", s.Steps, runner.LeastOffsetSteps, runner.MostOffsetSteps)
	wrong.refuse(s.Most <= 0 || s.Most > runner.MostOffset, "--offset-sweep %s: must be above 0, and %s at most", s.Most, runner.MostOffset)
	wrong.refuse(steps && s.Most > 0 && s.Most <= runner.MostOffset && !s.Valid(), "--offset-sweep %s: with --offset-steps %d the offsets are less than %s apart; "+
		"raise the one or lower the other", s.Most, s.Steps, runner.LeastOffsetStep)
	for name, given := range map[string]bool{"duration": f.duration != 0, "max-rounds": f.maxRounds != 0, "stagger": f.stagger != 0, "unguarded": f.unguarded} {
		wrong.refuse(given, "--%s: does not go with --offset-sweep, which releases two contenders for --rounds at each offset", name)
	}
	return wrong
}

// check gives what is wrong with the flags that every scenario has.
func (f *commonFlags) check(fs *pflag.FlagSet) []error {
	wrong := refusals{}
	wrong.refuse(f.timeout < time.Millisecond, "--timeout %s: at least 1ms is needed", f.timeout)
	wrong.refuse(fs.Changed("rate") && (!(f.rate > 0) || math.IsInf(f.rate, 0)), "--rate %v: must be a number above 0; leave it out for the target's own limit", f.rate)
	wrong.refuse(f.valueSize < 0 || f.valueSize > 10<<20, "--value-size %d: from 0 to 10485760 bytes", f.valueSize)
	wrong.refuse(!f.unjudged && f.expectVerdict != "held" && f.expectVerdict != "violated", "--expect-verdict %q: there are held, violated", f.expectVerdict)
	for _, err := range []error{checkPrefix(f.keyPrefix), report.CheckExpectations(f.expect)} {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	if f.seed != "" {
		_, err := strconv.ParseUint(f.seed, 10, 64)
		wrong.refuse(err != nil, "--seed %q: must be a whole number from 0 to %d", f.seed, uint64(math.MaxUint64))
	}
	labels := make(map[string]bool)
	for _, l := range f.labels {
		key, _, ok := strings.Cut(l, "=")
		wrong.refuse(!ok || key == "", "--label %q: needs the form KEY=VALUE", l)
		wrong.refuse(labels[key], "--label %q: there is another label of that name; each can be given once", l)
		labels[key] = true
	}
	wrong.refuse(fs.Changed("record") && f.record == "", "--record \"\": name a file, or leave it out")
	return wrong
}

// seedOf gives the seed that was asked for, or a random one.
func (f *commonFlags) seedOf() uint64 {
	if f.seed == "" {
		var b [8]byte
		_, _ = rand.Read(b[:])
		return binary.NativeEndian.Uint64(b[:])
	}
	seed, _ := strconv.ParseUint(f.seed, 10, 64)
	return seed
}

// setup is what the plan of a run of any shape has.
func (f *commonFlags) setup(run string, seed uint64, d targets.Description) runner.Setup {
	return runner.Setup{Run: run, Prefix: f.keyPrefix, Timeout: f.timeout, Limits: quota.Limits(d, f.rate, f.valueSize), Seed: seed, ValueSize: f.valueSize, SkipControls: f.skipControls}
}

// plan gives what is to be run, on a target that describes itself so.
func (f *contestFlags) plan(s scenarios.Contest, d targets.Description) (runner.Plan, error) {
	raced, twin := report.Raced(s, f.unguarded)
	p := runner.Plan{Setup: f.setup(ulid.Make().String(), f.seedOf(), d), Contenders: f.contenders, Rounds: f.rounds, Duration: f.duration, Settle: f.settle,
		Late: f.late, Stagger: f.stagger, Sweep: f.sweep, Race: raced, ControlRounds: f.controlRounds, Unguarded: twin == nil}
	if twin != nil {
		p.Twin = twin
	}
	switch {
	case f.sweep.Steps > 0:
		p.Rounds *= f.sweep.Steps
		p.MaxRounds = p.Rounds
	case f.duration > 0:
		p.Rounds = 0
	case f.maxRounds > 0:
		p.MaxRounds = f.maxRounds
	case len(d.Limits) > 0:
		p.MaxRounds = p.Rounds
	default:
		p.MaxRounds = goingOn * p.Rounds
	}
	if !f.settleGiven {
		p.Settle = f.timeout
	}
	p.Limits, p.Seed = quota.Limits(d, f.rate, f.valueSize), f.seedOf()
	var err error
	if p.Release, err = f.releaseOn(d, p.Race); err != nil {
		return p, err
	}
	each := p.Race.Requests()
	if p.Twin != nil && !p.SkipControls {
		each = max(each, p.Twin.Requests())
	}
	for _, l := range p.Limits {
		if float64(p.Contenders*each) > l.Requests {
			return p, fmt.Errorf("--contenders %d, each with up to %d requests (the unguarded twin reads and writes), is above the rate of %g requests in %s: "+
				"they could not be released at once; lower it, or raise --rate", p.Contenders, each, l.Requests, l.Per)
		}
	}
	return p, nil
}

// releases are what --release takes.
var releases = []string{"auto", string(targets.Gate), string(targets.LastByte)}

// releaseOn gives how contenders of a race are released at a target that describes itself
// so.
func (f *contestFlags) releaseOn(d targets.Description, race runner.Contest) (targets.Release, error) {
	_, immediate := race.(runner.Immediate)
	asked, able := targets.Release(f.release), slices.Contains(d.Releases, targets.LastByte)
	switch {
	case asked == targets.LastByte && !able:
		var can []string
		for _, driver := range all.Drivers() {
			if slices.Contains(driver.Releases, targets.LastByte) {
				can = append(can, driver.Schemes...)
			}
		}
		return "", fmt.Errorf("--release last-byte: on this target no request can be held back at its last byte; leave it out: targets that can are %s", strings.Join(can, ", "))
	case asked == targets.LastByte && !immediate:
		return "", errors.New("--release last-byte: the contenders of this scenario read first, and a read is not held back; leave it out")
	case asked == targets.LastByte, f.release == "auto" && able && immediate && f.stagger == 0 && f.sweep.Most == 0 && d.Releases[0] == targets.LastByte:
		return targets.LastByte, nil
	}
	return targets.Gate, nil
}

// header is the head of the result of a race.
func (f *contestFlags) header(s scenarios.Scenario, p runner.Plan, d targets.Description, command string) report.RunHeader {
	controlRounds := p.ControlRounds
	if p.Twin == nil || p.SkipControls {
		controlRounds = 0
	}
	header := f.commonFlags.header(s, p.Run, d, command, p.Seed, p.Limits)
	header.Params.Contenders, header.Params.Rounds, header.Params.MaxRounds, header.Params.Duration = p.Contenders, p.Rounds, p.MaxRounds, p.Duration
	header.Params.Settle, header.Params.Late, header.Params.Stagger, header.Params.Release = p.Settle, p.Late, p.Stagger, string(p.Release)
	header.Params.Sweep = p.Sweep
	header.Params.Unguarded, header.Params.ControlRounds = f.unguarded, controlRounds
	header.Params.MinContended, header.Params.Thresholds = f.minContended, f.thresholds
	return header
}

// header is what the results of all scenarios begin with.
func (f *commonFlags) header(s scenarios.Scenario, run string, d targets.Description, command string, seed uint64, limits []targets.Limit) report.RunHeader {
	labels := make(map[string]string)
	for _, l := range f.labels {
		key, value, _ := strings.Cut(l, "=")
		labels[key] = value
	}
	target := report.TargetOf(d)
	target.UnitsEach = d.Units(f.valueSize)
	return report.RunHeader{Run: run, Tool: tool(), Command: command, Scenario: s.Info().Name, Labels: labels, Target: target, Started: time.Now().UTC(),
		Host: report.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Params: report.Params{Timeout: f.timeout, Rate: f.rate, Limits: report.LimitsOf(limits), Seed: strconv.FormatUint(seed, 10),
			SkipControls: f.skipControls, ValueSize: f.valueSize, KeyPrefix: f.keyPrefix, Expect: f.expect, ExpectVerdict: f.expectVerdict}}
}

func tool() report.Tool { return report.Tool{Version: version(), Go: runtime.Version()} }

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// commandLine gives a command that can be pasted: the flags that were set, from
// wherever, with secrets masked.
func commandLine(name string, fs *pflag.FlagSet) string {
	words := []string{"contend", name}
	fs.Visit(func(flag *pflag.Flag) {
		mark := "--" + flag.Name
		if flag.Shorthand != "" {
			mark = "-" + flag.Shorthand
		}
		var values []string
		switch value := flag.Value.(type) {
		case pflag.SliceValue:
			values = value.GetSlice()
		default:
			values = []string{flag.Value.String()}
		}
		for _, v := range values {
			if flag.Name == "target" {
				v = all.Redact(v)
			}
			if flag.Value.Type() == "bool" {
				if v == "true" {
					words = append(words, mark)
				} else {
					words = append(words, mark+"="+v)
				}
				continue
			}
			words = append(words, mark, paste.Quote(v))
		}
	})
	return strings.Join(words, " ")
}
