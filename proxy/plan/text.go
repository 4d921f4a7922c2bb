package plan

import (
	"bytes"
	"fmt"

	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Planner makes the plans of a session, one after the other in the same memory.
type Planner struct {
	Facts  Facts
	Action Action // the last plan

	needs     []Need
	asked     uint32               // bits by What, of needs that were asked once
	numbers   []bool               // scratch: of the calls
	insertion *statement.Insertion // nil before the first INSERT
	spare     *Filling             // reused memory; nil before the first filling
}

// Trim drops the last text, and reports whether little memory remains.
func (p *Planner) Trim() bool {
	a, f := &p.Action, &p.Facts
	if cap(a.Slots) > maxKept || cap(a.subs) > maxKept || cap(f.Names) > maxKept || cap(p.needs) > maxKept || cap(p.numbers) > maxKept {
		return false
	}
	clear(a.Slots[:cap(a.Slots)])
	clear(f.Names[:cap(f.Names)])
	clear(p.needs[:cap(p.needs)])
	*a, *f = Action{Numbers: Numbers{Slots: a.Slots[:0]}, subs: a.subs[:0]}, Facts{Names: f.Names[:0]}
	if p.insertion != nil {
		p.insertion.Trim()
	}
	if p.spare != nil && !p.spare.trim() {
		p.spare = nil
	}
	return true
}

// planning is the planning of one text.
type planning struct {
	*Planner
	a   *Action
	st  *statement.Statement
	sql []byte
	s   *state.State
	f   *Facts
}

// Text plans a text with calls, or with columns to fill. st is its analysis, and s the session's
// state. Text changes neither.
func (p *Planner) Text(st *statement.Statement, sql []byte, s *state.State) Verdict {
	a, f := &p.Action, &p.Facts
	p.needs, p.asked = p.needs[:0], 0
	a.clear(len(st.Calls), f.Fill)
	t := planning{p, a, st, sql, s, f}
	v := t.whole()
	if v.Kind == Go && len(p.needs) > 0 {
		return Verdict{Kind: Asks, Needs: p.needs}
	}
	return v
}

// Nothing is the plan of a text in which no call is replaced.
func Nothing(st *statement.Statement) *Action {
	return &Action{Do: Rewrite, Numbers: Numbers{Slots: make([]Slot, len(st.Calls))}}
}

// whole plans the text until something is refused, or a fact is missing.
func (t *planning) whole() Verdict {
	if v := t.names(); v.Kind != Go || len(t.needs) > 0 {
		return v
	}
	alone, rewrites, perRow, v := t.calls()
	if v.Kind != Go || len(t.needs) > 0 {
		return v
	}
	if t.f.Key != nil { // its NEXTVAL must not reach the server
		for i := range t.st.Calls {
			if t.st.Calls[i].Func == statement.Nextval && !t.a.Slots[i].Served() {
				return refuse(Refusal{Why: UnknownSequence, Name: []byte(t.f.Key.Sequence)})
			}
		}
	}
	if t.f.At == Inside {
		return Verdict{}
	}
	if v := t.texts(perRow); v.Kind != Go {
		return v
	}
	if t.f.At == AtPrepare && rewrites || t.f.At == Explained || perRow && !t.counts() && t.f.At != AtExecute {
		if v := t.checkNames(); v.Kind != Go || len(t.needs) > 0 {
			return v
		}
	}
	if perRow && t.f.At != AtExecute {
		v = t.perRow()
		if v.Kind != Go || len(t.needs) > 0 {
			return v
		}
	}
	if t.a.Do == Relay {
		switch {
		case alone && (t.f.At != AtPrepare || onlyNumbers(t.st)):
			t.a.Do = Reply
			return Verdict{}
		case rewrites:
			t.a.Do = Rewrite
		}
	}
	if t.a.Reads && t.a.Do == Rewrite && t.a.Counts == nil && t.f.At != AtPrepare {
		return t.late()
	}
	return Verdict{}
}

// ask records a missing fact.
func (t *planning) ask(n Need) { t.needs = append(t.needs, n) }

// names puts the names of the calls into their slots, in UTF-8. If unknown names go to the server,
// so do names that cannot be converted.
func (t *planning) names() Verdict {
	for i := range t.st.Calls {
		call := &t.st.Calls[i]
		switch call.Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
		default:
			continue
		}
		slot, fact := &t.a.Slots[i], t.f.name(i)
		*slot = Slot{Func: call.Func, Sequence: call.Name, Count: call.Count, Set: call.Set}
		if fact.Given.Func != 0 {
			*slot = fact.Given
		}
		if !fact.Named {
			name, is := t.text(call.Name)
			if is == No && t.f.Unknown != UnknownRelay {
				return notText(call.Name)
			}
			slot.Sequence = name
		}
		if call.Schema != nil {
			if _, is := t.text(call.Schema); is == No && t.f.Unknown != UnknownRelay {
				return notText(call.Schema)
			}
		}
	}
	return Verdict{}
}

// notText refuses a name that is not valid in the session's character set.
func notText(name []byte) Verdict {
	return notSupported("the sequence name %q in this character set is not supported: SET NAMES utf8mb4, or use ASCII letters", name)
}

// calls decides about each call: which sequences are served here, and what that forbids. alone says
// that the proxy can answer the text, rewrites that some calls are replaced, perRow that some calls
// need more than one number.
func (t *planning) calls() (alone, rewrites, perRow bool, v Verdict) {
	st, f := t.st, t.f
	rewrites = f.Fill != nil
	numbers, all := 0, true
	doubtful, certain := false, false // doubtful: a call may not mean a sequence; certain: one does
	for i := range st.Calls {
		call := &st.Calls[i]
		switch call.Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			name, served, v := t.resolve(i)
			t.a.Slots[i].Sequence = name
			if v.Kind == Go && served == Yes {
				served, v = t.mayServe(i)
			}
			switch {
			case len(t.needs) > 0: // an earlier call may be refused first
				continue
			case v.Kind != Go:
				return false, false, false, v
			case served == Yes:
				t.a.Slots[i].When = whenAt(call.Place)
				numbers++
				perRow = perRow || call.Place != statement.PlaceOnce && call.Place != statement.PlaceNever
			default:
				all = false
			}
			if served == Yes || call.Spelling != statement.AsColumn && call.Spelling != statement.AsSelectValue {
				certain = certain || call.Func == statement.Nextval
			} else {
				doubtful = true
			}
		case statement.CallConnectionID, statement.PseudoThreadID:
			rewrites = rewrites || ClientID(st, t.s)
		}
	}
	switch {
	case len(t.needs) > 0:
		return false, false, false, Verdict{}
	case st.Refusal != "" && numbers == 0 && (f.Unknown == UnknownRelay || doubtful && !certain):
		t.a.clear(len(st.Calls), f.Fill)
		t.a.Previous, _ = t.mixedIDs()
		return false, f.Fill != nil, false, Verdict{}
	case st.Refusal != "":
		return false, false, false, notSupportedForm(st.Refusal)
	}
	if v := t.together(perRow); v.Kind != Go {
		return false, false, false, v
	}
	t.a.Previous, t.a.Reads = t.mixedIDs()
	return all && t.answerable(), rewrites || numbers > 0, perRow, Verdict{}
}

// whenAt returns when a served call at this place gets its number.
func whenAt(place statement.Place) When {
	switch place {
	case statement.PlaceNever:
		return Never
	case statement.PlaceRow:
		return EachRow
	case statement.PlaceSource, statement.PlaceChange:
		return Counted
	}
	return Once
}

// mycatPrefix stands in front of a sequence's name in MyCat's NEXT VALUE FOR.
var mycatPrefix = []byte("MYCATSEQ_")

// resolve returns the sequence that a call means, and whether the proxy serves the call.
func (t *planning) resolve(i int) (name []byte, served Answer, v Verdict) {
	call, fact := &t.st.Calls[i], t.f.name(i)
	name = t.a.Slots[i].Sequence
	switch {
	case fact.Named:
	case call.Form == statement.FormParam:
		return name, Yes, Verdict{} // only the proxy can serve it
	case call.Form != statement.FormName && call.Form != statement.FormQualified:
		return name, AnswerOf(t.f.Unknown != UnknownRelay), Verdict{}
	}
	doubtful := call.Spelling == statement.AsColumn || call.Spelling == statement.AsSelectValue
	relayed := doubtful || t.f.Unknown == UnknownRelay
	if call.Schema != nil {
		if schema, _ := t.text(call.Schema); schema != nil && string(schema) != t.f.Schema {
			// CREATE SEQUENCE db.s makes a sequence with the name "db.s".
			name = append(append(bytes.Clone(schema), '.'), name...)
			if is := t.exists(i, name); is != No || relayed {
				return name, is, Verdict{}
			}
			return name, No, refuse(Refusal{Why: UnknownSequence, Name: name})
		}
	}
	if n := len(mycatPrefix); call.Spelling == statement.AsValueFor && len(name) > n && bytes.EqualFold(name[:n], mycatPrefix) {
		switch fact.Whole {
		case Unasked:
			t.ask(Need{What: NeedWhole, At: i, Name: name})
			return name, Unasked, Verdict{}
		case No:
			name = name[n:]
		}
	}
	if !relayed {
		return name, Yes, Verdict{} // taking the number checks that, or creates the sequence
	}
	return name, t.exists(i, name), Verdict{}
}

// exists reports whether the sequence of a call exists.
func (t *planning) exists(call int, name []byte) Answer {
	is := t.f.name(call).Exists
	if is == Unasked {
		t.ask(Need{What: NeedExists, At: call, Name: name})
	}
	return is
}

// mayServe reports whether the proxy can serve a call whose sequence it has, and the user may take
// the numbers.
func (t *planning) mayServe(i int) (Answer, Verdict) {
	call := &t.st.Calls[i]
	prepared := t.f.At == AtPrepare || t.f.At == AtExecute
	switch {
	case !prepared && call.Markers() > 0 && t.f.Unknown == UnknownRelay:
		return No, Verdict{}
	case !prepared && call.Markers() > 0:
		return No, notSupported("a parameter (?) of NEXTVAL, LASTVAL or SETVAL is not supported in a text: prepare it, or write the value")
	case t.st.Kind == statement.Values && call.Row == 0 && t.f.MariaDB:
		return No, notSupportedForm("NEXTVAL in the first row of VALUES, which names the columns,")
	case call.Place == statement.PlaceNever && call.Markers() > 0:
		return No, notSupportedForm("NEXTVAL with a parameter (?) in EXPLAIN")
	}
	name := t.a.Slots[i].Sequence
	if name == nil || !t.f.Limited {
		return Yes, Verdict{}
	}
	switch t.f.name(i).Usable {
	case Unasked:
		t.ask(Need{What: NeedRight, At: i, Name: name})
	case No:
		return No, refuse(Refusal{Why: NoRight, Name: name})
	}
	return Yes, Verdict{}
}

// together refuses calls that do not go together in one text, or with the rest of it.
func (t *planning) together(perRow bool) Verdict {
	st, slots := t.st, t.a.Slots
	if !t.f.Admin {
		for i := range slots {
			if slots[i].Served() && slots[i].Func == statement.Setval {
				return refuse(Refusal{Why: NotAdmin, Call: i})
			}
		}
	}
	for i := range st.Calls {
		switch call := &st.Calls[i]; {
		case call.Func != statement.Setval || !slots[i].Served():
		case slots[i].Set == nil:
			return notSupported("SETVAL with something else than literals is not supported: SELECT SETVAL(s, 1000)")
		case !st.SelfContained:
			return notSupported("SETVAL in a larger statement is not supported: SELECT SETVAL(%s, %d) alone", slots[i].Sequence, slots[i].Set.Value)
		case slots[i].Set.Round != 0:
			return notSupported("SETVAL with a round other than 0 is not supported: rounds of a sequence that cycles are not counted here")
		}
	}
	if !perRow {
		return Verdict{}
	}
	for i := range slots {
		if slots[i].Func == statement.Lastval && slots[i].Served() {
			return notSupported("LASTVAL beside a NEXTVAL that gives a number for each row is not supported: ask for it in another statement")
		}
	}
	if t.f.Fill != nil {
		return notSupported("NEXTVAL for each row beside a column that is filled from a sequence is not supported: give its number with NEXTVAL, too")
	}
	return Verdict{}
}

// answerable reports whether the proxy answers a text itself: a SELECT of only numbers and ids that
// it has.
func (t *planning) answerable() bool {
	if !t.st.SelfContained || t.f.Warns {
		return false
	}
	for i := range t.st.Calls {
		switch f := t.st.Calls[i].Func; {
		case readsID(f):
			if _, ok := t.s.LastID.Get(); !ok {
				return false
			}
		case f == statement.CallConnectionID && !ClientID(t.st, t.s):
			return false
		case f == statement.PseudoThreadID:
			return false // a column from the server
		}
	}
	// Only the server can limit the rows of a text. A prepared one obeys sql_select_limit at its
	// execution.
	return t.f.At == AtPrepare || t.f.At == AtExecute || !LimitsRows(t.s, t.f.Server)
}

// LimitsRows reports whether sql_select_limit is set. Without a server it has no effect: drivers
// send it as a maximum of rows, and the proxy's own answer has one row.
func LimitsRows(s *state.State, server bool) bool { return s.SelectLimit && server }

// onlyNumbers reports whether the proxy can surely answer a prepared text at its execution, too.
// LAST_INSERT_ID() may be the server's by then.
func onlyNumbers(st *statement.Statement) bool {
	for i := range st.Calls {
		if readsID(st.Calls[i].Func) {
			return false
		}
	}
	return true
}

// checkNames refuses unknown names like a server, if their numbers are taken later or perhaps
// never.
func (t *planning) checkNames() Verdict {
	for i := range t.st.Calls {
		call, slot := &t.st.Calls[i], &t.a.Slots[i]
		if !slot.Served() || call.Form == statement.FormParam && !t.f.name(i).Named || t.f.Unknown != UnknownError && call.Func == statement.Nextval {
			continue
		}
		if is := t.exists(i, slot.Sequence); is == No && len(t.needs) == 0 {
			return refuse(Refusal{Why: UnknownSequence, Name: slot.Sequence})
		}
	}
	return Verdict{}
}

// texts finds out which keys that are taken later are texts: these have parameters of another type.
// They cannot be written into rows, and the server cannot count them.
func (t *planning) texts(perRow bool) Verdict {
	if t.f.At != AtPrepare && t.f.At != Explained && (!perRow || t.f.At == AtExecute) {
		return Verdict{} // the taker of the keys finds out
	}
	for i := range t.a.Slots {
		slot := &t.a.Slots[i]
		if !slot.Served() || slot.Func != statement.Nextval || slot.When == Never || slot.Sequence == nil {
			continue
		}
		switch t.f.name(i).Texts {
		case Unasked:
			t.ask(Need{What: NeedTexts, At: i, Name: slot.Sequence})
		case Yes:
			if slot.When != Once {
				return notSupported("%s", NotCounted(slot.Sequence))
			}
			slot.Texts, slot.Bytes = true, t.f.name(i).Bytes
		}
	}
	return Verdict{}
}

// NotCounted is why NEXTVAL for each row of a sequence of texts is refused: the server counts
// numbers only.
func NotCounted(sequence []byte) string {
	return fmt.Sprintf("NEXTVAL for each row of sequence %s, whose keys are texts, is not supported: write NEXTVAL in each row of VALUES, or take the keys one by one", sequence)
}

// mixedIDs reports whether the first statement, or a later one, takes numbers and reads
// LAST_INSERT_ID() as well. Only the server has LAST_INSERT_ID() before a later one, since earlier
// statements may change it while they run.
func (t *planning) mixedIDs() (first, later bool) {
	index, numbers, reads := 0, t.f.Fill.disturbs(0), false
	for i := range t.st.Calls {
		call := &t.st.Calls[i]
		if call.Statement != index {
			index, reads = call.Statement, false
			numbers = t.f.Fill.disturbs(index)
		}
		switch {
		case call.Func == statement.Nextval:
			slot := &t.a.Slots[i]
			numbers = numbers || slot.Served() && slot.When != Never
		case readsID(call.Func):
			reads = true
		}
		first = first || index == 0 && numbers && reads
		later = later || index > 0 && numbers && reads
	}
	return first, later
}

// maxLate bounds the later statements that take numbers and read LAST_INSERT_ID(). Planning looks
// at each of them again.
const maxLate = 64

// late plans the later statements that take numbers and read LAST_INSERT_ID().
func (t *planning) late() Verdict {
	const refused = "NEXTVAL and LAST_INSERT_ID() in one statement that stands behind another is not supported, " +
		"unless it is INSERT or REPLACE and both are values of their own in VALUES or SET: send it alone"
	st, numbers := t.st, t.numbers[:0]
	for i := range t.a.Slots {
		numbers = append(numbers, t.a.Slots[i].Served() && t.a.Slots[i].Func == statement.Nextval)
	}
	t.numbers = numbers
	for from, to := 0, 0; from < len(st.Calls); from = to {
		index, takes, reads := st.Calls[from].Statement, false, false
		for to = from; to < len(st.Calls) && st.Calls[to].Statement == index; to++ {
			reads = reads || readsID(st.Calls[to].Func)
			takes = takes || numbers[to]
		}
		switch fills := t.f.Fill.disturbs(index); {
		case index == 0 || !reads || !takes && !fills:
			continue
		case fills:
			b := t.f.Fill.keyOf(index).Binding
			return notSupported("LAST_INSERT_ID() in an INSERT into %s, whose column %s is filled from sequence %s, behind another statement is not supported, "+
				"unless the column is the last of a single row: send it alone, or put SET @a = LAST_INSERT_ID() before it and write @a", b.Table, b.Column, b.Sequence)
		case len(t.a.Late) == maxLate:
			return notSupported(refused)
		}
		leader, at, ok := st.Late(t.sql, index, numbers)
		if !ok {
			return notSupported(refused)
		}
		t.a.Late = append(t.a.Late, Late{leader, at})
	}
	return Verdict{}
}
