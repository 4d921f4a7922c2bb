package proxy

import "seqproxy/statement"

// previousID is the LAST_INSERT_ID() that a statement with NEXTVAL sees: the server
// would give the new number, as soon as it has evaluated it.
type previousID struct {
	needed bool
	value  uint64
}

// askPrevious returns LAST_INSERT_ID() for a statement that takes numbers as well. To
// ask the server changes what it says of the last statement.
func (s *session) askPrevious(words statement.Words) (uint64, error) {
	if value, ok := s.state.LastID.Known(); ok {
		return value, nil
	}
	if words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return 0, notSupported("NEXTVAL, LAST_INSERT_ID() and what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
			"in one statement is not supported: keep one of them in a variable first")
	}
	return s.askLastID(s.connBy(s.state.LastID.Holder))
}

// previousFor is askPrevious where a text's first statement needs it.
func (s *session) previousFor(st *statement.Statement, plan callPlan) (previous previousID, err error) {
	if mixesIDs(st, plan) {
		previous.needed = true
		previous.value, err = s.askPrevious(st.Words)
	}
	return previous, err
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

// lateID is what becomes of a statement behind the first that takes numbers and reads
// LAST_INSERT_ID(): the server makes the number of the call leader that, when it comes to
// the call at, behind which nothing reads it.
type lateID struct {
	leader, at int
}

// maxLate bounds such statements of one text, each of which is looked at again.
const maxLate = 64

// lateIDs finds out where that is, for each such statement.
func lateIDs(st *statement.Statement, sql []byte, plan callPlan) (all []lateID, err error) {
	numbers := make([]bool, len(st.Calls))
	for i := range st.Calls {
		numbers[i] = plan.served[i] && st.Calls[i].Func == statement.Nextval
	}
	refused := notSupported("NEXTVAL and LAST_INSERT_ID() in one statement that stands behind another is not supported, " +
		"unless it is INSERT or REPLACE and both are values of their own in VALUES or SET: send it alone")
	for from, to := 0, 0; from < len(st.Calls); from = to {
		index, takes, reads := st.Calls[from].Statement, false, false
		for to = from; to < len(st.Calls) && st.Calls[to].Statement == index; to++ {
			f := st.Calls[to].Func
			reads = reads || f == statement.LastInsertID || f == statement.LastInsertIDVariable
			takes = takes || numbers[to]
		}
		switch fills := plan.fill.disturbs(index); {
		case index == 0 || !reads || !takes && !fills:
			continue
		case fills || len(all) == maxLate:
			return nil, refused
		}
		leader, at, ok := st.Late(sql, index, numbers)
		if !ok {
			return nil, refused
		}
		all = append(all, lateID{leader, at})
	}
	return all, nil
}

// delay has subs take effect as late says.
func delay(late []lateID, subs []statement.Substitution) {
	for _, l := range late {
		if l.at != l.leader {
			subs[l.leader].Replacement = statement.AsUnsigned
			subs[l.at].Replacement = statement.AsLate
		}
	}
}

// bindLate gives those substitutions the numbers of their leaders.
func bindLate(late []lateID, subs []statement.Substitution) {
	for _, l := range late {
		subs[l.at].Bound = subs[l.leader].Value
	}
}
