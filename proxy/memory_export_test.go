package proxy

import "time"

// SetReceivePeriod changes how often the proxy checks how fast a client sends a large statement.
func (s *Server) SetReceivePeriod(d time.Duration) { s.shared.ReceivePeriod = d }
