package session

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/hangup"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement/lex"
)

// backends are the connections of a session to servers. It asks the servers what the proxy itself
// needs, and ends the session if a needed connection breaks.
type backends struct {
	outside
	cur    *backend.Conn // the current shard's
	effect state.Effect  // what the statement sent last may do to the session

	// The parts of the session that it serves.
	client   *client
	login    *login.Login
	state    *state.State
	tally    *stats.Tally
	prepared *preparedSet
	doom     *kill.Doom
	shared   *Shared
}

// log returns a logger for the session's events. It makes one at each call, since most sessions log
// nothing.
func (b *backends) log() *zap.Logger {
	return b.shared.Log.With(logfield.Conn(b.id), logfield.Client(b.client.RemoteAddr()), logfield.User(b.login.Account.Name))
}

// account returns the session's user with the passwords of the present settings, for a login to a
// server. Any goroutine that may read the user may call it.
func (b *backends) account() *login.Account {
	return b.login.Account.Present(b.shared.Settings.Load().Login.Users)
}

// setCurrent makes c the connection that statements run on.
func (b *backends) setCurrent(c *backend.Conn) {
	first, hello := b.cur == nil, c.Hello
	if b.cur != c {
		b.state.StartMode(serverOf(hello), b.login.Collation)
	}
	b.cur = c
	b.state.Observe(c.Answer.Status, hello.MariaDB)
	if first {
		b.state.TrustStatus(hello.MariaDB)
		b.state.EscapesUnknown = hello.InitConnect
	}
}

// likeMariaDB reports whether the session's server is MariaDB: the current shard's, or before there
// is one the greeting's.
func (b *backends) likeMariaDB() bool {
	if b.cur != nil {
		return b.cur.Hello.MariaDB
	}
	return !b.login.LikeMySQL
}

// serverOf returns what the session's state uses of a server.
func serverOf(h *backend.Hello) state.Server {
	reads := lex.MySQL(h.Number())
	if h.MariaDB {
		reads = lex.MariaDB(h.Number())
	}
	major, _ := h.Numbers()
	return state.Server{
		Reads: reads, MariaDB: h.MariaDB, Major: major, SQLMode: h.SQLMode, InitConnect: h.InitConnect, IgnoresCollation: h.IgnoresCollation,
	}
}

// release gives a connection back after the answer to a command, and records what the answer says
// about the session.
func (b *backends) release(c *backend.Conn) {
	c.Release()
	c.Used = true
	b.tally.Counted(c)
	if c == b.cur {
		b.state.Observe(c.Answer.Status, c.Hello.MariaDB)
		b.state.StatusUnsure = c.Answer.ErrCode != 0
	}
	if !b.effect.Expected {
		return
	}
	first, last := c.Answer.ErrCode, c.Answer.ErrCode
	if c.Answer.Rows || c.Answer.Results > 0 {
		first = 0
	}
	b.state.Apply(b.effect, first, last)
}

// expects records what the statement about to be sent may do to the session.
func (b *backends) expects(e state.Effect) {
	e.Expected = true
	b.effect = e
}

// noteRefusal records what the text of an error that ends an answer adds to its code. whole reports
// whether answer is complete.
func (b *backends) noteRefusal(answer []byte, whole bool) {
	if !b.effect.Expected || !whole || len(answer) < protocol.HeaderSize {
		return
	}
	var refused *protocol.ServerError
	if errors.As(protocol.ParseServerError(answer[protocol.HeaderSize:]), &refused) {
		b.effect.Refused(refused)
	}
}

// idOfConn returns the name of a connection in the session's state.
func idOfConn(c *backend.Conn) state.ConnID { return state.ConnID(c.Tag) }

// forget drops a closed connection.
func (b *backends) forget(c *backend.Conn) {
	b.mu.Lock()
	delete(b.conns, c.Shard)
	b.mu.Unlock()
	b.state.Forget(idOfConn(c))
	if b.cur == c {
		b.cur = nil
	}
	b.prepared.forget(c)
	b.tally.Counted(c)
}

// closeBackends ends every backend connection of the session.
func (b *backends) closeBackends() {
	b.mu.Lock()
	conns := b.conns
	b.conns = nil
	b.mu.Unlock()
	for _, c := range conns {
		c.Quit()
		b.state.Forget(idOfConn(c))
		b.tally.Counted(c)
	}
	b.cur = nil
}

// closeOn closes a statement that is prepared on c.
func (b *backends) closeOn(c *backend.Conn, id uint32) error {
	if err := sendClose(c, id); err != nil {
		return b.lost(c, err, false)
	}
	return nil
}

func sendClose(c *backend.Conn, id uint32) error {
	c.SetPacketNum(0)
	return c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, id))
}

// lost ends a session whose backend connection broke: its transaction, variables and locks are
// gone, as after a lost connection to the server itself. The client gets no error. Its connection
// ends as if the server were gone, and drivers and their pools open another. The log says why.
func (b *backends) lost(c *backend.Conn, cause error, midAnswer bool) error {
	c.Close()
	b.forget(c)
	switch b.doom.Why() {
	case kill.Vanished:
		return b.abandon(c, errClientGone)
	case kill.Killed: // a server is silent, too
		return errKilled
	}
	if !b.doom.Is() {
		c.CountLost(cause)
	}
	err := fmt.Errorf("%w: shard %s, node %s: %w", errBackendGone, c.Shard.Name(), c.Node(), cause)
	if !midAnswer {
		_ = b.client.flush() // answers to earlier commands; the session ends either way
	}
	return err
}

// abandon makes the server end its work on c, if err says that the client went away before the
// answer. It returns err.
func (b *backends) abandon(c *backend.Conn, err error) error {
	if creds, ok := b.account().Credentials(c.Shard); ok && errors.Is(err, errClientGone) {
		b.shared.Killer.Abandon(c.Place(), creds)
	}
	return err
}

// errBackendClosed ends a session because the server closed its idle connection.
var errBackendClosed = errors.New("server closed the idle connection")

// dropClosed finds the connections that their servers have closed. Without the current one the
// session has lost its state and ends like it. It drops another one if the session needs nothing on
// it.
func (b *backends) dropClosed() error {
	for _, c := range b.conns {
		switch {
		case !hangup.Seen(c.Conn):
		case c == b.cur:
			return b.endWith(c)
		case !b.needs(c):
			c.Close()
			b.forget(c)
		}
	}
	return nil
}

// needs reports whether the session needs something on a connection to another shard than the
// current one.
func (b *backends) needs(c *backend.Conn) bool {
	return b.state.Needs(idOfConn(c)) || b.prepared.anyOn(c)
}

// endWith ends a session with its idle backend connection. The client gets what the server
// said before it closed.
func (b *backends) endWith(c *backend.Conn) error {
	err := fmt.Errorf("%w: shard %s, node %s", errBackendClosed, c.Shard.Name(), c.Node())
	// All bytes have come. The deadline is for TLS, which may want to write.
	_ = c.SetReadDeadline(time.Now().Add(time.Second))
	for len(c.Buffered()) < protocol.BufferSize && c.Fill() == nil {
	}
	if last := c.Buffered(); len(last) > 0 {
		_, _ = b.client.Write(last) // the session ends either way
		c.Discard(len(last))
	}
	c.Close()
	b.forget(c)
	return err
}

// askTimeout bounds a statement of the proxy's own on a session's connection.
const askTimeout = 30 * time.Second

// Ask runs a statement of the proxy's own on a connection of the session. If that breaks the
// connection, the session ends, as it does with a statement of the client's. A SELECT must say
// LIMIT 1 to be sure of its row: the client may have set sql_select_limit to 0.
func (b *backends) Ask(c *backend.Conn, sql string) ([][][]byte, error) {
	var rows [][][]byte
	err := b.bounded(c, func() (err error) {
		rows, err = c.Query(sql)
		return err
	})
	return rows, err
}

// AskRow is Ask for a SELECT, without its LIMIT, of n values in one row. what names them in the
// error if they are missing.
func (b *backends) AskRow(c *backend.Conn, sql string, n int, what string) ([][]byte, error) {
	rows, err := b.Ask(c, sql+" LIMIT 1")
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != n {
		return nil, fmt.Errorf("shard %s does not tell %s", c.Shard.Name(), what)
	}
	return rows[0], nil
}

// AskAll is Ask for a SHOW that must return all rows in spite of sql_select_limit.
func (b *backends) AskAll(c *backend.Conn, show string) ([][][]byte, error) {
	rows, err := b.Ask(c, show)
	// Such statements, as those of a routine, may have set it unseen.
	unseen := b.state.AllPins().Has(state.PinOpaque) || c.Hello.InitConnect
	if err != nil || !b.state.SelectLimit && !unseen {
		return rows, err
	}
	row, err := b.AskRow(c, "SELECT @@sql_select_limit", 1, "sql_select_limit")
	if err != nil {
		return nil, err
	}
	if limit, err := strconv.ParseUint(string(row[0]), 10, 64); err != nil || limit <= uint64(len(rows)) {
		return nil, protocol.NotSupported("a statement that needs to know the columns or triggers of its table is not supported while sql_select_limit is %q, "+
			"which hides them: SET sql_select_limit = DEFAULT", row[0])
	}
	return rows, nil
}

// runCommand is Ask for a command that is answered with OK.
func (b *backends) runCommand(c *backend.Conn, cmd protocol.Command, argument string) error {
	return b.bounded(c, func() error { return c.Command(cmd, argument) })
}

// bounded runs a command of the proxy's own on c, bounded in time.
func (b *backends) bounded(c *backend.Conn, run func() error) error {
	if err := c.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return b.lost(c, err, false)
	}
	begun := b.tally.Waits()
	err := run()
	b.tally.Waited(begun)
	var refused *protocol.ServerError
	if err != nil && !errors.As(err, &refused) {
		return b.lost(c, err, false)
	}
	if dlErr := c.SetDeadline(time.Time{}); dlErr != nil {
		return b.lost(c, dlErr, false)
	}
	return err
}

// ensureOpen is ensureStatus if a transaction was open by the last status: an error may have ended
// it.
func (b *backends) ensureOpen() error {
	if !b.state.InTransaction() {
		return nil
	}
	return b.ensureStatus()
}

// ensureStatus makes the state's status say whether a transaction is open, if the server's last
// answer did not: the answer to a ping does. The ping resets ROW_COUNT(). Nothing is in flight.
func (b *backends) ensureStatus() error {
	if !b.state.StatusUnsure || b.cur == nil {
		return nil
	}
	if err := b.runCommand(b.cur, protocol.ComPing, ""); err != nil {
		return err
	}
	b.release(b.cur)
	return nil
}

// digitsInRows reports whether numbers in rows are ASCII digits. MariaDB converts them to
// character_set_results.
func (b *backends) digitsInRows() (bool, error) {
	row, err := b.AskRow(b.cur, "SELECT 1", 1, "a number")
	return err == nil && string(row[0]) == "1", err
}

// askSchema asks for the current schema.
func (b *backends) askSchema() error {
	row, err := b.AskRow(b.cur, "SELECT DATABASE()", 1, "the current schema")
	if err != nil {
		return err
	}
	b.state.Schema, b.state.SchemaUnknown = string(row[0]), false
	return nil
}
