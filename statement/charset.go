package statement

import "strings"

// Charset is a class of client character sets: those in one class are read the
// same way by the server's lexer.
type Charset uint8

// The classes. In the multi-byte sets named one by one, the second byte of a
// character may be an ASCII backslash, backquote or letter, so that looking at
// single bytes would see a quote's end where the server does not.
const (
	// UTF8 holds utf8mb4, utf8mb3, ascii, binary and the multi-byte sets whose
	// later bytes are never ASCII punctuation (euckr, gb2312, ujis, eucjpms).
	UTF8 Charset = iota
	// Latin1 is latin1, where byte 0xA0 is white space to the server.
	Latin1
	// EightBit holds the other single-byte sets. Which of their upper bytes are
	// letters differs, so outside of quotes a text that has one is Other.
	EightBit
	GBK
	GB18030
	Big5
	// SJIS holds sjis and cp932.
	SJIS
	// Unsupported holds sets that are no superset of ASCII, or unknown:
	// every text is Other.
	Unsupported
)

// CharsetByName gives the class of a character set by its name as in
// character_set_client, in any letter case. Unknown names are Unsupported.
func CharsetByName(name string) Charset {
	switch strings.ToLower(name) {
	case "utf8mb4", "utf8mb3", "utf8", "ascii", "binary", "euckr", "gb2312", "ujis", "eucjpms":
		return UTF8
	case "latin1":
		return Latin1
	case "latin2", "latin5", "latin7", "dec8", "cp850", "cp852", "cp866", "cp1250", "cp1251", "cp1256",
		"cp1257", "koi8r", "koi8u", "hebrew", "greek", "tis620", "armscii8", "geostd8", "hp8", "keybcs2",
		"macce", "macroman":
		return EightBit
	case "gbk":
		return GBK
	case "gb18030":
		return GB18030
	case "big5":
		return Big5
	case "sjis", "cp932":
		return SJIS
	default:
		return Unsupported
	}
}

// multi reports whether a second byte can be mistaken for ASCII.
func (c Charset) multi() bool { return c >= GBK && c <= SJIS }

// mbLen returns the length in bytes of the multi-byte character at s[i:], or 1
// if there is none. Only for charsets with multi() true. The ranges are those
// of the server's ismbchar functions (strings/ctype-gbk.c and its siblings).
func (c Charset) mbLen(s []byte, i int) int {
	if i+1 >= len(s) || s[i] < 0x81 {
		return 1
	}
	a, b := s[i], s[i+1]
	switch c {
	case GBK:
		if a <= 0xfe && (b >= 0x40 && b <= 0x7e || b >= 0x80 && b <= 0xfe) {
			return 2
		}
	case GB18030:
		if a > 0xfe {
			return 1
		}
		if b >= 0x40 && b <= 0x7e || b >= 0x80 && b <= 0xfe {
			return 2
		}
		if b >= '0' && b <= '9' && i+3 < len(s) && s[i+2] >= 0x81 && s[i+2] <= 0xfe && s[i+3] >= '0' && s[i+3] <= '9' {
			return 4
		}
	case Big5:
		if a >= 0xa1 && a <= 0xf9 && (b >= 0x40 && b <= 0x7e || b >= 0xa1 && b <= 0xfe) {
			return 2
		}
	case SJIS:
		if (a <= 0x9f || a >= 0xe0 && a <= 0xfc) && (b >= 0x40 && b <= 0x7e || b >= 0x80 && b <= 0xfc) {
			return 2
		}
	}
	return 1
}
