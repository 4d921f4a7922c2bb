package proxy

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
func (o *answers) answerSelect(st *statement.Statement, sql []byte, a *plan.Action, p *prepared) error {
	o.at.tally.Becomes(kindOf(st))
	form, err := o.form(p != nil)
	if err != nil {
		return err
	}
	if p != nil && o.limitsRows() {
		if none, err := o.limitedToNothing(); err != nil {
			return err
		} else if none {
			columns := alone.Columns(st, sql, alone.AtExecute, nil, nil, o.at.likeMariaDB())
			p.defines(&form, columns)
			r := protocol.NewResult(o.client.out, o.client.packetNum, form)
			r.Columns(columns)
			o.client.out = r.End()
			o.state.LastAnswer = state.OurRows
			return nil
		}
	}
	values, err := o.numbers.Take(a.Slots)
	if err != nil {
		return err
	}
	warning := o.relay.takeNotice()
	if warning != nil {
		form.Warnings = 1
	}
	moved := false
	before, _ := o.state.LastID.Known()
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval:
			if !moved && values[i].Text == "" {
				moved = true
				o.state.LastID.Given(values[i].Value)
			}
		case statement.Lastval, statement.Setval:
		case statement.CallConnectionID:
			values[i].Value = uint64(o.at.id)
		default:
			values[i].Value = before
		}
	}
	columns := alone.Columns(st, sql, alone.InText, values, values, o.at.likeMariaDB())
	if p != nil {
		columns = alone.Columns(st, sql, alone.AtExecute, nil, values, o.at.likeMariaDB())
		p.defines(&form, columns)
	}
	r := protocol.NewResult(o.client.out, o.client.packetNum, form)
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
		case st.Items[i].Func == statement.CallConnectionID && o.at.likeMariaDB():
			row[i] = uint32(v.Value) // of the type that columnsOf tells
		default:
			row[i] = v.Value
		}
	}
	r.Row(row...)
	o.client.out = r.End()
	o.state.LastAnswer, o.state.LastID.Rows = state.OurRows, false
	if warning != nil {
		o.state.LastAnswer, o.state.LastError = state.OurTableRows, warning
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
func (o *answers) form(binary bool) (protocol.Form, error) {
	f := protocol.Form{Capabilities: o.at.login.Capabilities, Status: o.state.Status, Binary: binary}
	if !o.mayOmitMetadata() {
		return f, nil
	}
	c, err := o.at.Attach()
	if err != nil {
		return f, err
	}
	row, err := o.at.AskRow(c, "SELECT @@resultset_metadata", 1, "resultset_metadata")
	if err != nil {
		return f, err
	}
	f.NoMetadata = string(row[0]) == "NONE"
	return f, nil
}

// mayOmitMetadata says whether resultset_metadata may be NONE, which the server knows.
func (o *answers) mayOmitMetadata() bool {
	return o.state.Metadata && o.at.login.Capabilities.Has(protocol.OptionalMetadata)
}

// limitsRows says whether sql_select_limit is set, and there is a server that obeys it.
func (o *answers) limitsRows() bool { return plan.LimitsRows(o.state, o.at.routes.Default() != nil) }

// limitedToNothing says whether sql_select_limit, which is set, is 0: a SELECT then
// gives no row and evaluates nothing. With any other limit a row is one row.
func (o *answers) limitedToNothing() (bool, error) {
	c, err := o.at.Attach()
	if err != nil {
		return false, err
	}
	rows, err := o.at.Ask(c, "SELECT 1") // which is limited, too
	return len(rows) == 0, err
}
