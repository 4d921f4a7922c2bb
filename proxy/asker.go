package proxy

import (
	"context"
	"fmt"

	"seqproxy/backend"
)

// asker is a session as a Caller.
type asker struct{ s *session }

// ID is the session's connection id.
func (a asker) ID() uint32 { return a.s.id }

// AfterAnswer has f run when the client has been sent the answer, or cannot be.
func (a asker) AfterAnswer(f func()) { a.s.afterAnswer = f }

// Admin says whether the user may change sequences.
func (a asker) Admin() bool { return a.s.user.Admin }

// Monitor says whether the user may see all that an admin sees.
func (a asker) Monitor() bool { return a.s.user.looks() }

// NoBackslashEscapes says whether backslashes in the session's strings are characters.
func (a asker) NoBackslashEscapes() bool { return a.s.state.Mode.NoBackslashEscapes }

// MayUse says whether the user may use a sequence.
func (a asker) MayUse(ctx context.Context, name []byte) (bool, error) {
	if a.s.user.rights == nil {
		return true, nil
	}
	return a.s.user.rights.Allow(ctx, a.s.set.Sequences, name)
}

// Audit logs what the session has changed.
func (a asker) Audit(statement string, err error) { a.s.audit(statement, err) }

// Highest reads the greatest number in a column on every shard, as the user: what the
// user may not read there, nobody reads for it.
func (a asker) Highest(ctx context.Context, schema, table, column string, of backend.Expression) []backend.Highest {
	return a.s.set.routes.Highest(ctx, a.s.user.asItself, schema, table, column, of)
}

// asItself returns what a shard's server lets the user in with.
func (u *User) asItself(shard *backend.Shard) (backend.Credentials, error) {
	if u.relayed && !u.secret && !shard.HasCredentials() {
		return backend.Credentials{}, fmt.Errorf("shard %s: the proxy does not know the password of %s, whom the server itself has checked", shard.Name(), u.Name)
	}
	creds, _ := u.beside(shard)
	return creds, nil
}
