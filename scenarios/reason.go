package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"contend/scenarios/stats"
)

// reason is why a round does not count, and what would fix it.
type reason struct{ why, fix string }

// doubtOf says why a round is uncertain; the zero reason where every reply of it
// is certain. final: the late reads were made.
func doubtOf(f *Shared, r *Ruling, terms Terms, final bool) reason {
	e := &f.Evidence
	switch {
	case f.Unseeded:
		return reason{"could not be seeded: " + firstNonEmpty(f.refusal, "no reply"), ""}
	case r.Void:
		return reason{"had a foreign writer on its key", "stop it, or choose another --key-prefix"}
	case e.Early:
		return reason{"had a request that was answered before its last byte was sent: the server does not wait", "use --release gate"}
	case final && !f.readOnce:
		return reason{"could not be read once more at the end", ""}
	case r.Unread:
		return reason{"could not be read back", ""}
	case r.Indefinite:
		return reason{"had a request that went out more than once", "a proxy or client sends requests again: switch that off"}
	case r.StaleRead:
		return reason{"had a read of a missing or old state that no other confirms", ""}
	// One that was settled may be of a contender that went on, and is not troubled.
	case float64(e.Troubled-min(r.Settled, e.Unknown)) > terms.Thresholds.Uncertain*float64(e.Contenders):
		return e.trouble()
	case r.Unsettled > 0 && e.timedOut:
		return reason{"had an unknown outcome that the read-back could not settle", "raise --timeout or --settle"}
	case r.Unsettled > 0:
		return reason{"had an unknown outcome that the read-back could not settle: " + firstNonEmpty(e.cause, "no certain answer"), ""}
	default:
		return reason{}
	}
}

// uncountedFor says why a certain round does not count; the zero reason where it does.
func uncountedFor(kept Finding, r *Ruling, terms *Terms) reason {
	f := kept.Common()
	if why, fix := kept.Contested(r, terms); why != "" {
		if f.swept != nil {
			fix = "" // the offset is what was asked for
		}
		return reason{why, fix}
	}
	if most := terms.Thresholds.Reach; most > 0 && f.Evidence.Reach < 0 {
		return reason{"have no known reach", "leave --max-reach out"}
	} else if most > 0 && f.Evidence.Reach > most {
		return reason{fmt.Sprintf("had a reach above %s", stats.Coarse(most)), "raise --max-reach"}
	}
	return reason{}
}

// enoughRivals says why a round with a winner does not count for its rivals, and what
// would fix that.
func (t *Terms) enoughRivals(e *Evidence) (why, fix string) {
	needed := RivalsNeeded(max(t.Contenders, e.Contenders), t.Thresholds.Rivals)
	closer := "raise --contenders, or lower --min-rivals"
	if t.Stagger > 0 {
		closer = "lower --stagger"
	}
	switch {
	case e.Untold:
		return "had no usable times next to the store: the relay reports none, or its clocks are further apart than a call is long", ""
	case e.Rivals == 0 && e.byRead > 0:
		return "had a winner that met no other at the guard: the others had been refused at a read in front of it", closer
	case e.Rivals == 0:
		return "had a winner that met no other at the guard", closer
	case e.Rivals < needed:
		return fmt.Sprintf("had a winner that met fewer than %d rivals at the guard", needed), closer
	default:
		return "", ""
	}
}

// Uncounted is one reason, how many rounds it holds for, and what would fix it;
// "": nothing that a flag could.
type Uncounted struct {
	Why    string `json:"why"`
	Rounds int    `json:"rounds"`
	Fix    string `json:"mend,omitempty"`
}

// UncountedText tells the reasons, and after the last of those that it is for what
// would fix them.
func UncountedText(all []Uncounted) string {
	var whys []string
	for i, u := range all {
		why := fmt.Sprintf("%d %s", u.Rounds, u.Why)
		if u.Fix != "" && !slices.ContainsFunc(all[i+1:], func(later Uncounted) bool { return later.Fix == u.Fix }) {
			why += " (" + u.Fix + ")"
		}
		whys = append(whys, why)
	}
	return strings.Join(whys, "; ")
}

func uncountedOf(why map[reason]int) []Uncounted {
	all := []Uncounted{}
	for why, n := range why {
		all = append(all, Uncounted{why.why, n, why.fix})
	}
	slices.SortFunc(all, func(a, b Uncounted) int {
		return cmp.Or(b.Rounds-a.Rounds, strings.Compare(a.Why, b.Why))
	})
	return all
}
