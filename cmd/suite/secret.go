package suite

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"contend/targets/all"
)

// opening begins what is replaced from the environment.
const opening = "${"

const secretKey = "%s names a secret, and no secret is in a suite file: it comes from the environment, in a target as ${NAME}"

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces each ${NAME}.
func expand(text string, value func(name string) string) (string, error) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, opening)
		if !ok {
			b.WriteString(text)
			return b.String(), nil
		}
		if escaped, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(escaped + opening)
			text = after
			continue
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok || !variable.MatchString(name) {
			return "", errors.New("${ wants the name of a variable and }, such as ${NAME}; $${ writes ${")
		}
		b.WriteString(before + value(name))
		text = rest
	}
}

// fromEnvironment gives a text with each ${NAME} replaced.
func (r *reader) fromEnvironment(at *yaml.Node, raw string, mayBeEmpty bool) (string, bool) {
	good := true
	value, err := expand(raw, func(name string) string {
		value, set := r.getenv(name)
		switch {
		case !set:
			r.problem(at, "${%s}: %s is not set in the environment", name, name)
			good = false
		case value == "" && !mayBeEmpty:
			r.problem(at, "${%s}: %s is empty in the environment", name, name)
			good = false
		}
		return value
	})
	if err != nil {
		r.problem(at, "%v", err)
		return "", false
	}
	return value, good
}

// unsubstituted refuses a ${ where none is replaced.
func (r *reader) unsubstituted(n *yaml.Node) bool {
	if strings.Contains(n.Value, opening) {
		r.problem(n, "${ is only replaced in target and in the values of labels")
		return false
	}
	return true
}

// target gives the target, if no secret is in what is written.
func (r *reader) target(n *yaml.Node, raw string) (string, bool) {
	// Where a variable stands is as good as what Redact writes over a secret.
	covered, err := expand(raw, func(string) string { return mask })
	if err != nil {
		r.problem(n, "%v", err)
		return "", false
	}
	if strings.HasPrefix(raw, opening) && !strings.HasPrefix(covered, mask+"://") {
		covered = "any://" + covered // the variable has the scheme
	}
	covered = maskedPort.ReplaceAllString(covered, "${1}1${2}")
	if _, err := url.Parse(covered); err != nil {
		r.problem(n, "target is not a URL; in one, a character such as the / of a password is percent-encoded")
		return "", false
	}
	if holdsSecret(covered, true) {
		r.problem(n, "target holds a secret, which is never in a suite file: write ${NAME} in its place and set NAME in the environment")
		return "", false
	}
	return r.fromEnvironment(n, raw, false)
}

// mask is what all.Redact writes over a secret.
const mask = "xxxxx"

// maskedPort finds a variable where a port is, which has to be a number.
var maskedPort = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*:)` + mask + `($|[/?#])`)

// holdsSecret tells whether all.Redact would mask something of a URL that is
// not masked yet; the path counts for targets only.
func holdsSecret(raw string, path bool) bool {
	if !strings.Contains(raw, ":") {
		// It is no URL, which is told elsewhere; but a connection string has secrets too.
		return strings.ContainsAny(raw, "=@")
	}
	parts := func(raw string) (string, error) {
		u, err := url.Parse(raw)
		if err != nil {
			return "", err
		}
		u.RawPath, u.RawQuery = "", u.Query().Encode()
		if !path {
			u.Path = ""
		}
		return u.String(), nil
	}
	before, err := parts(raw)
	if err != nil {
		return true
	}
	after, err := parts(all.Redact(raw))
	return err != nil || before != after
}

// leaks tells whether a text that is no target is a URL with a secret in it.
// Ordinary links have paths; those of web triggers are secrets.
func leaks(text string) bool {
	if _, err := url.Parse(text); err != nil || !strings.Contains(text, "://") {
		return false
	}
	return holdsSecret(text, strings.HasPrefix(text, "forge+"))
}

// hintsSecret tells whether a name is that of a secret.
func hintsSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"password", "secret", "token"}, func(s string) bool { return strings.Contains(name, s) })
}

// secret tells whether the parameter takes a secret: a flag, a number or one of
// several words is none.
func (p Parameter) secret() bool {
	k, _ := p.kind()
	return k == aText && p.Values == nil && hintsSecret(p.Name)
}
