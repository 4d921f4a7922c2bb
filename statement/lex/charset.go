package lex

import "strings"

// Charset is a class of client character sets. A server's lexer reads all sets of a class in the
// same way.
type Charset uint8

// The classes of multi-byte sets. In those with a name of their own, the second byte of a character
// may equal an ASCII backslash, backquote or letter. A lexer that looks at single bytes would then
// see a quote's end in the wrong place. Each single-byte set is a class of its own, from singleByte
// on: see upperBytes.
const (
	// UTF8 stands for utf8mb4, utf8mb3, ascii, binary and the multi-byte sets in which a later byte
	// is never ASCII punctuation (euckr, gb2312, ujis, eucjpms).
	UTF8 Charset = iota
	GBK
	GB18030
	Big5
	// SJIS stands for sjis and cp932.
	SJIS
	singleByte

	// Unsupported stands for unknown sets and those that do not include ASCII. Every text is Other
	// then.
	Unsupported Charset = 255
)

// CharsetByName returns the class of a character set, named as in character_set_client, in any
// letter case. The class of an unknown name is Unsupported.
func CharsetByName(name string) Charset {
	name = strings.ToLower(name)
	switch name {
	case "utf8mb4", "utf8mb3", "utf8", "ascii", "binary", "euckr", "gb2312", "ujis", "eucjpms":
		return UTF8
	case "gbk":
		return GBK
	case "gb18030":
		return GB18030
	case "big5":
		return Big5
	case "sjis", "cp932":
		return SJIS
	}
	for i := range upperBytes {
		if upperBytes[i].name == name {
			return singleByte + Charset(i)
		}
	}
	return Unsupported
}

// upperBytes classifies the bytes from 0x80 of each single-byte set as the servers' lexers do. 'w'
// is a letter of a word, and 's' is white space. 'c' is a control character: like white space it
// completes the two dashes of a comment, and elsewhere outside of quotes and comments it is an
// error. '.' is none of these, and an error outside of quotes and comments. '?' is a byte on which
// MariaDB and MySQL differ. TestServersReadTheBytesOfCharacterSetsAsWeDo asks the servers.
var upperBytes = [...]struct{ name, classes string }{
	{"armscii8", "................................s.................wwwwwwwwwwwwww" +
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.."},
	{"cp1250", "cc.c....c.w.wwwwc.......c.w.wwwws..w.w.w..w....w...w.....ww.w.ww" +
		"wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwww."},
	{"cp1251", "ww.w......w.wwwww.........w.wwww.www.w..w.w....w..www...w.w.wwww" +
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"},
	{"cp1256", ".w.w........www.w...........w..................................." +
		".wwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwww..."},
	{"cp1257", "........................................w.w....w........w.w....w" +
		"wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwww."},
	{"cp850", "wwwwwwwwwwwwwwwwwwwwwwwwwwww.w..wwwwww...............www........" +
		"......ww........wwwwwwwww.....w.wwwwww.wwwwwww.................c"},
	{"cp852", "wwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwww.www.......wwww....ww." +
		"......ww........wwwwwwwww....ww.wwwwwwwwwwwwwww............www.s"},
	{"cp866", "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww................" +
		"................................wwwwwwwwwwwwwwwwwwwwwwww.......s"},
	{"dec8", "................................s..............................." +
		"wwwwwwwwwwwwwwww?wwwwww.wwwwww?wwwwwwwwwwwwwwwww?wwwwww.wwwwww??"},
	{"geostd8", "................................s..............................." +
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.........................."},
	{"greek", "................................s.....................w.www.w.ww" +
		"wwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww."},
	{"hebrew", "................................s..............................." +
		"................................wwwwwwwwwwwwwwwwwwwwwwwwwww..cc."},
	{"hp8", "ccccccccccccccccccccccccccccccccc................cc............." +
		".....w......w.www..ww..ww.www.....................cccc.........c"},
	{"keybcs2", "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww...................." +
		"................................wwwwww.wwwww.ww................s"},
	{"koi8r", "...................................w...............w............" +
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"},
	{"koi8u", "...................................ww.ww.....w.....ww.ww.....w.." +
		"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww"},
	{"latin1", "...w......w.w.w...........w.w.wws..............................." +
		"wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwww"},
	{"latin2", "................................sw.w.ww..wwww.ww.w.w.ww..wwww.ww" +
		"wwwwwwwwwwwwwwww.wwwwww.wwwwwww.wwwwwwwwwwwwwwwwwwwwwww.wwwwwww."},
	{"latin5", "................................s..............................." +
		"wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwwww"},
	{"latin7", "wc.c....c.c.c...c.......c.c.c..csc...c....w....w..........w....w" +
		"wwwwwwwwwwwwwwwwwwwwwww.wwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.wwwwwww."},
	{"macce", "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww..w....w...w..wwww..ww..wwwwwwww" +
		"ww..ww.....wwwww........wwww..wwww..wwwwwwwwwwwwwwwwwwwwwwwwwww."},
	{"macroman", "cwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww.......w......ww..............ww" +
		"....w......cww..........ww...........cwwwwwwwwww.wwwww.........."},
	{"tis620", "................................................................" +
		"................................................................"},
}

// Multi reports whether the second byte of a character can look like ASCII.
func (c Charset) Multi() bool { return c >= GBK && c <= SJIS }

// single reports whether every character is one byte.
func (c Charset) single() bool { return c >= singleByte && c < Unsupported }

// upper returns the class of a byte from 0x80 on: see upperBytes.
func (c Charset) upper(b byte) byte { return upperBytes[c-singleByte].classes[b-0x80] }

// CharLen returns the length in bytes of the multi-byte character at s[i:], or 1. It requires
// Multi(). The ranges are those of the server's ismbchar functions (strings/ctype-gbk.c and its
// siblings).
func (c Charset) CharLen(s []byte, i int) int {
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
