package backend

import (
	"context"
	"errors"
	"fmt"

	"seqproxy/protocol"
)

// Change is a set of new options for Shards, not yet in force. It shares with the old one what
// stays the same: see [Routes].
type Change struct {
	shards *Shards
	routes *Routes
	access map[*Shard]*access // the new access of shards that stay
	news   []target           // nodes that Try connects to: new ones, or with a new access
}

// Change prepares validated options to replace those in force. It does no I/O. Only one Change may
// be prepared and applied at a time.
func (s *Shards) Change(opts Options) (*Change, error) {
	before := s.Routes()
	routes, err := newRoutes(opts, before, s.leaving.list())
	if err != nil {
		return nil, err
	}
	c := &Change{shards: s, routes: routes, access: make(map[*Shard]*access)}
	for i, shard := range routes.shards {
		now := shard.access.Load()
		if next := newAccess(&opts.Shards[i]); !next.same(now) {
			c.access[shard], now = next, next
		} else if before.Has(shard) {
			continue
		}
		for _, n := range shard.nodes {
			c.news = append(c.news, target{shard, n, now})
		}
	}
	return c, nil
}

// same reports whether a and b are equal, TLS included.
func (a *access) same(b *access) bool {
	return (a.creds == nil) == (b.creds == nil) && (a.creds == nil || *a.creds == *b.creds) && a.probe == b.probe && a.client == b.client
}

// Try connects to the new nodes within the connect timeout. The error says which cannot be used. A
// server that refuses an account is still usable, unless the account is the shard's own.
func (c *Change) Try(ctx context.Context) error {
	var wrong []error
	for i, err := range c.routes.ask(ctx, c.news) {
		t := c.news[i]
		var refused *protocol.ServerError
		switch {
		case err == nil:
		case errors.As(err, &refused) && t.access.creds == nil && !refusesAll(refused.Code):
		case refused != nil:
			wrong = append(wrong, fmt.Errorf("shard %s: node %s cannot be used: %w", t.shard.name, t.node, refused))
		default:
			wrong = append(wrong, err)
		}
	}
	return errors.Join(wrong...)
}

// Apply puts the change in force for connections opened from now on. It returns the new routes.
func (c *Change) Apply() *Routes {
	for shard, access := range c.access {
		shard.access.Store(access)
	}
	s := c.shards
	s.leaving.change(s.routes.Swap(c.routes), c.routes)
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return c.routes
}
