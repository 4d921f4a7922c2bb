package lex

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// tokens returns all tokens of a text, followed by "!" if it is bad.
func tokens(sql string, mode Mode) string {
	l := Lexer{Src: []byte(sql), Mode: mode}
	var parts []string
	for l.Next(); l.Kind != EOF; l.Next() {
		letter := "ewqsnupav"[l.Kind]
		parts = append(parts, fmt.Sprintf("%c[%s]", letter, sql[l.Start:l.End]))
	}
	if l.Bad {
		parts = append(parts, "!")
	}
	return strings.Join(parts, " ")
}

func TestTokensAreCutAsTheServerCutsThem(t *testing.T) {
	ansi, raw := Mode{SQLMode: SQLMode{ANSIQuotes: true}}, Mode{SQLMode: SQLMode{NoBackslashEscapes: true}}
	for _, c := range []struct {
		sql  string
		mode Mode
		want string
	}{
		{"a b_c $d 1a e1", Mode{}, "w[a] w[b_c] w[$d] w[1a] w[e1]"},
		{"1 1.5 .5 1. 1e5 1E+5 1.5e-3 0x1F 0b01 0X1F 0b12", Mode{}, "n[1] n[1.5] n[.5] n[1.] n[1e5] n[1E+5] n[1.5e-3] n[0x1F] n[0b01] w[0X1F] w[0b12]"},
		{"t.1a t.1 `t`.5 t.e", Mode{}, "w[t] p[.] w[1a] w[t] p[.] w[1] q[`t`] n[.5] w[t] p[.] w[e]"},
		{
			"1e5from 1E05from 1e+5from 1.e5from 1.5e-5from 0e0e5 1efrom 1.from .5from 0x1Ffrom 0b1e5 12from",
			Mode{},
			"n[1e5] w[from] n[1E05] w[from] n[1e+5] w[from] n[1.e5] w[from] n[1.5e-5] w[from] n[0e0] w[e5] w[1efrom] " +
				"n[1.] w[from] n[.5] w[from] w[0x1Ffrom] w[0b1e5] w[12from]",
		},
		{
			"t.1e5from t.5from a .5from a/**/.5from select .5from `t`.1e5from",
			Mode{},
			"w[t] p[.] w[1e5from] w[t] p[.] w[5from] w[a] n[.5] w[from] w[a] n[.5] w[from] w[select] n[.5] w[from] q[`t`] n[.1e5] w[from]",
		},
		{"1.else 2", Mode{}, "!"},
		{"1.5e-- 5", Mode{}, "!"},
		{"\\Nfrom \\N'x' \\n", Mode{}, "n[\\N] w[from] n[\\N] s['x'] p[\\] w[n]"},
		{"'a' \"b\" `c`", Mode{}, "s['a'] s[\"b\"] q[`c`]"},
		{"\"b\"", ansi, "q[\"b\"]"},
		{"\"a\\\" b", ansi, "q[\"a\\\"] w[b]"},
		{"\"a\"\"b\"", ansi, "q[\"a\"\"b\"]"},
		{"'a''b' \"a\"\"b\" `a``b`", Mode{}, "s['a''b'] s[\"a\"\"b\"] q[`a``b`]"},
		{`'a\'b' 'c\\'`, Mode{}, `s['a\'b'] s['c\\']`},
		{`'a\' b`, raw, `s['a\'] w[b]`},
		{"`a\\`", Mode{}, "q[`a\\`]"},
		{"'a' 'b''c'", Mode{}, "s['a'] s['b''c']"},
		{"N'a\\'' n'b' x'41' X'41' b'1' _utf8'x' y'z'", Mode{}, "s[N'a\\''] s[n'b'] s[x'41'] s[X'41'] s[b'1'] w[_utf8] s['x'] w[y] s['z']"},
		{"@a @a.b @'x y' @`z` @\"w\" @@v @", Mode{}, "u[@a] u[@a.b] u[@'x y'] u[@`z`] u[@\"w\"] v[@@] w[v] u[@]"},
		{"a:=b a=:c", Mode{}, "w[a] a[:=] w[b] w[a] p[=] p[:] w[c]"},
		{"a--b a-- b\nc a--\tx", Mode{}, "w[a] p[-] p[-] w[b] w[a] w[c] w[a]"},
		{"a--", Mode{}, "w[a]"},
		{"a#b\nc", Mode{}, "w[a] w[c]"},
		{"a/*b*/c/**/d/***/e", Mode{}, "w[a] w[c] w[d] w[e]"},
		{"a/*/b*/c", Mode{}, "w[a] w[c]"},
		{"a/*b*c/d*/e", Mode{}, "w[a] w[e]"},
		{"/*!a*/b /*!40000c*/ /*!400d*/ /*M!e*/ /*m!f*/", Mode{}, "w[a] w[b] w[c] w[400d] w[e]"},
		{"/*!a/*b*/c*/d", Mode{}, "w[a] w[c] w[d]"},
		{"/*!a '*/' */b", Mode{}, "w[a] s['*/'] w[b]"},
		{"/*!99999a '*/' */b", Mode{}, "w[a] s['*/'] w[b] !"},
		{"/*!a", Mode{}, "w[a] !"},
		{"/*!a /*!b*/", Mode{}, "w[a] !"},
		{"/*!a /*M!b*/ */", Mode{}, "w[a] !"},
		{"a -- \x00\nb", Mode{}, "w[a] !"},
		{"a #\x00", Mode{}, "w[a]"},
		{"a #\x00b", Mode{}, "w[a] !"},
		{"a;\x00b'", Mode{}, "w[a] p[;]"},
		{"a \x00 ;;\n", Mode{}, "w[a]"},
		{"a /*\x00*/ b", Mode{}, "w[a] w[b]"},
		{"a*/b", Mode{}, "w[a] p[*] p[/] w[b]"},
		{"'a", Mode{}, "s['a] !"},
		{"'a''", Mode{}, "s['a''] !"},
		{"'a\\", Mode{}, "s['a\\] !"},
		{"'" + strings.Repeat("x", 100) + "'", Mode{}, "s['" + strings.Repeat("x", 100) + "']"},
		{"'" + strings.Repeat("x", 100) + "\\'y''z' w", Mode{}, "s['" + strings.Repeat("x", 100) + "\\'y''z'] w[w]"},
		{"'" + strings.Repeat("x", 100), Mode{}, "s['" + strings.Repeat("x", 100) + "] !"},
		{"`a", Mode{}, "q[`a] !"},
		{"/* a", Mode{}, "!"},
		{"/*", Mode{}, "!"},
		{"/", Mode{}, "p[/]"},
		{"a\x00b", Mode{}, "w[a] !"},
		{"a\x7fb", Mode{}, "w[a] !"},
		{"'a\x00b'", Mode{}, "s['a\x00b']"},
		{"\xc3\xa9t\xc3\xa9 x", Mode{}, "w[\xc3\xa9t\xc3\xa9] w[x]"},
		{"a\xa0b", Mode{}, "w[a\xa0b]"},
		{"a\xa0b", Mode{Charset: CharsetByName("latin1")}, "w[a] w[b]"},
		{"'\xa0' \xe9", Mode{Charset: CharsetByName("latin1")}, "s['\xa0'] w[\xe9]"},
		{"\xe9 a\xbb", Mode{Charset: CharsetByName("cp1251")}, "w[\xe9] w[a] !"},
		{"@\xc3\xa9.x", Mode{}, "u[@\xc3\xa9.x]"},
		{"@a\xe9 @a\xa0b", Mode{Charset: CharsetByName("latin1")}, "u[@a\xe9] u[@a] w[b]"},
		{"@a\xe9", Mode{Charset: CharsetByName("cp1251")}, "u[@a\xe9]"},
		{"1 --\xa0 x", Mode{Charset: CharsetByName("latin1")}, "n[1]"},
		{"1 --\x80 x", Mode{Charset: CharsetByName("cp1250")}, "n[1]"},
		{"1 --\xe9", Mode{Charset: CharsetByName("latin1")}, "n[1] p[-] p[-] w[\xe9]"},
		{"@a\xbf^.5from", Mode{Charset: GBK}, "!"},
		{"@a\xbf`x`", Mode{Charset: SJIS}, "!"},
		{"'\xe9' `\xe9`", Mode{Charset: CharsetByName("cp1251")}, "s['\xe9'] q[`\xe9`]"},

		// 0xbf5c is one character in GBK, so the quote after it ends the string.
		{"'\xbf\\' or 1", Mode{Charset: GBK}, "s['\xbf\\'] w[or] n[1]"},
		{"'\xbf\\' or 1", Mode{}, "s['\xbf\\' or 1] !"},
		{"'\xbf' x", Mode{Charset: GBK}, "s['\xbf'] w[x]"},
		{"`\xbf` x`", Mode{Charset: GBK}, "q[`\xbf` x`]"},
		{"\xbf` x", Mode{Charset: GBK}, "w[\xbf`] w[x]"},
		{"'\x81\\' x", Mode{Charset: SJIS}, "s['\x81\\'] w[x]"},
		{"'\xb1\\' x'", Mode{Charset: SJIS}, "s['\xb1\\' x']"},
		{"'\xa4\\' x", Mode{Charset: Big5}, "s['\xa4\\'] w[x]"},
		{"'\x81\\' x'", Mode{Charset: Big5}, "s['\x81\\' x']"},
		{"'\x810\x810\\' x'", Mode{Charset: GB18030}, "s['\x810\x810\\' x']"},
		{"'\x81\\' x", Mode{Charset: GB18030}, "s['\x81\\'] w[x]"},
		{"'\\\xbf\\' x", Mode{Charset: GBK}, "s['\\\xbf\\' x] !"},
		{"'\xbf\\' x", Mode{SQLMode: SQLMode{NoBackslashEscapes: true}, Charset: GBK}, "s['\xbf\\'] w[x]"},
	} {
		if got := tokens(c.sql, c.mode); got != c.want {
			t.Errorf("%q %+v:\n got %q\nwant %q", c.sql, c.mode, got, c.want)
		}
	}
}

func TestEveryKeywordIsFoundInAnyCaseAndNothingElse(t *testing.T) {
	for kw := KwNone + 1; kw < numKeywords; kw++ {
		text := keywordText[kw]
		if text == "" {
			t.Fatalf("keyword %d has no text", kw)
		}
		if len(text) < minKeyword || len(text) >= 32 { // see keywordLengths
			t.Errorf("keyword %q: its length is outside of the bounds", text)
		}
		for _, w := range []string{text, strings.ToUpper(text), strings.ToUpper(text[:1]) + text[1:]} {
			if got := Lookup([]byte(w)); got != kw {
				t.Errorf("%q: got keyword %d, want %d", w, got, kw)
			}
			within := []byte("x " + w + " and more")
			if got := lookupAt(within, 2, 2+len(w)); got != kw {
				t.Errorf("%q within %q: got keyword %d, want %d", w, within, got, kw)
			}
		}
		for _, w := range []string{text + "x", text[:len(text)-1] + "\x00", "$" + text, text[1:] + "9"} {
			if got := Lookup([]byte(w)); got != KwNone {
				t.Errorf("%q: got keyword %q, want none", w, keywordText[got])
			}
		}
	}
}

// Two bytes stand in every position among letters: the answer for a byte does not depend on the one
// before.
func TestEightBytesOfAWordAreReadAsOneByOne(t *testing.T) {
	for place := range 7 {
		for pair := range 1 << 16 {
			text := []byte("aZ_09zA9")
			text[place], text[place+1] = byte(pair), byte(pair>>8)
			want := 0
			for want < len(text) && text[want] < 0x80 && text[want] != '$' && wordByte[text[want]] {
				want++
			}
			if got := plainWord(binary.LittleEndian.Uint64(text)); got != want {
				t.Fatalf("%q: got %d bytes, want %d", text, got, want)
			}
		}
	}
}

func TestAKeywordWithADotAndANameBehindItIsNone(t *testing.T) {
	for _, c := range []struct {
		sql  string
		want Keyword // the last keyword
	}{
		{"union.x", KwNone},
		{"union.`x`", KwUnion},
		{"union. x", KwUnion},
		{"union .x", KwUnion},
		{"union.5", KwNone},
		{"union.*", KwUnion},
		{"union.", KwUnion},
		{"from.\xc3\xa9", KwNone},
		{"x.union", KwNone},
		{"@@session.x", KwSession},
		{"information_schema.x", KwInformationSchema},
		{"performance_schema.x", KwPerformanceSchema},
	} {
		for _, charset := range []Charset{UTF8, GBK} {
			l := Lexer{Src: []byte(c.sql), Mode: Mode{Charset: charset}}
			got := KwNone
			for l.Next(); l.Kind != EOF; l.Next() {
				if l.Kw != KwNone {
					got = l.Kw
				}
			}
			if got != c.want {
				t.Errorf("%q charset %d: got keyword %q, want %q", c.sql, charset, keywordText[got], keywordText[c.want])
			}
		}
	}
}

func TestCharsetsAreFoundByNameAndCollation(t *testing.T) {
	for name, want := range map[string]Charset{
		"utf8mb4": UTF8, "UTF8": UTF8, "binary": UTF8, "latin1": CharsetByName("latin1"), "cp1251": CharsetByName("CP1251"), "gbk": GBK,
		"gb18030": GB18030, "Big5": Big5, "sjis": SJIS, "cp932": SJIS, "swe7": Unsupported, "utf16": Unsupported,
		"": Unsupported, "klingon": Unsupported,
	} {
		if got := CharsetByName(name); got != want {
			t.Errorf("%q: got %d, want %d", name, got, want)
		}
	}
	for id, want := range map[uint16]Charset{
		45: UTF8, 255: UTF8, 33: UTF8, 224: UTF8, 63: UTF8, 309: UTF8, 2304: UTF8, 1069: UTF8, 8: CharsetByName("latin1"), 28: GBK,
		1052: GBK, 248: GB18030, 1: Big5, 13: SJIS, 95: SJIS, 51: CharsetByName("cp1251"), 10: Unsupported, 35: Unsupported,
		54: Unsupported, 640: Unsupported, 0: Unsupported, 9999: Unsupported,
	} {
		if got := CharsetByName(CharsetOfCollation(id)); got != want {
			t.Errorf("collation %d: got %d, want %d", id, got, want)
		}
	}
}

func TestEqualFoldFoldsLettersOfASCIIOnly(t *testing.T) {
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"SYSTEM_Time", "system_time", true},
		{"wait_for_clients", "WAIT_FOR_CLIENTS", true},
		{"system\x7ftime", "system_time", false},
		{"using1", "usingQ", false},
		{"key", "keys", false},
		{"\u212aey", "key", false},
		{"u\u017fing", "using", false},
		{"", "", true},
	} {
		if got := EqualFold([]byte(c.text), c.word); got != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.text, c.word, got, c.want)
		}
	}
}
