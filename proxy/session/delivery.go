package session

import (
	"bytes"
	"math"
	"slices"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// delivery sends a text to its server, unchanged or rewritten.
type delivery struct {
	*ground
	planning *planning
	answers  *answers

	attributes []byte // of QueryAttributes, in front of the text; in the client's buffer
	replaced   bool   // the KILLs of the text are not the client's
}

// single handles a text for the current shard. It answers or replaces the calls.
func (d *delivery) single(sql []byte) error {
	st := &d.planning.stmt
	if d.state.LastAnswer == state.OurChange && st.Words&statement.ReadsRowCount != 0 {
		if handled, err := d.answers.answerRowCount(sql); handled {
			return err
		}
	}
	if d.planning.concernsProxy() {
		a, err := d.planning.planCalls(nil, sql, plan.Now)
		switch {
		case err != nil:
			return err
		case a.Do == plan.Reply:
			return d.answers.answerSelect(st, sql, a, nil)
		case a.Do == plan.Rewrite:
			return d.rewrite(sql, a)
		}
	}
	if d.at.routes.Default == nil {
		return d.answers.answerLocal(sql, nil)
	}
	return d.passOn(sql)
}

// passOn relays the text just analysed as it is.
func (d *delivery) passOn(sql []byte) error {
	if d.replaced {
		return d.rewrite(sql, plan.Nothing(&d.planning.stmt))
	}
	c, err := d.attachFor(&d.planning.stmt)
	if err != nil {
		return err
	}
	d.relay.enqueue(c, protocol.ShapeResult)
	return d.relayed(sql, c)
}

// relayed settles the statement just enqueued and records what it did.
func (d *delivery) relayed(sql []byte, c *backend.Conn) error {
	d.state.LastAnswer = state.ByServer
	changes := d.planning.stmt.ChangesTables()
	// The client's buffer may move, so keep what is needed afterwards elsewhere.
	var text []byte
	switch d.planning.stmt.Kind {
	case statement.Set:
		text = append(d.relay.scratch[:0], sql...)
	case statement.Multi:
		d.forgetText()
	}
	if err := d.relay.settle(); err != nil {
		return err
	}
	d.noteDone(c, text, changes)
	return d.at.keepStep(c)
}

// noteDone records the effect on the session of the statement just answered on c. sql is the
// client's text if it is a SET. changes is what the analysis says of ChangesTables.
func (d *delivery) noteDone(c *backend.Conn, sql []byte, changes bool) {
	if c.Answer.ErrCode != 0 {
		return
	}
	if changes {
		d.at.shared.columns.forget()
	}
	if d.planning.stmt.Kind == statement.Set {
		d.state.SetVariables(&d.planning.stmt, sql)
		d.state.Synced(idOfConn(c), d.state.Version)
	}
}

// attachFor attaches the connection for a relayed statement, and brings there what the statement
// may read.
func (d *delivery) attachFor(st *statement.Statement) (*backend.Conn, error) {
	return d.attachWith(st, plan.TraitsOf(st))
}

// attachWith is attachFor for a statement that is sent with other traits than its text's.
func (d *delivery) attachWith(st *statement.Statement, t plan.Traits) (*backend.Conn, error) {
	c, err := d.at.Attach()
	if err != nil {
		return nil, err
	}
	if !st.ReadFor(d.state.Mode.Server) {
		return nil, errOtherServer
	}
	if st.Kind == statement.ShowWarnings && d.state.LastAnswer == state.ByServer && d.state.LastConn != 0 {
		c = d.at.connBy(d.state.LastConn) // it may be on another shard than the current one
	}
	if err := d.at.bring(c, t); err != nil {
		return nil, err
	}
	d.at.expects(state.Effect{Kind: st.Kind, Words: st.Words, Runs: st.Runs, Procedure: d.state.ProcedureOf(st)})
	return c, nil
}

// mayForget reports whether nobody looks at the analysis of the text being handled once it is sent
// with the numbers n. What is known of several statements may take much memory, even if the text is
// short.
func (d *delivery) mayForget(n *keys.Numbers) bool {
	switch d.planning.stmt.Kind {
	case statement.Select, statement.Insert, statement.Replace, statement.Update, statement.Delete:
		return d.relay.share.bytes > 0 && n.Once()
	case statement.Multi: // it is sent once, even if keys are filled in
		return n.Rows == nil && n.Block == nil
	}
	return false
}

// forgetText drops all that has the text being handled, except the command in the scratch buffer.
// So the session's share of the memory is free once that is sent, however long the statement then
// waits for a lock.
func (d *delivery) forgetText() {
	d.attributes, d.relay.batch.payload = nil, nil
	d.planning.fill = nil
	d.planning.trim()
	d.relay.share.relayed = d.relay.share.bytes > 0
}

// fillQuery handles the analysed text of q.
func (d *delivery) fillQuery(q *plan.FilledQuery) error {
	a, err := d.planning.planCalls(q, q.Text, plan.Now)
	if err != nil {
		return err
	}
	of := q.Binding // forgetText may empty q
	if err = d.rewrite(q.Text, a); err != nil {
		err = refusedQuery(of, err)
	}
	return err
}

// rewrite sends a text with its calls replaced by their values. The first number becomes
// LAST_INSERT_ID(n), so the server itself makes it the session's, if and when it evaluates it. The
// others become plain numbers of the same type.
func (d *delivery) rewrite(sql []byte, a *plan.Action) error {
	st := &d.planning.stmt
	changes := st.ChangesTables()
	previous := uint64(0) // LAST_INSERT_ID() for the text's first statement
	if a.Previous {
		var err error
		if previous, err = d.at.askPrevious(st.Words); err != nil {
			return err
		}
	}
	c, err := d.attachWith(st, a.Traits(plan.TraitsOf(st)))
	if err != nil {
		return err
	}
	n := keys.Of(&a.Numbers)
	if n.Block != nil {
		if err := d.planning.countable(c, n.Block, st.Words); err != nil {
			return err
		}
	}
	subs := a.Substitutions(st, d.state, d.at.id, protocol.Placeholder)
	// Check the length with the longest numbers, before numbers are taken in vain.
	const call, alias = len("IF(1,CAST(18446744073709551615 AS UNSIGNED),LAST_INSERT_ID(18446744073709551615))"), 1 << 10
	if len(d.attributes)+len(sql)+call*len(st.Calls)+alias*len(st.Items) >= protocol.MaxFragment {
		keys.Substitute(subs, st.Calls, slices.Repeat([]keys.Number{{Value: math.MaxUint64}}, len(subs)), math.MaxUint64)
		d.splice(sql, subs, nil)
		if err := d.relay.frame(); err != nil {
			return err
		}
	}
	if st.Kind == statement.Set {
		sql = bytes.Clone(sql) // the client's buffer may move
	}
	a.MarkInsertID(st, sql, subs)
	for {
		values, err := d.numbers.All(&n)
		if err != nil {
			return err
		}
		if err := d.write(sql, a, subs, values, previous); err != nil {
			return err
		}
		if d.mayForget(&n) {
			d.forgetText()
			if err := d.relay.sendOnce(c, &n); err != nil {
				return err
			}
			d.noteDone(c, nil, changes)
			return nil
		}
		switch r, err := d.relay.sendNumbered(c, &n, false); {
		case err != nil:
			return err
		case r == noRemedy:
			d.noteDone(c, sql, changes)
			return nil
		case r != largerBlock:
			return d.refill(c, sql, a, r)
		}
	}
}

// write writes the rewritten text with its numbers as a command to the scratch buffer.
func (d *delivery) write(sql []byte, a *plan.Action, subs []statement.Substitution, values []keys.Number, previous uint64) error {
	if a.Fill != nil {
		a.Fill.Spell()
	}
	keys.Substitute(subs, d.planning.stmt.Calls, values, previous)
	if err := keys.Bind(a.Late, subs); err != nil {
		return err
	}
	d.splice(sql, subs, a.Fill.Texts())
	return d.relay.frame()
}

// splice writes the rewritten text with splices as a command to the scratch buffer, without framing
// it.
func (d *delivery) splice(sql []byte, subs []statement.Substitution, splices []statement.Splice) {
	// Growing once avoids many copies of a long text.
	d.relay.scratch = slices.Grow(d.relay.scratch[:0], len(d.attributes)+len(sql)+64*(1+len(subs)))
	d.relay.begin(protocol.ComQuery)
	d.relay.scratch = append(d.relay.scratch, d.attributes...)
	d.relay.scratch = d.planning.stmt.Rewrite(d.relay.scratch, sql, subs, splices...)
}

// refill applies the remedy that sendNumbered returned, and handles the text again.
func (d *delivery) refill(c *backend.Conn, sql []byte, a *plan.Action, r remedy) error {
	switch r {
	case newColumns:
		f, err := d.planning.planFilling(sql, false)
		if err != nil {
			return err
		}
		d.planning.fill = f
	case notTheTable:
		t, k := d.planning.stmt.Table(), &a.Fill.Keys[0]
		of, err := d.planning.askColumns(c, string(sql[t.Start:t.End]), d.planning.stmt.ReadsOfLast())
		if err != nil {
			return err
		}
		same := d.planning.sameColumn(k.Binding.Column)
		if !plan.ContainsName(of.Names, same) && !plan.ContainsName(of.More, same) {
			if v := k.Binding.Renamed(&of); v.Kind != plan.Go {
				return d.planning.refusal(&v.Refusal, sql)
			}
			d.planning.fill = nil // it is another table of the same name
		}
	}
	if d.planning.fill != nil {
		d.planning.fill.Repeated = true
	}
	return d.single(sql)
}
