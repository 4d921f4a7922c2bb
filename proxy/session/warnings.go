package session

import (
	"bytes"
	"fmt"
	"strconv"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/state"
)

func isWarning(e *protocol.ServerError) bool { return e.State == protocol.StateWarning }

// showNotice answers SHOW WARNINGS after a statement that the server answered and that
// took numbers of a sequence which nears its end.
func (a *answers) showNotice() error {
	c, notice := a.at.connBy(a.state.LastConn), a.state.Notice
	rows, err := a.at.Ask(c, "SHOW WARNINGS")
	if err != nil {
		return err
	}
	t := &protocol.Table{Columns: alone.WarningColumns}
	for _, row := range rows {
		code, err := strconv.ParseUint(string(row[1]), 10, 16)
		if err != nil {
			return fmt.Errorf("shard %s: SHOW WARNINGS has the code %q", c.Shard().Name(), row[1])
		}
		t.Rows = append(t.Rows, []any{string(row[0]), code, string(row[2])})
	}
	t.Rows = append(t.Rows, []any{"Warning", uint64(notice.Code), notice.Message})
	if err := a.table(t, nil); err != nil {
		return err
	}
	a.state.LastAnswer, a.state.Notice = state.ByServer, notice // SHOW WARNINGS leaves them
	return nil
}

// showsAllWarnings says whether a text is SHOW WARNINGS and nothing else.
func showsAllWarnings(sql []byte) bool {
	words := bytes.Fields(bytes.TrimRight(sql, "; \t\r\n"))
	return len(words) == 2 && bytes.EqualFold(words[0], []byte("show")) && bytes.EqualFold(words[1], []byte("warnings"))
}

// warn says of the statement that was just answered that it began the warnings anew. If
// it left one, that is counted in the answer, and kept for SHOW WARNINGS.
func (a *answers) warn(form *protocol.Form, w *protocol.ServerError) {
	if w != nil {
		form.Warnings = 1
	}
	a.state.LastError = w
	if a.state.LastAnswer == state.OurRows {
		a.state.LastAnswer = state.OurTableRows
	} else {
		a.state.LastAnswer = state.OurTableOK
	}
}

// bringWarning makes c's warnings those of such a statement, and its ROW_COUNT().
func (b *backends) bringWarning(c *backend.Conn) error {
	// A derived table makes both kinds of servers begin the warnings anew.
	sql, rows := "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)", b.state.LastAnswer == state.OurTableRows
	if rows {
		sql = "SELECT 1 FROM (SELECT 1) AS seqproxy LIMIT 1"
	}
	if _, err := b.Ask(c, sql); err != nil || b.state.LastError == nil {
		return err
	}
	if err := b.raise(c, b.state.LastError); err != nil || !rows {
		return err
	}
	_, err := b.Ask(c, "SHOW WARNINGS LIMIT 0") // makes ROW_COUNT() -1 and leaves the rest
	return err
}

// warningsWithoutServer answers SHOW WARNINGS where there is no server to keep them.
func (a *answers) warningsWithoutServer(p *prepared) error {
	before, last := a.state.LastAnswer, a.state.LastError
	if err := a.table(alone.Warnings(a.state), p); err != nil {
		return err
	}
	a.state.LastAnswer, a.state.LastError = before, last // SHOW WARNINGS leaves them
	return nil
}
