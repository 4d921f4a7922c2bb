package proxy

import (
	"context"

	"seqproxy/backend"
)

// asker is a session as a Caller.
type asker struct{ s *session }

// ID is the session's connection id.
func (a asker) ID() uint32 { return a.s.id }

// AfterAnswer has f run when the client has been sent the answer, or cannot be.
func (a asker) AfterAnswer(f func()) { a.s.afterAnswer = f }

// Admin says whether the user may change sequences.
func (a asker) Admin() bool { return a.s.login.Account.Admin }

// Monitor says whether the user may see all that an admin sees.
func (a asker) Monitor() bool { return a.s.login.Account.Looks() }

// NoBackslashEscapes says whether backslashes in the session's strings are characters.
func (a asker) NoBackslashEscapes() bool { return a.s.state.Mode.NoBackslashEscapes }

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
