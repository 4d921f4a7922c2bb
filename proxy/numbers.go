package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// callPlan says what becomes of the calls in a text.
type callPlan struct {
	served  []bool // the calls whose sequences are served here
	own     bool   // the whole text can be answered here
	rewrite bool   // some calls are replaced
	perRow  bool   // some numbers are not one per call: see fillRows
	fill    *filling
	rows    *rowNumbers // the columns that are filled; nil if none are
	counted *counted    // what the server counts off; nil if it counts nothing
}

// planCalls decides about a text with calls. Names that are not served are an
// error, or left to the server, as the configuration says; a place where NEXTVAL
// cannot be given a number is an error. Only the server can limit the rows of a text;
// a prepared one is held to sql_select_limit when it is executed.
func (s *session) planCalls(st *statement.Statement, prepared bool) (callPlan, error) {
	plan := callPlan{served: make([]bool, len(st.Calls)), fill: s.fill, rewrite: s.fill != nil}
	numbers, all := 0, true
	doubtful, certain := false, false // whether sequences are meant
	for i := range st.Calls {
		call := &st.Calls[i]
		switch call.Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			served, err := s.serves(call)
			if err != nil {
				return plan, err
			}
			if served && !prepared && call.Markers() > 0 {
				if s.srv.opts.Unknown != UnknownRelay {
					return plan, notSupported("a parameter (?) of NEXTVAL, LASTVAL or SETVAL is not supported in a text: prepare it, or write the value")
				}
				served = false
			}
			if served && st.Kind == statement.Values && call.Row == 0 && s.likeMariaDB() {
				return plan, refusedForm("NEXTVAL in the first row of VALUES, which names the columns,")
			}
			if served && call.Place == statement.PlaceNever && call.Markers() > 0 {
				return plan, refusedForm("NEXTVAL with a parameter (?) in EXPLAIN")
			}
			plan.served[i] = served
			if served {
				if call.Name != nil {
					if err := s.mayUse(call.Name); err != nil {
						return plan, err
					}
				}
				numbers++
				plan.perRow = plan.perRow || call.Place != statement.PlaceOnce && call.Place != statement.PlaceNever
			} else {
				all = false
			}
			if served || call.Spelling != statement.AsColumn && call.Spelling != statement.AsSelectValue {
				certain = certain || call.Func == statement.Nextval
			} else {
				doubtful = true
			}
		case statement.CallConnectionID, statement.PseudoThreadID:
			plan.rewrite = plan.rewrite || s.replacesID(st, call)
		}
	}
	if st.Refusal != "" {
		if numbers == 0 && (s.srv.opts.Unknown == UnknownRelay || doubtful && !certain) {
			return callPlan{served: make([]bool, len(st.Calls)), fill: s.fill, rewrite: s.fill != nil}, nil
		}
		return plan, refusedForm(st.Refusal)
	}
	if err := setvalAlone(st, plan); err != nil {
		return plan, err
	}
	if err := lastBesideRows(st, plan); err != nil {
		return plan, err
	}
	plan.rewrite = plan.rewrite || numbers > 0
	if plan.perRow && plan.fill != nil {
		return plan, notSupported("NEXTVAL for each row beside a column that is filled from a sequence is not supported: give its number with NEXTVAL, too")
	}
	if _, later := mixedIDs(st, plan); later {
		return plan, notSupported("NEXTVAL and LAST_INSERT_ID() in one statement that stands behind another is not supported: send it alone")
	}
	plan.own = all && s.answerable(st) && (prepared || !s.limitsRows())
	return plan, nil
}

// knownAtPrepare refuses unknown names when a statement is prepared, as a server
// would, though its numbers are only taken at each execution.
func (s *session) knownAtPrepare(st *statement.Statement, plan callPlan) error {
	for i := range st.Calls {
		if call := &st.Calls[i]; plan.served[i] && call.Form != statement.FormParam && (s.srv.opts.Unknown == UnknownError || call.Func != statement.Nextval) {
			known, err := s.knows(call.Name)
			if err != nil {
				return err
			}
			if !known {
				return &sequence.NameError{Name: string(call.Name), Err: sequence.ErrUnknown}
			}
		}
	}
	return nil
}

// replacesID says whether a call for the connection's id means the id that the
// client knows. Next to the schemas that list a server's connections it is the
// server's own.
func (s *session) replacesID(st *statement.Statement, call *statement.FuncCall) bool {
	return call.Func == statement.CallConnectionID && st.Words&statement.SystemSchema == 0
}

// asked is what a call asks of its sequence.
type asked struct {
	fn    statement.Func
	name  []byte // nil: nothing is asked
	count uint64 // of numbers
	set   *statement.SetvalArgs
}

func askedBy(call *statement.FuncCall) asked {
	return asked{fn: call.Func, name: call.Name, count: call.Count, set: call.Set}
}

// takeFor takes what the calls of a text ask for: values[i] is for call i where served[i].
func (s *session) takeFor(calls []statement.FuncCall, served []bool) (values []number, err error) {
	if len(calls) == 1 && served[0] && calls[0].Func == statement.Nextval && calls[0].Place == statement.PlaceOnce { // nearly always
		return s.takeOne(askedBy(&calls[0]))
	}
	asks := make([]asked, len(calls))
	for i := range calls {
		if served[i] && calls[i].Place != statement.PlaceNever {
			asks[i] = askedBy(&calls[i])
		}
	}
	return s.take(asks)
}

// takeOne is take for one NEXTVAL.
func (s *session) takeOne(a asked) ([]number, error) {
	if err := s.mayUse(a.name); err != nil {
		return nil, err
	}
	first, step, err := s.takeRun(a.name, a.count)
	if err != nil {
		return nil, err
	}
	return []number{{value: first, last: first + (a.count-1)*step}}, nil
}

// number is the value of a call.
type number struct {
	value uint64
	last  uint64 // of the numbers that a NEXTVAL takes
	null  bool
}

// take takes what is asked for: the values of asks, in order. The numbers of one
// sequence are consecutive, however it is spelled.
func (s *session) take(asks []asked) (values []number, err error) {
	if len(asks) == 1 && asks[0].fn == statement.Nextval && asks[0].name != nil {
		return s.takeOne(asks[0])
	}
	last, set := false, false
	for i := range asks {
		if asks[i].name == nil {
			continue
		}
		if err := s.mayUse(asks[i].name); err != nil {
			return nil, err
		}
		last = last || asks[i].fn == statement.Lastval
		set = set || asks[i].fn == statement.Setval
	}
	if set {
		return s.takeInTurn(asks)
	}
	if !last {
		return s.takeNext(asks)
	}
	before, err := s.lastBefore(asks)
	if err != nil {
		return nil, err
	}
	if values, err = s.takeNext(asks); err != nil {
		return nil, err
	}
	return values, s.fillLast(asks, values, before)
}

// takeNext takes the numbers that NEXTVALs ask for.
func (s *session) takeNext(asks []asked) (values []number, err error) {
	values = make([]number, len(asks))
	taken := make([]bool, len(asks))
	for i := range asks {
		name := asks[i].name
		if name == nil || taken[i] || asks[i].fn != statement.Nextval {
			continue
		}
		var places []int // of the names that mean this sequence
		total := uint64(0)
		for j := i; j < len(asks); j++ {
			other := asks[j].name
			if other == nil || taken[j] || asks[j].fn != statement.Nextval {
				continue
			}
			same := bytes.Equal(other, name)
			if !same {
				var err error
				if same, err = s.srv.opts.Sequences.Same(&s.patience, name, other); err != nil {
					return nil, s.patience.over(err)
				}
			}
			if same {
				places = append(places, j)
				total += asks[j].count
			}
		}
		next, step, err := s.takeRun(name, total)
		if err != nil {
			return nil, err
		}
		for _, j := range places {
			values[j].value, values[j].last, taken[j] = next, next+(asks[j].count-1)*step, true
			next += asks[j].count * step
		}
	}
	return values, nil
}

// rewrite sends a text with its calls replaced by their values. The first number is
// spliced as LAST_INSERT_ID(n), so that the server itself makes it the session's,
// if and when it evaluates it; the others as plain numbers of the same type.
func (s *session) rewrite(sql []byte, plan callPlan) error {
	st := &s.stmt
	var previous previousID
	if mixesIDs(st, plan) {
		value, err := s.askPrevious(st.Words)
		if err != nil {
			return err
		}
		previous = previousID{true, value}
	}
	c, err := s.attachWith(st, plan.rows.traits(traitsOf(st)))
	if err != nil {
		return err
	}
	subs := s.substitutions(st, plan, previous.needed)
	// Before numbers are taken for nothing. They may be as long as they can be.
	const call, alias = len("IF(1,CAST(18446744073709551615 AS UNSIGNED),LAST_INSERT_ID(18446744073709551615))"), 1 << 10
	if len(s.attributes)+len(sql)+call*len(st.Calls)+alias*len(st.Items) >= protocol.MaxFragment {
		s.setValues(subs, slices.Repeat([]number{{value: math.MaxUint64}}, len(subs)), math.MaxUint64)
		if s.splice(sql, subs, nil) >= protocol.MaxFragment {
			return errTooLong
		}
	}
	values := slices.Repeat([]number{{value: protocol.Placeholder}}, len(st.Calls))
	if plan.rows == nil {
		if values, err = s.takeFor(st.Calls, plan.served); err != nil {
			return err
		}
	}
	if err := s.takeKeys(plan.fill); err != nil {
		return err
	}
	s.setValues(subs, values, previous.value)
	size := s.splice(sql, subs, plan.fill.texts())
	if size >= protocol.MaxFragment { // by what was filled in
		return errTooLong
	}
	protocol.PutHeader(s.own, size, 0)
	if st.Kind == statement.Set {
		sql = bytes.Clone(sql) // which lies in the buffer that the client fills
	}
	if plan.rows != nil {
		if err := s.sendOwnRows(c, plan.rows, false); err != nil {
			return err
		}
		s.noteDone(c, sql)
		return nil
	}
	switch r, err := s.sendFilled(c, plan.fill); {
	case err != nil:
		return err
	case r != noRemedy:
		return s.refill(c, sql, plan, r)
	}
	s.noteDone(c, sql)
	return nil
}

// setValues gives the substitutions of numbers and of the previous id their values.
func (s *session) setValues(subs []statement.Substitution, values []number, previous uint64) {
	for i := range subs {
		if s.stmt.Calls[i].Place == statement.PlaceNever {
			continue
		}
		switch s.stmt.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			subs[i].Value, subs[i].Null = values[i].value, values[i].null
		case statement.LastInsertID, statement.LastInsertIDVariable:
			subs[i].Value = previous
		}
	}
}

// splice writes the command with the text in s.stmt rewritten, and splices in it, to s.own, but for its
// header, and returns its size without that.
func (s *session) splice(sql []byte, subs []statement.Substitution, splices []statement.Splice) int {
	s.own = append(s.own[:0], 0, 0, 0, 0, byte(protocol.ComQuery))
	s.own = append(s.own, s.attributes...)
	s.own = s.stmt.Splice(s.own, sql, subs, splices)
	return len(s.own) - protocol.HeaderSize
}

// sendOwn sends the command in s.own, in the place of the client's, and relays the
// answer.
func (s *session) sendOwn(c *backend.Conn) error {
	s.state.lastOwn = ownNothing
	return s.exchange(c, s.own, protocol.ShapeResult)
}

// substitutions says what stands in each call's place: in each statement the first
// number is the one that LAST_INSERT_ID() gives afterwards. The values of numbers and of
// the previous id are left to the caller. With previous, those of the first statement are
// replaced that read LAST_INSERT_ID(), which those behind it are left to read.
func (s *session) substitutions(st *statement.Statement, plan callPlan, previous bool) []statement.Substitution {
	subs := make([]statement.Substitution, len(st.Calls))
	further, before := statement.AsUnsigned, statement.AsUnsigned
	switch st.Kind {
	case statement.Select, statement.With, statement.Values, statement.Multi: // columns that somebody sees
		further, before = statement.AsFurther, statement.AsPrevious
	}
	first := -1 // the statement whose first number is in its place
	for i := range st.Calls {
		call := &st.Calls[i]
		switch {
		case plan.served[i] && call.Place == statement.PlaceNever:
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: 1}
		case plan.served[i] && call.Func != statement.Nextval:
			subs[i].Replacement = statement.AsNullable
		case plan.served[i] && plan.rows != nil:
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: protocol.Placeholder}
		case plan.served[i] && call.Statement != first && !plan.fill.leads(call.Statement):
			first = call.Statement
			subs[i].Replacement = statement.AsLastInsertID
		case plan.served[i] && call.Item >= 0: // also in the list of RETURNING
			subs[i].Replacement = statement.AsFurther
		case plan.served[i]:
			subs[i].Replacement = further
		case previous && call.Statement == 0 && (call.Func == statement.LastInsertID || call.Func == statement.LastInsertIDVariable):
			if subs[i].Replacement = before; call.Item >= 0 {
				subs[i].Replacement = statement.AsPrevious
			}
		case s.replacesID(st, call):
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: uint64(s.id)}
		}
	}
	return subs
}

// previousID is the LAST_INSERT_ID() that a statement with NEXTVAL sees: the server
// would give the new number, as soon as it has evaluated it.
type previousID struct {
	needed bool
	value  uint64
}

// askPrevious returns LAST_INSERT_ID() for a statement that takes numbers as well. To
// ask the server changes what it says of the last statement.
func (s *session) askPrevious(words statement.Words) (uint64, error) {
	if value, ok := s.state.lastID.known(); ok {
		return value, nil
	}
	if words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return 0, notSupported("NEXTVAL, LAST_INSERT_ID() and what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
			"in one statement is not supported: keep one of them in a variable first")
	}
	return s.askLastID(s.state.lastID.holder)
}

// mixesIDs says whether a text's first statement takes numbers and reads LAST_INSERT_ID()
// as well.
func mixesIDs(st *statement.Statement, plan callPlan) bool {
	first, _ := mixedIDs(st, plan)
	return first
}

// mixedIDs says whether statements of a text take numbers and read LAST_INSERT_ID() as
// well: the first, or one behind it. Nobody but the server knows what LAST_INSERT_ID() is
// before the latter, since those before may move it while they run.
func mixedIDs(st *statement.Statement, plan callPlan) (first, later bool) {
	index, numbers, reads := 0, plan.fill.disturbs(0), false
	for i := range st.Calls {
		call := &st.Calls[i]
		if call.Statement != index {
			index, reads = call.Statement, false
			numbers = plan.fill.disturbs(index)
		}
		switch call.Func {
		case statement.Nextval:
			numbers = numbers || plan.served[i] && call.Place != statement.PlaceNever
		case statement.LastInsertID, statement.LastInsertIDVariable:
			reads = true
		}
		first = first || index == 0 && numbers && reads
		later = later || index > 0 && numbers && reads
	}
	return first, later
}

// hideParams writes the text of a prepared statement with parameters of ours where
// the calls stood.
func (s *session) hideParams(st *statement.Statement, sql []byte, plan callPlan) (text []byte, hidden []hiddenParam, key *preparedKey) {
	subs := s.substitutions(st, plan, mixesIDs(st, plan))
	for i := range subs {
		call := &st.Calls[i]
		if subs[i].Replacement == statement.Keep || call.Func == statement.CallConnectionID || call.Place == statement.PlaceNever ||
			plan.rows != nil && call.Func == statement.Nextval {
			continue
		}
		subs[i].Param = true
		if plan.counted != nil && plan.served[i] {
			subs[i].Replacement = statement.AsCounted
			hidden = append(hidden, hiddenParam{block: blockBefore}, hiddenParam{block: blockBound}, hiddenParam{block: blockStep})
			continue
		}
		h := hiddenParam{previous: true}
		if plan.served[i] {
			h = hiddenParam{asked: askedBy(call), from: argumentOf(call)}
			h.name = bytes.Clone(h.name)
		}
		hidden = append(hidden, h)
	}
	at := st.HiddenParams(nil, subs)
	for i := range at {
		hidden[i].at = at[i]
	}
	if plan.fill == nil {
		return st.Rewrite(nil, sql, subs), hidden, nil
	}
	key, hidden = s.hideKeys(st, subs, hidden, plan.fill)
	return st.Splice(nil, sql, subs, plan.fill.splices), hidden, key
}

// executeHidden executes a statement whose numbers are parameters of ours.
func (s *session) executeHidden(p *prepared, payload []byte) error {
	c, err := s.connOf(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	// Before anything is taken or asked: the client may have sent nonsense.
	attributes := s.login.Capabilities.Has(protocol.QueryAttributes)
	e, err := s.cutExecution(p, payload, attributes)
	if err == nil && p.rows != nil {
		err = s.rowsExecutable(p, payload)
	}
	if err == nil {
		err = s.fillHidden(c, p, &e, attributes)
	}
	if err != nil {
		if errors.Is(err, errMalformed) {
			err = s.malformed()
		}
		return s.dropLongData(c, p, err)
	}
	if p.key != nil {
		err = s.executeFilled(c, p, &e, attributes)
	} else {
		p.forgetLong()
		err = s.sendOwnRows(c, p.rows, true)
	}
	if err != nil {
		return err
	}
	if c.Answer.ErrCode == mysql.ER_MALFORMED_PACKET && !c.Hello().MariaDB { // an attribute
		p.unbind(&e)
	}
	s.noteExecuted(c, p)
	return nil
}

// fillHidden writes the execution of a statement with hidden parameters to s.own, and
// makes c ready for it.
func (s *session) fillHidden(c *backend.Conn, p *prepared, e *execution, attributes bool) error {
	if p.executionSize(e, attributes) >= protocol.MaxFragment {
		return errTooLong // before numbers are taken for nothing
	}
	asks, err := s.asksOf(p, p.arguments(e)) // the client may have sent nonsense there, too
	if err != nil {
		return err
	}
	previous, err := s.previousHidden(p)
	if err != nil {
		return err
	}
	if err := s.prepareConn(c, p); err != nil {
		return err
	}
	values, err := s.takeHidden(p, asks, previous)
	if err != nil {
		return err
	}
	if p.key != nil {
		needed, explicit, err := s.keysOf(c, p, p.arguments(e), nil, nil)
		if err != nil {
			return err
		}
		first, err := s.fillKeys(c, p, needed, explicit, values)
		if err != nil {
			return err
		}
		p.fills(first, needed)
	}
	s.own = append(s.own[:0], 0, 0, 0, 0)
	if s.own, err = p.appendExecute(s.own, e, attributes, values); err != nil {
		return err
	}
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	return nil
}

func (p *prepared) forgetLong() {
	p.longSent = false
	clear(p.long)
	p.longArgs = nil
}

// dropLongData makes the server forget what came by COM_STMT_SEND_LONG_DATA for an
// execution that failed with err before it was sent: an execution ends the data's
// life, and the next would otherwise append to it.
func (s *session) dropLongData(c *backend.Conn, p *prepared, err error) error {
	if !p.longSent {
		return err
	}
	p.forgetLong()
	id := binary.LittleEndian.AppendUint32(nil, p.backendID)
	if resetErr := s.ownCommand(c, protocol.ComStmtReset, string(id)); resetErr != nil {
		return resetErr
	}
	return err
}

// previousHidden returns LAST_INSERT_ID() if a hidden parameter needs it.
func (s *session) previousHidden(p *prepared) (uint64, error) {
	for i := range p.hidden {
		if p.hidden[i].previous {
			return s.askPrevious(p.shape.words)
		}
	}
	return 0, nil
}

// takeHidden returns the values of a statement's hidden parameters.
func (s *session) takeHidden(p *prepared, asks []asked, previous uint64) (values []number, err error) {
	if values, err = s.take(asks); err != nil {
		return nil, err
	}
	for i := range p.hidden {
		if p.hidden[i].previous {
			values[i].value = previous
		}
	}
	return values, nil
}

// refusedForm is the error for a form of NEXTVAL that cannot be given a number.
func refusedForm(form string) error {
	return notSupported("%s is not supported: take the number with SELECT NEXTVAL('name') first, or write INSERT ... VALUES", form)
}
