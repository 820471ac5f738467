//go:build unix

// Command needs tells what the tests need and this machine lacks: a line for each, with
// its name, its Debian packages and its title, separated by tabs.
package main

import (
	"fmt"
	"strings"

	"contend/targets/targettest/servers"
)

func main() {
	for _, k := range servers.Kinds() {
		if !k.Installed() {
			fmt.Printf("%s\t%s\t%s\n", k.Name, strings.Join(k.Debian, " "), k.Title)
		}
	}
}
