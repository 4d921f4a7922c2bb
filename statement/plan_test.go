package statement

// A plan of how a text is filled in, as the proxy makes it, for the tests of Rewrite.

import "bytes"

// Need is how many numbers of one sequence a statement takes.
type Need struct {
	// Name is the sequence's name as it stands in the first call, valid as
	// long as FuncCall.Name.
	Name []byte
	// Count is at least 1.
	Count int
}

// Taken is what was taken for one Need: Count numbers First, First+Step, ...
// A Step of 0 means 1.
type Taken struct {
	First, Step uint64
}

// Known is what the session knows when it fills in a statement.
type Known struct {
	// Taken has one element per Need.
	Taken []Taken
	// LastInsertID is what LAST_INSERT_ID() would give before the statement.
	LastInsertID uint64
	// ConnectionID is the session's own; 0 leaves CONNECTION_ID() to the server.
	ConnectionID uint64
	// Params makes every replaced value a hidden parameter.
	Params bool
}

// Needs appends to dst what st takes, one Need per sequence in the order of
// first calls. same tells whether two names are one sequence (the sequence
// table's collation decides); nil compares without regard to case.
//
// st must have no Refusal. All its NEXTVALs then have a name.
func (st *Statement) Needs(dst []Need, same func(a, b []byte) bool) []Need {
	from := len(dst)
	for i := range st.Calls {
		if st.Calls[i].Func != Nextval {
			continue
		}
		if n := find(dst[from:], st.Calls[i].Name, same); n >= 0 {
			dst[from+n].Count++
			continue
		}
		dst = append(dst, Need{Name: st.Calls[i].Name, Count: 1})
	}
	return dst
}

func find(needs []Need, name []byte, same func(a, b []byte) bool) int {
	for i := range needs {
		if same == nil && bytes.EqualFold(needs[i].Name, name) || same != nil && same(needs[i].Name, name) {
			return i
		}
	}
	return -1
}

// Substitutions appends to dst one Substitution per call: the first NEXTVAL
// becomes the connection's insert id, the others are numbers; each sequence's
// numbers go to its calls in text order. Beside a NEXTVAL, LAST_INSERT_ID() is
// the value from before the statement; without one it stays. needs and same are
// those of Needs, known.Taken belongs to needs.
func (st *Statement) Substitutions(dst []Substitution, needs []Need, same func(a, b []byte) bool, known Known) []Substitution {
	var few [8]int
	given := few[:0] // numbers given out per need
	for range needs {
		given = append(given, 0)
	}
	first := true
	for i := range st.Calls {
		c := &st.Calls[i]
		s := Substitution{Param: known.Params}
		switch c.Func {
		case Nextval:
			n := find(needs, c.Name, same)
			if n < 0 {
				break
			}
			step := max(known.Taken[n].Step, 1)
			s.Value = known.Taken[n].First + uint64(given[n])*step
			given[n]++
			s.Replacement = AsUnsigned
			if first {
				s.Replacement, first = AsLastInsertID, false
			}
		case LastInsertID, LastInsertIDVariable:
			if len(needs) > 0 {
				s.Replacement, s.Value = AsUnsigned, known.LastInsertID
			}
		case CallConnectionID, PseudoThreadID:
			if known.ConnectionID != 0 {
				s.Replacement, s.Value = AsUnsigned, known.ConnectionID
			}
		}
		if s.Replacement == Keep {
			s = Substitution{}
		}
		dst = append(dst, s)
	}
	return dst
}
