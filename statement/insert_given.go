package statement

import "bytes"

// Given are the columns of an INSERT ... SELECT whose item is a NEXTVAL and nothing else.
type Given struct {
	// Names are the columns' names if the text names its columns. Otherwise Indexes are their
	// indexes in the table, from 0.
	Names   [][]byte
	Indexes []int
}

// ReadGiven finds these columns in sql, the text that st was analysed from. If it is not sure, it
// returns none. The result does not share sql's memory.
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

// isNumber reports whether sql[start:end] is a NEXTVAL.
func (st *Statement) isNumber(start, end int) bool {
	for i := range st.Calls {
		if c := &st.Calls[i]; c.Start == start {
			return c.End == end && c.Func == Nextval
		}
	}
	return false
}
