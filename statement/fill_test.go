package statement

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

// fillAll writes the numbers from 9000000 into every row with an empty key. It returns the text and
// the count of numbers, or false if the text cannot be filled.
func fillAll(sql []byte, mode lex.Mode, st *Statement, in *Insertion, columns [][]byte) (filled []byte, numbers int, ok bool) {
	st.Analyze(sql, mode)
	t := st.Table()
	if t == nil || t.Kind != Insert && t.Kind != Replace {
		return nil, 0, false
	}
	in.ReadInserts(sql, mode)
	if !in.Read(t) {
		return nil, 0, false
	}
	k := Key{Column: []byte("id"), Index: in.Column(isID)}
	if in.NeedsColumns() {
		k.Columns = columns
		for i, name := range columns {
			if isID(name) {
				k.Index = i
			}
		}
	}
	// The server refuses rows of another length, before and after the change.
	if !in.ReadRows(k.Index, nil) || !in.Complete(max(len(in.Columns), len(k.Columns))) {
		return nil, 0, false
	}
	var splices []Splice
	missing := false
	for _, r := range in.Rows {
		missing = missing || r.Value.Kind == ValueMissing
	}
	if missing || len(in.Columns) == 0 {
		splices = in.AppendList(splices, &k)
	}
	for i := range in.Rows {
		if in.Filling(i, &k) == FillNumber {
			splices = in.AppendNumber(splices, i, &k, strconv.AppendInt(nil, int64(9000000+numbers), 10))
			numbers++
		}
	}
	if missing {
		splices = in.AppendAlias(splices)
	}
	return st.Rewrite(nil, sql, make([]Substitution, len(st.Calls)), splices...), numbers, true
}

func isID(name []byte) bool { return bytes.EqualFold(name, []byte("id")) }

// FuzzFill checks for any text that each number is the value of the column id, once and in the
// order of rows, and that no other value was added or lost.
func FuzzFill(f *testing.F) {
	for _, sql := range []string{
		"insert into t (a, id) values (1, null), (2, 5), (3, 0)",
		"insert into t (`a`) values (f(1, ')')), ('x''y') on duplicate key update a = values(a)",
		"insert into t values (1, default, '(', \"\\\"\"), (2, 7, 3, -- x\n 4)",
		"insert t () values (), ()", "replace into a.t values ()", "insert into t partition (p) set a = (1), b = ','",
		"insert into t (a, b) values row(1, 2) as n (c, d)", "insert into t set `ID` = '0', a = 1 as n on duplicate key update a = n.a",
		"insert into t (a) values (1) /* , */ , /* ( */ (2) -- )\n", "insert /*! ignore */ into t (a /* ) */) values (1 /*! + 2 */)",
	} {
		for m := range 4 {
			f.Add([]byte(sql), byte(m))
		}
		f.Add([]byte(sql), byte(lex.GBK)<<2)
	}
	columns := [][]byte{[]byte("a"), []byte("Id"), []byte("b`c"), []byte("d")}
	var st, again Statement
	var in, out Insertion
	f.Fuzz(func(t *testing.T, sql []byte, m byte) {
		mode := texts.ModeOf(m)
		filled, numbers, ok := fillAll(sql, mode, &st, &in, columns)
		if !ok || numbers == 0 {
			return
		}
		again.Analyze(filled, mode)
		table := again.Table()
		if table == nil || !bytes.Equal(table.Name, st.Table().Name) {
			t.Fatalf("%q -> %q: the table is %+v", sql, filled, table)
		}
		out.ReadInserts(filled, mode)
		if !out.Read(table) {
			t.Fatalf("%q -> %q: not read", sql, filled)
		}
		key := out.Column(isID)
		if key < 0 || !out.ReadRows(key, nil) || len(out.Rows) != len(in.Rows) {
			t.Fatalf("%q -> %q: column %d, %d rows of %d", sql, filled, key, len(out.Rows), len(in.Rows))
		}
		next := uint64(9000000)
		for i := range out.Rows {
			before, after := &in.Rows[i], &out.Rows[i]
			added := 0
			if before.Value.Kind == ValueMissing {
				added = 1
			}
			if after.Values != before.Values+added {
				t.Fatalf("%q -> %q: row %d has %d values, had %d", sql, filled, i, after.Values, before.Values)
			}
			if in.Filling(i, &Key{}) == FillNumber {
				if after.Value.Kind != ValueNumber || after.Value.Number != next {
					t.Fatalf("%q -> %q: row %d has %s %d, want %d", sql, filled, i, valueNames[after.Value.Kind], after.Value.Number, next)
				}
				next++
			} else if before := sql[before.Value.Start:before.Value.End]; !bytes.Equal(filled[after.Value.Start:after.Value.End], before) {
				t.Fatalf("%q -> %q: row %d had %q", sql, filled, i, before)
			}
		}
		if got := bytes.Count(filled, []byte("9000000")) - bytes.Count(sql, []byte("9000000")); got != 1 {
			t.Fatalf("%q -> %q: the first number is there %d times", sql, filled, got)
		}
	})
}

func TestWhatIsWrittenIntoAnInsert(t *testing.T) {
	columns := [][]byte{[]byte("a"), []byte("id"), []byte("b`c")}
	for _, c := range []struct{ sql, want string }{
		{"insert into t (a) values (1), (2)", "insert into t (a, `id`) values (1, 9000000), (2, 9000001)"},
		{"insert into t values (1, null, 2)", "insert into t (`a`, `id`, `b``c`)  values (1, 9000000, 2)"},
		{"insert into t() values (), ()", "insert into t (`id`)  values (9000000), (9000001)"},
		{"insert into t values()", "insert into t (`id`)  values(9000000)"},
		{"insert into t set a = 1", "insert into t set a = 1, `id` = 9000000"},
		{"insert into t (a) values (1) as n (b) on duplicate key update a = b", "insert into t (a, `id`) values (1, 9000000) as n (b, `seqproxy key`) on duplicate key update a = b"},
		{"insert into t (t.a, `b``c`) values (1, 2) as `n`on duplicate key update id = id", "insert into t (t.a, `b``c`, `id`) values (1, 2, 9000000) as `n` (`a`, `b``c`, `seqproxy key`)on duplicate key update id = id"},
		{"insert into t set a = 1 as n on duplicate key update a = n.a", "insert into t set a = 1, `id` = 9000000 as n (`a`, `seqproxy key`) on duplicate key update a = n.a"},
		{"insert into t () values () as n", "insert into t (`id`)  values (9000000) as n"},
		{"insert into t set a = '1'on duplicate key update a = 2", "insert into t set a = '1', `id` = 9000000 on duplicate key update a = 2"},
		{"insert into t set id = '0'on duplicate key update a = 2", "insert into t set id = 9000000 on duplicate key update a = 2"},
		{"insert into t (id, a) values (5, 1), (DEFAULT, 2)", "insert into t (id, a) values (5, 1), (9000000, 2)"},
	} {
		var st Statement
		var in Insertion
		got, _, ok := fillAll([]byte(c.sql), lex.Mode{}, &st, &in, columns)
		if !ok || string(got) != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

func BenchmarkFill(b *testing.B) {
	for _, rows := range []int{1, 1000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			sql := []byte("INSERT INTO photos (album, title) VALUES ")
			for i := range rows {
				if i > 0 {
					sql = append(sql, ", "...)
				}
				sql = append(sql, "(12, 'a sunny day at the beach, 2024')"...)
			}
			var st Statement
			var in Insertion
			b.SetBytes(int64(len(sql)))
			b.ReportAllocs()
			for b.Loop() {
				fillAll(sql, lex.Mode{}, &st, &in, nil)
			}
		})
	}
}
