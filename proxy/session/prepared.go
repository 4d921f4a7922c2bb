package session

import (
	"encoding/binary"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/params"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/ticket"
	"seqproxy/statement/lex"
)

// preparedSet is a session's prepared statements, by the ids that its client
// knows: two servers both hand out 1.
type preparedSet struct {
	byID   map[uint32]*prepared
	lastID uint32 // given
	// latest is what the last COM_STMT_PREPARE prepared; nil if that failed, or the
	// statement is gone.
	latest *prepared
	texts  int // bytes of the texts that are kept, see prepared.kept
}

// latestPrepared is MariaDB's id of the last statement prepared, for clients that
// execute it before they have read its own. MySQL knows no such statement.
const latestPrepared = 1<<32 - 1

// prepared is one prepared statement.
type prepared struct {
	params.List
	id uint32 // the client's

	// local is the text of a statement that the proxy answers itself.
	local []byte
	// columns are those of local that the client was last sent the definitions of.
	columns []protocol.Column
	// mode is how the text was read when it was prepared, and is to be read later.
	mode    lex.Mode
	charset string // the name of what mode.Charset is the class of
	head    textHead

	// A statement of a server has the connection that knows it, and its id there.
	conn      *backend.Conn
	backendID uint32
	shape     plan.Traits
	set       []byte // the text of a SET

	use      string         // the schema of a USE
	kill     *killPrepared  // of a KILL
	ticket   *ticket.Ticket // that it is
	question *question      // that it is; nil: none
	inserts  insertsInto
	numbers  keys.Numbers // each execution says the rest
}

// kept is how many bytes of its text are kept.
func (p *prepared) kept() int { return len(p.local) + len(p.set) }

// maxPrepared bounds a session's statements as max_prepared_stmt_count bounds a
// server's, 16382 by default.
const maxPrepared = 16382

var errTooManyPrepared = protocol.Errorf(mysql.ER_MAX_PREPARED_STMT_COUNT_REACHED, "42000",
	"Can't create more than max_prepared_stmt_count statements (current value: %d)", maxPrepared)

// maxPreparedTexts bounds the texts that a session's statements keep. A server keeps all, and
// bounds their number for all sessions together.
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

// anyOn reports whether a statement is prepared on a connection.
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
func (a *attachment) preparedAs(id uint32) *prepared {
	if id == latestPrepared && a.likeMariaDB() {
		return a.prepared.latest
	}
	return a.prepared.byID[id]
}

// toServer makes a command's statement id the server's. The last one prepared stays
// that, since p is it for its server too: errors then name the id as the client wrote it.
func (p *prepared) toServer(id []byte) {
	if binary.LittleEndian.Uint32(id) != latestPrepared {
		binary.LittleEndian.PutUint32(id, p.backendID)
	}
}

// longData is LongData with what it needs to know of the statement.
func (p *prepared) longData(index, data []byte) bool {
	return p.LongData(index, data, p.local != nil, p.ticket != nil)
}

// defines leaves the definitions out of an execution's answer, where CacheMetadata was
// agreed on, if the client has them.
func (p *prepared) defines(form *protocol.Form, columns []protocol.Column) {
	if form.Capabilities.Has(protocol.CacheMetadata) {
		form.NoMetadata = slices.Equal(p.columns, columns)
		p.columns = columns
	}
}

// passable reports whether an execution may be passed on as it comes: nothing but its statement
// matters.
func (p *prepared) passable() bool {
	return p.conn != nil && len(p.Hidden) == 0 && p.numbers.Rows == nil && p.set == nil && p.kill == nil && p.use == ""
}

// rowsExecutable is an error if the rows of an execution cannot get numbers.
func (p *prepared) rowsExecutable(payload []byte, mayOmit bool) error {
	switch {
	case payload[5]&protocol.CursorReadOnly != 0:
		return protocol.NotSupported("NEXTVAL in SELECT ... FROM with a cursor is not supported: fetch all rows at once")
	case len(p.numbers.Rows.Types) == 0 && mayOmit:
		return protocol.NotSupported("NEXTVAL in a prepared SELECT ... FROM with resultset_metadata = NONE is not supported")
	}
	return nil
}

// cutExecution takes an execution apart, all of whose values must be there.
func (p *prepared) cutExecution(payload []byte, likeMariaDB, attributes bool) (params.Execution, error) {
	e, err := p.Cut(payload, attributes)
	switch {
	case err != nil || p.Complete(&e):
	case likeMariaDB:
		err = params.ErrArguments
	default:
		p.Unbind(&e)
		err = params.ErrMalformed
	}
	return e, err
}

// connOf returns the connection of a prepared statement: the one that it was
// prepared on, in the schema of that time, even if another shard is current.
func (a *attachment) connOf(p *prepared) (*backend.Conn, error) {
	if p.conn == a.cur {
		return p.conn, a.enter(a.cur.Shard())
	}
	switch there, here := p.conn.Shard().Name(), a.cur.Shard().Name(); {
	case a.state.InTransaction():
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run inside a transaction on shard %s: COMMIT or ROLLBACK first",
			there, here)
	case !a.state.Status.Has(protocol.Autocommit): // it would begin a transaction there
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run from shard %s with autocommit = 0: USE a schema of shard %s first",
			there, here, there)
	case !p.shape.LeavesNothing():
		return nil, protocol.NotSupported("the statement was prepared on shard %s, where it changes the session, which is on shard %s now: USE a schema of shard %s first, or prepare it again",
			there, here, there)
	}
	return a.connTo(p.conn.Shard())
}

// connFor is connOf for an execution: it makes true there what the statement may
// look at.
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

// prepareConn makes true on c what the statement may look at.
func (a *attachment) prepareConn(c *backend.Conn, p *prepared) error {
	if err := a.bring(c, p.shape); err != nil {
		return err
	}
	a.expects(state.Effect{Kind: p.shape.Kind, Words: p.shape.Words, Runs: p.shape.Runs})
	return nil
}

// dropLongData makes the server forget what came by COM_STMT_SEND_LONG_DATA for an
// execution that failed with err before it was sent: an execution ends the data's
// life, and the next would otherwise append to it.
func (a *attachment) dropLongData(c *backend.Conn, p *prepared, err error) error {
	if !p.LongSent {
		return err
	}
	p.ForgetLong()
	id := binary.LittleEndian.AppendUint32(nil, p.backendID)
	if resetErr := a.runCommand(c, protocol.ComStmtReset, string(id)); resetErr != nil {
		return resetErr
	}
	return err
}
