package proxy

import (
	"context"
	"net"

	"seqproxy/backend"
)

// Caller is the session that asks about sequences, or about the proxy itself.
type Caller interface {
	// ID is the session's connection id, User the name of its user, Client the address of
	// its client.
	ID() uint32
	User() string
	Client() net.Addr
	// AfterAnswer has f run when the client has been sent the answer, or cannot be.
	AfterAnswer(f func())
	// Admin says whether the user may change sequences.
	Admin() bool
	// Monitor says whether the user may see all that an admin sees.
	Monitor() bool
	// NoBackslashEscapes says whether backslashes in the caller's strings are characters.
	NoBackslashEscapes() bool
	// MayUse says whether the user may use a sequence, and so see it.
	MayUse(ctx context.Context, name []byte) (bool, error)
	// Highest reads the greatest number in a column on every shard; without a schema of
	// every table of the name. There may be no shard.
	Highest(ctx context.Context, schema, table, column string) []backend.Highest
}
