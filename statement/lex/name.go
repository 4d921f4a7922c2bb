package lex

import (
	"bytes"
	"unicode/utf8"
)

// MaxColumn bounds the characters of a select item that become its column's name (MAX_ALIAS_NAME
// less one). The server handles longer aliases.
const MaxColumn = 255

// ColumnName cuts text to the length of a name.
func ColumnName(text []byte, cs Charset) []byte {
	if len(text) <= MaxColumn {
		return text
	}
	chars, i := 0, 0
	for i < len(text) && chars < MaxColumn {
		n := 1
		switch {
		case cs.Multi():
			n = cs.CharLen(text, i)
		case cs == UTF8 && text[i] >= 0x80:
			_, n = utf8.DecodeRune(text[i:])
		}
		i += n
		chars++
	}
	return text[:i]
}

// SameName reports whether a server could consider two identifiers equal. Names with characters
// beyond ASCII always could be.
func SameName(a, b []byte) bool {
	return bytes.EqualFold(a, b) || !ASCII(a) && !ASCII(b)
}

func ASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
