package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/stats"
	"seqproxy/sequence/store"
)

// This file handles a row of one of several members that somebody has deleted, other than by DROP
// SEQUENCE. It is not made again by itself, as applications that count in the table ignore
// ceilings.

// errLacks is what the other members may make up for.
var errLacks = errors.New("one of the sequence servers cannot serve it")

// lack is a row that a member lacks and that cannot be made there.
type lack struct {
	v    *Server
	name string
}

// lacked is until when a member is not asked for a row, and why.
type lacked struct {
	until   time.Time
	finding error
}

// missing returns the error of a reservation of name with a member that lacks the row, in which
// others have found. The member is not asked again for a while.
func (s *Several) missing(ctx context.Context, v *Server, name string, found *store.Row) error {
	ctx, stop := context.WithTimeoutCause(ctx, v.TryTime(), await.ErrPatience)
	defer stop()
	finding, err := v.RowDeleted(ctx, v.Pool(), name, max(s.marks.Of(name), found.Position(), found.Past))
	if err != nil {
		return err
	}
	v.counters.Tried(name, &v.Trials, stats.ReservedNoRow, 0)
	v.Log.Warn("sequence row missing on a server", logfield.Sequence(define.ShownName(name)), logfield.Err(finding))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lacks[lack{v, name}] = lacked{time.Now().Add(s.lackFor), finding}
	return fmt.Errorf("%w: %w", errLacks, finding)
}

// Lacks returns the error if v was found to lack the row a moment ago.
func (s *Several) Lacks(v *Server, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.lacks[lack{v, name}]
	if !ok || time.Now().After(known.until) {
		delete(s.lacks, lack{v, name})
		return nil
	}
	return fmt.Errorf("%w: %w", errLacks, known.finding)
}
