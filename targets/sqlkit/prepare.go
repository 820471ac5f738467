package sqlkit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"contend/targets"
	"contend/targets/kit"
)

// Setup is what a database is asked before a run, and for its keys.
type Setup struct {
	Version string // gives its name and version, as one text
	// Without stands for the name of one that does not tell.
	Without string
	// Session gives the number of the server's session; "" or an error under NoFunction:
	// it cannot be asked.
	Session, NoFunction string
	// Lone is in the version of a server with one session for all connections, which is
	// refused in the words of LoneText.
	Lone, LoneText string
	// Room gives the most connections, those that are reserved and those in use, but for
	// the asking one and session $1. RoomSetting limits them.
	Room, RoomSetting string
	// Table tells whether there is the table; Create creates it, and is refused by one of
	// Meanwhile where another process did at the same moment.
	Table, Create string
	Meanwhile     []string
	// Keys gives those like $1; it is refused by NoTable where there is none.
	Keys, NoTable string
}

// Admin is a connection on which nothing is set, before a run.
type Admin interface {
	// Ask sends a query and takes its one row.
	Ask(ctx context.Context, sql string, arguments []any, into ...any) error
	// Texts sends a query and gives its one column of texts.
	Texts(ctx context.Context, sql string, arguments ...any) ([]string, error)
	// ServedBy is the number of the server's session that it was told when it connected.
	ServedBy() int
	// Run sends a statement.
	Run(ctx context.Context, sql string) error
	Close() error
}

// Server is a database as a target has it.
type Server struct {
	Setup
	Address targets.Address
	// Connect opens a connection.
	Connect func(ctx context.Context) (Admin, error)
	// State is the code of an error that the server sent; "": it did not.
	State func(error) string
	// Hint says what to do about an error that the server sent.
	Hint  func(error) (text string, refused bool)
	Where string // the parts of the URL that lead to it
}

// Explain says what to do about an error outside of Do.
func (s *Server) Explain(ctx context.Context, err error) error {
	return kit.Explain(ctx, s.Address, s.Where, s.Hint, err)
}

// Prepare asks the server what it is, checks that every connection has a session of its
// own and that there is room for those of the run, and makes the table. pooled: the
// sessions are not those that it was told when it connected.
func (s *Server) Prepare(ctx context.Context, sessions int) (told targets.Server, pooled bool, err error) {
	first, err := s.Connect(ctx)
	if err != nil {
		return told, false, err
	}
	defer first.Close()
	if err := first.Ask(ctx, s.Version, nil, &told.Name); err != nil && s.State(err) == "" {
		return told, false, s.Explain(ctx, err)
	} else if err != nil {
		kit.NotTold(&told, s.Address, s.Version, s.Without, err)
	}
	served, err := s.checkSessions(ctx, first, s.Lone != "" && strings.Contains(told.Name, s.Lone))
	if err != nil {
		return told, false, err
	}
	// Our own connection, which asks, is closed before those of the run are opened; so is
	// the other, of the session served[2], which may still be about to end.
	var most, reserved, used int
	if err := first.Ask(ctx, s.Room, []any{served[2]}, &most, &reserved, &used); err != nil {
		return told, false, s.Explain(ctx, err)
	}
	if err := s.checkRoom(most, reserved, used, sessions); err != nil {
		return told, false, err
	}
	return told, served[0] != 0 && served[0] != first.ServedBy(), s.ensureTable(ctx, first)
}

// checkSessions refuses what puts several connections on one session of the server, or
// one connection on several, before anything is set there. It asks two connections, one of
// them several times around the other.
func (s *Server) checkSessions(ctx context.Context, first Admin, lone bool) (served [4]int, err error) {
	refuseLone := func() error {
		return fmt.Errorf("%s: %s: %w", s.Address.Masked(), s.LoneText, targets.ErrUnsupported)
	}
	second, err := s.Connect(ctx)
	if err != nil && lone {
		return served, refuseLone()
	}
	if err != nil {
		return served, err
	}
	defer second.Close()
	for i, connection := range []Admin{first, first, second, first} {
		err := connection.Ask(ctx, s.Session, nil, &served[i])
		if err != nil && s.State(err) == s.NoFunction {
			return [4]int{}, nil
		}
		if err != nil {
			return served, s.Explain(ctx, err)
		}
	}
	mine := []int{served[0], served[1], served[3]}
	how := ""
	switch moves, meets := slices.Min(mine) != slices.Max(mine), slices.Contains(mine, served[2]); {
	case meets && lone:
		return served, refuseLone()
	case moves:
		how = "the server's session changes from statement to statement"
	case meets:
		how = "two connections are on one session of the server"
	default:
		return served, nil
	}
	return served, fmt.Errorf("%s: a pooler in transaction mode is in between: %s; use session mode, or the server itself: %w",
		s.Address.Masked(), how, targets.ErrUnsupported)
}

// checkRoom refuses a run whose sessions the server has no room for.
func (s *Server) checkRoom(most, reserved, used, sessions int) error {
	if free := most - reserved - used; free < sessions {
		return fmt.Errorf("%s has room for %d more connections (%s %d, reserved %d, in use %d), but the run needs %d:"+
			" lower the number of contenders, raise %s, or close other clients",
			s.Address.Masked(), max(free, 0), s.RoomSetting, most, reserved, used, sessions, s.RoomSetting)
	}
	return nil
}

// ensureTable asks first, since a user who may use the table need not be
// allowed to create one.
func (s *Server) ensureTable(ctx context.Context, on Admin) error {
	var exists bool
	if err := on.Ask(ctx, s.Table, nil, &exists); err != nil {
		return s.Explain(ctx, err)
	}
	if exists {
		return nil
	}
	err := on.Run(ctx, s.Create)
	if err == nil || slices.Contains(s.Meanwhile, s.State(err)) {
		return nil
	}
	text, refused := s.Hint(err)
	if !refused {
		text = "it gave no answer"
	}
	return fmt.Errorf("%s: cannot create the table %s: %s: %w", s.Address.Masked(), Table, text, s.Address.Mask(err))
}

// List implements targets.Target.
func (s *Server) List(ctx context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	on, err := s.Connect(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer on.Close()
	keys, err := on.Texts(ctx, s.Keys, kit.Escape(prefix, "%_")+"%")
	if err != nil && s.State(err) != s.NoTable {
		return nil, 1, s.Explain(ctx, err)
	}
	return kit.Deletes(keys), 1, nil
}
