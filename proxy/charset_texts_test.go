package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"seqproxy/sequence"
)

// awkward are characters of clients' sets whose second byte is a backslash, a quote or a letter,
// and bytes that are no character.
var awkward = map[string][]string{
	"utf8mb4": {"é", "写", "\U0001f600", "\xbf", "\xbf\\"},
	"latin1":  {"\xe9", "\xbf\\", "\x95\\", "\xff"},
	"cp1251":  {"\xe9", "\xbf\\", "\x95\\", "\xff"},
	"gbk":     {"\xbf\\", "\x81\\", "\x81`", "\xd5\\", "\xd0\xb4", "\xbf'", "\x81\"", "\x80", "\xff", "\x81"},
	"gb18030": {"\xbf\\", "\x81\\", "\x81`", "\x81\x30\x81\x30", "\x81\x30'", "\xbf'", "\x80", "\xff"},
	"big5":    {"\xa5\\", "\xb3\\", "\xbb\\", "\xa5'", "\xa4`", "\x81\\", "\xa4"},
	"sjis":    {"\x83\\", "\x95\\", "\x81`", "\xb1\\", "\xb1'", "\x83'", "\x80", "\xfd\\"},
	"cp932":   {"\x83\\", "\x95\\", "\x81`", "\xb1\\", "\xfa\\", "\x83'", "\xa0\\"},
	"euckr":   {"\xbb\xe7", "\x81A", "\xbb\\", "\xbb'", "\x81`"},
	"ujis":    {"\xbc\xcc", "\x8e\xb1", "\x8f\xb0\xa1", "\x8f\\", "\xbc'", "\x8e`"},
	"gb2312":  {"\xd0\xb4", "\xbf\\", "\xbf'", "\xa1`"},
}

// awkwardText makes a statement whose character set and sql_mode decide where the call stands, and
// whether it is one.
func awkwardText(r *rand.Rand, characters []string) string {
	content := func() string {
		var b strings.Builder
		for range 1 + r.IntN(4) {
			switch r.IntN(9) {
			case 0, 1, 2, 3:
				b.WriteString(characters[r.IntN(len(characters))])
			case 4:
				b.WriteString([]string{`\\`, `\'`, `\"`, `''`, `""`, "\\`", `\`}[r.IntN(7)])
			case 5:
				b.WriteString(" NEXTVAL(s) ")
			default:
				b.WriteString("x")
			}
		}
		return b.String()
	}
	items := make([]string, 1+r.IntN(3))
	for i := range items {
		switch quote := []string{"'", "'", `"`, "`"}[r.IntN(4)]; {
		case quote == "`":
			items[i] = "1 AS `" + content() + "`"
		case r.IntN(4) == 0:
			items[i] = "_binary " + quote + content() + quote
		default:
			items[i] = quote + content() + quote
		}
	}
	items = append(items, "")
	at := r.IntN(len(items))
	copy(items[at+1:], items[at:])
	items[at] = "NEXTVAL(s)"
	comment := ""
	if r.IntN(3) == 0 {
		comment = " /* " + content() + " */"
	}
	return "SELECT " + strings.Join(items, ", ") + comment
}

// givenAs replaces a call on direct connections. The tests give no such number.
const givenAs = "LAST_INSERT_ID(777)"

// sameShape returns a result's rows with one sign in place of every number given.
func sameShape(rows [][]string) string {
	for _, row := range rows {
		for i, v := range row {
			if _, err := strconv.Atoi(v); err == nil && v != "1" {
				row[i] = "number"
			}
			row[i] = strings.ReplaceAll(row[i], "NEXTVAL(s)", givenAs)
		}
	}
	return fmt.Sprintf("%q", rows)
}

// sameReading runs a text with calls on both, and fails if the proxy reads it differently from the
// server. given says that both had rows, refused that the proxy refused the text.
func (p *pair) sameReading(what, text string) (given, refused bool) {
	p.t.Helper()
	want := p.Direct.query(strings.ReplaceAll(text, "NEXTVAL(s)", givenAs))
	got := p.Proxy.query(text)
	if got[4] == 0xff && serverError(p.t, got).Code == 1235 {
		return false, true
	}
	if got[4] == 0xff || want[4] == 0xff {
		// Without a schema MariaDB says so of its own NEXTVAL(s), before it reads on.
		if got[4] != want[4] || serverError(p.t, got).Code != serverError(p.t, want).Code && serverError(p.t, got).Code != 1046 {
			p.t.Errorf("%s: %q: answers differ:\nproxy:  %.200q\ndirect: %.200q", what, text, got, want)
		}
		return false, false
	}
	if got, want := sameShape(p.Proxy.decode(got)), sameShape(p.Direct.decode(want)); got != want {
		p.t.Errorf("%s: %q:\ngot  %s,\nwant %s", what, text, got, want)
	}
	return true, false
}

// Checklist 28.
func TestTextsOfEveryCharacterSetAndModeAreReadAsTheServerReadsThem(t *testing.T) {
	e := newEnv(t, setup{})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1000}); err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	ran, given, refused := 0, 0, 0
	for charset, characters := range awkward {
		for _, mode := range []string{"", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"} {
			p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
			if p.Direct.query("SET NAMES " + charset)[4] == 0xff {
				continue // MariaDB has no gb18030
			}
			p.Proxy.query("SET NAMES " + charset)
			p.query("SET SESSION sql_mode = '" + mode + "'")
			for range 60 {
				got, no := p.sameReading(fmt.Sprintf("seed %d, %s, mode %s", seed, charset, mode), awkwardText(r, characters))
				ran++
				if got {
					given++
				}
				if no {
					refused++
				}
			}
			p.Proxy.Close()
			p.Direct.Close()
		}
	}
	t.Logf("%d texts, %d with numbers, %d refused", ran, given, refused)
	if given < ran/4 || refused > ran/4 {
		t.Errorf("of %d texts %d got numbers and %d were refused", ran, given, refused)
	}
}
