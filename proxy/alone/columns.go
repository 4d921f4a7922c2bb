package alone

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// Moment is when columns are defined. A number is a literal in a text, and a parameter in a
// prepared statement, whose length is unknown until it is bound.
type Moment uint8

// The moments.
const (
	InText Moment = iota
	AtPrepare
	AtExecute
)

// Column flags
// (https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__column__definition__flags.html).
const (
	NotNull  = mysql.NOT_NULL_FLAG
	Unsigned = mysql.UNSIGNED_FLAG
	Binary   = mysql.BINARY_FLAG

	BinaryCharset = 63
)

// Columns defines the columns of a SELECT that the proxy answers, as the server defines those of
// LAST_INSERT_ID(n), LAST_INSERT_ID(), @@last_insert_id and CONNECTION_ID(). values are the values
// of the calls, for a text only. texts are the text keys of calls, as far as they are known; nil:
// none.
func Columns(st *statement.Statement, sql []byte, when Moment, values, texts []keys.Number, mariaDB bool) []protocol.Column {
	columns := make([]protocol.Column, len(st.Items))
	for i := range st.Items {
		item := &st.Items[i]
		c := protocol.Column{
			Name: string(st.ColumnName(sql, *item)), Charset: BinaryCharset, Length: 21,
			Type: mysql.MYSQL_TYPE_LONGLONG, Flags: NotNull | Unsigned | Binary,
		}
		switch item.Func {
		case statement.Nextval:
			if texts != nil && texts[item.FirstCall].Text != "" {
				c = keyColumn(c.Name, &texts[item.FirstCall], when)
				break
			}
			switch {
			case !mariaDB:
				if when != InText {
					c.Flags = Unsigned | Binary
				}
			case when == InText:
				var digits [20]byte
				c.Length = uint32(len(strconv.AppendUint(digits[:0], values[item.FirstCall].Value, 10)))
			case when == AtPrepare:
				c.Length, c.Flags = 0, Unsigned|Binary
			default:
				c.Flags = Unsigned | Binary
			}
		case statement.Lastval, statement.Setval:
			c.Length, c.Flags = 20, Binary
			if values != nil && values[item.FirstCall].Value > math.MaxInt64 {
				c.Flags |= Unsigned
			}
		case statement.LastInsertIDVariable:
			c.Flags = Unsigned | Binary
		case statement.CallConnectionID:
			if mariaDB {
				c.Length, c.Type = 10, mysql.MYSQL_TYPE_LONG
			}
		}
		columns[i] = c
	}
	return columns
}

// keyColumn is the column of a text key: of a literal, or of a parameter.
func keyColumn(name string, key *keys.Number, when Moment) protocol.Column {
	c := textColumn(name, uint32(len(key.Text)))
	if key.Binary {
		c.Charset, c.Length, c.Flags = BinaryCharset, uint32(len(key.Text)), Binary
	}
	if when == InText {
		c.Flags |= NotNull
	}
	return c
}

// TextsOf returns stand-ins for the text keys of a statement that is being prepared.
func TextsOf(slots []plan.Slot) []keys.Number {
	if !slices.ContainsFunc(slots, func(s plan.Slot) bool { return s.Texts }) {
		return nil
	}
	texts := make([]keys.Number, len(slots))
	for i := range slots {
		if slots[i].Texts {
			texts[i].Text, texts[i].Binary = longestKey, slots[i].Bytes
		}
	}
	return texts
}

// longestKey is a text as long as the longest key.
var longestKey = strings.Repeat("?", 64)

// Params defines the parameters of a statement that is answered here, as the server does those of
// LAST_INSERT_ID(?).
func Params(n int, mariaDB bool) []protocol.Column {
	c := protocol.Column{Name: "?", Charset: BinaryCharset, Type: mysql.MYSQL_TYPE_NULL, Flags: Binary}
	if !mariaDB {
		c.Type, c.Length = mysql.MYSQL_TYPE_LONGLONG, 21
	}
	return slices.Repeat([]protocol.Column{c}, n)
}
