package proxy

import (
	"encoding/binary"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/stats"
)

// MariaDB's COM_STMT_BULK_EXECUTE (https://mariadb.com/kb/en/com_stmt_bulk_execute/).
const (
	bulkHead      = 7   // command, statement id, flags
	bulkSendTypes = 128 // types follow, two bytes for each parameter

	// Indicators before the values.
	bulkValue  = 0
	bulkNull   = 1
	bulkIgnore = 3 // the last of those that stand for a value: NULL, DEFAULT, and the column left as it is
)

var errNotInBulk = sqlError(mysql.ER_UNSUPPORTED_PS, "HY000", "This command is not supported in the prepared statement protocol yet")

// errBulkArguments is the server's error for rows or types that cannot be read.
var errBulkArguments = sqlError(mysql.ER_WRONG_ARGUMENTS, "HY000", "Incorrect arguments to mysqld_stmt_bulk_execute")

// executeBulk handles COM_STMT_BULK_EXECUTE: an execution with many rows of parameters.
func (s *session) executeBulk(payload []byte) error {
	s.tally.Kind = stats.KindOwn // until it is more
	if len(payload) < bulkHead && s.likeMariaDB() {
		return errMalformed
	}
	if err := s.bulkAgreed(); err != nil {
		return err
	}
	id := binary.LittleEndian.Uint32(payload[1:])
	p := s.preparedAs(id)
	if p != nil {
		s.takesPrepared(p)
		if err := s.stillBound(&p.inserts); err != nil {
			return s.dropLongData(p.conn, p, err)
		}
		if p.ticket != nil && p.own == nil {
			if err := s.leavePreparedToServer(p, p.ticket); err != nil {
				return s.dropLongData(p.conn, p, err)
			}
		}
	}
	switch {
	case p == nil:
		return s.unknownStatement(id, "mysqld_stmt_execute")
	case p.own != nil, p.rows != nil:
		return errNotInBulk
	case p.counts != nil:
		return refusedForm("NEXTVAL for each row in a bulk execution, which is many statements,")
	case len(p.hidden) > 0:
		return s.executeBulkHidden(p, payload)
	}
	p.toServer(payload[1:])
	return s.passExecution(p, payload)
}

// bulkAgreed is the server's error if the session has not agreed on bulk executions,
// which only MariaDB offers.
func (s *session) bulkAgreed() error {
	switch {
	case s.login.Capabilities.Has(protocol.BulkOperations):
		return nil
	case s.likeMariaDB():
		return errNotInBulk
	}
	return unknownCommand()
}

// executeBulkHidden is executeHidden for many rows: the numbers of a sequence are
// consecutive over all of them.
func (s *session) executeBulkHidden(p *prepared, payload []byte) error {
	c, err := s.connOf(p)
	if err != nil {
		return s.dropLongData(p.conn, p, err)
	}
	if err := s.fillBulk(c, p, payload); err != nil {
		return s.dropLongData(c, p, err)
	}
	if err := s.sendOwn(c); err != nil {
		return err
	}
	s.noteExecuted(c, p)
	return nil
}

// fillBulk is fillHidden for many rows.
func (s *session) fillBulk(c *backend.Conn, p *prepared, payload []byte) error {
	rows, err := p.cutBulk(payload)
	if err != nil {
		return err
	}
	if err := s.prepareConn(c, p); err != nil {
		return err
	}
	asks := make([]plan.Slot, 0, len(rows)*len(p.hidden))
	for _, row := range rows {
		asked, err := s.asksOf(p, p.argumentsInRow(row))
		if err != nil {
			return err
		}
		asks = append(asks, asked...)
	}
	n, err := s.numbersOf(p, asks)
	if err == nil && p.key != nil {
		for i, row := range rows {
			if err = s.keysOf(c, p, i*len(p.key.rows), p.argumentsInRow(row)); err != nil {
				return err
			}
		}
		err = s.spaceKeys(c, p)
	}
	if err != nil {
		return err
	}
	values, err := s.numbers.All(n, nil)
	if err != nil {
		return err
	}
	p.placeKeys(values, len(rows))
	p.filling = nil // which may be of very many rows
	s.own = p.appendBulk(append(s.own[:0], 0, 0, 0, 0), payload, rows, values)
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	return nil
}

// cutBulk cuts a bulk execution of a statement with hidden parameters into rows, and
// takes note of the types that it binds. What would become too long with its numbers is
// refused here: there may be more of them than there is memory for.
func (p *prepared) cutBulk(payload []byte) (rows [][]byte, err error) {
	switch {
	case p.params == 0: // nothing would tell how many rows there are
		return nil, errNotInBulk
	case p.longSent:
		return nil, notSupported("NEXTVAL in a statement that is executed for many rows at once, with data sent before: execute it row by row")
	case slices.ContainsFunc(p.hidden, func(h hiddenParam) bool { return h.previous }):
		return nil, notSupported("NEXTVAL and LAST_INSERT_ID() in a statement that is executed for many rows at once: execute it row by row")
	}
	rest := payload[bulkHead:]
	switch {
	case binary.LittleEndian.Uint16(payload[5:])&bulkSendTypes == 0:
		if len(p.types) != p.params {
			return nil, errBulkArguments
		}
	case len(rest) < 2*p.params:
		return nil, errMalformed
	default:
		p.types = p.types[:0]
		for i := range p.params {
			p.types = append(p.types, protocol.Parameter{Type: binary.LittleEndian.Uint16(rest[2*i:])})
		}
		rest = rest[2*p.params:]
	}
	const number = 1 + 21 // with its indicator
	size := bulkHead + 2*(p.params+len(p.hidden))
	for len(rest) > 0 {
		row := rest
		for i := range p.params {
			var ok bool
			if rest, ok = p.cutBulkValue(i, rest); !ok {
				return nil, errBulkArguments
			}
		}
		row = row[:len(row)-len(rest)]
		if size += len(row) + number*len(p.hidden); size >= protocol.MaxFragment {
			return nil, errTooLong
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return nil, errBulkArguments
	}
	return rows, nil
}

// cutBulkValue reads the client's parameter i with its indicator.
func (p *prepared) cutBulkValue(i int, b []byte) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	indicator, b := b[0], b[1:]
	if indicator != bulkValue {
		return b, indicator <= bulkIgnore
	}
	size, ok := protocol.BinaryValueSize(uint8(p.types[i].Type), b)
	if !ok {
		return nil, false
	}
	return b[size:], true
}

// appendBulk is appendExecute for rows that cutBulk has cut; values are those of all
// rows.
func (p *prepared) appendBulk(b, payload []byte, rows [][]byte, values []keys.Number) []byte {
	b = append(b, payload[:bulkHead]...)
	head := b[len(b)-bulkHead:]
	binary.LittleEndian.PutUint32(head[1:], p.backendID)
	binary.LittleEndian.PutUint16(head[5:], binary.LittleEndian.Uint16(head[5:])|bulkSendTypes)
	total := p.params + len(p.hidden) - p.argumentCount()
	for w := (walk{p: p}); w.at < total; {
		if h, own := w.next(); h != nil {
			b = binary.LittleEndian.AppendUint16(b, h.paramType())
		} else {
			b = binary.LittleEndian.AppendUint16(b, p.types[own].Type)
		}
	}
	for r, row := range rows {
		of := values[r*len(p.hidden):] // the values of this row
		for w := (walk{p: p}); w.at < total; {
			h, own := w.next()
			for i := own; i < w.own; i++ {
				rest, _ := p.cutBulkValue(i, row)
				switch {
				case h != nil:
				case p.isEmptied(r, i):
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
				b = appendValue(append(b, bulkValue), of[w.hidden-1], h.paramType())
			}
		}
	}
	return b
}
