package plan

import (
	"slices"

	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Do is what becomes of a text with calls.
type Do uint8

// The actions.
const (
	Relay   Do = iota // it goes to the server unchanged
	Reply             // the proxy answers it
	Rewrite           // it goes to the server with its Numbers
)

// Action is what becomes of a text. A session has one, and the next plan reuses its memory.
type Action struct {
	Do Do
	Numbers
	Reads bool   // a statement after the first takes numbers and reads LAST_INSERT_ID()
	Late  []Late // one for each such statement, unless the text is prepared
	// Previous reports whether the first statement takes numbers and reads LAST_INSERT_ID().
	Previous bool

	subs []statement.Substitution
}

// Late is for a statement after the first that takes numbers and reads LAST_INSERT_ID(). The server
// sets LAST_INSERT_ID() to the number of the call Leader when it reaches the call At, since nothing
// after At reads the old value.
type Late struct{ Leader, At int }

// maxKept bounds the elements of a slice that are kept from one text to the next.
const maxKept = 16

// clear makes a the plan of a text in which nothing is replaced.
func (a *Action) clear(calls int, fill *Filling) {
	slots := a.Slots[:0]
	for range calls {
		slots = append(slots, Slot{})
	}
	*a = Action{Numbers: Numbers{Slots: slots, Fill: fill}, Late: a.Late[:0], subs: a.subs}
}

// MarkInsertID marks the slot of an INSERT whose number surely becomes the insert id, if there is
// one. subs replace the calls in its text.
func (a *Action) MarkInsertID(st *statement.Statement, sql []byte, subs []statement.Substitution) {
	if st.Kind != statement.Insert && st.Kind != statement.Replace || st.Words&statement.SetsLastInsertID != 0 {
		return
	}
	i := slices.IndexFunc(subs, func(s statement.Substitution) bool { return s.Replacement == statement.AsLastInsertID })
	if i >= 0 {
		a.Slots[i].InsertID = st.IsValue(sql, i)
	}
}

// Substitutions returns what replaces each call. In each statement the first number becomes the one
// that LAST_INSERT_ID() gives afterwards. The caller sets the values of numbers and of the previous
// id. With Previous, the calls of LAST_INSERT_ID() in the first statement are replaced, and later
// ones stay. id is the connection id that the client sees. placeholder is what rows have where
// numbers go. The result is valid until the next plan.
func (a *Action) Substitutions(st *statement.Statement, s *state.State, id uint32, placeholder uint64) []statement.Substitution {
	subs := a.subs[:0]
	for range st.Calls {
		subs = append(subs, statement.Substitution{})
	}
	a.subs = subs
	further, before := statement.AsUnsigned, statement.AsUnsigned
	switch st.Kind {
	case statement.Select, statement.With, statement.Values, statement.Multi:
		// These have columns of a result.
		further, before = statement.AsFurther, statement.AsPrevious
	}
	clientID := ClientID(st, s)
	first := -1 // the latest statement that has its first number
	for i := range st.Calls {
		call, slot := &st.Calls[i], &a.Slots[i]
		switch {
		case slot.When == Never:
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: 1}
		case slot.Served() && call.Func != statement.Nextval:
			subs[i].Replacement = statement.AsNullable
		case slot.Texts:
			subs[i].Replacement, subs[i].Binary = statement.AsText, slot.Bytes
		case slot.When == EachRow && a.Rows != nil:
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: placeholder}
			if i == a.Rows.Lead {
				first = call.Statement
				subs[i] = statement.Substitution{Replacement: statement.AsLeading, Bound: placeholder}
			}
		case slot.When == Counted && a.Counts != nil:
			subs[i].Replacement = statement.AsCounted
		case slot.Served() && call.Statement != first && !a.Fill.Leads(call.Statement):
			first = call.Statement
			subs[i].Replacement = statement.AsLastInsertID
		case slot.Served() && call.Item >= 0: // also in the list of RETURNING
			subs[i].Replacement = statement.AsFurther
		case slot.Served():
			subs[i].Replacement = further
		case a.Previous && call.Statement == 0 && readsID(call.Func):
			if subs[i].Replacement = before; call.Item >= 0 {
				subs[i].Replacement = statement.AsPrevious
			}
		case call.Func == statement.CallConnectionID && clientID:
			subs[i] = statement.Substitution{Replacement: statement.AsUnsigned, Value: uint64(id)}
		case call.Func == statement.PseudoThreadID && clientID:
			subs[i] = statement.Substitution{Replacement: statement.AsPrevious, Value: uint64(id)}
		}
	}
	for _, l := range a.Late {
		if l.At != l.Leader {
			subs[l.Leader].Replacement = statement.AsUnsigned
			subs[l.At].Replacement = statement.AsLate
		}
	}
	return subs
}

// Hides reports whether a hidden parameter replaces a call, because its value depends on the
// execution.
func Hides(call *statement.FuncCall, sub *statement.Substitution) bool {
	return sub.Replacement != statement.Keep && call.Func != statement.CallConnectionID && call.Func != statement.PseudoThreadID && call.Place != statement.PlaceNever &&
		(call.Place != statement.PlaceRow || sub.Replacement == statement.AsLeading)
}

// ClientID reports whether calls for the connection's id mean the client's id. To a server both are
// the variable pseudo_thread_id, which a client may set.
func ClientID(st *statement.Statement, s *state.State) bool {
	return st.ClientID && !s.Pinned(state.PinPseudoThreadID)
}

// readsID reports whether a function is LAST_INSERT_ID().
func readsID(f statement.Func) bool {
	return f == statement.LastInsertID || f == statement.LastInsertIDVariable
}
