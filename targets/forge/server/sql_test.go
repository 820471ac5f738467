package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"contend/targets/targettest/servers"
)

const sqlPath = "/sql/api/v1/execute"

func open(t *testing.T, url string) *Database {
	t.Helper()
	d, err := OpenDatabase(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// statementOf is the body of an execute.
func statementOf(query string, params ...any) string {
	if params == nil {
		params = []any{}
	}
	body, err := encode(map[string]any{"query": query, "params": params, "method": "all"})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// affected is the answer of a statement without rows.
func affected(rows, insertID int) string {
	return fmt.Sprintf(`{"rows":{"affectedRows":%d,"fieldCount":0,"info":"","insertId":%d,"serverStatus":2,"warningStatus":0}}`, rows, insertID)
}

func TestSQLWithoutADatabase(t *testing.T) {
	h := newHandler(Options{})
	for _, path := range []string{sqlPath, sqlPath + "/ddl"} {
		post(t, h, path, statementOf("SELECT 1"), 500,
			`{"code":"UNKNOWN_ERROR","message":"No database was given to this server","suggestion":"start it with --sql mysql://USER:PASSWORD@HOST:PORT/DATABASE"}`)
		for _, body := range []string{``, `{`, `{}`, `{"query":" "}`, `{"query":1}`, `{"query":"SELECT 1","params":{}}`, `{"query":"SELECT 1"}{}`} {
			post(t, h, path, body, 400, `{"code":"INVALID_SQL_QUERY","message":"The body needs a query, and params in an array"}`)
		}
	}
}

func TestSQL(t *testing.T) {
	h := newHandler(Options{SQL: open(t, servers.MariaDB(t))})
	post(t, h, sqlPath+"/ddl", statementOf("CREATE TABLE list (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(40), version INT NOT NULL)"), 200, affected(0, 0))
	for _, c := range []struct {
		query  string
		params []any
		want   string
	}{
		{"INSERT INTO list (name, version) VALUES (?, ?)", []any{"zoe", 0}, affected(1, 1)},
		{"INSERT INTO list (name, version) VALUES (?, ?), (NULL, 5)", []any{"marcus", 1}, affected(2, 2)},
		{"UPDATE list SET name = ?, version = version + 1 WHERE id = ? AND version = ?", []any{"ann", 1, 0}, affected(1, 0)},
		// Lost: no row has the version any more.
		{"UPDATE list SET name = ?, version = version + 1 WHERE id = ? AND version = ?", []any{"bob", 1, 0}, affected(0, 0)},
		// Nothing changes: found rows are not counted.
		{"UPDATE list SET name = ? WHERE id = ?", []any{"ann", 1}, affected(0, 0)},
		{"SELECT version, name, id FROM list ORDER BY id", nil,
			`{"rows":[{"version":1,"name":"ann","id":1},{"version":1,"name":"marcus","id":2},{"version":5,"name":null,"id":3}]}`},
		{"SELECT id FROM list WHERE id > ?", []any{99}, `{"rows":[]}`},
		{"/* of one */ (SELECT id FROM list WHERE name = ?) -- the end", []any{"ann"}, `{"rows":[{"id":1}]}`},
		{"WITH high AS (SELECT id FROM list WHERE version > 2) SELECT * FROM high", nil, `{"rows":[{"id":3}]}`},
		{"SELECT ? AS whole, ? AS big, ? AS text, ? AS yes, ? AS nothing, ? AS object", []any{7, json.Number("9007199254740993"), "<ä>", true, nil, map[string]any{"a": 1}},
			`{"rows":[{"whole":7,"big":9007199254740993,"text":"<ä>","yes":1,"nothing":null,"object":"{\"a\":1}"}]}`},
		{"SELECT CAST(1.50 AS DECIMAL(5,2)) AS d, CAST('2025-05-18 06:21:17.019' AS DATETIME(3)) AS at, 0.5e0 AS f, X'00ff' AS raw", nil,
			`{"rows":[{"d":"1.50","at":"2025-05-18 06:21:17.019","f":0.5,"raw":"AP8="}]}`},
		{"DELETE FROM list WHERE id IN (?, ?)", []any{2, 3}, affected(2, 0)},
	} {
		post(t, h, sqlPath, statementOf(c.query, c.params...), 200, c.want)
	}
}

func TestSQLErrors(t *testing.T) {
	h := newHandler(Options{SQL: open(t, servers.MariaDB(t))})
	post(t, h, sqlPath+"/ddl", statementOf("CREATE TABLE one (id INT PRIMARY KEY)"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("INSERT INTO one VALUES (1)"), 200, affected(1, 0))
	for query, code := range map[string]string{
		"SELEKT 1":                   "INVALID_SQL_QUERY",
		"SELECT 1; SELECT 2":         "INVALID_SQL_QUERY",
		"INSERT INTO one VALUES (?)": "INVALID_SQL_QUERY",
		"SELECT * FROM absent":       "SQL_EXECUTION_ERROR",
		"INSERT INTO one VALUES (1)": "SQL_EXECUTION_ERROR",
		"SET STATEMENT max_statement_time=0.01 FOR SELECT SLEEP(5)": "QUERY_TIMED_OUT",
	} {
		refuses(t, h, sqlPath, statementOf(query), 400, code)
	}
	refuses(t, h, sqlPath, statementOf("SELECT ?", 1, 2), 400, "INVALID_SQL_QUERY")
	refuses(t, h, sqlPath, statementOf("SELECT ?, ?", 1), 400, "INVALID_SQL_QUERY")
	post(t, h, sqlPath, statementOf("INSERT INTO one VALUES (1)"), 400,
		`{"code":"SQL_EXECUTION_ERROR","message":"Duplicate entry '1' for key 'PRIMARY'","debug":{"errno":1062,"sqlState":"23000"}}`)
	post(t, h, sqlPath, statementOf("SELECT COUNT(*) AS n FROM one"), 200, `{"rows":[{"n":1}]}`)
}

// A transaction, a setting or a lock ends with its call.
func TestSQLCallsAreApart(t *testing.T) {
	h := newHandler(Options{SQL: open(t, servers.MariaDB(t))})
	post(t, h, sqlPath+"/ddl", statementOf("CREATE TABLE one (id INT PRIMARY KEY)"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("SET @kept = 1"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("LOCK TABLES one READ"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("BEGIN"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("INSERT INTO one VALUES (1)"), 200, affected(1, 0))
	post(t, h, sqlPath, statementOf("ROLLBACK"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("SELECT @kept AS kept, COUNT(*) AS n FROM one"), 200, `{"rows":[{"kept":null,"n":1}]}`)
}

func TestOfTwelveOptimisticUpdatesOneIsDone(t *testing.T) {
	h := newHandler(Options{SQL: open(t, servers.MariaDB(t))})
	post(t, h, sqlPath+"/ddl", statementOf("CREATE TABLE list (id INT PRIMARY KEY, holder INT, version INT)"), 200, affected(0, 0))
	post(t, h, sqlPath, statementOf("INSERT INTO list VALUES (1, NULL, 0)"), 200, affected(1, 0))
	answers := make([]string, 12)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("POST", sqlPath, strings.NewReader(
				statementOf("UPDATE list SET holder = ?, version = version + 1 WHERE id = 1 AND version = 0", i))))
			answers[i] = w.Body.String()
		})
	}
	group.Wait()
	counts := map[string]int{}
	for _, answer := range answers {
		counts[answer]++
	}
	if counts[affected(1, 0)] != 1 || counts[affected(0, 0)] != 11 {
		t.Errorf("got %v", counts)
	}
}

func TestSQLPasswordIsNotShown(t *testing.T) {
	for _, url := range []string{
		"mysql://me:hunter2@", "mysql://me:hunter2@host", "postgres://me:hunter2@host/db", "mysql://me:hunter2@host/db?tls=true",
		"mysql://me:hunter2@host:port/db", "me:hunter2@tcp(host)/db", "mysql://me:%zz@host/db", "",
	} {
		d, err := OpenDatabase(url)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s is accepted", url)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	h := newHandler(Options{SQL: open(t, "mariadb://me:hunter2@127.0.0.1:1/hunter2")})
	w := request(t, h, httptest.NewRequest("POST", sqlPath, strings.NewReader(statementOf("SELECT 1"))))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "127.0.0.1:1") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if got := (&Database{password: "p"}).refusal(&mysql.MySQLError{Number: 1062, Message: "Duplicate entry 'p' for key 'PRIMARY'"}); got.Message != "Duplicate entry 'xxxxx' for key 'PRIMARY'" {
		t.Errorf("got %+v", got)
	}
	if got := (&Database{password: "hunter2"}).refusal(fmt.Errorf("no hunter2")); got.Message != "no xxxxx" {
		t.Errorf("got %q", got.Message)
	}
}

func TestSQLTimeout(t *testing.T) {
	got := (&Database{}).refusal(fmt.Errorf("reading: %w", context.DeadlineExceeded))
	if got.Code != "QUERY_TIMED_OUT" || got.reply().status != 400 || got.Message != "The query did not end within 10s" {
		t.Errorf("got %+v", got)
	}
}

func TestVerb(t *testing.T) {
	for query, want := range map[string]string{
		"select 1": "SELECT",
		" \n-- UPDATE\n# DELETE\n/* INSERT */ Show tables":                   "SHOW",
		"((SELECT 1) UNION (SELECT 2))":                                      "SELECT",
		"UPDATE t SET a = (SELECT 1)":                                        "UPDATE",
		"insert into t select 1":                                             "INSERT",
		"WITH a AS (SELECT 1), `delete` (b) AS (SELECT ')') SELECT * FROM a": "SELECT",
		"WITH RECURSIVE a AS (SELECT 1) UPDATE t SET b = 1":                  "UPDATE",
		"with a as (select \"\\\"\" /* ) */) delete from t":                  "DELETE",
		"WITH a AS (SELECT 1":                                                "",
		"":                                                                   "",
		"'text'":                                                             "",
		"--":                                                                 "",
		"{ä":                                                                 "Ä",
	} {
		if got := verb(query); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

func FuzzVerb(f *testing.F) {
	f.Add("WITH a AS (SELECT 'b\\'' /* c */) UPDATE `d` SET e = 1 -- f")
	f.Fuzz(func(t *testing.T, query string) {
		if got := verb(query); got != strings.ToUpper(got) {
			t.Errorf("%q is not in capitals", got)
		}
	})
}
