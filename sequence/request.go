package sequence

import (
	"context"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/await"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/snowflake"
	"seqproxy/sequence/store"
)

// request is something that only the server can answer.
type request struct {
	s *Sequences
	// ends with the caller's, after the allocate timeout, and when Close gives up waiting
	ctx   context.Context
	begin time.Time
}

// request begins a request. The caller calls stop at its end.
func (s *Sequences) request(ctx context.Context) (r request, stop func()) {
	return s.requestWithin(ctx, s.patience(ctx))
}

// requestWithin is request for what may take longer.
func (s *Sequences) requestWithin(ctx context.Context, patience time.Duration) (r request, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	ctx, stopTimer := context.WithTimeoutCause(ctx, patience, await.ErrPatience)
	return request{s: s, ctx: ctx, begin: time.Now()}, func() {
		stopTimer()
		unhook()
		cancel(nil)
		s.takeNote()
	}
}

// failed turns the error of a request into what the caller is promised.
func (r request) failed(name string, err error) error {
	s := r.s
	if errors.As(err, new(*define.KindError)) || errors.As(err, new(*snowflake.ClockError)) {
		return err
	}
	for _, known := range []error{ErrUnknown, ErrExists, ErrExhausted, ErrUnfit, ErrClosed, define.ErrBadOption, ErrSeveral, store.OutcomeFrozen} {
		if errors.Is(err, known) {
			return err
		}
	}
	if cause := context.Cause(r.ctx); cause != nil {
		if !errors.Is(cause, await.ErrPatience) {
			return cause
		}
		if !saysWhy(err) {
			err = s.shared.whyNot()
		}
	}
	return &UnavailableError{Sequence: define.ShownName(name), Server: s.serverName(), Waited: time.Since(r.begin), Err: store.WithGrants(err, s.opts.Servers[0].Database)}
}

// saysWhy reports whether an error says more than that a wait has ended.
func saysWhy(err error) bool {
	return errors.As(err, new(*mysql.MySQLError)) || errors.As(err, new(*unheardError)) || errors.As(err, new(*limit.SeenError)) ||
		errors.Is(err, link.ErrOutcome) || errors.Is(err, errEnlisting) || errors.Is(err, errUnlisted)
}
