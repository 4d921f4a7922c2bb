package session

import (
	"cmp"
	"encoding/hex"
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// Statements that are prepared as SQL text (PREPARE s FROM '...', EXECUTE IMMEDIATE) go to the
// server unchanged. Those that would take numbers are refused: the driver can prepare them.

// preparedTexts are the statements that a session has prepared as text, by their names in lower
// case.
type preparedTexts map[string]preparedText

// maxPreparedName bounds a statement's name, in bytes, as servers bound the names of tables.
const maxPreparedName = 256

// full returns an error if the set has no room for another statement.
func (pt preparedTexts) full(name string) error {
	if len(name) > maxPreparedName {
		return protocol.NotSupported("the name of a prepared statement with more than %d bytes is not supported: use a shorter one", maxPreparedName)
	}
	if _, again := pt[name]; again || len(pt) < maxPrepared {
		return nil
	}
	return errTooManyPrepared
}

// preparedText is a statement that is prepared as text.
type preparedText struct {
	inserts   insertsInto // see stillBound
	explained bool        // see statement.Statement.ExplainsID
	runs      statement.Runs
}

// preparesText handles PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE PREPARE.
func (t *texts) preparesText(sql []byte) error {
	if t.at.routes.Default == nil {
		return t.delivery.single(sql)
	}
	d, ok := statement.ReadDynamic(sql, t.state.Mode)
	switch kind := t.planning.stmt.Kind; {
	case kind == statement.Execute:
		if err := t.mayExecuteText(d.Name); err != nil {
			return err
		}
		return t.delivery.single(sql)
	case kind == statement.Deallocate:
		err := t.delivery.single(sql)
		if err == nil && t.at.cur != nil && t.at.cur.Answer.ErrCode == 0 {
			delete(t.named, d.Name)
		}
		return err
	case !ok:
		if bound, err := t.planning.boundHere(); err != nil {
			return err
		} else if !bound {
			if err := t.preparesUnseen(); err != nil {
				return err
			}
			return t.delivery.single(sql)
		}
		return protocol.NotSupported("this form of PREPARE or EXECUTE IMMEDIATE is not supported where columns are filled from sequences: " +
			"put the text into a user variable first (SET @q = ...), or let the driver prepare it")
	}
	prepared, err := t.planning.mayPrepare(sql, &d)
	if err != nil {
		return err
	}
	if err := t.named.full(d.Name); err != nil {
		return err
	}
	t.relay.explained = prepared.explained
	t.planning.read(sql, t.state.Mode)
	if t.planning.stmt.Kind == statement.ExecuteImmediate {
		t.planning.stmt.Runs = prepared.runs
	}
	if len(t.planning.stmt.Calls) > 0 { // in USING
		err = t.delivery.single(sql)
	} else {
		err = t.delivery.passOn(sql)
	}
	if err != nil || t.planning.stmt.Kind != statement.Prepare {
		return err
	}
	if t.at.cur == nil || t.at.cur.Answer.ErrCode != 0 {
		delete(t.named, d.Name) // a failed PREPARE removes the name
		return nil
	}
	if t.named == nil {
		t.named = make(preparedTexts)
	}
	t.named[d.Name] = prepared
	return nil
}

// mayExecuteText refuses EXECUTE of a statement whose tables may have been bound since. It does not
// look at what a routine has prepared, nor at the INSERTs in a routine.
func (t *texts) mayExecuteText(name string) error {
	prepared, exists := t.named[name]
	if !exists {
		return t.stillBoundHere(&t.unseen)
	}
	t.relay.explained = prepared.explained
	err := t.stillBoundHere(&prepared.inserts)
	t.named[name] = prepared
	return err
}

// mayExecuteAny is mayExecuteText for a text that may execute any statement.
func (t *texts) mayExecuteAny() error {
	for name, prepared := range t.named {
		if err := t.stillBoundHere(&prepared.inserts); err != nil {
			return err
		}
		t.named[name] = prepared
	}
	return t.stillBoundHere(&t.unseen)
}

// stillBoundHere is stillBound for a statement that is prepared as text. Such a statement keeps the
// session on its shard, so the bindings on other shards do not matter.
func (t *texts) stillBoundHere(in *insertsInto) error {
	if in.none() {
		return nil
	}
	if err := t.at.waitOutPause(); err != nil {
		return err
	}
	if bound, err := t.planning.boundHere(); !bound {
		return err
	}
	return t.planning.stillBound(in)
}

// preparesUnseen records that a text prepares an unread statement under any name.
func (t *texts) preparesUnseen() error {
	bound, err := t.planning.bound()
	if err != nil {
		return err
	}
	unseen := insertsInto{others: true, bound: bound}
	for name, prepared := range t.named {
		if prepared.inserts.none() {
			prepared.inserts = unseen
		}
		prepared.inserts.others = true
		t.named[name] = prepared
	}
	if t.unseen.none() {
		t.unseen = unseen
	}
	return nil
}

// mayPrepare refuses an inner text that takes numbers, or may insert rows and is not understood.
func (p *planning) mayPrepare(sql []byte, d *statement.Dynamic) (in preparedText, err error) {
	text, mode := d.Text, p.state.Mode
	if d.Variable {
		if text, err = p.variableText(sql, d); text == nil || err != nil {
			bound, unknown := p.bound()
			return preparedText{runs: statement.RunsOthers, inserts: insertsInto{others: true, bound: bound}}, cmp.Or(err, unknown)
		}
		if !ascii(text) && !plan.UTF8Charset(p.state.Charset) {
			mode.Charset = lex.Unsupported
		}
	}
	st := &p.stmt
	p.read(text, mode)
	const where = "in a text prepared with PREPARE or EXECUTE IMMEDIATE"
	if err := p.refuseInside(st, p.state.Charset, where); err != nil {
		return in, err
	}
	if err := p.waitForRows(); err != nil {
		return in, err
	}
	if hides, err := p.mayHideInsert(text); err != nil {
		return in, err
	} else if hides {
		return in, errUnread
	}
	in.explained, in.runs = st.ExplainsID(), st.Runs
	if in.inserts, err = p.insertsOf(); err != nil {
		return in, err
	}
	if bound, err := p.boundTables(); err != nil {
		return in, err
	} else if bound {
		fills, err := p.fillsText(text)
		if err != nil {
			return in, err
		}
		if fills {
			return in, protocol.NotSupported("an INSERT into a table whose column is filled from a sequence, %s, is not supported: send it as a statement, or let the driver prepare it", where)
		}
	}
	if len(st.Calls) == 0 && st.Refusal == "" {
		return in, nil
	}
	a, err := p.planCalls(nil, text, plan.Inside)
	if err != nil {
		return in, err
	}
	if takesNumbers(a) {
		return in, protocol.NotSupported("NEXTVAL, LASTVAL or SETVAL %s is not supported: send it as a statement, or let the driver prepare it", where)
	}
	return in, nil
}

// fillsText reports whether the text just analysed would get keys.
func (p *planning) fillsText(text []byte) (bool, error) {
	f, err := p.planFilling(text, false)
	if f == nil || err != nil {
		return false, err
	}
	t := p.stmt.Table()
	if t == nil || len(f.Keys) == 0 {
		return true, nil
	}
	c, err := p.at.Attach()
	if err != nil {
		return false, err
	}
	// The server reports a missing column only when it runs the text.
	of, err := p.askColumns(c, string(text[t.Start:t.End]), p.stmt.ReadsOfLast())
	if err != nil {
		return false, err
	}
	same := p.sameColumn(f.Keys[0].Binding.Column)
	return plan.ContainsName(of.Names, same) || plan.ContainsName(of.More, same), nil
}

// variableText returns the text in a user variable, or nil if the server should read it alone. The
// question changes FOUND_ROWS(). So without bound columns variableText first lets the server
// prepare the text, and asks only if that fails, as it does for NEXTVAL('s').
func (p *planning) variableText(sql []byte, d *statement.Dynamic) ([]byte, error) {
	c, err := p.at.Attach()
	if err != nil {
		return nil, err
	}
	if bound, err := p.boundHere(); !bound && err == nil { // with bound columns the text decides
		if p.stmt.Kind == statement.ExecuteImmediate {
			return nil, nil
		}
		var refused *protocol.ServerError
		if _, err := p.at.Ask(c, string(sql)); err == nil || !errors.As(err, &refused) {
			return nil, err
		}
	}
	text, err := p.textOfVariable(c, sql[d.TextStart:d.TextEnd])
	if err != nil || text == nil {
		return nil, err
	}
	if !p.state.ReadsAlike(text) {
		if err := p.fetchMode(text); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// textOfVariable returns a user variable's value in UTF-8, nil for NULL.
func (f *facts) textOfVariable(c *backend.Conn, name []byte) ([]byte, error) {
	row, err := f.at.AskRow(c, "SELECT HEX(CONVERT("+string(name)+" USING utf8mb4)), "+string(name)+" IS NULL", 2, "a user variable")
	switch {
	case err != nil:
		return nil, err
	case row[0] == nil && string(row[1]) == "0": // text that only the server can read
		bound, err := f.boundHere()
		if bound {
			err = errUnread
		}
		return nil, err
	case row[0] == nil:
		return nil, nil
	}
	return hex.DecodeString(string(row[0]))
}
