package proxy

import (
	"context"

	"seqproxy/backend"
)

// caller is the session as a Caller.
func (s *session) caller() Caller {
	account := s.login.Account
	return Caller{ID: s.id, Admin: account.Admin, Monitor: account.Looks(), NoBackslashEscapes: s.state.Mode.NoBackslashEscapes, CallerSession: asker{s}}
}

// asker is a session as a CallerSession.
type asker struct{ s *session }

// AfterAnswer has f run when the client has been sent the answer, or cannot be.
func (a asker) AfterAnswer(f func()) { a.s.afterAnswer = f }

// MayUse says whether the user may use a sequence.
func (a asker) MayUse(ctx context.Context, name []byte) (bool, error) {
	return a.s.mayUse(ctx, name)
}

// Audit logs what the session has changed.
func (a asker) Audit(statement string, err error) { a.s.Audit(statement, err) }

// Highest reads the greatest number in a column on every shard, as the user: what the
// user may not read there, nobody reads for it.
func (a asker) Highest(ctx context.Context, schema, table, column string, of backend.Expression) []backend.Highest {
	return a.s.set.routes.Highest(ctx, a.s.login.Account.Itself, schema, table, column, of)
}
