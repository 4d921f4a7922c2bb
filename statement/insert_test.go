package statement

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/statement/lex"
	"seqproxy/test/texts"
)

var valueNames = map[ValueKind]string{
	ValueMissing: "missing", ValueNull: "null", ValueDefault: "default", ValueZero: "zero", ValueNumber: "number",
	ValueExplicit: "explicit", ValueText: "text", ValueParam: "param", ValueExpression: "expression", ValueOpaque: "opaque",
}

// described writes an Insertion of a text's first statement, with id as the wanted column: source,
// flags, columns, the text between ListStart and ListEnd, and the rows. Each row has its value and
// the text from its End.
func described(sql string, mode lex.Mode) string {
	var st Statement
	var in Insertion
	st.Analyze([]byte(sql), mode)
	if len(st.Tables) == 0 {
		return "no table"
	}
	in.ReadInserts([]byte(sql), mode)
	if !in.Read(&st.Tables[0]) {
		return "unknown"
	}
	words := []string{[]string{"unknown", "values", "set", "query"}[in.Source]}
	key := in.Column(func(name []byte) bool { return bytes.EqualFold(name, []byte("id")) })
	for i, c := range in.Columns {
		name := string(c.Name)
		if i == key {
			name = "*" + name
		}
		words = append(words, name)
	}
	if in.Source == InsertValues && len(in.Columns) == 0 {
		words = append(words, fmt.Sprintf("[%s]%.3s", sql[in.ListStart:in.ListEnd], sql[in.ListEnd:]))
	}
	if in.Source == InsertQuery {
		return strings.Join(words, " ")
	}
	if len(in.Columns) == 0 {
		key = 0
	}
	if !in.ReadRows(key, nil) {
		return "unread"
	}
	if in.Ignore {
		words[0] += " ignore"
	}
	if in.OnDuplicate {
		words[0] += " duplicate"
	}
	if in.Returning {
		words[0] += " returning"
	}
	if in.AliasEnd > 0 {
		words = append(words, "alias:"+sql[in.AliasEnd-1:min(in.AliasEnd+1, len(sql))])
	}
	for _, r := range in.Rows {
		v := ""
		if r.Value.Kind != ValueMissing {
			v = " " + sql[r.Value.Start:r.Value.End]
		}
		if r.Value.Kind == ValueNumber {
			v += fmt.Sprintf("=%d", r.Value.Number)
		}
		words = append(words, fmt.Sprintf("<%d %s%s|%.1s>", r.Values, valueNames[r.Value.Kind], v, sql[r.End:]))
	}
	return strings.Join(words, " ")
}

func TestAnInsertIsReadClosely(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"insert into t (id, a) values (null, 'x')", "values *id a <2 null null|)>"},
		{"insert into t (a) values ('x'), ('y')", "values a <1 missing|)> <1 missing|)>"},
		{"insert t values (0,'),(')", "values [] va <2 zero 0|)>"},
		{"insert into t () values (), ()", "values [ ()] va <0 missing|)> <0 missing|)>"},
		{"insert into t values ()", "values [] va <0 missing|)>"},
		{"insert into t(a)values(1)on duplicate key update a = values(a)", "values duplicate a <1 missing|)>"},
		{"insert ignore into t (a) value (1)", "values ignore a <1 missing|)>"},
		{"insert into t (`a`, t.`ID`, s.t.b) values (1, default, f(1, 2))", "values a *ID b <3 default default|)>"},
		{"replace into t partition (p0, p1) (a) values (1)", "values a <1 missing|)>"},
		{"insert into t partition (p0) values (1)", "values [] va <1 number 1=1|)>"},
		{"insert into t (a) values row(1), row (2)", "values a <1 missing|)> <1 missing|)>"},
		{"insert into t (a) values (1) as new on duplicate key update a = new.a", "values duplicate a alias:w  <1 missing|)>"},
		{"insert into t (a, b) values (1, 2) as new (m, n) on duplicate key update a = m", "values duplicate a b alias:n) <2 missing|)>"},
		{"insert into t (a) values (1) returning id, (select 1)", "values returning a <1 missing|)>"},
		{"insert into t (a) values (1) on duplicate key update a = (2) returning id", "values duplicate returning a <1 missing|)>"},
		{"insert into t (a) values (?), (?)", "values a <1 missing|)> <1 missing|)>"},
		{"insert into t set a = 1", "set a <1 missing|>"},
		{"insert into t set a = 1, id = NULL, b := (2, 3)", "set a *id b <3 null NULL|>"},
		{"insert into t set t.id = default on duplicate key update a = 1", "set duplicate *id <1 default default| >"},
		{"insert into t set a = if(1, 2, 3) as new", "set a alias:w <1 missing| >"},
		{"replace t set a = 1;", "set a <1 missing|;>"},
		{"insert into t (a) select 1", "query a"},
		{"insert into t (a) (select 1)", "query a"},
		{"insert into t (select 1)", "query"},
		{"insert into t ((select 1) union (select 2))", "query"},
		{"insert into t table u", "query"},
		{"insert into t with c as (select 1) select * from c", "query"},
		{"insert into t (values row(1))", "query"},
		{"insert into t (a values (1)", "unknown"},
		{"insert into t (a, ) values (1)", "unknown"},
		{"insert into t (a) value", "unread"},
		{"insert into t (a) values (1", "unread"},
		{"insert into t (a) values (1,)", "unread"},
		{"insert into t (a) values (1,,2)", "unread"},
		{"insert into t (a) values (1) (2)", "unread"},
		{"insert into t (a) values (1) limit 1", "unread"},
		{"insert into t (a) set a = 1", "unknown"},
		{"insert into t (a) values (1 /*!99999 , 2 */)", "unread"},
		{"insert into t (a) values (1 /*! + 2 */)", "values a <1 missing|)>"},
		{"insert into t", "unknown"},
	} {
		if got := described(c.sql, lex.Mode{}); got != c.want {
			t.Errorf("%q: got %q, want %q", c.sql, got, c.want)
		}
	}
}

func TestWhatAnIntegerColumnMakesOfAValue(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"NULL", "null"},
		{"null", "null"},
		{"(NULL)", "null"},
		{`\N`, "null"},
		{"-null", "expression"},
		{"default", "default"},
		{"default(id)", "opaque"},
		{"(default)", "expression"},
		{"0", "zero"},
		{"00", "zero"},
		{"-0", "zero"},
		{"+0", "zero"},
		{"((0))", "zero"},
		{"0.0", "zero"},
		{".0", "zero"},
		{"0e0", "zero"},
		{"0.2", "zero"},
		{"0.5", "opaque"},
		{"0.4", "zero"},
		{"-0.4", "zero"},
		{"0.6", "explicit"},
		{"1 * 0.4", "opaque"},
		{"0.4 * 1", "opaque"},
		{"-0.0", "zero"},
		{"1 / 3", "opaque"},
		{"0.8", "explicit"},
		{"1e-9", "zero"},
		{"false", "zero"},
		{"'0'", "zero"},
		{`"0"`, "zero"},
		{"' 0 '", "zero"},
		{"'-0'", "zero"},
		{"'0.0'", "zero"},
		{"5", "number 5"},
		{"+5", "number 5"},
		{"(5)", "number 5"},
		{"5.0", "number 5"},
		{"5e2", "number 500"},
		{"'5'", "number 5"},
		{"' 5'", "number 5"},
		{"'5e2'", "number 500"},
		{"true", "number 1"},
		{"18446744073709551615", "number 18446744073709551615"},
		{"'+7'", "number 7"},
		{"-5", "explicit"},
		{"- 5", "explicit"},
		{"'-5'", "explicit"},
		{"1.7", "explicit"},
		{"18446744073709551616", "explicit"},
		{"1e400", "explicit"},
		{"'5 apples'", "explicit"},
		{"'-5x'", "explicit"},
		{"''", "text"},
		{"' '", "text"},
		{"'x'", "text"},
		{"'0x1F'", "text"},
		{"'0x1p4'", "text"},
		{"'-'", "text"},
		{"'0.2x'", "text"},
		{"--5", "number 5"}, // -- without a space begins no comment
		{"- -5", "number 5"},
		{"-'5'", "expression"},
		{"('5')", "expression"},
		{"0x1F", "number 31"},
		{"0b11", "number 3"},
		{"0x00", "opaque"},
		{"-0x1F", "opaque"},
		{"0x1FFFFFFFFFFFFFFFF", "opaque"},
		{"1 + 0x1F", "opaque"},
		{"00", "zero"},
		{"0e1", "zero"},
		{"current_date", "opaque"},
		{"x'1F'", "opaque"},
		{"b'0'", "opaque"},
		{"N'0'", "expression"},
		{"_utf8mb4'0'", "expression"},
		{"'0' '1'", "expression"},
		{"?", "param"},
		{"? + 1", "expression"},
		{"(?)", "expression"},
		{"-?", "expression"},
		{"a", "opaque"},
		{"a + 1", "opaque"},
		{"@x", "expression"},
		{"@@insert_id", "opaque"},
		{"1 + 1", "expression"},
		{"(1) + (2)", "expression"},
		{"case when 1 then 2 end", "expression"},
		{"!1", "expression"},
		{"date '2024-01-01'", "opaque"},
		{"f(1)", "opaque"},
		{"`f` (1)", "opaque"},
		{"nextval('s')", "opaque"},
		{"last_insert_id()", "opaque"},
		{"1 + f()", "opaque"},
		{"(select 1)", "opaque"},
		{"@x := 5", "opaque"},
		{"next value for s", "opaque"},
		{"1 in (2)", "opaque"},
		{"current_timestamp()", "opaque"},
	} {
		for _, form := range []string{"insert into t (id, a) values (%s, 1)", "insert into t set id = %s, a = 1", "insert into t (a, id) values (1, %s)"} {
			sql := fmt.Sprintf(form, c.value)
			var st Statement
			var in Insertion
			st.Analyze([]byte(sql), lex.Mode{})
			in.ReadInserts([]byte(sql), lex.Mode{})
			if !in.Read(&st.Tables[0]) || !in.ReadRows(in.Column(func(name []byte) bool { return string(name) == "id" }), nil) {
				t.Errorf("%s: not read", sql)
				continue
			}
			v := in.Rows[0].Value
			got := valueNames[v.Kind]
			if v.Kind == ValueNumber {
				got += fmt.Sprint(" ", v.Number)
			}
			if got != c.want || sql[v.Start:v.End] != c.value {
				t.Errorf("%s: got %s %q, want %s", sql, got, sql[v.Start:v.End], c.want)
			}
		}
	}
}

func TestALiteralIsNeverNull(t *testing.T) {
	for want, values := range map[bool][]string{
		true:  {"'a'", `"a"`, "'a' 'b'", "x'61'", "X'61'", "b'1'", "N'a'", "0x61", "0b1", "5", "0.5", "1e3", "_latin1'a'", "_latin1 'a' 'b'", "_binary x'61'", "_binary 0x61"},
		false: {"null", `\N`, "default", "?", "-5", "('a')", "true", "_latin1", "f()", "a", "_a.b", "'a' || null", "_latin1'a' collate x", "x'61' + @v", "(select 'a')", "date'2020-01-01'", "5 'a'"},
	} {
		for _, value := range values {
			sql := "insert into t (id) values (" + value + ")"
			var st Statement
			var in Insertion
			st.Analyze([]byte(sql), lex.Mode{})
			in.ReadInserts([]byte(sql), lex.Mode{})
			if !in.Read(st.Table()) || !in.ReadRows(0, nil) {
				t.Fatalf("%s: not read", sql)
			}
			if got := in.Rows[0].Value.Literal; got != want {
				t.Errorf("%s is a literal: %v, want %v", value, got, want)
			}
		}
	}
}

func TestMarkersAreCountedInFrontOfValuesAndRowEnds(t *testing.T) {
	const sql = "insert into t (a, id) values (?, ?), (concat(?, ?), null), (1, ?) on duplicate key update a = ?"
	var st Statement
	var in Insertion
	st.Analyze([]byte(sql), lex.Mode{})
	in.ReadInserts([]byte(sql), lex.Mode{})
	if !in.Read(st.Table()) || !in.ReadRows(1, nil) {
		t.Fatal("not read")
	}
	var got []string
	for _, r := range in.Rows {
		got = append(got, fmt.Sprint(r.Value.Params, r.Params))
	}
	if got, want := strings.Join(got, ", "), "1 2, 4 4, 4 5"; got != want {
		t.Errorf("markers in front of value and end: got %s, want %s", got, want)
	}
}

func TestTheColumnsThatLoadDataNames(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"load data infile 'x' into table t", ""},
		{"load data local infile 'x' ignore into table t partition (p0) character set utf8mb4 fields terminated by ',' enclosed by '(' lines starting by ')' ignore 1 lines (a, @b, `c`)", "a c"},
		{"load data infile 'x' into table t (a, @b) set id = @b, t.d = f(1, 2)", "a id d"},
		{"load data infile 'x' into table t ()", ""},
		{"load data infile 'x' into table t (a b)", "unknown"},
		{"load data infile 'x' into table t (a) set id", "unknown"},
		{"load xml infile 'x' into table t rows identified by '<row>' (a)", "a"},
		{"load data infile 'x' into table t character set utf8mb4 set d = 1", "d"},
	} {
		var st Statement
		var in Insertion
		st.Analyze([]byte(c.sql), lex.Mode{})
		in.ReadInserts([]byte(c.sql), lex.Mode{})
		got := "unknown"
		if in.ReadLoad(st.Table()) {
			var names []string
			for _, column := range in.Columns {
				names = append(names, string(column.Name))
			}
			got = strings.Join(names, " ")
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.sql, got, c.want)
		}
	}
}

// If the file has no values, the server generates them.
func TestWhetherALoadGivesAColumn(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want bool
	}{
		{"load data infile 'x' into table t", true},
		{"load data infile 'x' into table t (a, id)", true},
		{"load data infile 'x' into table t (a)", false},
		{"load data infile 'x' into table t (a, @b) set id = @b", true},
		{"load data infile 'x' into table t (a, id) set id = null", false},
		{"load data infile 'x' into table t set id = 0", false},
		{"load data infile 'x' into table t (@a) set a = trim(@a)", false},
		{"load data infile 'x' into table t (@a, @id) set id = @id", true},
		{"load data infile 'x' into table t ()", true},
		{"load data infile 'x' into table t set id = default", false},
		{"load data infile 'x' into table t set a = 1", true},
		{"load data infile 'x' into table t character set latin1 set id = 0", false},
		{"load xml infile 'x' into table t", false},
		{"load xml infile 'x' into table t (id, a)", false},
		{"load xml infile 'x' into table t (@id, a) set id = @id + 1", true},
	} {
		var st Statement
		var in Insertion
		st.Analyze([]byte(c.sql), lex.Mode{})
		in.ReadInserts([]byte(c.sql), lex.Mode{})
		if !in.ReadLoad(st.Table()) {
			t.Errorf("%s: not read", c.sql)
		} else if got := in.LoadGives(func(name []byte) bool { return string(name) == "id" }); got != c.want {
			t.Errorf("%s: got %v, want %v", c.sql, got, c.want)
		}
	}
}

// What is known of all rows does not depend on which are kept.
func TestRowsThatStayAreCounted(t *testing.T) {
	for _, c := range []struct {
		sql            string
		count, kept    int
		complete, zero bool
	}{
		{"insert into t values (1, 2), (3, 4)", 2, 0, true, false},
		{"insert into t values (1, 2), (0, 4), (5, 6), (null, 8)", 4, 2, true, true},
		{"insert into t values (1, 2), (3), (5, 6)", 3, 0, false, false},
		{"insert into t values (1), (3, 4)", 2, 0, false, false},
		{"insert into t values (1), (3)", 2, 0, false, false},
		{"insert into t set id = 5, a = 6", 1, 0, true, false},
		{"insert into t set id = null, a = 6", 1, 1, true, false},
	} {
		var st Statement
		var in Insertion
		st.Analyze([]byte(c.sql), lex.Mode{})
		in.ReadInserts([]byte(c.sql), lex.Mode{})
		if !in.Read(st.Table()) || !in.ReadRows(0, func(v *InsertValue) bool { return v.Kind == ValueNumber }) {
			t.Errorf("%s: not read", c.sql)
		} else if in.Count != c.count || len(in.Rows) != c.kept || in.Complete(2) != c.complete || in.MayBeZero() != c.zero {
			t.Errorf("%s: got %d rows, %d kept, complete %v, zero %v, want %+v", c.sql, in.Count, len(in.Rows), in.Complete(2), in.MayBeZero(), c)
		}
	}
}

func TestTheInsertsOfATextAreReadInTurn(t *testing.T) {
	const sql = "/* x */; insert into a (b) values (1); select 1; replace into c set d = 2; update x set y = 1; insert into e select 1; insert into f values (3),(4)"
	var st Statement
	var in Insertion
	st.Analyze([]byte(sql), lex.Mode{})
	in.ReadInserts([]byte(sql), lex.Mode{})
	var got []string
	for i := range st.Tables {
		if st.Tables[i].Kind == Update {
			continue
		}
		ok := in.Read(&st.Tables[i])
		rows := in.Source != InsertQuery && in.ReadRows(0, nil)
		got = append(got, fmt.Sprintf("%s %v %v %d", st.Tables[i].Name, ok, rows, len(in.Rows)))
	}
	if got, want := strings.Join(got, ", "), "a true true 1, c true true 1, e true false 0, f true true 2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzInsertion checks for any text: an Insertion does not panic. Offsets are in order and in
// range. Values are read as they stand there. A skipped value ends where a value that is read ends.
// Rows that are not kept count, and the others stay as they are.
func FuzzInsertion(f *testing.F) {
	for _, sql := range texts.Corpus {
		f.Add([]byte(sql), byte(0), byte(0))
	}
	for _, sql := range []string{
		"insert into t (id, a) values (null, 'x'), (0, f(1, 2)) on duplicate key update a = 1",
		"insert into t set a = 1, id = (NULL); replace t values (), ()",
		"insert into t partition (p) (a) values row(-5) as n (m)",
	} {
		f.Add([]byte(sql), byte(0), byte(0))
		f.Add([]byte(sql), byte(2), byte(1))
	}
	var in, passing, few Insertion
	isNumber := func(v *InsertValue) bool { return v.Kind == ValueNumber }
	f.Fuzz(func(t *testing.T, sql []byte, m, key byte) {
		mode := texts.ModeOf(m)
		var st Statement
		st.Analyze(sql, mode)
		in.ReadInserts(sql, mode)
		passing.ReadInserts(sql, mode)
		few.ReadInserts(sql, mode)
		end := 0
		for i := range st.Tables {
			table := &st.Tables[i]
			if table.Kind == Load {
				in.ReadLoad(table)
				return
			}
			if table.Kind != Insert && table.Kind != Replace {
				continue
			}
			if table.Begin < end || table.Start < table.Begin || table.End <= table.Start || table.End > len(sql) {
				t.Fatalf("table %+v after %d of %d", table, end, len(sql))
			}
			end = table.End
			passing.Read(table)
			few.Read(table)
			if !in.Read(table) || in.Source == InsertQuery {
				continue
			}
			if in.ListStart < end || in.ListEnd < in.ListStart || in.ListEnd > len(sql) {
				t.Fatalf("list at [%d,%d) after %d of %d", in.ListStart, in.ListEnd, end, len(sql))
			}
			index := int(key)
			if in.Source == InsertSet && index >= len(in.Columns) {
				index = -1
			}
			read := in.ReadRows(index, nil)
			kept := slices.DeleteFunc(slices.Clone(in.Rows), func(r InsertRow) bool { return isNumber(&r.Value) })
			if same := few.ReadRows(index, isNumber); same != read || few.Count != len(in.Rows) || !slices.Equal(few.Rows, kept) || few.l.Pos != in.l.Pos {
				t.Fatalf("got %v, %d rows, of which are kept %+v, want %v, %d, %+v", same, few.Count, few.Rows, read, len(in.Rows), kept)
			}
			if in.Source == InsertValues {
				if passed := passing.ReadRows(-1, nil); passed != read || len(passing.Rows) != len(in.Rows) {
					t.Fatalf("got %v and %d rows of values that are passed, %v and %d with one of them read", passed, len(passing.Rows), read, len(in.Rows))
				}
				for i, r := range in.Rows {
					if p := passing.Rows[i]; p.Values != r.Values || p.End != r.End || p.Params != r.Params {
						t.Fatalf("row %d is %+v passed, %+v read", i, p, r)
					}
				}
			} else {
				passing.ReadRows(-1, nil)
			}
			if !read {
				continue
			}
			end = in.ListEnd
			if in.Source == InsertSet {
				end = table.End
			}
			for _, r := range in.Rows {
				v := r.Value
				if v.Kind != ValueMissing && (v.Start < end || v.End <= v.Start || v.End > r.End) {
					t.Fatalf("value at [%d,%d) after %d, row ends at %d", v.Start, v.End, end, r.End)
				}
				if r.End < end || r.End > len(sql) || in.Source == InsertValues && sql[r.End] != ')' {
					t.Fatalf("row ends at %d after %d of %d", r.End, end, len(sql))
				}
				end = r.End
			}
			if in.AliasEnd != 0 && (in.AliasEnd < end || in.AliasNames && sql[in.AliasEnd] != ')') {
				t.Fatalf("alias ends at %d after %d of %d", in.AliasEnd, end, len(sql))
			}
		}
	})
}
