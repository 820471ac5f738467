package targets

import (
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"

	"contend/targets/secret"
)

// Driver is one kind of target: what `contend targets` shows, and how a URL
// becomes a Target.
type Driver struct {
	Name       string
	Schemes    []string
	Form       string // the URL's form
	Example    string
	Summary    string
	Parameters []Parameter
	// Releases are all that a target of this kind may have in Description.Releases.
	Releases []Release
	Accepted []Accepted // what a request must be answered with
	Answers  []Answer   // how replies are sorted into outcomes
	open     func(*url.URL) (Target, error)
}

// Parameter is one key of a URL's query.
type Parameter struct {
	Name    string
	Default string
	Meaning string  // "": passed on to the store's own client as it is
	Values  []Value // empty: free form, checked by the driver
}

// Value is one value that a parameter can take. For a strategy, Losers are the
// codes that its refused writes carry.
type Value struct {
	Name     string
	Argument string // what may follow after "=", e.g. "SHARE"; "": nothing may
	Meaning  string
	Losers   []string
}

// Drivers lists every kind of target.
func Drivers() []Driver {
	return []Driver{simDriver(), forgeDriver(), forgeRESTDriver(), redisDriver(), postgresDriver()}
}

// Open parses a target URL. It sends nothing; what is no URL, or has an unknown scheme
// or parameter, is a *UsageError that lists what there is.
func Open(raw string) (Target, error) {
	if !hasScheme(raw) {
		return nil, usagef("the target has no scheme: did you mean %s? See `contend targets`", meant(raw))
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, usagef("target %q is not a URL; see `contend targets`, and percent-encode special characters of a password (# is %%23, / is %%2F)", Redact(raw))
	}
	if u.Fragment != "" {
		return nil, usagef("target %q: what follows # is no part of it; percent-encode a # as %%23", Redact(raw))
	}
	if spilt(u) {
		return nil, usagef("target %q: there is an @ or a parameter where none can be: percent-encode special characters of a password (@ is %%40, / is %%2F, ? is %%3F), and begin parameters with ?",
			Redact(raw))
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if port, given := portOf(host); given && (port < 1 || port > 65535) {
			return nil, usagef("target %q: there is no such port; ports go from 1 to 65535", Redact(raw))
		}
	}
	for _, d := range Drivers() {
		if slices.Contains(d.Schemes, u.Scheme) {
			if err := d.check(u); err != nil {
				return nil, redactError(err, u)
			}
			t, err := d.open(u)
			return t, redactError(err, u)
		}
	}
	return nil, usagef("target %q: unknown scheme %q; there are %s (see `contend targets`)",
		Redact(raw), u.Scheme, strings.Join(schemes(), ", "))
}

func schemes() (all []string) {
	for _, d := range Drivers() {
		all = append(all, d.Schemes...)
	}
	return all
}

func (d Driver) check(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return usagef("target %q: the part after ? cannot be read: %v", Redact(u.String()), err)
	}
	names := make([]string, 0, len(query))
	for name := range query {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		i := slices.IndexFunc(d.Parameters, func(p Parameter) bool { return p.Name == name })
		if i < 0 {
			return usagef("target %q: unknown parameter %q; %s takes %s", Redact(u.String()), name, d.Name, d.names())
		}
		if len(query[name]) > 1 {
			return usagef("target %q: parameter %q is given more than once", Redact(u.String()), name)
		}
		if err := d.Parameters[i].check(query.Get(name)); err != nil {
			return usagef("target %q: %v", Redact(u.String()), err)
		}
	}
	return nil
}

func (d Driver) names() string {
	if len(d.Parameters) == 0 {
		return "none"
	}
	var names []string
	for _, p := range d.Parameters {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func (p Parameter) check(value string) error {
	if len(p.Values) == 0 {
		return nil
	}
	var names []string
	for _, v := range p.Values {
		name, _, argued := strings.Cut(value, "=")
		if v.Name == name && (!argued || v.Argument != "") {
			return nil
		}
		if v.Argument != "" {
			v.Name += "[=" + v.Argument + "]"
		}
		names = append(names, v.Name)
	}
	return fmt.Errorf("%s=%q is not one of %s", p.Name, value, strings.Join(names, ", "))
}

// param gives the value of a parameter, or its default.
func (d Driver) param(u *url.URL, name string) string {
	if v := u.Query().Get(name); v != "" {
		return v
	}
	for _, p := range d.Parameters {
		if p.Name == name {
			return p.Default
		}
	}
	panic("targets: " + d.Name + " has no parameter " + name)
}

const masked = secret.Masked

// Masked tells whether Redact has taken something out of the URL.
func Masked(url string) bool { return strings.Contains(url, masked) }

var secretParameters = []string{"pass", "token", "secret"}

// Redact masks the password and the secret parameters of a URL, and the end of a
// web trigger's path. What has no scheme is masked as a whole, and what cannot be
// parsed from the scheme on, since nobody can tell what is in it.
func Redact(raw string) string {
	if !hasScheme(raw) {
		return masked
	}
	u, err := url.Parse(raw)
	if err != nil {
		scheme, _, _ := strings.Cut(raw, ":")
		return scheme + ":" + masked
	}
	if _, ok := u.User.Password(); ok {
		name := u.User.Username()
		if password, _ := u.User.Password(); spiltName(u) || password == "" && name != "" && loneUserIsSecret(u) {
			name = masked
		}
		u.User = url.UserPassword(name, masked)
	} else if u.User.Username() != "" && loneUserIsSecret(u) {
		u.User = url.User(masked)
	}
	if u.Opaque != "" {
		u.Opaque = masked
	}
	q, err := url.ParseQuery(u.RawQuery)
	whole := err == nil && !spilt(u)
	if spilt(u) {
		u.Host, u.Path, u.RawPath = masked, "", ""
	}
	if u.Fragment != "" {
		u.Fragment, u.RawFragment = masked, ""
	}
	if !whole && u.RawQuery != "" {
		// Nobody can tell which part of it is whose.
		u.RawQuery, q = masked, nil
	}
	for name, values := range q {
		if isSecret(name) || slices.ContainsFunc(values, isSecret) {
			q.Set(name, masked)
			u.RawQuery = q.Encode()
		}
	}
	if i, j := triggerID(u); i < j {
		u.Path, u.RawPath = u.Path[:i]+masked+u.Path[j:], ""
	}
	return u.String()
}

// isSecret tells whether a parameter is one, however it is written.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretParameters, func(s string) bool { return strings.Contains(name, s) })
}

// triggerID gives where the last part of the path begins and ends: in the address
// of a web trigger, also where its forge+ was forgotten, it is a secret itself.
func triggerID(u *url.URL) (begin, end int) {
	if !strings.HasPrefix(strings.TrimPrefix(u.Scheme, "forge+"), "http") {
		return 0, 0
	}
	end = len(strings.TrimRight(u.Path, "/"))
	return strings.LastIndexByte(u.Path[:end], '/') + 1, end
}

// redactError masks the secrets of u in an error's text, keeping its chain.
func redactError(err error, u *url.URL) error {
	if err == nil {
		return nil
	}
	text := secret.Mask(err.Error(), secrets(u)...)
	if text == err.Error() {
		return err
	}
	return &redactedError{text, err}
}

func secrets(u *url.URL) []string {
	var all []string
	add := func(secret string) { all = append(all, secret) }
	password, _ := u.User.Password()
	add(password)
	if password == "" && loneUserIsSecret(u) || spiltName(u) {
		add(u.User.Username())
	}
	add(u.Fragment)
	for name, values := range u.Query() {
		for _, v := range values {
			if isSecret(name) || isSecret(v) {
				add(v)
			}
		}
	}
	if i, j := triggerID(u); i < j {
		add(u.Path[i:j])
	}
	return all
}

// loneUserIsSecret: a user without a password is most likely a password without
// its colon, or a token, where no store has users without one.
func loneUserIsSecret(u *url.URL) bool { return !strings.HasPrefix(u.Scheme, "postgres") }

// spiltName tells whether what stands for the user holds the @ behind a password.
func spiltName(u *url.URL) bool { return strings.Contains(u.User.Username(), "@") }

// spilt tells whether a secret stands where no target has anything of its kind, so
// that nobody can tell what is whose: a password held a character that ends the
// place of passwords, and left its @ behind, or a parameter came without its ?.
func spilt(u *url.URL) bool {
	for name, values := range u.Query() {
		if !isSecret(name) && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "=") && isSecret(v) }) {
			return true
		}
	}
	before := u.Host + u.Path
	return strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") || strings.Contains(u.Host, "=") || strings.Contains(before, "=") && isSecret(before)
}

type redactedError struct {
	text  string
	cause error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.cause }
