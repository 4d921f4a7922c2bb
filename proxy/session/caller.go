package session

import (
	"context"

	"seqproxy/backend"
)

// Caller is who asks about sequences, or about the proxy itself.
type Caller struct {
	ID      uint32 // the session's connection id
	Admin   bool   // the user may change sequences
	Monitor bool   // the user may see all that an admin sees
	// NoBackslashEscapes: backslashes in the caller's strings are characters.
	NoBackslashEscapes bool

	CallerSession
}

// CallerSession is what is asked of the session of a Caller.
type CallerSession interface {
	// AfterAnswer has f run when the client has been sent the answer, or cannot be.
	AfterAnswer(f func())
	// MayUse says whether the user may use a sequence, and so see it.
	MayUse(ctx context.Context, name []byte) (bool, error)
	// Audit logs that the caller has changed something by a statement, or was refused to
	// with err. The statement must have nothing in it that may be a secret.
	Audit(statement string, err error)
	// Highest reads the greatest number in a column on every shard; without a schema of
	// every table of the name. There may be no shard.
	Highest(ctx context.Context, schema, table, column string, of backend.Expression) []backend.Highest
	// Numbered looks which bound columns have AUTO_INCREMENT on more than one shard, as
	// the user. An error is of shards that could not be asked.
	Numbered(ctx context.Context) ([]Numbered, error)
}

// caller is the session as a Caller.
func (t *texts) caller() Caller {
	account := t.at.login.Account
	return Caller{ID: t.at.id, Admin: account.Admin, Monitor: account.MaySee(), NoBackslashEscapes: t.state.Mode.NoBackslashEscapes, CallerSession: asker{t}}
}

// asker is a session as a CallerSession.
type asker struct{ t *texts }

// AfterAnswer has f run when the client has been sent the answer, or cannot be.
func (a asker) AfterAnswer(f func()) { a.t.afterAnswer = f }

// MayUse says whether the user may use a sequence.
func (a asker) MayUse(ctx context.Context, name []byte) (bool, error) {
	return a.t.planning.mayUse(ctx, name)
}

// Audit logs what the session has changed.
func (a asker) Audit(statement string, err error) { a.t.at.Audit(statement, err) }

// Highest reads the greatest number in a column on every shard, as the user: what the
// user may not read there, nobody reads for it.
func (a asker) Highest(ctx context.Context, schema, table, column string, of backend.Expression) []backend.Highest {
	return a.t.at.set.Routes.Highest(ctx, a.t.at.login.Account.UserCredentials, schema, table, column, of)
}
