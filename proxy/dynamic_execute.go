package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// executeNumbered executes a text that is inside another, with new numbers in it. write
// makes s.own the command that executes it as it is then, on c.
func (s *session) executeNumbered(text []byte, mode statement.Mode, charset string, write func(c *backend.Conn, text []byte) error) error {
	for repeated := false; ; repeated = true {
		plan, _, err := s.numbersIn(text, mode, charset)
		if err != nil {
			return err
		}
		if plan.fill != nil {
			plan.fill.repeated = repeated
		}
		st := &s.stmt
		previous, err := s.previousFor(st, plan)
		if err != nil {
			return err
		}
		c, err := s.attachWith(st, plan.rows.traits(plan.counted.traits(traitsOf(st))))
		if err != nil {
			return err
		}
		if plan.counted != nil {
			err = s.countText(c, text, plan, previous, write)
		} else {
			var r remedy
			r, err = s.executeOnce(c, text, plan, previous, write)
			if err == nil && r != noRemedy || !repeated && plan.fill != nil && s.otherColumns(err) {
				continue
			}
		}
		if err == nil {
			s.noteDone(c, text)
			err = s.keepTurns(c)
		}
		return err
	}
}

// otherColumns says whether the server cannot prepare a text since a table's columns are not
// those that are remembered, and forgets these.
func (s *session) otherColumns(err error) bool {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case mysql.ER_WRONG_VALUE_COUNT_ON_ROW, mysql.ER_BAD_FIELD_ERROR, mysql.ER_NO_SUCH_TABLE:
		s.srv.columns.forget()
		return true
	}
	return false
}

// executeOnce executes such a text, which is the one in s.stmt, unless it fails and there
// is a remedy.
func (s *session) executeOnce(c *backend.Conn, text []byte, plan callPlan, previous previousID, write func(*backend.Conn, []byte) error) (remedy, error) {
	st := &s.stmt
	values, err := s.takeOnce(st, plan)
	if err != nil {
		return noRemedy, err
	}
	if err := s.takeKeys(plan.fill); err != nil {
		return noRemedy, err
	}
	subs := s.substitutions(st, plan, previous.needed)
	s.setValues(subs, values, previous.value)
	if err := write(c, st.Splice(nil, text, subs, plan.fill.texts())); err != nil {
		return noRemedy, err
	}
	if plan.rows != nil {
		return noRemedy, s.sendOwnRows(c, plan.rows, false)
	}
	s.sends(c, KindRewrite)
	return s.sendFilled(c, plan.fill)
}

// countText executes such a text in which the server counts numbers off.
func (s *session) countText(c *backend.Conn, text []byte, plan callPlan, previous previousID, write func(*backend.Conn, []byte) error) error {
	n := plan.counted
	if err := s.countable(c, n); err != nil {
		return err
	}
	subs := s.substitutions(&s.stmt, plan, previous.needed)
	s.setValues(subs, make([]number, len(subs)), previous.value)
	for again := true; again; {
		if err := s.takeBlock(c, n); err != nil {
			return err
		}
		n.substitute(subs, plan.served)
		err := write(c, s.stmt.Splice(nil, text, subs, nil))
		if err != nil {
			return err
		}
		s.state.lastOwn = ownNothing
		if again, err = s.exchangeCounted(c, n); err != nil {
			return err
		}
	}
	return nil
}
