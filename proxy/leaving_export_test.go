package proxy

// CountedShards is of how many shards a session counts apart what it does there.
func (s *Server) CountedShards(id uint32) int { return s.byConnectionID(id).CountedShards() }
