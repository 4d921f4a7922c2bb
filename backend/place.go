package backend

import (
	"context"

	"seqproxy/protocol"
)

// Place identifies the server and the connection behind a [Conn]. It outlives the Conn.
type Place struct {
	shard *Shard
	node  *Node
	id    uint32
}

// Place returns the server and the number that the server gave the connection.
func (c *Conn) Place() Place { return Place{c.Shard, c.node, c.ID} }

// Shard returns the shard of the server.
func (p Place) Shard() *Shard { return p.shard }

// Node returns the address of the server, for messages.
func (p Place) Node() string { return p.node.String() }

// ID returns the server's own number of the connection.
func (p Place) ID() uint32 { return p.id }

// SameServer reports whether p and q are connections to the same server.
func (p Place) SameServer(q Place) bool { return p.node == q.node }

// DialSecond opens a second connection to the server of p, to end the statement that runs on the
// first. It logs in with creds, without a schema. Errors are those of Dial.
func (r *Routes) DialSecond(ctx context.Context, p Place, creds Credentials) (*Conn, error) {
	return r.dialEither(ctx, p.shard, p.node, Login{
		Credentials:  creds,
		Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth,
		Collation:    utf8mb4GeneralCI,
		access:       p.shard.access.Load(),
	})
}
