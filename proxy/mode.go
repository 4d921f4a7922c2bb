package proxy

import (
	"bytes"
	"fmt"

	"seqproxy/protocol"
	"seqproxy/statement"
)

// learnMode asks the server how it reads texts, if that is not known and the
// command is a text in which it makes a difference.
func (s *session) learnMode(command []byte) error {
	c := s.cur
	if c == nil || len(command) == 0 || !readByMode(command, c.Hello().MariaDB) {
		return nil
	}
	if readsLastStatement(command[1:]) {
		// Asking would change what the text reads: it is passed on unread.
		s.state.mode.Charset = statement.Unsupported
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	rows, err := s.ownQuery(c, "SELECT @@character_set_client, @@sql_mode LIMIT 1")
	if err == nil && (len(rows) != 1 || len(rows[0]) != 2) {
		err = fmt.Errorf("shard %s does not tell the session's character set", c.Shard().Name())
	}
	if err != nil {
		return err
	}
	s.state.modeUnknown = false
	s.state.mode.Charset = statement.CharsetByName(string(rows[0][0]))
	if !c.Hello().MariaDB {
		s.state.mode.ANSIQuotes = impliesANSIQuotes(string(rows[0][1]))
	}
	return nil
}

// readByMode says whether a command is a text that may be read in more than one
// way: one with bytes that are not ASCII, or with double quotes where the server
// does not tell by its status what they mean.
func readByMode(command []byte, mariaDB bool) bool {
	switch protocol.Command(command[0]) {
	case protocol.ComQuery, protocol.ComStmtPrepare:
	default:
		return false
	}
	for _, b := range command[1:] {
		if b >= 0x80 || b == '"' && !mariaDB {
			return true
		}
	}
	return false
}

// readsLastStatement says whether a text may read what the last statement left
// behind, judged without reading it.
func readsLastStatement(text []byte) bool {
	lower := bytes.ToLower(text)
	for _, word := range [...]string{"row_count", "found_rows", "warning", "error", "diagnostics"} {
		if bytes.Contains(lower, []byte(word)) {
			return true
		}
	}
	return false
}
