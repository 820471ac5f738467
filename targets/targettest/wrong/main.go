//go:build unix

// Command wrong is a store with a fault that has a name, to see what contend says of
// it: go run ./targets/targettest/wrong NAME [flags]. It prints the URL of the target
// and serves until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"contend/targets/targettest"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "wrong: %v\n", err)
		os.Exit(2)
	}
}

func run(arguments []string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "contend-wrong-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := targettest.StartWrong(dir, arguments...)
	if errors.Is(err, flag.ErrHelp) || err != nil && !known(arguments) {
		list()
	}
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	defer server.Stop()
	fmt.Println(server.URL)
	<-ctx.Done()
	return nil
}

// known tells whether the first argument names a wrong store.
func known(arguments []string) bool {
	for _, s := range targettest.WrongStores() {
		if len(arguments) > 0 && s.Name == arguments[0] {
			return true
		}
	}
	return false
}

func list() {
	fmt.Fprint(os.Stderr, "usage: go run ./targets/targettest/wrong NAME [flags]\n\n")
	for _, s := range targettest.WrongStores() {
		front := ""
		if s.Backends != "" {
			front = " (-b " + s.Backends + ")"
		}
		fmt.Fprintf(os.Stderr, "  %-22s %s%s\n", s.Name, s.Says, front)
	}
	fmt.Fprintf(os.Stderr, "\n%s\n", targettest.WrongFlags())
}
