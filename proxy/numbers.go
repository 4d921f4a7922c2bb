package proxy

import (
	"bytes"
	"math"
	"slices"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// planCalls plans the text in s.stmt, whose calls the proxy answers or replaces. The plan is valid
// until the next one.
func (p *planning) planCalls(sql []byte, at plan.Moment) (*plan.Action, error) {
	p.factsFor(at)
	return p.plan(sql)
}

// delivery sends a text to its server: as it is, or with what the proxy puts into it.
type delivery struct {
	*ground
	planning *planning
	answers  *answers

	attributes []byte // before the text, with QueryAttributes; in the client's buffer
	replaced   bool   // the KILLs of the text are not what the client sent
}

// rewrite sends a text with its calls replaced by their values. The first number is
// spliced as LAST_INSERT_ID(n), so that the server itself makes it the session's,
// if and when it evaluates it; the others as plain numbers of the same type.
func (d *delivery) rewrite(sql []byte, a *plan.Action) error {
	st := &d.planning.stmt
	previous, err := d.planning.previousFor(st, a)
	if err != nil {
		return err
	}
	c, err := d.attachWith(st, a.Traits(plan.TraitsOf(st)))
	if err != nil {
		return err
	}
	n := keys.Of(&a.Numbers)
	if err := d.planning.countable(c, n.Block, st.Words); err != nil {
		return err
	}
	subs := a.Substitutions(st, d.state, d.at.id, protocol.Placeholder)
	// Before numbers are taken for nothing. They may be as long as they can be.
	const call, alias = len("IF(1,CAST(18446744073709551615 AS UNSIGNED),LAST_INSERT_ID(18446744073709551615))"), 1 << 10
	if len(d.attributes)+len(sql)+call*len(st.Calls)+alias*len(st.Items) >= protocol.MaxFragment {
		keys.Substitute(subs, st.Calls, slices.Repeat([]keys.Number{{Value: math.MaxUint64}}, len(subs)), math.MaxUint64)
		if d.splice(sql, subs, nil) >= protocol.MaxFragment {
			return params.ErrTooLong
		}
	}
	if st.Kind == statement.Set {
		sql = bytes.Clone(sql) // which lies in the buffer that the client fills
	}
	for {
		values, err := d.numbers.All(&n)
		if err != nil {
			return err
		}
		if err := d.write(sql, a, subs, values, previous); err != nil {
			return err
		}
		if len(subs) > 0 {
			d.at.tally.Sends(c, stats.KindRewrite)
		}
		switch r, err := d.relay.sendNumbered(c, &n, false); {
		case err != nil:
			return err
		case r == noRemedy:
			d.noteDone(c, sql)
			return nil
		case r != largerBlock:
			return d.refill(c, sql, a, r)
		}
	}
}

// write writes the command with the text in s.stmt and its numbers to s.scratch.
func (d *delivery) write(sql []byte, a *plan.Action, subs []statement.Substitution, values []keys.Number, previous uint64) error {
	if a.Fill != nil {
		a.Fill.Spell()
	}
	keys.Substitute(subs, d.planning.stmt.Calls, values, previous)
	if err := keys.Bind(a.Late, subs); err != nil {
		return err
	}
	size := d.splice(sql, subs, a.Fill.Texts())
	if size >= protocol.MaxFragment { // by what was filled in
		return params.ErrTooLong
	}
	protocol.PutHeader(d.relay.scratch, size, 0)
	return nil
}

// splice writes the command with the text in s.stmt rewritten, and splices in it, to s.scratch, but
// for its header, and returns its size without that.
func (d *delivery) splice(sql []byte, subs []statement.Substitution, splices []statement.Splice) int {
	// or a long text is copied many times
	d.relay.scratch = slices.Grow(d.relay.scratch[:0], len(d.attributes)+len(sql)+64*(1+len(subs)))
	d.relay.scratch = append(d.relay.scratch, 0, 0, 0, 0, byte(protocol.ComQuery))
	d.relay.scratch = append(d.relay.scratch, d.attributes...)
	d.relay.scratch = d.planning.stmt.Splice(d.relay.scratch, sql, subs, splices)
	return len(d.relay.scratch) - protocol.HeaderSize
}

// sendScratch sends the command in s.scratch, in the place of the client's, and relays the
// answer.
func (r *relay) sendScratch(c *backend.Conn) error {
	r.at.state.LastAnswer = state.ByServer
	return r.exchange(c, r.scratch, protocol.AnswerTo(r.scratch[protocol.HeaderSize:]))
}
