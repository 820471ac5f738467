package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"contend/cmd/exit"
	"contend/targets/forge/emulator"
	"contend/targets/forge/server"
	"contend/targets/forge/shim"
)

// simTokenVariable holds the bearer token that the REST form takes. It is no
// flag: every process of a machine sees those.
const simTokenVariable = "CONTEND_SIM_TOKEN"

func newSim(c console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "sim", Short: "the emulator of Forge KVS: as a server, its rules, the shim for Node", GroupID: "other",
		Args: cobra.ArbitraryArgs,
		RunE: group,
	}
	cmd.AddCommand(newSimServe(c), newSimRules(c), &cobra.Command{
		Use: "shim", Short: "print the script that lets unmodified @forge/kvs and @forge/sql talk to the server", Args: noArguments,
		Long: `shim prints a script for Node:

    contend sim shim > forge-shim.cjs
    node --require ./forge-shim.cjs my-test.js`,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(c.out, shim.Source())
			return err
		},
	})
	return cmd
}

// simFlags are the flags of sim serve.
type simFlags struct {
	listen       string
	manifest     string
	quota        bool
	throttleCode string
	sweep        string
	latency      string
	seed         string
	sql          string
	log          bool
	granularity  string
	clash        string
	store        emulator.Options
}

func (f *simFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.listen, "listen", "127.0.0.1:7077", "the `ADDRESS` to listen on; port 0 takes a free one")
	fs.StringVar(&f.manifest, "manifest", "", "serve the entities of this manifest.yml, a `FILE` (default: those of the companion app)")
	fs.BoolVar(&f.quota, "quota", true, "answer 429 to what is over 1000 requests a second, 4000 reads or 4000 writes a minute in units of 10 KB")
	fs.StringVar(&f.sweep, "sweep", emulator.PublishedSweep, "how long after its expiry a key is swept: a duration, a range A..B, or never; "+
		"the default is the one published observation, and that it is uniform is an assumption")
	fs.StringVar(&f.latency, "latency", "0", "of each request to the key-value store: a duration, a range A..B, or published")
	fs.StringVar(&f.seed, "seed", "", "of the latencies and sweeps, a whole number (default: random)")
	fs.StringVar(&f.sql, "sql", "", "pass the statements of @forge/sql to this database, mysql://USER:PASSWORD@HOST:PORT/DATABASE; "+
		"better in CONTEND_SQL, since every process of the machine sees the command line")
	fs.BoolVar(&f.log, "log", false, "print each request and reply on standard error, and warn of members that the protocol does not have")

	fs.BoolVar(&f.store.HideGhosts, "hide-ghosts", false, "hide expired, unswept records from conditions and entity writes (assumption: they see them)")
	fs.BoolVar(&f.store.DeleteKeepsGhost, "delete-keeps-ghost", false, "deleting an expired key does not free it before its sweep (assumption: it does)")
	fs.BoolVar(&f.store.OverwriteKeepsExpiry, "overwrite-keeps-expiry", false, "a write without ttl keeps the old expiry (assumption: it clears it)")
	fs.StringVar(&f.granularity, "expire-granularity", "ms", "of expireTime: ms or s (assumption: ms)")
	fs.DurationVar(&f.store.QueryLag, "query-lag", 0, "how far queries are behind what is stored (assumption: 0)")
	fs.StringVar(&f.store.LongTTLCode, "long-ttl-code", "INVALID_TTL", "the `CODE` for a ttl of more than a year (assumption)")
	fs.StringVar(&f.clash, "clash", "wait", "what a transaction meets that finds a key in another one in flight: wait (one after the other), "+
		"conflict (CONDITIONAL_CHECK_FAILED), error (500); needs a --latency to happen (assumption: wait)")
	fs.BoolVar(&f.store.NotExistsNeedsRecord, "not-exists-needs-record", false, "NOT_EXISTS is false where the record is absent (assumption: true)")
	fs.StringVar(&f.throttleCode, "throttle-code", throttleCodes[0], "the `CODE` over a quota: "+strings.Join(throttleCodes, ", ")+" (which one when is an assumption)")
}

// throttleCodes are the documented ones.
var throttleCodes = []string{"RATE_LIMIT_EXCEEDED", "TOO_MANY_REQUESTS", "REQUEST_THROTTLED"}

// clashes are the answers to a transaction that meets another one.
var clashes = map[string]*emulator.Error{
	"wait":     nil,
	"conflict": {Status: 400, Code: "CONDITIONAL_CHECK_FAILED", Message: "Request failed due to conditional check specified or optimistic locking"},
	"error":    {Status: 500, Code: "INTERNAL_SERVER_ERROR", Message: "An internal server error has occurred"},
}

func newSimServe(c console) *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use: "serve", Short: "serve the wire protocol of @forge/kvs and @forge/sql", Args: noArguments,
		Long: `serve puts the emulator behind HTTP until it is interrupted:

    /kvs/api/v1/…              the calls of @forge/kvs
    /sql/api/v1/execute[/ddl]  the calls of @forge/sql, with --sql
    /forge/storage/kvs/v1/…    the REST form of Forge Remotes, with a bearer token: the one in ` + simTokenVariable + `, or any
    /healthz                   tells that it is up
    /emulator/reset            forgets every key; for tests on this machine, on loopback only
    /emulator/clock            {"forward":"15m"} puts the emulator's clock forward; on loopback only

Its keys die with it. What a flag calls an assumption is not known of the platform; "contend sim rules" lists
every behaviour with its source.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), c) },
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *simFlags) serve(ctx context.Context, c console) error {
	store, options, err := f.options()
	if err != nil {
		return err
	}
	if options.SQL != nil {
		defer options.SQL.Close()
	}
	if f.log {
		options.Log = c.err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return exit.Failed(fmt.Errorf("--listen %s: %w", f.listen, err))
	}
	address := listener.Addr().String()
	a, err := netip.ParseAddrPort(address)
	if options.Steerable = err == nil && a.Addr().Unmap().IsLoopback(); !options.Steerable {
		c.tell("warning: %s is not a loopback address; whoever reaches it can read and write the keys", address)
	}
	fmt.Fprintf(c.out, "listening on http://%s\n", address)
	if err := server.Serve(ctx, listener, server.New(store, options)); err != nil {
		return exit.Failed(fmt.Errorf("sim serve: %w", err))
	}
	return nil
}

// options refuses what can be refused, all of it at once.
func (f *simFlags) options() (*emulator.Store, server.Options, error) {
	o := server.Options{Token: os.Getenv(simTokenVariable)}
	var wrong []error
	refuse := func(bad bool, format string, a ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, a...))
		}
	}
	host, port, err := net.SplitHostPort(f.listen)
	_, portError := strconv.ParseUint(port, 10, 16)
	refuse(err != nil || host == "" || portError != nil, "--listen %q: needs the form HOST:PORT, such as 127.0.0.1:7077; 0.0.0.0:7077 is every address", f.listen)
	seed := rand.Uint64()
	if f.seed != "" {
		seed, err = strconv.ParseUint(f.seed, 10, 64)
		refuse(err != nil, "--seed %q: must be a whole number", f.seed)
	}
	o.Latency, err = emulator.NewLatency(f.latency, seed)
	refuse(err != nil, "--latency %q: %w", f.latency, err)
	f.store.Sweep, err = emulator.Sweeper(f.sweep, seed)
	refuse(err != nil, "--sweep %q: %w", f.sweep, err)
	refuse(!slices.Contains(throttleCodes, f.throttleCode), "--throttle-code %q: there are %s", f.throttleCode, strings.Join(throttleCodes, ", "))
	if f.quota {
		o.Quota = emulator.NewQuota(f.throttleCode)
	}
	granularity := map[string]emulator.Granularity{"ms": emulator.Milliseconds, "s": emulator.Seconds}
	var known bool
	f.store.ExpireGranularity, known = granularity[f.granularity]
	refuse(!known, "--expire-granularity %q: there are ms, s", f.granularity)
	o.Clash, known = clashes[f.clash]
	refuse(!known, "--clash %q: there are wait, conflict, error", f.clash)
	refuse(f.store.QueryLag < 0 || f.store.QueryLag%time.Millisecond != 0, "--query-lag %s: must be whole milliseconds, such as 500ms, and not negative", f.store.QueryLag)
	refuse(f.store.LongTTLCode == "", "--long-ttl-code: must not be empty")
	f.store.Entities, err = f.entities()
	refuse(err != nil, "--manifest %s: %w", f.manifest, err)
	if f.sql != "" {
		o.SQL, err = server.OpenDatabase(f.sql)
		refuse(err != nil, "--sql: %w", err)
	}
	return emulator.New(f.store), o, errors.Join(wrong...)
}

func (f *simFlags) entities() (map[string]emulator.Entity, error) {
	if f.manifest == "" {
		return server.DefaultEntities(), nil
	}
	text, err := os.ReadFile(f.manifest)
	if err != nil {
		return nil, errors.Unwrap(err) // the path is shown already
	}
	return server.ParseManifest(text)
}

func newSimRules(c console) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "rules", Short: "every behaviour of the emulator, with its source or as an assumption", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "table":
				return printRules(c.out, emulator.Rules())
			case "json":
				encoder := json.NewEncoder(c.out)
				encoder.SetEscapeHTML(false)
				encoder.SetIndent("", "  ")
				return encoder.Encode(emulator.Rules())
			}
			return fmt.Errorf("-o %q: there are table, json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "`FORMAT`: table or json")
	return cmd
}

func printRules(w io.Writer, rules []emulator.Rule) error {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%-32s %-10s %s\n", r.ID, r.Source, r.Text)
	}
	b.WriteString("\nsources\n")
	for _, s := range emulator.Sources() {
		fmt.Fprintf(&b, "%-32s %-10s %s\n", "", s.Name, s.Meaning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
