package scenarios

import (
	"contend/runner"
	"contend/targets"
)

// aside is what is kept of a key that a round has beside its own, whose records bear
// tokens of the round as well: the writes to it that may have been applied. What any
// read shows of it must be one of them, as it was written.
type aside struct {
	key     string
	state   startState // of the round, with the seed of this key
	writes  []operation
	anomaly *anomaly
	foreign bool // a read showed what nobody of this run wrote
}

// asideOf takes what a round did to one of its other keys.
func asideOf(r *runner.Round, key string, seeded bool) aside {
	a := aside{key: key, state: startState{key: r.Key}}
	if seeded {
		a.state.seed = key + seedSuffix
	}
	for i := range r.Seeds {
		if r.Seeds[i].Op.Key == key {
			seed, _ := a.state.operationOf(&r.Seeds[i])
			a.state.wrote = &seed
		}
	}
	var reads []operation
	for _, all := range [][]runner.Exchange{r.Ops, r.Reads} {
		for i := range all {
			switch x, ok := a.state.operationOf(&all[i]); {
			case !ok || all[i].Op.Key != key:
			case x.isRead():
				reads = append(reads, x)
			default:
				a.writes = append(a.writes, x)
			}
		}
	}
	for i := range reads {
		a.show(&reads[i])
	}
	var possible []operation
	for i := range a.writes {
		if w := &a.writes[i]; w.kind == wrote || w.kind == indeterminate {
			possible = append(possible, *w)
		}
	}
	a.writes = possible
	return a
}

// show looks at what a read shows.
func (a *aside) show(read *operation) {
	if a.foreign = a.foreign || read.kind == sawForeign; a.foreign || a.anomaly != nil {
		return
	}
	if a.anomaly = a.state.changed(a.writes, read); a.anomaly != nil || read.kind != sawNew {
		return
	}
	a.anomaly = notWritten(a.writes, read)
	if b := a.anomaly; b != nil && b.kind == "owner-never-wrote" {
		// It was written to another key; or it is late, and the refused writes are not
		// kept any more.
		b.kind = "misplaced-record"
		if read.late {
			b.kind = "refused-but-applied"
		}
		if partner := a.state.partner(a.writes); partner != nil {
			b.a, b.b = partner, read
		}
	}
}

// readLate takes a late read into account, if it is of this key.
func (a *aside) readLate(e *runner.Exchange) {
	if e.Op.Key != a.key || e.Op.Kind != targets.Read {
		return
	}
	if read, ok := a.state.operationOf(e); ok {
		read.late = true
		a.show(&read)
	}
}

// accuseAside takes what the other keys show into a ruling that has no violation yet.
func (r *Ruling) accuseAside(round int, all []aside) {
	for i := range all {
		r.Void = r.Void || all[i].foreign
	}
	if r.Void {
		r.Violation = nil
		return
	}
	for i := range all {
		r.accuse(round, all[i].anomaly)
	}
}
