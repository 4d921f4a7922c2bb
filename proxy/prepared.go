package proxy

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// preparedSet is a session's prepared statements, by the ids that its client
// knows: two servers both hand out 1.
type preparedSet struct {
	byID   map[uint32]*prepared
	lastID uint32 // given
	// latest is what the last COM_STMT_PREPARE prepared; nil if that failed, or the
	// statement is gone.
	latest *prepared
}

// latestPrepared is MariaDB's id of the last statement prepared, for clients that
// execute it before they have read its own. MySQL knows no such statement.
const latestPrepared = 1<<32 - 1

// prepared is one prepared statement.
type prepared struct {
	id uint32 // the client's

	// own is the text of a statement that the proxy answers itself.
	own []byte
	// columns are those of own that the client was last sent the definitions of.
	columns []protocol.Column
	// mode is how the text was read when it was prepared, and is to be read later.
	mode    statement.Mode
	charset string // the name of what mode.Charset is the class of

	// A statement of a server has the connection that knows it, and its id there.
	conn      *backend.Conn
	backendID uint32
	shape     stmtTraits
	set       []byte // the text of a SET

	use    string               // the schema of a USE
	kill   *killPrepared        // of a KILL
	hidden []hiddenParam        // parameters that the proxy fills
	place  []uint16             // the server's index of each of the client's parameters; nil without hidden ones
	params int                  // of the client
	types  []protocol.Parameter // of the client's at the last bind
	before []protocol.Parameter // what types were before that; see unbind
	// longSent: data came by COM_STMT_SEND_LONG_DATA since the last execution; long
	// says for which parameters, where there are hidden ones.
	longSent bool
	long     []bool
}

// stmtTraits is what an execution needs to know of the statement's text.
type stmtTraits struct {
	plain       bool // may be sent with its neighbours
	movesLastID bool
	readsLastID bool
	readsLast   bool // reads what the last statement left
	kind        statement.Kind
	words       statement.Words
}

// maxPrepared bounds a session's statements as max_prepared_stmt_count bounds a
// server's, 16382 by default.
const maxPrepared = 16382

func (ps *preparedSet) add(p *prepared) error {
	if len(ps.byID) >= maxPrepared {
		return sqlError(mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED, "42000",
			"Can't create more than max_prepared_stmt_count statements (current value: %d)", maxPrepared)
	}
	if ps.byID == nil {
		ps.byID = make(map[uint32]*prepared)
	}
	for {
		ps.lastID++
		if _, taken := ps.byID[ps.lastID]; !taken && ps.lastID != 0 && ps.lastID != latestPrepared {
			p.id = ps.lastID
			ps.byID[p.id] = p
			ps.latest = p
			return nil
		}
	}
}

// remove drops a statement that its client has closed.
func (ps *preparedSet) remove(p *prepared) {
	delete(ps.byID, p.id)
	if ps.latest == p {
		ps.latest = nil
	}
}

func (ps *preparedSet) clear() { ps.byID, ps.latest = nil, nil }

// anyOn says whether a statement is prepared on a connection.
func (ps *preparedSet) anyOn(c *backend.Conn) bool {
	for _, p := range ps.byID {
		if p.conn == c {
			return true
		}
	}
	return false
}

// forget drops the statements of a connection that is gone.
func (ps *preparedSet) forget(c *backend.Conn) {
	for _, p := range ps.byID {
		if p.conn == c {
			ps.remove(p)
		}
	}
}

// preparedAs returns the statement that a client means by id, or nil.
func (s *session) preparedAs(id uint32) *prepared {
	if id == latestPrepared && s.likeMariaDB() {
		return s.prepared.latest
	}
	return s.prepared.byID[id]
}

// toServer makes a command's statement id the server's. The last one prepared stays
// that, since p is it for its server too: errors then name the id as the client wrote it.
func (p *prepared) toServer(id []byte) {
	if binary.LittleEndian.Uint32(id) != latestPrepared {
		binary.LittleEndian.PutUint32(id, p.backendID)
	}
}

// traitsOf takes what an execution needs from the analysed text.
func traitsOf(st *statement.Statement) stmtTraits {
	reads := st.MayReadLastStatement()
	return stmtTraits{
		kind: st.Kind, words: st.Words,
		plain: st.Plain(),
		// INTO leaves a row count that could not be kept if the id came later.
		movesLastID: st.MayChangeLastInsertID() || st.Words&statement.Into != 0,
		readsLast:   reads,
		readsLastID: reads && readsLastID(st),
	}
}

// readsLastID says whether a statement that may read what the last one left reads,
// or may read, LAST_INSERT_ID() and not just row counts or warnings.
func readsLastID(st *statement.Statement) bool {
	const others = statement.ReadsRowCount | statement.ReadsFoundRows | statement.ReadsWarnings
	return st.Words&statement.ReadsLastInsertID != 0 || st.Words&others == 0 &&
		st.Kind != statement.ShowWarnings && st.Kind != statement.GetDiagnostics
}

// readsCounts says whether the statement names the row counts or warnings that the
// last one left.
func (t *stmtTraits) readsCounts() bool {
	return t.words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 ||
		t.kind == statement.ShowWarnings || t.kind == statement.GetDiagnostics
}

// prepare handles COM_STMT_PREPARE.
func (s *session) prepare(sql []byte) error {
	s.prepared.latest = nil // until this one is prepared
	if s.state.modeUnknown || s.state.quotesUnknown {
		if err := s.readable(sql); err != nil {
			return err
		}
	}
	st := &s.stmt
	st.Analyze(sql, s.state.mode)
	switch {
	case st.Kind == statement.Use: // each execution goes where it leads
	case len(st.Schema) > 0 && s.elsewhere(string(st.Schema)): // CREATE DATABASE and its like
		return notSupported("to prepare a statement on the schema %s, which is on another shard: send it as text", st.Schema)
	case st.Kind == statement.CreateSequence, st.Kind == statement.DropSequence, st.Kind == statement.ShowSequences:
		return s.prepareOwn(sql, s.srv.opts.Admin.Columns(st))
	}
	text, hidden := sql, []hiddenParam(nil)
	if len(st.Calls) > 0 && st.Kind != statement.Kill || st.Refusal != "" {
		if err := s.convertNames(st, s.state.charset); err != nil {
			return err
		}
		plan, err := s.planCalls(st, true)
		if err == nil && plan.rewrite {
			err = s.knownAtPrepare(st)
		}
		switch {
		case err != nil:
			return err
		case plan.own && onlyNumbers(st):
			return s.prepareOwn(sql, s.columnsOf(st, sql, atPrepare, nil))
		case plan.rewrite:
			text, hidden = s.hideParams(st, sql, plan)
		}
	}
	if s.srv.opts.Shards.Default() == nil {
		return s.prepareWithoutServer(sql)
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	if st.Kind == statement.Prepare || st.Kind == statement.Deallocate || st.Words&statement.SQLPrepare != 0 {
		s.state.pin(pinSQLPrepare)
	}
	p := &prepared{conn: c, shape: traitsOf(st), hidden: hidden, mode: s.state.mode, charset: s.state.charset}
	if len(hidden) > 0 {
		p.shape.plain = false
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

// onlyNumbers says whether a text that the proxy can answer asks for nothing that
// may be a server's to know when it is executed.
func onlyNumbers(st *statement.Statement) bool {
	for i := range st.Calls {
		if f := st.Calls[i].Func; f == statement.LastInsertID || f == statement.LastInsertIDVariable {
			return false
		}
	}
	return true
}

// prepareOwn answers COM_STMT_PREPARE for a statement that the proxy answers.
func (s *session) prepareOwn(sql []byte, columns []protocol.Column) error {
	form, err := s.form(true)
	if err != nil {
		return err
	}
	p := &prepared{own: append([]byte(nil), sql...), columns: columns, mode: s.state.mode, charset: s.state.charset}
	if err := s.prepared.add(p); err != nil {
		return err
	}
	// What the last statement left stays, as a server leaves it at a PREPARE.
	s.out = protocol.AppendPrepareOK(s.out, s.packetNum, form, p.id, len(columns), 0)
	if len(columns) > 0 {
		r := protocol.NewResult(s.out, s.packetNum+1, form)
		r.Definitions(columns)
		s.out = r.Bytes()
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
	if err := s.flush(); err != nil {
		return err
	}
	s.own = append(s.own[:0], 0, 0, 0, 0, byte(protocol.ComStmtPrepare))
	s.own = append(s.own, text...)
	if len(s.own)-protocol.HeaderSize >= protocol.MaxFragment {
		return errTooLong
	}
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	if _, err := c.Write(s.own); err != nil {
		return s.lost(c, err, false)
	}
	a := prepareAnswer{s: s, c: c, p: p, num: s.packetNum}
	if err := a.relay(); err != nil {
		s.out = s.out[:0] // nothing of it was sent
		return s.lost(c, err, false)
	}
	if a.refused {
		s.state.lastOwn = ownNothing // its error is the last; else a PREPARE leaves all as it is
		return nil
	}
	if err := s.prepared.add(p); err != nil {
		s.out = s.out[:0]
		c.SetPacketNum(0)
		if closeErr := c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, p.backendID)); closeErr != nil {
			return s.lost(c, closeErr, false)
		}
		return err
	}
	binary.LittleEndian.PutUint32(s.out[a.idAt:], p.id)
	c.Release()
	return nil
}

// prepareAnswer passes on a server's answer to COM_STMT_PREPARE, which is held
// whole: it has no rows.
type prepareAnswer struct {
	s       *session
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
		}
		a.pass(b)
		return nil
	}
	a.p.backendID = binary.LittleEndian.Uint32(b[1:])
	columns, params := int(binary.LittleEndian.Uint16(b[5:])), int(binary.LittleEndian.Uint16(b[7:]))
	defined := !a.c.Capabilities.Has(protocol.OptionalMetadata) || len(b) < 13 || b[12] != 0
	if params < len(a.p.hidden) {
		return fmt.Errorf("%w: %d parameters where %d are hidden", protocol.ErrMalformed, params, len(a.p.hidden))
	}
	a.p.params = params - len(a.p.hidden)
	a.p.placeParams(params)
	binary.LittleEndian.PutUint16(b[7:], uint16(a.p.params))
	a.idAt = len(a.s.out) + protocol.HeaderSize + 1
	a.pass(b)
	hidden := a.p.hidden
	for i := 0; i < params && defined; i++ {
		if b, err = a.read(); err != nil {
			return err
		}
		if len(hidden) > 0 && hidden[0].at == i {
			hidden = hidden[1:]
			continue
		}
		a.pass(b)
	}
	if err := a.terminator(params, a.p.params); err != nil {
		return err
	}
	for i := 0; i < columns && defined; i++ {
		if b, err = a.read(); err != nil {
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
	a.s.out, a.num = protocol.AppendPacket(a.s.out, payload, a.num)
}

// execute handles COM_STMT_EXECUTE.
func (s *session) execute(payload []byte) error {
	if len(payload) < executeHead {
		return s.answerAlone(s.malformed)
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := s.preparedAs(id)
	switch {
	case p == nil:
		return s.answerAlone(func() error { return s.unknownStatement(id, "mysqld_stmt_execute") })
	case p.own != nil:
		return s.answerAlone(func() error { return s.executeOwn(p) })
	case len(p.hidden) > 0:
		return s.answerAlone(func() error { return s.executeHidden(p, payload) })
	}
	p.toServer(payload[1:])
	if p.shape.plain && p.conn == s.cur && !s.state.nextTransaction && !s.srv.opts.LastInsertIDExact {
		if p.shape.movesLastID {
			if err := s.bringBefore(); err != nil {
				return s.tell(err)
			}
		}
		s.state.lastOwn = ownNothing
		p.longSent = false
		return s.relay(protocol.ShapeResult, false)
	}
	return s.answerAlone(func() error {
		if p.kill != nil {
			if handled, err := s.executeKill(p, payload); handled || err != nil {
				return err
			}
		}
		if p.use != "" {
			return s.useSchema(p.use, p)
		}
		c, err := s.connFor(p)
		if err != nil {
			return s.dropLongData(p.conn, p, err)
		}
		p.longSent = false
		s.enqueue(c, protocol.ShapeResult)
		s.state.lastOwn = ownNothing
		if err := s.settle(); err != nil {
			return err
		}
		s.noteExecuted(c, p)
		return nil
	})
}

// passable says whether an execution may be passed on without being held whole: all
// that is needed of it is the statement.
func (p *prepared) passable() bool {
	return p.conn != nil && len(p.hidden) == 0 && p.set == nil && p.kill == nil && p.use == ""
}

// noteExecuted is noteDone for an execution.
func (s *session) noteExecuted(c *backend.Conn, p *prepared) {
	if p.set != nil {
		s.stmt.Analyze(p.set, p.mode)
		s.noteDone(c, p.set)
		return
	}
	if c.Answer.ErrCode == 0 {
		s.state.transacted(p.shape.kind, p.shape.words)
	}
}

// connOf returns the connection of a prepared statement: the one that it was
// prepared on, in the schema of that time, even if another shard is current.
func (s *session) connOf(p *prepared) (*backend.Conn, error) {
	if p.conn == s.cur {
		return p.conn, nil
	}
	switch there, here := p.conn.Shard().Name(), s.cur.Shard().Name(); {
	case s.state.inTransaction():
		return nil, notSupported("the statement was prepared on shard %s and cannot run inside a transaction on shard %s: COMMIT or ROLLBACK first",
			there, here)
	case !s.state.status.Has(protocol.Autocommit): // it would begin a transaction there
		return nil, notSupported("the statement was prepared on shard %s and cannot run from shard %s with autocommit = 0: USE a schema of shard %s first",
			there, here, there)
	case !p.shape.leavesNothing():
		return nil, notSupported("the statement was prepared on shard %s, where it changes the session, which is on shard %s now: USE a schema of shard %s first, or prepare it again",
			there, here, there)
	}
	return s.connTo(p.conn.Shard())
}

// leavesNothing says whether a statement can run on a shard that the session is not
// on: nothing of what it does is looked for later, rows and LAST_INSERT_ID() apart.
func (t *stmtTraits) leavesNothing() bool {
	const state = statement.TemporaryTable | statement.UserLock | statement.TableLock | statement.GlobalLock | statement.HandlerOpen |
		statement.SQLPrepare | statement.SetsUserVariable | statement.SetsUserLiteral | statement.Opaque
	switch t.kind {
	case statement.Select, statement.Insert, statement.Replace, statement.Update, statement.Delete, statement.With,
		statement.Values, statement.Show, statement.Explain, statement.Do, statement.OtherDDL, statement.CreateStored:
		return t.words&state == 0
	}
	return false
}

// connFor is connOf for an execution: it makes true there what the statement may
// look at.
func (s *session) connFor(p *prepared) (*backend.Conn, error) {
	c, err := s.connOf(p)
	if err != nil {
		return nil, err
	}
	if err := s.prepareConn(c, p); err != nil {
		return nil, err
	}
	return c, nil
}

// prepareConn makes true on c what the statement may look at.
func (s *session) prepareConn(c *backend.Conn, p *prepared) error {
	if err := s.bring(c, p.shape); err != nil {
		return err
	}
	s.state.pinFor(p.shape.kind, p.shape.words)
	return nil
}

// onPrepared handles the other commands on a prepared statement.
func (s *session) onPrepared(cmd protocol.Command, payload []byte) error {
	least := 5 // command, statement id
	switch {
	case cmd == protocol.ComStmtLongData:
		least = 7 // and parameter
	case cmd == protocol.ComStmtFetch && !s.likeMariaDB():
		least = 9 // and number of rows, for which MariaDB looks beyond the packet
	}
	if len(payload) < least {
		// MySQL answers then even to what has no answer.
		if cmd.AnswerShape() == protocol.ShapeNone && s.likeMariaDB() {
			return s.settle()
		}
		return s.answerAlone(s.malformed)
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := s.preparedAs(id)
	if p == nil || p.own != nil {
		return s.answerAlone(func() error { return s.onOwnPrepared(cmd, id, p) })
	}
	p.toServer(payload[1:])
	switch cmd {
	case protocol.ComStmtClose:
		s.prepared.remove(p)
	case protocol.ComStmtLongData:
		p.longData(payload[5:7])
		if p.kill != nil {
			p.kill.long = true
		}
	case protocol.ComStmtReset:
		p.forgetLong()
		if p.kill != nil {
			p.kill.long = false
		}
	}
	if p.conn != s.cur || s.batched > 0 && s.batchConn != p.conn {
		if err := s.settle(); err != nil {
			return err
		}
	}
	s.enqueue(p.conn, cmd.AnswerShape())
	return nil
}

// onOwnPrepared handles a command on a statement that no server knows.
func (s *session) onOwnPrepared(cmd protocol.Command, id uint32, p *prepared) error {
	switch {
	case cmd == protocol.ComStmtClose:
		if p != nil {
			s.prepared.remove(p)
		}
		return nil
	case cmd == protocol.ComStmtLongData:
		return nil
	case p == nil && cmd == protocol.ComStmtReset:
		return s.unknownStatement(id, "mysqld_stmt_reset")
	case p == nil:
		return s.unknownStatement(id, "mysqld_stmt_fetch")
	case cmd == protocol.ComStmtReset:
		s.reply(protocol.OK{})
		return nil
	}
	return sqlError(mysql.ER_STMT_HAS_NO_OPEN_CURSOR, "HY000", "The statement (%d) has no open cursor", id)
}
