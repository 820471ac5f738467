//go:build unix

// Command wrong is a store with a fault that has a name, to see what contend says of it:
//
//	go run ./targets/targettest/wrong NAME [flags]
//	go run ./targets/targettest/wrong NAME [flags] -- COMMAND…
//
// It prints the URL of the target and serves until it is interrupted, or runs a command,
// in whose words URL stands for that URL, and ends with it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"contend/targets/targettest"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintf(os.Stderr, "wrong: %v\n", err)
		os.Exit(2)
	}
}

func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	var words []string
	if i := slices.Index(arguments, "--"); i >= 0 {
		arguments, words = arguments[:i], arguments[i+1:]
		if len(words) == 0 {
			return errors.New("after -- a command is missing, such as: go run . fail-if-exists -t URL")
		}
	}
	if len(arguments) == 0 || !known(arguments[0]) {
		list(stderr)
	}
	dir, err := os.MkdirTemp("", "contend-wrong-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := targettest.StartWrong(dir, arguments...)
	if errors.Is(err, flag.ErrHelp) {
		list(stderr)
		return nil
	}
	if err != nil {
		return err
	}
	defer server.Stop()
	if words != nil {
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "URL", server.URL)
		}
		// An interrupt goes to the whole group, so the command ends by itself.
		command := exec.Command(words[0], words[1:]...)
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, stdout, stderr
		return command.Run()
	}
	fmt.Fprintln(stdout, server.URL)
	<-ctx.Done()
	return nil
}

func known(name string) bool {
	return slices.ContainsFunc(targettest.WrongStores(), func(s targettest.WrongStore) bool { return s.Name == name })
}

func list(w io.Writer) {
	fmt.Fprint(w, "usage: go run ./targets/targettest/wrong NAME [flags] [-- COMMAND…]\n\n"+
		"Prints the URL of a target that is wrong on purpose and serves until it is interrupted, or runs\n"+
		"the command, in whose words URL stands for that URL.\n\n")
	for _, s := range targettest.WrongStores() {
		front := ""
		if s.Backends != "" {
			front = " (-b " + s.Backends + ")"
		}
		fmt.Fprintf(w, "  %-22s %s%s\n", s.Name, s.Says, front)
	}
	fmt.Fprintf(w, "\n%s\n", targettest.WrongFlags())
}
