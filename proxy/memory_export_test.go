package proxy

import "time"

// SetReceivePeriod changes how often it is looked at how fast a client sends a large statement.
func (s *Server) SetReceivePeriod(d time.Duration) { s.shared.ReceivePeriod = d }
