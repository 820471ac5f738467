package stores

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
)

// commandComplete is the type of the message that counts the rows of a statement.
const commandComplete = 'C'

func postgresStores() []Store {
	falsify := func(tag string) func(net.Listener, Options) func() {
		return func(l net.Listener, o Options) func() {
			return serveTCP(l, func(client net.Conn) {
				pipe(client, o.Backends[0], copyNow, func(to io.Writer, from io.Reader) { countRefused(to, from, tag) })
			})
		}
	}
	const url = "postgres://postgres@%s/postgres?sslmode=disable"
	return []Store{
		{Name: "counts-refused", Says: "an INSERT that does nothing on a conflict says that it inserted a row", Backends: "POSTGRESQL", URL: url, serve: falsify("INSERT 0 0")},
		{Name: "counts-refused-update", Says: "an UPDATE that finds no row says that it changed one", Backends: "POSTGRESQL", URL: url, serve: falsify("UPDATE 0")},
	}
}

// countRefused copies what a PostgreSQL says, message by message, and counts one row
// where a tag counts none. Encrypted connections are not understood.
func countRefused(to io.Writer, from io.Reader, none string) {
	r := bufio.NewReader(from)
	for {
		header, err := r.Peek(5)
		if err != nil {
			return
		}
		message := make([]byte, 1+binary.BigEndian.Uint32(header[1:]))
		if _, err := io.ReadFull(r, message); err != nil {
			return
		}
		if tag := message[5:]; message[0] == commandComplete && string(tag) == none+"\x00" {
			tag[len(none)-1] = '1'
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}
