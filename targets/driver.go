package targets

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
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
	Answers  Answers    // how replies are sorted into outcomes
	// Raw is the form of Op.Raw; "": there are no raw requests.
	Raw string
	// Secrets says what is secret in its URLs, beside what is in those of all kinds.
	Secrets Secrets
	// Make makes a target of a URL that Open has checked. It sends nothing; a URL that
	// cannot be is a *UsageError.
	Make func(Address) (Target, error)
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

// Accepted is what the answer to a request must be to count: its status and body,
// its type, its command tag, and nothing like it. Any other that is no error of the
// table is Unmapped, under the code "unexpected", with a sample of it as the message.
type Accepted struct {
	Request string
	Answer  string // in the words of the protocol
	Code    string // which Answers sort; "": OK
}

// Answer is one row of a target's table of replies.
type Answer struct {
	Code    string // "": any code
	Status  int    // 0: any status; below 10: any of that hundred, 5 for 500 to 599
	Outcome Outcome
	Source  string // where the meaning was read or measured
}

// Answers is a target's table of replies.
type Answers []Answer

// Outcome sorts a reply by the first row that fits; without one it is Unmapped.
func (rows Answers) Outcome(code string, status int) Outcome {
	for _, row := range rows {
		if (row.Code == "" || row.Code == code) && (row.Status == 0 || row.Status == status || row.Status == status/100) {
			return row.Outcome
		}
	}
	return Unmapped
}

// Address is the URL of a target, as its driver knows it.
type Address struct {
	*url.URL
	Driver *Driver
}

// Open gives the target of a URL whose scheme is the driver's. It sends nothing. An
// error masks the URL's secrets.
func (d Driver) Open(u *url.URL) (Target, error) {
	if err := d.check(u); err != nil {
		return nil, d.Secrets.MaskError(err, u)
	}
	t, err := d.Make(Address{u, &d})
	return t, d.Secrets.MaskError(err, u)
}

// Masked is the URL without its secrets: what a report knows the target by.
func (a Address) Masked() string { return a.Driver.Secrets.Mask(a.URL) }

// Mask masks the secrets of the URL in an error's text, keeping its chain.
func (a Address) Mask(err error) error { return a.Driver.Secrets.MaskError(err, a.URL) }

// Usagef is a *UsageError about the URL.
func (a Address) Usagef(format string, values ...any) error {
	return &UsageError{fmt.Sprintf("target %q: %s", a.Masked(), fmt.Sprintf(format, values...))}
}

// Param gives the value of a parameter, or its default.
func (a Address) Param(name string) string {
	if v := a.Query().Get(name); v != "" {
		return v
	}
	for _, p := range a.Driver.Parameters {
		if p.Name == name {
			return p.Default
		}
	}
	panic("targets: " + a.Driver.Name + " has no parameter " + name)
}

// PassedOn is the URL for the store's own client: with no other parameters than those
// without a meaning of ours. What is left is not encoded anew: to some, "+" is no space.
func (a Address) PassedOn() string {
	theirs := *a.URL
	theirs.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(a.RawQuery, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(a.Driver.Parameters, func(p Parameter) bool { return p.Name == name && p.Meaning != "" })
	}), "&")
	return theirs.String()
}

// Strategies are the chosen values of all parameters whose values have losers.
func (a Address) Strategies() map[string]string {
	chosen := make(map[string]string)
	for _, p := range a.Driver.Parameters {
		if slices.ContainsFunc(p.Values, func(v Value) bool { return len(v.Losers) > 0 }) {
			chosen[p.Name] = a.Param(p.Name)
		}
	}
	return chosen
}

func (d Driver) check(u *url.URL) error {
	address := Address{u, &d}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return address.Usagef("the part after ? cannot be read: %v", err)
	}
	names := slices.Sorted(maps.Keys(query))
	for _, name := range names {
		i := slices.IndexFunc(d.Parameters, func(p Parameter) bool { return p.Name == name })
		if i < 0 {
			return address.Usagef("unknown parameter %q; %s takes %s", name, d.Name, d.names())
		}
		if len(query[name]) > 1 {
			return address.Usagef("parameter %q is given more than once", name)
		}
		if err := d.Parameters[i].check(query.Get(name)); err != nil {
			return address.Usagef("%v", err)
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

// Losers are the codes that the refused writes of a strategy carry: of the value that a
// parameter has. listed is false where the driver has no such value.
func (d Driver) Losers(parameter, value string) (losers []string, listed bool) {
	for _, p := range d.Parameters {
		for _, v := range p.Values {
			if p.Name == parameter && v.Name == value {
				return v.Losers, true
			}
		}
	}
	return nil, false
}
