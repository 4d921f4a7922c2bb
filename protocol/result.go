package protocol

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// OK is the contents of an OK packet
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html).
type OK struct {
	AffectedRows, InsertID uint64
	Status                 Status
	Warnings               uint16
	Info                   string
}

// ParseOKStatus reads the status and the warning count of an OK packet, or of one that stands for
// an EOF. payload may end after these.
func ParseOKStatus(payload []byte) (status Status, warnings uint16, ok bool) {
	_, status, warnings, ok = parseOKHead(payload)
	return status, warnings, ok
}

func parseOKHead(payload []byte) (insertID uint64, status Status, warnings uint16, ok bool) {
	if len(payload) == 0 {
		return 0, 0, 0, false
	}
	b := payload[1:]
	for range 2 { // affected rows, insert id
		var n int
		if insertID, n, ok = ReadLenEncInt(b); !ok {
			return 0, 0, 0, false
		}
		b = b[n:]
	}
	if len(b) < 4 {
		return 0, 0, 0, false
	}
	return insertID, Status(binary.LittleEndian.Uint16(b)), binary.LittleEndian.Uint16(b[2:]), true
}

// AddWarning adds one to the warning count of an OK packet, in place. It does not change other
// packets, nor the highest count.
func AddWarning(payload []byte) {
	_, warnings, ok := ParseOKStatus(payload)
	if !ok || payload[0] != headerOK || warnings == math.MaxUint16 {
		return
	}
	at := 1
	for range 2 { // affected rows, insert id
		_, n, _ := ReadLenEncInt(payload[at:])
		at += n
	}
	binary.LittleEndian.PutUint16(payload[at+2:], warnings+1) // after the status
}

// AppendOK appends an OK packet with its header. Its form does not depend on the capabilities that
// this package agrees on.
func AppendOK(b []byte, packetNum uint8, ok OK) []byte {
	return appendOK(b, packetNum, headerOK, ok)
}

func appendOK(b []byte, packetNum, header uint8, ok OK) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, header)
	b = AppendLenEncInt(b, ok.AffectedRows)
	b = AppendLenEncInt(b, ok.InsertID)
	b = binary.LittleEndian.AppendUint16(b, uint16(ok.Status))
	b = binary.LittleEndian.AppendUint16(b, ok.Warnings)
	if ok.Info != "" {
		// The text has a length with and without SESSION_TRACK. Servers send it like that and
		// clients read it like that, although the documentation differs for "without".
		b = AppendLenEncBytes(b, ok.Info)
	}
	PutHeader(b[at:], len(b)-at-HeaderSize, packetNum)
	return b
}

// AppendOKFor appends the packet of an OK with another insert id, and with the packet number num.
func AppendOKFor(b, ok []byte, id uint64, num uint8) []byte {
	at := len(b)
	_, k, _ := ReadLenEncInt(ok[1:])
	_, size, _ := ReadLenEncInt(ok[1+k:])
	b = append(append(b, 0, 0, 0, 0), ok[:1+k]...)
	b = append(AppendLenEncInt(b, id), ok[1+k+size:]...)
	PutHeader(b[at:], len(b)-at-HeaderSize, num)
	return b
}

// MaxErrorText bounds an error's text, in bytes. Servers cut there, and clients have no more room.
const MaxErrorText = 511

// CutErrorText cuts an error's text to the part that is sent. It ends with a whole character.
func CutErrorText(text string) string {
	if len(text) <= MaxErrorText {
		return text
	}
	n := MaxErrorText
	for n > MaxErrorText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// AppendERR appends an ERR packet with its header. state has five characters. "" omits it, as
// before capabilities are agreed on. The message is cut at MaxErrorText.
func AppendERR(b []byte, packetNum uint8, code uint16, state, message string) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, headerERR, byte(code), byte(code>>8))
	if state != "" {
		b = append(append(b, '#'), state...)
	}
	b = append(b, CutErrorText(message)...)
	PutHeader(b[at:], len(b)-at-HeaderSize, packetNum)
	return b
}

// Column is a column definition
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_query_response_text_resultset_column_definition.html).
type Column struct {
	Schema, Table, OrgTable string
	Name, OrgName           string
	Charset                 uint16
	Length                  uint32
	Type                    uint8
	Flags                   uint16
	Decimals                uint8
}

// append appends the definition. name replaces c.Name, unless it is nil.
func (c *Column) append(b []byte, caps Capability, name []byte) []byte {
	b = AppendLenEncBytes(b, "def")
	b = AppendLenEncBytes(b, c.Schema)
	b = AppendLenEncBytes(b, c.Table)
	b = AppendLenEncBytes(b, c.OrgTable)
	if name != nil {
		b = AppendLenEncBytes(b, name)
	} else {
		b = AppendLenEncBytes(b, c.Name)
	}
	b = AppendLenEncBytes(b, c.OrgName)
	if caps.Has(ExtendedMetadata) {
		b = append(b, 0) // only for types that no column here has
	}
	b = append(b, 0x0c)
	b = binary.LittleEndian.AppendUint16(b, c.Charset)
	b = binary.LittleEndian.AppendUint32(b, c.Length)
	b = append(b, c.Type)
	b = binary.LittleEndian.AppendUint16(b, c.Flags)
	return append(b, c.Decimals, 0, 0)
}

// Form is everything besides its contents that the bytes of an answer depend on.
type Form struct {
	Capabilities Capability
	Status       Status
	Warnings     uint16 // the statement's count, sent at the end of its result
	Binary       bool   // rows are those of a prepared statement
	// NoMetadata omits definitions, if the client has agreed on one of MetadataFlags.
	NoMetadata bool
}

// definitions reports whether the answer has column definitions.
func (f *Form) definitions() bool {
	return !f.NoMetadata || !f.Capabilities.HasAny(MetadataFlags)
}

// Result builds the proxy's own answer to a statement. The zero value is not usable: see NewResult.
type Result struct {
	b         []byte
	packetNum uint8
	form      Form
	undefined int // columns still to define
	row       int // where the packet of the row begins
}

// NewResult starts a result set. It is appended to b, with packets numbered from packetNum.
func NewResult(b []byte, packetNum uint8, form Form) Result {
	return Result{b: b, packetNum: packetNum, form: form}
}

// Columns appends the head of the result set.
func (r *Result) Columns(cols []Column) {
	r.Head(len(cols))
	r.Definitions(cols)
}

// Head appends the number of columns. Define then appends each of them.
func (r *Result) Head(columns int) {
	r.undefined = columns
	at := r.begin()
	r.b = AppendLenEncInt(r.b, uint64(columns))
	if r.form.Capabilities.HasAny(MetadataFlags) {
		follow := byte(1)
		if r.form.NoMetadata {
			follow = 0
		}
		r.b = append(r.b, follow)
	}
	r.end(at)
}

// Define appends a column's definition, and behind the last one its EOF. name replaces c.Name,
// unless it is nil.
func (r *Result) Define(c *Column, name []byte) {
	if r.form.definitions() {
		at := r.begin()
		r.b = c.append(r.b, r.form.Capabilities, name)
		r.end(at)
	}
	r.undefined--
	if r.undefined == 0 && !r.form.Capabilities.Has(DeprecateEOF) {
		r.eof(0)
	}
}

// Definitions appends column definitions and their EOF, as in the answer to COM_STMT_PREPARE.
// Without columns it appends nothing.
func (r *Result) Definitions(cols []Column) {
	r.undefined = len(cols)
	for i := range cols {
		r.Define(&cols[i], nil)
	}
}

// Row appends a row of values. Each is nil (NULL), uint64, int64, uint32, float64, time.Time (to
// the second), string or []byte. In binary form the columns must have the right types: BIGINT for
// the first two kinds of integers, INT for the last, DOUBLE for float64, DATETIME for time.Time,
// and strings for the others.
func (r *Result) Row(values ...any) {
	r.BeginRow(len(values))
	for i, v := range values {
		if v == nil {
			r.Null(i)
		} else {
			r.value(v)
		}
	}
	r.EndRow()
}

// BeginRow begins a row of n values. Null, Uint64, Uint32 or Text appends each, in the types of
// Row, and EndRow ends it.
func (r *Result) BeginRow(n int) {
	r.row = r.begin()
	if !r.form.Binary {
		return
	}
	r.b = append(r.b, 0)
	for range (n + 7 + 2) / 8 { // a bit for each value, set for NULL
		r.b = append(r.b, 0)
	}
}

// Null appends NULL as value i of the row.
func (r *Result) Null(i int) {
	if !r.form.Binary {
		r.b = append(r.b, 0xfb)
		return
	}
	r.b[r.row+HeaderSize+1+(i+2)/8] |= 1 << ((i + 2) % 8)
}

// Uint64 appends a value of a BIGINT.
func (r *Result) Uint64(v uint64) {
	if r.form.Binary {
		r.b = binary.LittleEndian.AppendUint64(r.b, v)
		return
	}
	var digits [20]byte
	r.b = AppendLenEncBytes(r.b, strconv.AppendUint(digits[:0], v, 10))
}

// Uint32 appends a value of an INT.
func (r *Result) Uint32(v uint32) {
	if r.form.Binary {
		r.b = binary.LittleEndian.AppendUint32(r.b, v)
		return
	}
	r.Uint64(uint64(v))
}

// Text appends a value of a string.
func (r *Result) Text(v string) { r.b = AppendLenEncBytes(r.b, v) }

// EndRow ends the row.
func (r *Result) EndRow() { r.end(r.row) }

func (r *Result) value(v any) {
	switch v := v.(type) {
	case uint64:
		r.Uint64(v)
	case int64:
		if r.form.Binary {
			r.b = binary.LittleEndian.AppendUint64(r.b, uint64(v))
			return
		}
		var digits [20]byte
		r.b = AppendLenEncBytes(r.b, strconv.AppendInt(digits[:0], v, 10))
	case uint32:
		r.Uint32(v)
	case float64:
		if r.form.Binary {
			r.b = binary.LittleEndian.AppendUint64(r.b, math.Float64bits(v))
			return
		}
		var digits [24]byte
		r.b = AppendLenEncBytes(r.b, strconv.AppendFloat(digits[:0], v, 'f', -1, 64))
	case time.Time:
		if !r.form.Binary {
			r.b = AppendLenEncBytes(r.b, v.Format(time.DateTime))
			return
		}
		r.b = append(r.b, 7, byte(v.Year()), byte(v.Year()>>8), byte(v.Month()), byte(v.Day()), byte(v.Hour()), byte(v.Minute()), byte(v.Second()))
	case string:
		r.Text(v)
	case []byte:
		r.b = AppendLenEncBytes(r.b, v)
	default:
		panic("protocol: Row of a value that is no number, time, string or []byte")
	}
}

// End appends the terminator and returns all bytes.
func (r *Result) End() []byte {
	if r.form.Capabilities.Has(DeprecateEOF) {
		r.b = appendOK(r.b, r.packetNum, headerEOF, OK{Status: r.form.Status, Warnings: r.form.Warnings})
		r.packetNum++
	} else {
		r.eof(r.form.Warnings)
	}
	return r.b
}

// Bytes returns the bytes built so far.
func (r *Result) Bytes() []byte { return r.b }

func (r *Result) eof(warnings uint16) {
	at := r.begin()
	r.b = append(r.b, headerEOF)
	r.b = binary.LittleEndian.AppendUint16(r.b, warnings)
	r.b = binary.LittleEndian.AppendUint16(r.b, uint16(r.form.Status))
	r.end(at)
}

func (r *Result) begin() (at int) {
	at = len(r.b)
	r.b = append(r.b, 0, 0, 0, 0)
	return at
}

func (r *Result) end(at int) {
	PutHeader(r.b[at:], len(r.b)-at-HeaderSize, r.packetNum)
	r.packetNum++
}

// AppendPrepareOK appends the first packet of an answer to COM_STMT_PREPARE
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html).
func AppendPrepareOK(b []byte, packetNum uint8, form Form, id uint32, columns, params int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0, headerOK)
	b = binary.LittleEndian.AppendUint32(b, id)
	b = binary.LittleEndian.AppendUint16(b, uint16(columns))
	b = binary.LittleEndian.AppendUint16(b, uint16(params))
	b = append(b, 0, 0, 0)
	if form.Capabilities.Has(OptionalMetadata) { // CacheMetadata omits nothing here
		follow := byte(1)
		if form.NoMetadata {
			follow = 0
		}
		b = append(b, follow)
	}
	PutHeader(b[at:], len(b)-at-HeaderSize, packetNum)
	return b
}

// Table is a complete small answer: an OK, or a result set if it has columns.
type Table struct {
	Columns []Column
	Rows    [][]any // see Result.Row
	OK      OK      // used without columns; Form has Status and Warnings
	// Warning is the answer of SHOW WARNINGS after the statement. nil means none.
	Warning *ServerError
	// After runs when the client has been sent the answer, or cannot be. nil means nothing.
	After func()
}

// Append appends the answer's packets.
func (t *Table) Append(b []byte, packetNum uint8, form Form) []byte {
	if len(t.Columns) == 0 {
		ok := t.OK
		ok.Status, ok.Warnings = form.Status, form.Warnings
		return AppendOK(b, packetNum, ok)
	}
	r := NewResult(b, packetNum, form)
	r.Columns(t.Columns)
	for _, row := range t.Rows {
		r.Row(row...)
	}
	return r.End()
}
