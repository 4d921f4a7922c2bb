package session

import (
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// texts handles SQL texts by what they ask for.
type texts struct {
	*ground
	planning *planning
	answers  *answers
	tickets  *tickets
	delivery *delivery
	kills    *kill.Kills // the client's KILLs

	named  preparedTexts // nil: none
	unseen insertsInto   // of statements that were prepared unseen, see preparesUnseen
}

// query handles an SQL text, which may have attributes in front.
func (t *texts) query(sql []byte) error {
	t.at.tally.Kind = stats.KindHere // until the text proves to be more
	if t.client.attributed {
		n, ok := protocol.CutAttributes(sql)
		if !ok {
			return t.passUnread()
		}
		t.delivery.attributes, sql = sql[:n], sql[n:]
	}
	if t.at.cur == nil || !t.state.ReadsAlike(sql) {
		if err := t.planning.fetchMode(sql); err != nil {
			return err
		}
	}
	if t.at.set.keepsTexts() {
		t.relay.keepText(sql, false)
	}
	st := &t.planning.stmt
	t.planning.analyze(sql)
	t.relay.explained = st.ExplainsID()
	if t.at.login.AtAdmin {
		return t.atAdminAddress(sql)
	}
	if t.at.set.tickets != nil {
		if asked := t.tickets.ticketIn(sql); asked != nil {
			if err := t.relay.settle(); err != nil {
				return err
			}
			if handled, err := t.tickets.ticketText(asked, sql); handled || err != nil {
				return err
			}
		}
	}
	if st.SelfContained && !t.answers.mayOmitMetadata() {
		a, err := t.planning.planCalls(nil, sql, plan.Now)
		if err != nil {
			return err
		}
		if a.Do == plan.Reply {
			return t.answers.answerInOrder(st, sql, a)
		}
	}
	if err := t.planning.waitForRows(); err != nil {
		return err
	}
	how, err := t.planning.treatmentOf(sql)
	if err != nil {
		return err
	}
	if how == plain {
		if st.MayChangeLastInsertID() {
			if err := t.at.bringBefore(); err != nil {
				return err
			}
		}
		t.state.LastAnswer = state.ByServer
		return t.relay.relayCommand(protocol.ShapeResult)
	}
	if err := t.relay.settle(); err != nil {
		return err
	}
	if err := t.relay.share.also(t.planning.size(how)); err != nil {
		return err
	}
	switch how {
	case unread:
		return t.planning.unreadRows(sql)
	case kills:
		return t.killsAmong(sql)
	case fills:
		return t.filled(sql)
	}
	return t.special(sql)
}

// passUnread passes on a text whose attributes are malformed, or of a kind that no client sends.
// Only the server can say where the text begins. Mostly it answers with an error.
func (t *texts) passUnread() error {
	if err := t.relay.settle(); err != nil {
		return err
	}
	if err := t.at.waitOutPause(); err != nil {
		return err
	}
	if bound, err := t.planning.boundHere(); err != nil {
		return err
	} else if bound {
		return errUnread
	}
	c, err := t.at.attachForUnread(statement.RunsOthers)
	if err != nil {
		return err
	}
	t.state.LastAnswer = state.ByServer
	t.relay.enqueue(c, protocol.ShapeResult)
	return t.relay.settle()
}

// special handles a text that is not just one plain statement to pass on.
func (t *texts) special(sql []byte) error {
	st := &t.planning.stmt
	switch plan.CourseOf(st) {
	case plan.Administer:
		return t.administer(sql)
	case plan.ChangeSchema:
		return t.useSchema(string(st.Schema), nil, t.at.likeMariaDB())
	case plan.OnSchema:
		if err := t.at.waitOutPause(); err != nil {
			return err
		}
		if len(st.Schema) > 0 && t.at.elsewhere(string(st.Schema)) {
			return t.onSchema(string(st.Schema))
		}
	case plan.EndSession:
		return t.kill(sql)
	case plan.ExplainRoute:
		return t.explainRoute(sql, nil)
	case plan.ShowWarnings:
		if t.state.Notice != nil && t.state.LastAnswer == state.ByServer && showsAllWarnings(sql) {
			return t.answers.showNotice()
		}
	case plan.Several:
		return t.several(sql)
	case plan.PrepareText:
		return t.preparesText(sql)
	case plan.MayLook:
		if handled, err := t.delivery.passQuestion(sql); handled || err != nil {
			return err
		}
	}
	return t.delivery.single(sql)
}

// filled handles a text that may need keys.
func (t *texts) filled(sql []byte) error {
	query, sql, err := t.planning.beginFilling(sql, false)
	switch {
	case err != nil:
		return err
	case query != nil:
		return t.delivery.fillQuery(query)
	}
	defer func() { t.planning.fill = nil }()
	if t.planning.fill != nil {
		if err := t.relay.share.also(t.planning.sizeOfRows()); err != nil {
			return err
		}
	}
	return t.special(sql)
}

// useSchema makes a schema the current one, as COM_INIT_DB and USE do: the command just parsed goes
// to the shard that owns the schema, with the session's state. p is the prepared USE, or nil. A
// shard that has no p gets COM_INIT_DB. keeps says that the warnings stay, as with COM_INIT_DB, and
// with MariaDB's USE.
func (t *texts) useSchema(schema string, p *prepared, keeps bool) error {
	shard, err := t.at.enterFor(schema)
	if err != nil {
		return err
	}
	if shard == nil { // without a shard no schema can be missing
		if len(schema) > state.LongestName {
			return t.at.noServer()
		}
		t.state.Schema = schema
		t.state.LastAnswer = state.OurOK
		t.relay.reply(protocol.OK{})
		return nil
	}
	c := t.at.cur
	opened := false
	switch {
	case c == nil:
		if c = t.at.conns[shard]; c == nil { // a relayed login may have opened it already
			c, err = t.at.open(shard, "")
			opened = true
		}
	case c.Shard != shard:
		c, err = t.at.connForSchema(schema)
	}
	if err != nil {
		return err
	}
	last := t.state.LastAnswer
	t.state.LastAnswer = state.ByServer
	if p != nil && p.conn != c {
		if p.mode.Charset != t.state.Mode.Charset && !ascii([]byte(schema)) {
			return protocol.NotSupported("the schema of a prepared USE is on another shard, and the character set was another when its name was prepared: send it as text")
		}
		t.relay.begin(protocol.ComInitDB)
		t.relay.scratch = append(t.relay.scratch, schema...)
		if err = t.relay.frame(); err == nil {
			err = t.relay.sendScratch(c)
		}
	} else {
		shape := protocol.ShapeResult
		if keeps {
			shape = protocol.ShapeOne // see resetsWarnings
		}
		t.relay.enqueue(c, shape)
		err = t.relay.settle()
	}
	if err != nil {
		return err
	}
	switch {
	case c.Answer.ErrCode == 0:
		t.at.setCurrent(c)
		t.state.Schema, t.state.SchemaUnknown = schema, false
		if keeps {
			t.state.LastAnswer = last
			t.state.Pinged()
		}
	case opened: // the session still has no connection
		t.at.forget(c)
		c.Quit()
	}
	return nil
}

// onSchema relays the command just parsed, which creates, alters or drops a schema, to the shard
// that owns the schema. The session stays on its shard.
func (t *texts) onSchema(schema string) error {
	c, err := t.at.connForSchema(schema)
	if err != nil {
		return err
	}
	t.state.LastAnswer = state.ByServer
	t.relay.enqueue(c, protocol.ShapeResult)
	return t.relay.settle()
}
