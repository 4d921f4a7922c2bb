package proxy

import (
	"bytes"
	"math"
	"slices"

	"seqproxy/backend"
	"seqproxy/protocol"
	planning "seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
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
	reads   bool        // a statement behind the first takes numbers and reads LAST_INSERT_ID()
	late    []lateID    // what becomes of these
	key     *Binding    // the column whose key the only NEXTVAL is, which the text has not; nil: none
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
				if s.set.Unknown != UnknownRelay {
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
			plan.rewrite = plan.rewrite || s.clientID(st)
		}
	}
	if st.Refusal != "" {
		if numbers == 0 && (s.set.Unknown == UnknownRelay || doubtful && !certain) {
			return callPlan{served: make([]bool, len(st.Calls)), fill: s.fill, rewrite: s.fill != nil}, nil
		}
		return plan, refusedForm(st.Refusal)
	}
	for i := range st.Calls {
		if plan.served[i] {
			if err := s.maySet(askedBy(&st.Calls[i])); err != nil {
				return plan, err
			}
		}
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
	_, plan.reads = mixedIDs(st, plan)
	plan.own = all && s.answerable(st) && (prepared || !s.limitsRows())
	return plan, nil
}

// knownAtPrepare refuses unknown names when a statement is prepared, as a server
// would, though its numbers are only taken at each execution.
func (s *session) knownAtPrepare(st *statement.Statement, plan callPlan) error {
	for i := range st.Calls {
		if call := &st.Calls[i]; plan.served[i] && call.Form != statement.FormParam && (s.set.Unknown == UnknownError || call.Func != statement.Nextval) {
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

// clientID says whether calls for the connection's id mean the one that the client knows. For
// a server both are the variable pseudo_thread_id, which may be set.
func (s *session) clientID(st *statement.Statement) bool {
	return st.ClientID && !s.state.Pinned(state.PinPseudoThreadID)
}

// rewrite sends a text with its calls replaced by their values. The first number is
// spliced as LAST_INSERT_ID(n), so that the server itself makes it the session's,
// if and when it evaluates it; the others as plain numbers of the same type.
func (s *session) rewrite(sql []byte, plan callPlan) error {
	st := &s.stmt
	if plan.reads {
		var err error
		if plan.late, err = lateIDs(st, sql, plan); err != nil {
			return err
		}
	}
	previous, err := s.previousFor(st, plan)
	if err != nil {
		return err
	}
	c, err := s.attachWith(st, plan.rows.traits(planning.TraitsOf(st)))
	if err != nil {
		return err
	}
	subs := s.substitutions(st, plan, previous.needed)
	delay(plan.late, subs)
	// Before numbers are taken for nothing. They may be as long as they can be.
	const call, alias = len("IF(1,CAST(18446744073709551615 AS UNSIGNED),LAST_INSERT_ID(18446744073709551615))"), 1 << 10
	if len(s.attributes)+len(sql)+call*len(st.Calls)+alias*len(st.Items) >= protocol.MaxFragment {
		s.setValues(subs, slices.Repeat([]number{{value: math.MaxUint64}}, len(subs)), math.MaxUint64)
		if s.splice(sql, subs, nil) >= protocol.MaxFragment {
			return errTooLong
		}
	}
	values, err := s.takeOnce(st, plan)
	if err != nil {
		return err
	}
	if err := s.takeKeys(plan.fill); err != nil {
		return err
	}
	s.setValues(subs, values, previous.value)
	bindLate(plan.late, subs)
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
	if len(subs) > 0 {
		s.tally.Sends(c, stats.KindRewrite)
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

// takeOnce takes the numbers of a text that are one per call, and those that its rows
// cannot wait for.
func (s *session) takeOnce(st *statement.Statement, plan callPlan) (values []number, err error) {
	if plan.rows == nil {
		return s.takeFor(st.Calls, plan.served)
	}
	once := slices.Clone(plan.served)
	row := -1 // the first call with a number for each row
	for i := range once {
		if once[i] && st.Calls[i].Place == statement.PlaceRow {
			if once[i] = false; row < 0 {
				row = i
			}
		}
	}
	if values, err = s.takeFor(st.Calls, once); err != nil {
		return nil, err
	}
	if plan.rows.leads {
		values[row].value, err = s.takeAhead(plan.rows)
	}
	return values, err
}

// setValues gives the substitutions of numbers and of the previous id their values.
func (s *session) setValues(subs []statement.Substitution, values []number, previous uint64) {
	for i := range subs {
		if place := s.stmt.Calls[i].Place; place == statement.PlaceNever || place == statement.PlaceRow && subs[i].Replacement != statement.AsLeading {
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
	s.own = slices.Grow(s.own[:0], len(s.attributes)+len(sql)+64*(1+len(subs))) // or a long text is copied many times
	s.own = append(s.own, 0, 0, 0, 0, byte(protocol.ComQuery))
	s.own = append(s.own, s.attributes...)
	s.own = s.stmt.Splice(s.own, sql, subs, splices)
	return len(s.own) - protocol.HeaderSize
}

// sendOwn sends the command in s.own, in the place of the client's, and relays the
// answer.
func (s *session) sendOwn(c *backend.Conn) error {
	s.state.LastOwn = state.OwnNothing
	return s.exchange(c, s.own, protocol.AnswerTo(s.own[protocol.HeaderSize:]))
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
		case plan.served[i] && plan.rows != nil && call.Place == statement.PlaceRow:
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: protocol.Placeholder}
			if plan.rows.leads && first < 0 {
				first = call.Statement
				subs[i] = statement.Substitution{Replacement: statement.AsLeading, Bound: protocol.Placeholder}
			}
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
		case call.Func == statement.CallConnectionID && s.clientID(st):
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: uint64(s.id)}
		case call.Func == statement.PseudoThreadID && s.clientID(st):
			subs[i] = statement.Substitution{Replacement: statement.AsPrevious, Value: uint64(s.id)}
		}
	}
	return subs
}

// refusedForm is the error for a form of NEXTVAL that cannot be given a number.
func refusedForm(form string) error {
	return notSupported("%s is not supported: take the number with SELECT NEXTVAL('name') first, or write INSERT ... VALUES", form)
}
