package watch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"contend/report/store"
	"contend/runner"
	"contend/scenarios"
	"contend/targets"
	"contend/targets/all"
)

// Opener opens a target by its URL.
type Opener func(url string) (targets.Target, error)

// Volatile tells whether the keys of a target die with its process.
func (open Opener) Volatile(url string) bool {
	t, err := open(url)
	if err != nil {
		return false
	}
	defer t.Close()
	return t.Describe().Volatile
}

// NothingLeft refuses to go on with keys that died with their process.
func NothingLeft(url string) error {
	return fmt.Errorf("--resume: the keys of %s died with its process; `contend sim serve` keeps an emulator running that a watch can go on with", url)
}

// Last finds the last watch that did not end, and the URL to open its target by. given
// is the URL that the user gave; "": none, and the watch may be of any target.
func Last(kept *store.Store, open Opener, given string) (run *Run, url string, err error) {
	if kept == nil {
		return nil, "", errors.New("--resume: there is no store with a watch to go on with; name it with --store")
	}
	wanted, on := "", ""
	if given != "" {
		wanted = all.Redact(given)
		on = " on " + wanted
	}
	ghosts, err := kept.OpenGhosts(wanted)
	if err != nil {
		return nil, "", err
	}
	CloseDead(kept, open, ghosts)
	// Run IDs sort by their time.
	last, err := unconcluded(kept, open, wanted)
	if err != nil {
		return nil, "", err
	}
	for run, of := range byRun(ghosts) {
		if !open.Volatile(of[0].Target) {
			last = max(last, run)
		}
	}
	switch {
	case last == "" && len(ghosts) > 0:
		return nil, "", NothingLeft(ghosts[0].Target)
	case last == "":
		return nil, "", fmt.Errorf("--resume: %s holds no watch%s that has not ended; one of sim: ends with its process, and one of `contend sim serve` does not",
			kept.File(), on)
	}
	if run, err = Load(kept, last); err != nil {
		return nil, "", err
	}
	if url = given; url == "" {
		url = run.Header.Target.URL
	}
	if given == "" && targets.Masked(url) {
		return nil, "", fmt.Errorf("--resume: the secrets of %s are not in the store; give the target with --target or CONTEND_TARGET", url)
	}
	return run, url, nil
}

// unconcluded is the last run whose process was killed when nothing was left to ask
// about its keys, and before they were removed and the result was kept; "": there is
// none. target is its masked URL, or empty for all.
func unconcluded(kept *store.Store, open Opener, target string) (last string, err error) {
	for r, err := range kept.Runs(store.Runs{}) {
		if err != nil {
			return "", err
		}
		if !r.Interrupted || target != "" && r.Target != target || open.Volatile(r.Target) {
			continue
		}
		for _, err := range kept.Ghosts(store.Ghosts{Run: r.ID}) {
			if err != nil {
				return "", err
			}
			last = max(last, r.ID)
			break
		}
	}
	return last, nil
}

// guard lets one process at a time ask about the keys of a run.
func guard(kept *store.Store, run string) (release func(), err error) {
	held, err := kept.Guard("watch-" + run)
	if errors.Is(err, store.ErrHeld) {
		return nil, fmt.Errorf("another process watches the keys of run %s: wait for its end, or end it", run)
	}
	if err != nil {
		return nil, err
	}
	return func() {
		// Removed while it is held: nobody can have locked it in between.
		os.Remove(kept.File() + "-watch-" + run + ".lock")
		held.Close()
	}, nil
}

// byRun sorts keys by their run.
func byRun(ghosts []*runner.Ghost) map[string][]*runner.Ghost {
	all := make(map[string][]*runner.Ghost)
	for _, g := range ghosts {
		all[g.Run] = append(all[g.Run], g)
	}
	return all
}

// Outstanding takes up every run that has open keys, until release is called. note is
// told of those that it leaves alone; those whose target died with its process are
// closed.
func Outstanding(kept *store.Store, open Opener, note func(format string, a ...any)) (all []*Run, release func(), err error) {
	var releases []func()
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	ghosts, err := kept.OpenGhosts("")
	if err != nil {
		return nil, release, err
	}
	CloseDead(kept, open, ghosts)
	of := byRun(ghosts)
	for _, id := range slices.Sorted(maps.Keys(of)) {
		if open.Volatile(of[id][0].Target) {
			continue
		}
		held, err := guard(kept, id)
		if err != nil {
			note("The keys of run %s were not asked about: another process watches them", id)
			continue
		}
		releases = append(releases, held)
		run, err := Load(kept, id)
		if err != nil {
			note("The keys of run %s could not be read: %v", id, err)
			continue
		}
		all = append(all, run)
	}
	return all, release, nil
}

// CloseDead closes those of the keys whose target died with its process: their watch is
// over, and no process holds the guard of their run.
func CloseDead(kept *store.Store, open Opener, ghosts []*runner.Ghost) {
	for run, of := range byRun(ghosts) {
		if time.Since(until(of)) < time.Minute || !open.Volatile(of[0].Target) {
			continue
		}
		release, err := guard(kept, run)
		if err != nil {
			continue // its process lives, and is slow
		}
		_ = abandon(kept, run) // the next process tries it again
		release()
	}
}

// abandon closes what the store still watches of a run whose target has ended with its
// process.
func abandon(kept *store.Store, run string) error {
	var left []*runner.Ghost
	for g, err := range kept.Ghosts(store.Ghosts{Run: run, Open: true}) {
		if err != nil {
			return err
		}
		scenarios.Abandon(g, "its target ended with the process of contend")
		left = append(left, g)
	}
	return kept.UpdateGhosts(left)
}
