package proxy

import (
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// answerSelect answers such a text. What it stands for is the same SELECT with
// LAST_INSERT_ID(n) for each number n, the first of which LAST_INSERT_ID() is then.
// p is the prepared statement that is executed, nil for a text.
func (s *session) answerSelect(st *statement.Statement, sql []byte, a *plan.Action, p *prepared) error {
	s.tally.Becomes(kindOf(st))
	form, err := s.form(p != nil)
	if err != nil {
		return err
	}
	if p != nil && s.limitsRows() {
		if none, err := s.limitedToNothing(); err != nil {
			return err
		} else if none {
			columns := s.columnsOf(st, sql, atExecute, nil)
			p.defines(&form, columns)
			r := protocol.NewResult(s.out, s.packetNum, form)
			r.Columns(columns)
			s.out = r.End()
			s.state.LastOwn = state.OwnRows
			return nil
		}
	}
	values, err := s.numbers.Take(a.Slots)
	if err != nil {
		return err
	}
	warning := s.takeNotice()
	if warning != nil {
		form.Warnings = 1
	}
	moved := false
	before, _ := s.state.LastID.Known()
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval:
			if !moved {
				moved = true
				s.state.LastID.Given(values[i].Value)
			}
		case statement.Lastval, statement.Setval:
		case statement.CallConnectionID:
			values[i].Value = uint64(s.id)
		default:
			values[i].Value = before
		}
	}
	columns := s.columnsOf(st, sql, inText, values)
	if p != nil {
		columns = s.columnsOf(st, sql, atExecute, nil)
		p.defines(&form, columns)
	}
	r := protocol.NewResult(s.out, s.packetNum, form)
	r.Columns(columns)
	row := make([]any, len(st.Items))
	for i := range st.Items {
		v := values[st.Items[i].FirstCall]
		switch {
		case v.Null:
		case st.Items[i].Func == statement.CallConnectionID && s.likeMariaDB():
			row[i] = uint32(v.Value) // of the type that columnsOf tells
		default:
			row[i] = v.Value
		}
	}
	r.Row(row...)
	s.out = r.End()
	s.state.LastOwn, s.state.LastID.Rows = state.OwnRows, false
	if warning != nil {
		s.state.LastOwn, s.state.LastError = state.OwnTableRows, warning
	}
	return nil
}

// kindOf is the kind of a text that is answered here.
func kindOf(st *statement.Statement) stats.Kind {
	kind := stats.KindOwn
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			return stats.KindNextval
		case statement.LastInsertID, statement.LastInsertIDVariable:
			kind = stats.KindLastInsertID
		}
	}
	return kind
}

// form returns the form of an answer of ours: as the server's would be now. binary
// chooses that of an execution.
func (s *session) form(binary bool) (protocol.Form, error) {
	f := protocol.Form{Capabilities: s.login.Capabilities, Status: s.status(), Binary: binary}
	if !s.mayOmitMetadata() {
		return f, nil
	}
	c, err := s.Attach()
	if err != nil {
		return f, err
	}
	row, err := s.AskRow(c, "SELECT @@resultset_metadata", 1, "resultset_metadata")
	if err != nil {
		return f, err
	}
	f.NoMetadata = string(row[0]) == "NONE"
	return f, nil
}

// mayOmitMetadata says whether resultset_metadata may be NONE, which the server knows.
func (s *session) mayOmitMetadata() bool {
	return s.state.Metadata && s.login.Capabilities.Has(protocol.OptionalMetadata)
}

// limitsRows says whether sql_select_limit is set, and there is a server that heeds it.
func (s *session) limitsRows() bool { return plan.LimitsRows(&s.state, s.routes.Default() != nil) }

// limitedToNothing says whether sql_select_limit, which is set, is 0: a SELECT then
// gives no row and evaluates nothing. With any other limit a row is one row.
func (s *session) limitedToNothing() (bool, error) {
	c, err := s.Attach()
	if err != nil {
		return false, err
	}
	rows, err := s.Ask(c, "SELECT 1") // which is limited, too
	return len(rows) == 0, err
}

// moment is when columns are defined. The number is a literal in a text and a
// parameter in a prepared statement, whose length is only known when it is bound.
type moment uint8

const (
	inText moment = iota
	atPrepare
	atExecute
)

// Column flags (https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__column__definition__flags.html).
const (
	flagNotNull  = mysql.NOT_NULL_FLAG
	flagUnsigned = mysql.UNSIGNED_FLAG
	flagBinary   = mysql.BINARY_FLAG

	charsetBinary = 63
)

// columnsOf defines the columns of a SELECT that the proxy answers, as the server
// defines those of LAST_INSERT_ID(n), LAST_INSERT_ID(), @@last_insert_id and
// CONNECTION_ID(). values are those of the calls, used in a text only.
func (s *session) columnsOf(st *statement.Statement, sql []byte, when moment, values []keys.Number) []protocol.Column {
	mariaDB := s.likeMariaDB()
	columns := make([]protocol.Column, len(st.Items))
	for i := range st.Items {
		item := &st.Items[i]
		c := protocol.Column{
			Name: string(st.ColumnName(sql, *item)), Charset: charsetBinary, Length: 21,
			Type: mysql.MYSQL_TYPE_LONGLONG, Flags: flagNotNull | flagUnsigned | flagBinary,
		}
		switch item.Func {
		case statement.Nextval:
			switch {
			case !mariaDB:
				if when != inText {
					c.Flags = flagUnsigned | flagBinary
				}
			case when == inText:
				var digits [20]byte
				c.Length = uint32(len(strconv.AppendUint(digits[:0], values[item.FirstCall].Value, 10)))
			case when == atPrepare:
				c.Length, c.Flags = 0, flagUnsigned|flagBinary
			default:
				c.Flags = flagUnsigned | flagBinary
			}
		case statement.Lastval, statement.Setval:
			c.Length, c.Flags = 20, flagBinary
			if values != nil && values[item.FirstCall].Value > math.MaxInt64 {
				c.Flags |= flagUnsigned
			}
		case statement.LastInsertIDVariable:
			c.Flags = flagUnsigned | flagBinary
		case statement.CallConnectionID:
			if mariaDB {
				c.Length, c.Type = 10, mysql.MYSQL_TYPE_LONG
			}
		}
		columns[i] = c
	}
	return columns
}
