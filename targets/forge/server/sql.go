package server

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"contend/targets/forge/emulator"
	"contend/targets/secret"
)

// statementTimeout is the platform's for a statement.
const statementTimeout = 10 * time.Second

// Codes of Forge SQL.
const (
	codeExecution = "SQL_EXECUTION_ERROR"
	codeInvalid   = "INVALID_SQL_QUERY"
	codeTimedOut  = "QUERY_TIMED_OUT"
	codeUnknown   = "UNKNOWN_ERROR"
)

// Database executes statements as Forge SQL does: one a call, each on a
// connection of its own, so that no transaction or setting outlives the call.
type Database struct {
	pool     *sql.DB
	password string
}

// schemes of a database, with the port where the URL has none.
var schemes = map[string]string{"mysql": "3306", "mariadb": "3306", "tidb": "4000"}

// OpenDatabase takes the URL of a MySQL, MariaDB or TiDB,
// mysql://USER:PASSWORD@HOST:PORT/DATABASE, and connects at the first statement.
// Its errors, and those of the statements, do not show the password.
func OpenDatabase(text string) (*Database, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || len(u.Path) < 2 || u.RawQuery != "" || schemes[u.Scheme] == "" {
		return nil, errors.New("needs the form mysql://USER:PASSWORD@HOST:PORT/DATABASE (also mariadb://, tidb://), without parameters")
	}
	c := mysql.NewConfig()
	c.Net, c.Addr, c.DBName = "tcp", net.JoinHostPort(u.Hostname(), u.Port()), u.Path[1:]
	if u.Port() == "" {
		c.Addr = net.JoinHostPort(u.Hostname(), schemes[u.Scheme])
	}
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Timeout = statementTimeout
	c.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, errors.New(secret.Mask(err.Error(), c.Passwd))
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxIdleConns(-1)
	return &Database{pool, c.Passwd}, nil
}

// Close closes the connections.
func (d *Database) Close() error { return d.pool.Close() }

// sqlError is the body of a refusal. The platform's status is not known.
type sqlError struct {
	Code       string    `json:"code"`
	Message    string    `json:"message"`
	Suggestion string    `json:"suggestion,omitempty"`
	Debug      *sqlDebug `json:"debug,omitempty"`
}

// sqlDebug is what the database itself said.
type sqlDebug struct {
	Errno    uint16 `json:"errno"`
	SQLState string `json:"sqlState,omitempty"`
}

func (e sqlError) reply() reply {
	status := http.StatusBadRequest
	if e.Code == codeUnknown {
		status = http.StatusInternalServerError
	}
	body, _ := encode(e) // strings and numbers
	return reply{status, body}
}

// statement is the body of an execute. The method has no effect.
type statement struct {
	Query  string `json:"query"`
	Params []any  `json:"params"`
	Method string `json:"method"`
}

func (s *server) execute(ctx context.Context, body []byte) reply {
	var st statement
	if _, err := emulator.Decode(body, &st); err != nil || strings.TrimSpace(st.Query) == "" {
		return sqlError{Code: codeInvalid, Message: "The body needs a query, and params in an array"}.reply()
	}
	if s.options.SQL == nil {
		return sqlError{Code: codeUnknown, Message: "No database was given to this server",
			Suggestion: "start it with --sql mysql://USER:PASSWORD@HOST:PORT/DATABASE"}.reply()
	}
	result, err := s.options.SQL.execute(ctx, st)
	if err != nil {
		return s.options.SQL.refusal(err).reply()
	}
	return reply{http.StatusOK, result}
}

// execute runs a statement and gives the body of the answer.
func (d *Database) execute(ctx context.Context, st statement) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	params := make([]any, len(st.Params))
	for i, p := range st.Params {
		params[i] = parameter(p)
	}
	if slices.Contains(returningRows, verb(st.Query)) {
		rows, err := d.pool.QueryContext(ctx, st.Query, params...)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		return encodeRows(rows)
	}
	result, err := d.pool.ExecContext(ctx, st.Query, params...)
	if err != nil {
		return nil, err
	}
	return encodeResult(result)
}

// parameter turns a JSON value into one of the driver; an object or array is its
// JSON text.
func parameter(value any) any {
	switch v := value.(type) {
	case json.Number:
		if whole, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return whole
		}
		return v.String() // the database reads it exactly
	case map[string]any, []any:
		text, _ := encode(v) // came from JSON
		return string(text)
	}
	return value
}

// encodeResult tells of a statement without rows. Info, serverStatus (2:
// autocommit) and warningStatus are the same for all.
func encodeResult(result sql.Result) ([]byte, error) {
	affected, err := result.RowsAffected()
	if err != nil {
		return nil, err
	}
	id, err := result.LastInsertId()
	if err != nil {
		return nil, err
	}
	return encode(map[string]any{"rows": struct {
		AffectedRows  int64  `json:"affectedRows"`
		FieldCount    int    `json:"fieldCount"`
		Info          string `json:"info"`
		InsertID      int64  `json:"insertId"`
		ServerStatus  int    `json:"serverStatus"`
		WarningStatus int    `json:"warningStatus"`
	}{AffectedRows: affected, InsertID: id, ServerStatus: 2}})
}

// encodeRows gives each row as an object with the columns in their order.
func encodeRows(rows *sql.Rows) ([]byte, error) {
	columns, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	values, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	var b bytes.Buffer
	b.WriteString(`{"rows":[`)
	for first := true; rows.Next(); first = false {
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		if !first {
			b.WriteByte(',')
		}
		for i, column := range columns {
			b.WriteByte("{,"[min(i, 1)])
			name, _ := encode(column.Name()) // a string
			value, err := encode(field(values[i], column.DatabaseTypeName()))
			if err != nil {
				return nil, err
			}
			b.Write(name)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
	return b.Bytes(), rows.Err()
}

// field is a value as JSON has it: numbers but decimals as numbers, bytes in
// base 64, JSON as JSON, all else as the text of the database.
func field(value any, kind string) any {
	text, ok := value.([]byte)
	switch {
	case !ok:
		return value
	case kind == "JSON" && json.Valid(text):
		return json.RawMessage(text)
	case strings.HasSuffix(kind, "BLOB"), strings.HasSuffix(kind, "BINARY"), kind == "BIT", kind == "GEOMETRY":
		return base64.StdEncoding.EncodeToString(text)
	}
	return string(text)
}

// refusal is an error as Forge SQL has it, without the password.
func (d *Database) refusal(err error) sqlError {
	var refused *mysql.MySQLError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return sqlError{Code: codeTimedOut, Message: fmt.Sprintf("The query did not end within %s", statementTimeout)}
	case !errors.As(err, &refused):
		// The client checks the number of parameters itself.
		if strings.HasPrefix(err.Error(), "sql: expected ") {
			return sqlError{Code: codeInvalid, Message: err.Error()}
		}
		return sqlError{Code: codeUnknown, Message: secret.Mask(err.Error(), d.password)}
	}
	e := sqlError{Code: codeExecution, Message: secret.Mask(refused.Message, d.password),
		Debug: &sqlDebug{refused.Number, strings.Trim(string(refused.SQLState[:]), "\x00")}}
	switch refused.Number {
	case 1064, 1065, 1149: // syntax, empty query
		e.Code = codeInvalid
	case 1969, 3024: // time limits of MariaDB and MySQL
		e.Code = codeTimedOut
	}
	return e
}
