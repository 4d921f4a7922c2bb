package proxy

import (
	"encoding/hex"
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// A statement that is prepared as text (PREPARE s FROM '...') and takes numbers is kept
// here. At each EXECUTE its text goes to the server with new numbers in it, prepared under
// a name of ours, and that is executed. Under the client's name the server has the text
// with mistakes where the numbers belong: what runs there unseen, in a procedure, fails,
// and uses no number twice.

// numbersName is what the texts with numbers are prepared as, one after the other.
const numbersName = "seqproxy: numbers"

// Bounds of what a session may have prepared as text.
const (
	maxDynamic     = 256      // statements
	maxDynamicText = 64 << 10 // bytes of one with numbers
	maxDynamicAll  = 1 << 20  // bytes of all of them
)

// dynamicSet is what a session has prepared as text, by names in small letters.
type dynamicSet struct {
	byName map[string]*dynamicText
	size   int // bytes of texts
	// doubts counts what may have prepared others under these names.
	doubts int
	// readings counts what may have changed how texts are read.
	readings int
}

// dynamicText is a statement that was prepared as text.
type dynamicText struct {
	text     []byte // nil: has no numbers, and is known to change nothing here
	mode     statement.Mode
	charset  string
	schema   string
	doubts   int // of the set when it was prepared
	readings int
	inserts  insertsInto // of one without numbers
}

// holdsNumbers says whether a statement with numbers is prepared.
func (d *dynamicSet) holdsNumbers() bool { return d != nil && d.size > 0 }

// doubt takes note that the names may have been given to others.
func (d *dynamicSet) doubt() {
	if d != nil {
		d.doubts++
	}
}

// ran takes note of a statement that is about to run.
func (d *dynamicSet) ran(kind statement.Kind, words statement.Words) {
	const hidden = statement.Opaque | statement.CallsProcedure
	switch kind {
	case statement.Other, statement.Execute, statement.ExecuteImmediate:
		d.doubts++
		d.readings++
		return
	}
	if words&hidden != 0 || kind == statement.Multi && words&statement.SQLPrepare != 0 {
		d.doubts++
	}
	if words&(hidden|statement.ChangesReading) != 0 {
		d.readings++
	}
}

func (d *dynamicSet) forget(name string) {
	if d == nil {
		return
	}
	if t := d.byName[name]; t != nil {
		d.size -= len(t.text)
		delete(d.byName, name)
	}
}

// keep remembers a statement without numbers if it fits, and one with numbers, for which
// fits has said that it does.
func (d *dynamicSet) keep(name string, t *dynamicText) {
	d.forget(name)
	if len(d.byName) >= maxDynamic {
		return
	}
	d.byName[name] = t
	d.size += len(t.text)
}

func (d *dynamicSet) fits(name string, size int) bool {
	count, all := len(d.byName), d.size+size
	if t := d.byName[name]; t != nil {
		count, all = count-1, all-len(t.text)
	}
	return count < maxDynamic && all <= maxDynamicAll && size <= maxDynamicText
}

// dynamically handles PREPARE, EXECUTE, EXECUTE IMMEDIATE and DEALLOCATE PREPARE.
func (s *session) dynamically(sql []byte) error {
	if s.routes.Default() == nil {
		return s.single(sql)
	}
	kind := s.stmt.Kind
	d, ok := statement.ReadDynamic(sql, s.state.mode)
	set := s.state.dynamic
	switch {
	case !ok && set.holdsNumbers():
		return notSupported("this form of PREPARE, EXECUTE or DEALLOCATE, while a statement is prepared that has NEXTVAL")
	case !ok:
		set.doubt()
		return s.single(sql)
	case d.Name == numbersName:
		return notSupported("the name %s for a prepared statement", numbersName)
	case kind == statement.Prepare && d.Variable:
		return s.prepareVariable(sql, d)
	case kind == statement.Prepare:
		return s.prepareText(sql, d, d.Text)
	case kind == statement.ExecuteImmediate && !d.Variable:
		return s.executeImmediate(sql, d)
	case kind == statement.Deallocate:
		err := s.single(sql)
		if err == nil && s.cur != nil && s.cur.Answer.ErrCode == 0 {
			set.forget(d.Name)
		}
		return err
	case kind == statement.Execute && set != nil && set.byName[d.Name] != nil:
		t := set.byName[d.Name]
		if t.text != nil {
			return s.executeText(sql, d, t)
		}
		if err := s.stillBound(&t.inserts); err != nil { // also if it may be another by now: it can be prepared again
			return err
		}
		doubts, readings := set.doubts, set.readings
		err := s.single(sql)
		if t.doubts == doubts {
			set.doubts, set.readings = doubts, readings
		}
		return err
	}
	return s.single(sql)
}

// numbersIn analyses a text that is inside another, and says what becomes of it. What
// served is false for stays as it is.
func (s *session) numbersIn(text []byte, mode statement.Mode, charset string) (plan callPlan, served bool, err error) {
	st := &s.stmt
	st.Analyze(text, mode)
	if err := s.refuseInside(st, charset, "in a text prepared with PREPARE or EXECUTE IMMEDIATE"); err != nil {
		return plan, false, err
	}
	if len(st.Tables) > 0 && s.boundTables() {
		if s.fill, err = s.keysIn(text); err != nil {
			return plan, false, err
		}
		defer func() { s.fill = nil }()
		plan.fill, served = s.fill, s.fill != nil
	}
	if len(st.Calls) == 0 && st.Refusal == "" {
		return plan, served, nil
	}
	if err := s.convertNames(st, charset); err != nil {
		return plan, false, err
	}
	if plan, err = s.planCalls(st, false); err != nil {
		return plan, false, err
	}
	for i := range st.Calls {
		served = served || plan.served[i]
	}
	if plan.perRow {
		err = s.planRowsIn(text, &plan)
	}
	return plan, served, err
}

// planRowsIn completes the plan of a text inside another whose numbers are not one per call.
func (s *session) planRowsIn(text []byte, plan *callPlan) (err error) {
	if isCounted(&s.stmt, *plan) {
		plan.counted, err = s.planCounted(&s.stmt, text, *plan)
		return err
	}
	plan.rows, err = s.planRows(&s.stmt, text, plan.served)
	return err
}

// keysIn says which keys are filled in in a text that is inside another; nil is none. Its
// parameters are values that only the server knows.
func (s *session) keysIn(text []byte) (*filling, error) {
	if err := s.readsBefore(); err != nil {
		return nil, err
	}
	f, err := s.planFilling(text, false)
	if f == nil || err != nil {
		return nil, err
	}
	if f.query != nil {
		return nil, refusedQuery(f.query.binding, notSupported("in a text prepared with PREPARE or EXECUTE IMMEDIATE: let the driver prepare it"))
	}
	c, err := s.attach()
	if err != nil {
		return nil, err
	}
	k, t := &f.keys[0], s.stmt.Table() // a text of several statements is no server's
	if t == nil || k.params {
		return nil, notSupported("the key %s.%s, which is filled from sequence %s, as a parameter in a text prepared with PREPARE or EXECUTE IMMEDIATE is not supported: "+
			"leave the column out, or let the driver prepare it", k.binding.Table, k.binding.Column, k.binding.Sequence)
	}
	// The server says only when it prepares the text, and in an error, that it has no such column.
	of, err := s.columnsOfTable(c, text, t)
	if err != nil {
		return nil, err
	}
	if same := s.sameColumn(k.binding.Column); !containsName(of.names, same) && !containsName(of.more, same) {
		return nil, nil // a table of the same name
	}
	return f, nil
}

// readsBefore refuses a statement that reads what the last one left, which a PREPARE of
// ours before it changes.
func (s *session) readsBefore() error {
	if s.stmt.Words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) == 0 {
		return nil
	}
	return notSupported("NEXTVAL beside ROW_COUNT(), FOUND_ROWS() or warnings in a statement prepared with PREPARE")
}

// prepareText handles a PREPARE of text, which d names or has.
func (s *session) prepareText(sql []byte, d statement.Dynamic, text []byte) error {
	plan, served, err := s.numbersIn(text, s.state.mode, s.state.charset)
	if err != nil {
		return err
	}
	st := &s.stmt
	if !served {
		const more = statement.Opaque | statement.CallsProcedure | statement.ChangesReading | statement.SQLPrepare | statement.VersionedComment
		harmless := st.Kind != statement.Other && st.Words&more == 0
		inserts := s.insertsOf()
		st.Analyze(sql, s.state.mode)
		if err := s.passOn(sql); err != nil {
			return err
		}
		s.state.dynamic.forget(d.Name)
		if harmless && s.cur.Answer.ErrCode == 0 {
			set := s.dynamicSet()
			set.keep(d.Name, &dynamicText{doubts: set.doubts, inserts: inserts})
		}
		return nil
	}
	if err := s.readsBefore(); err != nil {
		return err
	}
	if err := s.knownAtPrepare(st, plan); err != nil {
		return err
	}
	set := s.dynamicSet()
	if !set.fits(d.Name, len(text)) {
		return notSupported("more than %d statements prepared with PREPARE, or more than %d bytes of one with NEXTVAL, or %d of all: DEALLOCATE some, or let the driver prepare them",
			maxDynamic, maxDynamicText, maxDynamicAll)
	}
	for i := range len(d.Name) {
		if d.Name[i] >= 0x80 {
			return notSupported("NEXTVAL in a statement prepared under a name that is not ASCII")
		}
	}
	subs := s.substitutions(st, plan, false)
	for i := range subs {
		if plan.served[i] {
			subs[i].Replacement = statement.AsMistake
		}
	}
	if plan.fill != nil {
		plan.fill.mistakes = true
		plan.fill.spell()
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	t := &dynamicText{text: append([]byte{}, text...), mode: s.state.mode, charset: s.state.charset, schema: s.state.schema, doubts: set.doubts, readings: set.readings}
	if err := s.insertText(sql, d.TextStart, d.TextEnd, st.Splice(nil, text, subs, plan.fill.texts()), t.mode); err != nil {
		return err
	}
	s.state.pin(PinSQLPrepare)
	if err := s.sendOwn(c); err != nil {
		return err
	}
	if set.forget(d.Name); c.Answer.ErrCode == 0 { // if not, the name is nobody's now
		set.keep(d.Name, t)
	}
	return nil
}

// insertText makes s.own the command sql with the part from start to end replaced by a
// literal that means text.
func (s *session) insertText(sql []byte, start, end int, text []byte, mode statement.Mode) error {
	s.own = append(s.own[:0], 0, 0, 0, 0, byte(protocol.ComQuery))
	s.own = append(s.own, s.attributes...)
	s.own = append(s.own, sql[:start]...)
	var ok bool
	if s.own, ok = statement.AppendLiteral(s.own, text, mode); !ok {
		return notSupported("NEXTVAL in a text that is prepared with PREPARE and is not ASCII, in the character set %s", s.state.charset)
	}
	return s.endOwn(sql[end:])
}

// endOwn appends rest to s.own and gives that its header.
func (s *session) endOwn(rest []byte) error {
	s.own = append(s.own, rest...)
	size := len(s.own) - protocol.HeaderSize
	if size >= protocol.MaxFragment {
		return errTooLong
	}
	protocol.PutHeader(s.own, size, 0)
	return nil
}

// dynamicSet returns the session's set, which it has from the first PREPARE on.
func (s *session) dynamicSet() *dynamicSet {
	if s.state.dynamic == nil {
		s.state.dynamic = &dynamicSet{byName: make(map[string]*dynamicText)}
	}
	return s.state.dynamic
}

// prepareVariable handles PREPARE s FROM @v. Only the server knows the text. It is asked
// for it if it cannot prepare it: no server takes NEXTVAL of a name in quotes.
func (s *session) prepareVariable(sql []byte, d statement.Dynamic) error {
	c, err := s.attach()
	if err != nil {
		return err
	}
	s.state.pin(PinSQLPrepare)
	text, err := s.refusedText(c, sql, d)
	if err != nil {
		return err
	}
	if text != nil {
		return s.prepareText(sql, d, text)
	}
	s.state.dynamic.forget(d.Name)
	return s.passOn(sql) // to be answered as it was
}

// refusedText prepares the text of a user variable on c and returns it, if the server
// refuses it and it can be read. To ask for it changes FOUND_ROWS().
func (s *session) refusedText(c *backend.Conn, sql []byte, d statement.Dynamic) ([]byte, error) {
	var refused *protocol.ServerError
	if _, err := s.ownQuery(c, string(sql)); err == nil || !errors.As(err, &refused) {
		return nil, err
	}
	row, err := s.ownRow(c, "SELECT HEX(CONVERT("+string(sql[d.TextStart:d.TextEnd])+" USING utf8mb4))", 1, "a user variable")
	if err != nil || row[0] == nil {
		return nil, err
	}
	text, err := hex.DecodeString(string(row[0]))
	if err != nil || s.state.charset != "utf8mb4" && !ascii(text) {
		return nil, err
	}
	if s.state.modeUnknown || s.state.quotesUnknown {
		if err := s.readable(text); err != nil {
			return nil, err
		}
		s.stmt.Analyze(sql, s.state.mode)
	}
	return text, nil
}

// executeText handles the EXECUTE of a statement with numbers.
func (s *session) executeText(sql []byte, d statement.Dynamic, t *dynamicText) error {
	set := s.state.dynamic
	switch {
	case t.doubts != set.doubts:
		return notSupported("EXECUTE of a statement with NEXTVAL after CALL, EXECUTE or something not understood, which may have prepared another under this name: PREPARE it again")
	case t.readings != set.readings, t.mode != s.state.mode, t.charset != s.state.charset, t.schema != s.state.schema:
		return notSupported("EXECUTE of a statement with NEXTVAL after the schema, the sql_mode or a character set of the session may have changed: PREPARE it again")
	}
	if s.state.beforeTransaction() {
		return notSupported("EXECUTE of a statement with NEXTVAL between SET TRANSACTION and its transaction: send START TRANSACTION first")
	}
	if err := s.onlyLastID(); err != nil {
		return err
	}
	return s.executeNumbered(t.text, t.mode, t.charset, func(c *backend.Conn, text []byte) error {
		prepare, ok := statement.AppendLiteral([]byte("PREPARE `"+numbersName+"` FROM "), text, t.mode)
		if !ok {
			return notSupported("NEXTVAL in a text that is prepared with PREPARE and is not ASCII, in the character set %s", t.charset)
		}
		if _, err := s.ownQuery(c, string(prepare)); err != nil {
			return err
		}
		s.own = append(s.own[:0], 0, 0, 0, 0, byte(protocol.ComQuery))
		s.own = append(s.own, s.attributes...)
		s.own = append(s.own, sql[:d.NameStart]...)
		s.own = append(s.own, "`"+numbersName+"`"...)
		return s.endOwn(sql[d.NameEnd:])
	})
}

// executeImmediate handles EXECUTE IMMEDIATE of a literal.
func (s *session) executeImmediate(sql []byte, d statement.Dynamic) error {
	outer := s.onlyLastID()
	_, served, err := s.numbersIn(d.Text, s.state.mode, s.state.charset)
	if err == nil && served {
		err = outer
	}
	if err != nil {
		return err
	}
	if !served {
		s.stmt.Analyze(sql, s.state.mode)
		return s.single(sql)
	}
	return s.executeNumbered(d.Text, s.state.mode, s.state.charset, func(_ *backend.Conn, text []byte) error {
		return s.insertText(sql, d.TextStart, d.TextEnd, text, s.state.mode)
	})
}

// onlyLastID refuses an EXECUTE of a statement with numbers that has calls in its USING
// which would be replaced as well.
func (s *session) onlyLastID() error {
	for i := range s.stmt.Calls {
		switch s.stmt.Calls[i].Func {
		case statement.LastInsertID, statement.LastInsertIDVariable:
		default:
			return notSupported("NEXTVAL or CONNECTION_ID() in EXECUTE ... USING of a statement that has NEXTVAL: put it into a variable first")
		}
	}
	return nil
}
