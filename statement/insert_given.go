package statement

import "bytes"

// Given are the columns of an INSERT ... SELECT that have a NEXTVAL and nothing else in each row.
type Given struct {
	// Names are theirs, if the text names its columns; else Indexes are those of the
	// table's columns, from 0.
	Names   [][]byte
	Indexes []int
}

// ReadGiven finds them, in the text that st was analysed from: none where it is not sure.
// What it returns does not refer to the text.
func (in *Insertion) ReadGiven(st *Statement, sql []byte) (g Given) {
	t := st.Table()
	if t == nil || t.Kind != Insert && t.Kind != Replace {
		return g
	}
	in.ReadInserts(sql, st.mode)
	if !in.Read(t) || in.Source != InsertQuery {
		return g
	}
	q := in.ReadSelect()
	if q.Refusal != "" {
		return g
	}
	named := len(in.Columns) > 0
	for i := range q.items {
		item := &q.items[i]
		if item.star || named && i >= len(in.Columns) {
			break
		}
		if !st.isNumber(item.value.Start, item.value.End) {
			continue
		}
		if named {
			g.Names = append(g.Names, bytes.Clone(in.Columns[i].Name))
		} else {
			g.Indexes = append(g.Indexes, i)
		}
	}
	return g
}

// isNumber reports whether the text from start to end is a NEXTVAL.
func (st *Statement) isNumber(start, end int) bool {
	for i := range st.Calls {
		if c := &st.Calls[i]; c.Start == start {
			return c.End == end && c.Func == Nextval
		}
	}
	return false
}
