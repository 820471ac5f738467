// Package shim holds the script that lets unmodified @forge/kvs and @forge/sql
// talk to a local server.
package shim

import "embed"

const name = "forge-shim.cjs"

//go:embed forge-shim.cjs
var files embed.FS

// Source returns the script, for "node --require".
func Source() string {
	source, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(source)
}
