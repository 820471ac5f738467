package stores

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func proxyStores() []Store {
	return []Store{
		{Name: "two-masters", Says: "connections are dealt to several servers in turn, none of which knows of the others", Backends: "A,B", URL: redisURL,
			serve: func(l net.Listener, o Options) func() {
				var connections atomic.Int64
				return serveTCP(l, func(client net.Conn) {
					pipe(client, o.Backends[int(connections.Add(1)-1)%len(o.Backends)], copyNow, copyNow)
				})
			}},
		{Name: "lagging-replica", Says: "GET goes to a replica, everything else to the primary", Backends: "PRIMARY,REPLICA", URL: redisURL,
			serve: func(l net.Listener, o Options) func() {
				return serveTCP(l, func(client net.Conn) { splitReads(client, o.Backends[0], o.Backends[1]) })
			}},
		{Name: "slow-link", Says: "what the server sends arrives -delay later (50ms): a link that a replica lags behind", Backends: "SERVER", URL: redisURL,
			serve: func(l net.Listener, o Options) func() {
				return serveTCP(l, func(client net.Conn) {
					pipe(client, o.Backends[0], copyNow, func(to io.Writer, from io.Reader) { copyLate(to, from, o.delay(50*time.Millisecond)) })
				})
			}},
	}
}

// serveTCP gives each connection to handle, and closes it afterwards or when it is stopped.
func serveTCP(l net.Listener, handle func(net.Conn)) (stop func()) {
	var open sync.Map
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Store(c, nil)
			running.Go(func() {
				defer open.Delete(c)
				defer c.Close()
				handle(c)
			})
		}
	})
	return func() {
		l.Close()
		open.Range(func(c, _ any) bool {
			c.(net.Conn).Close()
			return true
		})
		running.Wait()
	}
}

// pipe joins a client with a server until one of them has ended.
func pipe(client net.Conn, address string, up, down func(io.Writer, io.Reader)) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		up(server, client)
		server.Close()
	})
	both.Go(func() {
		down(client, server)
		client.Close()
	})
	both.Wait()
}

func copyNow(to io.Writer, from io.Reader) { io.Copy(to, from) }

// copyLate keeps the order.
func copyLate(to io.Writer, from io.Reader, delay time.Duration) {
	type piece struct {
		due  time.Time
		text []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer close(pieces)
		buffer := make([]byte, 1<<16)
		for {
			n, err := from.Read(buffer)
			pieces <- piece{time.Now().Add(delay), bytes.Clone(buffer[:n])}
			if err != nil {
				return
			}
		}
	}()
	broken := false
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if !broken {
			_, err := to.Write(p.text)
			broken = err != nil
		}
	}
}

// splitReads lets a client of Redis read from one server and do all else at another.
func splitReads(client net.Conn, primary, replica string) {
	var servers [2]net.Conn
	var replies [2]*bufio.Reader
	for i, address := range []string{primary, replica} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer c.Close()
		servers[i], replies[i] = c, bufio.NewReader(c)
	}
	commands := bufio.NewReader(client)
	for {
		command, err := frame(commands)
		if err != nil {
			return
		}
		to := 0
		if bytes.HasPrefix(bytes.ToLower(command), []byte("*2\r\n$3\r\nget\r\n")) {
			to = 1
		}
		servers[to].Write(command)
		reply, err := frame(replies[to])
		if err != nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// frame reads one command or reply of RESP 2, whole.
func frame(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadBytes('\n')
	if err != nil || line[0] != '$' && line[0] != '*' {
		return line, err
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(line[1:])))
	if err != nil {
		return nil, fmt.Errorf("%q is no length: %w", line, err)
	}
	switch {
	case n < 0:
	case line[0] == '$':
		text := make([]byte, n+len("\r\n"))
		if _, err = io.ReadFull(r, text); err == nil {
			line = append(line, text...)
		}
	default:
		for range n {
			part, err := frame(r)
			if err != nil {
				return nil, err
			}
			line = append(line, part...)
		}
	}
	return line, err
}
