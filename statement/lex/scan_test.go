package lex

import (
	"bytes"
	"testing"
)

func TestAScanFindsASecondStatement(t *testing.T) {
	gbk := Mode{Charset: GBK}
	for _, c := range []struct {
		sql  string
		mode Mode
		want bool
	}{
		{"insert into t values (1)", Mode{}, false},
		{"insert into t values (';')", Mode{}, false},
		{"insert into t values (';');", Mode{}, false},
		{"insert into t values (1); ;\n\x00", Mode{}, false},
		{"insert into t values (1);\x00 select 2", Mode{}, false},
		{"select 1; select 2", Mode{}, true},
		{"select 1;-- x", Mode{}, true}, // there is none, but Scan cannot know
		{"select 'it''s;', `a;``b`, \"c;\"", Mode{}, false},
		{`select '\';', "\";"`, Mode{}, false},
		{`select '\'; select 1`, Mode{SQLMode: SQLMode{NoBackslashEscapes: true}}, true},
		{`select "\"; select 1`, Mode{SQLMode: SQLMode{ANSIQuotes: true}}, true},
		{"select 1 -- ; select 2\n; select 3", Mode{}, true},
		{"select 1 -- ; select 2", Mode{}, false},
		{"select 1 --; select 2", Mode{}, true},
		{"select 1 ---\t; select 2", Mode{}, false},
		{"select 1 # ; x\n", Mode{}, false},
		{"select /* ; /* **/ 1", Mode{}, false},
		{"select /*/ ; */ 1 /; 2", Mode{}, true},
		{"select /*! 1 */", Mode{}, true}, // cannot be followed
		{"select /*M! 1 */", Mode{}, true},
		{"select /*M 1; */", Mode{}, false},
		{"select '\xbf\\'; select 1", gbk, true},
		{"select '\xbf\\'; select 1", Mode{}, false},
		{"select '\\\xbf'; select 1", gbk, true},
		{"select '\xbf'; select 1", gbk, true},
		{"select \xbf; select 1", gbk, true},
		{"select [;]", Mode{SQLMode: SQLMode{Brackets: true}}, true},
		{"select 1 --\xa0; x", Mode{Charset: CharsetByName("latin1")}, false},
	} {
		for size := 1; size <= len(c.sql); size += 5 {
			scan := Scan{Mode: c.mode}
			got := false
			for rest := []byte(c.sql); len(rest) > 0; {
				n := min(size, len(rest))
				got = scan.Next(rest[:n])
				rest = rest[n:]
			}
			if got != c.want {
				t.Errorf("%q in %+v, by %d: got %v, want %v", c.sql, c.mode, size, got, c.want)
			}
		}
	}
}

// FuzzScan compares a Scan with the lexer: it must see every second statement that the lexer sees.
func FuzzScan(f *testing.F) {
	for _, sql := range []string{"select 1; select 2", "select 'a;' -- ;\n; x", "/* ; */ select \"\\\";\"", "select '\xbf\\';x", "select 1;\x00x"} {
		f.Add([]byte(sql), uint8(0))
	}
	sets := []Charset{UTF8, GBK, GB18030, Big5, SJIS, CharsetByName("latin1"), CharsetByName("cp1250")}
	f.Fuzz(func(t *testing.T, sql []byte, m uint8) {
		mode := Mode{SQLMode: SQLMode{NoBackslashEscapes: m&1 != 0, ANSIQuotes: m&2 != 0}, Charset: sets[int(m>>2)%len(sets)]}
		l := Lexer{Src: sql, Mode: mode}
		second := false
		for ended := false; l.Kind != EOF || l.Pos == 0; {
			l.Next()
			if l.Is(';') {
				ended = true
			} else if ended && l.Kind != EOF {
				second = true
			}
			if l.Pos == 0 {
				break
			}
		}
		if l.Bad {
			return
		}
		scan := Scan{Mode: mode}
		got := scan.Next(sql)
		if second && !got {
			t.Errorf("%q in %+v: the second statement is not seen", sql, mode)
		}
		if got && !second && !bytes.Contains(sql, []byte("!")) && bytes.IndexByte(sql, ';') < 0 {
			t.Errorf("%q in %+v: got no second statement, want one", sql, mode)
		}
	})
}
