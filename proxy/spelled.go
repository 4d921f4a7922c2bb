package proxy

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// mycatPrefix stands in front of a sequence's name in MyCat's NEXT VALUE FOR.
var mycatPrefix = []byte("MYCATSEQ_")

// serves says whether what a call asks of its sequence is answered here. The name in the
// call is then the sequence's own.
func (s *session) serves(call *statement.FuncCall) (bool, error) {
	if call.Form == statement.FormParam {
		return true, nil // no server knows that
	}
	if call.Form != statement.FormName && call.Form != statement.FormQualified {
		return s.set.Unknown != UnknownRelay, nil
	}
	doubtful := call.Spelling == statement.AsColumn || call.Spelling == statement.AsSelectValue
	relayed := doubtful || s.set.Unknown == UnknownRelay
	if call.Schema != nil && string(call.Schema) != s.set.Sequences.Schema() {
		// CREATE SEQUENCE db.s makes one that is called so.
		call.Name, call.Schema = append(append(bytes.Clone(call.Schema), '.'), call.Name...), nil
		known, err := s.knows(call.Name)
		if known || err != nil || relayed {
			return known, err
		}
		return false, &sequence.NameError{Name: string(call.Name), Err: sequence.ErrUnknown}
	}
	if call.Spelling == statement.AsValueFor {
		if err := s.withoutPrefix(call); err != nil {
			return false, err
		}
	}
	if !relayed {
		return true, nil // taking the number tells, or creates the sequence
	}
	known, err := s.knows(call.Name)
	if known && call.Spelling == statement.AsSelectValue {
		var column bool
		if column, err = s.columnNext(call); column {
			known = false
		}
	}
	return known, err
}

// knows says whether there is a sequence of that name.
func (s *session) knows(name []byte) (bool, error) {
	known, err := s.set.Sequences.Known(&s.patience, name)
	return known, s.patience.over(err)
}

// withoutPrefix takes MyCat's prefix off a name, unless there is a sequence that has it in its
// name.
func (s *session) withoutPrefix(call *statement.FuncCall) error {
	n := len(mycatPrefix)
	if len(call.Name) <= n || !bytes.EqualFold(call.Name[:n], mycatPrefix) {
		return nil
	}
	known, err := s.knows(call.Name)
	if !known && err == nil {
		call.Name = call.Name[n:]
	}
	return err
}

// columnNext says whether SELECT NEXT VALUE FROM s may mean a column called next, which it
// would be given the name value of. The answer is remembered for a moment.
func (s *session) columnNext(call *statement.FuncCall) (bool, error) {
	if s.routes.Default() == nil {
		return false, nil
	}
	if !ascii(call.Name) {
		return true, nil // in doubt
	}
	table := backQuoted(call.Name)
	if call.Schema != nil {
		table = backQuoted(call.Schema) + "." + table
	}
	if last := s.state.tableNext; last != nil && last.conn == s.cur && last.schema == s.state.schema && last.table == table && time.Now().Before(last.until) {
		return last.column, nil
	}
	c, err := s.attach()
	if err != nil {
		return false, err
	}
	if c.Hello().MariaDB { // where these words are no column
		return false, nil
	}
	rows, err := s.ownQuery(c, "SHOW COLUMNS FROM "+table+" LIKE 'next'")
	var refused *protocol.ServerError // there is no such table
	if err != nil && !errors.As(err, &refused) {
		return false, err
	}
	column := len(rows) > 0 || err == nil && s.limitsRows()
	s.state.tableNext = &nextColumn{conn: c, schema: s.state.schema, table: table, column: column, until: time.Now().Add(time.Second)}
	return column, nil
}

// nextColumn is what columnNext found last.
type nextColumn struct {
	conn          *backend.Conn
	schema, table string
	column        bool
	until         time.Time
}

// backQuoted writes a name as an identifier.
func backQuoted(name []byte) string {
	return "`" + strings.ReplaceAll(string(name), "`", "``") + "`"
}
