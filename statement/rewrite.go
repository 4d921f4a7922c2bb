package statement

import (
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"seqproxy/statement/lex"
)

// Replacement says how a call is replaced.
type Replacement uint8

// The replacements, with 1001 as the example of a value.
const (
	// Keep leaves the call as it is.
	Keep Replacement = iota
	// AsLastInsertID is LAST_INSERT_ID(1001). It returns the value, makes it the connection's
	// insert id, and puts it into the OK packet.
	AsLastInsertID
	// AsUnsigned is CAST(1001 AS UNSIGNED). It has the type of LAST_INSERT_ID() and no effect.
	AsUnsigned
	// AsNullable is NULLIF(LEAST(1001, 9223372036854775807), -1). Its type is a BIGINT that may be
	// NULL, as for LASTVAL().
	AsNullable
	// AsFurther is IF(1,CAST(1001 AS UNSIGNED),LAST_INSERT_ID(1001)). The second part is never
	// evaluated. It has the column of AsLastInsertID (type, length, flags) and no effect. With
	// Param, MariaDB's answer to a PREPARE has the length 1 instead of 0, but the answer to an
	// execution is the same.
	AsFurther
	// AsLeading is IF(LAST_INSERT_ID(1001)<=>0,LAST_INSERT_ID(Bound),CAST(Bound AS UNSIGNED)). It
	// returns Bound, and its effect is that of AsLastInsertID for 1001, which is not 0.
	AsLeading
	// AsLate is (value+0*LAST_INSERT_ID(Bound)). The value is Value, or the call itself if that is
	// a LastInsertID or LastInsertIDVariable. After that it has the effect of AsLastInsertID for
	// Bound.
	AsLate
	// AsPrevious is the value with the column of the call, without an effect. The call is a
	// LastInsertID, LastInsertIDVariable or PseudoThreadID.
	AsPrevious
	// AsCounted counts on from the connection's LAST_INSERT_ID() in steps of Step. Each evaluation
	// returns the next number and makes it LAST_INSERT_ID(). Outside of Value to Bound the
	// statement fails with error 1690. No sql_mode makes that a warning.
	AsCounted
	// AsText is Text as a string, which has no character that is to be escaped, or with Binary as
	// bytes. It has no effect. It is in parentheses: the server joins a string to one beside it.
	AsText
)

// CountedGuard makes AsCounted fail. It overflows for every value: an odd number added to the
// largest one. It is no constant, which a server might evaluate in advance. In the servers'
// messages its letters differ.
const CountedGuard = "(LAST_INSERT_ID()|1)+18446744073709551615"

// CountedMarkers is the number of AsCounted's parameters with Param: Value, Bound and Step.
const CountedMarkers = 3

// Substitution is the replacement of one call.
type Substitution struct {
	Replacement Replacement
	// Value is written as a decimal literal, or as a parameter with Param.
	Value uint64
	// Bound and Step are for AsCounted. AsLeading and AsLate use Bound, too.
	Bound, Step uint64
	// Text is that of AsText.
	Text   string
	Binary bool
	// Null: the value is NULL. It is for AsNullable only.
	Null bool
	// Param writes a parameter marker instead of a literal: a hidden parameter, see HiddenParams.
	Param bool
}

// Rewrite appends sql to dst with each call replaced by its substitution, and returns the result.
// sql is the text that st was analysed from. substitutions has one element for each of st.Calls.
// All other bytes are copied unchanged. If a select item has a replaced call and no alias, its own
// text becomes its alias. So the column keeps the name that the server would have given it.
//
// splices are further changes. They are in text order and overlap neither each other nor replaced
// calls. st must have no Refusal.
func (st *Statement) Rewrite(dst, sql []byte, substitutions []Substitution, splices ...Splice) []byte {
	from, item, call := 0, 0, 0
	for i := range splices {
		s := &splices[i]
		for call < len(st.Calls) && st.Calls[call].Start < s.Start {
			dst, item, from = st.appendCall(dst, sql, substitutions, call, item, from)
			call++
		}
		dst = append(dst, sql[from:s.Start]...)
		dst = append(dst, s.Text...)
		from = s.End
	}
	for ; call < len(st.Calls); call++ {
		dst, item, from = st.appendCall(dst, sql, substitutions, call, item, from)
	}
	dst, _, from = st.appendAliases(dst, sql, substitutions, item, from, len(sql))
	return append(dst, sql[from:]...)
}

// appendCall writes the text before call i, starting at from, and the replacement of the call.
func (st *Statement) appendCall(dst, sql []byte, subs []Substitution, i, item, from int) ([]byte, int, int) {
	c := &st.Calls[i]
	dst, item, from = st.appendAliases(dst, sql, subs, item, from, c.Start)
	s := subs[i]
	if s.Replacement == Keep {
		return dst, item, from
	}
	dst = append(dst, sql[from:c.Start]...)
	if c.Start > 0 && lex.InWord(sql[c.Start-1]) {
		dst = append(dst, ' ') // as in SELECT@@identity
	}
	return s.append(dst, c, sql), item, c.End
}

// append writes the replacement of call c. sql is the original text.
func (s Substitution) append(dst []byte, c *FuncCall, sql []byte) []byte {
	switch s.Replacement {
	case AsText:
		if s.Param {
			return append(dst, TextMarker(s.Binary)...)
		}
		return append(AppendText(append(dst, '('), s.Text, s.Binary), ')')
	case AsLastInsertID:
		return append(s.value(append(dst, "LAST_INSERT_ID("...)), ')')
	case AsNullable:
		switch {
		case s.Param:
			return append(s.value(append(dst, "NULLIF(LEAST(CAST("...)), " AS SIGNED), 9223372036854775807), -1)"...)
		case s.Null:
			return append(dst, "NULLIF(LEAST(-1, 9223372036854775807), -1)"...)
		case s.Value > math.MaxInt64:
			return append(s.value(append(dst, "NULLIF(LEAST("...)), ", 18446744073709551615), 0)"...)
		default:
			return append(s.value(append(dst, "NULLIF(LEAST("...)), ", 9223372036854775807), -1)"...)
		}
	case AsCounted:
		dst = append(s.value(append(dst, "IF(LAST_INSERT_ID()>="...)), " AND LAST_INSERT_ID()<="...)
		s.Value = s.Bound
		dst = append(s.value(dst), ",LAST_INSERT_ID(LAST_INSERT_ID()+"...)
		s.Value = s.Step
		return append(append(s.value(dst), "),"...), CountedGuard+")"...)
	case AsUnsigned:
		return s.unsigned(dst)
	case AsFurther:
		dst = append(s.unsigned(append(dst, "IF(1,"...)), ",LAST_INSERT_ID("...)
		if s.Param { // a second parameter is not needed
			return append(dst, "NULL))"...)
		}
		return append(s.value(dst), "))"...)
	case AsLeading: // <=> is never NULL
		dst = append(s.value(append(dst, "IF(LAST_INSERT_ID("...)), ")<=>0,LAST_INSERT_ID("...)
		bound := Substitution{Value: s.Bound}
		return append(bound.unsigned(append(bound.value(dst), "),"...)), ')')
	case AsLate:
		dst = append(dst, '(')
		if c.Func == Nextval {
			dst = s.unsigned(dst)
		} else {
			dst = append(dst, sql[c.Start:c.End]...)
		}
		return append(Substitution{Value: s.Bound}.value(append(dst, "+0*LAST_INSERT_ID("...)), "))"...)
	default: // AsPrevious
		// The column is nullable if the server's is. With a parameter it may be.
		if c.Func == LastInsertID {
			dst = append(dst, "COALESCE("...)
		} else {
			dst = append(dst, "IF(1,"...)
		}
		dst = append(s.unsigned(dst), ',')
		return append(append(dst, sql[c.Start:c.End]...), ')')
	}
}

// AppendText writes a text that has no character to be escaped, or bytes.
func AppendText(dst []byte, text string, binary bool) []byte {
	if binary {
		return append(hex.AppendEncode(append(dst, "_binary x'"...), []byte(text)), '\'')
	}
	return append(append(append(dst, '\''), text...), '\'')
}

// TextMarker is the marker of a parameter that is a text, or bytes. MySQL gives a bare one the type
// of its neighbour, and 007 may become 7. A text from CONCAT yields to other collations, as a
// literal does.
func TextMarker(binary bool) string {
	if binary {
		return "CAST(? AS BINARY(16))"
	}
	return "CONCAT(?)"
}

func (s Substitution) unsigned(dst []byte) []byte {
	return append(s.value(append(dst, "CAST("...)), " AS UNSIGNED)"...)
}

// value writes the number, or the marker of its parameter.
func (s Substitution) value(dst []byte) []byte {
	if s.Param {
		return append(dst, '?')
	}
	return strconv.AppendUint(dst, s.Value, 10)
}

// appendAliases writes the aliases of the items, starting with item, that end at or before limit,
// and the text before them, starting at from.
func (st *Statement) appendAliases(dst, sql []byte, subs []Substitution, item, from, limit int) ([]byte, int, int) {
	for ; item < len(st.Items) && st.Items[item].End <= limit; item++ {
		it := &st.Items[item]
		if it.HasAlias || !replaced(subs[it.FirstCall:it.EndCall]) {
			continue
		}
		dst = append(dst, sql[from:it.End]...)
		from = it.End
		text := sql[it.Start:it.End]
		if it.named {
			text = it.Alias
		}
		dst = st.appendAlias(dst, text)
	}
	return dst, item, from
}

func replaced(subs []Substitution) bool {
	for _, s := range subs {
		if s.Replacement != Keep {
			return true
		}
	}
	return false
}

// appendAlias writes AS and the item's text as an identifier. Some characters may be in a column's
// name but not in an identifier. They are written as MariaDB shows them in such a name: a question
// mark for a character beyond the basic plane, \x00 for a NUL. A name cut off after a space gets no
// alias.
func (st *Statement) appendAlias(dst, text []byte) []byte {
	name := lex.ColumnName(text, st.mode.Charset)
	if len(name) == 0 || name[len(name)-1] == ' ' {
		return dst
	}
	before := len(dst)
	dst = append(dst, " AS `"...)
	cs := st.mode.Charset
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c >= 0x80 && cs.Multi():
			n := cs.CharLen(name, i)
			if i+n == len(name) && n == 1 && cs.CharLen([]byte{c, '`'}, 0) > 1 {
				return dst[:before] // half a character would swallow the quote
			}
			dst = append(dst, name[i:i+n]...)
			i += n - 1
		case c >= 0x80 && cs == lex.UTF8:
			r, n := utf8.DecodeRune(name[i:])
			if r > 0xffff {
				dst = append(dst, '?')
			} else {
				dst = append(dst, name[i:i+n]...)
			}
			i += n - 1
		case c == '`':
			dst = append(dst, "``"...)
		case c == 0:
			dst = append(dst, `\x00`...)
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '`')
}

// HiddenParams returns the marker indexes of all substitutions that are parameters. An index counts
// all markers of the rewritten text, from 0 in text order. AsCounted has several markers.
func (st *Statement) HiddenParams(substitutions []Substitution) (at []int) {
	hidden := 0 // minus the markers of calls that are no longer there
	for i := range st.Calls {
		s := substitutions[i]
		if s.Replacement == Keep {
			continue
		}
		if s.Param {
			markers := 1
			if s.Replacement == AsCounted {
				markers = CountedMarkers
			}
			for range markers {
				at = append(at, st.Calls[i].ParamsBefore+hidden)
				hidden++
			}
		}
		hidden -= st.Calls[i].Markers()
	}
	return at
}
