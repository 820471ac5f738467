package postgres

import (
	"context"
	"fmt"
	"strings"

	"contend/targets"
)

// ReplaceInStatement plants other text in a statement of a session.
func ReplaceInStatement(ctx context.Context, of targets.Session, name, text, other string) error {
	s := of.(*session)
	for _, prepared := range statements(s.target.strategies["ttl"]) {
		if prepared.name != name {
			continue
		}
		planted := strings.Replace(prepared.sql, text, other, 1)
		if planted == prepared.sql {
			return fmt.Errorf("the statement %s has no %q: %s", name, text, prepared.sql)
		}
		if err := s.conn.Deallocate(ctx, s.prefix+name); err != nil {
			return err
		}
		_, err := s.conn.Prepare(ctx, s.prefix+name, planted)
		return err
	}
	return fmt.Errorf("no statement %s", name)
}
