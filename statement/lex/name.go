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

// EqualFold reports whether b equals a word of ASCII in any letter case. Unlike that of package
// bytes it folds letters of ASCII only, as servers do: no long s is an s.
func EqualFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if other := c ^ word[i]; other != 0 && (other != 'a'-'A' || c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

func equalFolded(word []byte, folded string) bool {
	for i := 0; i < len(folded) && i < len(word); i++ {
		if fold(word[i]) != folded[i] {
			return false
		}
	}
	return true
}
