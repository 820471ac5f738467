package probe

import (
	"encoding/json"
	"fmt"
	"strings"

	"contend/runner"
	"contend/targets"
)

const (
	postgresCodes = "PostgreSQL manual, appendix A"
	postgresDoc   = "PostgreSQL manual"
)

// postgresAsk makes questions to PostgreSQL, in statements on the table of records.
type postgresAsk struct{ asking }

func postgresQuestions(base string) []Question {
	p := &postgresAsk{asking{base: base}}
	p.conditions()
	p.types()
	p.sizes()
	p.transactions()
	return p.all
}

// statement is one, with the key of the run, quoted, in the place of KEY. A key has
// no character that would need more.
func (p *postgresAsk) statement(key, text string) targets.Op {
	raw, _ := json.Marshal(strings.ReplaceAll(text, "KEY", "'"+p.base+key+"'"))
	return targets.Op{Kind: targets.Raw, Key: p.base + "probe", Raw: raw}
}

// insert is of a record with a version and what else is given.
func insert(version string, more ...string) string {
	columns, values := "key, token, version", "KEY, 't', "+version
	for i := 0; i < len(more); i += 2 {
		columns, values = columns+", "+more[i], values+", "+more[i+1]
	}
	return fmt.Sprintf("insert into contend_records (%s) values (%s)", columns, values)
}

// ask adds a question on a key of its own: statements that make ready, and the last,
// which asks.
func (p *postgresAsk) ask(id, text string, known Known, statements ...string) *Question {
	key := strings.ReplaceAll(id, "/", "-")
	var ops []targets.Op
	for _, each := range statements {
		ops = append(ops, p.statement(key, each))
	}
	// One that ended in the middle of a transaction leaves that first.
	remove := []targets.Op{p.statement(key, "rollback"), p.statement(key, "delete from contend_records where key = KEY")}
	return p.asking.ask(id, text, known, remove, inTurn(ops)...)
}

// What is documented of an answer: that it is accepted, with these words, that it
// refuses, or is wrong.
func postgresOK(answer string) Known {
	return Known{Basis: Documented, Source: postgresDoc, Outcome: targets.OK, Answer: answer}
}

func postgresLoss(code string) Known {
	return Known{Basis: Documented, Source: postgresDoc, Outcome: targets.Conflict, Code: code}
}

func postgresWrong(code string) Known {
	return Known{Basis: Documented, Source: postgresCodes, Outcome: targets.Invalid, Code: code}
}

func (p *postgresAsk) conditions() {
	seed, key := insert("0"), " where key = KEY"
	p.ask("conditions/insert-present", "INSERT, the key is present", postgresLoss("23505"), seed, seed)
	p.ask("conditions/on-conflict-present", "INSERT ON CONFLICT DO NOTHING, the key is present", postgresLoss("0 rows"), seed, seed+" on conflict do nothing")
	p.ask("conditions/on-conflict-where", "ON CONFLICT DO UPDATE WHERE, which does not hold", postgresLoss("0 rows"), seed,
		seed+" on conflict (key) do update set version = 1 where contend_records.version = 7")
	p.ask("conditions/update-stale", "UPDATE WHERE version, another version", postgresLoss("0 rows"), seed, "update contend_records set version = 1"+key+" and version = 7")
	p.ask("conditions/update-same", "UPDATE that changes nothing: is the row counted", postgresOK("UPDATE 1"), seed, "update contend_records set version = version"+key).read = readCommand
}

// readCommand gives the tag of the command.
func readCommand(replies []*runner.Exchange) string {
	tag, _ := memberOf(lastReply(replies), "command").(string)
	return tag
}

// readCell gives the one value that was selected.
func readCell(replies []*runner.Exchange) string {
	rows, _ := memberOf(lastReply(replies), "rows").([]any)
	if len(rows) != 1 {
		return ""
	}
	columns, _ := rows[0].([]any)
	return strings.Trim(fmt.Sprint(columns), "[]")
}

func (p *postgresAsk) types() {
	const most, least = "9223372036854775807", "-9223372036854775808"
	stored := "; select version from contend_records where key = KEY"
	for _, c := range []struct {
		name, text, value string
		known             Known
	}{
		{"integer-max", most + " in a bigint", most, postgresOK(most)},
		{"integer-above-max", "9223372036854775808 in a bigint", "9223372036854775808", postgresWrong("22003")},
		{"integer-min", least + " in a bigint", least, postgresOK(least)},
		{"integer-below-min", "-9223372036854775809 in a bigint", "-9223372036854775809", postgresWrong("22003")},
		{"integer-text", "the text 'abc' in a bigint", "'abc'", postgresWrong("22P02")},
		{"integer-fraction", "1.5 in a bigint: what is stored", "1.5", postgresOK("2")},
		{"integer-fraction-text", "the text '1.5' in a bigint", "'1.5'", postgresWrong("22P02")},
		{"integer-null", "null in a bigint that must not be null", "null", postgresWrong("23502")},
	} {
		q := p.ask("types/"+c.name, c.text, c.known, insert(c.value)+stored)
		if c.known.Outcome == targets.OK {
			q.read = readCell
		}
	}
	p.ask("types/timestamp-precision", "a timestamptz of .1234567 s: what is stored", postgresOK("0.123457"),
		insert("0", "updated_at", "'2026-01-01 00:00:00.1234567+00'")+"; select extract(second from updated_at) from contend_records where key = KEY").read = readCell
	p.ask("types/timestamp-wrong", "a timestamptz of month 13", postgresWrong("22008"), insert("0", "updated_at", "'2026-13-01'"))
	p.ask("types/json-broken", "jsonb that is none", postgresWrong("22P02"), insert("0", "body", "'{'"))
	p.ask("types/json-nul", `jsonb with \u0000`, postgresWrong("22P05"), insert("0", "body", `'"\u0000"'`))
}

func (p *postgresAsk) sizes() {
	// Hashes, since the index compresses what it can.
	long := "(select KEY || string_agg(md5(i::text), '') from generate_series(1, 200) i)"
	p.ask("sizes/key", "a key of 6,400 characters, more than a row of the index holds", postgresWrong("54000"),
		strings.Replace(insert("0"), "KEY", long, 1))
}

func (p *postgresAsk) transactions() {
	q := p.ask("transactions/after-error", "a statement after a failed one in a transaction, then COMMIT", postgresOK("25P02, then ROLLBACK"),
		"begin", insert("'abc'"), "select 1", "commit")
	for i := range q.Steps {
		q.Steps[i].Must = i == 0
	}
	q.read = func(replies []*runner.Exchange) string {
		return replies[len(replies)-2].Reply.Code + ", then " + readCommand(replies)
	}
}
