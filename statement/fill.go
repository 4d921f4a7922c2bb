package statement

import (
	"slices"
	"strconv"

	"seqproxy/statement/lex"
)

// Splice puts Text in the place of sql[Start:End].
type Splice struct {
	Start, End int
	Text       []byte
}

// Key says of the column that is to be filled what the text does not.
type Key struct {
	// Column is its name, in the client's character set.
	Column []byte
	// Columns are those of the table, in order, where the text names none; Index is
	// that of the key among them.
	Columns [][]byte
	Index   int
	// ZeroStays: 0 is a value like others (NO_AUTO_VALUE_ON_ZERO). TextIsZero: so is a
	// string that is no number; otherwise it is an error, which is left to the server.
	ZeroStays, TextIsZero bool
}

// Filling says what becomes of one row's key.
type Filling uint8

// The fillings.
const (
	FillNot     Filling = iota // what stands there stays
	FillNumber                 // a number is put in its place
	FillIfEmpty                // a number, should the expression be NULL or 0
	FillParam                  // a number, should the parameter be NULL or 0
)

// NeedsColumns reports, between Read and ReadRows, whether the text has values
// without saying of which columns: they are those of the table.
func (in *Insertion) NeedsColumns() bool {
	if len(in.Columns) > 0 {
		return false
	}
	p := in.l
	if in.Source == InsertValues {
		if p.Next(); p.Is('(') {
			p.Next()
			return !p.Is(')') // INSERT INTO t VALUES () is the defaults of all
		}
	}
	return in.Source != InsertSet
}

// Filling says what becomes of row i's key.
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

// Fills reports whether a number takes the place of a literal of this kind.
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

// MayBeZero reports whether what becomes of a row depends on whether 0 is a value.
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
func (in *Insertion) Complete(n int) bool {
	for i := range in.Rows {
		if in.Rows[i].Values != n {
			return false
		}
	}
	return true
}

// Clone returns a copy that stays when in reads on. It cannot read.
func (in *Insertion) Clone() *Insertion {
	c := *in
	c.Rows, c.Columns, c.values = slices.Clone(in.Rows), slices.Clone(in.Columns), nil
	c.arena, c.text = nil, nil
	return &c
}

// AppendList appends what has to be said of the columns so that the key is among
// them, and where its value is missing in rows, is the last. It must come before the
// splices of the rows, and only if there are columns to be named: see Missing. Splices
// are valid until ReadInserts or Trim.
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

// textFrom returns what was appended to in.text, and stays when more is.
func (in *Insertion) textFrom(from int) []byte { return in.text[from:len(in.text):len(in.text)] }

// AppendAlias appends the alias of a column that AppendList has added, where the
// columns have aliases. It must come behind the splices of the rows.
func (in *Insertion) AppendAlias(dst []Splice) []Splice {
	if in.AliasEnd == 0 {
		return dst
	}
	return append(dst, Splice{in.AliasEnd, in.AliasEnd, []byte(", `seqproxy key`")})
}

// AppendNumber appends what puts value, an expression, into row i as the key.
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

// apart makes text a token of its own in front of what stands at offset at: a word may
// be glued to a string, '0'ON, but not to a number.
func (in *Insertion) apart(text []byte, at int) []byte {
	if src := in.l.Src; at < len(src) && lex.InWord(src[at]) {
		text = append(text, ' ')
	}
	return text
}

// AppendIfEmpty appends what makes row i's key value, should it be NULL, or become 0 in the
// column: an integer that is made of 0.4 is 0. A DECIMAL has the digits of every key. value
// is an expression whose type is that of a string: of two numbers the server would
// make one of their common type, which may be inexact.
func (in *Insertion) AppendIfEmpty(dst []Splice, i int, k *Key, value []byte) []Splice {
	v := &in.Rows[i].Value
	open, closing := "IFNULL((", "), "
	switch {
	case k.ZeroStays:
	case v.EndParams > v.Params: // markers cannot stand twice
		open, closing = "IFNULL(NULLIF(CAST((", ") AS DECIMAL(65)), 0), "
	default:
		// of a variable above 2^63 MariaDB makes another DECIMAL: it is for the comparison alone
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
