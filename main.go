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
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, settle := context.WithCancel(context.Background())
	halt := make(chan struct{})
	go func() {
		<-signals
		settle()
		<-signals
		// With the handler gone, a third one ends the process whatever it does.
		signal.Stop(signals)
		close(halt)
	}()
	os.Exit(cmd.Run(cmd.WithHalt(ctx, halt), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
