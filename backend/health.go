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
	at  time.Time // zero: there was none
	err error     // why no client can be let in there; nil: it answers
}

// meet takes note of how an attempt to connect ended. A server that refuses a login
// answers, unless it refuses everybody.
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

func refusesAll(code uint16) bool {
	switch code {
	case mysql.ER_CON_COUNT_ERROR, mysql.ER_HOST_IS_BLOCKED, mysql.ER_HOST_NOT_PRIVILEGED, mysql.ER_SERVER_SHUTDOWN:
		return true
	}
	return false
}

// usableFor is for how long the outcome of connecting to a server is believed.
const usableFor = 2 * time.Second

var (
	errNotMet  = errors.New("it was not asked yet")
	errNotSoon = errors.New("it did not answer in time")
)

// Usable says why no client can be let in to the shard's server; nil: they can. It goes by
// how the last connection ended, if that was a moment ago, and else connects itself, until
// ctx's deadline, however many ask. Where no account is known to ask with, and the last
// connection was good, it does not: servers count logins that break off.
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
	if met := n.lastMet(); s.fresh(shard, met) { // somebody else has asked meanwhile
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

// LastUsable is Usable by what is known already: it does not ask.
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
