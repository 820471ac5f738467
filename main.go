// Command contend finds out what a store really does when many writers want the
// same key at the same moment, and says how sure it is.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"contend/cmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first interrupt the run settles; with the handler gone, a second
	// one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cmd.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
