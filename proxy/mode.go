package proxy

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// readable asks the server how it reads texts, if that is not known and this text is
// one in which it makes a difference. Where asking would change what the text reads
// (row counts, warnings), or is not possible now, the text is passed on unread, but
// not if it may ask for a number: that no server can give.
func (s *session) readable(sql []byte) error {
	st := &s.state
	if st.mode.Charset == lex.Unsupported { // the text before was passed on unread
		st.loseMode()
	}
	if !st.modeUnknown && !st.escapesUnknown && bytes.IndexByte(sql, '"') < 0 && !(st.mode.ANSIQuotes && bytes.IndexByte(sql, '[') >= 0) {
		return nil
	}
	c := s.cur
	if c == nil && st.modeUnknown && !ascii(sql) {
		if err := s.settle(); err != nil {
			return err
		}
		c, _ = s.attach() // what is wrong is told when a statement needs the server
	}
	if c == nil || !st.readByMode(sql, c.Hello().MariaDB) {
		return nil
	}
	lower := bytes.ToLower(sql)
	number := bytes.Contains(lower, []byte("nextval"))
	if !number && readsLastStatement(lower) {
		s.state.mode.Charset = lex.Unsupported
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	err = s.askMode(c)
	var refused *protocol.ServerError
	switch {
	case err == nil && number:
		return s.undisturbed(sql)
	case errors.As(err, &refused) && !number: // it may take the text all the same
		s.state.mode.Charset = lex.Unsupported
		return nil
	}
	return err
}

// meetServer attaches a connection if that tells which server reads the session's texts, and
// reports whether it is known now. What is wrong is told when a statement needs the server.
func (s *session) meetServer() bool {
	if s.state.mode.Server.Known() || s.cur != nil || s.routes.Default() == nil || s.settle() != nil {
		return false
	}
	_, err := s.attach()
	return err == nil
}

// errOtherServer: a fail-over to another version came between reading a text and sending it.
var errOtherServer = sqlError(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: the server of this shard has just changed to another version, which "+
	"may read the version comments of this statement in another way: send it again")

// askMode asks a server how it reads texts.
func (s *session) askMode(c *backend.Conn) error {
	row, err := s.ownRow(c, "SELECT @@character_set_client, @@sql_mode", 2, "the session's character set")
	if err != nil {
		return err
	}
	s.state.modeUnknown, s.state.quotesUnknown, s.state.escapesUnknown = false, false, false
	s.state.charset = string(row[0])
	s.state.mode.Charset = lex.CharsetByName(s.state.charset)
	s.state.setSQLMode(string(row[1]))
	return nil
}

// undisturbed refuses a text that reads row counts, which asking for the mode has
// changed. SELECT leaves the warnings.
func (s *session) undisturbed(sql []byte) error {
	s.stmt.Analyze(sql, s.state.mode)
	if s.state.lastOwn != ownNothing || s.stmt.Words&(statement.ReadsRowCount|statement.ReadsFoundRows) == 0 {
		return nil
	}
	return notSupported("NEXTVAL beside ROW_COUNT() or FOUND_ROWS() is not supported here, after %s: send SET NAMES first", PinOpaque)
}

// readByMode says whether a text may be read in more than one way: one with bytes
// that are not ASCII, or with a sign of which the server does not tell by its status
// what it means. Those are double quotes with MySQL; with MariaDB brackets, but only
// beside ANSI_QUOTES, which MSSQL includes and of which it does tell.
func (st *state) readByMode(sql []byte, mariaDB bool) bool {
	for _, b := range sql {
		if b >= 0x80 && st.modeUnknown || b == '\\' && st.escapesUnknown ||
			b == '"' && (!mariaDB || st.escapesUnknown) || b == '[' && mariaDB && (st.mode.ANSIQuotes || st.escapesUnknown) {
			return true
		}
	}
	return false
}

// stateServer is what a server says of itself that tells how it reads the texts of a session.
type stateServer struct {
	Reads   lex.Server // as which it reads version comments
	MariaDB bool
	// SQLMode is its global sql_mode.
	SQLMode string
	// InitConnect: it has an init_connect, which may change what sessions start with.
	InitConnect bool
	// OwnCollation: it takes no notice of the collation that a login names.
	OwnCollation bool
	// Major is the first number of its version.
	Major int
}

// startMode takes note of how a server reads the texts of a session that has just logged
// in there with a collation, or was reset.
func (st *state) startMode(h stateServer, collation uint16) {
	st.mode.Server = h.Reads
	if st.sysvars["sql_mode"] == 0 { // else it was brought along
		st.setSQLMode(h.SQLMode)
		st.quotesUnknown = true
	}
	if st.sysvars["character_set_client"] == 0 && !h.hasCollation(collation) {
		st.askMode()
	}
	if h.InitConnect {
		st.escapesUnknown, st.quotesUnknown = true, true
		st.askMode()
	}
}

// hasCollation says whether sessions that log in to a server with a collation's id have
// it for certain. Ids that a server does not know stand for its default.
func (h *stateServer) hasCollation(id uint16) bool {
	switch {
	case h.OwnCollation:
		return false
	case lex.EverywhereCollation(id):
		return true
	case h.MariaDB: // has gained many, one after the other
		return false
	case id >= 248 && id <= 250: // gb18030, since MySQL 5.7
		return true
	}
	return id == 255 && h.Major >= 8 // utf8mb4_0900_ai_ci
}

// noClientCharset says whether a character set is one that no client can have.
func noClientCharset(name string) bool {
	switch name {
	case "ucs2", "utf16", "utf16le", "utf32":
		return true
	}
	return false
}

// setCollation takes note of the character set that a login has asked for.
func (st *state) setCollation(id uint16) {
	st.charset = lex.CharsetOfCollation(id)
	st.mode.Charset = lex.CharsetByName(st.charset)
	if st.charset == "" { // every server takes its own default
		st.askMode()
	}
}

// readsLastStatement says whether a text in small letters may read what the last
// statement left behind, judged without reading it: as it is mostly written.
func readsLastStatement(lower []byte) bool {
	for _, words := range [...]string{
		"row_count(", "found_rows(", "show warnings", "show errors", "diagnostics", "@@error_count", "@@warning_count",
	} {
		if bytes.Contains(lower, []byte(words)) {
			return true
		}
	}
	return false
}

// setSQLMode takes note of a sql_mode, a list of words.
func (st *state) setSQLMode(mode string) {
	st.mode.ANSIQuotes = impliesANSIQuotes(mode)
	st.mode.Brackets = hasMode(mode, "MSSQL")
	st.mode.NoBackslashEscapes = hasMode(mode, "NO_BACKSLASH_ESCAPES")
}

// plainMode returns the sql_mode that a literal names, if it is written so that no
// other reading is possible: a bare word, or words between one pair of quotes. ok is
// false for numbers, strings in pieces and those with escapes.
func plainMode(literal string) (mode string, ok bool) {
	mode = unquote(literal)
	bare := mode == literal
	for i := range len(mode) {
		switch c := mode[i] | 0x20; {
		case c >= 'a' && c <= 'z', mode[i] == '_', mode[i] == ',' && !bare:
		default:
			return "", false
		}
	}
	return mode, !bare || mode != "" && !strings.EqualFold(mode, "default")
}

// impliesANSIQuotes says whether a sql_mode makes "x" an identifier. The combined
// modes are those of https://dev.mysql.com/doc/refman/5.7/en/sql-mode.html and
// https://mariadb.com/kb/en/sql-mode/.
func impliesANSIQuotes(mode string) bool {
	return hasMode(mode, "ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL")
}

// hasMode says whether a sql_mode has one of some words, which are in capitals.
func hasMode(mode string, words ...string) bool {
	for has := range strings.SplitSeq(strings.ToUpper(mode), ",") {
		for _, word := range words {
			if strings.TrimSpace(has) == word {
				return true
			}
		}
	}
	return false
}
