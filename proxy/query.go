package proxy

import (
	"context"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// query handles an SQL text, before which there may be attributes.
func (s *session) query(sql []byte) error {
	s.tally.Kind = stats.KindHere // until it is more
	if s.login.Capabilities.Has(protocol.QueryAttributes) {
		n, ok := protocol.CutAttributes(sql)
		if !ok {
			return s.answerAlone(s.unread)
		}
		s.attributes, sql = sql[:n], sql[n:]
	}
	if s.state.ModeUnknown || s.state.QuotesUnknown {
		if err := s.readable(sql); err != nil {
			return s.answerAlone(func() error { return err })
		}
	}
	s.takes(sql, false)
	st := &s.stmt
	s.analyze(sql)
	s.explained = plan.ExplainsID(st)
	if s.login.AtAdmin {
		return s.answerAlone(func() error { return s.atAdminAddress(sql) })
	}
	if t := s.ticketIn(sql); t != nil {
		if err := s.settle(); err != nil {
			return err
		}
		if handled, err := s.ticketText(t, sql); handled || err != nil {
			return s.answerAlone(func() error { return err })
		}
	}
	switch s.treatmentOf(sql) {
	case unread:
		return s.answerAlone(func() error { return s.unreadRows(sql) })
	case kills:
		return s.answerAlone(func() error { return s.killsAmong(sql) })
	case fills:
		return s.answerAlone(func() error { return s.filled(sql) })
	case plain:
		if st.MayChangeLastInsertID() {
			if err := s.bringBefore(); err != nil {
				return s.failed(err)
			}
		}
		s.state.LastAnswer = state.ByServer
		return s.relayCommand(protocol.ShapeResult, false)
	}
	if st.SelfContained && s.batch.size > 0 && !s.mayOmitMetadata() {
		a, err := s.planCalls(nil, sql, plan.Now)
		if err != nil || a.Do == plan.Reply {
			return s.answerInOrder(func() error {
				if err != nil {
					return err
				}
				return s.answerSelect(st, sql, a, nil)
			})
		}
	}
	return s.answerAlone(func() error { return s.special(sql) })
}

// unread passes on a text whose attributes are malformed, or of a kind that no client
// sends: where it begins is the server's to say, most often with an error.
func (s *session) unread() error {
	c, err := s.attachForUnread(statement.RunsOthers)
	if err != nil {
		return err
	}
	s.state.LastAnswer = state.ByServer
	s.enqueue(c, protocol.ShapeResult)
	return s.settle()
}

// special handles a text that is more than one plain statement to be passed on.
func (s *session) special(sql []byte) error {
	st := &s.stmt
	switch plan.CourseOf(st) {
	case plan.Administer:
		return s.administer(sql)
	case plan.ChangeSchema:
		return s.useSchema(string(st.Schema), nil)
	case plan.OnSchema:
		if err := s.outwait(); err != nil {
			return err
		}
		if len(st.Schema) > 0 && s.elsewhere(string(st.Schema)) {
			return s.onSchema(string(st.Schema))
		}
	case plan.EndSession:
		return s.kill(sql)
	case plan.ExplainRoute:
		return s.explainRoute(sql, nil)
	case plan.ShowWarnings:
		if s.state.Notice != nil && s.state.LastAnswer == state.ByServer && showsAllWarnings(sql) {
			return s.showNotice()
		}
	case plan.Several:
		return s.several(sql)
	case plan.PrepareText:
		return s.preparesText(sql)
	case plan.MayLook:
		if handled, err := s.lookForSequences(sql); handled || err != nil {
			return err
		}
	}
	return s.single(sql)
}

// several handles a text of several statements, or of one that may hide others. A USE
// among them has changed the schema if all went well; if not, the shard is the same in
// any case.
func (s *session) several(sql []byte) error {
	if err := s.outwait(); err != nil {
		return err
	}
	schema, err := s.mayPassSeveral(sql)
	if err != nil {
		return err
	}
	defaultStep := s.defaultStepInside(sql)
	if err := s.single(sql); err != nil || s.cur == nil || s.cur.Answer.ErrCode != 0 {
		return err
	}
	if schema != nil {
		s.state.Schema = string(schema)
	}
	if !defaultStep {
		return nil
	}
	s.state.StepLost = true
	return s.keepStep(s.cur)
}

// administer answers a statement about sequences as things.
func (s *session) administer(sql []byte) error {
	st := &s.stmt
	if relay, err := s.concernsServer(st); err != nil {
		return err
	} else if relay {
		return s.passOn(sql)
	}
	return s.administerHere(st, nil)
}

// administerHere answers such a statement, whose names are converted; p is it if it is
// prepared.
func (s *session) administerHere(st *statement.Statement, p *prepared) error {
	if err := s.notHere(st); err != nil {
		return err
	}
	s.tally.Becomes(stats.KindAdmin)
	s.disengage()
	// Not with what the statement has waited: each sequence that it names has the time for itself.
	table, err := s.set.Admin.Execute(context.WithValue(&s.numbers.Patience, sequence.WaiterKey{}, nil), st, s.caller())
	if err = s.numbers.Patience.Over(err); err == nil {
		err = s.table(table, p)
	} else if s.login.Account.Looks() && !ends(err) {
		err = inFull(err)
	}
	if after := s.afterAnswer; after != nil {
		s.afterAnswer = nil
		defer after()
		if err == nil {
			err = s.client.flush()
		}
	}
	return err
}

// filled handles a text that may have to be filled in.
func (s *session) filled(sql []byte) error {
	query, sql, err := s.beginFilling(sql, false)
	switch {
	case err != nil:
		return err
	case query != nil:
		return s.fillQuery(query)
	}
	defer func() { s.fill = nil }()
	return s.special(sql)
}
