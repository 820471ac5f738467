package runner

import "contend/targets"

// clean deletes every key of the run and looks whether they are gone; a volatile
// target forgets them by itself.
func (r *Runner) clean() error {
	if r.target.Describe().Volatile {
		return nil
	}
	everything := func(string) bool { return true }
	if !r.wrote {
		// A refusal may be a lie.
		keys, err := r.look(r.plan.key(""), everything)
		if len(keys) == 0 || err != nil {
			return nil
		}
	}
	left := &Left{}
	count, keyAt := r.written()
	r.each(r.requests, count, true, func(i int) targets.Op {
		at := keyAt(i)
		return targets.Op{Kind: targets.Delete, Key: at.Name, Collection: at.Collection}
	}, func(_ int, e *Exchange) { left.refuse(&e.Reply) })
	keys, err := r.look(r.plan.key(""), everything)
	if left.Keys = keys; err != nil {
		r.readLeft(left, count, keyAt, err)
	}
	return left.orNil()
}

// written are all keys that the run may have written to.
func (r *Runner) written() (count int, keyAt func(i int) Key) {
	collection := r.plan.Race.Collection()
	var fixed []Key
	if !r.plan.SkipControls {
		fixed = append(fixed, Key{r.plan.key("n"), collection})
	}
	if !r.plan.SkipControls && !r.plan.Unguarded {
		fixed = append(fixed, Key{r.plan.key("s-create"), targets.Plain}, Key{r.plan.key("s-cas"), targets.Versioned})
	}
	for n := 1; n <= r.twins; n++ {
		fixed = append(fixed, keysOf(r.plan.Twin, r.twinKey(n))...)
	}
	keys := len(keysOf(r.plan.Race, ""))
	return len(fixed) + r.races*keys, func(i int) Key {
		if i < len(fixed) {
			return fixed[i]
		}
		i -= len(fixed)
		return keysOf(r.plan.Race, r.raceKey(i/keys+1))[i%keys]
	}
}

// readLeft reads the keys where they could not be listed.
func (r *Runner) readLeft(left *Left, count int, keyAt func(i int) Key, unlisted error) {
	seen := 0
	r.each(r.requests, count, true, func(i int) targets.Op {
		at := keyAt(i)
		return targets.Op{Kind: targets.Read, Key: at.Name, Collection: at.Collection}
	}, func(i int, e *Exchange) {
		switch e.Reply.Outcome {
		case targets.OK:
			left.Keys = append(left.Keys, e.Op.Key)
			seen++
		case targets.Missing:
			seen++
		}
	})
	if seen < count {
		left.Unseen = unlisted
	}
}
