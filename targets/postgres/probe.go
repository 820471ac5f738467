package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"contend/targets"
	"contend/targets/kit"
	"contend/targets/sqlkit"
)

// rawForm is the form of raw requests.
const rawForm = "a text of statements, sent in one message"

// rawAnswer is what a raw op is answered by its last statement.
type rawAnswer struct {
	Command string      `json:"command"`        // its tag, such as "INSERT 0 1"
	Rows    [][]*string `json:"rows,omitempty"` // as text; null is null
}

// rawError is the error object of a raw op.
type rawError struct {
	Severity   string `json:"severity"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	Detail     string `json:"detail,omitempty"`
	Hint       string `json:"hint,omitempty"`
	Table      string `json:"table,omitempty"`
	Column     string `json:"column,omitempty"`
	Constraint string `json:"constraint,omitempty"`
}

// raw sends statements as they are, in one message.
func (s *session) raw(ctx context.Context, op targets.Op) targets.Reply {
	var text string
	if err := json.Unmarshal(op.Raw, &text); err != nil || strings.TrimSpace(text) == "" {
		return kit.Unsupported("a raw op on PostgreSQL is a text of statements")
	}
	results, err := s.conn.PgConn().Exec(ctx, text).ReadAll()
	var failed *pgconn.PgError
	switch {
	case errors.As(err, &failed):
		r := s.Sort("", err)
		r.Raw, _ = json.Marshal(rawError{failed.Severity, failed.Code, failed.Message, failed.Detail, failed.Hint,
			failed.TableName, failed.ColumnName, failed.ConstraintName})
		return r
	case err != nil || len(results) == 0:
		return s.Sort("", err)
	}
	last := results[len(results)-1]
	answer := rawAnswer{Command: last.CommandTag.String()}
	for _, row := range last.Rows {
		var columns []*string
		for _, column := range row {
			var value *string
			if column != nil {
				value = new(string(column))
			}
			columns = append(columns, value)
		}
		answer.Rows = append(answer.Rows, columns)
	}
	refused := ""
	if tag := last.CommandTag; tag.RowsAffected() == 0 && (tag.Insert() || tag.Update() || tag.Delete()) {
		refused = sqlkit.NoRows
	}
	r := s.Sort(refused, nil)
	r.Raw, _ = json.Marshal(answer)
	return r
}
