package proxy

import (
	"seqproxy/backend"
	"seqproxy/proxy/params"
	"seqproxy/proxy/stats"
)

// executeFilled sends the execution in s.scratch, a second time with new numbers if somebody
// has used the one that it was given.
func (x *executor) executeFilled(c *backend.Conn, p *prepared, e *params.Execution, attributes bool) error {
	x.at.tally.Sends(c, stats.KindRewrite) // it has parameters of ours in any case
	r, err := x.relay.sendFilled(c, p.Filling)
	if err == nil && r != noRemedy {
		if err = x.fillHidden(c, p, e, attributes); err == nil {
			p.Filling.Repeated = true
			_, err = x.relay.sendFilled(c, p.Filling)
		}
	}
	p.ForgetLong()
	return err
}
