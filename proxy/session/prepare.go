package session

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/proxy/ticket"
	"seqproxy/statement"
)

// prepare handles COM_STMT_PREPARE.
func (x *executor) prepare(sql []byte) error {
	x.at.prepared.latest = nil // until this one is prepared
	x.at.tally.Kind = stats.Prepare
	if x.at.cur == nil || !x.state.ReadsAlike(sql) {
		if err := x.planning.fetchMode(sql); err != nil {
			return err
		}
	}
	if x.at.set.keepsTexts() {
		x.relay.keepText(sql, false)
	}
	begins := x.relay.slow.headOf(sql)
	defer func() {
		if p := x.at.prepared.latest; p != nil {
			p.head = begins
		}
	}()
	st := &x.planning.stmt
	x.planning.analyze(sql)
	if err := x.planning.waitForRows(); err != nil {
		return err
	}
	if hides, err := x.planning.mayHideInsert(sql); err != nil {
		return err
	} else if hides {
		return x.planning.unreadRows(sql)
	}
	switch {
	case x.at.login.AtAdmin && asksForNumbers(&x.planning.stmt):
		return x.at.noServer()
	case st.Kind == statement.ExplainRoute:
		return x.prepareLocal(sql, routeColumns, 0)
	case st.Kind == statement.Use: // each execution decides where it goes
	case len(st.Schema) > 0 && x.at.elsewhere(string(st.Schema)): // CREATE DATABASE and its like
		return protocol.NotSupported("to prepare a statement on the schema %s, which is on another shard: send it as text", st.Schema)
	case st.AboutSequences():
		if relay, err := x.planning.concernsServer(st); err != nil {
			return err
		} else if !relay {
			return x.prepareLocal(sql, x.at.set.admin.Columns(st), 0)
		}
	}
	inserts, err := x.planning.insertsOf()
	if err != nil {
		return err
	}
	var query *plan.FilledQuery
	if bound, err := x.planning.boundTables(); err != nil {
		return err
	} else if bound {
		if query, sql, err = x.planning.beginFilling(sql, true); err != nil {
			return err
		}
	}
	defer func() { x.planning.fill = nil }()
	text, hidden, key, shape := sql, []params.Hidden(nil), (*params.Key)(nil), plan.TraitsOf(st)
	var given *plan.FilledKey // what key is made of
	var numbers keys.Numbers
	rows := 1
	if x.planning.fill != nil || len(st.Calls) > 0 && st.Kind != statement.Kill || st.Refusal != "" {
		a, err := x.planning.planCalls(query, sql, plan.AtPrepare)
		if err != nil {
			return err
		}
		switch a.Do {
		case plan.Reply:
			return x.prepareLocal(sql, alone.Columns(st, sql, alone.TextsOf(a.Slots), x.at.likeMariaDB()), st.Params)
		case plan.Rewrite:
			text, hidden, key = params.Hide(st, sql, a, a.Substitutions(st, x.state, x.at.id, protocol.Placeholder))
			if n := len(st.Calls); n > 0 {
				rows = st.Calls[n-1].Row + 1
			}
			if a.Fill != nil {
				given = &a.Fill.Keys[0]
				rows = given.Rows
			}
			numbers, shape = keys.Kept(&a.Numbers), a.Traits(shape)
			if numbers.Rows != nil {
				numbers.Rows.Lead = params.Lead(hidden)
			}
		}
	}
	if key != nil && len(hidden) == 0 { // constants of the text, the same at each execution
		if err := x.numbers.Avoid(given); err != nil {
			return err
		}
		key = nil
	}
	var asked *ticket.Ticket
	if !x.at.login.AtAdmin {
		if asked, err = x.tickets.ticketPrepared(st, sql); err != nil {
			return err
		}
	}
	if x.at.routes.Default == nil {
		return x.prepareWithoutServer(sql, asked)
	}
	c, err := x.at.Attach()
	if err != nil {
		return err
	}
	question, text, err := x.prepareQuestion(c, text)
	if err != nil {
		return err
	}
	p := &prepared{
		List: params.List{Params: st.Params, Hidden: hidden, Key: key}, conn: c, shape: shape, numbers: numbers, ticket: asked, question: question,
		inserts: inserts, mode: x.state.Mode, charset: x.state.Charset,
	}
	if err := p.Fits(rows); err != nil {
		return err
	}
	if len(hidden) > 0 || numbers.Rows != nil || asked != nil || question != nil {
		p.shape.Plain = false
	}
	p.noteKind(st, sql)
	return x.prepareOn(c, p, text)
}

// noteKind keeps what each execution of a SET, a USE or a KILL needs of its text.
func (p *prepared) noteKind(st *statement.Statement, sql []byte) {
	switch st.Kind {
	case statement.Set:
		p.set = bytes.Clone(sql)
	case statement.Use:
		p.use = string(st.Schema)
	case statement.Kill:
		if k := st.Kill; k.Operand != statement.KillOther {
			p.kill = &killPrepared{KillTarget: k, variable: string(sql[k.Start:k.End])}
		}
	}
}

// prepareLocal answers COM_STMT_PREPARE for a statement with n parameters that the proxy answers.
func (x *executor) prepareLocal(sql []byte, columns []protocol.Column, n int) error {
	p := &prepared{local: append([]byte(nil), sql...), columns: columns, List: params.List{Params: n}, mode: x.state.Mode, charset: x.state.Charset}
	return x.addLocal(p, alone.Params(n, x.at.likeMariaDB()))
}

// addLocal answers COM_STMT_PREPARE for p, which no server has. It keeps ROW_COUNT(), as servers
// do, so it does not ask whether a transaction is open. It also keeps the warnings, which MySQL
// clears, and MariaDB if the text has a table.
func (x *executor) addLocal(p *prepared, markers []protocol.Column) error {
	form, err := x.answers.form(true)
	if err != nil {
		return err
	}
	if err := x.at.prepared.add(p); err != nil {
		return err
	}
	x.client.out = protocol.AppendPrepareOK(x.client.out, x.client.packetNum, form, p.id, len(p.columns), p.Params)
	if len(markers)+len(p.columns) > 0 {
		r := protocol.NewResult(x.client.out, x.client.packetNum+1, form)
		r.Definitions(markers)
		r.Definitions(p.columns)
		x.client.out = r.Bytes()
	}
	return nil
}

// prepareOn prepares text on c and passes the answer on, with the client's statement id and without
// the hidden parameters.
func (x *executor) prepareOn(c *backend.Conn, p *prepared, text []byte) error {
	a, err := x.relay.askToPrepare(c, p, text)
	if err != nil {
		return err
	}
	if a.refused {
		// An error becomes the last one. A successful PREPARE keeps ROW_COUNT(), and what the proxy
		// has answered last, whose warnings a server might clear.
		x.state.LastAnswer = state.ByServer
		return x.planning.lacksColumn(c)
	}
	if a.misread {
		err = errMisread
	} else {
		err = x.at.prepared.add(p)
	}
	if err != nil {
		x.client.out = x.client.out[:0]
		if closeErr := x.at.closeOn(c, p.backendID); closeErr != nil {
			return closeErr
		}
		return err
	}
	binary.LittleEndian.PutUint32(x.client.out[a.idAt:], p.id)
	c.Release()
	return nil
}

// errMisread is the error for a text with parameters of which the proxy does not know, as :1 in
// MariaDB's mode ORACLE: which one is a key is not certain.
var errMisread = protocol.NotSupported("a prepared statement with keys and with other parameters than ? is not supported: write ? in their place")

// lacksColumn returns the error in place of a server's refusal to prepare an INSERT, if the table
// lacks the column that the proxy put in: the client did not write it.
func (p *planning) lacksColumn(c *backend.Conn) error {
	if c.Answer.ErrCode != mysql.ER_BAD_FIELD_ERROR || p.fill == nil || len(p.fill.Keys) == 0 || !p.fill.Keys[0].Added {
		return nil
	}
	b, out := p.fill.Keys[0].Binding, &p.at.client.out
	if b.Schema != "" || !bytes.Contains(*out, []byte("'"+b.Column+"'")) {
		return nil
	}
	*out = (*out)[:0]
	return protocol.NotSupported("a prepared INSERT into this table %s is not supported: it has no column %s, which is bound to sequence %s in every table of that name: "+
		"send it as text, or bind the column with its schema, as `schema.%s.%s`", b.Table, b.Column, b.Sequence, b.Table, b.Column)
}

// askToPrepare prepares text on c as p. The answer for the client is in client.out, which has
// nothing else.
func (r *relay) askToPrepare(c *backend.Conn, p *prepared, text []byte) (prepareAnswer, error) {
	a := prepareAnswer{client: r.at.client, c: c, p: p, num: r.at.client.packetNum}
	if err := r.at.client.flush(); err != nil {
		return a, err
	}
	r.begin(protocol.ComStmtPrepare)
	r.scratch = append(r.scratch, text...)
	if err := r.frame(); err != nil {
		return a, err
	}
	_, writeErr := c.Write(r.scratch)
	begun := r.at.tally.Waits()
	err := a.relay()
	r.at.tally.Waited(begun)
	if err != nil {
		r.at.client.out = r.at.client.out[:0] // nothing of it was sent
		return a, r.at.lost(c, err, false)
	}
	if writeErr != nil { // a server that closes has said why before
		if err := r.at.client.flush(); err != nil {
			return a, err
		}
		return a, r.at.lost(c, writeErr, true)
	}
	return a, nil
}

// tryPrepare makes the server prepare a text and forget it. It returns the server's error. It waits
// for locks as long as the statement itself would. define gets the definition of each column of the
// result. It may be nil.
func (r *relay) tryPrepare(c *backend.Conn, sql []byte, define func(definition []byte) error) error {
	if err := r.at.client.flush(); err != nil {
		return err
	}
	begun := r.at.tally.Waits()
	err := r.prepareAndForget(c, sql, define)
	r.at.tally.Waited(begun)
	if refused := new(protocol.ServerError); err != nil && !errors.As(err, &refused) {
		return r.at.lost(c, err, false)
	}
	return err
}

func (r *relay) prepareAndForget(c *backend.Conn, sql []byte, define func(definition []byte) error) error {
	c.SetPacketNum(0)
	if err := c.WritePacket(append([]byte{byte(protocol.ComStmtPrepare)}, sql...)); err != nil {
		return err
	}
	a := prepareAnswer{client: r.at.client, c: c, p: &prepared{}, define: define}
	err := a.relay()
	answer := r.at.client.out
	r.at.client.out = r.at.client.out[:0]
	if err != nil {
		return err
	}
	if a.refused {
		return protocol.ParseServerError(answer[protocol.HeaderSize:])
	}
	if err := sendClose(c, a.p.backendID); err != nil {
		return err
	}
	c.Release()
	return nil
}

// prepareAnswer passes on a server's answer to COM_STMT_PREPARE. It keeps all of it in memory,
// since it has no rows.
type prepareAnswer struct {
	client  *client
	c       *backend.Conn
	p       *prepared
	num     uint8 // of the next packet to the client
	idAt    int   // offset of the statement id in client.out
	refused bool
	misread bool                          // the server has counted other parameters than the proxy
	define  func(definition []byte) error // of each column; nil: none
}

// prepareLimit bounds a packet of a server's answer to COM_STMT_PREPARE.
const prepareLimit = 1 << 20

func (a *prepareAnswer) relay() error {
	b, err := a.read()
	if err != nil {
		return err
	}
	if len(b) < 12 || b[0] != 0 {
		a.refused = true
		if len(b) > 2 {
			a.c.Answer.Rows, a.c.Answer.ErrCode = false, binary.LittleEndian.Uint16(b[1:])
			noteError(a.c)
		}
		a.pass(b)
		return nil
	}
	a.p.backendID = binary.LittleEndian.Uint32(b[1:])
	columns, total := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	defined := !a.c.Capabilities.Has(protocol.OptionalMetadata) || len(b) < 13 || b[12] != 0
	if len(a.p.Hidden) > 0 && a.p.ClientParams(total) != a.p.Params {
		a.misread, a.p.Hidden = true, nil
	}
	a.p.Params = a.p.ClientParams(total)
	a.p.Place(total)
	binary.LittleEndian.PutUint16(b[7:], uint16(a.p.Params))
	a.idAt = len(a.client.out) + protocol.HeaderSize + 1
	a.pass(b)
	for shown := range a.p.Shown(total) {
		if !defined {
			break
		}
		if b, err = a.read(); err != nil {
			return err
		}
		for range shown { // none of the hidden ones, except in place of the client's
			a.pass(b)
		}
	}
	if err := a.terminator(total, a.p.Params); err != nil {
		return err
	}
	for i := 0; i < columns && defined; i++ {
		if b, err = a.read(); err != nil {
			return err
		}
		if err := a.p.numbers.Rows.Define(b, a.c.Capabilities); err != nil {
			return err
		}
		if a.define != nil {
			if err := a.define(b); err != nil {
				return err
			}
		}
		a.pass(b)
	}
	return a.terminator(columns, columns)
}

// read reads the next packet of the answer. It passes on the progress reports before it.
func (a *prepareAnswer) read() ([]byte, error) {
	for {
		b, err := a.c.ReadPacket(prepareLimit)
		if err != nil || !a.c.Capabilities.Has(protocol.Progress) || !protocol.IsProgress(b) {
			return b, err
		}
		a.pass(b)
	}
}

// terminator reads the EOF after n definitions, and passes it on if the client got some.
func (a *prepareAnswer) terminator(n, shown int) error {
	if n == 0 || a.c.Capabilities.Has(protocol.DeprecateEOF) {
		return nil
	}
	b, err := a.read()
	if err == nil && shown > 0 {
		a.pass(b)
	}
	return err
}

func (a *prepareAnswer) pass(payload []byte) {
	a.client.out, a.num = protocol.AppendPacket(a.client.out, payload, a.num)
}
