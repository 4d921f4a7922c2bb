package torture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Of the binary log of MySQL and MariaDB this reads what tells how rows have changed: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html

// rowChange is what a transaction did to a row: before is nil if it was made, after if it was deleted. Numbers are uint64, texts string.
type rowChange struct {
	table         string
	before, after []any
	text          string // of the statement
}

// Types of events and of columns.
const (
	eventQuery           = 2
	eventFormat          = 15
	eventXID             = 16
	eventTableMap        = 19
	eventWriteRowsV1     = 23
	eventUpdateRowsV1    = 24
	eventDeleteRowsV1    = 25
	eventRowsQuery       = 29
	eventWriteRows       = 30
	eventUpdateRows      = 31
	eventDeleteRows      = 32
	eventGTID            = 33
	eventAnonymous       = 34
	eventAnnotateMariaDB = 160
	eventGTIDMariaDB     = 162

	columnTiny     = 1
	columnLong     = 3
	columnLongLong = 8
	columnVarchar  = 15
	columnString   = 254
)

// binlogMagic is what each file begins with.
var binlogMagic = []byte{0xfe, 'b', 'i', 'n'}

// errTorn: the text ends too early. The end of a file may be so, of which the server was killed.
var errTorn = errors.New("torn")

// binlog reads one file.
type binlog struct {
	tables   func(schema, table string) bool               // those that are wanted
	commit   func(at uint32, xid uint64, done []rowChange) // xid is what the server calls the transaction, if it says
	origin   uint32                                        // the server whose own changes are wanted
	checksum int
	maps     map[uint64]*tableMap
	text     string // of the statement that comes
	open     []rowChange
}

// tableMap says how the rows of a table are written. types is nil if nobody wants to know.
type tableMap struct {
	table string
	types []byte
	meta  []uint16
}

// read hands the transactions of a file to commit, as far as they are whole.
func (b *binlog) read(text []byte) error {
	b.maps = make(map[uint64]*tableMap)
	if !bytes.HasPrefix(text, binlogMagic) {
		return errors.New("no binary log")
	}
	for text = text[len(binlogMagic):]; len(text) >= 19; {
		at, kind, origin, size := binary.LittleEndian.Uint32(text), text[4], binary.LittleEndian.Uint32(text[5:]), int(binary.LittleEndian.Uint32(text[9:]))
		if size < 19 || size > len(text) {
			return nil // a killed server wrote no further
		}
		body := text[19:size]
		text = text[size:]
		if kind == eventFormat {
			if len(body) < 5 {
				return errTorn
			}
			if b.checksum = 0; body[len(body)-5] == 1 {
				b.checksum = 4
			}
			continue
		}
		if len(body) < b.checksum {
			return errTorn
		}
		if origin != b.origin {
			continue // it was replicated from there
		}
		if err := b.event(at, kind, &cursor{rest: body[:len(body)-b.checksum]}); err != nil {
			return fmt.Errorf("event of type %d: %w", kind, err)
		}
	}
	return nil
}

// event takes one event in.
func (b *binlog) event(at uint32, kind byte, c *cursor) error {
	switch kind {
	case eventGTID, eventAnonymous, eventGTIDMariaDB:
		b.open, b.text = nil, ""
	case eventXID:
		b.end(at, c.number(8))
	case eventQuery:
		c.skip(8)
		schema := int(c.number(1))
		c.skip(2)
		c.skip(int(c.number(2)) + schema + 1)
		switch string(c.rest) {
		case "BEGIN", "ROLLBACK":
			b.open = nil
		case "COMMIT":
			b.end(at, 0)
		}
	case eventAnnotateMariaDB:
		b.text = string(c.rest)
	case eventRowsQuery:
		c.skip(1)
		b.text = string(c.rest)
	case eventTableMap:
		b.table(c)
	case eventWriteRowsV1, eventUpdateRowsV1, eventDeleteRowsV1, eventWriteRows, eventUpdateRows, eventDeleteRows:
		return b.rows(kind, c)
	}
	return c.err
}

// end is that of a transaction.
func (b *binlog) end(at uint32, xid uint64) {
	if len(b.open) > 0 {
		b.commit(at, xid, b.open)
	}
	b.open = nil
}

func (b *binlog) table(c *cursor) {
	id := c.number(6)
	c.skip(2)
	schema := string(c.take(int(c.number(1))))
	c.skip(1)
	m := &tableMap{table: string(c.take(int(c.number(1))))}
	c.skip(1)
	b.maps[id] = m
	if !b.tables(schema, m.table) {
		return
	}
	m.types = c.take(int(c.length()))
	c.length()
	for _, kind := range m.types {
		switch kind {
		case columnVarchar:
			m.meta = append(m.meta, uint16(c.number(2)))
		case columnString:
			of := c.take(2)
			m.meta = append(m.meta, uint16(of[0]&0x30^0x30)<<4|uint16(of[1]))
		case columnTiny, columnLong, columnLongLong:
			m.meta = append(m.meta, 0)
		default:
			c.fail(fmt.Errorf("table %s has a column of type %d", m.table, kind))
		}
	}
}

func (b *binlog) rows(kind byte, c *cursor) error {
	m := b.maps[c.number(6)]
	c.skip(2)
	if kind >= eventWriteRows {
		c.skip(int(c.number(2)) - 2)
	}
	if m == nil || m.types == nil {
		return c.err
	}
	columns := int(c.length())
	bitmap := (columns + 7) / 8
	two := kind == eventUpdateRows || kind == eventUpdateRowsV1
	for range 1 + asNumber(two) {
		for i, present := 0, c.take(bitmap); i < columns; i++ {
			if present[i/8]&(1<<(i%8)) == 0 {
				c.fail(fmt.Errorf("a row of %s is not whole: binlog_row_image has to be FULL", m.table))
			}
		}
	}
	for len(c.rest) > 0 && c.err == nil {
		one := rowChange{table: m.table, text: b.text}
		switch first := m.row(c, bitmap); {
		case two:
			one.before, one.after = first, m.row(c, bitmap)
		case kind == eventWriteRows || kind == eventWriteRowsV1:
			one.after = first
		default:
			one.before = first
		}
		b.open = append(b.open, one)
	}
	return c.err
}

// row reads one image.
func (m *tableMap) row(c *cursor, bitmap int) (values []any) {
	null := slices.Clone(c.take(bitmap))
	for i, kind := range m.types {
		var value any
		switch {
		case c.err != nil:
			return nil
		case null[i/8]&(1<<(i%8)) != 0:
		case kind == columnTiny:
			value = c.number(1)
		case kind == columnLong:
			value = c.number(4)
		case kind == columnLongLong:
			value = c.number(8)
		case m.meta[i] > 255:
			value = string(c.take(int(c.number(2))))
		default:
			value = string(c.take(int(c.number(1))))
		}
		values = append(values, value)
	}
	return values
}

// cursor reads a text from its beginning. After an error it gives zeroes.
type cursor struct {
	rest []byte
	err  error
}

func (c *cursor) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.rest = nil
}

func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.rest) {
		c.fail(errTorn)
		return make([]byte, min(max(n, 0), 1<<16))
	}
	some := c.rest[:n]
	c.rest = c.rest[n:]
	return some
}

func (c *cursor) skip(n int) { c.take(n) }

// number reads n bytes, the lowest first.
func (c *cursor) number(n int) (sum uint64) {
	for i, b := range c.take(n) {
		sum |= uint64(b) << (8 * i)
	}
	return sum
}

// length reads a number as the protocol writes lengths.
func (c *cursor) length() uint64 {
	switch n := c.number(1); n {
	case 0xfc:
		return c.number(2)
	case 0xfd:
		return c.number(3)
	case 0xfe:
		return c.number(8)
	default:
		return n
	}
}
