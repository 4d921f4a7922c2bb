package idiom

import (
	"bytes"

	"seqproxy/statement/lex"
)

// TicketKind is one of the idioms of ticket servers.
type TicketKind uint8

// The kinds.
const (
	// TicketUpdate is UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'.
	TicketUpdate TicketKind = iota + 1
	// TicketUpsert is INSERT INTO sequence (name) VALUES ('photos')
	// ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1).
	TicketUpsert
	// TicketReplace is REPLACE INTO tickets64 (stub) VALUES ('a').
	TicketReplace
	// TicketInsert is INSERT INTO ids_photos VALUES (NULL), or another way to insert a row with
	// nothing but a generated number.
	TicketInsert
)

// maxTicketStep bounds the step of an idiom, as in NEXTVAL('s', n).
const maxTicketStep = 1_000_000

// Ticket is a statement that has exactly the form of an idiom. Names and the key are decoded, in
// the client's character set and letter case. They share memory with the text or have their own.
type Ticket struct {
	Kind          TicketKind
	Schema, Table []byte // Schema is nil for the current one
	// ID is the column of the number, and Column is the column of Key. Each is nil if the statement
	// does not name it.
	ID, Column []byte
	// Key is the row's name or stub. KeyParam is the index of the parameter that stands for it, or
	// -1.
	Key      []byte
	KeyParam int
	// Step is the number that is added, 1 to 1,000,000. StepParam is the index of the parameter
	// that stands for it, or -1. Step is 1 for a TicketReplace and a TicketInsert.
	Step      uint64
	StepParam int
	// End is the end of the statement: sql[End:] follows its semicolon.
	End int
}

// MatchTicket reads the first statement of a text as an idiom, in any usual form. It returns false
// for everything else, even with the same meaning. It allocates only for names with escapes.
func MatchTicket(sql []byte, mode lex.Mode) (t Ticket, ok bool) {
	if mode.Charset >= lex.Unsupported {
		return t, false
	}
	m := ticketReader{Lexer: lex.Lexer{Src: sql, Mode: mode}, t: Ticket{KeyParam: -1, StepParam: -1, Step: 1}}
	m.Next()
	switch m.Kw {
	case lex.KwUpdate:
		ok = m.update()
	case lex.KwInsert:
		ok = m.insert(false)
	case lex.KwReplace:
		ok = m.insert(true)
	}
	if !ok || m.Kind != lex.EOF && !m.Is(';') || m.Bad || m.Execs > 0 || m.InExec {
		return Ticket{}, false
	}
	m.t.End = m.End
	return m.t, true
}

type ticketReader struct {
	lex.Lexer
	t      Ticket
	arena  lex.Arena
	params int    // number of parameter markers so far
	alias  []byte // of the table
}

// update reads UPDATE table [[AS] alias] SET id = LAST_INSERT_ID(id + k) WHERE name = key
// [LIMIT 1].
func (m *ticketReader) update() bool {
	m.t.Kind = TicketUpdate
	m.Next()
	if !m.table() {
		return false
	}
	if m.Kw == lex.KwAs {
		m.Next()
		if m.Kind != lex.Word && m.Kind != lex.Quoted {
			return false
		}
	}
	if m.Kw != lex.KwSet {
		if m.Kind != lex.Word && m.Kind != lex.Quoted {
			return false
		}
		m.alias = m.arena.Decode(&m.Lexer)
		m.Next()
	}
	if !m.word(lex.KwSet) || !m.assignment() || !m.word(lex.KwWhere) {
		return false
	}
	parenthesis := m.punct('(')
	if !m.comparison() || parenthesis && !m.punct(')') {
		return false
	}
	if m.Kw == lex.KwLimit {
		m.Next()
		if n, number := m.digits(); !number || n != 1 {
			return false
		}
	}
	return true
}

// comparison reads name = key, or key = name.
func (m *ticketReader) comparison() bool {
	if m.key() {
		if !m.punct('=') {
			return false
		}
		column, ok := m.column()
		m.t.Column = column
		return ok
	}
	column, ok := m.column()
	m.t.Column = column
	return ok && m.punct('=') && m.key()
}

// assignment reads id = LAST_INSERT_ID(id + k).
func (m *ticketReader) assignment() bool {
	id, ok := m.column()
	m.t.ID = id
	if !ok || !m.punct('=') || !m.word(lex.KwLastInsertID) || !m.punct('(') {
		return false
	}
	parenthesis := m.punct('(')
	if !m.sum() || parenthesis && !m.punct(')') {
		return false
	}
	return m.punct(')')
}

// sum reads id + k, or k + id.
func (m *ticketReader) sum() bool {
	if m.step() {
		return m.punct('+') && m.sameID()
	}
	return m.sameID() && m.punct('+') && m.step()
}

func (m *ticketReader) sameID() bool {
	id, ok := m.column()
	return ok && bytes.EqualFold(id, m.t.ID)
}

func (m *ticketReader) step() bool {
	if m.Is('?') {
		m.t.StepParam = m.param()
		return true
	}
	n, ok := m.digits()
	if ok {
		m.t.Step = n
	}
	return ok && n >= 1 && n <= maxTicketStep
}

// ticketValue is the kind of one value of a new row.
type ticketValue uint8

const (
	valueKey    ticketValue = iota // the key
	valueNone                      // NULL or DEFAULT: the column generates it
	valueNumber                    // a number, or LAST_INSERT_ID(number)
)

// insert reads INSERT and REPLACE of one row.
func (m *ticketReader) insert(replace bool) bool {
	m.Next()
	if m.Kw == lex.KwInto {
		m.Next()
	}
	if !m.table() {
		return false
	}
	var columns [2][]byte
	var values [2]ticketValue
	var numbers [2]uint64
	named, given := 0, 0
	if m.Kw == lex.KwSet {
		for m.Next(); ; m.Next() {
			if given == len(values) {
				return false
			}
			column, ok := m.column()
			if !ok || !m.punct('=') {
				return false
			}
			columns[given] = column
			if values[given], numbers[given], ok = m.value(); !ok {
				return false
			}
			given++
			if !m.Is(',') {
				break
			}
		}
		named = given
	} else {
		listed := m.Is('(')
		if listed {
			if !m.list(func() bool {
				if named == len(columns) {
					return false
				}
				var ok bool
				columns[named], ok = m.column()
				named++
				return ok
			}) {
				return false
			}
		}
		if m.Kw != lex.KwValues && m.Kw != lex.KwValue {
			return false
		}
		m.Next()
		if !m.list(func() bool {
			if given == len(values) {
				return false
			}
			var ok bool
			values[given], numbers[given], ok = m.value()
			given++
			return ok
		}) {
			return false
		}
		if named != given && (listed || given != 1 || values[0] != valueNone) {
			return false // as in VALUES (NULL) for a table of one column
		}
	}
	return m.classify(replace, columns[:named], values[:given], numbers[:given])
}

// classify finds the idiom of the row just read, and reads the rest of the statement.
func (m *ticketReader) classify(replace bool, columns [][]byte, values []ticketValue, numbers []uint64) bool {
	keys, number, first := 0, false, uint64(0) // first: the number of a new row, 0 if it names none
	for i, v := range values {
		switch {
		case v == valueKey:
			keys++
			m.t.Column = columns[i]
			continue
		case v == valueNumber:
			number, first = true, numbers[i]
		}
		if m.t.ID != nil {
			return false
		}
		if len(columns) > 0 {
			m.t.ID = columns[i]
		}
	}
	switch {
	case keys == 0:
		m.t.Kind = TicketInsert
		return !number && len(values) < 2
	case keys > 1:
		return false
	case replace:
		m.t.Kind = TicketReplace
		return !number
	}
	m.t.Kind = TicketUpsert
	if !m.word(lex.KwOn) || !m.word(lex.KwDuplicate) || !m.Spells("key") {
		return false
	}
	if m.Next(); !m.word(lex.KwUpdate) {
		return false
	}
	id := m.t.ID
	if !m.assignment() || id != nil && !bytes.EqualFold(id, m.t.ID) {
		return false
	}
	// An application begins a new row with 1, so that is its first number.
	return (number || id == nil) && first <= 1 && (first == 0 || m.t.StepParam < 0 && m.t.Step == 1)
}

// value reads a value of a new row.
func (m *ticketReader) value() (v ticketValue, number uint64, ok bool) {
	switch {
	case m.key():
		return valueKey, 0, true
	case m.Kw == lex.KwNull, m.Kw == lex.KwDefault:
		m.Next()
		return valueNone, 0, true
	case m.Kw == lex.KwLastInsertID:
		m.Next()
		if !m.punct('(') {
			return 0, 0, false
		}
		number, ok = m.digits()
		return valueNumber, number, ok && number == 1 && m.punct(')')
	}
	number, ok = m.digits()
	return valueNumber, number, ok
}

// list reads elements in parentheses, separated by commas.
func (m *ticketReader) list(item func() bool) bool {
	if !m.punct('(') {
		return false
	}
	if m.punct(')') {
		return true
	}
	for {
		if !item() {
			return false
		}
		if !m.punct(',') {
			return m.punct(')')
		}
	}
}

// table reads the table's name.
func (m *ticketReader) table() bool {
	if m.Kind != lex.Word && m.Kind != lex.Quoted || m.Kind == lex.Word && lex.Reserved(m.Src[m.Start:m.End]) {
		// IGNORE and the like.
		return false
	}
	m.t.Table = m.arena.Decode(&m.Lexer)
	if m.Next(); !m.Is('.') {
		return true
	}
	m.Next()
	if m.Kind != lex.Word && m.Kind != lex.Quoted {
		return false
	}
	m.t.Schema, m.t.Table = m.t.Table, m.arena.Decode(&m.Lexer)
	m.Next()
	return true
}

// column reads a column's name, which may be qualified by the statement's table.
func (m *ticketReader) column() (name []byte, ok bool) {
	var parts [3][]byte
	n := 0
	for {
		if n == len(parts) || m.Kind != lex.Word && m.Kind != lex.Quoted {
			return nil, false
		}
		parts[n] = m.arena.Decode(&m.Lexer)
		n++
		if m.Next(); !m.Is('.') {
			break
		}
		m.Next()
	}
	switch {
	case n == 1:
		return parts[0], true
	case n == 2 && m.alias != nil:
		return parts[1], bytes.Equal(parts[0], m.alias)
	case n == 2:
		return parts[1], bytes.Equal(parts[0], m.t.Table)
	}
	return parts[2], m.alias == nil && m.t.Schema != nil && bytes.Equal(parts[0], m.t.Schema) && bytes.Equal(parts[1], m.t.Table)
}

// key reads a string or a parameter.
func (m *ticketReader) key() bool {
	switch {
	case m.t.Key != nil || m.t.KeyParam >= 0:
		return false
	case m.Is('?'):
		m.t.KeyParam = m.param()
		return true
	case m.Kind == lex.String && (m.Src[m.Start] == '\'' || m.Src[m.Start] == '"'):
		m.t.Key = m.arena.DecodeName(&m.Lexer)
		m.Next()
		return m.Kind != lex.String // 'pho' 'tos' would be one string
	}
	return false
}

// param moves past a parameter marker and returns its index.
func (m *ticketReader) param() int {
	m.params++
	m.Next()
	return m.params - 1
}

// digits reads decimal digits.
func (m *ticketReader) digits() (n uint64, ok bool) {
	if m.Kind != lex.Number {
		return 0, false
	}
	n, ok = lex.ParseUint(m.Src[m.Start:m.End])
	m.Next()
	return n, ok
}

// word moves past a keyword. It returns false for another token.
func (m *ticketReader) word(kw lex.Keyword) bool {
	if m.Kw != kw {
		return false
	}
	m.Next()
	return true
}

// punct is word for a single character.
func (m *ticketReader) punct(ch byte) bool {
	if !m.Is(ch) {
		return false
	}
	m.Next()
	return true
}
