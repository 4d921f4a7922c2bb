package proxy

import (
	"seqproxy/backend"
	"seqproxy/proxy/params"
	"seqproxy/proxy/stats"
)

// executeFilled sends the execution in s.scratch, a second time with new numbers if somebody
// has used the one that it was given.
func (s *session) executeFilled(c *backend.Conn, p *prepared, e *params.Execution, attributes bool) error {
	s.tally.Sends(c, stats.KindRewrite) // it has parameters of ours in any case
	r, err := s.sendFilled(c, p.Filling)
	if err == nil && r != noRemedy {
		if err = s.fillHidden(c, p, e, attributes); err == nil {
			p.Filling.Repeated = true
			_, err = s.sendFilled(c, p.Filling)
		}
	}
	p.ForgetLong()
	return err
}
