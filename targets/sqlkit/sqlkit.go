// Package sqlkit is what SQL databases share as targets: the record as columns, the
// strategies of conditions as statements alone or in transactions, and an expiry that is a
// column. A database is a Dialect, which is data, and a Conn.
package sqlkit

import (
	"context"
	"time"

	"contend/targets"
	"contend/targets/kit"
)

// Table is where records are kept.
const Table = "contend_records"

// ExpiresColumn is the strategy of the time to live in which a column is compared with
// the server's clock.
const ExpiresColumn = "expires-column"

// NoRows is the code of a statement whose guard let no row through.
const NoRows = "0 rows"

// Dialect is a database in its own words.
type Dialect struct {
	Name string // in messages
	// Create, Compare, Delete and Renew are the strategies, by the value of the parameter
	// create, cas, delete and renew.
	Create, Compare, Delete, Renew map[string]Strategy
	// Finest is how fine its times are.
	Finest  time.Duration
	Answers targets.Answers
}

// Strategy is how a condition is put.
type Strategy struct {
	// Begin opens a transaction, which reads the key and compares before it writes; "":
	// the statement compares, by itself.
	Begin string
	// Statements are the names of what is sent, by the guard.
	Statements map[targets.Guard]string
	// Expired is sent instead where what was read has expired; "": the same.
	Expired string
}

// Conn sends statements on one connection.
type Conn interface {
	// Execute sends a prepared statement and gives the number of rows that its answer
	// tells: 0 or 1. into takes what the row shows; nil: it shows nothing.
	Execute(ctx context.Context, statement string, into []any, arguments ...any) (rows int, err error)
	// Command sends a statement without arguments, which the table of accepted answers
	// knows as the request.
	Command(ctx context.Context, request, sql string) error
	// Sort makes a reply of what a write was refused by, or of an error.
	Sort(refused string, err error) targets.Reply
	// Close ends the connection, and with it what is not committed.
	Close() error
}

// Session is a session on a database.
type Session struct {
	kit.Session
	Dialect    Dialect
	Conn       Conn
	Strategies map[string]string // as chosen
	// Raw sends a request in the database's own language.
	Raw kit.Op
}

// Ready tells the session what to do with each kind of op.
func (s *Session) Ready() {
	s.Store = s.Dialect.Name
	s.Ops = map[targets.Kind]kit.Op{targets.Read: s.read, targets.Write: s.write, targets.Delete: s.delete, targets.Renew: s.renew, targets.Raw: s.Raw}
}

func (s *Session) expires() bool { return s.Strategies["ttl"] == ExpiresColumn }

func (s *Session) read(ctx context.Context, op targets.Op) targets.Reply {
	r, _ := s.stored(ctx, op.Key)
	return r
}

// stored gives the record of a key, and whether its time to live is over.
func (s *Session) stored(ctx context.Context, key string) (r targets.Reply, expired bool) {
	var record targets.Record
	var updated, expires *time.Time
	var body []byte
	rows, err := s.Conn.Execute(ctx, "read", []any{&record.Token, &record.Version, &updated, &expires, &body, &expired}, key)
	record.UpdatedAt, record.ExpiresAt, record.Body = timeOrZero(updated), timeOrZero(expires), body
	if r = s.Conn.Sort("", err); err != nil {
		return r, false
	}
	if rows == 0 {
		r.Outcome = targets.Missing
		return r, false
	}
	if r.Record = record; s.expires() {
		r.Expires = record.ExpiresAt
	}
	return r, expired
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// values are the parameters that the writing statements share; version is the
// one to store, or where that is compared the one to find.
func (s *Session) values(op targets.Op, version int64) []any {
	all := []any{op.Key, version, op.Value.Token, timeOrNull(op.Value.UpdatedAt), timeOrNull(op.Value.ExpiresAt), []byte(op.Value.Body)}
	switch {
	case !s.expires():
	case op.TTL > 0:
		all = append(all, op.TTL)
	default:
		all = append(all, nil)
	}
	return all
}

func (s *Session) write(ctx context.Context, op targets.Op) targets.Reply {
	if refused := op.If.TooFine(s.Dialect.Finest); refused != nil {
		return *refused
	}
	if op.TTL > 0 && !s.expires() {
		return s.noExpiry()
	}
	values := s.values(op, op.Value.Version)
	switch op.If.Guard {
	case targets.Unguarded:
		return s.put(ctx, op, "put", values)
	case targets.IfAbsent:
		return s.by(ctx, op, s.Dialect.Create[s.Strategies["create"]], values)
	case targets.IfVersion:
		return s.by(ctx, op, s.Dialect.Compare[s.Strategies["cas"]], s.values(op, op.If.Counter))
	default:
		return s.by(ctx, op, s.Dialect.Compare[s.Strategies["cas"]], append(values, wanted(op.If)))
	}
}

// wanted is what a condition wants the record to have.
func wanted(c targets.Condition) any {
	switch c.Guard {
	case targets.IfVersion:
		return c.Counter
	case targets.IfUnmodified:
		return c.UpdatedAt
	default:
		return c.Token
	}
}

func (s *Session) delete(ctx context.Context, op targets.Op) targets.Reply {
	if op.If.Guard != targets.Unguarded {
		return s.by(ctx, op, s.Dialect.Delete[s.Strategies["delete"]], []any{op.Key, wanted(op.If)})
	}
	_, err := s.Conn.Execute(ctx, "delete", nil, op.Key)
	return s.Conn.Sort("", err)
}

func (s *Session) renew(ctx context.Context, op targets.Op) targets.Reply {
	return s.by(ctx, op, s.Dialect.Renew[s.Strategies["renew"]], []any{op.Key, wanted(op.If), op.TTL})
}

func (s *Session) noExpiry() targets.Reply {
	return kit.Unsupported("%s has no time to live of its own; choose ?ttl=%s, or leave the TTL out, or choose another target", s.Dialect.Name, ExpiresColumn)
}

// by changes a row by a strategy.
func (s *Session) by(ctx context.Context, op targets.Op, how Strategy, arguments []any) targets.Reply {
	statement := how.Statements[op.If.Guard]
	switch {
	case op.TTL > 0 && !s.expires():
		return s.noExpiry()
	case statement == "":
		return kit.Unsupported("%s has no %s on condition of %q", s.Dialect.Name, op.Kind, op.If.Guard)
	case how.Begin == "":
		return s.put(ctx, op, statement, arguments)
	}
	ended := false
	return s.ReadThenWrite(op.If, s.Dialect.Answers, kit.Steps{
		Begin: func() targets.Reply { return s.Conn.Sort("", s.Conn.Command(ctx, "BEGIN", how.Begin)) },
		Read: func() targets.Reply {
			r, expired := s.stored(ctx, op.Key)
			r.Expires = time.Time{} // of another's record
			if expired && op.If.Guard == targets.IfAbsent {
				r.Outcome, statement = targets.Missing, how.Expired
			}
			return r
		},
		Write: func(targets.Reply) targets.Reply {
			r := s.put(ctx, op, statement, arguments)
			if r.Outcome != targets.OK {
				return r
			}
			ended = true
			if err := s.Conn.Command(ctx, "COMMIT", "commit"); err != nil {
				return s.Conn.Sort("", err)
			}
			return r
		},
		Abort: func() {
			if ended {
				return
			}
			if err := s.Conn.Command(ctx, "ROLLBACK", "rollback"); err != nil {
				s.Conn.Close()
			}
		},
	})
}

// put executes a statement that writes one row. With a time to live it shows the expiry
// that it stored, and the time.
func (s *Session) put(ctx context.Context, op targets.Op, statement string, arguments []any) targets.Reply {
	var expires *time.Time
	var now time.Time
	var into []any
	if s.expires() && op.Kind != targets.Delete {
		into = []any{&expires, &now}
	}
	rows, err := s.Conn.Execute(ctx, statement, into, arguments...)
	refused := ""
	if rows == 0 && err == nil {
		refused = NoRows
	}
	r := s.Conn.Sort(refused, err)
	if r.Outcome == targets.OK && expires != nil {
		r.Expires = expires.UTC()
		if op.TTL > 0 {
			// The clock was read twice, microseconds apart.
			r.Granted = expires.Sub(now).Round(time.Millisecond)
		}
	}
	return r
}
