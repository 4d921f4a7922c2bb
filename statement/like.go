package statement

import (
	"unicode"
	"unicode/utf8"
)

// Like reports whether text matches a LIKE pattern, ignoring letter case, as SHOW ... LIKE does: %
// is any text, _ is one character, \ makes the next character literal.
func Like(pattern, text string) bool {
	// The position of the last %, and the text to try it with next. A later % can match whatever an
	// earlier one could, so one position to return to is enough.
	again, from := "", ""
	any := false
	for {
		p, size := utf8.DecodeRuneInString(pattern)
		switch {
		case size > 0 && p == '%':
			pattern = pattern[size:]
			again, from, any = pattern, text, true
			continue
		case size > 0 && text != "":
			literal := p == '\\' && len(pattern) > size
			if literal {
				pattern = pattern[size:]
				p, size = utf8.DecodeRuneInString(pattern)
			}
			t, width := utf8.DecodeRuneInString(text)
			if p == '_' && !literal || sameLetter(p, t) {
				pattern, text = pattern[size:], text[width:]
				continue
			}
		case size == 0 && text == "":
			return true
		}
		if !any || from == "" {
			return false
		}
		_, width := utf8.DecodeRuneInString(from)
		from = from[width:]
		pattern, text = again, from
	}
}

func sameLetter(a, b rune) bool {
	return a == b || unicode.ToLower(a) == unicode.ToLower(b)
}
