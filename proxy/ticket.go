package proxy

import (
	"slices"

	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/proxy/ticket"
	"seqproxy/statement"
)

// TicketTable is a table whose ticket idioms are answered here.
type TicketTable = ticket.Table

// ticketText answers a text that is a ticket, or a ticket and a SELECT of the number.
// It is false if the text has to be relayed. Nothing is in flight.
func (s *session) ticketText(t *ticket.Ticket, sql []byte) (handled bool, err error) {
	var then statement.Statement
	rest, alone, served := s.ticketServed(t, sql, &then)
	if !served {
		if !alone && !s.severalAgreed() {
			return false, nil // an error there
		}
		return false, s.leaveToServer(t)
	}
	answer, handled, err := s.takeTicket(t, s.state.Charset)
	if !handled && err == nil {
		err = s.leaveToServer(t)
	}
	if !handled || err != nil {
		return handled, err
	}
	if !alone && !answer.Moved {
		return false, s.leaveToServer(t) // which number follows is the server's to know
	}
	if err := s.beginImplied(&answer); err != nil {
		return true, err
	}
	if alone {
		s.answerTicket(&answer, 0)
		return true, nil
	}
	s.answerTicket(&answer, protocol.MoreResults)
	s.client.packetNum++
	return true, s.answerSelect(&then, rest, plan.Nothing(&then), nil)
}

// ticketServed says whether a text that is a ticket may be answered here. Behind it there
// may be a rest, which is then a SELECT of the number.
func (s *session) ticketServed(t *ticket.Ticket, sql []byte, then *statement.Statement) (rest []byte, alone, served bool) {
	if rest, alone = t.Rest(sql); !alone {
		if !s.severalAgreed() {
			return rest, alone, false
		}
		if then.Analyze(rest, s.state.Mode); !s.asksForID(then) {
			return rest, alone, false
		}
	}
	return rest, alone, t.KeyParam < 0 && t.StepParam < 0 && ticket.ServedIn(&s.state)
}

// leaveToServer prepares for a ticket to be sent that cannot be answered here, if it may. While the
// shard is paused it waits first, as the set of sequence servers may be changed meanwhile.
func (s *session) leaveToServer(t *ticket.Ticket) error {
	if t.Of.Counter == nil && s.routes.Default() != nil {
		if _, err := s.Attach(); err != nil {
			return err
		}
	}
	return s.mayLeaveToServer(t)
}

// mayLeaveToServer says whether the server may answer a ticket that cannot be answered here.
func (s *session) mayLeaveToServer(t *ticket.Ticket) error {
	if t.Of.Counter != nil {
		return nil
	}
	several, turns, err := s.set.Sequences.Divided(&s.numbers.Patience)
	if err = s.numbers.Patience.Over(err); err != nil {
		return err
	}
	if why := t.Refusal(several, turns, s.set.Sequences.Stride()); why != "" {
		return protocol.NotSupported("%s", why)
	}
	return nil
}

// asksForID says whether a statement is a SELECT of nothing but LAST_INSERT_ID(), once
// or more, that is answered here.
func (s *session) asksForID(st *statement.Statement) bool {
	if !st.SelfContained || s.limitsRows() || s.mayOmitMetadata() || s.login.Capabilities.Has(protocol.NoSchema) {
		return false
	}
	return !slices.ContainsFunc(st.Calls, func(c statement.FuncCall) bool {
		return c.Func != statement.LastInsertID && c.Func != statement.LastInsertIDVariable
	})
}

// severalAgreed says whether a text may be of several statements.
func (s *session) severalAgreed() bool {
	if len(s.state.Option) == 2 { // of the last COM_SET_OPTION
		return s.state.Option[0] == 0 && s.state.Option[1] == 0
	}
	return s.login.Capabilities.Has(protocol.MultiStatements)
}

// takeTicket takes the number of a ticket, whose key is in a character set. handled is
// false if the server has to answer.
func (s *session) takeTicket(t *ticket.Ticket, charset string) (a ticket.Answer, handled bool, err error) {
	key, err := s.InUTF8(t.Key, charset)
	if err != nil || t.Of.Counter == nil && len(key) == 0 {
		return a, false, nil
	}
	if err := s.numbers.MayUse(t.Right(key)); err != nil {
		return a, true, err
	}
	a, err = t.Take(&s.numbers.Patience, s.set.Sequences, key)
	if err = s.numbers.Patience.Over(err); ticket.NotHere(err) {
		return a, false, nil
	}
	return a, true, err
}

// beginImplied begins the transaction that a server would begin with the statement,
// where autocommit is off.
func (s *session) beginImplied(a *ticket.Answer) error {
	if !a.Transactional || s.state.Status.Has(protocol.Autocommit) || s.state.InTransaction() || s.routes.Default() == nil {
		return nil
	}
	c, err := s.Attach()
	if err != nil {
		return err
	}
	if _, err := s.Ask(c, "START TRANSACTION"); err != nil {
		return err
	}
	s.state.Observe(c.Answer.Status, c.Hello().MariaDB)
	return nil
}

// answerTicket answers with the OK of a ticket. more are flags beside the session's.
func (s *session) answerTicket(a *ticket.Answer, more protocol.Status) {
	s.tally.Becomes(stats.KindNextval)
	if a.Moved {
		s.state.LastID.Told(a.ID)
	}
	s.state.LastOwn, s.state.LastChanged = state.OwnChange, a.Affected
	s.client.out = protocol.AppendOK(s.client.out, s.client.packetNum, protocol.OK{
		AffectedRows: a.Affected, InsertID: a.ID, Status: s.state.Status | more, Info: a.Info,
	})
}

// answerRowCount answers a SELECT of nothing but ROW_COUNT() and LAST_INSERT_ID(), right after
// a ticket, where no server can be made to say it: 2 rows, the deleted one and the new one.
func (s *session) answerRowCount(sql []byte) (handled bool, err error) {
	if s.state.LastChanged < 2 && s.routes.Default() != nil || s.limitsRows() {
		return false, nil
	}
	t, ok := alone.RowCount(&s.state, sql)
	if !ok {
		return false, nil
	}
	if err := s.table(t, nil); err != nil {
		return true, err
	}
	s.state.LastID.Rows = false
	return true, nil
}
