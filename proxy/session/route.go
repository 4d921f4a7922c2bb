package session

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/proxy/ticket"
	"seqproxy/statement"
)

// EXPLAIN FORMAT=ROUTE says what would become of a statement here. It prints the plan that the
// session would carry out (plan.Explained). It takes no number, and sends the statement to no
// server.

// route is what would become of a statement.
type route struct {
	kind      stats.Kind
	shard     *backend.Shard // nil: no shard
	why       string         // reason for this shard
	sequences []string       // with the count of numbers of each
	text      []byte         // the server's text; nil: the client's
	pins      state.Pins     // the pins that the session would get
	refused   *protocol.ServerError
	note      string
}

// explanation finds out what would become of a text.
type explanation struct {
	*ground
	planning *planning
	tickets  *tickets
	kills    *kill.Kills
}

// explainRoute answers EXPLAIN FORMAT=ROUTE, the text just analysed. p is the prepared statement,
// or nil.
func (t *texts) explainRoute(sql []byte, p *prepared) error {
	if !t.at.login.Account.Admin {
		return errNotAdmin
	}
	if err := t.at.notHere(&t.planning.stmt); err != nil {
		return err
	}
	if t.at.login.AtAdmin {
		// The answer is about the addresses of clients. It asks the servers as this user.
		t.at.routes = t.at.set.Routes
		defer func() {
			t.at.closeBackends()
			t.at.routes = noRoutes
		}()
	}
	t.at.tally.Becomes(stats.KindAdmin)
	sql = bytes.Clone(bytes.TrimSpace(sql[t.planning.stmt.Explained:]))
	r := route{kind: stats.KindRelay}
	e := explanation{ground: t.ground, planning: t.planning, tickets: t.tickets, kills: t.kills}
	if err := e.decide(&r, sql); ends(err) {
		return err
	} else if err != nil {
		r.kind, r.refused, r.text = stats.KindRefused, forClient(err), nil
	}
	return t.answers.table(r.table(), p)
}

// decide finds out what would become of a text. An error that does not end the session is the error
// that the text would get.
func (e *explanation) decide(r *route, sql []byte) error {
	st := &e.planning.stmt
	e.planning.analyze(sql)
	if st.Kind == statement.Empty {
		return protocol.Errorf(mysql.ER_PARSE_ERROR, "42000", "You have an error in your SQL syntax: EXPLAIN FORMAT=ROUTE needs a statement")
	}
	if t, err := e.tickets.inSchema(e.tickets.ticketIn(sql), sql); err != nil {
		return err
	} else if t != nil {
		if served, err := e.routeTicket(r, t, sql); served || err != nil {
			return err
		}
	}
	replaced := false
	how, err := e.planning.treatmentOf(sql)
	if err != nil {
		return err
	}
	switch how {
	case unread:
		return e.planning.unreadRows(sql)
	case kills:
		text, err := e.kills.Replace(sql, st.Kills, e.at.id, e.at.likeMariaDB())
		e.kills.Drop()
		if err != nil {
			return err
		}
		if replaced = text != nil; replaced {
			sql = text
			e.planning.analyze(sql)
		}
	}
	var query *plan.FilledQuery
	if bound, err := e.planning.boundTables(); err != nil {
		return err
	} else if bound {
		if query, sql, err = e.planning.beginFilling(sql, false); err != nil {
			return err
		}
		defer func() { e.planning.fill = nil }()
	}
	schema, elsewhere, done, err := e.routeKind(r, sql)
	if done || err != nil {
		return err
	}
	e.routeTo(r, schema)
	if elsewhere && e.at.cur != nil && e.at.cur.Shard != r.shard {
		if err := e.at.mayLeaveFor(r.shard); err != nil {
			return err
		}
	}
	var probe state.State
	probe.PinFor(st.Kind, st.Words)
	if st.Kind == statement.Set {
		probe.SetVariables(st, sql)
	}
	r.pins = probe.Pins
	if plan.CourseOf(st) != plan.EndSession && e.planning.concernsProxy() {
		if err := e.routeCalls(r, query, sql); err != nil {
			return err
		}
	}
	if plan.CourseOf(st) == plan.MayLook {
		text, err := e.planning.withSequences(sql)
		if err != nil {
			return err
		}
		if text != nil {
			r.kind, r.text = stats.KindRewrite, text
		}
	}
	if replaced && r.kind == stats.KindRelay {
		r.kind, r.text = stats.KindRewrite, sql
	}
	if r.shard != nil && r.kind.Sent() {
		e.remarkOnSchemas(r, sql)
	}
	if r.shard == nil && r.kind.Sent() {
		if r.kind == stats.KindRewrite {
			return errKeysOnly
		}
		r.kind, r.note = stats.KindHere, "there is no shard: what drivers send when they connect is answered here, all else is an error"
	}
	return nil
}

// routeTicket is decide for a ticket. served is false if the text is handled like any other.
func (e *explanation) routeTicket(r *route, t *ticket.Ticket, sql []byte) (served bool, err error) {
	var then statement.Statement
	_, alone, served := e.tickets.ticketServed(t, sql, &then)
	key, ok := e.tickets.keyOf(t, e.state.Charset)
	switch {
	case !served && !alone && !e.planning.severalAgreed():
		return false, nil // the text is an error there
	case !served || !ok:
		return false, e.tickets.mayLeaveToServer(t)
	}
	name := t.Right(key)
	if err := e.numbers.MayUse(name); err != nil {
		return true, err
	}
	r.kind, r.note = stats.KindNextval, "a ticket"
	r.addNumbers(name, max(t.Step, 1), false)
	return true, nil
}

// routeKind looks at the kind of the statement. done says that no server gets it. Otherwise the
// statement goes to the shard of schema. elsewhere says that this may not be the session's.
func (e *explanation) routeKind(r *route, sql []byte) (schema string, elsewhere, done bool, err error) {
	st := &e.planning.stmt
	schema = e.state.Schema
	switch plan.CourseOf(st) {
	case plan.Administer:
		relay, err := e.planning.concernsServer(st)
		if err != nil || relay {
			return schema, false, false, err
		}
		r.kind = stats.KindAdmin
		return "", false, true, e.at.notHere(st)
	case plan.ExplainRoute:
		r.kind = stats.KindAdmin
		return "", false, true, nil
	case plan.ChangeSchema, plan.OnSchema:
		if len(st.Schema) > 0 && (st.Kind == statement.Use || e.at.elsewhere(string(st.Schema))) {
			return string(st.Schema), true, false, nil
		}
	case plan.EndSession:
		id, err := e.planning.killed(&st.Kill, string(sql[st.Kill.Start:st.Kill.End]))
		switch {
		case err != nil:
			return "", false, true, err
		case id == uint64(e.at.id) && e.at.routes.Default != nil:
			c, err := e.at.Attach()
			if err != nil {
				return "", false, true, err
			}
			r.kind, r.text = stats.KindRewrite, []byte(kill.WishOf(&st.Kill).Text(c.ID))
		case kill.IsProxyID(id):
			r.kind = stats.KindHere
			return "", false, true, nil
		}
	case plan.Several:
		if _, err := e.planning.mayPassSeveral(sql); err != nil {
			return "", false, true, err
		}
	case plan.PrepareText:
		r.note = "what becomes of the text that is prepared is decided when it is: explain that text"
	}
	return schema, false, false, nil
}

// routeTo records which shard statements for a schema go to, and why.
func (e *explanation) routeTo(r *route, schema string) {
	r.shard = e.at.routes.ForSchema(schema)
	switch {
	case r.shard == nil:
		return
	case schema == "":
		r.why = "the default shard, as there is no current schema"
	case e.at.routes.Owner(schema) != nil:
		r.why = fmt.Sprintf("it owns schema %s", schema)
	default:
		r.why = fmt.Sprintf("the default shard, as no shard owns schema %s", schema)
	}
	if p := r.shard.Paused(); p != nil {
		r.note = "the shard is paused since " + p.Since().Format("2006-01-02 15:04:05 MST")
	}
}

// remarkOnSchemas adds a note on schemas in the text that another shard owns. They do not route the
// statement.
func (e *explanation) remarkOnSchemas(r *route, sql []byte) {
	for _, name := range statement.SchemasNamed(sql, e.state.Mode) {
		in, err := e.planning.InUTF8([]byte(name), e.state.Charset)
		if err != nil {
			continue // these bytes are no name
		}
		owner := e.at.routes.Owner(string(in))
		if owner == nil || owner == r.shard {
			continue
		}
		remark := fmt.Sprintf("it names schema %s, which shard %s owns: the current schema decides, say USE %s before", in, owner.Name(), in)
		if r.note != "" {
			remark = r.note + "; " + remark
		}
		r.note = remark
	}
}

// routeCalls is decide for a text with calls or filled keys.
func (e *explanation) routeCalls(r *route, query *plan.FilledQuery, sql []byte) error {
	st := &e.planning.stmt
	a, err := e.planning.planCalls(query, sql, plan.Explained)
	if err != nil {
		return err
	}
	r.numbersOf(a)
	switch {
	case a.Do == plan.Reply:
		r.kind, r.shard, r.why, r.pins = kindOf(st), nil, "", 0
	case a.Reads:
		r.kind, r.note = stats.KindRewrite, "statements behind the first read LAST_INSERT_ID(): the text depends on the numbers"
	case a.Do != plan.Relay:
		r.kind, r.text = stats.KindRewrite, e.placeholders(st, sql, a)
	}
	return nil
}

// placeholders returns the text as the server would get it, with ? for values that depend on the
// moment.
func (e *explanation) placeholders(st *statement.Statement, sql []byte, a *plan.Action) []byte {
	subs := a.Substitutions(st, e.state, e.at.id, protocol.Placeholder)
	for i := range subs {
		if !plan.Hides(&st.Calls[i], &subs[i]) {
			continue
		}
		subs[i].Param = true
	}
	if a.Fill != nil {
		a.Fill.Placeholders = true
		a.Fill.Spell()
	}
	return st.Rewrite(nil, sql, subs, a.Fill.Texts()...)
}

// numbersOf lists the sequences of a plan.
func (r *route) numbersOf(a *plan.Action) {
	for i := range a.Slots {
		slot := &a.Slots[i]
		if !slot.Served() || slot.Func != statement.Nextval || slot.When == plan.Never {
			continue
		}
		r.addNumbers(slot.Sequence, max(slot.Count, 1), slot.When != plan.Once)
	}
	if a.Fill == nil {
		return
	}
	for i := range a.Fill.Keys {
		if k := &a.Fill.Keys[i]; len(k.Filled) > 0 {
			r.addNumbers([]byte(k.Binding.Sequence), uint64(len(k.Filled)), false)
		}
	}
}

func (r *route) addNumbers(name []byte, n uint64, eachRow bool) {
	text := fmt.Sprintf("%s (%d)", name, n)
	if eachRow {
		text = fmt.Sprintf("%s (%d for each row)", name, n)
	}
	r.sequences = append(r.sequences, text)
}

// routeColumns are the columns of EXPLAIN FORMAT=ROUTE.
var routeColumns = func() (all []protocol.Column) {
	for _, name := range [...]string{"kind", "shard", "why", "node", "sequences", "text", "pin", "code", "sqlstate", "message"} {
		c := protocol.Column{Name: name, Charset: 45, Length: 4 * 1024, Type: mysql.MYSQL_TYPE_VAR_STRING, Decimals: 39}
		switch name {
		case "kind":
			c.Flags = mysql.NOT_NULL_FLAG
		case "text", "message":
			c.Length, c.Type = 16<<20, mysql.MYSQL_TYPE_BLOB
		case "code":
			c = protocol.Column{Name: name, Charset: alone.BinaryCharset, Length: 5, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: alone.Unsigned | alone.Binary}
		}
		all = append(all, c)
	}
	return all
}()

// table writes the route as a result.
func (r *route) table() *protocol.Table {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	var shard, node, code, state any
	message := r.note
	if r.shard != nil && r.kind.Sent() {
		shard, node = r.shard.Name(), r.shard.Primary()
	} else {
		r.why, r.pins = "", 0
	}
	if r.refused != nil {
		code, state, message = uint64(r.refused.Code), r.refused.State, r.refused.Message
	}
	return &protocol.Table{Columns: routeColumns, Rows: [][]any{{
		r.kind.String(), shard, orNull(r.why), node, orNull(strings.Join(r.sequences, ", ")), orNull(string(r.text)), orNull(r.pins.Words()), code, state, orNull(message),
	}}}
}
