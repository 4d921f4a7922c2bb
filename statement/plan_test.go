package statement

// A plan to fill a text, as the proxy makes it, for tests of Rewrite.

import "bytes"

// Need is a count of numbers of one sequence.
type Need struct {
	// Name is the sequence's name as in its first call. It is valid as long as FuncCall.Name.
	Name []byte
	// Count is at least 1.
	Count int
}

// Taken are the numbers for one Need: Count numbers First, First+Step, ... A Step of 0 means 1.
type Taken struct {
	First, Step uint64
}

// Replacements are the values that a session puts into a statement.
type Replacements struct {
	// Taken has one element per Need.
	Taken []Taken
	// LastInsertID is the value of LAST_INSERT_ID() before the statement.
	LastInsertID uint64
	// ConnectionID is the session's id. 0 leaves CONNECTION_ID() to the server.
	ConnectionID uint64
	// Params makes every replaced value a hidden parameter.
	Params bool
}

// Needs appends the numbers that st takes to dst, one Need per sequence, in the order of first
// calls. same says whether two names mean one sequence; the sequence table's collation decides
// that. If it is nil, names are compared without regard to case.
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

// Substitutions appends one Substitution per call to dst. The first NEXTVAL becomes the
// connection's insert id, and the others are plain numbers. Calls get the numbers of their sequence
// in text order. With a NEXTVAL in the text, LAST_INSERT_ID() becomes its value before the
// statement; without one it stays. needs and same are those of Needs, and values.Taken belongs to
// needs.
func (st *Statement) Substitutions(dst []Substitution, needs []Need, same func(a, b []byte) bool, values Replacements) []Substitution {
	var few [8]int
	given := few[:0] // numbers used, per need
	for range needs {
		given = append(given, 0)
	}
	first := true
	for i := range st.Calls {
		c := &st.Calls[i]
		s := Substitution{Param: values.Params}
		switch c.Func {
		case Nextval:
			n := find(needs, c.Name, same)
			if n < 0 {
				break
			}
			step := max(values.Taken[n].Step, 1)
			s.Value = values.Taken[n].First + uint64(given[n])*step
			given[n]++
			s.Replacement = AsUnsigned
			if first {
				s.Replacement, first = AsLastInsertID, false
			}
		case LastInsertID, LastInsertIDVariable:
			if len(needs) > 0 {
				s.Replacement, s.Value = AsUnsigned, values.LastInsertID
			}
		case CallConnectionID, PseudoThreadID:
			if values.ConnectionID != 0 {
				s.Replacement, s.Value = AsUnsigned, values.ConnectionID
			}
		}
		if s.Replacement == Keep {
			s = Substitution{}
		}
		dst = append(dst, s)
	}
	return dst
}
