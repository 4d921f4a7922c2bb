package statement

import (
	"slices"
	"strconv"

	"seqproxy/statement/lex"
)

// Splice replaces sql[Start:End] by Text.
type Splice struct {
	Start, End int
	Text       []byte
}

// Key describes the column to fill, as far as the text does not.
type Key struct {
	// Column is the column's name, in the client's character set.
	Column []byte
	// Columns are all columns of the table, in order, for a text that names none. Index is the
	// key's index in them.
	Columns [][]byte
	Index   int
	// ZeroStays: 0 is an ordinary value (NO_AUTO_VALUE_ON_ZERO). TextIsZero: a string that is no
	// number counts as 0. Otherwise it is an error, which the server reports.
	ZeroStays, TextIsZero bool
}

// Filling says what happens to the key of one row.
type Filling uint8

// The fillings.
const (
	FillNot     Filling = iota // the value stays
	FillNumber                 // a number replaces the value
	FillIfEmpty                // a number replaces the expression if that is NULL or 0
	FillParam                  // a number replaces the parameter if that is NULL or 0
)

// NeedsColumns reports whether the text has values but names no columns, so that the table's
// columns must be known. Call it between Read and ReadRows.
func (in *Insertion) NeedsColumns() bool {
	if len(in.Columns) > 0 {
		return false
	}
	p := in.l
	if in.Source == InsertValues {
		if p.Next(); p.Is('(') {
			p.Next()
			return !p.Is(')') // INSERT INTO t VALUES () has all defaults
		}
	}
	return in.Source != InsertSet
}

// Filling returns what happens to the key of row i of Rows.
func (in *Insertion) Filling(i int, k *Key) Filling {
	switch kind := in.Rows[i].Value.Kind; kind {
	case ValueParam:
		return FillParam
	case ValueExpression, ValueOpaque:
		return FillIfEmpty
	default:
		if k.Fills(kind) {
			return FillNumber
		}
	}
	return FillNot
}

// Fills reports whether a number replaces a literal of this kind.
func (k *Key) Fills(kind ValueKind) bool {
	switch kind {
	case ValueMissing, ValueNull, ValueDefault:
		return true
	case ValueZero:
		return !k.ZeroStays
	case ValueText:
		return k.TextIsZero && !k.ZeroStays
	}
	return false
}

// MayBeZero reports whether a row's key depends on whether 0 is an ordinary value.
func (in *Insertion) MayBeZero() bool {
	for i := range in.Rows {
		switch in.Rows[i].Value.Kind {
		case ValueZero, ValueText, ValueExpression, ValueParam:
			return true
		}
	}
	return false
}

// Complete reports whether every row has n values.
func (in *Insertion) Complete(n int) bool { return in.width == n }

// Clone returns a copy that later reads of in do not change. The copy itself cannot read.
func (in *Insertion) Clone() *Insertion {
	c := *in
	c.Rows, c.Columns, c.values = slices.Clone(in.Rows), slices.Clone(in.Columns), nil
	c.arena, c.text = nil, nil
	return &c
}

// AppendList appends the splices that put the key into the list of columns. If its value is missing
// in rows, the key becomes the last column. Call it before the splices of the rows, and only if
// rows lack the key or the text names no columns. Splices are valid until ReadInserts or Trim.
func (in *Insertion) AppendList(dst []Splice, k *Key) []Splice {
	switch {
	case in.Source == InsertSet:
		return dst
	case len(in.Columns) > 0:
		from := len(in.text)
		in.text = in.appendName(append(in.text, ", "...), k.Column)
		return append(dst, Splice{in.ListEnd, in.ListEnd, in.textFrom(from)})
	}
	from := len(in.text)
	in.text = append(in.text, " ("...)
	if len(k.Columns) == 0 {
		in.text = in.appendName(in.text, k.Column)
	}
	for i, name := range k.Columns {
		if i > 0 {
			in.text = append(in.text, ", "...)
		}
		in.text = in.appendName(in.text, name)
	}
	in.text = append(in.text, ") "...)
	return append(dst, Splice{in.ListStart, in.ListEnd, in.textFrom(from)})
}

// textFrom returns the part of in.text from an offset on. Later appends do not change it.
func (in *Insertion) textFrom(from int) []byte { return in.text[from:len(in.text):len(in.text)] }

// AppendAlias appends an alias for the column that AppendList has added, if the rows have an alias:
// by its own name it would be ambiguous in ON DUPLICATE KEY UPDATE, as it is anyway if none are
// listed. Call it after the splices of the rows.
func (in *Insertion) AppendAlias(dst []Splice) []Splice {
	if in.AliasEnd == 0 || len(in.Columns) == 0 {
		return dst
	}
	from := len(in.text)
	if !in.AliasNames {
		in.text = append(in.text, " ("...)
		for i := range in.Columns {
			in.text = append(in.appendName(in.text, in.Columns[i].Name), ", "...)
		}
		in.text = append(in.text, "`seqproxy key`)"...)
	} else {
		in.text = append(in.text, ", `seqproxy key`"...)
	}
	return append(dst, Splice{in.AliasEnd, in.AliasEnd, in.textFrom(from)})
}

// AppendNumber appends the splice that sets the key of row i of Rows to value, an expression.
func (in *Insertion) AppendNumber(dst []Splice, i int, k *Key, value []byte) []Splice {
	r := &in.Rows[i]
	if r.Value.Kind != ValueMissing {
		return append(dst, Splice{r.Value.Start, r.Value.End, in.apart(value, r.Value.End)})
	}
	from := len(in.text)
	if r.Values > 0 {
		in.text = append(in.text, ", "...)
	}
	if in.Source == InsertSet {
		in.text = append(in.appendName(in.text, k.Column), " = "...)
	}
	in.text = in.apart(append(in.text, value...), r.End)
	return append(dst, Splice{r.End, r.End, in.textFrom(from)})
}

// apart separates text from the token before offset at. A word may follow a string at once, as in
// '0'ON, but not a number.
func (in *Insertion) apart(text []byte, at int) []byte {
	if src := in.l.Src; at < len(src) && lex.InWord(src[at]) {
		text = append(text, ' ')
	}
	return text
}

// AppendIfEmpty appends the splices that set the key of row i of Rows to value if the key is NULL
// or becomes 0 in the column: an integer column makes 0 of 0.4. The comparison is by DECIMAL, which
// has enough digits for every key. value must be an expression of a string type: from two numeric
// types the server would derive a common type, which may be inexact.
func (in *Insertion) AppendIfEmpty(dst []Splice, i int, k *Key, value []byte) []Splice {
	v := &in.Rows[i].Value
	open, closing := "IFNULL((", "), "
	switch {
	case k.ZeroStays:
	case v.EndParams > v.Params: // the expression is written twice, and markers cannot be
		open, closing = "IFNULL(NULLIF(CAST((", ") AS DECIMAL(65)), 0), "
	default:
		// MariaDB makes a wrong DECIMAL of a variable above 2^63, so the DECIMAL is only compared.
		open, closing = "IFNULL(IF(CAST(("+string(in.l.Src[v.Start:v.End])+") AS DECIMAL(65)) = 0, NULL, (", ")), "
	}
	return append(dst, Splice{v.Start, v.Start, []byte(open)},
		Splice{v.End, v.End, append(append([]byte(closing), value...), ')')})
}

// appendName appends a name in back-quotes.
func (in *Insertion) appendName(dst, name []byte) []byte {
	cs := in.l.Mode.Charset
	dst = append(dst, '`')
	for i := 0; i < len(name); i++ {
		if cs.Multi() {
			if n := cs.CharLen(name, i); n > 1 {
				dst = append(dst, name[i:i+n]...)
				i += n - 1
				continue
			}
		}
		if name[i] == '`' {
			dst = append(dst, '`')
		}
		dst = append(dst, name[i])
	}
	return append(dst, '`')
}

// AppendLastInsertID appends LAST_INSERT_ID(n).
func AppendLastInsertID(dst []byte, n uint64) []byte {
	dst = append(dst, "LAST_INSERT_ID("...)
	return append(strconv.AppendUint(dst, n, 10), ')')
}
