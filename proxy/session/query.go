package session

import (
	"context"

	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// texts handles SQL texts, each by what it asks for.
type texts struct {
	*ground
	order    *order
	planning *planning
	answers  *answers
	tickets  *tickets
	delivery *delivery
	kills    *kill.Kills // that the client asks for

	named       preparedTexts // nil if there are none
	afterAnswer func()        // runs when the answer to the command being handled is sent; nil: nothing does
}

// query handles an SQL text, before which there may be attributes.
func (t *texts) query(sql []byte) error {
	t.at.tally.Kind = stats.KindHere // until it is more
	if t.at.login.Capabilities.Has(protocol.QueryAttributes) {
		n, ok := protocol.CutAttributes(sql)
		if !ok {
			return t.order.answerAlone(t.unread)
		}
		t.delivery.attributes, sql = sql[:n], sql[n:]
	}
	if !t.state.ReadsAlike(sql) {
		if err := t.planning.readable(sql); err != nil {
			return t.order.answerAlone(func() error { return err })
		}
	}
	if t.at.set.keepsTexts() {
		t.relay.takes(sql, false)
	}
	st := &t.planning.stmt
	t.planning.analyze(sql)
	t.relay.explained = plan.ExplainsID(st)
	if t.at.login.AtAdmin {
		return t.order.answerAlone(func() error { return t.atAdminAddress(sql) })
	}
	if t.at.set.tickets != nil {
		if asked := t.tickets.ticketIn(sql); asked != nil {
			if err := t.relay.settle(); err != nil {
				return err
			}
			if handled, err := t.tickets.ticketText(asked, sql); handled || err != nil {
				return t.order.answerAlone(func() error { return err })
			}
		}
	}
	if (len(st.Tables) > 0 || st.Words&statement.MayBringRows != 0) && t.at.routes.Default() != nil && t.at.set.owners.Owners() == nil {
		t.planning.meetOwners(sql)
	}
	switch t.planning.treatmentOf(sql) {
	case unread:
		return t.order.answerAlone(func() error { return t.planning.unreadRows(sql) })
	case kills:
		return t.order.answerAlone(func() error { return t.killsAmong(sql) })
	case fills:
		return t.order.answerAlone(func() error { return t.filled(sql) })
	case plain:
		if st.MayChangeLastInsertID() {
			if err := t.at.bringBefore(); err != nil {
				return t.order.failed(err)
			}
		}
		t.state.LastAnswer = state.ByServer
		return t.order.relayCommand(protocol.ShapeResult, false)
	}
	if st.SelfContained && t.relay.batch.size > 0 && !t.answers.mayOmitMetadata() {
		a, err := t.planning.planCalls(nil, sql, plan.Now)
		if err != nil || a.Do == plan.Reply {
			return t.order.answerInOrder(func() error {
				if err != nil {
					return err
				}
				return t.answers.answerSelect(st, sql, a, nil)
			})
		}
	}
	return t.order.answerAlone(func() error { return t.special(sql) })
}

// unread passes on a text whose attributes are malformed, or of a kind that no client
// sends: where it begins is the server's to say, most often with an error.
func (t *texts) unread() error {
	c, err := t.at.attachForUnread(statement.RunsOthers)
	if err != nil {
		return err
	}
	t.state.LastAnswer = state.ByServer
	t.relay.enqueue(c, protocol.ShapeResult)
	return t.relay.settle()
}

// special handles a text that is more than one plain statement to be passed on.
func (t *texts) special(sql []byte) error {
	st := &t.planning.stmt
	switch plan.CourseOf(st) {
	case plan.Administer:
		return t.administer(sql)
	case plan.ChangeSchema:
		return t.useSchema(string(st.Schema), nil)
	case plan.OnSchema:
		if err := t.at.outwait(); err != nil {
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
		if handled, err := t.delivery.lookForSequences(sql); handled || err != nil {
			return err
		}
	}
	return t.delivery.single(sql)
}

// several handles a text of several statements, or of one that may hide others. A USE
// among them has changed the schema if all went well; if not, the shard is the same in
// any case.
func (t *texts) several(sql []byte) error {
	if err := t.at.outwait(); err != nil {
		return err
	}
	schema, err := t.planning.mayPassSeveral(sql)
	if err != nil {
		return err
	}
	defaultStep := t.planning.defaultStepInside(sql)
	if err := t.delivery.single(sql); err != nil || t.at.cur == nil || t.at.cur.Answer.ErrCode != 0 {
		return err
	}
	if schema != nil {
		t.state.Schema = string(schema)
	}
	if !defaultStep {
		return nil
	}
	t.state.StepLost = true
	return t.at.keepStep(t.at.cur)
}

// administer answers a statement about sequences as things.
func (t *texts) administer(sql []byte) error {
	st := &t.planning.stmt
	if relay, err := t.planning.concernsServer(st); err != nil {
		return err
	} else if relay {
		return t.delivery.passOn(sql)
	}
	return t.administerHere(st, nil)
}

// administerHere answers such a statement, whose names are converted; p is it if it is
// prepared.
func (t *texts) administerHere(st *statement.Statement, p *prepared) error {
	if err := t.at.notHere(st); err != nil {
		return err
	}
	t.at.tally.Becomes(stats.KindAdmin)
	t.at.disengage()
	// Not with what the statement has waited: each sequence that it names has the time for itself.
	table, err := t.at.set.admin.Execute(context.WithValue(&t.numbers.Patience, sequence.WaiterKey{}, nil), st, t.caller())
	if err = t.numbers.Patience.Over(err); err == nil {
		err = t.answers.table(table, p)
	} else if t.at.login.Account.MaySee() && !ends(err) {
		err = inFull(err)
	}
	if after := t.afterAnswer; after != nil {
		t.afterAnswer = nil
		defer after()
		if err == nil {
			err = t.client.flush()
		}
	}
	return err
}

// filled handles a text that may have to be filled in.
func (t *texts) filled(sql []byte) error {
	query, sql, err := t.planning.beginFilling(sql, false)
	switch {
	case err != nil:
		return err
	case query != nil:
		return t.delivery.fillQuery(query)
	}
	defer func() { t.planning.fill = nil }()
	return t.special(sql)
}
