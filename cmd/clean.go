package cmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"contend/cmd/exit"
	"contend/cmd/paste"
	"contend/cmd/quota"
	"contend/cmd/watch"
	"contend/report"
	"contend/report/store"
	"contend/runner"
	"contend/targets"
	"contend/targets/all"
)

// youngRun is the age under which a run may still be going on.
const youngRun = time.Hour

// cleaner is what clean was asked to do.
type cleaner struct {
	console
	target, run, prefix, store string
	byAge, force, dryRun       bool
	olderThan, timeout         time.Duration
	now                        time.Time
}

func newClean(c console) *cobra.Command {
	clean := cleaner{console: c}
	cmd := &cobra.Command{
		Use: "clean", Short: "remove the keys that a killed run left behind", GroupID: "other", Args: noArguments,
		Long: `clean removes from a target the keys of one run (--run ID), or of every run that began longer ago than --older-than, and
lists them again to see that they are gone. Every key of contend begins with --key-prefix and the ID of its run, which tells
when that began; other keys are never touched.
Left alone, and told with the command that removes them, are
  runs that began less than an hour ago, which may be going on: without its keys a race finds violations that are none;
  keys that a store of results still watches for ttl-ghost (--store).
They are removed where --run names their run, or with --older-than D --force. A key that a store watched is closed there.
Exit status: 0 all is gone that was to be removed, 2 the command line is wrong, 4 it could not be removed, or is still there.`,
		Example: `  contend clean -t redis://127.0.0.1:6379 --dry-run              # which runs have keys there
  contend clean -t redis://127.0.0.1:6379 --run 01J…             # those of one run
  contend clean -t redis://127.0.0.1:6379 --older-than 2d`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			clean.byAge, clean.now = cmd.Flags().Changed("older-than"), time.Now()
			if !cmd.Flags().Changed("store") {
				clean.store = usualStore()
			}
			if err := clean.check(); err != nil {
				return err
			}
			t, err := all.Open(clean.target)
			if err != nil {
				return err
			}
			defer t.Close()
			return clean.clean(cmd.Context(), t)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&clean.target, "target", "t", defaultTarget, "the `URL` to clean")
	fs.StringVar(&clean.run, "run", "", "remove the keys of the run with this `ID`")
	ageVar(fs, &clean.olderThan, "older-than", "remove the keys of every run that began longer ago, such as 36h or 2d")
	fs.BoolVar(&clean.force, "force", false, "with --older-than: those of young runs and those that are watched too")
	fs.BoolVar(&clean.dryRun, "dry-run", false, "list the runs that have keys there, and remove nothing")
	fs.StringVar(&clean.prefix, "key-prefix", paste.DefaultPrefix, "what the keys begin with")
	fs.StringVar(&clean.store, "store", "", "leave alone what this `FILE` of results still watches (default: the user's own, where there is one; \"\": none)")
	fs.DurationVar(&clean.timeout, "timeout", 10*time.Second, "of one request")
	return cmd
}

// usualStore is the user's own, where it is there.
func usualStore() string {
	file, err := store.DefaultFile()
	if err != nil {
		return ""
	}
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

func (c *cleaner) check() error {
	if err := checkPrefix(c.prefix); err != nil {
		return err
	}
	c.run = strings.ToUpper(c.run)
	_, wrong := ulid.ParseStrict(c.run)
	switch {
	case c.run != "" && c.byAge, c.run == "" && !c.byAge && !c.dryRun:
		return errors.New("clean: needs either --run ID or --older-than D; --dry-run lists what is there")
	case c.run != "" && wrong != nil:
		return fmt.Errorf("--run %q: is not the ID of a run; every report shows it, and --dry-run lists those with keys", c.run)
	case c.force && !c.byAge:
		return errors.New("--force: goes with --older-than; what --run names is removed anyway")
	case c.timeout <= 0:
		return fmt.Errorf("--timeout %s: must be more than nothing", c.timeout)
	default:
		return nil
	}
}

func (c *cleaner) clean(ctx context.Context, t targets.Target) error {
	d := t.Describe()
	if d.Volatile {
		fmt.Fprintf(c.out, "%s holds nothing of earlier runs: its keys die with the process\n", d.URL)
		return nil
	}
	watched, err := c.watched()
	if err != nil {
		return err
	}
	prefix := c.prefix
	if c.run != "" {
		prefix += c.run + "-"
	}
	deletes, _, err := t.List(ctx, prefix)
	if err != nil {
		return exit.Connecting(fmt.Errorf("clean: %w", err))
	}
	runs := c.runs(deletes, watched)
	if c.dryRun {
		return c.list(runs, d.URL)
	}
	return c.remove(ctx, t, prefix, runs, watched)
}

// watched gives the keys that the store still watches.
func (c *cleaner) watched() (map[string]*runner.Ghost, error) {
	if c.store == "" {
		return nil, nil
	}
	var keys map[string]*runner.Ghost
	err := withStore(c.store, store.OpenToRead, func(s *store.Store) (err error) {
		keys, err = watch.Watched(s)
		return err
	})
	return keys, err
}

// cleanRun is a run with keys at the target.
type cleanRun struct {
	id      string
	age     time.Duration
	keys    int
	watched int          // of the keys
	deletes []targets.Op // of those to be removed
	why     string       // the others are left alone; "": there are none
	asked   bool         // for
}

// runs sorts the keys by their run, the oldest first, and decides what is removed.
func (c *cleaner) runs(deletes []targets.Op, watched map[string]*runner.Ghost) []*cleanRun {
	byID := make(map[string]*cleanRun)
	for _, op := range deletes {
		id := runner.RunOf(c.prefix, op.Key)
		began, err := ulid.ParseStrict(id)
		if err != nil {
			continue // somebody else's
		}
		run := byID[id]
		if run == nil {
			run = &cleanRun{id: id, age: max(0, c.now.Sub(ulid.Time(began.Time())))}
			byID[id] = run
		}
		run.keys++
		if watched[op.Key] != nil {
			run.watched++
		}
		run.deletes = append(run.deletes, op)
	}
	for _, run := range byID {
		c.spare(run, watched)
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b *cleanRun) int { return strings.Compare(a.id, b.id) })
}

// spare takes out of a run's deletes what is left alone.
func (c *cleaner) spare(run *cleanRun, watched map[string]*runner.Ghost) {
	run.asked = c.run != "" || !c.byAge || run.age > c.olderThan
	switch {
	case c.run != "":
	case !run.asked:
		run.deletes, run.why = nil, "it is not older than "+(*age)(&c.olderThan).String()
	case c.force:
	case run.age < youngRun:
		run.deletes, run.why = nil, "it is younger than an hour and may be going on"
	case run.watched > 0:
		run.deletes = slices.DeleteFunc(run.deletes, func(op targets.Op) bool { return watched[op.Key] != nil })
		run.why = c.store + " still watches them"
	}
}

// command is what removes the keys of a run whatever is to be said for them.
func (c *cleaner) command(run string) string {
	return paste.Clean(all.Redact(c.target), run, c.prefix)
}

// list is --dry-run.
func (c *cleaner) list(runs []*cleanRun, url string) error {
	list := report.Table{Name: "runs", Title: fmt.Sprintf("%s with keys that begin with %s on %s; nothing was removed", count(len(runs), "run"), c.prefix, url),
		Columns: []report.Column{{Head: "run"}, {Head: "age"}, {Head: "keys"}, {Head: "watched"}, {Head: "to be removed"}}}
	spared := false
	for _, run := range runs {
		unit := time.Second
		if run.age >= youngRun {
			unit = time.Minute
		}
		old := run.age.Truncate(unit)
		list.Rows = append(list.Rows, []any{run.id, (*age)(&old).String(), run.keys, run.watched, len(run.deletes)})
		if run.why != "" {
			list.Notes = append(list.Notes, fmt.Sprintf("Run %s is left alone: %s.", run.id, run.why))
			spared = true
		}
	}
	if spared {
		list.Notes = append(list.Notes, "What is left alone is removed by its name: "+c.command("ID"))
	}
	to, err := outputsOf(nil, false)
	if err != nil {
		return err
	}
	return report.WriteAll(to, list, c.out, screenOf(c.out, false))
}

func (c *cleaner) remove(ctx context.Context, t targets.Target, prefix string, runs []*cleanRun, watched map[string]*runner.Ghost) error {
	var deletes []targets.Op
	for _, run := range runs {
		deletes = append(deletes, run.deletes...)
	}
	d := t.Describe()
	removal, err := runner.Remove(ctx, t, prefix, deletes, c.timeout, quota.Limits(d, 0, 0), report.NewProgress(c.err, false, "keys", 0, 0))
	if err != nil {
		return exit.Connecting(fmt.Errorf("clean: %w", err))
	}
	fmt.Fprintf(c.out, "removed %s that begin with %s from %s\n", count(removal.Removed, "key"), prefix, d.URL)
	for _, run := range runs {
		if kept := run.keys - len(run.deletes); kept > 0 && run.asked {
			fmt.Fprintf(c.out, "left alone: %s of run %s: %s; remove them with: %s\n", count(kept, "key"), run.id, run.why, c.command(run.id))
		}
	}
	if err := c.closeWatched(deletes, watched, removal); err != nil {
		return exit.Failed(fmt.Errorf("clean: the keys were removed, and the store still watches them: %w", err))
	}
	if removal.Left != nil {
		return exit.Failed(fmt.Errorf("clean: %w", removal.Left))
	}
	return nil
}

// closeWatched tells the store of what was removed: a watch that goes on would take
// it for expired keys that are free.
func (c *cleaner) closeWatched(deletes []targets.Op, watched map[string]*runner.Ghost, removal runner.Removal) error {
	closed := watch.CloseRemoved(watched, deletes, removal.Left)
	if len(closed) == 0 {
		return nil
	}
	fmt.Fprintf(c.out, "closed in %s: the watch of %s\n", c.store, count(len(closed), "key"))
	return withStore(c.store, store.OpenToChange, func(s *store.Store) error { return s.UpdateGhosts(closed) })
}
