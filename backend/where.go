package backend

// Primary returns the address of the node that gets the statements.
func (s *Shard) Primary() string { return s.primary().String() }

// Owner returns the shard that owns a schema by the configuration, or nil if none does. Then the
// default shard has it.
func (r *Routes) Owner(schema string) *Shard { return r.bySchema[schema] }
