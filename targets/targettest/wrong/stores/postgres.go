package stores

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
)

// commandComplete is the type of the message that counts the rows of a statement.
const commandComplete = 'C'

func postgresStore() Store {
	return Store{Name: "counts-refused", Says: "an INSERT or UPDATE that changes no row says that it changed one", Backends: "POSTGRESQL",
		URL: "postgres://postgres@%s/postgres?sslmode=disable",
		serve: func(l net.Listener, o Options) func() {
			return serveTCP(l, func(client net.Conn) { pipe(client, o.Backends[0], copyNow, countRefused) })
		}}
}

// countRefused copies what a PostgreSQL says, message by message, and falsifies the
// counts. Encrypted connections are not understood.
func countRefused(to io.Writer, from io.Reader) {
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
		if message[0] == commandComplete {
			switch tag := message[5 : len(message)-1]; string(tag) {
			case "INSERT 0 0", "UPDATE 0":
				tag[len(tag)-1] = '1'
			}
		}
		if _, err := to.Write(message); err != nil {
			return
		}
	}
}
