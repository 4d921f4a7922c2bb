package proxy

import (
	"bytes"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// query handles an SQL text.
func (s *session) query(sql []byte) error {
	st := &s.stmt
	st.Analyze(sql, s.state.mode)
	if st.Plain() && !s.srv.opts.LastInsertIDExact && s.srv.opts.Shards.Default() != nil {
		if st.MayChangeLastInsertID() {
			if err := s.bringBefore(); err != nil {
				return s.tell(err)
			}
		}
		s.state.lastOwn = ownNothing
		return s.relay(protocol.ShapeResult, false)
	}
	if st.SelfContained && s.batched > 0 {
		plan, err := s.planCalls(st, false)
		if err != nil || plan.own {
			return s.answerInTurn(func() error {
				if err != nil {
					return err
				}
				return s.answerSelect(st, sql, plan.served, false)
			})
		}
	}
	return s.answerAlone(func() error { return s.special(sql) })
}

// bringBefore brings LAST_INSERT_ID() to the current connection before a statement
// that may move it, if it is not there.
func (s *session) bringBefore() error {
	if s.cur != nil && s.state.lastID.holder == s.cur && !s.state.lastID.pending {
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	return s.bringLastID(c, false)
}

// special handles a text that is more than one plain statement to be passed on.
func (s *session) special(sql []byte) error {
	st := &s.stmt
	switch st.Kind {
	case statement.CreateSequence, statement.DropSequence, statement.ShowSequences:
		return s.administer(sql)
	case statement.Use:
		return s.use(string(st.Schema))
	case statement.CreateDatabase, statement.AlterDatabase, statement.DropDatabase:
		if len(st.Schema) > 0 && s.elsewhere(string(st.Schema)) {
			return s.onSchema(string(st.Schema))
		}
	case statement.Multi:
		if err := s.refuseHiddenUse(sql); err != nil {
			return err
		}
	}
	if len(st.Calls) > 0 || st.Refusal != "" {
		if passOn, err := s.keys(sql); !passOn || err != nil {
			return err
		}
	}
	if s.srv.opts.Shards.Default() == nil {
		return s.withoutServer(sql)
	}
	c, err := s.attachFor(st)
	if err != nil {
		return err
	}
	s.enqueue(c, protocol.ShapeResult)
	return s.relayed(sql, c)
}

// attachFor attaches the connection for a statement that is relayed, with all that
// the statement may look at made true there.
func (s *session) attachFor(st *statement.Statement) (*backend.Conn, error) {
	c, err := s.attach()
	if err != nil {
		return nil, err
	}
	if st.Kind == statement.ShowWarnings && s.state.lastOwn == ownNothing && s.state.lastConn != nil {
		c = s.state.lastConn // a prepared statement's, even if another shard is current
	}
	if err := s.bring(c, traitsOf(st)); err != nil {
		return nil, err
	}
	s.state.pinFor(st.Kind, st.Words)
	return c, nil
}

// relayed settles the statement just enqueued and takes note of what it did.
func (s *session) relayed(sql []byte, c *backend.Conn) error {
	s.state.lastOwn = ownNothing
	// What is needed afterwards must not lie in the buffer that the client fills.
	var text []byte
	if s.stmt.Kind == statement.Set {
		text = append(s.own[:0], sql...)
	}
	if err := s.settle(); err != nil {
		return err
	}
	s.noteSet(c, text)
	return nil
}

// noteSet takes note of the variables that the statement just answered on c has set,
// if it is a SET. sql is the client's text of it.
func (s *session) noteSet(c *backend.Conn, sql []byte) {
	if s.stmt.Kind == statement.Set && c.Answer.ErrCode == 0 {
		s.state.setVariables(&s.stmt, sql)
		s.state.knows(c, s.state.version)
	}
}

// refuseHiddenUse refuses several statements in one text when a USE among them
// would leave the shard. Each piece between semicolons is looked at, also one that
// lies in a string, where it is hardly ever a USE and nothing else.
func (s *session) refuseHiddenUse(sql []byte) error {
	if !s.srv.opts.Shards.Many() {
		return nil
	}
	var st statement.Statement
	for part := range bytes.SplitSeq(sql, []byte(";")) {
		if st.Analyze(part, s.state.mode); st.Kind == statement.Use && s.elsewhere(string(st.Schema)) {
			return notSupported("USE of a schema on another shard among several statements in one text: send it alone")
		}
	}
	return nil
}

// administer answers a statement about sequences as things.
func (s *session) administer(sql []byte) error {
	st := &s.stmt
	if err := s.convertNames(st, s.state.mode.Charset); err != nil {
		return err
	}
	if st.Kind == statement.DropSequence && s.srv.opts.Unknown == UnknownRelay {
		for _, name := range st.Sequence.Names {
			known, err := s.srv.opts.Sequences.Known(s.ctx, name)
			if err != nil {
				return err
			}
			if !known {
				return s.passOn(sql)
			}
		}
	}
	table, err := s.srv.opts.Admin.Execute(s.ctx, st, s.user.Admin)
	if err != nil {
		return err
	}
	s.state.lastOwn = ownAnswer
	if len(table.Columns) > 0 {
		s.state.lastOwn = ownRows
	}
	s.out = table.Append(s.out, s.packetNum, s.login.Capabilities, s.status(), false)
	return nil
}

// passOn relays the text just analysed as it is.
func (s *session) passOn(sql []byte) error {
	c, err := s.attachFor(&s.stmt)
	if err != nil {
		return err
	}
	s.enqueue(c, protocol.ShapeResult)
	return s.relayed(sql, c)
}

// keys handles a text with calls that the proxy answers or replaces. passOn is
// true if nothing of it is the proxy's.
func (s *session) keys(sql []byte) (passOn bool, err error) {
	st := &s.stmt
	if err := s.convertNames(st, s.state.mode.Charset); err != nil {
		return false, err
	}
	plan, err := s.planCalls(st, false)
	switch {
	case err != nil:
		return false, err
	case plan.own:
		return false, s.answerSelect(st, sql, plan.served, false)
	case plan.rewrite:
		return false, s.rewrite(sql, plan)
	}
	return true, nil
}
