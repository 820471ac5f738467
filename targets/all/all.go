// Package all lists every kind of target.
package all

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"contend/targets"
	"contend/targets/forge"
	"contend/targets/postgres"
	"contend/targets/redis"
	"contend/targets/secret"
	"contend/targets/sim"
)

// Drivers lists every kind of target.
func Drivers() []targets.Driver {
	return []targets.Driver{sim.Driver(), forge.Driver(), forge.RESTDriver(), redis.Driver(), postgres.Driver()}
}

// Open parses a target URL. It sends nothing; what is no URL, or has an unknown scheme
// or parameter, is a *targets.UsageError that lists what there is.
func Open(raw string) (targets.Target, error) {
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
	if targets.Spilt(u) {
		return nil, usagef("target %q: there is an @ or a parameter where none can be: percent-encode special characters of a password (@ is %%40, / is %%2F, ? is %%3F), and begin parameters with ?",
			Redact(raw))
	}
	for host := range strings.SplitSeq(u.Host, ",") {
		if port, given := portOf(host); given && (port < 1 || port > 65535) {
			return nil, usagef("target %q: there is no such port; ports go from 1 to 65535", Redact(raw))
		}
	}
	if d, known := driverOf(u.Scheme); known {
		return d.Open(u)
	}
	return nil, usagef("target %q: unknown scheme %q; there are %s (see `contend targets`)",
		Redact(raw), u.Scheme, strings.Join(schemes(), ", "))
}

func usagef(format string, a ...any) error {
	return &targets.UsageError{Text: fmt.Sprintf(format, a...)}
}

// driverOf gives the driver of a scheme.
func driverOf(scheme string) (targets.Driver, bool) {
	for _, d := range Drivers() {
		if slices.Contains(d.Schemes, scheme) {
			return d, true
		}
	}
	return targets.Driver{}, false
}

func schemes() (all []string) {
	for _, d := range Drivers() {
		all = append(all, d.Schemes...)
	}
	return all
}

// Redact masks the secrets of a target's URL. What has no scheme is masked as a whole.
func Redact(raw string) string {
	if !hasScheme(raw) {
		return secret.Masked
	}
	scheme := strings.TrimSuffix(targets.Scheme(raw), ":")
	if d, known := driverOf(scheme); known {
		return d.Secrets.MaskRaw(raw)
	}
	// Where forge+ was forgotten, it is the address of a web trigger all the same.
	return targets.Secrets{LoneUser: true, PathEnd: strings.HasPrefix(scheme, "http")}.MaskRaw(raw)
}
