//go:build unix

package targettest

import (
	"strings"
	"testing"

	"contend/targets"
	"contend/targets/forge/apptest"
	"contend/targets/targettest/servers"
)

// A Case is a kind of target as every matrix of tests takes it.
type Case struct {
	Kind string // the driver's name
	// Start starts a real server for the time of a test, and gives its URL.
	Start    func(testing.TB) string
	Variants []Variant
	// Unlike are the parameters that are no strategies of writes, and are left out where a
	// matrix asks for one URL for each strategy.
	Unlike []string
}

// A Variant is a choice of strategies.
type Variant struct {
	Query   string          // of the URL
	Expired Expired         // what becomes of an expired key; "": there is no time to live
	Lacks   []targets.Guard // the conditions that it has not
	Few     bool            // connections are dear: few contenders
}

// URL is a server's URL with a query.
func (Case) URL(server, query string) string {
	switch {
	case query == "":
		return server
	case strings.Contains(server, "?"):
		return server + "&" + query
	default:
		return server + "?" + query
	}
}

// Cases lists every kind of target. A new one has its row here, and is in all matrices.
func Cases() []Case {
	return []Case{
		{Kind: "sim", Start: func(testing.TB) string { return "sim:?latency=0" }, Variants: []Variant{
			{Query: "sweep=0", Expired: Gone}, {Query: "sweep=1h", Expired: Blocked}},
			Unlike: []string{"fault", "latency", "sweep", "seed"}},
		{Kind: "redis", Start: servers.Redis, Variants: []Variant{
			{Query: "create=nx&cas=lua", Expired: Gone}, {Query: "create=nx&cas=watch&delete=watch", Expired: Gone},
			{Query: "create=watch&cas=lua&renew=watch", Expired: Gone}, {Query: "create=watch&cas=watch&delete=watch&renew=watch", Expired: Gone}}},
		{Kind: "postgres", Start: servers.Postgres, Unlike: []string{"ttl"}, Variants: []Variant{
			{Query: "create=on-conflict&cas=where"}, {Query: "create=on-conflict&cas=repeatable-read"}, {Query: "create=on-conflict&cas=serializable"},
			{Query: "create=unique-violation&cas=where"}, {Query: "create=unique-violation&cas=repeatable-read"}, {Query: "create=unique-violation&cas=serializable"},
			{Query: "create=serializable&cas=where"}, {Query: "create=serializable&cas=repeatable-read"}, {Query: "create=serializable&cas=serializable"},
			{Query: "ttl=expires-column&create=on-conflict&cas=where", Expired: Shown}, {Query: "ttl=expires-column&create=on-conflict&cas=repeatable-read", Expired: Shown},
			{Query: "ttl=expires-column&create=on-conflict&cas=serializable", Expired: Shown}, {Query: "ttl=expires-column&create=serializable&cas=where", Expired: Shown},
			{Query: "ttl=expires-column&create=serializable&cas=repeatable-read", Expired: Shown}, {Query: "ttl=expires-column&create=serializable&cas=serializable", Expired: Shown}}},
		{Kind: "forge", Start: func(tb testing.TB) string { return "forge+" + apptest.HostWithToken(tb) }, Variants: []Variant{
			{Query: "create=kvs", Expired: Blocked, Few: true}, {Query: "create=entity", Expired: Blocked, Few: true}, {Query: "create=transact", Expired: Blocked, Few: true}}},
		{Kind: "forge", Start: func(tb testing.TB) string { return "forge+" + apptest.HostWithToken(tb, "--sql", servers.MariaDB(tb)) }, Variants: []Variant{
			{Query: "create=sql&cas=sql", Lacks: []targets.Guard{targets.IfToken}, Few: true}}},
		{Kind: "forge-rest", Start: func(tb testing.TB) string { return "forge+rest+" + apptest.Sim(tb) }, Unlike: []string{"http"}, Variants: []Variant{
			{Query: "create=kvs", Expired: Blocked, Few: true}, {Query: "create=entity", Expired: Blocked, Few: true}, {Query: "create=transact", Expired: Blocked, Few: true}}},
	}
}
