package session

import (
	"slices"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// planning decides what becomes of a text. It has the text, and fetches the facts that the planner
// asks for.
type planning struct {
	facts

	stmt    statement.Statement // the text of the command being handled
	fill    *plan.Filling       // what is filled into it; nil: nothing
	planner *plan.Planner       // nil before the first plan

	analysed, planned bool // since the last trim
}

// analyze finds out what a text asks for. If comments in the text are code for some servers, it
// first finds out which server the session has.
func (p *planning) analyze(sql []byte) {
	p.analysed = true
	p.at.shared.texts.Analyze(&p.stmt, sql, p.state.Mode)
	if p.stmt.Words&statement.VersionedComment != 0 && p.identifyServer() {
		p.at.shared.texts.Analyze(&p.stmt, sql, p.state.Mode)
	}
}

// read analyses a text as a server reads it in a mode.
func (p *planning) read(sql []byte, mode lex.Mode) {
	p.analysed = true
	p.stmt.Analyze(sql, mode)
}

// trim drops the last text, and frees the memory of an unusually large one.
func (p *planning) trim() {
	if p.analysed {
		p.stmt.Trim()
	}
	if p.planned && !p.planner.Trim() {
		p.planner = nil
	}
	p.analysed, p.planned = false, false
}

// waitForRows waits out a pause of the shard if the text just analysed may bring rows. A column may
// be bound to a sequence in a pause.
func (p *planning) waitForRows() error {
	if len(p.stmt.Tables) == 0 && p.stmt.Words&statement.MayBringRows == 0 {
		return nil
	}
	return p.at.waitOutPause()
}

// treatment is what happens to a text before it is planned.
type treatment uint8

const (
	ordinary treatment = iota // its course decides
	unread                    // it is refused: it may insert rows, and is not understood to its end
	kills                     // the ids in its KILLs are replaced
	fills                     // its tables may have columns to fill in
	plain                     // it is relayed together with the texts after it
)

// treatmentOf returns the treatment of the text just analysed. EXPLAIN FORMAT=ROUTE uses it, too.
func (p *planning) treatmentOf(sql []byte) (treatment, error) {
	st := &p.stmt
	if st.Words&statement.MayBringRows != 0 {
		if hides, err := p.mayHideInsert(sql); hides || err != nil {
			return unread, err
		}
	}
	if len(st.Kills) > 0 && p.at.routes.Default != nil {
		return kills, nil
	}
	if len(st.Tables) > 0 {
		if bound, err := p.boundTables(); bound || err != nil {
			return fills, err
		}
	}
	if st.Plain() && !p.state.NextTransaction && !p.at.set.lastInsertIDExact && p.at.routes.Default != nil {
		return plain, nil
	}
	return ordinary, nil
}

// size estimates the memory of what is known of the text just analysed, and of the plan for it.
func (p *planning) size(how treatment) int64 {
	n := statement.RecordSize * p.stmt.Records()
	if how == fills {
		const filled = 1 << 10
		n += filled * len(p.stmt.Tables)
	}
	return int64(n)
}

// sizeOfRows estimates the memory of the rows that get keys.
func (p *planning) sizeOfRows() (n int64) {
	const row = 200 // as it is read, its number and its new text
	for i := range p.fill.Keys {
		n += row * int64(len(p.fill.Keys[i].Filled))
	}
	return n
}

// concernsProxy reports whether the text just analysed has calls that the proxy may answer or
// replace, or keys that it fills in.
func (p *planning) concernsProxy() bool {
	st := &p.stmt
	if p.fill == nil && p.at.routes.Default == nil && !st.SelfContained {
		return asksForNumbers(st) // CONNECTION_ID(), for one, needs no server
	}
	return len(st.Calls) > 0 || st.Refusal != "" || p.fill != nil
}

// factsFor begins the facts for the plan of a text.
func (p *planning) factsFor(at plan.Moment) *plan.Facts {
	if p.planner == nil {
		p.planner = new(plan.Planner)
	}
	p.planned = true
	server, f := p.at.routes.Default != nil, &p.planner.Facts
	*f = plan.Facts{
		At: at, Unknown: p.at.set.unknown, Charset: p.state.Charset, Schema: p.at.set.sequenceSchema,
		Admin: p.at.login.Account.Admin, Limited: p.at.login.Account.Rights != nil,
		MariaDB: p.at.likeMariaDB(), Server: server, Attached: p.at.cur != nil,
		// MySQL warns of that flag at each statement, in its own words.
		Warns: server && p.at.login.Capabilities.Has(protocol.NoSchema),
		Fill:  p.fill, Names: f.Names[:0],
	}
	return f
}

// planCalls plans the text in p.stmt, whose calls the proxy answers or replaces. q is the query
// that the text comes from, or nil. The plan is valid until the next one.
func (p *planning) planCalls(q *plan.FilledQuery, sql []byte, at plan.Moment) (*plan.Action, error) {
	f := p.factsFor(at)
	if q != nil {
		f.Key = q.Binding
	}
	a, err := p.plan(sql)
	if q != nil && err != nil {
		err = refusedQuery(q.Binding, err)
	}
	return a, err
}

// plan plans the text in p.stmt, and fetches the facts for that.
func (p *planning) plan(sql []byte) (*plan.Action, error) {
	for round := 0; ; round++ {
		v := p.planner.Text(&p.stmt, sql, p.state)
		if v.Kind == plan.Go {
			return &p.planner.Action, nil
		}
		if _, err := p.fetch(&v, round, sql); err != nil {
			return nil, err
		}
	}
}

// fetch gets what a plan asks for in a round. again says that the caller must plan again. The error
// is for the client.
func (p *planning) fetch(v *plan.Verdict, round int, sql []byte) (again bool, err error) {
	switch {
	case v.Kind == plan.Go:
		return false, nil
	case v.Kind == plan.Refuse:
		return false, p.refusal(&v.Refusal, sql)
	case round == plan.Rounds:
		return false, protocol.NotSupported("what this statement needs of sequences and columns is too much for one: send it in parts")
	}
	for i := range v.Needs {
		if err := p.fetchOne(&p.planner.Facts, &v.Needs[i], sql); err != nil {
			return false, err
		}
	}
	return true, nil
}

// fetchOne gets one fact for a plan.
func (p *planning) fetchOne(f *plan.Facts, n *plan.Need, sql []byte) (err error) {
	switch n.What {
	case plan.NeedText:
		text, is, err := p.askUTF8(n.Name, f.Charset)
		if f.Unknown == plan.UnknownRelay || f.Bound != nil {
			err = nil // bytes that cannot be read are no name there
		}
		f.SetText(n.Name, text, plan.AnswerOf(is))
		return err
	case plan.NeedWhole:
		f.NameOf(n.At).Whole, err = answer(p.Exists(n.Name))
	case plan.NeedExists:
		f.NameOf(n.At).Exists, err = answer(p.Exists(n.Name))
	case plan.NeedTexts:
		form, err := p.at.set.names.FormOf(&p.numbers.Patience, n.Name)
		of := f.NameOf(n.At)
		of.Texts, of.Bytes = plan.AnswerOf(form != sequence.Numbers), form == sequence.Bytes
		return p.numbers.Patience.Over(err)
	case plan.NeedRight:
		f.NameOf(n.At).Usable, err = answer(p.numbers.HasRight(n.Name))
	case plan.NeedSame:
		same, err := p.at.set.names.Same(&p.numbers.Patience, n.Name, n.Other)
		f.NameOf(n.At).SameAsFirst = plan.AnswerOf(same)
		return p.numbers.Patience.Over(err)
	case plan.NeedDigits:
		f.Digits, err = answer(p.at.digitsInRows())
	case plan.NeedDatabase:
		return p.at.askSchema()
	case plan.NeedModes:
		_, err = p.at.insertModes(p.at.cur, p.stmt.ReadsOfLast())
	default:
		return p.fetchColumns(f.TableOf(n.At), n.What, &p.stmt.Tables[n.At], sql)
	}
	return err
}

func answer(yes bool, err error) (plan.Answer, error) { return plan.AnswerOf(yes), err }

// refusal returns the error for a refused plan.
func (p *planning) refusal(r *plan.Refusal, sql []byte) error {
	if r.ServerFirst {
		if err := p.relay.tryPrepare(p.at.cur, sql, nil); err != nil {
			return err
		}
	}
	switch r.Why {
	case plan.Unread:
		return p.unreadRows(sql)
	case plan.UnknownSequence:
		return &sequence.NameError{Name: string(r.Name), Err: sequence.ErrUnknown}
	case plan.NoRight:
		return keys.ErrNoRight(r.Name)
	case plan.NotAdmin:
		return p.RefuseSetval(&p.planner.Action.Slots[r.Call])
	}
	return protocol.NotSupported("%s", r.Text)
}

// takesNumbers reports whether a text has calls that the proxy answers.
func takesNumbers(a *plan.Action) bool {
	for i := range a.Slots {
		if a.Slots[i].Served() {
			return true
		}
	}
	return false
}

// refusedForm returns the error for a form of NEXTVAL that cannot get a number.
func refusedForm(form string) error {
	r := plan.RefusedForm(form)
	return protocol.NotSupported("%s", r.Text)
}

// countable prepares n for a server that counts its numbers.
func (p *planning) countable(c *backend.Conn, n *keys.Block, words statement.Words) error {
	var same func(name []byte) bool
	if n.Key != nil {
		same = p.sameColumn(n.Key.Column)
	}
	if err := n.Countable(p.at, c, &p.state.LastID, same); err != nil || n.Key == nil {
		return err
	}
	modes, err := p.at.insertModes(c, words)
	if err != nil {
		return err
	}
	return p.numbers.Space(n, modes.Increment)
}

// concernsServer reports whether a statement about sequences that MariaDB has, too, goes to the
// server because its sequence is not served here. A statement that only shows a sequence, as dumps
// do, always goes there, and others if the configuration says so. The names in the statement are
// resolved then.
func (p *planning) concernsServer(st *statement.Statement) (bool, error) {
	if err := p.resolveNames(st, p.state.Charset); err != nil {
		return false, err
	}
	relays := p.at.set.unknown == UnknownRelay
	hasSequences := p.at.routes.Default != nil && p.at.likeMariaDB()
	switch st.Kind {
	case statement.AlterSequence, statement.DropSequence:
	case statement.CreateSequence:
		relays = relays && hasSequences
	case statement.ShowCreateSequence:
		relays = relays || hasSequences
	default:
		return false, nil
	}
	if !relays || slices.Contains(st.Sequence.Schemas, ofSequenceTable) {
		return false, nil
	}
	for _, name := range st.Sequence.Names {
		exists, err := p.Exists(name)
		if err != nil {
			return false, err
		}
		if exists {
			continue
		}
		if st.Kind == statement.ShowCreateSequence && p.at.set.unknown != UnknownRelay {
			return p.Sees(name)
		}
		return true, nil
	}
	return false, nil
}

// ofSequenceTable marks in ddl.Sequence.Schemas a name that had the schema of the sequence table in
// front, and so cannot be a server's.
const ofSequenceTable = -1

// resolveNames replaces every name of a statement about sequences by its meaning: in UTF-8, without
// the schema of the sequence table, or as a list shows it.
func (p *planning) resolveNames(st *statement.Statement, charset string) error {
	ddl := st.Sequence
	if ddl == nil {
		return nil
	}
	for i := range ddl.Names {
		if n := ddl.Schemas[i]; n > 0 && string(ddl.Names[i][:n]) == p.at.set.sequenceSchema {
			ddl.Names[i], ddl.Schemas[i] = ddl.Names[i][n+1:], ofSequenceTable
		}
		if err := p.convert(&ddl.Names[i], charset); err != nil {
			return err
		}
	}
	for _, text := range [...]*[]byte{&ddl.Pattern, &ddl.Comment, &ddl.OwnerSchema, &ddl.OwnerTable, &ddl.OwnerColumn, &ddl.Kind.Format, &ddl.Kind.Zone, &ddl.KeyText} {
		if err := p.convert(text, charset); err != nil {
			return err
		}
	}
	if st.Proxy != nil {
		if err := p.convert(&st.Proxy.Shard, charset); err != nil {
			return err
		}
		return p.convert(&st.Proxy.Address, charset)
	}
	if st.Kind != statement.ShowCreateSequence || p.at.routes.Default == nil {
		return nil
	}
	w := p.shown()
	listed, err := w.Listed(ddl, p.at.Attach)
	if listed != nil {
		ddl.Names[0], ddl.Schemas[0] = listed, 0
	}
	return err
}
