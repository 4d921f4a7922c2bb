package proxy

import (
	"bytes"
	"context"
	"slices"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// query handles an SQL text, before which there may be attributes.
func (s *session) query(sql []byte) error {
	s.tally.Kind = stats.KindOwn // until it is more
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
	s.shared.texts.Analyze(st, sql, s.state.Mode)
	if st.Words&statement.VersionedComment != 0 && s.meetServer() {
		s.shared.texts.Analyze(st, sql, s.state.Mode)
	}
	s.explained = plan.ExplainsID(st)
	if s.login.AtAdmin {
		return s.answerAlone(func() error { return s.atAdminAddress(sql) })
	}
	if s.set.tickets != nil {
		if t := s.set.tickets.In(st, sql, &s.state); t != nil {
			return s.answerAlone(func() error {
				if handled, err := s.ticketText(t, sql); handled || err != nil {
					return err
				}
				return s.special(sql)
			})
		}
	}
	if s.mayBringRows(sql) {
		return s.answerAlone(func() error { return s.unreadRows(sql) })
	}
	if len(st.Kills) > 0 && s.routes.Default() != nil {
		return s.answerAlone(func() error { return s.killsAmong(sql) })
	}
	if len(st.Tables) > 0 && s.boundTables() {
		return s.answerAlone(func() error { return s.filled(sql) })
	}
	if st.Plain() && !s.state.NextTransaction && !s.set.LastInsertIDExact && s.routes.Default() != nil {
		if st.MayChangeLastInsertID() {
			if err := s.bringBefore(); err != nil {
				return s.failed(err)
			}
		}
		s.state.LastAnswer = state.ByServer
		return s.relayCommand(protocol.ShapeResult, false)
	}
	if st.SelfContained && s.batch.size > 0 && !s.mayOmitMetadata() {
		a, err := s.planCalls(sql, plan.Now)
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

// bringBefore brings LAST_INSERT_ID() to the current connection before a statement
// that may move it, if it is not there.
func (a *attachment) bringBefore() error {
	if a.cur != nil && a.state.LastID.Holder == idOfConn(a.cur) && !a.state.LastID.Pending {
		return nil
	}
	if err := a.above.settle(); err != nil {
		return err
	}
	c, err := a.Attach()
	if err != nil {
		return err
	}
	return a.BringLastID(c, false)
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
	schema, err := s.schemasInside(sql)
	if err == nil {
		err = s.refuseInside(&s.stmt, s.state.Charset, "among several statements in one text")
	}
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

// single handles a text that goes to the current shard, if to any.
func (d *delivery) single(sql []byte) error {
	st := &d.planning.stmt
	if d.state.LastAnswer == state.OurChange && st.Words&statement.ReadsRowCount != 0 {
		if handled, err := d.answers.answerRowCount(sql); handled {
			return err
		}
	}
	keys := len(st.Calls) > 0 || st.Refusal != "" || d.planning.fill != nil
	if d.at.routes.Default() == nil && !st.SelfContained && !asksForNumbers(&d.planning.stmt) && d.planning.fill == nil {
		keys = false // CONNECTION_ID() among others is no server's to know
	}
	if keys {
		if passOn, err := d.keys(sql); !passOn || err != nil {
			return err
		}
	}
	if d.at.routes.Default() == nil {
		return d.answers.answerLocal(sql, nil)
	}
	return d.passOn(sql)
}

// attachFor attaches the connection for a statement that is relayed, with all that
// the statement may look at made true there.
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
		c = d.at.connBy(d.state.LastConn) // a prepared statement's, even if another shard is current
	}
	if err := d.at.bring(c, t); err != nil {
		return nil, err
	}
	d.at.expects(state.Effect{Kind: st.Kind, Words: st.Words, Runs: st.Runs, Procedure: d.state.ProcedureOf(st)})
	return c, nil
}

// relayed settles the statement just enqueued and takes note of what it did.
func (d *delivery) relayed(sql []byte, c *backend.Conn) error {
	d.state.LastAnswer = state.ByServer
	// What is needed afterwards must not lie in the buffer that the client fills.
	var text []byte
	if d.planning.stmt.Kind == statement.Set {
		text = append(d.relay.scratch[:0], sql...)
	}
	if err := d.relay.settle(); err != nil {
		return err
	}
	d.noteDone(c, text)
	return d.at.keepStep(c)
}

// noteDone takes note of what the statement just answered on c has done to the
// session. sql is the client's text of it, if it is a SET.
func (d *delivery) noteDone(c *backend.Conn, sql []byte) {
	if c.Answer.ErrCode != 0 {
		return
	}
	d.state.Transacted(d.planning.stmt.Kind, d.planning.stmt.Words)
	if changesTables(d.planning.stmt.Kind) {
		d.at.shared.columns.forget()
	}
	if d.planning.stmt.Kind == statement.Set {
		d.state.SetVariables(&d.planning.stmt, sql)
		d.state.Synced(idOfConn(c), d.state.Version)
	}
}

// schemasInside refuses several statements in one text when one among them would
// leave the shard (USE), or belongs to another one (CREATE DATABASE and its like). It
// returns the schema that the last USE names, a copy. Where a part of the text was not
// read, each piece between semicolons is looked at, too, even if it may lie in a string:
// there it is hardly ever such a statement and nothing else.
func (p *planning) schemasInside(sql []byte) (used []byte, err error) {
	if schema := p.stmt.Schema; len(schema) > 0 && p.at.elsewhere(string(schema)) {
		return nil, errSchemaInside(schema)
	}
	for i := range p.stmt.Parts {
		part := &p.stmt.Parts[i]
		if len(part.Schema) > 0 && p.at.elsewhere(string(part.Schema)) {
			return nil, errSchemaInside(part.Schema)
		}
		if part.Kind == statement.Use {
			used = bytes.Clone(part.Schema)
		}
	}
	if p.stmt.Words&statement.Opaque == 0 || !p.at.routes.Many() && len(p.stmt.Schema) == 0 {
		return used, nil
	}
	var st statement.Statement
	for piece := range bytes.SplitSeq(sql, []byte(";")) {
		st.Analyze(piece, p.state.Mode)
		switch st.Kind {
		case statement.Use, statement.CreateDatabase, statement.AlterDatabase, statement.DropDatabase:
			if len(st.Schema) > 0 && p.at.elsewhere(string(st.Schema)) {
				return nil, errSchemaInside(st.Schema)
			}
		}
		if st.Kind == statement.Use {
			used = bytes.Clone(st.Schema)
		}
	}
	return used, nil
}

func errSchemaInside(schema []byte) error {
	return protocol.NotSupported("USE, CREATE, ALTER or DROP DATABASE of the schema %s, which is on another shard, "+
		"among several statements in one text: send it alone", schema)
}

// administer answers a statement about sequences as things.
func (s *session) administer(sql []byte) error {
	st := &s.stmt
	if err := s.convertNames(st, s.state.Charset); err != nil {
		return err
	}
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

// refuseInside refuses statements about sequences that stand inside a text which goes to
// the server: MariaDB would make a sequence of its own there.
func (p *planning) refuseInside(st *statement.Statement, charset, where string) error {
	if st.Words&statement.SequenceStatement == 0 {
		return nil
	}
	if p.at.set.Unknown == UnknownRelay && st.Proxy == nil {
		known := false
		for _, name := range st.Sequence.Names {
			name, err := p.InUTF8(name, charset)
			if err != nil {
				continue // it is no name here
			}
			is, err := p.at.set.Sequences.Exists(&p.numbers.Patience, name)
			if err = p.numbers.Patience.Over(err); err != nil {
				return err
			}
			known = known || is
		}
		if !known {
			return nil
		}
	}
	return protocol.NotSupported("a statement about sequences %s is not supported: send it alone", where)
}

// concernsServer says whether a statement that MariaDB knows, too, is about a sequence that is not
// served here and is left to the server: always where it only shows it, as dumps do, and otherwise
// where the configuration says so.
func (p *planning) concernsServer(st *statement.Statement) (bool, error) {
	relays := p.at.set.Unknown == UnknownRelay
	hasOwn := p.at.routes.Default() != nil && p.at.likeMariaDB()
	switch st.Kind {
	case statement.AlterSequence, statement.DropSequence:
	case statement.CreateSequence:
		relays = relays && hasOwn
	case statement.ShowCreateSequence:
		if p.at.routes.Default() != nil {
			w := p.shown()
			if listed, err := w.Listed(st.Sequence, p.at.Attach); listed || err != nil {
				return false, err
			}
		}
		relays = relays || hasOwn
	default:
		return false, nil
	}
	if !relays || slices.Contains(st.Sequence.Schemas, ofSequenceTable) {
		return false, nil
	}
	for _, name := range st.Sequence.Names {
		known, err := p.Knows(name)
		if err != nil {
			return false, err
		}
		if known {
			continue
		}
		if st.Kind == statement.ShowCreateSequence && p.at.set.Unknown != UnknownRelay {
			return p.Sees(name)
		}
		return true, nil
	}
	return false, nil
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

// keys handles a text with calls that the proxy answers or replaces. passOn is
// true if nothing of it is the proxy's.
func (d *delivery) keys(sql []byte) (passOn bool, err error) {
	st := &d.planning.stmt
	if err := d.planning.convertNames(st, d.state.Charset); err != nil {
		return false, err
	}
	a, err := d.planning.planCalls(sql, plan.Now)
	if err != nil {
		return false, err
	}
	switch a.Do {
	case plan.Reply:
		return false, d.answers.answerSelect(st, sql, a, nil)
	case plan.Rewrite:
		return false, d.rewrite(sql, a)
	}
	return true, nil
}
