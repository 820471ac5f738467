package emulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func limit(n int) *int { return &n }

func keysOf(p Page) string {
	var keys []string
	for _, item := range p.Data {
		keys = append(keys, item.Key)
	}
	return strings.Join(keys, " ")
}

func beginsWith(prefix string) []Condition {
	return []Condition{{"key", "BEGINS_WITH", values(quote(prefix))}}
}

func setAll(t *testing.T, s *Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		_, err := s.Set(key, raw(quote(key)), SetOptions{})
		noError(t, err)
	}
}

func TestQueryWalksOverEveryKeyOnce(t *testing.T) {
	s := New(Options{})
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("q:%02d", i))
	}
	setAll(t, s, "p", "r")
	setAll(t, s, want...)
	_, err := s.SecretSet("q:secret", raw(`1`), SetOptions{})
	noError(t, err)
	for _, size := range []*int{nil, limit(1), limit(7), limit(25), limit(100)} {
		var got []string
		q := Query{Where: beginsWith("q:"), Limit: size}
		for {
			page, err := s.Query(q)
			noError(t, err)
			wanted := 10
			if size != nil {
				wanted = *size
			}
			if len(page.Data) > wanted || page.Cursor != "" && len(page.Data) < wanted {
				t.Fatalf("a page of %d where %d were asked for", len(page.Data), wanted)
			}
			got = append(got, strings.Fields(keysOf(page))...)
			if q.After = page.Cursor; q.After == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
	}
	page, err := s.Query(Query{Limit: limit(100)})
	noError(t, err)
	if got := keysOf(page); got != "p "+strings.Join(want, " ")+" r" {
		t.Fatalf("without where: got %s", got)
	}
}

func TestCursorOutlivesItsKey(t *testing.T) {
	s := New(Options{})
	setAll(t, s, "a", "b", "c")
	first, err := s.Query(Query{Limit: limit(2)})
	noError(t, err)
	noError(t, s.Delete("b"))
	second, err := s.Query(Query{Limit: limit(2), After: first.Cursor})
	noError(t, err)
	if keysOf(first) != "a b" || keysOf(second) != "c" || second.Cursor != "" {
		t.Fatalf("got %q then %q, cursor %q", keysOf(first), keysOf(second), second.Cursor)
	}
}

func TestQueryShowsMetadataAndGhosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(sweepAfter(time.Hour))
		_, err := s.Set("k", raw(`1`), SetOptions{TTL: halfMinute})
		noError(t, err)
		time.Sleep(time.Minute)
		page, err := s.Query(Query{Options: GetOptions{MetadataFields: []string{"EXPIRE_TIME"}}})
		noError(t, err)
		wantJSON(t, page, `{"data":[{"key":"k","value":1,"expireTime":"2000-01-01T00:00:30.000Z"}]}`)
		time.Sleep(time.Hour)
		page, err = s.Query(Query{})
		noError(t, err)
		wantJSON(t, page, `{"data":[]}`)
	})
}

func TestRefusalsOfQueries(t *testing.T) {
	s := newLeases()
	key := beginsWith("k")[0]
	for name, c := range map[string]struct {
		query  Query
		status int
		code   string
	}{
		"two conditions":  {Query{Where: []Condition{key, key}}, 400, "QUERY_WHERE_INVALID"},
		"other condition": {Query{Where: []Condition{{"key", "EQUAL_TO", values(`"k"`)}}}, 400, "QUERY_WHERE_INVALID"},
		"other property":  {Query{Where: []Condition{{"value", "BEGINS_WITH", values(`"k"`)}}}, 400, "QUERY_WHERE_FIELD_INVALID"},
		"no prefix":       {Query{Where: []Condition{{"key", "BEGINS_WITH", nil}}}, 400, "INSUFFICIENT_FILTER_VALUES"},
		"number":          {Query{Where: []Condition{{"key", "BEGINS_WITH", values(`1`)}}}, 422, "UNPROCESSABLE_ENTITY"},
		"limit 0":         {Query{Limit: limit(0)}, 400, "LIST_QUERY_LIMIT_EXCEEDED"},
		"limit 101":       {Query{Limit: limit(101)}, 400, "LIST_QUERY_LIMIT_EXCEEDED"},
		"no cursor":       {Query{After: "x"}, 400, "BAD_REQUEST"},
		"no place":        {Query{After: "WyJhIiwiYiJd"}, 400, "BAD_REQUEST"}, // ["a","b"]: a is no JSON
		"metadata":        {Query{Options: GetOptions{MetadataFields: []string{"SIZE"}}}, 400, "BAD_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Query(c.query)
			wantError(t, err, c.status, c.code, "")
		})
	}
}

// shelf is a store of books in four indexes.
func shelf(t *testing.T) *Store {
	t.Helper()
	s := New(Options{Entities: map[string]Entity{"book": {
		Attributes: map[string]Type{"author": String, "year": Integer, "price": Float, "lent": Boolean, "note": Any},
		Indexes: []Index{
			{Name: "year", Range: "year"}, {Name: "note", Range: "note"}, {Name: "author", Range: "author"},
			{Name: "by-author", Range: "year", Partition: []string{"author", "lent"}},
		}}}})
	for key, value := range map[string]string{
		"a2": `{"author":"ann","year":1990,"price":5.5,"lent":true,"note":"x"}`,
		"b1": `{"author":"bob","year":1985,"price":7,"lent":true,"note":10}`,
		"a3": `{"author":"ann","year":2000,"price":9,"lent":true,"note":9}`,
		"a1": `{"author":"ann","year":1980,"price":3,"lent":true,"note":true}`,
		"a0": `{"author":"ann","year":-5,"lent":false,"note":[1]}`,
		"c1": `{"author":"cyd","year":1985,"note":1e999}`,
		"d1": `{"author":"dan"}`,
	} {
		_, err := s.EntitySet("book", key, raw(value), SetOptions{})
		noError(t, err)
	}
	return s
}

func TestEntityQuery(t *testing.T) {
	s := shelf(t)
	ann := values(`"ann"`, `true`)
	ranged := func(condition string, texts ...string) *Condition {
		return &Condition{Condition: condition, Values: values(texts...)}
	}
	cheap := Condition{"price", "LESS_THAN", values(`6`)}
	bob := Condition{"author", "EQUAL_TO", values(`"bob"`)}
	for name, c := range map[string]struct {
		query EntityQuery
		want  string
	}{
		"by range, then key":     {EntityQuery{IndexName: "year"}, "a0 a1 b1 c1 a2 a3"},
		"ascending":              {EntityQuery{IndexName: "year", Sort: "ASC"}, "a0 a1 b1 c1 a2 a3"},
		"descending":             {EntityQuery{IndexName: "year", Sort: "DESC"}, "a3 a2 c1 b1 a1 a0"},
		"mixed kinds":            {EntityQuery{IndexName: "note"}, "a1 a3 b1 a2"},
		"by key":                 {EntityQuery{IndexName: "by-key"}, "a0 a1 a2 a3 b1 c1 d1"},
		"by key, range":          {EntityQuery{IndexName: "by-key", Range: ranged("BEGINS_WITH", `"a"`)}, "a0 a1 a2 a3"},
		"partition":              {EntityQuery{IndexName: "by-author", Partition: ann}, "a1 a2 a3"},
		"empty partition":        {EntityQuery{IndexName: "by-author", Partition: values(`"eve"`, `true`)}, ""},
		"equal":                  {EntityQuery{IndexName: "year", Range: ranged("EQUAL_TO", `1985`)}, "b1 c1"},
		"between":                {EntityQuery{IndexName: "year", Range: ranged("BETWEEN", `1980`, `1990`)}, "a1 b1 c1 a2"},
		"greater":                {EntityQuery{IndexName: "year", Range: ranged("GREATER_THAN", `1990`)}, "a3"},
		"at least":               {EntityQuery{IndexName: "year", Range: ranged("GREATER_THAN_EQUAL_TO", `1990`)}, "a2 a3"},
		"less":                   {EntityQuery{IndexName: "year", Range: ranged("LESS_THAN", `1980`)}, "a0"},
		"at most":                {EntityQuery{IndexName: "year", Range: ranged("LESS_THAN_EQUAL_TO", `1980`)}, "a0 a1"},
		"prefix":                 {EntityQuery{IndexName: "author", Range: ranged("BEGINS_WITH", `"b"`)}, "b1"},
		"and":                    {EntityQuery{IndexName: "year", Filters: &Conditions{And: []Condition{cheap, bob}}}, ""},
		"or":                     {EntityQuery{IndexName: "year", Filters: &Conditions{Or: []Condition{cheap, bob}}}, "a1 b1 a2"},
		"filter before limit":    {EntityQuery{IndexName: "year", Limit: limit(2), Filters: &Conditions{And: []Condition{cheap}}}, "a1 a2"},
		"partition, range, sort": {EntityQuery{IndexName: "by-author", Partition: ann, Range: ranged("LESS_THAN", `2000`), Sort: "DESC"}, "a2 a1"},
	} {
		t.Run(name, func(t *testing.T) {
			c.query.EntityName = "book"
			page, err := s.EntityQuery(c.query)
			noError(t, err)
			if got := keysOf(page); got != c.want || page.Cursor != "" {
				t.Fatalf("got %q, cursor %q, want %q", got, page.Cursor, c.want)
			}
		})
	}
}

func TestEntityQueryWalksInBothDirections(t *testing.T) {
	s := shelf(t)
	for sort, want := range map[string]string{"ASC": "a0 a1 b1 c1 a2 a3", "DESC": "a3 a2 c1 b1 a1 a0"} {
		q := EntityQuery{EntityName: "book", IndexName: "year", Sort: sort, Limit: limit(1)}
		var got []string
		for {
			page, err := s.EntityQuery(q)
			noError(t, err)
			got = append(got, keysOf(page))
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v", sort, got)
		}
	}
}

func TestRefusalsOfEntityQueries(t *testing.T) {
	s := shelf(t)
	filter := func(c Conditions) EntityQuery { return EntityQuery{IndexName: "year", Filters: &c} }
	ranged := func(condition, value string) EntityQuery {
		return EntityQuery{IndexName: "year", Range: &Condition{Condition: condition, Values: values(value)}}
	}
	bob := Condition{"author", "EQUAL_TO", values(`"bob"`)}
	for name, c := range map[string]struct {
		query  EntityQuery
		status int
		code   string
	}{
		"index":              {EntityQuery{IndexName: "price"}, 400, "INVALID_ENTITY_INDEX"},
		"no index":           {EntityQuery{}, 400, "INVALID_ENTITY_INDEX"},
		"limit 0":            {EntityQuery{IndexName: "year", Limit: limit(0)}, 400, "COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE"},
		"limit 101":          {EntityQuery{IndexName: "year", Limit: limit(101)}, 400, "COMPLEX_QUERY_PAGE_LIMIT_NOT_IN_RANGE"},
		"partition lacks":    {EntityQuery{IndexName: "by-author"}, 422, "UNPROCESSABLE_ENTITY"},
		"partition short":    {EntityQuery{IndexName: "by-author", Partition: values(`"ann"`)}, 422, "UNPROCESSABLE_ENTITY"},
		"partition too much": {EntityQuery{IndexName: "year", Partition: values(`1`)}, 422, "UNPROCESSABLE_ENTITY"},
		"partition type":     {EntityQuery{IndexName: "by-author", Partition: values(`1`, `true`)}, 422, "UNPROCESSABLE_ENTITY"},
		"range condition":    {ranged("NOT_EQUAL_TO", `1`), 400, "INVALID_FILTER_CONDITION"},
		"range type":         {ranged("EQUAL_TO", `"1985"`), 422, "UNPROCESSABLE_ENTITY"},
		"range values":       {ranged("BETWEEN", `1`), 400, "INSUFFICIENT_FILTER_VALUES"},
		"filter empty":       {filter(Conditions{}), 400, "EMPTY_FILTER_OPERATOR"},
		"filter both":        {filter(Conditions{And: []Condition{bob}, Or: []Condition{bob}}), 400, "INVALID_FILTER_OPERATORS_COMBINATION"},
		"filter property":    {filter(Conditions{And: []Condition{{"size", "EXISTS", values(`true`)}}}), 422, "UNPROCESSABLE_ENTITY"},
		"sort":               {EntityQuery{IndexName: "year", Sort: "UP"}, 400, "BAD_REQUEST"},
		"cursor":             {EntityQuery{IndexName: "year", Cursor: "next"}, 400, "BAD_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			c.query.EntityName = "book"
			_, err := s.EntityQuery(c.query)
			wantError(t, err, c.status, c.code, "")
		})
	}
	_, err := s.EntityQuery(EntityQuery{EntityName: "shelf", IndexName: "year"})
	wantError(t, err, 404, "SCHEMA_NOT_FOUND", "The schema provided does not exist")
}

func TestQueryLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{QueryLag: 5 * time.Second, Sweep: func() time.Duration { return 0 }})
		sees := func(want string) {
			t.Helper()
			page, err := s.Query(Query{})
			noError(t, err)
			var got []string
			for _, item := range page.Data {
				got = append(got, item.Key+"="+string(item.Value))
			}
			if strings.Join(got, " ") != want {
				t.Fatalf("after %s: got %v, want %s", time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)), got, want)
			}
		}
		set := func(key, value string, ttl *TTL) {
			t.Helper()
			_, err := s.Set(key, raw(value), SetOptions{TTL: ttl})
			noError(t, err)
		}
		set("k", `1`, nil) // at 0 s
		sees("")
		time.Sleep(2 * time.Second)
		set("k", `2`, nil)
		wantValue(t, s, "", "k", `2`) // reads do not lag
		time.Sleep(3 * time.Second)
		sees("k=1")
		noError(t, s.Delete("k")) // at 5 s
		time.Sleep(2 * time.Second)
		sees("k=2")
		time.Sleep(3 * time.Second)
		sees("")
		set("t", `1`, &TTL{raw(`1`), "SECONDS"}) // at 10 s
		time.Sleep(5 * time.Second)
		wantValue(t, s, "", "t", "") // swept at 11 s
		sees("t=1")
		time.Sleep(time.Second)
		sees("")
		if len(s.plain.history) != 0 {
			t.Fatalf("history remains: %v", s.plain.history)
		}
	})
}
