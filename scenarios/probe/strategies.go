package probe

import (
	"time"

	"contend/runner"
	"contend/targets"
)

// strategyQuestions are asked of every target, by the ways of its URL.
func strategyQuestions(base string) []Question {
	const table = "contend targets: the target's table of answers"
	key := func(name string) string { return base + "strategy-" + name }
	op := func(kind targets.Kind, name string, collection targets.Collection) targets.Op {
		o := targets.Op{Kind: kind, Key: key(name), Collection: collection}
		if kind == targets.Write {
			o.Value = targets.Record{Token: key(name)}
		}
		return o
	}
	guarded := func(o targets.Op, c targets.Condition) targets.Op { o.If = c; return o }
	create := guarded(op(targets.Write, "create", targets.Plain), targets.Condition{Guard: targets.IfAbsent})
	seed := op(targets.Write, "version", targets.Versioned)
	stale := guarded(seed, targets.Condition{Guard: targets.IfVersion, Counter: 7, Version: "stale"})
	brief := op(targets.Write, "ttl", targets.Plain)
	brief.TTL = 1500 * time.Millisecond
	all := &asking{base: base}
	ask := func(id, text string, outcome targets.Outcome, remove []targets.Op, steps ...runner.Step) {
		all.ask("strategy/"+id, text, Known{Basis: Documented, Source: table, Outcome: outcome}, remove, steps...)
	}
	ask("create-present", "a create-if-absent of a key that is there", targets.Conflict, []targets.Op{op(targets.Delete, "create", targets.Plain)},
		mustStep(create), plainStep(create))
	ask("version-stale", "a write on a version that is not the record's", targets.Conflict, []targets.Op{op(targets.Delete, "version", targets.Versioned)},
		mustStep(seed), plainStep(stale))
	ask("version-absent", "a write on a version of a key that is not there", targets.Conflict, nil,
		plainStep(guarded(op(targets.Write, "absent", targets.Versioned), targets.Condition{Guard: targets.IfVersion, Counter: 7, Version: "stale"})))
	ask("read-absent", "a read of a key that is not there", targets.Missing, nil, plainStep(op(targets.Read, "absent", targets.Plain)))
	ask("delete-absent", "a delete of a key that is not there", targets.OK, nil, plainStep(op(targets.Delete, "absent", targets.Plain)))
	ttl := all.ask("strategy/ttl", "a time to live of 1.5 s: is it told what is granted", notKnown(), []targets.Op{op(targets.Delete, "ttl", targets.Plain)},
		mustStep(brief), plainStep(op(targets.Read, "ttl", targets.Plain)))
	ttl.read, ttl.figure = readGranted, grantedFigure
	return all.all
}

// readGranted tells whether the write, or a read after it, tells a time to live.
func readGranted(replies []*runner.Exchange) string {
	if grantedFigure(replies) == "" {
		return "it is not told"
	}
	return "it is told"
}

func grantedFigure(replies []*runner.Exchange) string {
	if d := max(replies[0].Reply.Granted, lastReply(replies).Granted); d > 0 {
		return d.String()
	}
	return ""
}
