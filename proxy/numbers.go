package proxy

import (
	"bytes"
	"math"
	"slices"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// planCalls plans the text in s.stmt, whose calls the proxy answers or replaces. The plan is valid
// until the next one.
func (s *session) planCalls(sql []byte, at plan.Moment) (*plan.Action, error) {
	s.factsFor(at)
	return s.plan(sql)
}

// rewrite sends a text with its calls replaced by their values. The first number is
// spliced as LAST_INSERT_ID(n), so that the server itself makes it the session's,
// if and when it evaluates it; the others as plain numbers of the same type.
func (s *session) rewrite(sql []byte, a *plan.Action) error {
	st := &s.stmt
	previous, err := s.previousFor(st, a)
	if err != nil {
		return err
	}
	rows := rowsOf(a)
	c, err := s.attachWith(st, rows.traits(plan.TraitsOf(st)))
	if err != nil {
		return err
	}
	subs := a.Substitutions(st, &s.state, s.id, protocol.Placeholder)
	// Before numbers are taken for nothing. They may be as long as they can be.
	const call, alias = len("IF(1,CAST(18446744073709551615 AS UNSIGNED),LAST_INSERT_ID(18446744073709551615))"), 1 << 10
	if len(s.attributes)+len(sql)+call*len(st.Calls)+alias*len(st.Items) >= protocol.MaxFragment {
		s.setValues(subs, slices.Repeat([]keys.Number{{Value: math.MaxUint64}}, len(subs)), math.MaxUint64)
		if s.splice(sql, subs, nil) >= protocol.MaxFragment {
			return errTooLong
		}
	}
	values, err := s.takeAll(a.Numbers(), rows)
	if err != nil {
		return err
	}
	if a.Fill != nil {
		a.Fill.Spell()
	}
	s.setValues(subs, values, previous)
	bindLate(a.Late, subs)
	size := s.splice(sql, subs, a.Fill.Texts())
	if size >= protocol.MaxFragment { // by what was filled in
		return errTooLong
	}
	protocol.PutHeader(s.own, size, 0)
	if st.Kind == statement.Set {
		sql = bytes.Clone(sql) // which lies in the buffer that the client fills
	}
	if rows != nil {
		if err := s.sendOwnRows(c, rows, false); err != nil {
			return err
		}
		s.noteDone(c, sql)
		return nil
	}
	if len(subs) > 0 {
		s.tally.Sends(c, stats.KindRewrite)
	}
	switch r, err := s.sendFilled(c, a.Fill); {
	case err != nil:
		return err
	case r != noRemedy:
		return s.refill(c, sql, a, r)
	}
	s.noteDone(c, sql)
	return nil
}

// takeAll takes the numbers that a statement needs: it returns the values of the slots, and puts
// the first number of each key into n.Fill. rows are those of which the first has its numbers
// then, if there is a Lead.
func (s *session) takeAll(n plan.Numbers, rows *rowNumbers) (values []keys.Number, err error) {
	if values, err = s.numbers.Take(n.Slots); err != nil {
		return nil, err
	}
	if n.Lead >= 0 {
		if values[n.Lead].Value, err = s.takeAhead(rows); err != nil {
			return nil, err
		}
	}
	return values, s.takeKeys(n.Fill)
}

// setValues gives the substitutions of numbers and of the previous id their values.
func (s *session) setValues(subs []statement.Substitution, values []keys.Number, previous uint64) {
	for i := range subs {
		if place := s.stmt.Calls[i].Place; place == statement.PlaceNever || place == statement.PlaceRow && subs[i].Replacement != statement.AsLeading {
			continue
		}
		switch s.stmt.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			subs[i].Value, subs[i].Null = values[i].Value, values[i].Null
		case statement.LastInsertID, statement.LastInsertIDVariable:
			subs[i].Value = previous
		}
	}
}

// splice writes the command with the text in s.stmt rewritten, and splices in it, to s.own, but for its
// header, and returns its size without that.
func (s *session) splice(sql []byte, subs []statement.Substitution, splices []statement.Splice) int {
	s.own = slices.Grow(s.own[:0], len(s.attributes)+len(sql)+64*(1+len(subs))) // or a long text is copied many times
	s.own = append(s.own, 0, 0, 0, 0, byte(protocol.ComQuery))
	s.own = append(s.own, s.attributes...)
	s.own = s.stmt.Splice(s.own, sql, subs, splices)
	return len(s.own) - protocol.HeaderSize
}

// sendOwn sends the command in s.own, in the place of the client's, and relays the
// answer.
func (s *session) sendOwn(c *backend.Conn) error {
	s.state.LastOwn = state.OwnNothing
	return s.exchange(c, s.own, protocol.AnswerTo(s.own[protocol.HeaderSize:]))
}

// takeKeys takes the numbers of keys.
func (s *session) takeKeys(f *plan.Filling) error {
	if f == nil {
		return nil
	}
	for i := range f.Keys {
		k := &f.Keys[i]
		var err error
		if k.First, err = s.takeKey(k.Binding, k.Explicit, len(k.Filled), k.Step); err != nil {
			return err
		}
	}
	return nil
}

// takeKey takes count numbers, step apart, and returns the first; 0 of none. Those that
// the statement gives itself are taken out of what is handed out.
func (s *session) takeKey(b *plan.Binding, explicit []uint64, count int, step uint64) (first uint64, err error) {
	if err := s.numbers.Avoid(b, explicit); err != nil || count == 0 {
		return 0, err
	}
	if s.login.Account.Rights != nil {
		if err := s.mayUse([]byte(b.Sequence)); err != nil {
			return 0, err
		}
	}
	return s.numbers.Key(b, count, step)
}
