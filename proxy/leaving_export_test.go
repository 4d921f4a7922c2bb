package proxy

// CountedShards returns for how many shards a session keeps counts of its own.
func (s *Server) CountedShards(id uint32) int { return s.byConnectionID(id).CountedShards() }
