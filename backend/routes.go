package backend

import (
	"fmt"
	"slices"
	"time"

	"seqproxy/protocol"
)

// Routes says which shard owns a schema, and opens connections there. It is immutable and safe for
// concurrent use. A reload makes new Routes. They share the *Shard of each shard whose name and
// nodes are the same, even if a reload in between has removed it. The zero value has no shards.
type Routes struct {
	Default *Shard // of the schemas that no shard owns; nil without shards

	shards   []*Shard
	bySchema map[string]*Shard
	inPause  int // how many of the reloads up to here were in a pause

	probe          Credentials
	connectTimeout time.Duration
}

// newRoutes makes Routes. It reuses shards of before, which may be nil, and of leaving.
func newRoutes(opts Options, before *Routes, leaving []*Shard) (*Routes, error) {
	r := &Routes{bySchema: make(map[string]*Shard), probe: opts.Probe, connectTimeout: opts.ConnectTimeout}
	if before != nil {
		r.inPause = before.inPause
		if slices.ContainsFunc(before.shards, func(s *Shard) bool { return s.Paused() != nil }) {
			r.inPause++
		}
	}
	for _, o := range opts.Shards {
		if len(o.Nodes) == 0 {
			return nil, fmt.Errorf("shard %s has no node", o.Name)
		}
		shard := shardFor(&o, before, leaving)
		for _, schema := range o.Schemas {
			if other, taken := r.bySchema[schema]; taken {
				return nil, fmt.Errorf("schema %s is owned by the shards %s and %s", schema, other.name, o.Name)
			}
			r.bySchema[schema] = shard
		}
		r.shards = append(r.shards, shard)
		if o.Name == opts.Default {
			r.Default = shard
		}
	}
	if len(r.shards) > 0 && r.Default == nil {
		return nil, fmt.Errorf("default shard %q is no shard", opts.Default)
	}
	return r, nil
}

// shardFor returns the shard that o describes, an existing one if possible.
func shardFor(o *ShardOptions, before *Routes, leaving []*Shard) *Shard {
	all := slices.Clone(leaving)
	if before != nil {
		all = append(all, before.shards...)
	}
	var named *Shard
	for _, shard := range slices.Backward(all) { // the present shards, then the one removed last
		switch {
		case shard.name != o.Name:
		case slices.EqualFunc(shard.nodes, o.Nodes, func(n *Node, address string) bool { return n.String() == address }):
			return shard
		case named == nil:
			named = shard
		}
	}
	return newShard(o, named)
}

// named returns the shard of a name, or nil.
func (r *Routes) named(name string) *Shard {
	for _, shard := range r.shards {
		if shard.name == name {
			return shard
		}
	}
	return nil
}

// Named returns the shard of that name, or none. "" means all shards, in the order of the
// configuration.
func (r *Routes) Named(name string) []*Shard {
	if name == "" {
		return slices.Clone(r.shards)
	}
	if shard := r.named(name); shard != nil {
		return []*Shard{shard}
	}
	return nil
}

// Owner returns the shard that owns a schema by the configuration. It returns nil if none does, and
// the default shard has the schema.
func (r *Routes) Owner(schema string) *Shard { return r.bySchema[schema] }

// ForSchema returns the owner of a schema, or the default shard if it has no owner, or nil if there
// are no shards. "" means no current schema.
func (r *Routes) ForSchema(schema string) *Shard {
	if shard, ok := r.bySchema[schema]; ok {
		return shard
	}
	return r.Default
}

// Many reports whether there is more than one shard, so that a session may have to change shards.
func (r *Routes) Many() bool { return len(r.shards) > 1 }

// Has reports whether the routes contain the shard.
func (r *Routes) Has(shard *Shard) bool { return slices.Contains(r.shards, shard) }

func (r *Routes) hasNode(n *Node) bool {
	return slices.ContainsFunc(r.shards, func(s *Shard) bool { return slices.Contains(s.nodes, n) })
}

// PausedSince reports whether one of the reloads between before and r was in a pause.
func (r *Routes) PausedSince(before *Routes) bool { return r.inPause != before.inPause }

// Greeting returns the version and collation of the default shard, and the capabilities that all
// servers have in common. Clients get these before their login names a user and a schema. ok is
// false until the default shard's server has answered once. A greeting without LongPassword is
// MariaDB's and may have Extended flags. So Greeting omits LongPassword only if all servers are
// MariaDB.
func (r *Routes) Greeting() (h Hello, ok bool) {
	if r.Default == nil {
		return Hello{}, false
	}
	h, ok = r.Default.Hello()
	if !ok {
		return Hello{}, false
	}
	for _, shard := range r.shards {
		if other, answered := shard.Hello(); answered {
			h.Capabilities &= other.Capabilities
			h.MariaDB = h.MariaDB && other.MariaDB
		}
	}
	if !h.MariaDB {
		h.Capabilities = h.Capabilities&^protocol.Extended | protocol.LongPassword
	}
	return h, true
}

// targets returns all nodes.
func (r *Routes) targets() (all []target) {
	for _, shard := range r.shards {
		for _, n := range shard.nodes {
			all = append(all, target{shard, n, shard.access.Load()})
		}
	}
	return all
}
