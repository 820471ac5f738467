// Package stores has servers that are wrong on purpose, each with one fault that has
// a name, so that a test, or a reader, can see what contend says of it. They listen
// on the loopback interface; their data are in memory.
package stores

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Store is a server with a fault.
type Store struct {
	Name string
	Says string // its fault, in one line
	// Backends are what a proxy stands in front of, such as "PRIMARY,REPLICA"; "" for a
	// server that stands alone.
	Backends string
	// URL is the target, with %s for HOST:PORT.
	URL   string
	serve func(net.Listener, Options) (stop func())
}

// Options are what a fault can be told. Zero values are replaced by the fault's own.
type Options struct {
	Listen   string        // HOST:PORT; "": a free port of the loopback interface
	Backends []string      // HOST:PORT each, in the order of Store.Backends
	Delay    time.Duration // how late what is late comes
	Window   time.Duration // between the check and the set
	Text     string        // of the error reply
}

// delay is what was asked for, or else the fault's own.
func (o Options) delay(usual time.Duration) time.Duration {
	if o.Delay > 0 {
		return o.Delay
	}
	return usual
}

// All gives the stores in the order in which they are listed.
func All() []Store {
	return slices.Concat(redisStores(), windowStores(), proxyStores(), []Store{miniredisStore()}, postgresStores(), forgeStores())
}

// Server is a store that has been started.
type Server struct {
	URL  string
	Stop func() // closes every connection; can be called again
}

// Start listens and serves until the server is stopped.
func (s Store) Start(o Options) (*Server, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("-l %q: %w", o.Listen, err)
	}
	return &Server{URL: fmt.Sprintf(s.URL, listener.Addr()), Stop: sync.OnceFunc(s.serve(listener, o))}, nil
}
