package plan

import (
	"slices"
	"sort"
	"strconv"

	"seqproxy/statement"
)

// Filling is what the proxy adds to a text that gives bound columns no numbers.
type Filling struct {
	Keys    []FilledKey // in the order of the text
	Splices []statement.Splice
	Words   statement.Words
	Several bool // the text has several statements
	// ColumnsCached reports whether the columns of a table came from the cache.
	ColumnsCached bool
	// Stale reports whether the answer has shown that the columns of the table are others.
	Stale bool
	// Repeated reports whether the text has failed once.
	Repeated bool
	// Query is an INSERT ... SELECT, which becomes another text; nil: it is none.
	Query *FilledQuery
	// Placeholders says that the text shows placeholders instead of numbers, for people.
	Placeholders bool

	text []byte // of Splices
}

// FilledQuery is an INSERT ... SELECT that omits a bound column, or gives it a literal that is no
// number.
type FilledQuery struct {
	Binding *Binding
	Text    []byte // the text with NEXTVAL for the column
}

// FilledKey is the bound column of one INSERT or REPLACE.
type FilledKey struct {
	Binding   *Binding
	Statement int      // index in the text
	Table     []byte   // the table as the text names it; empty in an execution
	Explicit  []uint64 // the client's own numbers in the statement
	Rows      int      // number of all rows
	Filled    []FilledRow
	Leader    int      // the index in Filled of the row whose number becomes LAST_INSERT_ID()
	Step      uint64   // between the numbers; 1 or more
	Before    bool     // the statement reads LAST_INSERT_ID() before the row sets it
	Plain     bool     // a plain literal, unless in bulk; the session records it as LAST_INSERT_ID()
	Updates   bool     // the statement has ON DUPLICATE KEY UPDATE
	Auto      bool     // the column of several rows surely has AUTO_INCREMENT
	Params    bool     // a parameter decides whether some row is filled
	Bulk      bool     // an execution may have many rows
	Listed    bool     // the text needs a list of columns
	Added     bool     // the text lacks the key's column
	First     uint64   // the first number taken
	Further   []uint64 // the other numbers, if they are not Step apart; else empty
	Texts     []string // the keys of a binding of texts, instead of numbers
	Insertion *statement.Insertion
	Key       statement.Key
}

// Number returns the number of row i of Filled.
func (k *FilledKey) Number(i int) uint64 {
	if i > 0 && len(k.Further) > 0 {
		return k.Further[i-1]
	}
	return k.First + uint64(i)*k.Step
}

// InsertID returns the number that surely becomes the insert id, or 0.
func (k *FilledKey) InsertID() uint64 {
	i := slices.IndexFunc(k.Filled, func(r FilledRow) bool { return r.Filling != statement.FillIfEmpty })
	if i < 0 || k.Plain || k.Binding.Texts {
		return 0
	}
	return k.Number(i)
}

// FilledRow is a row whose key gets a number.
type FilledRow struct {
	Row     int // index in Insertion.Rows; of an execution, counted over its rows
	Filling statement.Filling
}

// begin empties f and keeps its memory for the next text.
func (f *Filling) begin(st *statement.Statement) {
	*f = Filling{Keys: f.Keys[:0], Splices: f.Splices[:0], text: f.text[:0], Words: st.Words, Several: st.Kind == statement.Multi}
}

// addKey appends an empty key, in the memory of an earlier one.
func (f *Filling) addKey() *FilledKey {
	n := len(f.Keys)
	f.Keys = slices.Grow(f.Keys, 1)[:n+1]
	k := &f.Keys[n]
	*k = FilledKey{Explicit: k.Explicit[:0], Filled: k.Filled[:0], Further: k.Further[:0], Texts: k.Texts[:0], Key: statement.Key{Column: k.Key.Column[:0]}}
	return k
}

// maxText bounds the bytes of numbers that are kept from one text to the next.
const maxText = 1 << 10

// trim drops the last text, and reports whether little memory remains.
func (f *Filling) trim() bool {
	if cap(f.Keys) > 1 || cap(f.Splices) > maxKept || cap(f.text) > maxText {
		return false
	}
	clear(f.Splices[:cap(f.Splices)])
	keys := f.Keys[:cap(f.Keys)]
	for i := range keys {
		k := &keys[i]
		k.Binding, k.Table, k.Insertion, k.Key.Columns = nil, nil, nil, nil
		clear(k.Texts[:cap(k.Texts)])
		if cap(k.Filled) > maxKept || cap(k.Explicit) > maxKept || cap(k.Further) > maxKept || cap(k.Texts) > maxKept {
			return false
		}
	}
	return true
}

// keyOf returns the key of a statement, or nil. It is fast, since a text may have very many.
func (f *Filling) keyOf(statement int) *FilledKey {
	if f == nil {
		return nil
	}
	i := sort.Search(len(f.Keys), func(i int) bool { return f.Keys[i].Statement >= statement })
	if i == len(f.Keys) || f.Keys[i].Statement != statement {
		return nil
	}
	return &f.Keys[i]
}

// Fills reports whether some row of the text gets a key.
func (f *Filling) Fills() bool {
	return slices.ContainsFunc(f.Keys, func(k FilledKey) bool { return len(k.Filled) > 0 })
}

// Leads reports whether a statement's first number is a key's.
func (f *Filling) Leads(statement int) bool {
	k := f.keyOf(statement)
	return k != nil && len(k.Filled) > 0 && !k.Binding.Texts
}

// disturbs reports whether the key in a statement changes what its LAST_INSERT_ID() reads.
func (f *Filling) disturbs(statement int) bool {
	k := f.keyOf(statement)
	return k != nil && len(k.Filled) > 0 && !k.Before && !k.Binding.Texts
}

// Texts returns the splices for the text.
func (f *Filling) Texts() []statement.Splice {
	if f == nil {
		return nil
	}
	return f.Splices
}

// Spell writes f.Splices with the numbers of each key.
func (f *Filling) Spell() {
	f.Splices, f.text = f.Splices[:0], f.text[:0]
	for i := range f.Keys {
		f.appendSplices(&f.Keys[i])
	}
}

// appendSplices appends to f.Splices the numbers of a key.
func (f *Filling) appendSplices(k *FilledKey) {
	in, key := k.Insertion, &k.Key
	dst := slices.Grow(f.Splices, len(k.Filled)+2)
	if k.Listed {
		dst = in.AppendList(dst, key)
	}
	const digits, leader = len("18446744073709551615"), len(KeyTextOpen + "LAST_INSERT_ID()" + KeyTextEnd)
	// one piece of memory for all numbers
	text := slices.Grow(f.text, len(k.Filled)*(digits+len("''"))+leader)
	for j, r := range k.Filled {
		from, number := len(text), k.Number(j)
		switch {
		case k.Binding.Texts:
			text = f.appendText(text, k, j)
		case r.Filling == statement.FillIfEmpty && j == k.Leader:
			text = append(text, KeyTextOpen...)
			text = f.appendLeader(text, number)
			text = append(text, KeyTextEnd...)
		case r.Filling == statement.FillIfEmpty:
			text = append(text, '\'')
			text = f.appendNumber(text, number)
			text = append(text, '\'')
		case j == k.Leader && !k.Plain:
			text = f.appendLeader(text, number)
		default:
			text = f.appendNumber(text, number)
		}
		value := text[from:len(text):len(text)]
		if r.Filling == statement.FillIfEmpty {
			dst = in.AppendIfEmpty(dst, r.Row, key, value)
		} else {
			dst = in.AppendNumber(dst, r.Row, key, value)
		}
	}
	if k.Added {
		dst = in.AppendAlias(dst)
	}
	f.Splices, f.text = dst, text
}

// KeyTextOpen and KeyTextEnd make a string of a number next to an expression of any character set:
// an explicit collation prevails.
const (
	KeyTextOpen = "CONVERT("
	KeyTextEnd  = " USING utf8mb4) COLLATE utf8mb4_bin"
)

// appendText writes the text of row i of Filled.
func (f *Filling) appendText(dst []byte, k *FilledKey, i int) []byte {
	if f.Placeholders {
		return append(dst, '?')
	}
	return statement.AppendText(dst, k.Texts[i], k.Binding.Bytes)
}

// appendNumber appends a number. appendLeader appends the one that becomes LAST_INSERT_ID().
func (f *Filling) appendNumber(dst []byte, n uint64) []byte {
	if f.Placeholders {
		return append(dst, '?')
	}
	return strconv.AppendUint(dst, n, 10)
}

func (f *Filling) appendLeader(dst []byte, n uint64) []byte {
	if f.Placeholders {
		return append(dst, "LAST_INSERT_ID(?)"...)
	}
	return statement.AppendLastInsertID(dst, n)
}
