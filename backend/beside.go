package backend

import (
	"context"

	"seqproxy/protocol"
)

// Place says which connection of which server a [Conn] is. It outlives the Conn.
type Place struct {
	shard *Shard
	node  *Node
	id    uint32
}

// Place returns where the server knows the connection.
func (c *Conn) Place() Place { return Place{c.shard, c.node, c.ID} }

// Shard returns the shard of the server.
func (p Place) Shard() *Shard { return p.shard }

// Node returns the address of the server, for messages.
func (p Place) Node() string { return p.node.String() }

// ID returns the server's own number of the connection.
func (p Place) ID() uint32 { return p.id }

// SameServer says whether a connection to the one is a connection to the other.
func (p Place) SameServer(q Place) bool { return p.node == q.node }

// DialBeside opens another connection to the server of p, for what cannot be said on the first: to
// end its statement. It logs in with creds, without a schema; errors are those of Dial.
func (r *Routes) DialBeside(ctx context.Context, p Place, creds Credentials) (*Conn, error) {
	return r.dialEither(ctx, p.shard, p.node, Login{
		Credentials:  creds,
		Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth,
		Collation:    utf8mb4GeneralCI,
		access:       p.shard.access.Load(),
	})
}
