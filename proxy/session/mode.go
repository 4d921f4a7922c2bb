package session

import (
	"bytes"
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// fetchMode asks the server how it reads texts, if that is unknown and matters for this text (see
// state.ReadsAlike). The first connection of a session shows it without a question. If asking would
// change what the text seems to read (row counts, warnings), or is impossible now, the text is
// passed on unread. A text that may ask for a number is never passed on unread, since no server can
// give one.
func (p *planning) fetchMode(sql []byte) error {
	st := p.state
	if st.Mode.Charset == lex.Unsupported { // for the text before, which was passed on unread
		st.LoseMode()
	}
	c := p.at.cur
	if c == nil && p.needsServer(sql) {
		if err := p.relay.settle(); err != nil {
			return err
		}
		if err := p.at.waitOutPause(); err != nil {
			return err
		}
		c, _ = p.at.Attach() // an error comes again when a statement needs the server
	}
	if c == nil || st.ReadsAlike(sql) || !st.ReadByMode(sql, c.Hello.MariaDB) {
		return nil
	}
	lower := bytes.ToLower(sql)
	number := bytes.Contains(lower, []byte("nextval"))
	if !number && p.readsOfLast(sql, lower) {
		p.state.Mode.Charset = lex.Unsupported
		return nil
	}
	if err := p.relay.settle(); err != nil {
		return err
	}
	c, err := p.at.Attach()
	if err != nil {
		return err
	}
	err = p.at.askMode(c)
	var refused *protocol.ServerError
	switch {
	case err == nil:
		return p.refuseDisturbed(sql)
	case errors.As(err, &refused) && !number: // the server may still accept the text
		p.state.Mode.Charset = lex.Unsupported
		return nil
	}
	return err
}

// needsServer reports whether a text needs a server, without which the session is so far, and may
// mean several things. The connection shows in which mode the session begins.
func (p *planning) needsServer(sql []byte) bool {
	if p.at.routes.Default == nil || ascii(sql) && !bytes.ContainsAny(sql, "\\\"[") {
		return false
	}
	if p.state.ModeUnknown && !ascii(sql) {
		return true
	}
	p.read(sql, p.state.Mode)
	return !p.stmt.SelfContained && !p.stmt.AboutSequences() // answered without a shard, too
}

// identifyServer attaches a connection if the server that reads the session's texts is unknown, and
// reports whether it has become known. An error comes again when a statement needs the server.
func (p *planning) identifyServer() bool {
	if p.state.Mode.Server.Identified() || p.at.cur != nil || p.at.routes.Default == nil || p.relay.settle() != nil {
		return false
	}
	_, err := p.at.Attach()
	return err == nil
}

// errOtherServer says that a fail-over to another version came between reading a text and sending
// it.
var errOtherServer = protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: the server of this shard has just changed to another version, which "+
	"may read the version comments of this statement in another way: send it again")

// askMode asks a server how it reads texts.
func (b *backends) askMode(c *backend.Conn) error {
	row, err := b.AskRow(c, "SELECT @@character_set_client, @@sql_mode", 2, "the session's character set")
	if err != nil {
		return err
	}
	b.state.ModeUnknown, b.state.QuotesUnknown, b.state.EscapesUnknown = false, false, false
	b.state.Charset = string(row[0])
	b.state.Mode.Charset = lex.CharsetByName(b.state.Charset)
	b.state.SetSQLMode(string(row[1]))
	return nil
}

// readsOfLast reports whether a text reads what the last statement left, if it means what it means
// in the assumed mode. Where that has no meaning, words decide.
func (p *planning) readsOfLast(sql, lower []byte) bool {
	p.read(sql, p.state.Mode)
	if p.stmt.Words&statement.Opaque != 0 {
		return state.ReadsLastStatement(lower)
	}
	return p.stmt.ReadsOfLast() != 0
}

// refuseDisturbed refuses a text that reads what asking for the mode has changed.
func (p *planning) refuseDisturbed(sql []byte) error {
	disturbed := statement.ReadsCounts
	if p.at.likeMariaDB() { // whose SELECT without a table keeps the warnings
		disturbed &^= statement.ReadsWarnings
	}
	p.read(sql, p.state.Mode)
	if p.state.LastAnswer != state.ByServer || p.stmt.ReadsOfLast()&disturbed == 0 {
		return nil
	}
	return protocol.NotSupported("what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings), beside NEXTVAL or such quotes and letters, is not supported here, after %s: "+
		"ask for it alone first, or send SET NAMES before that statement", state.PinOpaque)
}
