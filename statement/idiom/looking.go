package idiom

import (
	"bytes"
	"slices"

	"seqproxy/statement/lex"
)

// SequenceQuestion is a question by which a program looks for sequences, in the form for MariaDB.
// Only its shape is read: the server decides which rows match.
type SequenceQuestion struct {
	// Sources are the places that name a source of rows, in order. There is at least one.
	Sources []SequenceSource
	// Named are the names in the text that may be columns, in upper case, without duplicates.
	Named []string
	// All is set if the text may ask for all columns.
	All bool
	// End is the end of a SHOW's condition.
	End int
}

// SourceKind says what a SequenceSource names.
type SourceKind uint8

// The kinds.
const (
	// SourceTables is information_schema.TABLES, in a text that contains TABLE_TYPE and the string
	// 'SEQUENCE'.
	SourceTables SourceKind = iota
	// SourceSequences is information_schema.SEQUENCES.
	SourceSequences
	// SourceShow is the part of a SHOW FULL TABLES [FROM schema] WHERE before the condition, in a
	// text that contains the string 'SEQUENCE'. SequenceQuestion.End is the end of the condition.
	SourceShow
	// SourceOne is a name after FROM, in a text that contains the column next_not_cached_value, or
	// minimum_value and start_value. MariaDB's sequences have these.
	SourceOne
)

// SequenceSource is one place that names a source of rows.
type SequenceSource struct {
	Kind       SourceKind
	Start, End int // sql[Start:End] is the name, without an alias
	// Schema and Name are decoded, in the client's character set. An empty Schema means the current
	// one. SourceShow has no Name. For the others Name also serves as alias if there is none.
	Schema, Name []byte
	Aliased      bool
}

// Reading a question takes more memory than its text. Programs do not ask longer questions, or with
// more names or tables.
const (
	maxQuestion = 64 << 10 // in bytes
	maxNames    = 1000
)

// ReadSequenceQuestion reads such a question. It returns false for any other text. It allocates, so
// it is not for the data path.
func ReadSequenceQuestion(sql []byte, mode lex.Mode) (*SequenceQuestion, bool) {
	if mode.Charset == lex.Unsupported || len(sql) > maxQuestion {
		return nil, false
	}
	r := questionReader{Lexer: lex.Lexer{Src: sql, Mode: mode}}
	ok := false
	switch r.Next(); r.Kw {
	case lex.KwShow:
		ok = r.show()
	case lex.KwSelect:
		ok = r.query()
	}
	if !ok || r.Bad || r.Execs > 0 {
		return nil, false
	}
	return &r.q, true
}

type questionReader struct {
	lex.Lexer
	arena    lex.Arena
	q        SequenceQuestion
	sequence bool // the text contains the string 'SEQUENCE'
	only     []SequenceSource
}

func (r *questionReader) isName() bool { return r.Kind == lex.Word || r.Kind == lex.Quoted }

// isSystem reports whether the current token is information_schema.
func (r *questionReader) isSystem() bool {
	return r.Kw == lex.KwInformationSchema || r.Kind == lex.Quoted && lex.EqualFold(r.arena.Decode(&r.Lexer), "information_schema")
}

func (r *questionReader) text() []byte { return bytes.Clone(r.arena.Decode(&r.Lexer)) }

// show reads FULL TABLES [FROM | IN schema] WHERE condition.
func (r *questionReader) show() bool {
	source := SequenceSource{Kind: SourceShow, Start: r.Start}
	if r.Next(); !r.Spells("full") {
		return false
	}
	if r.Next(); r.Kw != lex.KwTables {
		return false
	}
	if r.Next(); r.Kw == lex.KwFrom || r.Kw == lex.KwIn {
		if r.Next(); !r.isName() {
			return false
		}
		source.Schema = r.text()
		r.Next()
	}
	if r.Kw != lex.KwWhere {
		return false
	}
	source.End = r.End
	for r.Next(); r.Kind != lex.EOF && !r.Is(';'); r.Next() {
		r.note()
		r.q.End = r.End
	}
	r.q.Sources = []SequenceSource{source}
	return r.sequence
}

// query reads what follows SELECT.
func (r *questionReader) query() bool {
	depth := 0
	opens, from := true, false // a * here is a list; a table may follow
	for r.Next(); r.Kind != lex.EOF; {
		r.note()
		switch {
		case r.Is('('):
			depth++
		case r.Is(')'):
			depth--
		case r.Is('*'):
			r.q.All = r.q.All || opens
		}
		switch {
		case r.isSystem():
			if !r.view(from) {
				return false
			}
			opens, from = false, false
			continue
		case r.Kw == lex.KwFrom && depth == 0:
			r.Next()
			if opens, from = false, true; r.isName() && !r.isSystem() && !r.table() {
				return false
			}
			continue
		}
		opens = !r.Is('(') && !r.Is(')') && r.Kind != lex.Number && r.Kind != lex.String
		from = r.Kw == lex.KwFrom || r.Is(',') || r.Spells("join")
		r.Next()
	}
	tables := slices.ContainsFunc(r.q.Sources, func(s SequenceSource) bool { return s.Kind == SourceTables })
	switch {
	case tables:
		return r.sequence && r.names("TABLE_TYPE")
	case len(r.q.Sources) == 0 && (r.names("NEXT_NOT_CACHED_VALUE") || r.names("MINIMUM_VALUE") && r.names("START_VALUE")):
		r.q.Sources = r.only
	}
	return len(r.q.Sources) > 0
}

func (r *questionReader) names(column string) bool { return slices.Contains(r.q.Named, column) }

// note records the current token.
func (r *questionReader) note() {
	switch {
	case r.Kind == lex.String:
		r.sequence = r.sequence || bytes.EqualFold(r.arena.Decode(&r.Lexer), []byte("sequence"))
	case r.isName() && len(r.q.Named) < maxNames:
		name := string(bytes.ToUpper(r.arena.Decode(&r.Lexer)))
		if !slices.Contains(r.q.Named, name) {
			r.q.Named = append(r.q.Named, name)
		}
	}
}

// view reads a name that begins with information_schema. It returns false if the name is part of a
// column's name: the column would change its meaning if another table took the place.
func (r *questionReader) view(from bool) bool {
	source := SequenceSource{Start: r.Start, Schema: r.text()}
	if r.Next(); !r.Is('.') {
		return true
	}
	r.Next()
	switch name := r.arena.Decode(&r.Lexer); {
	case !r.isName():
		return true
	case lex.EqualFold(name, "tables"):
	case lex.EqualFold(name, "sequences"):
		source.Kind = SourceSequences
	default:
		return true
	}
	source.Name, source.End = r.text(), r.End
	r.Next()
	if !from || r.Is('.') || r.Is('(') {
		return false
	}
	source.Aliased = r.alias()
	r.q.Sources = append(r.q.Sources, source)
	return true
}

// table reads the name of a table after FROM.
func (r *questionReader) table() bool {
	source := SequenceSource{Kind: SourceOne, Start: r.Start, End: r.End, Name: r.text()}
	r.Next()
	if r.Is('.') {
		if r.Next(); !r.isName() {
			return false
		}
		source.Schema, source.Name, source.End = source.Name, r.text(), r.End
		r.Next()
	}
	source.Aliased = r.alias()
	r.only = append(r.only, source)
	return len(r.only) <= maxNames
}

// alias reports whether an alias follows.
func (r *questionReader) alias() bool {
	return r.Kw == lex.KwAs || r.Kind == lex.Quoted || r.Kind == lex.Word && !lex.Reserved(r.Src[r.Start:r.End])
}
