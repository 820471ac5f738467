package cmd

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are shown in the help of each command that has none of its own, by its
// path: two or three that can be pasted.
var examples = map[string][]string{
	"": {
		"contend fail-if-exists",
		"contend lease -t redis://127.0.0.1:6379 -n 20 -r 50",
		"contend targets redis",
	},
	"fail-if-exists": {
		"contend fail-if-exists",
		"contend fail-if-exists -t redis://127.0.0.1:6379 -n 20 -r 100",
		"contend fail-if-exists -t 'sim:?latency=0&fault=gap=5ms' --offset-sweep 10ms",
	},
	"version-cas": {
		"contend version-cas -t postgres://me@127.0.0.1/test",
		"contend version-cas -r 50 -o json=run.json -o markdown=run.md",
		"contend version-cas --dry-run -r 50",
	},
	"lease": {
		"contend lease -t redis://127.0.0.1:6379",
		"contend lease --expiry ttl --term 2s -r 10",
		"contend lease -t redis://127.0.0.1:6379 --offset-sweep 2ms",
	},
	"check-then-set": {
		"contend check-then-set --expect-verdict violated",
		"contend check-then-set -t postgres://me@127.0.0.1/test -n 4 -r 10",
	},
	"counter": {
		"contend counter -n 8 -r 10",
		"contend counter -n 2,4,8,16 -o csv=curve.csv",
		"contend counter -t redis://127.0.0.1:6379 --expect 'p90(won)<250ms'",
	},
	"duplicate-event": {
		"contend duplicate-event",
		"contend duplicate-event -t redis://127.0.0.1:6379 -r 50 --record events.jsonl",
		"contend duplicate-event --offset-sweep 300ms -r 3",
	},
	"lost-update": {
		"contend lost-update --guard version",
		"contend lost-update --guard none --expect-verdict violated",
	},
	"ttl-ghost": {
		"contend ttl-ghost",
		"contend ttl-ghost -t redis://127.0.0.1:6379 --keys 20 --ttl 1s --watch 1m",
		"contend ttl-ghost --resume --store ghosts.db",
	},
	"probe": {
		"contend probe",
		"contend probe -t redis://127.0.0.1:6379 -o json=before.json",
		"contend probe -t redis://127.0.0.1:6379 --since before.json",
	},
	"run": {
		"contend run examples/suite.yaml",
		"contend run examples/suite.yaml --dry-run",
		"contend run examples/suite.yaml --store nights.db -o json=suite.json",
	},
	"nightly": {
		"contend nightly examples/night.yaml",
		"contend nightly examples/night.yaml --within 6h --store nights.db -o markdown=night.md",
	},
	"judge": {
		"contend judge run.jsonl",
		"contend judge run.jsonl -o json",
	},
	"targets": {
		"contend targets",
		"contend targets sim",
	},
	"sim": {
		"contend sim serve",
		"contend sim rules",
	},
	"sim serve": {
		"contend sim serve",
		"contend sim serve --listen 127.0.0.1:0 --sweep 2s..8s --latency published",
		"contend sim serve --manifest manifest.yml --log",
	},
	"sim rules": {
		"contend sim rules",
		"contend sim rules -o json",
	},
	"sim shim": {
		"contend sim shim",
		"contend sim shim > forge-shim.cjs",
	},
	"forge": {
		"contend forge init my-app",
		"contend forge init --help",
	},
	"forge init": {
		"contend forge init my-app",
		"contend forge init ~/src/contend-app",
	},
	"results": {
		"contend results list",
		"contend results trend --scenario ttl-ghost --nights 7",
	},
	"results list": {
		"contend results list --since 7d",
		"contend results list --store nights.db --scenario lease -o csv",
	},
	"results show": {
		"contend results show 01M8P4",
		"contend results show 01M8P4 --store nights.db -o json",
	},
	"results ghosts": {
		"contend results ghosts --open",
		"contend results ghosts --state blocked -o csv=blocked.csv",
	},
	"results trend": {
		"contend results trend",
		"contend results trend --scenario fail-if-exists --since 30d --fail-on-alarm",
	},
	"results export": {
		"contend results export --since 30d",
		"contend results export --format csv --ghosts",
	},
	"results prune": {
		"contend results prune --keep 400d --dry-run",
		"contend results prune --keep 8w --store nights.db",
	},
	"help": {
		"contend help lease",
		"contend help results list",
	},
}

// addExamples gives the command and those below it their examples.
func addExamples(cmd *cobra.Command) {
	path := strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
	if lines := examples[path]; lines != nil && cmd.Example == "" {
		cmd.Example = "  " + strings.Join(lines, "\n  ")
	}
	for _, sub := range cmd.Commands() {
		addExamples(sub)
	}
}
