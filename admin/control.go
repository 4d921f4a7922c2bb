package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/statement/ddl"
)

// Control is what statements change in the proxy as a whole. It must be safe for concurrent use.
type Control interface {
	// Reload reads the configuration again, or only certificates and keys with tlsOnly. It returns
	// what was changed.
	Reload(ctx context.Context, tlsOnly bool) (changed []string, err error)
	// FlushLogs opens the log file again.
	FlushLogs() error
	// Pause stops new statements for a shard. "" means all shards. It waits a bounded time for the
	// sessions that use the shards, except for the connection by. It returns the names of the
	// paused shards, of those that were resumed meanwhile, and the number of sessions that still
	// use the shards. Without any name, the shard does not exist.
	Pause(ctx context.Context, shard string, by uint32) (paused, resumed []string, busy int)
	// Resume ends the pause of a shard, or of all. It returns the names of shards that were paused.
	// exists is false if there is no such shard.
	Resume(shard string) (resumed []string, exists bool)
	// Shutdown stops the proxy. It returns at once. A second call may make it stop sooner.
	Shutdown(how Shutdown)
}

// Shutdown says what a stopping proxy waits for.
type Shutdown uint8

// The ways to stop, from the slowest.
const (
	WaitForClients Shutdown = iota // until all clients have left
	Drain                          // until no transaction is open, for drain.timeout at most
	Immediate                      // for nothing
)

// change runs a statement that changes the proxy's behaviour.
func (s *Sequences) change(ctx context.Context, c *ddl.ProxyCommand, by proxy.Caller) (*protocol.Table, error) {
	switch c.Verb {
	case ddl.ReloadConfig:
		changed, err := s.control.Reload(ctx, c.Word == "TLS")
		if err != nil {
			return nil, protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: reload: %v", err)
		}
		if len(changed) == 0 {
			return done("nothing has changed"), nil
		}
		return done("changed: " + strings.Join(changed, ", ")), nil
	case ddl.FlushLogs:
		if err := s.control.FlushLogs(); err != nil {
			return nil, protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: %v", err)
		}
		return done(""), nil
	case ddl.PauseShard:
		return s.pause(ctx, string(c.Shard), by)
	case ddl.ResumeShard:
		resumed, exists := s.control.Resume(string(c.Shard))
		switch {
		case !exists:
			return nil, s.noShard(c.Shard)
		case len(resumed) == 0:
			return noted(mysql.ER_UNKNOWN_ERROR, "no such shard was paused"), nil
		}
		return done("resumed: " + strings.Join(resumed, ", ")), nil
	case ddl.ShutdownProxy:
		how := Drain
		switch c.Word {
		case "WAIT_FOR_CLIENTS":
			how = WaitForClients
		case "IMMEDIATE":
			how = Immediate
		}
		return &protocol.Table{After: func() { s.control.Shutdown(how) }}, nil
	}
	return nil, notSupported("this statement")
}

func (s *Sequences) pause(ctx context.Context, shard string, by proxy.Caller) (*protocol.Table, error) {
	paused, resumed, busy := s.control.Pause(ctx, shard, by.ID)
	switch {
	case len(paused)+len(resumed) == 0:
		return nil, s.noShard([]byte(shard))
	case len(resumed) > 0:
		text := fmt.Sprintf("seqproxy: shard %s is not paused any more: it was resumed, or taken out of the configuration", strings.Join(resumed, ", "))
		if len(paused) > 0 {
			text += "; paused: " + strings.Join(paused, ", ")
		}
		return nil, &protocol.ServerError{Code: mysql.ER_UNKNOWN_ERROR, State: "HY000", Message: text}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the wait for %d sessions has ended; shard %s stays paused: %w", busy, strings.Join(paused, ", "), ctx.Err())
	case busy > 0:
		// An error, since a program that runs it must not go on, and prints no warning.
		return nil, protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: shard %s is paused, but %d sessions still have a statement or a transaction there, which go on. Run SEQPROXY PAUSE again: it waits for them again",
			strings.Join(paused, ", "), busy)
	}
	return done("paused: " + strings.Join(paused, ", ")), nil
}

// noShard is the error for a shard that does not exist.
func (s *Sequences) noShard(name []byte) error {
	if len(name) == 0 {
		return protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "seqproxy: there is no shard: only keys are served here")
	}
	return protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "seqproxy: there is no shard '%s'", name)
}

// done is an OK with a text.
func done(info string) *protocol.Table { return &protocol.Table{OK: protocol.OK{Info: info}} }
