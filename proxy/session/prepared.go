package session

import (
	"encoding/binary"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/ticket"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// preparedSet is a session's prepared statements, by the client's ids: two servers both give the id
// 1.
type preparedSet struct {
	byID   map[uint32]*prepared
	lastID uint32 // the last id given to the client
	// latest is the result of the last COM_STMT_PREPARE. It is nil if that failed, or the statement
	// is gone.
	latest *prepared
	texts  int // bytes of the texts in memory, see prepared.kept
}

// latestPrepared is MariaDB's id of the last statement prepared, for clients that execute it before
// they read its own id. MySQL has no such id.
const latestPrepared = 1<<32 - 1

// prepared is one prepared statement.
type prepared struct {
	params.List
	id uint32 // the client's id

	// local is the text of a statement that the proxy answers itself.
	local []byte
	// columns are the definitions of local's columns that the client last got.
	columns []protocol.Column
	// mode is how to read the text: as at its PREPARE.
	mode    lex.Mode
	charset string // character set of the text, of the class mode.Charset
	head    textHead

	// A statement of a server has its connection, and its id there.
	conn      *backend.Conn
	backendID uint32
	shape     plan.Traits
	set       []byte // the text of a SET

	use      string         // the schema of a USE
	kill     *killPrepared  // of a KILL
	ticket   *ticket.Ticket // nil: the statement is no ticket
	question *question      // nil: the statement is no question
	inserts  insertsInto
	numbers  keys.Numbers // each execution adds the rest
}

// kept returns the bytes of the statement's text in memory.
func (p *prepared) kept() int { return len(p.local) + len(p.set) }

// maxPrepared bounds a session's statements like a server's max_prepared_stmt_count, which is 16382
// by default.
const maxPrepared = 16382

var errTooManyPrepared = protocol.Errorf(mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED, "42000",
	"Can't create more than max_prepared_stmt_count statements (current value: %d)", maxPrepared)

// maxPreparedTexts bounds the bytes of the texts that a session's statements keep. A server keeps
// all, and bounds the number of statements for all sessions together.
const maxPreparedTexts = 1 << 20

func (ps *preparedSet) add(p *prepared) error {
	if n := p.kept(); n > 0 && ps.texts+n > maxPreparedTexts {
		return protocol.NotSupported("statements that are answered here, or are SET, with more than %d bytes of text, prepared in one session, are not supported: send them as text", maxPreparedTexts)
	}
	if len(ps.byID) >= maxPrepared {
		return errTooManyPrepared
	}
	if ps.byID == nil {
		ps.byID = make(map[uint32]*prepared)
	}
	for {
		ps.lastID++
		if _, taken := ps.byID[ps.lastID]; !taken && ps.lastID != 0 && ps.lastID != latestPrepared {
			p.id = ps.lastID
			ps.texts += p.kept()
			ps.byID[p.id] = p
			ps.latest = p
			return nil
		}
	}
}

// remove drops a statement that its client has closed.
func (ps *preparedSet) remove(p *prepared) {
	if ps.byID[p.id] == p {
		delete(ps.byID, p.id)
		ps.texts -= p.kept()
	}
	if ps.latest == p {
		ps.latest = nil
	}
}

func (ps *preparedSet) clear() { ps.byID, ps.latest, ps.texts = nil, nil, 0 }

// onServer reports whether a statement is prepared on any connection.
func (ps *preparedSet) onServer() bool {
	for _, p := range ps.byID {
		if p.conn != nil {
			return true
		}
	}
	return false
}

// anyOn reports whether a statement is prepared on a connection.
func (ps *preparedSet) anyOn(c *backend.Conn) bool {
	for _, p := range ps.byID {
		if p.conn == c {
			return true
		}
	}
	return false
}

// forget drops the statements of a closed connection.
func (ps *preparedSet) forget(c *backend.Conn) {
	for _, p := range ps.byID {
		if p.conn == c {
			ps.remove(p)
		}
	}
}

// preparedAs returns the client's statement id, or nil.
func (a *attachment) preparedAs(id uint32) *prepared {
	if id == latestPrepared && a.likeMariaDB() {
		return a.prepared.latest
	}
	return a.prepared.byID[id]
}

// toServer replaces the client's statement id in a command by the server's. latestPrepared stays,
// since it means p to the server, too: errors then name the id as the client wrote it.
func (p *prepared) toServer(id []byte) {
	if binary.LittleEndian.Uint32(id) != latestPrepared {
		binary.LittleEndian.PutUint32(id, p.backendID)
	}
}

// longData is LongData with p's properties.
func (p *prepared) longData(index, data []byte) bool {
	return p.LongData(index, data, p.local != nil, p.ticket != nil)
}

// defines omits the definitions from an execution's answer, if CacheMetadata was agreed on and the
// client has them.
func (p *prepared) defines(form *protocol.Form, columns []protocol.Column) {
	if form.Capabilities.Has(protocol.CacheMetadata) {
		form.NoMetadata = slices.Equal(p.columns, columns)
		p.columns = columns
	}
}

// redefines is defines for a SELECT of numbers, whose columns it defines anew in place. values are
// those of its calls, or nil if there is no row.
func (p *prepared) redefines(form *protocol.Form, st *statement.Statement, values []keys.Number, mariaDB bool) {
	same := true
	for i := range p.columns {
		item, c := &st.Items[i], &p.columns[i]
		var value *keys.Number
		if values != nil {
			value = &values[item.FirstCall]
		}
		now := alone.Column(item.Func, alone.AtExecute, value, mariaDB)
		now.Name = c.Name
		same = same && now == *c
		*c = now
	}
	if form.Capabilities.Has(protocol.CacheMetadata) {
		form.NoMetadata = same
	}
}

// passable reports whether an execution can go to the server unread.
func (p *prepared) passable() bool {
	return p.conn != nil && len(p.Hidden) == 0 && p.numbers.Rows == nil && p.set == nil && p.kill == nil && p.use == ""
}

// rowsExecutable returns an error if the rows of an execution cannot get numbers.
func (p *prepared) rowsExecutable(payload []byte, mayOmit bool) error {
	switch {
	case payload[5]&protocol.CursorReadOnly != 0:
		return protocol.NotSupported("NEXTVAL in SELECT ... FROM with a cursor is not supported: fetch all rows at once")
	case len(p.numbers.Rows.Types) == 0 && mayOmit:
		return protocol.NotSupported("NEXTVAL in a prepared SELECT ... FROM with resultset_metadata = NONE is not supported")
	}
	return nil
}

// connOf returns the connection that a statement was prepared on, even if another shard is current.
func (a *attachment) connOf(p *prepared) (*backend.Conn, error) {
	if p.conn == a.cur {
		return p.conn, a.enter(a.cur.Shard)
	}
	if err := a.ensureOpen(); err != nil {
		return nil, err
	}
	switch there, here := p.conn.Shard.Name(), a.cur.Shard.Name(); {
	case a.state.InTransaction():
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run inside a transaction on shard %s: COMMIT or ROLLBACK first",
			there, here)
	case !a.state.Status.Has(protocol.Autocommit): // the statement would begin a transaction there
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run from shard %s with autocommit = 0: USE a schema of shard %s first",
			there, here, there)
	case !p.shape.LeavesNothing():
		return nil, protocol.NotSupported("the statement was prepared on shard %s, where it changes the session, which is on shard %s now: USE a schema of shard %s first, or prepare it again",
			there, here, there)
	}
	return a.connTo(p.conn.Shard)
}

// connFor is connOf for an execution: it also brings there what the statement may read.
func (a *attachment) connFor(p *prepared) (*backend.Conn, error) {
	c, err := a.connOf(p)
	if err != nil {
		return nil, err
	}
	if err := a.prepareConn(c, p); err != nil {
		return nil, err
	}
	return c, nil
}

// prepareConn brings to c what the statement may read.
func (a *attachment) prepareConn(c *backend.Conn, p *prepared) error {
	if err := a.bring(c, p.shape); err != nil {
		return err
	}
	a.expects(state.Effect{Kind: p.shape.Kind, Words: p.shape.Words, Runs: p.shape.Runs})
	return nil
}

// dropLongData makes the server drop the data of COM_STMT_SEND_LONG_DATA for an execution that
// failed with err before it was sent. An execution ends the data's life. Otherwise the next data
// would be appended to them.
func (a *attachment) dropLongData(p *prepared, err error) error {
	if !p.LongSent {
		return err
	}
	if settleErr := a.above.settle(); settleErr != nil {
		return settleErr
	}
	p.ForgetLong()
	id := binary.LittleEndian.AppendUint32(nil, p.backendID)
	if resetErr := a.runCommand(p.conn, protocol.ComStmtReset, string(id)); resetErr != nil {
		return resetErr
	}
	return err
}
