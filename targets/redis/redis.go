// Package redis is Redis, Valkey, and what is compatible with them, as a target.
package redis

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"contend/targets"
	"contend/targets/kit"
)

// Driver is the kind of target.
func Driver() targets.Driver {
	return targets.Driver{
		Name: "redis", Schemes: []string{"redis", "rediss"},
		Form:       "redis://[user:password@]host[:6379][/db]",
		Example:    "redis://127.0.0.1:6379/0?create=nx&cas=lua",
		Summary:    "Redis or Valkey, one server of it; rediss is the same over TLS. A key holds the record as JSON.",
		Parameters: strategies, Accepted: accepted, Answers: answers, Raw: rawForm,
		Secrets: targets.Secrets{LoneUser: true}, Make: open,
	}
}

type target struct {
	address    targets.Address
	options    redis.Options // of every connection; Dialer is the connection's own
	tls        *tls.Config   // nil: plain TCP
	strategies map[string]string
}

func open(a targets.Address) (targets.Target, error) {
	bare := *a.URL
	bare.RawQuery = ""
	options, err := redis.ParseURL(bare.String())
	switch {
	case a.Opaque != "" || a.Host == "":
		return nil, a.Usagef("it names no host; the form is %s", a.Driver.Form)
	case err != nil:
		return nil, a.Usagef("%v; the form is %s", a.Mask(err), a.Driver.Form)
	case options.DB < 0:
		return nil, a.Usagef("database %d is not a number from 0 on", options.DB)
	}
	t := &target{address: a, options: *options, tls: options.TLSConfig, strategies: a.Strategies()}
	configure(&t.options)
	return t, nil
}

func (t *target) Describe() targets.Description {
	return targets.Description{Kind: "redis", URL: t.address.Masked(), Strategies: t.strategies, OneCopy: true, SentBy: "kernel-write", HashTags: true,
		Guards: targets.AllGuards, TTL: targets.TTL{Unit: time.Millisecond}, Lists: 1}
}

// Prepare asks for no more than the run needs: a user who may not ask for the server's
// name, or load a script that the run does without, goes on.
func (t *target) Prepare(ctx context.Context, needs targets.Needs) (told targets.Server, err error) {
	s, err := t.connect(ctx, true)
	if err != nil {
		return told, err
	}
	defer s.Close()
	defer s.conn.CloseAtEndOf(ctx)()
	info, err := s.client.Info(ctx, "server").Result()
	refused, isRefused := errors.AsType[redis.Error](err)
	if err != nil && !isRefused {
		return told, t.explain(ctx, err)
	}
	if told.Name = serverOf(info); told.Name == "" {
		kit.NotTold(&told, t.address, "INFO", "unknown, speaks as Redis", refused)
	}
	if strings.Contains(info, "redis_mode:cluster") {
		told.Notes = append(told.Notes, oneNode)
	}
	if s.unscripted == nil {
		return told, nil
	}
	why := t.address.Mask(s.unscripted)
	if t.strategies["cas"] == "lua" && needs.ComparesAndSets() {
		return told, fmt.Errorf("%s lets us load no script, and cas=lua needs one: choose ?cas=watch: %w", t.address.Masked(), why)
	}
	told.Notes = append(told.Notes, fmt.Sprintf("SCRIPT LOAD is refused (%s): what a script does is left out; ?%s does without", kit.Sample(why.Error()), withoutScripts(t.strategies)))
	return told, nil
}

func (t *target) Open(ctx context.Context, _ int) (targets.Session, error) {
	s, err := t.connect(ctx, true)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// connect dials, authenticates and makes one round trip; then it loads the script where a
// strategy needs one, if the server lets us.
func (t *target) connect(ctx context.Context, load bool) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, kit.ConnectWithin)
	defer cancel()
	s := &session{target: t}
	var err error
	if s.conn, err = s.Clock.Connect(ctx, t.options.Addr, t.tls); err != nil {
		return nil, t.explain(ctx, err)
	}
	options := t.options
	options.Dialer = s.conn.HandOut
	s.client = redis.NewClient(&options)
	s.Store, s.Ended, s.CloseAtEndOf = "redis", s.conn.Ended, s.conn.CloseAtEndOf
	s.Ops = map[targets.Kind]kit.Op{targets.Read: s.read, targets.Write: s.change, targets.Delete: s.change, targets.Renew: s.change, targets.Raw: s.raw}
	defer s.conn.CloseAtEndOf(ctx)()
	answer, err := s.client.Ping(ctx).Result()
	if text, refused := firstRefusal(s.conn.First()); refused && err != nil && ctx.Err() == nil && kit.NoAnswer(err) {
		err = kit.Refuses(t.address, hint(text), errors.New(text))
	} else if err != nil {
		err = t.explain(ctx, err)
	} else if answer != "PONG" {
		err = fmt.Errorf("%s answers PING with %q: is it a Redis", t.address.Masked(), kit.Sample(answer))
	} else if load && slices.Contains(slices.Collect(maps.Values(t.strategies)), "lua") {
		var refused redis.Error
		if s.script, err = s.client.ScriptLoad(ctx, script).Result(); errors.As(err, &refused) {
			s.script, s.unscripted, err = "", refused, nil
		} else if err != nil {
			err = t.explain(ctx, err)
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// explain says what to do about an error outside of Do.
func (t *target) explain(ctx context.Context, err error) error {
	return kit.Explain(ctx, t.address, "host, port and scheme", hintOf, err)
}

func (t *target) List(ctx context.Context, prefix string) (deletes []targets.Op, requests int, err error) {
	s, err := t.connect(ctx, false)
	if err != nil {
		return nil, 0, err
	}
	defer s.Close()
	defer s.conn.CloseAtEndOf(ctx)()
	s.Clock.Begin()
	var keys []string // SCAN may show a key twice
	found := s.client.Scan(ctx, 0, kit.Escape(prefix, `*?[`)+"*", 1000).Iterator()
	for found.Next(ctx) {
		keys = append(keys, found.Val())
	}
	if err := found.Err(); err != nil {
		return nil, s.Clock.RoundTrips(), t.explain(ctx, err)
	}
	return kit.Deletes(keys), s.Clock.RoundTrips(), nil
}

func (t *target) Close() error { return nil }

// session is a client with a pool of one connection: all commands of a
// session, those between WATCH and EXEC too, go over it.
type session struct {
	kit.Session
	target *target
	conn   *kit.Conn
	client *redis.Client
	script string // what EVALSHA names it by; "": it is not loaded
	// unscripted is why the server lets us load none; nil: it does.
	unscripted error
}

func (s *session) Close() error {
	s.client.Close()
	s.conn.Close()
	return nil
}

func (s *session) read(ctx context.Context, op targets.Op) targets.Reply {
	command := s.client.DoRaw(ctx, "get", op.Key)
	r := s.answered(ctx, "GET", command)
	if r.Code == "nil" {
		return targets.Reply{Outcome: targets.Missing, Attempts: 1}
	}
	if r.Outcome == targets.OK {
		_, stored, _ := bytes.Cut(bytes.TrimSuffix(command.Val(), []byte("\r\n")), []byte("\r\n"))
		kit.Hold(&r, stored)
	}
	return r
}

// change sends a write, a delete or a renewal, by the strategy that its condition has.
func (s *session) change(ctx context.Context, op targets.Op) targets.Reply {
	c, err := commandOf(op)
	strategy := s.target.strategies[c.strategy]
	switch {
	case err != nil:
		return kit.NotEncoded(err)
	case c.strategy == "":
		return s.ask(ctx, c.request, c.words...)
	case strategy == "nx":
		return s.ask(ctx, "SET NX", append(c.words, "nx")...)
	case strategy == "lua" && s.script == "":
		return kit.Unsupported("SCRIPT LOAD is refused here; choose ?%s=watch", c.strategy)
	case strategy == "lua":
		return s.ask(ctx, "EVALSHA", append([]any{"evalsha", s.script, 1, op.Key}, c.arguments...)...)
	default:
		return s.watched(ctx, op, c)
	}
}

// watched reads the key under WATCH and compares, then sends the command in a transaction.
func (s *session) watched(ctx context.Context, op targets.Op, c command) targets.Reply {
	return s.ReadThenWrite(op.If, answers, kit.Steps{
		Begin: func() targets.Reply { return s.ask(ctx, "WATCH", "watch", op.Key) },
		Read:  func() targets.Reply { return s.read(ctx, op) },
		Write: func(targets.Reply) targets.Reply { return s.exec(ctx, op, c) },
		Abort: func() {
			if !s.Clock.Guarded() && s.conn.Ended() == nil {
				s.client.Do(ctx, "unwatch") // where this fails the client closes the connection
			}
		},
	})
}

// ask sends one command, which the table of accepted answers knows as the request.
func (s *session) ask(ctx context.Context, request string, words ...any) targets.Reply {
	return s.answered(ctx, request, s.client.DoRaw(ctx, words...))
}

// answered sorts what a command was answered with, as it came.
func (s *session) answered(ctx context.Context, request string, command *redis.RawCmd) targets.Reply {
	answer, err := command.Result()
	if err != nil {
		return s.lost(ctx, err)
	}
	return replyTo(s.target.address, request, string(answer))
}

// lost is the reply where the client has no answer.
func (s *session) lost(ctx context.Context, err error) targets.Reply {
	s.conn.Close()
	return s.Lost(ctx, s.target.address.Mask(err), redis.ErrClosed, redis.ErrPoolTimeout)
}
