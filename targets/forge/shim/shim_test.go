package shim_test

import (
	"os"
	"testing"

	"contend/targets/forge/shim"
)

func TestSourceIsTheScript(t *testing.T) {
	script, err := os.ReadFile("forge-shim.cjs")
	if err != nil {
		t.Fatal(err)
	}
	if got := shim.Source(); got == "" || got != string(script) {
		t.Errorf("got %q, want the text of forge-shim.cjs", got)
	}
}
