package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"contend/targets"
)

const (
	measured = "measured on PostgreSQL 15"
	manual   = "PostgreSQL manual, appendix A"
)

// accepted: the answers are command tags. Where a statement shows rows, they
// must be as many as its tag tells.
var accepted = []targets.Accepted{
	{Request: "INSERT", Answer: "INSERT 0 1"},
	{Request: "INSERT", Answer: "INSERT 0 0", Code: "0 rows"},
	{Request: "UPDATE", Answer: "UPDATE 1"},
	{Request: "UPDATE", Answer: "UPDATE 0", Code: "0 rows"},
	{Request: "DELETE", Answer: "DELETE 1"},
	{Request: "DELETE", Answer: "DELETE 0"},
	{Request: "SELECT", Answer: "SELECT 1"},
	{Request: "SELECT", Answer: "SELECT 0"},
	{Request: "BEGIN", Answer: "BEGIN"},
	{Request: "COMMIT", Answer: "COMMIT"},
	{Request: "ROLLBACK", Answer: "ROLLBACK"},
}

// unexpectedTag is the error for an answer that is not among the accepted ones.
type unexpectedTag struct{ request, answer string }

func (e *unexpectedTag) Error() string { return e.request + " was answered with " + e.answer }

// tagged gives the code of the accepted answer that a command tag is.
func tagged(request, tag string) (code string, err error) {
	for _, row := range accepted {
		if row.Request == request && row.Answer == tag {
			return row.Code, nil
		}
	}
	return "", &unexpectedTag{request, strconv.Quote(tag)}
}

// answers: a code is an SQLSTATE, or the name of what refused a write:
// "0 rows", or what a SELECT showed first ("exists", "stale"). An SQLSTATE that
// ends in 000 stands for the rest of its class too, as in the SQL standard.
var answers = targets.Answers{
	{Code: "0 rows", Outcome: targets.Conflict, Source: measured},
	{Code: "exists", Outcome: targets.Conflict, Source: measured},
	{Code: "stale", Outcome: targets.Conflict, Source: measured},
	{Code: "23505", Outcome: targets.Conflict, Source: measured},
	{Code: "23502", Outcome: targets.Invalid, Source: manual + ": not null"},
	{Code: "40001", Outcome: targets.Aborted, Source: measured},
	{Code: "40P01", Outcome: targets.Aborted, Source: manual + ": deadlock"},
	{Code: "55P03", Outcome: targets.Aborted, Source: measured + ": the holder of the lock may yet roll back"},
	{Code: "40003", Outcome: targets.Unknown, Source: manual + ": completion unknown"},
	{Code: "57014", Outcome: targets.Unknown, Source: manual + ": cancelled after it was sent"},
	{Code: "57P01", Outcome: targets.Unknown, Source: manual + ": the connection is ended"},
	{Code: "57P02", Outcome: targets.Unknown, Source: manual + ": the connection is ended"},
	{Code: "57P03", Outcome: targets.Unknown, Source: manual + ": the connection is ended"},
	{Code: "57P05", Outcome: targets.Unknown, Source: manual + ": the connection is ended"},
	{Code: "25P03", Outcome: targets.Unknown, Source: manual + ": the connection is ended"},
	{Code: "08000", Outcome: targets.Unknown, Source: manual + ": connection exceptions"},
	{Code: "53300", Outcome: targets.Invalid, Source: manual + ": too many connections"},
	{Code: "0A000", Outcome: targets.Invalid, Source: manual + ": not supported"},
	{Code: "22000", Outcome: targets.Invalid, Source: manual + ": data exceptions"},
	{Code: "25006", Outcome: targets.Invalid, Source: measured + ": read only: a standby, or default_transaction_read_only"},
	{Code: "25000", Outcome: targets.Invalid, Source: manual + ": transaction states"},
	{Code: "26000", Outcome: targets.Invalid, Source: measured + ": no such prepared statement: the session is another now"},
	{Code: "28000", Outcome: targets.Invalid, Source: manual + ": authorization"},
	{Code: "3D000", Outcome: targets.Invalid, Source: manual + ": no such database"},
	{Code: "3F000", Outcome: targets.Invalid, Source: manual + ": no such schema"},
	{Code: "42000", Outcome: targets.Invalid, Source: manual + ": syntax and access rules"},
	{Code: "54000", Outcome: targets.Invalid, Source: manual + ": program limits, as an index row's size"},
}

func outcomeOf(code string) targets.Outcome {
	outcome := answers.Outcome(code, 0)
	if outcome == targets.Unmapped && len(code) == len("00000") {
		return answers.Outcome(code[:2]+"000", 0)
	}
	return outcome
}

// serverOf takes name and version out of what version() tells, such as
// "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by …".
func serverOf(version string) string {
	version, _, _ = strings.Cut(version, " (")
	version, _, _ = strings.Cut(version, " on ")
	return version
}

// sqlState is "" for an error that the server did not send.
func sqlState(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

// otherTable is the advice about a table of our name that is not ours.
const otherTable = "the table contend_records is not as contend makes it: rename it, or use another database or schema"

// causes says what to do about an SQLSTATE that names the cause.
var causes = map[string]string{
	"53300": "it has no connection left: lower the number of contenders, raise max_connections (or the limit of the user or database), or close other clients",
	"53100": "its disk is full",
	"53200": "its memory is full",
	"57P03": "it is starting up or shutting down: wait until it takes connections",
	"3D000": "there is no such database: check the one in the URL",
	"3F000": "no schema of the search_path can be used: grant usage and create on one, or set another",
	"25006": "it is read only, a standby or by default_transaction_read_only: name the primary in the URL",
	"42501": "the user may not: grant select, insert, update and delete on the table contend_records, which its owner can create by hand, or use a user who may",
	"42P10": "no unique key: " + otherTable,
	"22001": "a column is too short: " + otherTable,
	"42P01": "the table contend_records is gone: something drops it while the run goes on",
	"42703": otherTable,
	"42804": otherTable,
	"42809": otherTable,
	"42P05": "its sessions are shared with others: is a pooler in between? use session mode, or the server itself",
	"26000": "its sessions are shared with others: is a pooler in between? use session mode, or the server itself",
}

// poolerSays are what poolers say, all under one SQLSTATE, and what to do about it.
var poolerSays = []struct{ text, hint string }{
	{"max_client_conn", "the pooler in between takes no more connections (max_client_conn): raise it, or lower the number of contenders"},
	{"query_wait_timeout", "the pool of the pooler in between is full (PgBouncer: default_pool_size, max_db_connections): raise it, or lower the number of contenders"},
	{"unsupported startup parameter", "the pooler in between does not pass on this parameter: leave it out of the URL"},
}

// hint says what to do about an error of the server, or of a pooler; refused is false
// where neither sent one.
func hint(err error) (text string, refused bool) {
	answer, refused := errors.AsType[*pgconn.PgError](err)
	if !refused {
		return "", false
	}
	return hintOf(answer), true
}

func hintOf(answer *pgconn.PgError) string {
	for _, pooler := range poolerSays {
		if strings.Contains(answer.Message, pooler.text) {
			return pooler.hint
		}
	}
	if hint, known := causes[answer.Code]; known {
		return hint
	}
	switch answer.Code[:min(2, len(answer.Code))] {
	case "28":
		return "check user, password and database in the URL, and the server's pg_hba.conf"
	case "42", "0A":
		return otherTable + ", or it is no PostgreSQL and does not know what contend asks"
	default:
		return "it answers with an error"
	}
}

// waits is the error for a connection that was taken, whose first statement was not
// answered.
func (t *target) waits(err error) error {
	name, open := t.server.Address.Masked(), int(t.open.Load())
	const limits = "PgBouncer: default_pool_size, max_db_connections"
	if !t.pooled {
		return fmt.Errorf("%s took the connection and does not answer: where a pooler in session mode is in between, its pool is full (%s): "+
			"lower the number of contenders, raise its limit, or close other clients: %w", name, limits, err)
	}
	// A run has two sessions of its own beside those of its contenders.
	lower := "lower the number of contenders"
	if room := open - 2; room > 1 {
		lower += fmt.Sprintf(" to %d", room)
	}
	return fmt.Errorf("%s: a connection waits for a session of the server while the run has %d: the pool of the pooler in between is full (%s): "+
		"%s, raise its limit, or close other clients: %w", name, open, limits, lower, err)
}
