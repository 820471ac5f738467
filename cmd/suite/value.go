package suite

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"contend/targets/all"
)

// kind is what a parameter is written as.
type kind int

const (
	aText kind = iota
	aWhole
	aNatural // a whole number from 0 on
	aNumber
	aBool
	aDuration
)

func (k kind) String() string {
	return [...]string{
		aText: "a text", aWhole: "a whole number", aNatural: "a whole number from 0 on", aNumber: "a number",
		aBool: "true or false", aDuration: "a duration",
	}[k]
}

// kind gives how a value of the parameter is written, and whether the parameter
// is repeatable.
func (p Parameter) kind() (k kind, repeatable bool) {
	base := p.base()
	switch strings.TrimRight(base, "0123456789") {
	case "int":
		k = aWhole
	case "uint", "count":
		k = aNatural
	case "float":
		k = aNumber
	case "bool":
		k = aBool
	case "duration":
		k = aDuration
	}
	return k, base != p.Type
}

// base is the type of one value.
func (p Parameter) base() string {
	return strings.TrimSuffix(strings.TrimSuffix(p.Type, "Array"), "Slice")
}

// durationPattern is what time.ParseDuration takes, but for a 0 without a unit.
const durationPattern = `^[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

var (
	decimal   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	unitless  = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$`)
	durations = regexp.MustCompile(durationPattern)
)

// choices reads the values of a parameter; none where they are refused.
func (r *reader) choices(p Parameter, n *yaml.Node) []choice {
	if told(n) {
		return nil
	}
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		if items = n.Content; len(items) == 0 {
			r.problem(n, "%s has an empty list: write at least one value, or leave it out", p.Name)
			return nil
		}
		if len(items) > MaxRuns {
			r.problem(n, "%s has a list of %d values: at most %d are taken", p.Name, len(items), MaxRuns)
			return nil
		}
	}
	var all []choice
	for _, item := range items {
		if c, ok := r.value(p, item); ok {
			all = append(all, c)
		}
	}
	_, repeatable := p.kind()
	if !repeatable {
		return all
	}
	if len(all) < len(items) {
		return nil
	}
	together := choice{at: n}
	var written []string
	for _, c := range all {
		together.values = append(together.values, c.values...)
		written = append(written, c.written)
	}
	together.written = strings.Join(written, ",")
	return []choice{together}
}

// value reads one value of a parameter.
func (r *reader) value(p Parameter, n *yaml.Node) (choice, bool) {
	k, _ := p.kind()
	raw, ok := r.scalar(p.Name, k.String(), n)
	if !ok {
		return choice{}, false
	}
	if p.Name == "target" {
		value, ok := r.target(n, raw)
		return choice{[]string{value}, inName(raw), n}, ok
	}
	if !r.unsubstituted(n) {
		return choice{}, false
	}
	value, hint := raw, ""
	switch k {
	case aText:
		if leaks(raw) {
			r.problem(n, "%s holds a secret, which is never in a suite file", p.Name)
			return choice{}, false
		}
	case aWhole, aNatural:
		value, hint = readWhole(p.base(), n)
	case aNumber:
		value, hint = readNumber(n)
	case aBool:
		value, hint = readBool(n)
	case aDuration:
		value, hint = readDuration(n)
	}
	if value == "" && k != aText {
		r.problem(n, "%s wants %s; there is %s%s", p.Name, k, describe(n), hint)
		return choice{}, false
	}
	if p.Values != nil && !slices.Contains(p.Values, value) {
		r.problem(n, "%s is one of %s; there is %s%s", p.Name, strings.Join(p.Values, ", "), describe(n), suggestion(value, p.Values, ""))
		return choice{}, false
	}
	return choice{[]string{value}, inName(value), n}, true
}

// readWhole gives the digits, or "" and a hint.
func readWhole(base string, n *yaml.Node) (value, hint string) {
	bits, _ := strconv.Atoi(strings.TrimLeft(base, "uint"))
	_, err := strconv.ParseInt(n.Value, 10, bits)
	if base[0] == 'u' || base == "count" {
		_, err = strconv.ParseUint(n.Value, 10, bits)
	}
	switch digits := decimal.MatchString(n.Value); {
	case digits && n.ShortTag() == "!!str":
		return "", ": write it without quotes"
	case digits && err != nil && n.Value[0] != '-':
		return "", ": it is too large"
	case digits && err == nil:
		return n.Value, ""
	case !digits && n.ShortTag() == "!!int":
		return "", ": write it in decimal digits"
	}
	return "", ""
}

// readNumber gives the number, or "" and a hint.
func readNumber(n *yaml.Node) (value, hint string) {
	f, err := strconv.ParseFloat(n.Value, 64)
	isNumber := err == nil && !math.IsInf(f, 0) && !math.IsNaN(f)
	switch n.ShortTag() {
	case "!!str":
		if isNumber {
			return "", ": write it without quotes"
		}
	case "!!float":
		if isNumber {
			return n.Value, ""
		}
	case "!!int":
		if decimal.MatchString(n.Value) && isNumber {
			return n.Value, ""
		}
		return "", ": write it in decimal digits"
	}
	return "", ""
}

// readBool gives true or false, or "" and a hint.
func readBool(n *yaml.Node) (value, hint string) {
	lower := strings.ToLower(n.Value)
	switch {
	case n.ShortTag() == "!!bool":
		return lower, ""
	case slices.Contains([]string{"true", "false"}, lower) && n.ShortTag() == "!!str":
		return "", ": write it without quotes"
	case slices.Contains([]string{"yes", "on", "y", "1"}, lower):
		return "", ": write true"
	case slices.Contains([]string{"no", "off", "n", "0"}, lower):
		return "", ": write false"
	}
	return "", ""
}

// readDuration gives the duration, or "" and a hint.
func readDuration(n *yaml.Node) (value, hint string) {
	if unitless.MatchString(n.Value) {
		return "", ": write " + clip(n.Value) + "s"
	}
	if !durations.MatchString(n.Value) {
		return "", ": write it like 10s or 1m30s"
	}
	if _, err := time.ParseDuration(n.Value); err != nil {
		return "", ": it is too long"
	}
	return n.Value, ""
}

// scalar gives the text of a single value, as written.
func (r *reader) scalar(what, want string, n *yaml.Node) (string, bool) {
	if told(n) {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		r.problem(n, "%s wants %s; there is %s", what, want, describe(n))
		return "", false
	}
	return n.Value, true
}

// text gives a text that is neither replaced nor a secret.
func (r *reader) text(what string, n *yaml.Node) (string, bool) {
	raw, ok := r.scalar(what, "a text", n)
	if !ok || !r.unsubstituted(n) {
		return "", false
	}
	if raw == "" {
		r.problem(n, "%s is empty", what)
		return "", false
	}
	if leaks(raw) {
		r.problem(n, "%s holds a secret, which is never in a suite file", what)
		return "", false
	}
	return raw, true
}

// describe tells what is there.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return n.Value
	}
	return "the text " + shown(n.Value)
}

// shown gives a text for an error: quoted, not too long, a URL without its secrets.
func shown(s string) string {
	if strings.Contains(s, "://") {
		s = all.Redact(s)
	}
	return fmt.Sprintf("%q", clip(s))
}

func clip(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}
