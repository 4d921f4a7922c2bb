package backend

// Primary returns the address of the node that gets the statements.
func (s *Shard) Primary() string { return s.primary().String() }

// Owner returns the shard that owns a schema by the configuration. It returns nil if none does, and
// the default shard has the schema.
func (r *Routes) Owner(schema string) *Shard { return r.bySchema[schema] }
