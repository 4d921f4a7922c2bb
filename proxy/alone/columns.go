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

// Columns defines the columns of a SELECT that the proxy answers, while it is prepared. texts are
// the text keys of calls, as far as they are known; nil: none.
func Columns(st *statement.Statement, sql []byte, texts []keys.Number, mariaDB bool) []protocol.Column {
	columns := make([]protocol.Column, len(st.Items))
	for i := range st.Items {
		item := &st.Items[i]
		var value *keys.Number
		if texts != nil {
			value = &texts[item.FirstCall]
		}
		columns[i] = Column(item.Func, AtPrepare, value, mariaDB)
		columns[i].Name = string(st.ColumnName(sql, *item))
	}
	return columns
}

// Column defines a column of a SELECT that the proxy answers, without its name, as the server
// defines that of LAST_INSERT_ID(n), LAST_INSERT_ID(), @@last_insert_id or CONNECTION_ID(). value
// is the call's value. It may be nil outside of a text, where it is not known yet.
func Column(call statement.Func, when Moment, value *keys.Number, mariaDB bool) protocol.Column {
	c := protocol.Column{Charset: BinaryCharset, Length: 21, Type: mysql.MYSQL_TYPE_LONGLONG, Flags: NotNull | Unsigned | Binary}
	switch call {
	case statement.Nextval:
		switch {
		case value != nil && value.Text != "":
			return keyColumn(value, when)
		case !mariaDB:
			if when != InText {
				c.Flags = Unsigned | Binary
			}
		case when == InText:
			var digits [20]byte
			c.Length = uint32(len(strconv.AppendUint(digits[:0], value.Value, 10)))
		case when == AtPrepare:
			c.Length, c.Flags = 0, Unsigned|Binary
		default:
			c.Flags = Unsigned | Binary
		}
	case statement.Lastval, statement.Setval:
		c.Length, c.Flags = 20, Binary
		if when == InText && value.Value > math.MaxInt64 {
			c.Flags |= Unsigned
		}
	case statement.LastInsertIDVariable:
		c.Flags = Unsigned | Binary
	case statement.CallConnectionID:
		if mariaDB {
			c.Length, c.Type = 10, mysql.MYSQL_TYPE_LONG
		}
	}
	return c
}

// keyColumn is the column of a text key: of a literal, or of a parameter.
func keyColumn(key *keys.Number, when Moment) protocol.Column {
	c := textColumn("", uint32(len(key.Text)))
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
