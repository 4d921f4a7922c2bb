package backend

import (
	"context"
	"errors"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// meeting is how the last attempt to connect to a node ended.
type meeting struct {
	at  time.Time // zero: never tried
	err error     // why the node lets no client in; nil: it does
}

// meet records how an attempt to connect ended. A server that refuses one login still counts as
// answering. One that refuses every client does not.
func (n *Node) meet(err error) {
	var refused *protocol.ServerError
	if errors.As(err, &refused) && !refusesAll(refused.Code) {
		err = nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	met := meeting{time.Now(), err}
	if n.met.at.IsZero() || (n.met.err == nil) != (err == nil) {
		n.metSince = met.at
	}
	if err != nil {
		n.lastFailure = met
	}
	n.met, n.doubtful = met, false
}

func (n *Node) lastMet() meeting {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.met
}

// erOfflineMode is MySQL's error for everybody but its administrators, as in a member that its
// group has expelled.
const erOfflineMode = 3032

func refusesAll(code uint16) bool {
	switch code {
	case mysql.ER_CON_COUNT_ERROR, mysql.ER_HOST_IS_BLOCKED, mysql.ER_HOST_NOT_PRIVILEGED, mysql.ER_SERVER_SHUTDOWN, erOfflineMode:
		return true
	}
	return false
}

// usableFor is how long the outcome of an attempt to connect stays valid.
const usableFor = 2 * time.Second

var (
	errNotMet  = errors.New("it was not asked yet")
	errNotSoon = errors.New("it did not answer in time")
)

// Usable returns why the shard's server lets no client in, or nil if it does. A recent attempt to
// connect decides that. Otherwise Usable connects once for all callers that wait, until ctx's
// deadline. It does not connect if no account is known and the last attempt was good: servers count
// logins that break off.
func (s *Shards) Usable(ctx context.Context, shard *Shard) error {
	n := shard.primary()
	if met := n.lastMet(); s.fresh(shard, met) {
		return s.unusable(shard, met.err)
	}
	select {
	case n.asking <- struct{}{}:
		defer func() { <-n.asking }()
	case <-ctx.Done():
		return s.unusable(shard, errNotSoon)
	}
	if met := n.lastMet(); s.fresh(shard, met) { // another caller has just asked
		return s.unusable(shard, met.err)
	}
	err := s.Routes().probeNode(ctx, target{shard, n, shard.access.Load()})
	var wrapped *UnreachableError
	switch {
	case err == nil:
	case errors.Is(err, errRecently):
		return err
	case ctx.Err() != nil:
		err = errNotSoon
	case errors.As(err, &wrapped):
		err = wrapped.Err
	}
	n.meet(err)
	return s.unusable(shard, n.lastMet().err)
}

// LastUsable is Usable without connecting: the last attempt decides.
func (s *Shards) LastUsable(shard *Shard) error {
	met := shard.primary().lastMet()
	if met.at.IsZero() {
		met.err = errNotMet
	}
	return s.unusable(shard, met.err)
}

func (s *Shards) fresh(shard *Shard, met meeting) bool {
	if met.at.IsZero() {
		return false
	}
	return time.Since(met.at) < usableFor || met.err == nil && shard.access.Load().probeCredentials(s.Routes().probe).User == ""
}

func (s *Shards) unusable(shard *Shard, err error) error {
	if err == nil {
		return nil
	}
	return &UnreachableError{shard.name, shard.primary().String(), err}
}
