//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"contend/targets/targettest"
)

// Whoever gives no name, or a wrong one, or asks for help, is told every name.
func TestNamesAreListed(t *testing.T) {
	for _, arguments := range []string{"", "nope", "-h", "window -h"} {
		var stdout, stderr bytes.Buffer
		err := run(t.Context(), strings.Fields(arguments), &stdout, &stderr)
		if (err == nil) != (arguments == "window -h") || stdout.Len() > 0 {
			t.Errorf("wrong %s: %v\n%s", arguments, err, &stdout)
		}
		for _, s := range targettest.WrongStores() {
			if strings.Count(stderr.String(), "  "+s.Name+" ") != 1 || !strings.Contains(stderr.String(), s.Says) {
				t.Errorf("wrong %s: %s is not listed", arguments, s.Name)
			}
		}
	}
}

func TestServesUntilItIsInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout bytes.Buffer
	if err := run(ctx, []string{"window"}, &stdout, nil); err != nil || !strings.HasPrefix(stdout.String(), "redis://127.0.0.1:") {
		t.Errorf("%v: %s", err, &stdout)
	}
}

func TestRunsACommand(t *testing.T) {
	var stdout, stderr bytes.Buffer
	err := run(t.Context(), []string{"window", "-window", "1ms", "--", "sh", "-c", "echo $0; exit 3", "URL?create=nx"}, &stdout, &stderr)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("the command's own exit status is not given: %v", err)
	}
	if got := stdout.String(); !strings.HasPrefix(got, "redis://127.0.0.1:") || !strings.HasSuffix(got, "?create=nx\n") {
		t.Errorf("the URL is not in the command: %s", got)
	}
	if err := run(t.Context(), []string{"window", "--"}, &stdout, &stderr); err == nil {
		t.Error("no command is taken")
	}
}
