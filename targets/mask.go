package targets

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"contend/targets/secret"
)

const masked = secret.Masked

// Masked tells whether something was taken out of the URL.
func Masked(url string) bool { return strings.Contains(url, masked) }

// Secrets says what is secret in the URLs of a kind of target, beside passwords and
// the parameters that are named as secrets.
type Secrets struct {
	// LoneUser: a user without a password is most likely a password without its
	// colon, or a token. The store has no users without one.
	LoneUser bool
	// PathEnd: so is the last part of the path, as in the address of a web trigger.
	PathEnd bool
}

var schemePattern = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)

// Scheme gives the scheme of a target, in lower case and with its colon; "": it has none.
func Scheme(raw string) string { return strings.ToLower(schemePattern.FindString(raw)) }

var secretParameters = []string{"pass", "token", "secret"}

// MaskRaw masks a URL that may not be one: what cannot be parsed is masked from the
// scheme on, since nobody can tell what is in it.
func (s Secrets) MaskRaw(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		scheme, _, _ := strings.Cut(raw, ":")
		return scheme + ":" + masked
	}
	return s.Mask(u)
}

// Mask masks the password and the secret parameters of a URL, and what else is secret.
func (s Secrets) Mask(of *url.URL) string {
	copied := *of
	u := &copied
	if _, ok := u.User.Password(); ok {
		name := u.User.Username()
		if password, _ := u.User.Password(); spiltName(u) || password == "" && name != "" && s.LoneUser {
			name = masked
		}
		u.User = url.UserPassword(name, masked)
	} else if u.User.Username() != "" && s.LoneUser {
		u.User = url.User(masked)
	}
	if u.Opaque != "" {
		u.Opaque = masked
	}
	q, err := url.ParseQuery(u.RawQuery)
	whole := err == nil && !Spilt(u)
	if Spilt(u) {
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
	if i, j := s.pathEnd(u); i < j {
		u.Path, u.RawPath = u.Path[:i]+masked+u.Path[j:], ""
	}
	return u.String()
}

// isSecret tells whether a parameter is one, however it is written.
func isSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretParameters, func(s string) bool { return strings.Contains(name, s) })
}

// pathEnd gives where the last part of the path begins and ends, where it is a secret.
func (s Secrets) pathEnd(u *url.URL) (begin, end int) {
	if !s.PathEnd {
		return 0, 0
	}
	end = len(strings.TrimRight(u.Path, "/"))
	return strings.LastIndexByte(u.Path[:end], '/') + 1, end
}

// MaskError masks the secrets of u in an error's text, keeping its chain.
func (s Secrets) MaskError(err error, u *url.URL) error {
	if err == nil {
		return nil
	}
	text := secret.Mask(err.Error(), s.of(u)...)
	if text == err.Error() {
		return err
	}
	return &maskedError{text, err}
}

// of gives the secrets of a URL.
func (s Secrets) of(u *url.URL) []string {
	var all []string
	add := func(secret string) { all = append(all, secret) }
	password, _ := u.User.Password()
	add(password)
	if password == "" && s.LoneUser || spiltName(u) {
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
	if i, j := s.pathEnd(u); i < j {
		add(u.Path[i:j])
	}
	return all
}

// spiltName tells whether what stands for the user holds the @ behind a password.
func spiltName(u *url.URL) bool { return strings.Contains(u.User.Username(), "@") }

// Spilt tells whether a secret stands where no target has anything of its kind, so
// that nobody can tell what is whose: a password held a character that ends the
// place of passwords, and left its @ behind, or a parameter came without its ?.
func Spilt(u *url.URL) bool {
	for name, values := range u.Query() {
		if !isSecret(name) && slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "=") && isSecret(v) }) {
			return true
		}
	}
	before := u.Host + u.Path
	return strings.Contains(u.EscapedPath()+u.RawQuery+u.Fragment, "@") || strings.Contains(u.Host, "=") || strings.Contains(before, "=") && isSecret(before)
}

type maskedError struct {
	text  string
	cause error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.cause }
