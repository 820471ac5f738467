package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"contend/targets/forge/emulator"
)

// steerPrefix is that of the paths by which tests steer the emulator; the platform
// has no such thing.
const steerPrefix = "/emulator/"

// steering gives what a path below the prefix does, if a request from there may.
func (s *server) steering(r *http.Request) (func(context.Context, []byte) reply, error) {
	do, known := map[string]func([]byte) reply{"reset": s.reset, "clock": s.clock}[strings.TrimPrefix(r.URL.Path, steerPrefix)]
	switch {
	case !known:
		return nil, badRequest("There is no path %q; there are /emulator/reset and /emulator/clock", r.URL.Path)
	case !s.options.Steerable:
		return nil, forbidden("this server listens on an address that others reach; start it with --listen 127.0.0.1:PORT")
	case !isLoopback(r.RemoteAddr):
		return nil, forbidden("this request comes from another machine")
	case !isLoopback(r.Host):
		// Of a tunnel, a proxy or a web page whose name leads here.
		return nil, forbidden("this request names another host; ask http://127.0.0.1:PORT itself")
	}
	return func(_ context.Context, body []byte) reply { return do(body) }, nil
}

// isLoopback tells whether a host, with or without a port, is this machine by its
// own network.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// forbidden is the answer to a steering request from afar.
func forbidden(why string) error {
	return &emulator.Error{Status: http.StatusForbidden, Code: "FORBIDDEN", Message: "The emulator is reset, and its clock moved, on loopback only: " + why}
}

// steered is the answer: the time of the emulator.
type steered struct {
	Now time.Time `json:"now"`
}

// reset takes no body; one is ignored.
func (s *server) reset([]byte) reply {
	s.store.Reset()
	s.options.Quota.Reset()
	return encoded(steered{s.store.Now()}, nil)
}

func (s *server) clock(body []byte) reply {
	var request struct {
		Forward string `json:"forward"`
	}
	unknown, err := emulator.Decode(body, &request)
	forward, parseError := time.ParseDuration(request.Forward)
	if err != nil || parseError != nil || len(unknown) > 0 {
		return refused(badRequest(`The body needs how far the clock goes forward, such as {"forward":"15m"}`))
	}
	if err := s.store.Forward(forward); err != nil {
		return refused(badRequest("forward %q: %v", request.Forward, err))
	}
	s.options.Quota.Forward(forward)
	return encoded(steered{s.store.Now()}, nil)
}
