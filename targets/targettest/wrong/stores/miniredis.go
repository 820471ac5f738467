package stores

import (
	"fmt"
	"net"

	"github.com/alicebob/miniredis/v2"
)

func miniredisStore() Store {
	return Store{Name: "miniredis", Says: "miniredis, whose time stands still: no key expires, and INFO does not know the server", URL: redisURL,
		serve: func(l net.Listener, _ Options) func() {
			m, err := miniredis.Run()
			if err != nil {
				panic(fmt.Errorf("miniredis: %w", err)) // it takes a free port
			}
			stop := serveTCP(l, func(client net.Conn) { pipe(client, m.Addr(), copyNow, copyNow) })
			return func() {
				stop()
				m.Close()
			}
		}}
}
