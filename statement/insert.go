package statement

import "seqproxy/statement/lex"

// InsertSource is the source of an INSERT's or REPLACE's rows.
type InsertSource uint8

// The sources.
const (
	// InsertUnknown: no word has shown the source yet, or Insertion cannot follow the text. Then it
	// has an error, or a form that only the server understands.
	InsertUnknown InsertSource = iota
	InsertValues               // VALUES (...), (...), or VALUES ROW(...)
	InsertSet                  // SET a = 1, b = 2
	InsertQuery                // SELECT, TABLE, WITH, VALUES in parentheses
)

// Insertion reads INSERT and REPLACE closely, after Analyze, if their table matters. The zero value
// is ready for use. It keeps its memory for the next text, and refers to the present one.
type Insertion struct {
	Source InsertSource
	// Ignore: INSERT IGNORE. OnDuplicate and Returning: these clauses follow the rows.
	Ignore, OnDuplicate, Returning bool
	// Columns are the named columns, in order: those of the list before the rows, or those of SET.
	// Empty means all columns of the table.
	Columns []InsertColumn
	// ListStart and ListEnd bound the place for a list of columns: an empty list or nothing. If
	// columns are listed, ListEnd is before the closing parenthesis, and another column fits there.
	ListStart, ListEnd int
	// Rows are the rows of VALUES, or the single row of SET, that ReadRows keeps. Count is the number
	// of all rows.
	Rows  []InsertRow
	Count int
	// AliasEnd is where another column's alias fits: before the closing parenthesis in VALUES (1, 2)
	// AS new (a, b), behind AS new. 0 means no alias. AliasNames: the columns have aliases.
	AliasEnd   int
	AliasNames bool
	// LoadsAll, of ReadLoad: there is no list, so the file has all visible columns.
	LoadsAll bool

	l      lex.Lexer
	arena  lex.Arena
	params int  // markers read so far
	width  int  // number of values in each row; -1: rows differ
	listed int  // in ReadLoad: how many of Columns are the file's; the rest are SET's
	xml    bool // in ReadLoad
	values []InsertValue
	text   []byte // memory for splices
}

// InsertColumn is a column named in an INSERT.
type InsertColumn struct {
	// Name is decoded, in the client's character set and letter case, without schema and table.
	Name       []byte
	Start, End int
}

// InsertRow is one row of values.
type InsertRow struct {
	// Values is their number.
	Values int
	// End is where another value fits: before the closing parenthesis, or after the last assignment
	// of SET. Params is the number of markers before it.
	End, Params int
	// Value is the value for the wanted column. Its Kind is ValueMissing if the row has none.
	Value InsertValue
}

// ReadInserts prepares to read the INSERTs of a text. Analyze must have found the tables with the
// same sql and mode.
func (in *Insertion) ReadInserts(sql []byte, mode lex.Mode) {
	in.l = lex.Lexer{Src: sql, Mode: mode}
	in.params = 0
	in.arena = in.arena[:0]
	in.values, in.text = in.values[:0], in.text[:0]
}

// Read reads the INSERT or REPLACE of table t up to its rows. Callers must pass tables in text
// order. It returns false, and Source is InsertUnknown, if it cannot follow the text.
func (in *Insertion) Read(t *TableRef) bool {
	in.Source = InsertUnknown
	in.Ignore, in.OnDuplicate, in.Returning, in.AliasNames = false, false, false, false
	in.Columns, in.Rows, in.values, in.AliasEnd, in.Count = in.Columns[:0], in.Rows[:0], in.values[:0], 0, 0
	l := &in.l
	for l.End < t.End && l.Kind != lex.EOF || l.Pos == 0 {
		if l.Start >= t.Begin && l.Kw == lex.KwIgnore && l.End <= t.Start {
			in.Ignore = true
		}
		in.next()
	}
	if l.End != t.End || l.Bad {
		return false
	}
	in.ListStart, in.ListEnd = l.End, l.End
	in.next()
	if in.l.Spells("partition") {
		if in.next(); !l.Is('(') || !in.skipParentheses() {
			return false
		}
		in.ListStart, in.ListEnd = l.End, l.End
		in.next()
	}
	if l.Is('(') && !in.queryFollows() {
		if !in.columnList() {
			return false
		}
		in.next()
	}
	switch l.Kw {
	case lex.KwValues, lex.KwValue:
		in.Source = InsertValues
	case lex.KwSet:
		if len(in.Columns) > 0 || !in.assignments() {
			return false
		}
		in.Source = InsertSet
	case lex.KwSelect, lex.KwWith, lex.KwTable:
		in.Source = InsertQuery
	default:
		if l.Is('(') {
			in.Source = InsertQuery
		}
	}
	return in.Source != InsertUnknown && !l.Bad && !l.SeenCond
}

// ReadLoad is Read for LOAD DATA and LOAD XML. See LoadGives.
func (in *Insertion) ReadLoad(t *TableRef) bool {
	in.Source, in.Columns, in.values, in.listed, in.LoadsAll, in.xml = InsertUnknown, in.Columns[:0], in.values[:0], 0, true, false
	l := &in.l
	for l.End < t.End && l.Kind != lex.EOF || l.Pos == 0 {
		in.xml = in.xml || l.Start >= t.Begin && l.Kw == lex.KwXML
		in.next()
	}
	if l.End != t.End {
		return false
	}
	charset := false // the next SET belongs to CHARACTER SET
	for in.next(); l.Kind != lex.EOF && !l.Is(';'); in.next() {
		switch {
		case in.l.Spells("partition"):
			if in.next(); !l.Is('(') || !in.skipParentheses() {
				return false
			}
		case l.Is('('):
			for !l.Is(')') {
				in.next()
				if l.Is(')') {
					break // an empty list is none
				}
				in.LoadsAll = false
				if l.Kind == lex.UserVar {
					in.next()
				} else if !in.column() {
					return false
				}
				if !l.Is(',') && !l.Is(')') {
					return false
				}
			}
			in.listed = len(in.Columns)
		case l.Kw == lex.KwSet && !charset:
			return in.assignments() && !l.Bad && !l.SeenCond
		}
		charset = l.Kw == lex.KwCharacter
	}
	return !l.Bad && !l.SeenCond
}

// LoadGives reports whether a column gets values from the file or the SET of ReadLoad. Empty
// literals in SET do not count. An XML file may have values for any column.
func (in *Insertion) LoadGives(same func(name []byte) bool) bool {
	for i, v := range in.values { // values of SET
		if same(in.Columns[in.listed+i].Name) {
			switch v.Kind {
			case ValueNull, ValueDefault, ValueZero, ValueText:
				return false
			}
			return true
		}
	}
	if in.xml {
		return false
	}
	at := in.Column(same)
	return in.LoadsAll && at < 0 || at >= 0 && at < in.listed
}

// Column returns the index of the column for which same is true, or -1.
func (in *Insertion) Column(same func(name []byte) bool) int {
	for i := range in.Columns {
		if same(in.Columns[i].Name) {
			return i
		}
	}
	return -1
}

// ReadRows reads the rows and what follows them. key is the index of the wanted column, or -1. It
// returns false if it cannot follow all of it. take gets the value of each row, and reports whether
// it needs no more. Such a row is counted and not kept: a text may have millions. With nil all are
// kept.
func (in *Insertion) ReadRows(key int, take func(v *InsertValue) bool) bool {
	switch in.Source {
	case InsertSet:
		row := InsertRow{Values: len(in.Columns), End: in.values[len(in.values)-1].End, Params: in.params, Value: InsertValue{Kind: ValueMissing}}
		if key >= 0 {
			row.Value = in.values[key]
		}
		in.addRow(&row, take)
		return in.tail()
	case InsertValues:
		return in.rows(key, take) && in.tail()
	}
	return false
}

// addRow counts a row, and keeps it unless take needs no more than its value.
func (in *Insertion) addRow(row *InsertRow, take func(v *InsertValue) bool) {
	switch {
	case in.Count == 0:
		in.width = row.Values
	case in.width != row.Values:
		in.width = -1
	}
	in.Rows = append(in.Rows, *row)
	if last := len(in.Rows) - 1; take != nil && take(&in.Rows[last].Value) {
		in.Rows = in.Rows[:last]
	}
	in.Count++
}

func (in *Insertion) next() {
	if in.l.Is('?') {
		in.params++
	}
	in.l.Next()
}

// queryFollows reports whether the current parenthesis opens a query.
func (in *Insertion) queryFollows() bool {
	p := in.l
	for p.Is('(') {
		p.Next()
	}
	switch p.Kw {
	case lex.KwSelect, lex.KwWith, lex.KwTable, lex.KwValues:
		return true
	}
	return false
}

// skipParentheses moves from an opening parenthesis to its closing one.
func (in *Insertion) skipParentheses() bool {
	for depth := 0; in.l.Kind != lex.EOF; in.next() {
		switch {
		case in.l.Is('('):
			depth++
		case in.l.Is(')'):
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// columnList reads (a, t.b, ...) to its closing parenthesis.
func (in *Insertion) columnList() bool {
	l := &in.l
	if in.next(); l.Is(')') {
		in.ListEnd = l.End
		return true
	}
	for in.column() {
		if l.Is(')') {
			in.ListStart, in.ListEnd = l.Start, l.Start
			return true
		}
		if !l.Is(',') {
			return false
		}
		in.next()
	}
	return false
}

// column reads a possibly qualified column name and moves behind it.
func (in *Insertion) column() bool {
	l := &in.l
	c := InsertColumn{Start: l.Start}
	if l.Is('.') { // MariaDB takes .t.a for t.a
		in.next()
	}
	for {
		if l.Kind != lex.Word && l.Kind != lex.Quoted {
			return false
		}
		c.Name, c.End = in.arena.Decode(l), l.End
		if in.next(); !l.Is('.') {
			in.Columns = append(in.Columns, c)
			return true
		}
		in.next()
	}
}

// assignments reads SET a = 1, b = 2.
func (in *Insertion) assignments() bool {
	l := &in.l
	for {
		in.next()
		if !in.column() || l.Kind != lex.Assign && !l.Is('=') {
			return false
		}
		in.next()
		v, ok := in.value(false)
		if !ok {
			return false
		}
		in.values = append(in.values, v)
		if !l.Is(',') {
			return true
		}
	}
}

// rows reads (1, 2), (3, 4), and moves behind them.
func (in *Insertion) rows(key int, take func(v *InsertValue) bool) bool {
	l := &in.l
	for {
		in.next()
		if in.l.Spells("row") {
			in.next()
		}
		if !l.Is('(') {
			return false
		}
		row := InsertRow{Value: InsertValue{Kind: ValueMissing}}
		in.next()
		for !l.Is(')') {
			if row.Values > 0 {
				if !l.Is(',') {
					return false
				}
				in.next()
			}
			ok := false
			if row.Values == key {
				row.Value, ok = in.value(true)
			} else {
				ok = in.passValue()
			}
			if !ok {
				return false
			}
			row.Values++
		}
		row.End, row.Params = l.Start, in.params
		in.addRow(&row, take)
		if in.next(); !l.Is(',') {
			return true
		}
	}
}

// tail reads what follows the rows, to the end of the statement.
func (in *Insertion) tail() bool {
	l := &in.l
	if l.Kw == lex.KwAs {
		if in.next(); l.Kind != lex.Word && l.Kind != lex.Quoted {
			return false
		}
		in.AliasEnd = l.End
		if in.next(); l.Is('(') {
			if !in.skipParentheses() {
				return false
			}
			in.AliasEnd, in.AliasNames = l.Start, true
			in.next()
		}
	}
	switch {
	case l.Kw == lex.KwOn:
		in.OnDuplicate = true
	case l.Kw == lex.KwReturning:
		in.Returning = true
	case l.Kind == lex.EOF, l.Is(';'):
	default:
		return false
	}
	for depth := 0; l.Kind != lex.EOF && (depth > 0 || !l.Is(';')); in.next() {
		switch {
		case l.Is('('):
			depth++
		case l.Is(')'):
			depth--
		case l.Kw == lex.KwReturning && depth == 0:
			in.Returning = true
		}
	}
	return !l.Bad && !l.SeenCond
}

// Trim frees memory beyond a small bound.
func (in *Insertion) Trim() {
	in.Columns, in.Rows, in.values = trim(in.Columns, 32), trim(in.Rows, 16), trim(in.values, 16)
	in.text = trim(in.text, 1<<10)
	in.l.Src = nil
	in.arena = trim(in.arena, 64)
}
