package state

import (
	"bytes"
	"strings"

	"seqproxy/protocol"
	"seqproxy/statement/lex"
)

// ReadByMode reports whether a text has several readings: it has bytes that are not ASCII, or a
// sign whose meaning the server's status does not show. With MySQL these are double quotes. With
// MariaDB they are brackets, but only under ANSI_QUOTES, which MSSQL includes and the status shows.
func (st *State) ReadByMode(sql []byte, mariaDB bool) bool {
	for _, b := range sql {
		if b >= 0x80 && st.ModeUnknown || b == '\\' && st.EscapesUnknown ||
			b == '"' && (!mariaDB || st.EscapesUnknown) || b == '[' && mariaDB && (st.Mode.ANSIQuotes || st.EscapesUnknown) {
			return true
		}
	}
	return false
}

// Server is what decides how a server reads the texts of a session.
type Server struct {
	Reads   lex.Server // how it reads version comments
	MariaDB bool
	// SQLMode is the global sql_mode.
	SQLMode string
	// InitConnect reports whether the server has an init_connect, which may change the initial
	// values of sessions.
	InitConnect bool
	// IgnoresCollation reports whether the server ignores the collation of a login.
	IgnoresCollation bool
	// Major is the first number of the version.
	Major int
}

// StartMode records how a server reads the texts of a session that has just logged in there with a
// collation, or was reset.
func (st *State) StartMode(h Server, collation uint16) {
	st.Mode.Server = h.Reads
	if st.Sysvars["sql_mode"] == 0 { // otherwise the session has brought it along
		st.SetSQLMode(h.SQLMode)
		st.QuotesUnknown = true
	}
	if st.Sysvars["character_set_client"] == 0 && !h.hasCollation(collation) {
		st.AskMode()
	}
	if h.InitConnect {
		st.EscapesUnknown, st.QuotesUnknown = true, true
		st.AskMode()
	}
}

// hasCollation reports whether a server surely has the collation of an id. Servers replace an
// unknown id by their default.
func (h *Server) hasCollation(id uint16) bool {
	switch {
	case h.IgnoresCollation:
		return false
	case lex.EverywhereCollation(id):
		return true
	case h.MariaDB: // its releases have added many
		return false
	case id >= 248 && id <= 250: // gb18030, since MySQL 5.7
		return true
	}
	return id == 255 && h.Major >= 8 // utf8mb4_0900_ai_ci
}

// NoClientCharset reports whether no client can have a character set.
func NoClientCharset(name string) bool {
	switch name {
	case "ucs2", "utf16", "utf16le", "utf32":
		return true
	}
	return false
}

// SetCollation records the character set of a login.
func (st *State) SetCollation(id uint16) {
	st.Charset = lex.CharsetOfCollation(id)
	st.Mode.Charset = lex.CharsetByName(st.Charset)
	if st.Charset == "" { // every server then uses its own default
		st.AskMode()
	}
}

// ReadsLastStatement reports whether a text in lower case that cannot be read may read what the
// last statement left. It looks for the usual spellings only.
func ReadsLastStatement(lower []byte) bool {
	for _, words := range [...]string{
		"row_count(", "found_rows(", "show warnings", "show errors", "diagnostics", "@@error_count", "@@warning_count",
	} {
		if bytes.Contains(lower, []byte(words)) {
			return true
		}
	}
	return false
}

// SetSQLMode records a sql_mode, a list of words.
func (st *State) SetSQLMode(mode string) {
	st.Mode.ANSIQuotes = impliesANSIQuotes(mode)
	st.Mode.Brackets = hasMode(mode, "MSSQL")
	st.Mode.NoBackslashEscapes = hasMode(mode, "NO_BACKSLASH_ESCAPES")
}

// plainMode returns the sql_mode of a literal with only one possible reading: a bare word, or words
// between one pair of quotes. ok is false for numbers, strings in pieces and those with escapes.
func plainMode(literal string) (mode string, ok bool) {
	mode = Unquote(literal)
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

// impliesANSIQuotes reports whether a sql_mode makes "x" an identifier. The combined modes are
// those of https://dev.mysql.com/doc/refman/5.7/en/sql-mode.html and
// https://mariadb.com/kb/en/sql-mode/.
func impliesANSIQuotes(mode string) bool {
	return hasMode(mode, "ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL")
}

// hasMode reports whether a sql_mode has one of the words, which are in capitals.
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

// TrustStatus takes the modes from the status, which is true at the start of a session.
func (st *State) TrustStatus(mariaDB bool) {
	st.Mode.NoBackslashEscapes = st.Status.Has(protocol.NoBackslashEscapes)
	if mariaDB { // MySQL never sets the bit
		st.Mode.ANSIQuotes = st.Status.Has(protocol.ANSIQuotes)
	}
}

// LoseMode records that the mode may have changed. The session asks the server before it analyses a
// text that depends on the mode. It analyses others in the assumed mode.
func (st *State) LoseMode() {
	st.Metadata, st.QuotesUnknown, st.EscapesUnknown = true, true, true
	st.Inserts.Conn = 0
	st.AskMode()
}

// AskMode is LoseMode if certainly nothing else was lost.
func (st *State) AskMode() {
	st.ModeUnknown = true
	if st.Mode.Charset == lex.Unsupported {
		st.Mode.Charset, st.Charset = lex.UTF8, ""
	}
}
