package proxy

// CountedShards is of how many shards a session counts apart what it does there.
func (s *Server) CountedShards(id uint32) int {
	sess := s.byConnectionID(id)
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return sess.tally.Report.CountedShards()
}
