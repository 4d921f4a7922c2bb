package session

import (
	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// answers are those that the proxy gives itself, in the place of a server.
type answers struct {
	*ground
	planning *planning
}

// answerSelect answers such a text. What it stands for is the same SELECT with
// LAST_INSERT_ID(n) for each number n, the first of which LAST_INSERT_ID() is then.
// p is the prepared statement that is executed, nil for a text.
func (a *answers) answerSelect(st *statement.Statement, sql []byte, action *plan.Action, p *prepared) error {
	a.at.tally.Becomes(kindOf(st))
	form, err := a.form(p != nil)
	if err != nil {
		return err
	}
	if p != nil && a.limitsRows() {
		if none, err := a.limitedToNothing(); err != nil {
			return err
		} else if none {
			columns := alone.Columns(st, sql, alone.AtExecute, nil, nil, a.at.likeMariaDB())
			p.defines(&form, columns)
			r := protocol.NewResult(a.client.out, a.client.packetNum, form)
			r.Columns(columns)
			a.client.out = r.End()
			a.state.LastAnswer = state.OurRows
			return nil
		}
	}
	values, err := a.numbers.Take(action.Slots)
	if err != nil {
		return err
	}
	warning := a.numbers.Notice()
	if warning != nil {
		form.Warnings = 1
	}
	moved := false
	before, _ := a.state.LastID.Get()
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval:
			if !moved && values[i].Text == "" {
				moved = true
				a.state.LastID.Given(values[i].Value)
			}
		case statement.Lastval, statement.Setval:
		case statement.CallConnectionID:
			values[i].Value = uint64(a.at.id)
		default:
			values[i].Value = before
		}
	}
	var columns []protocol.Column
	if p == nil {
		columns = alone.Columns(st, sql, alone.InText, values, values, a.at.likeMariaDB())
	} else {
		columns = alone.Columns(st, sql, alone.AtExecute, nil, values, a.at.likeMariaDB())
		p.defines(&form, columns)
	}
	r := protocol.NewResult(a.client.out, a.client.packetNum, form)
	r.Columns(columns)
	row := make([]any, len(st.Items))
	for i := range st.Items {
		v := values[st.Items[i].FirstCall]
		switch {
		case v.Null:
		case v.Binary:
			row[i] = []byte(v.Text)
		case v.Text != "":
			row[i] = v.Text
		case st.Items[i].Func == statement.CallConnectionID && a.at.likeMariaDB():
			row[i] = uint32(v.Value) // of the type that columnsOf tells
		default:
			row[i] = v.Value
		}
	}
	r.Row(row...)
	a.client.out = r.End()
	a.state.LastAnswer, a.state.LastID.Rows = state.OurRows, false
	if warning != nil {
		a.state.LastAnswer, a.state.LastError = state.OurTableRows, warning
	}
	return nil
}

// kindOf is the kind of a text that is answered here.
func kindOf(st *statement.Statement) stats.Kind {
	kind := stats.KindHere
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
func (a *answers) form(binary bool) (protocol.Form, error) {
	f := protocol.Form{Capabilities: a.at.login.Capabilities, Status: a.state.Status, Binary: binary}
	if !a.mayOmitMetadata() {
		return f, nil
	}
	c, err := a.at.Attach()
	if err != nil {
		return f, err
	}
	row, err := a.at.AskRow(c, "SELECT @@resultset_metadata", 1, "resultset_metadata")
	if err != nil {
		return f, err
	}
	f.NoMetadata = string(row[0]) == "NONE"
	return f, nil
}

// mayOmitMetadata says whether resultset_metadata may be NONE, which the server knows.
func (a *answers) mayOmitMetadata() bool {
	return a.state.Metadata && a.at.login.Capabilities.Has(protocol.OptionalMetadata)
}

// limitsRows says whether sql_select_limit is set, and there is a server that obeys it.
func (a *answers) limitsRows() bool { return plan.LimitsRows(a.state, a.at.routes.Default() != nil) }

// limitedToNothing says whether sql_select_limit, which is set, is 0: a SELECT then
// gives no row and evaluates nothing. With any other limit a row is one row.
func (a *answers) limitedToNothing() (bool, error) {
	c, err := a.at.Attach()
	if err != nil {
		return false, err
	}
	rows, err := a.at.Ask(c, "SELECT 1") // which is limited, too
	return len(rows) == 0, err
}
