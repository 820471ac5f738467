//go:build unix

package targettest

import (
	"slices"
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
	// Real: the server is one that a user may have, not the emulator of another.
	Real bool
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

// Strategies gives a URL of the server for each strategy of writes that a variant names,
// and one for what gives keys a time to live, where that is chosen.
func (c Case) Strategies(server string) (urls []string) {
	var chosen []string
	for _, v := range c.Variants {
		for each := range strings.SplitSeq(v.Query, "&") {
			name, _, _ := strings.Cut(each, "=")
			if slices.Contains([]string{"create", "cas", "ttl"}, name) && !slices.Contains(chosen, each) {
				chosen = append(chosen, each)
				urls = append(urls, c.URL(server, each))
			}
		}
	}
	return urls
}

// Cases lists every kind of target. A new one has its row here, and is in all matrices.
func Cases() []Case {
	return []Case{
		{Kind: "sim", Start: func(testing.TB) string { return "sim:?latency=0" }, Variants: []Variant{
			{Query: "sweep=0", Expired: Gone}, {Query: "sweep=1h", Expired: Blocked}}},
		{Kind: "redis", Real: true, Start: servers.Redis, Variants: []Variant{
			{Query: "create=nx&cas=lua", Expired: Gone}, {Query: "create=nx&cas=watch&delete=watch", Expired: Gone},
			{Query: "create=watch&cas=lua&renew=watch", Expired: Gone}, {Query: "create=watch&cas=watch&delete=watch&renew=watch", Expired: Gone}}},
		{Kind: "postgres", Real: true, Start: servers.Postgres, Variants: []Variant{
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
		{Kind: "forge-rest", Start: func(tb testing.TB) string { return "forge+rest+" + apptest.Sim(tb) }, Variants: []Variant{
			{Query: "create=kvs", Expired: Blocked, Few: true}, {Query: "create=entity", Expired: Blocked, Few: true}, {Query: "create=transact", Expired: Blocked, Few: true}}},
	}
}
