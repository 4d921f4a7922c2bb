package proxy

import (
	"encoding/binary"
	"fmt"
	"slices"

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
func (s *session) prepare(sql []byte) error {
	s.prepared.latest = nil // until this one is prepared
	s.tally.Kind = stats.Prepare
	if s.state.ModeUnknown || s.state.QuotesUnknown {
		if err := s.readable(sql); err != nil {
			return err
		}
	}
	s.slow.takes(sql, false)
	begins := s.slow.headOf(sql)
	defer func() {
		if p := s.prepared.latest; p != nil {
			p.head = begins
		}
	}()
	st := &s.stmt
	s.shared.texts.Analyze(st, sql, s.state.Mode)
	if st.Words&statement.VersionedComment != 0 && s.meetServer() {
		s.shared.texts.Analyze(st, sql, s.state.Mode)
	}
	if !s.login.AtAdmin && s.mayBringRows(sql) {
		return s.unreadRows(sql)
	}
	switch {
	case s.login.AtAdmin && asksForNumbers(&s.stmt):
		return s.noServer()
	case st.Kind == statement.ExplainRoute:
		return s.prepareLocal(sql, routeColumns, 0)
	case st.Kind == statement.Use: // each execution goes where it leads
	case len(st.Schema) > 0 && s.elsewhere(string(st.Schema)): // CREATE DATABASE and its like
		return protocol.NotSupported("to prepare a statement on the schema %s, which is on another shard: send it as text", st.Schema)
	case st.AboutSequences():
		if err := s.convertNames(st, s.state.Charset); err != nil {
			return err
		}
		if relay, err := s.concernsServer(st); err != nil {
			return err
		} else if !relay {
			return s.prepareLocal(sql, s.set.Admin.Columns(st), 0)
		}
	}
	inserts := s.insertsOf()
	query, sql, err := s.beginFilling(sql, true)
	if err != nil {
		return err
	}
	defer func() { s.fill = nil }()
	text, hidden, rows, key := sql, []params.Hidden(nil), (*keys.Rows)(nil), (*params.Key)(nil)
	var counts *keys.Block
	if s.fill != nil || len(st.Calls) > 0 && st.Kind != statement.Kill || st.Refusal != "" {
		if err := s.convertNames(st, s.state.Charset); err != nil {
			return err
		}
		a, err := s.planQuery(query, sql, plan.AtPrepare)
		if err != nil {
			return err
		}
		switch a.Do {
		case plan.Reply:
			return s.prepareLocal(sql, alone.Columns(st, sql, alone.AtPrepare, nil, s.likeMariaDB()), st.Params)
		case plan.Rewrite, plan.PerRow, plan.Count:
			text, hidden, key = params.Hide(st, sql, a, a.Substitutions(st, &s.state, s.id, protocol.Placeholder))
			rows, counts = keys.RowsOf(a).Keep(), keys.BlockOf(a)
		}
	}
	if key != nil && len(hidden) == 0 { // numbers of the text's own, the same at each execution
		if err := s.numbers.Avoid(key.Binding, key.Explicit); err != nil {
			return err
		}
		key = nil
	}
	var asked *ticket.Ticket
	if !s.login.AtAdmin {
		asked = s.ticketPrepared(st, sql)
	}
	if s.routes.Default() == nil {
		return s.prepareWithoutServer(sql, asked)
	}
	c, err := s.Attach()
	if err != nil {
		return err
	}
	looks, text, err := s.prepareLooking(c, text)
	if err != nil {
		return err
	}
	p := &prepared{
		List: params.List{Hidden: hidden, Key: key}, conn: c, shape: rows.Traits(counts.Traits(plan.TraitsOf(st))), rows: rows, counts: counts, ticket: asked, looks: looks,
		inserts: inserts, mode: s.state.Mode, charset: s.state.Charset,
	}
	if len(hidden) > 0 || rows != nil || asked != nil || looks != nil {
		p.shape.Plain = false
	}
	if st.Kind == statement.Set {
		p.set = append([]byte(nil), sql...)
	}
	if st.Kind == statement.Use {
		p.use = string(st.Schema)
	}
	if k := st.Kill; st.Kind == statement.Kill && k.Operand != statement.KillOther {
		p.kill = &killPrepared{KillTarget: k, variable: string(sql[k.Start:k.End])}
	}
	return s.prepareOn(c, p, text)
}

// prepareLocal answers COM_STMT_PREPARE for a statement with so many parameters that the proxy
// answers.
func (s *session) prepareLocal(sql []byte, columns []protocol.Column, n int) error {
	form, err := s.form(true)
	if err != nil {
		return err
	}
	p := &prepared{local: append([]byte(nil), sql...), columns: columns, List: params.List{Params: n}, mode: s.state.Mode, charset: s.state.Charset}
	if err := s.prepared.add(p); err != nil {
		return err
	}
	// What the last statement left stays, as a server leaves it at a PREPARE.
	s.client.out = protocol.AppendPrepareOK(s.client.out, s.client.packetNum, form, p.id, len(columns), p.Params)
	if len(columns) > 0 {
		r := protocol.NewResult(s.client.out, s.client.packetNum+1, form)
		r.Definitions(alone.Params(p.Params, s.likeMariaDB()))
		r.Definitions(columns)
		s.client.out = r.Bytes()
	}
	return nil
}

// defines leaves the definitions out of an execution's answer, where CacheMetadata was
// agreed on, if the client has them.
func (p *prepared) defines(form *protocol.Form, columns []protocol.Column) {
	if form.Capabilities.Has(protocol.CacheMetadata) {
		form.NoMetadata = slices.Equal(p.columns, columns)
		p.columns = columns
	}
}

// prepareLimit bounds a packet of a server's answer to COM_STMT_PREPARE.
const prepareLimit = 1 << 20

// prepareOn prepares text on c and passes the answer on, with the client's
// statement id and without the hidden parameters.
func (s *session) prepareOn(c *backend.Conn, p *prepared, text []byte) error {
	a, err := s.askToPrepare(c, p, text)
	if err != nil {
		return err
	}
	if a.refused {
		// its error is the last; else a PREPARE leaves all as it is
		s.state.LastOwn = state.OwnNothing
		return nil
	}
	if err := s.prepared.add(p); err != nil {
		s.client.out = s.client.out[:0]
		if closeErr := s.closeOn(c, p.backendID); closeErr != nil {
			return closeErr
		}
		return err
	}
	binary.LittleEndian.PutUint32(s.client.out[a.idAt:], p.id)
	c.Release()
	return nil
}

// askToPrepare has c prepare text as p. The answer for the client is in s.out, with nothing else.
func (r *relay) askToPrepare(c *backend.Conn, p *prepared, text []byte) (prepareAnswer, error) {
	a := prepareAnswer{client: r.client, c: c, p: p, num: r.client.packetNum}
	if err := r.client.flush(); err != nil {
		return a, err
	}
	r.scratch = append(r.scratch[:0], 0, 0, 0, 0, byte(protocol.ComStmtPrepare))
	r.scratch = append(r.scratch, text...)
	if len(r.scratch)-protocol.HeaderSize >= protocol.MaxFragment {
		return a, params.ErrTooLong
	}
	protocol.PutHeader(r.scratch, len(r.scratch)-protocol.HeaderSize, 0)
	_, writeErr := c.Write(r.scratch)
	begun := r.tally.Waits()
	err := a.relay()
	r.tally.Waited(begun)
	if err != nil {
		r.client.out = r.client.out[:0] // nothing of it was sent
		return a, r.at.lost(c, err, false)
	}
	if writeErr != nil { // a server that closes has said why before
		if err := r.client.flush(); err != nil {
			return a, err
		}
		return a, r.at.lost(c, writeErr, true)
	}
	return a, nil
}

// closeOn closes a statement that is prepared on c.
func (b *backends) closeOn(c *backend.Conn, id uint32) error {
	c.SetPacketNum(0)
	if err := c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, id)); err != nil {
		return b.lost(c, err, false)
	}
	return nil
}

// prepareAnswer passes on a server's answer to COM_STMT_PREPARE, which is held
// whole: it has no rows.
type prepareAnswer struct {
	client  *client
	c       *backend.Conn
	p       *prepared
	num     uint8 // of the next packet to the client
	idAt    int   // where in s.out the statement id stands
	refused bool
}

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
	if total < len(a.p.Hidden) {
		return fmt.Errorf("%w: %d parameters where %d are hidden", protocol.ErrMalformed, total, len(a.p.Hidden))
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
		for range shown { // none of those that are hidden, unless the client's stand in their place
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
		if err := a.p.rows.Define(b, a.c.Capabilities); err != nil {
			return err
		}
		a.pass(b)
	}
	return a.terminator(columns, columns)
}

// read reads the next packet of the answer. Progress reports, which are for a statement
// that runs, are passed on.
func (a *prepareAnswer) read() ([]byte, error) {
	for {
		b, err := a.c.ReadPacket(prepareLimit)
		if err != nil || !a.c.Capabilities.Has(protocol.Progress) || !protocol.IsProgress(b) {
			return b, err
		}
		a.pass(b)
	}
}

// terminator reads the EOF behind n definitions, and passes it on if the client
// got some.
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
