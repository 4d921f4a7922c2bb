package backend

// Primary is the address of the node that statements go to.
func (s *Shard) Primary() string { return s.primary().String() }

// Owner returns the shard that owns a schema by the configuration; nil if none does, so
// that it is the default shard's.
func (r *Routes) Owner(schema string) *Shard { return r.bySchema[schema] }
