package targets

import (
	"context"
	"crypto/x509"
	"fmt"
	"strings"
)

// TrustHTTP has HTTP targets trust the certificates.
func TrustHTTP(roots *x509.CertPool) { httpTLS.RootCAs = roots }

// ReplaceInStatement plants other text in a statement of a PostgreSQL session.
func ReplaceInStatement(ctx context.Context, session Session, statement, text, other string) error {
	s := session.(*postgresSession)
	for _, prepared := range postgresStatements(s.target.ttl) {
		if prepared.name != statement {
			continue
		}
		planted := strings.Replace(prepared.sql, text, other, 1)
		if planted == prepared.sql {
			return fmt.Errorf("the statement %s has no %q: %s", statement, text, prepared.sql)
		}
		if err := s.conn.Deallocate(ctx, s.prefix+statement); err != nil {
			return err
		}
		_, err := s.conn.Prepare(ctx, s.prefix+statement, planted)
		return err
	}
	return fmt.Errorf("no statement %s", statement)
}
