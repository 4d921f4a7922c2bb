package statement

import (
	"math"
	"strconv"
	"unicode/utf8"

	"seqproxy/statement/lex"
)

// Replacement says what stands in a call's place.
type Replacement uint8

// The replacements, for a value of 1001.
const (
	// Keep leaves the call as it is.
	Keep Replacement = iota
	// AsLastInsertID is LAST_INSERT_ID(1001): it has the value, makes it the
	// connection's insert id, and puts it into the OK packet.
	AsLastInsertID
	// AsUnsigned is CAST(1001 AS UNSIGNED): the value with the type that
	// LAST_INSERT_ID() has, and no effect.
	AsUnsigned
	// AsNullable is the value of a BIGINT that may be NULL, as LASTVAL() has it:
	// NULLIF(LEAST(1001, 9223372036854775807), -1).
	AsNullable
	// AsNumber is 1001.
	AsNumber
	// AsFurther is IF(1,CAST(1001 AS UNSIGNED),LAST_INSERT_ID(1001)), which never is
	// evaluated: the value with the column that AsLastInsertID has (type, length, flags),
	// and no effect. With Param, MariaDB's answer to a PREPARE says 1 for the length, not
	// 0; that to an execution is the same.
	AsFurther
	// AsLeading is IF(LAST_INSERT_ID(1001)<=>0,LAST_INSERT_ID(Bound),CAST(Bound AS UNSIGNED)): the
	// value is Bound, and the effect that of AsLastInsertID for 1001, which is not 0.
	AsLeading
	// AsLate is (value+0*LAST_INSERT_ID(Bound)): the value of the call, which is that of
	// LastInsertID or LastInsertIDVariable as it was, or Value, and behind it the effect of
	// AsLastInsertID for Bound.
	AsLate
	// AsPrevious is the value with the column that the call has, which is one of
	// LastInsertID, LastInsertIDVariable or PseudoThreadID, and no effect.
	AsPrevious
	// AsCounted counts from the connection's LAST_INSERT_ID() on, in steps of Step: each
	// evaluation gives the next number and makes it LAST_INSERT_ID(). Where that is not one
	// of those from Value to Bound the statement fails with error 1690, which no sql_mode
	// makes a warning.
	AsCounted
)

// CountedGuard is what AsCounted fails by: never a number, since an odd one has no room
// for the largest beside it, and no constant, which a server might look at before. The
// servers' messages name it in other letters.
const CountedGuard = "(LAST_INSERT_ID()|1)+18446744073709551615"

// CountedMarkers is how many parameters AsCounted has with Param: Value, Bound and Step.
const CountedMarkers = 3

// Substitution is what Rewrite puts in the place of one call.
type Substitution struct {
	Replacement Replacement
	// Value is written as a decimal literal, unless Param is set.
	Value uint64
	// Bound and Step are those of AsCounted; Bound also of AsLeading and AsLate.
	Bound, Step uint64
	// Null: the value is NULL. Only AsNullable can be.
	Null bool
	// Param writes a parameter marker in the literal's place: a hidden
	// parameter, see HiddenParams.
	Param bool
}

// Rewrite appends sql to dst with every call replaced by its substitution and
// returns the result. sql must be the text that st was analysed from and
// substitutions must have one element per element of st.Calls; the bytes
// outside of replaced calls are copied as they are. A select item that has a
// replaced call and no alias gets its own text as alias, so that the column
// keeps the name that the server would have given it.
//
// st must have no Refusal.
func (st *Statement) Rewrite(dst, sql []byte, substitutions []Substitution) []byte {
	return st.Splice(dst, sql, substitutions, nil)
}

// appendCall writes what stands in the place of call i, and what stands before it
// from from.
func (st *Statement) appendCall(dst, sql []byte, subs []Substitution, i, item, from int) ([]byte, int, int) {
	c := &st.Calls[i]
	dst, item, from = st.appendAliases(dst, sql, subs, item, from, c.Start)
	s := subs[i]
	if s.Replacement == Keep {
		return dst, item, from
	}
	dst = append(dst, sql[from:c.Start]...)
	if c.Start > 0 && lex.InWord(sql[c.Start-1]) {
		dst = append(dst, ' ') // SELECT@@identity
	}
	return s.append(dst, c, sql), item, c.End
}

// append writes the text of the substitution of call c in sql.
func (s Substitution) append(dst []byte, c *FuncCall, sql []byte) []byte {
	switch s.Replacement {
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
		if s.Param { // no second parameter
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
	case AsPrevious:
		// What may be NULL for the server, may be then. A parameter may.
		if c.Func == LastInsertID {
			dst = append(dst, "COALESCE("...)
		} else {
			dst = append(dst, "IF(1,"...)
		}
		dst = append(s.unsigned(dst), ',')
		return append(append(dst, sql[c.Start:c.End]...), ')')
	default:
		return s.value(dst)
	}
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

// appendAliases writes the aliases of the items from item on that end at or
// before limit, and what stands before them from from.
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

// appendAlias writes AS and the item's text as an identifier. Identifiers take
// less than column names made of text do; what they do not take is written as
// MariaDB shows it in such a name: a question mark for a character beyond the
// basic plane, \x00 for a NUL. A name cut off behind a space gets no alias.
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
				return dst[:before] // half a character, which would take the quote in
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

// ColumnName gives the name that the server gives to the column of item it, in
// the client's character set: its alias, or its text. The result aliases sql or
// st.
func (st *Statement) ColumnName(sql []byte, it Item) []byte {
	if it.HasAlias || it.named {
		return it.Alias
	}
	return lex.ColumnName(sql[it.Start:it.End], st.mode.Charset)
}

// HiddenParams appends to dst, for every substitution that is a parameter, the index of its marker
// (AsCounted: of each of its markers) among all markers of the rewritten text (from 0), in text
// order.
func (st *Statement) HiddenParams(dst []int, substitutions []Substitution) []int {
	hidden := 0 // less the markers of calls, which are not there any more
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
				dst = append(dst, st.Calls[i].ParamsBefore+hidden)
				hidden++
			}
		}
		hidden -= st.Calls[i].Markers()
	}
	return dst
}
