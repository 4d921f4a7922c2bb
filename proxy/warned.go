package proxy

import (
	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// stateWarning is the SQLSTATE of a warning: SIGNAL with it leaves one, and is no error.
const stateWarning = "01000"

func isWarning(e *protocol.ServerError) bool { return e.State == stateWarning }

// newWarning is what SHOW WARNINGS is to tell of a statement that the proxy answered.
func newWarning(code uint16, text string) *protocol.ServerError {
	return &protocol.ServerError{Code: code, State: stateWarning, Message: text}
}

// noticed is the warning that a sequence of which numbers were just taken nears its end.
func (s *session) noticed(calls []statement.FuncCall, served []bool) *protocol.ServerError {
	for i := range calls {
		if calls[i].Func != statement.Nextval || !served[i] {
			continue
		}
		if text, ok := s.srv.opts.Sequences.Notice(calls[i].Name); ok {
			return newWarning(mysql.ER_UNKNOWN_ERROR, text)
		}
	}
	return nil
}

// warn says of the statement that was just answered that it began the warnings anew. If
// it left one, that is counted in the answer, and kept for SHOW WARNINGS.
func (s *session) warn(form *protocol.Form, w *protocol.ServerError) {
	if w != nil {
		form.Warnings = 1
	}
	s.state.lastError = w
	if s.state.lastOwn == ownRows {
		s.state.lastOwn = ownTableRows
	} else {
		s.state.lastOwn = ownTableAnswer
	}
}

// bringWarning makes c's warnings those of such a statement, and its ROW_COUNT().
func (s *session) bringWarning(c *backend.Conn) error {
	// A derived table makes both kinds of servers begin the warnings anew.
	sql, rows := "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)", s.state.lastOwn == ownTableRows
	if rows {
		sql = "SELECT 1 FROM (SELECT 1) AS seqproxy LIMIT 1"
	}
	if _, err := s.ownQuery(c, sql); err != nil || s.state.lastError == nil {
		return err
	}
	if err := s.raise(c, s.state.lastError); err != nil || !rows {
		return err
	}
	_, err := s.ownQuery(c, "SHOW WARNINGS LIMIT 0") // makes ROW_COUNT() -1 and leaves the rest
	return err
}

// warningsWithoutServer answers SHOW WARNINGS where there is no server to keep them.
func (s *session) warningsWithoutServer() error {
	before, last := s.state.lastOwn, s.state.lastError
	t := &protocol.Table{Columns: warningColumns}
	switch before {
	case ownError:
		t.Rows = [][]any{{"Error", uint64(last.Code), last.Message}}
	case ownTableRows, ownTableAnswer:
		if last != nil {
			t.Rows = [][]any{{"Warning", uint64(last.Code), last.Message}}
		}
	}
	if err := s.table(t, nil); err != nil {
		return err
	}
	s.state.lastOwn, s.state.lastError = before, last // SHOW WARNINGS leaves them
	return nil
}
