package proxy

import (
	"seqproxy/protocol"
	"seqproxy/proxy/alone"
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
			columns := alone.Columns(st, sql, alone.AtExecute, nil, s.likeMariaDB())
			p.defines(&form, columns)
			r := protocol.NewResult(s.client.out, s.client.packetNum, form)
			r.Columns(columns)
			s.client.out = r.End()
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
	columns := alone.Columns(st, sql, alone.InText, values, s.likeMariaDB())
	if p != nil {
		columns = alone.Columns(st, sql, alone.AtExecute, nil, s.likeMariaDB())
		p.defines(&form, columns)
	}
	r := protocol.NewResult(s.client.out, s.client.packetNum, form)
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
	s.client.out = r.End()
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
	f := protocol.Form{Capabilities: s.login.Capabilities, Status: s.state.Status, Binary: binary}
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

// limitsRows says whether sql_select_limit is set, and there is a server that obeys it.
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
