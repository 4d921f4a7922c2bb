package params

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
)

// MariaDB's COM_STMT_BULK_EXECUTE (https://mariadb.com/kb/en/com_stmt_bulk_execute/).
const (
	BulkHead      = 7   // command, statement id, flags
	bulkSendTypes = 128 // types follow, two bytes for each parameter

	// Indicators before the values.
	bulkValue = 0
	bulkNull  = 1
	// The last indicator in place of a value: after NULL and DEFAULT, it keeps the column's value.
	bulkIgnore = 3
)

// ErrNotInBulk is the server's error for a statement that takes no rows of parameters.
var ErrNotInBulk = protocol.Errorf(mysql.ER_UNSUPPORTED_PS, "HY000", "This command is not supported in the prepared statement protocol yet")

// errBulkArguments is the server's error for rows or types that cannot be read.
var errBulkArguments = protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to mysqld_stmt_bulk_execute")

// CutBulk splits a bulk execution of a statement with hidden parameters into rows, and records the
// types that it binds. It refuses an execution that would become too long with its numbers, before
// any are taken.
func (p *List) CutBulk(payload []byte) (e Execution, err error) {
	switch {
	case p.Params == 0: // the number of rows would be unknown
		return e, ErrNotInBulk
	case p.LongSent:
		return e, protocol.NotSupported("NEXTVAL in a statement that is executed for many rows at once, with data sent before: execute it row by row")
	case p.Previous():
		return e, protocol.NotSupported("LAST_INSERT_ID() beside NEXTVAL or a filled column in a statement that is executed for many rows at once: execute it row by row")
	}
	e.head = payload[:BulkHead]
	rest := payload[BulkHead:]
	switch {
	case binary.LittleEndian.Uint16(payload[5:])&bulkSendTypes == 0:
		if len(p.Types.Of) != p.Params {
			return e, errBulkArguments
		}
	case len(rest) < 2*p.Params:
		return e, ErrMalformed
	default:
		p.Types = p.Types.empty(p.Params)
		for i := range p.Params {
			p.Types.Of = append(p.Types.Of, binary.LittleEndian.Uint16(rest[2*i:]))
		}
		rest = rest[2*p.Params:]
	}
	size, numbers := BulkHead+2*(p.Params+len(p.Hidden)), 0
	for i := range p.Hidden {
		numbers += 1 + p.Hidden[i].size() // with its indicator
	}
	for len(rest) > 0 {
		row := rest
		for i := range p.Params {
			var ok bool
			if rest, ok = p.cutBulkValue(i, rest); !ok {
				return e, errBulkArguments
			}
		}
		row = row[:len(row)-len(rest)]
		if size += len(row) + numbers; size >= protocol.MaxFragment {
			return e, ErrTooLong
		}
		e.bulk = append(e.bulk, row)
	}
	if len(e.bulk) == 0 {
		return e, errBulkArguments
	}
	return e, nil
}

// cutBulkValue reads the client's parameter i with its indicator.
func (p *List) cutBulkValue(i int, b []byte) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	indicator, b := b[0], b[1:]
	if indicator != bulkValue {
		return b, indicator <= bulkIgnore
	}
	size, ok := protocol.BinaryValueSize(uint8(p.Types.Of[i]), b)
	if !ok {
		return nil, false
	}
	return b[size:], true
}

// appendBulk is Append for many rows.
func (p *List) appendBulk(b []byte, id uint32, e *Execution, values []keys.Number) ([]byte, error) {
	b = append(b, e.head...)
	head := b[len(b)-BulkHead:]
	binary.LittleEndian.PutUint32(head[1:], id)
	binary.LittleEndian.PutUint16(head[5:], binary.LittleEndian.Uint16(head[5:])|bulkSendTypes)
	total := p.Params + len(p.Hidden) - p.argumentCount()
	for w := (walk{p: p}); w.at < total; {
		if h, first := w.next(); h != nil {
			b = binary.LittleEndian.AppendUint16(b, h.paramType())
		} else {
			b = binary.LittleEndian.AppendUint16(b, p.Types.Of[first])
		}
	}
	of, used := make([]keys.Number, len(p.Hidden)), keysUsed{} // the values of a row
	for r, row := range e.bulk {
		if len(values) > 0 {
			of = values[r*len(p.Hidden):][:len(p.Hidden)]
		}
		p.assign(r, of, 0, &used)
		for w := (walk{p: p}); w.at < total; {
			h, first := w.next()
			for i := first; i < w.client; i++ {
				rest, _ := p.cutBulkValue(i, row)
				switch {
				case h != nil:
				case p.isEmptied(i):
					b = append(b, bulkNull)
				default:
					b = append(b, row[:len(row)-len(rest)]...)
				}
				row = rest
			}
			switch {
			case h == nil:
			case of[w.hidden-1].Null:
				b = append(b, bulkNull)
			default:
				if err := h.takes(&of[w.hidden-1]); err != nil {
					return nil, err
				}
				b = appendValue(append(b, bulkValue), of[w.hidden-1], h.paramType())
			}
		}
	}
	return b, nil
}
