package session

import (
	"bytes"
	"fmt"
	"strconv"

	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement"
)

// answers makes the answers that the proxy gives in place of a server.
type answers struct {
	*ground
	planning *planning
}

// answerSelect answers a SELECT of numbers. The answer stands for the same SELECT with
// LAST_INSERT_ID(n) for each number n, so LAST_INSERT_ID() is then the first of them. p is the
// prepared statement, or nil.
func (a *answers) answerSelect(st *statement.Statement, sql []byte, action *plan.Action, p *prepared) error {
	a.at.tally.Becomes(kindOf(st))
	if err := a.at.ensureOpen(); err != nil {
		return err
	}
	form, err := a.form(p != nil)
	if err != nil {
		return err
	}
	if p != nil && a.limitsRows() {
		if none, err := a.limitedToNothing(); err != nil {
			return err
		} else if none {
			r := a.beginSelect(form, st, sql, nil, p)
			a.client.out = r.End()
			a.state.Selected(a.at.likeMariaDB())
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
	r := a.beginSelect(form, st, sql, values, p)
	r.BeginRow(len(st.Items))
	for i := range st.Items {
		v := &values[st.Items[i].FirstCall]
		switch {
		case v.Null:
			r.Null(i)
		case v.Binary || v.Text != "":
			r.Text(v.Text)
		case st.Items[i].Func == statement.CallConnectionID && a.at.likeMariaDB():
			r.Uint32(uint32(v.Value)) // the column is an INT
		default:
			r.Uint64(v.Value)
		}
	}
	r.EndRow()
	a.client.out = r.End()
	a.state.LastID.Rows = false
	a.state.Selected(a.at.likeMariaDB())
	if warning != nil {
		a.state.LastAnswer, a.state.LastError = state.OurTableRows, warning
	}
	return nil
}

// answerInOrder is answerSelect for a text. It queues the answer behind those to earlier commands
// and waits for none. In a transaction it waits all the same, because the answer has the session's
// status and an earlier command may end the transaction.
func (a *answers) answerInOrder(st *statement.Statement, sql []byte, action *plan.Action) error {
	batch := &a.relay.batch
	if batch.size == 0 || a.state.InTransaction() || !a.state.Status.Has(protocol.Autocommit) || batch.full() {
		if err := a.relay.settle(); err != nil {
			return err
		}
		return a.answerSelect(st, sql, action, nil)
	}
	mark := len(a.client.out)
	if err := a.answerSelect(st, sql, action, nil); err != nil {
		return err
	}
	a.numbers.Pending = ""
	batch.addOurs(a.client.out[mark:])
	a.client.out = a.client.out[:mark]
	return nil
}

// beginSelect begins the answer to a SELECT of numbers, in the memory of client.out. values are
// those of its calls, or nil if it has no row. Columns have the names that PREPARE gave them, or
// those of the text.
func (a *answers) beginSelect(form protocol.Form, st *statement.Statement, sql []byte, values []keys.Number, p *prepared) protocol.Result {
	mariaDB := a.at.likeMariaDB()
	if p != nil {
		p.redefines(&form, st, values, mariaDB)
		r := protocol.NewResult(a.client.out, a.client.packetNum, form)
		r.Columns(p.columns)
		return r
	}
	r := protocol.NewResult(a.client.out, a.client.packetNum, form)
	r.Head(len(st.Items))
	for i := range st.Items {
		item := &st.Items[i]
		c := alone.Column(item.Func, alone.InText, &values[item.FirstCall], mariaDB)
		r.Define(&c, st.ColumnName(sql, *item))
	}
	return r
}

// kindOf returns the kind of a text that the proxy answers.
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

// form returns the form that the server's answer would have, with the last known status. binary
// chooses the form of an answer to an execution.
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

// mayOmitMetadata reports whether resultset_metadata may be NONE. Only the server can say whether
// it is.
func (a *answers) mayOmitMetadata() bool {
	return a.state.Metadata && a.at.login.Capabilities.Has(protocol.OptionalMetadata)
}

// limitsRows reports whether sql_select_limit is set, and there is a server that obeys it.
func (a *answers) limitsRows() bool { return plan.LimitsRows(a.state, a.at.routes.Default != nil) }

// limitedToNothing reports whether sql_select_limit is 0: a SELECT then gives no row and evaluates
// nothing. Any other limit lets one row through.
func (a *answers) limitedToNothing() (bool, error) {
	c, err := a.at.Attach()
	if err != nil {
		return false, err
	}
	rows, err := a.at.Ask(c, "SELECT 1") // the limit holds for this, too
	return len(rows) == 0, err
}

// table answers with a result of the proxy's own. p is the prepared statement, or nil.
func (a *answers) table(t *protocol.Table, p *prepared) error {
	if err := a.at.ensureOpen(); err != nil {
		return err
	}
	form, err := a.form(p != nil)
	if err != nil {
		return err
	}
	if p != nil {
		p.defines(&form, t.Columns)
	}
	a.state.LastAnswer = state.OurOK
	if len(t.Columns) > 0 {
		a.state.LastAnswer = state.OurRows
	}
	a.warn(&form, t.Warning)
	a.client.out = t.Append(a.client.out, a.client.packetNum, form)
	return nil
}

// done answers OK for a statement that concerns no server.
func (a *answers) done() {
	a.state.LastAnswer = state.OurOK
	a.relay.reply(protocol.OK{})
}

// warn records that the statement just answered began the warnings anew. w is its warning, or nil.
// The answer counts it, and SHOW WARNINGS has it.
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

// showNotice answers SHOW WARNINGS after a statement that the server answered and that took numbers
// of a sequence near its end.
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
			return fmt.Errorf("shard %s: SHOW WARNINGS has the code %q", c.Shard.Name(), row[1])
		}
		t.Rows = append(t.Rows, []any{string(row[0]), code, string(row[2])})
	}
	t.Rows = append(t.Rows, []any{"Warning", uint64(notice.Code), notice.Message})
	if err := a.table(t, nil); err != nil {
		return err
	}
	a.state.LastAnswer, a.state.Notice = state.ByServer, notice // SHOW WARNINGS keeps them
	return nil
}

// showsAllWarnings reports whether a text is SHOW WARNINGS and nothing else.
func showsAllWarnings(sql []byte) bool {
	words := bytes.Fields(bytes.TrimRight(sql, "; \t\r\n"))
	return len(words) == 2 && bytes.EqualFold(words[0], []byte("show")) && bytes.EqualFold(words[1], []byte("warnings"))
}

func isWarning(e *protocol.ServerError) bool { return e.State == protocol.StateWarning }
