package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// ASCII reports whether a name is the same in all character sets of clients.
func ASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// UTF8 converts a name in a client's text to UTF-8. It returns name itself if nothing changes. It
// returns Unasked for a character set that only a server can convert, and No if the bytes are not
// valid.
func UTF8(name []byte, charset string) ([]byte, Answer) {
	if ASCII(name) {
		return name, Yes
	}
	switch charset {
	case "utf8mb4", "utf8mb3", "utf8", "binary":
		if utf8.Valid(name) {
			return name, Yes
		}
	case "latin1":
		converted := make([]byte, 0, 2*len(name))
		for _, c := range name {
			converted = utf8.AppendRune(converted, latin1(c))
		}
		return converted, Yes
	case "": // the bytes could mean another sequence
	default:
		return nil, Unasked
	}
	return nil, No
}

// latin1 returns the character of a byte in MySQL's latin1. That is cp1252, whose undefined bytes
// are control characters (https://dev.mysql.com/doc/refman/8.4/en/charset-we-sets.html).
func latin1(c byte) rune {
	const upper = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"
	if c < 0x80 || c > 0x9f {
		return rune(c)
	}
	return []rune(upper)[c-0x80]
}

// Literal writes UTF-8 text as a literal that means the same under every sql_mode and
// character_set_client. It is one token with its character set, and no expression: SIGNAL accepts
// nothing else.
func Literal(s string) string {
	for i := range len(s) {
		if s[i] == '\\' || s[i] >= 0x80 {
			return fmt.Sprintf("_utf8mb4 0x%x", s)
		}
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

// text returns a name in UTF-8.
func (t *planning) text(name []byte) ([]byte, Answer) {
	if found, ok := t.f.Texts[string(name)]; ok {
		return found.UTF8, found.Is
	}
	converted, is := UTF8(name, t.f.Charset)
	if is == Unasked {
		t.ask(Need{What: NeedText, Name: name})
	}
	return converted, is
}

// SameColumn reports whether a name in a text is that of a column.
func SameColumn(column string, name []byte, charset string) Answer {
	if ASCII([]byte(column)) {
		return AnswerOf(len(name) == len(column) && strings.EqualFold(string(name), column))
	}
	in, is := UTF8(name, charset)
	if is == Unasked {
		return Unasked
	}
	return AnswerOf(is == Yes && strings.EqualFold(string(in), column))
}

// Writable reports whether a name, in UTF-8, can stand in a text of a character set as it is. Where
// that takes a conversion it is false.
func Writable(name, charset string) bool {
	return UTF8Charset(charset) && utf8.ValidString(name) || ASCII([]byte(name))
}

// UTF8Charset reports whether texts in a character set of MySQL's are UTF-8.
func UTF8Charset(name string) bool {
	switch name {
	case "utf8mb4", "utf8mb3", "utf8":
		return true
	}
	return false
}

// ContainsName reports whether one of names is the same as something.
func ContainsName(names [][]byte, same func([]byte) bool) bool {
	return slices.ContainsFunc(names, same)
}
