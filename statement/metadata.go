package statement

import (
	"slices"
	"strings"
)

// Metadata is a question about what a server has: a SHOW, or a SELECT from tables.
type Metadata struct {
	// Show is what a SHOW shows, in capital letters: "TABLE STATUS". It is without GLOBAL,
	// SESSION, LOCAL, EXTENDED and FULL, and empty for a SELECT.
	Show string
	// Full is set for SHOW FULL ...
	Full bool
	// Schema is the name behind FROM or IN of a SHOW.
	Schema     string
	HasPattern bool   // LIKE 'pattern'
	Pattern    string // of it

	// Items are what a SELECT selects, and Tables all that it selects it from.
	Items  []MetadataItem
	Tables []MetadataTable

	// Where is nil if there is no condition.
	Where *Condition
	Never bool // the condition is like 1 = 0
	// Order and Limit are ORDER BY and LIMIT behind the condition of a single SELECT.
	Order []MetadataOrder
	Limit *MetadataLimit
	// Others is set if there may be rows even where the first table has none: those of a
	// UNION, or of a RIGHT JOIN.
	Others bool
	// Rest is set if there is more, or a condition, that is not read: with it a result
	// without rows is the same, and any other may not be.
	Rest bool
	// Total is set if the items are totals of all rows, so that there is a row of them even
	// where there is none to add.
	Total bool
	// Params is how many parameters the text has.
	Params int
}

// MetadataItem is an item of a SELECT.
type MetadataItem struct {
	Name   string // of the column in the result; "" for All
	Column string // that it is; "" if it is computed
	All    bool   // *, or name.*
	Table  string // the name before the dot, if there is one
	Count  bool   // a total that is 0 where there is nothing to add, not NULL
	Rows   bool   // it counts the rows: COUNT(*)
}

// MetadataTable is a table of a SELECT.
type MetadataTable struct {
	Schema, Name string // Schema is empty for the current one
	Alias        string // what it is called in the text, be it the name
}

// A question is read whole, with more memory than its text has, and answered by a goroutine
// that nothing ends meanwhile. What is longer, or has more in it, than tools ask is none.
const (
	maxQuestion = 64 << 10 // bytes
	maxItems    = 1000
	maxTables   = 61
	maxUnion    = 1000 // SELECTs
)

// ReadMetadata reads such a question. It is false for any other text, and where the
// columns of the answer could not be named. It allocates; it is not for the data path.
func ReadMetadata(sql []byte, mode Mode) (*Metadata, bool) {
	if mode.Charset == Unsupported || len(sql) > maxQuestion {
		return nil, false
	}
	r := metadataReader{simpleReader: simpleReader{lexer: lexer{src: sql, mode: mode}}}
	ok := false
	switch r.next(); r.kw {
	case kwShow:
		r.step()
		ok = r.show()
	case kwSelect:
		r.step()
		ok = r.query() && r.execs == 0
	}
	for r.is(';') {
		r.step()
	}
	if !ok || r.kind != tEOF || r.bad {
		return nil, false
	}
	return &r.m, true
}

type metadataReader struct {
	simpleReader
	m Metadata
}

// step goes to the next token.
func (r *metadataReader) step() {
	if r.is('?') {
		r.m.Params++
	}
	r.next()
}

// word says whether the current token is a word, in small letters here.
func (r *metadataReader) word(w string) bool {
	return r.kind == tWord && strings.EqualFold(string(r.src[r.start:r.end]), w)
}

// named says whether the current token can be a name.
func (r *metadataReader) named() bool { return r.kind == tWord || r.kind == tQuoted }

// string says whether the current token is a string of characters.
func (r *metadataReader) string() bool {
	return r.kind == tString && (r.src[r.start] == '\'' || r.src[r.start] == '"')
}

// show reads what follows SHOW.
func (r *metadataReader) show() bool {
	var words []string
	for ; r.kind == tWord; r.step() {
		switch {
		case r.kw == kwFrom, r.kw == kwIn, r.kw == kwLike, r.kw == kwWhere, r.kw == kwFor:
		case len(words) == 0 && (r.kw == kwGlobal || r.kw == kwSession || r.kw == kwLocal || r.word("extended")):
			continue
		case len(words) == 0 && r.word("full"):
			r.m.Full = true
			continue
		default:
			words = append(words, strings.ToUpper(string(r.src[r.start:r.end])))
			continue
		}
		break
	}
	if r.m.Show = strings.Join(words, " "); len(words) == 0 {
		return false
	}
	if r.kw == kwFor && r.m.Show == "GRANTS" { // of whom; of others nobody is told here
		if r.step(); !r.word("current_user") {
			return false
		}
		if r.step(); r.is('(') {
			if r.step(); !r.is(')') {
				return false
			}
			r.step()
		}
	}
	if r.kw == kwFrom || r.kw == kwIn {
		if r.step(); !r.named() {
			return false
		}
		r.m.Schema = r.text()
		r.step()
	}
	switch r.kw {
	case kwLike:
		if r.step(); !r.string() {
			return false
		}
		r.m.HasPattern, r.m.Pattern = true, r.text()
		r.step()
	case kwWhere:
		r.where()
		return r.clauses(false)
	}
	return true
}

// query reads what follows SELECT.
func (r *metadataReader) query() bool {
	total, ok := r.items()
	if !ok || r.kw != kwFrom {
		return false
	}
	if !r.tables() {
		return false
	}
	if r.kw == kwWhere {
		r.where()
	}
	r.m.Total = total
	return !total && r.tail() || r.clauses(total)
}

// tables reads FROM and what follows up to the condition: tables, joined in whatever way.
func (r *metadataReader) tables() bool {
	for {
		var t MetadataTable
		if r.step(); !r.named() || len(r.m.Tables) == maxTables { // behind FROM, the comma or JOIN
			return false
		}
		t.Name = r.text()
		if r.step(); r.is('.') {
			r.step()
			if !r.named() {
				return false
			}
			t.Schema, t.Name = t.Name, r.text()
			r.step()
		}
		if r.is('(') {
			return false // JSON_TABLE()
		}
		t.Alias = t.Name
		if r.kw == kwAs {
			r.step()
		}
		if r.kind == tQuoted || r.kind == tWord && !reservedWord(r.src[r.start:r.end]) {
			t.Alias = r.text()
			r.step()
		}
		r.m.Tables = append(r.m.Tables, t)
		for depth := 0; depth > 0 || !r.is(',') && !r.word("join") && r.kw != kwStraightJoin; r.step() {
			switch {
			case r.is('('):
				depth++
			case r.is(')'):
				depth--
			}
			if depth < 0 || r.kind == tEOF {
				return depth == 0
			}
			if depth == 0 && r.endsTables() {
				return true
			}
			r.m.Others = r.m.Others || depth == 0 && r.word("right")
		}
		r.m.Rest = true // more than one
	}
}

// endsTables says whether the current token begins what follows the tables.
func (r *metadataReader) endsTables() bool {
	switch r.kw {
	case kwWhere, kwGroup, kwHaving, kwOrder, kwLimit, kwUnion, kwExcept, kwIntersect, kwInto, kwFor, kwLock:
		return true
	}
	return r.is(';')
}

// where reads WHERE and its condition, as far as that is understood.
func (r *metadataReader) where() {
	r.step()
	if never := *r; never.never() {
		*r = never
		r.m.Never = true
		return
	}
	c := conditionReader{metadataReader: *r}
	params := r.m.Params
	if found, ok := c.or(); ok && (c.kind == tEOF || c.is(';') || c.endsTables()) {
		*r = c.metadataReader
		r.m.Where = &found
		return
	}
	r.m.Params, r.m.Rest = params, true
}

// never reads a condition of two numbers that are not the same, as programs write it to get no row.
func (r *metadataReader) never() bool {
	number := func() (n uint64, ok bool) {
		if r.kind == tNumber {
			n, ok = parseUint(r.src[r.start:r.end])
		}
		r.step()
		return n, ok
	}
	a, ok := number()
	if !ok || !r.is('=') {
		return false
	}
	r.step()
	b, ok := number()
	return ok && a != b && (r.kind == tEOF || r.is(';') || r.endsTables())
}

// clauses passes over what remains of a query.
func (r *metadataReader) clauses(total bool) bool {
	grouped, depth := false, 0
	for ; r.kind != tEOF && (depth > 0 || !r.is(';')); r.step() {
		switch {
		case r.is('('):
			depth++
		case r.is(')'):
			depth--
		case depth > 0:
		case r.kw == kwUnion, r.kw == kwExcept, r.kw == kwIntersect:
			return (!total || grouped) && r.union()
		case r.kw == kwGroup:
			grouped = true
			r.m.Total = false
		case r.kw == kwHaving && !grouped, r.kw == kwLimit && total && !grouped, r.kw == kwInto:
			return false
		}
		if depth < 0 {
			return false
		}
		r.m.Rest = true
	}
	return depth == 0
}

// union reads a further part of a query. Of its items only the names of the first count.
func (r *metadataReader) union() bool {
	for r.step(); r.kw == kwAll || r.kw == kwDistinct; r.step() {
		continue
	}
	if r.kw != kwSelect {
		return false
	}
	r.step()
	first := r.m.Items
	if slices.ContainsFunc(first, func(i MetadataItem) bool { return i.All }) {
		return false // which are the columns of the first part's tables alone
	}
	total, ok := r.items()
	if r.m.Items = first; !ok || total || r.kw != kwFrom || !r.tables() {
		return false
	}
	if r.kw == kwWhere {
		r.where()
	}
	r.m.Where, r.m.Never = nil, false // it is that of one part, be it this or an earlier one
	r.m.Rest, r.m.Others = true, true
	return r.clauses(false)
}
