package cmd

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/targets/all"
)

// ExportSchema is the format of an export in JSON lines.
const ExportSchema = "contend.export/1"

func newResults(c console) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "results", Short: "stored runs, ghosts and trends: list, show, ghosts, trend, export, prune", GroupID: "other", Args: cobra.ArbitraryArgs,
		Long: `results shows and tends what runs have stored with --store. Reading needs no permission to write, and goes on
while others write.`,
		RunE: group,
	}
	cmd.PersistentFlags().StringVar(&file, "store", "", "the `FILE` that runs were stored in (default: the user's own)")
	cmd.AddCommand(newResultsList(c, &file), newResultsShow(c, &file), newResultsGhosts(c, &file), newResultsTrend(c, &file), newResultsExport(c, &file), newResultsPrune(c, &file))
	return cmd
}

// withStore opens the store that was named, or the user's own, for one command.
func withStore(file string, open func(string) (*store.Store, error), do func(*store.Store) error) error {
	if file == "" {
		var err error
		if file, err = store.DefaultFile(); err != nil {
			return err
		}
	}
	s, err := open(file)
	if err == nil {
		defer s.Close()
		err = do(s)
	}
	if errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrFailing) {
		return exit.Failed(err)
	}
	return err
}

// runFilter are the flags that choose runs.
type runFilter struct {
	scenario, target string
	labels           []string
	since            time.Duration
}

func (f *runFilter) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.scenario, "scenario", "", "only runs of this `NAME`")
	fs.StringVarP(&f.target, "target", "t", "", "only runs on this `URL`, or with this in it")
	fs.StringArrayVar(&f.labels, "label", nil, "only runs with this `KEY=VALUE`; repeatable, all are needed")
	ageVar(fs, &f.since, "since", "only runs that started no longer ago, such as 36h or 30d")
}

// runs gives the choice, and how a title tells it.
func (f *runFilter) runs() (which store.Runs, text string, err error) {
	which = store.Runs{Scenario: f.scenario, Target: maskedURL(f.target)}
	var parts []string
	for _, l := range f.labels {
		name, value, ok := strings.Cut(l, "=")
		if !ok || name == "" {
			return which, "", fmt.Errorf("--label %q: needs the form KEY=VALUE", l)
		}
		if which.Labels == nil {
			which.Labels = make(map[string]string)
		}
		which.Labels[name] = value
		parts = append(parts, "labelled "+l)
	}
	if f.scenario != "" {
		parts = append(parts, "of "+f.scenario)
	}
	if f.target != "" {
		parts = append(parts, "on "+which.Target)
	}
	if f.since > 0 {
		which.Since = time.Now().Add(-f.since)
		parts = append(parts, "of the last "+(*age)(&f.since).String())
	}
	return which, strings.Join(parts, " "), nil
}

// maskedURL gives the URL as stored runs have it: without secrets, and with what
// the driver adds. A part of one stays as it is.
func maskedURL(text string) string {
	if !isTarget(text) {
		return text
	}
	if t, err := all.Open(text); err == nil {
		defer t.Close()
		return t.Describe().URL
	}
	return all.Redact(text)
}

// count words a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// title tells what is listed.
func title(n int, thing, filter, file string) string {
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s in %s", count(n, thing), filter, file)), " ")
}

func newResultsList(c console, file *string) *cobra.Command {
	var filter runFilter
	var outputs []string
	var quiet, noColour bool
	cmd := &cobra.Command{
		Use: "list", Short: "one line a run, the newest last", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			to, err := outputsOf(outputs, quiet, storeOf(*file))
			if err != nil {
				return err
			}
			which, text, err := filter.runs()
			if err != nil {
				return err
			}
			return withStore(*file, store.OpenToRead, func(s *store.Store) error {
				list := report.Table{Name: "runs", Whole: []string{"run"}, Columns: []report.Column{{Head: "run", Name: "run"}, {Head: "started UTC", Name: "started"},
					{Head: "", Name: "elapsed_ns"}, {Head: "scenario", Name: "scenario"}, {Head: "target"}, {Name: "target"}, {Name: "simulated"},
					{Name: "server"}, {Name: "tool"}, {Head: "verdict", Name: "verdict"}, {Name: "interrupted"}, {Head: "labels", Name: "labels"}}}
				for r, err := range s.Runs(which) {
					if err != nil {
						return err
					}
					target := r.Target
					if r.Simulated {
						target += " (simulated)"
					}
					list.Rows = append(list.Rows, []any{r.ID, r.Started, r.Elapsed, r.Scenario, target, r.Target, r.Simulated, r.Server, r.Tool,
						r.Verdict, r.Interrupted, r.Labels})
				}
				list.Title = title(len(list.Rows), "run", text, cmp.Or(*file, s.File()))
				return report.WriteAll(to, list, c.out, screenOf(c.out, noColour))
			})
		},
	}
	filter.register(cmd.Flags())
	registerOutputs(cmd.Flags(), &outputs, &quiet, &noColour)
	return cmd
}

func newResultsShow(c console, file *string) *cobra.Command {
	var outputs []string
	var quiet, noColour bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "the result of one run, in any format",
		Long: "show writes the stored result of a run, which its ID names or as much of its beginning as no other has.\nIts exit status is 0 whatever the verdict.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("results show: name one run, by its ID or the beginning of it; `contend results list` shows them")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			to, err := outputsOf(outputs, quiet, storeOf(*file))
			if err != nil {
				return err
			}
			return withStore(*file, store.OpenToRead, func(s *store.Store) error {
				r, err := s.Result(args[0])
				if err != nil {
					return err
				}
				return report.WriteAll(to, r, c.out, screenOf(c.out, noColour))
			})
		},
	}
	registerOutputs(cmd.Flags(), &outputs, &quiet, &noColour)
	return cmd
}

// ghostFilter are the flags that choose ghosts.
type ghostFilter struct {
	run, target, state string
	open               bool
}

func (f *ghostFilter) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.BoolVar(&f.open, "open", false, "only keys that are still to be asked about")
	fs.StringVar(&f.state, "state", "", "only keys that are `STATE`: pending, blocked, visible, free, early, abandoned")
	fs.StringVar(&f.run, "run", "", "only keys of this run, by its `ID` or the beginning of it")
	fs.StringVarP(&f.target, "target", "t", "", "only keys on this `URL`, or with this in it")
}

func (f *ghostFilter) ghosts() (which store.Ghosts, text string, err error) {
	which = store.Ghosts{Run: f.run, Target: maskedURL(f.target), Open: f.open, State: runner.GhostState(f.state), Siblings: true}
	switch which.State {
	case "", runner.GhostPending, runner.GhostBlocked, runner.GhostVisible, runner.GhostFree, runner.GhostEarly, runner.GhostAbandoned:
	default:
		return which, "", fmt.Errorf("--state %q: there are pending, blocked, visible, free, early, abandoned", f.state)
	}
	var parts []string
	if f.open {
		parts = append(parts, "still asked about")
	}
	if f.state != "" {
		parts = append(parts, "that are "+f.state)
	}
	if f.run != "" {
		parts = append(parts, "of run "+f.run)
	}
	if f.target != "" {
		parts = append(parts, "on "+which.Target)
	}
	return which, strings.Join(parts, " "), nil
}

// wants tells whether a key of a run that was chosen is one of those chosen.
func (f *ghostFilter) wants(g *runner.Ghost) bool {
	return !(f.open && g.Closed) && (f.state == "" || f.state == string(g.State))
}

// byRun gives the ghosts run by run, as their ages need.
func byRun(ghosts iter.Seq2[*runner.Ghost, error]) iter.Seq2[[]*runner.Ghost, error] {
	return func(yield func([]*runner.Ghost, error) bool) {
		var run []*runner.Ghost
		for g, err := range ghosts {
			if err != nil {
				yield(nil, err)
				return
			}
			if len(run) > 0 && run[0].Run != g.Run {
				if !yield(run, nil) {
					return
				}
				run = nil
			}
			run = append(run, g)
		}
		if len(run) > 0 {
			yield(run, nil)
		}
	}
}

func newResultsGhosts(c console, file *string) *cobra.Command {
	var filter ghostFilter
	var outputs []string
	var quiet, noColour bool
	cmd := &cobra.Command{
		Use: "ghosts", Short: "one line a key with a time to live, and what is known of it", Args: noArguments,
		Long: `ghosts lists the keys of ttl-ghost with what is known of each:
  pending    not created yet, or not expired yet
  blocked    expired, and refuses create-if-absent as far as is known
  visible    blocks nobody, and is still read
  free       a create was accepted after the expiry
  early      a create was accepted before the expiry
  abandoned  its store died, or nobody knows when it was created: in no statistic
The expiry is by the clock of the machine that ran contend. A key blocked for at least "last blocked" after it, and for at most
"first free".`,
		RunE: func(*cobra.Command, []string) error {
			to, err := outputsOf(outputs, quiet, storeOf(*file))
			if err != nil {
				return err
			}
			which, text, err := filter.ghosts()
			if err != nil {
				return err
			}
			return withStore(*file, store.OpenToRead, func(s *store.Store) error {
				list := report.Table{Name: "ghosts", Whole: []string{"key"}, Columns: report.GhostColumns()}
				for ghosts, err := range byRun(s.Ghosts(which)) {
					if err != nil {
						return err
					}
					list.Rows = append(list.Rows, report.GhostRows(ghosts, filter.wants)...)
				}
				list.Title = title(len(list.Rows), "key", text, cmp.Or(*file, s.File()))
				return report.WriteAll(to, list, c.out, screenOf(c.out, noColour))
			})
		},
	}
	filter.register(cmd.Flags())
	registerOutputs(cmd.Flags(), &outputs, &quiet, &noColour)
	return cmd
}

func newResultsExport(c console, file *string) *cobra.Command {
	var filter runFilter
	var format string
	var ghosts bool
	cmd := &cobra.Command{
		Use: "export", Short: "all that is stored, as JSON lines or CSV", Args: noArguments,
		Long: `export writes the store to standard output, the oldest run first and one thing in memory at a time.
As JSON lines a header is followed by {"run": …}, the whole result, and after each run by {"ghost": …, "probes": […]} for each of
its keys, with every request and reply. As CSV it is a line a run, or with --ghosts a line a key.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "jsonl" && format != "csv" {
				return fmt.Errorf("--format %q: there are jsonl, csv", format)
			}
			if ghosts && format != "csv" {
				return errors.New("--ghosts is for --format csv: JSON lines have them anyway")
			}
			if ghosts && (filter.scenario != "" || len(filter.labels) > 0) {
				return errors.New("--ghosts: keys are chosen by --target and --since; they have no --scenario and no --label")
			}
			which, _, err := filter.runs()
			if err != nil {
				return err
			}
			return withStore(*file, store.OpenToRead, func(s *store.Store) error {
				out := bufio.NewWriter(c.out)
				var err error
				switch {
				case ghosts:
					err = report.StreamCSV(out, report.GhostColumns(), ghostRows(cmd.Context(), s, store.Ghosts{Target: which.Target, Since: which.Since}))
				case format == "csv":
					err = report.StreamCSV(out, report.RunColumns(), runRows(cmd.Context(), s, which))
				default:
					err = exportLines(cmd.Context(), out, s, which)
				}
				if flushErr := out.Flush(); err == nil && flushErr != nil {
					err = exit.Failed(fmt.Errorf("writing the export: %w", flushErr))
				}
				return err
			})
		},
	}
	filter.register(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "jsonl", "`FORMAT`: jsonl or csv")
	cmd.Flags().BoolVar(&ghosts, "ghosts", false, "a line a key instead of a line a run, for --format csv")
	return cmd
}

func runRows(ctx context.Context, s *store.Store, which store.Runs) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for r, err := range s.Results(which) {
			if err == nil && ctx.Err() != nil {
				err = exit.Failed(ctx.Err())
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(report.RunRow(r), nil) {
				return
			}
		}
	}
}

func ghostRows(ctx context.Context, s *store.Store, which store.Ghosts) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for ghosts, err := range byRun(s.Ghosts(which)) {
			if err == nil && ctx.Err() != nil {
				err = exit.Failed(ctx.Err())
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range report.GhostRows(ghosts, func(*runner.Ghost) bool { return true }) {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// exportHeader is the first line of an export.
type exportHeader struct {
	Schema   string    `json:"schema"`
	Tool     string    `json:"tool"`
	Store    string    `json:"store"`
	Exported time.Time `json:"exported"`
}

func exportLines(ctx context.Context, out io.Writer, s *store.Store, which store.Runs) error {
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(exportHeader{ExportSchema, version(), s.File(), time.Now().UTC()}); err != nil {
		return exit.Failed(fmt.Errorf("writing the export: %w", err))
	}
	for e, err := range s.Entries(which) {
		if err == nil && ctx.Err() != nil {
			err = exit.Failed(ctx.Err())
		}
		if err != nil {
			return err
		}
		if err := lines.Encode(e); err != nil {
			return exit.Failed(fmt.Errorf("writing the export: %w", err))
		}
	}
	return nil
}

func newResultsPrune(c console, file *string) *cobra.Command {
	var keep time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use: "prune --keep AGE", Short: "remove old runs with their ghosts and probes", Args: noArguments,
		Long: `prune removes every run that started longer ago than --keep, with its keys and their probes, and gives the room
back to the disk. A run is kept whole while one of its keys is still asked about and its watch has not ended by then.
Nothing is sent to any target.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("keep") {
				return errors.New("prune: needs --keep AGE, such as --keep 400d; --dry-run shows what would be removed")
			}
			before := time.Now().Add(-keep)
			return withStore(*file, store.OpenToChange, func(s *store.Store) error {
				p, err := s.Prune(before, dryRun)
				what := fmt.Sprintf("%s, %s and %s of before %s", count(p.Runs, "run"), count(p.Ghosts, "ghost"), count(p.Probes, "probe"),
					before.UTC().Format("2006-01-02 15:04 UTC"))
				switch {
				case dryRun && err == nil:
					fmt.Fprintf(c.out, "would remove %s; nothing was removed\n", what)
				case err == nil:
					fmt.Fprintf(c.out, "removed %s; the file is %.1f MB smaller\n", what, float64(p.Bytes)/1e6)
				case p.Runs > 0:
					fmt.Fprintf(c.out, "removed %s, and stopped there\n", what)
				}
				if p.Kept > 0 {
					fmt.Fprintf(c.out, "kept %s of before then, with keys that are still watched\n", count(p.Kept, "run"))
				}
				return err
			})
		},
	}
	ageVar(cmd.Flags(), &keep, "keep", "remove what started longer ago, such as 400d or 8w")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be removed, and remove nothing")
	return cmd
}
