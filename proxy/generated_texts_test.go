package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// searchFor names the variable that makes TestNoGeneratedTextBringsRowsInUnfilled run for so long,
// with a random seed: SEQPROXY_TEST_SEARCH=10m.
const searchFor = "SEQPROXY_TEST_SEARCH"

// serversKey is the first key that AUTO_INCREMENT makes in the test. Those of the sequence are
// lower.
const serversKey = 1_000_000_000

// form is a statement in pieces. Snippets stand between them.
type form struct {
	pieces []string
	rows   bool // it puts rows into the table
}

func formsOfInsert(schema string) []form {
	split := func(text string, rows bool) form {
		return form{strings.Split(strings.ReplaceAll(text, "$", schema), "|"), rows}
	}
	return []form{
		split("INSERT |INTO |t|(|a|)| VALUES| (|'b'|)", true),
		split("INSERT |t |SET |a|=|'b'", true),
		split("REPLACE |INTO |$|.|t|(a)| VALUES |(|'b')|,|('c'|)", true),
		split("INSERT |INTO |t|(a)| SELECT |'b'", true),
		split("INSERT |IGNORE |INTO |`t`| (a)| VALUES| ('b')| ON DUPLICATE |KEY |UPDATE |a=|'c'", true),
		split("INSERT |INTO |t| VALUES |(|NULL|,'b')", true),
		split("REPLACE |t| SELECT |NULL|,|'b'", true),
		split("INSERT |INTO |t |()| VALUES |()", true),
		split("INSERT |INTO |.|t|(a)| VALUES |('b')", true),
		// No column stands in the value before FOR: MariaDB 10.11 crashes on one.
		split("SET |STATEMENT |max_statement_time=10 FOR |INSERT |INTO |t(a) |VALUES |('b')", true),
		split("ANALYZE |INSERT |INTO |t|(a) |VALUES |('b')", true),
		split("IF |1 |THEN |INSERT |INTO |t|(a) VALUES |('b')|; END |IF", true),
		split("EXPLAIN |ANALYZE |INSERT |INTO |t|(a) SELECT |'b'", false),
		split("SELECT |REPLACE|(|'abc'|,'b'|,'c')", false),
		split("SELECT |'INSERT INTO t(a) VALUES (1)'| , |INSERT|('abc',1,1,'x')", false),
		split("UPDATE |t |SET |a|=|REPLACE('x','y','z') |WHERE |id|=|0", false),
		split("DELETE |FROM |t |WHERE |id|=|0", false),
		split("DO |1", false),
		split("WITH |c |AS |(|SELECT 1|) |SELECT |* |FROM |c", false),
	}
}

// snippets stand in the gaps. Most of them are white space for some server.
var snippets = []string{
	" ", "", "\t", "\n", "\v", "\f", "\r", "\x00", "\x01", "\x1a", "\x7f", "\xa0", "\x80", "\xff", "\xc2\xa0", "\xe9", "\xbf\\", "\x81`",
	"/**/", "/* x */", "/* ' */", "/* ` */", "/* \x00 */", "/* /* */", "/*/ */", "/***/", "/* INSERT */",
	"/*!*/", "/*! */", "/*! /* x */ */", "/*!00000*/", "/*!40000 */", "/*!50000*/", "/*!50699 */", "/*!50700 */", "/*!50700 x */", "/*!80000 */", "/*!80000 x */",
	"/*!90000 */", "/*!99999 x */", "/*!100000 */", "/*!100000 x */", "/*!080000 */", "/*!101100 */", "/*!110800 */", "/*!120000 x */",
	"/*!999999 x */", "/*!999999x*/", "/*!999999 ' */", "/*!999999 /* x */ */", "/*!999999 /* x /* y */ */", "/*!9999999*/", "/*!1*/", "/*!5070*/",
	"/*M! */", "/*M!100000 */", "/*M!100000 x */", "/*M!999999 x */", "/*m! */", "/*+ x */", "/*+ SET_VAR(a=1) */",
	"-- x\n", "--\n", "--\tx\n", "--\x01x\n", "--\xa0x\n", "--x\n", "#x\n", "#\n", "-- \x00\n", "# '\n", "--\x7f\n", "-- */\n",
	".", ";", ";\x00", "; \x00 '", "\x00;", "\x00\x00", " \x00 ", "`", "'", "\"", "\\", "\\N", "@", "?", "$", "$$", "{", "[", "(", ")", "x",
	" LOW_PRIORITY ", " IGNORE ", " INTO ", "/*!50000 IGNORE */", "/*!999999 IGNORE */", "/*!50700 LOW_PRIORITY */", "/*M!100000 LOW_PRIORITY */",
	" PARTITION (p0) ", " AS n ", " RETURNING 1", " LIMIT 1", "_utf8mb4", "N", "/*! ; */",
}

// generated is a text, with the settings under which the session reads it.
type generated struct {
	text, charset, mode string
	rows                bool
}

// charsets of clients. The test skips those that a server does not have.
var charsets = []string{"utf8mb4", "latin1", "gbk", "sjis", "big5", "cp1251", "cp932", "gb18030", "swe7", "ascii", "binary", "tis620", "euckr", "ujis", "cp850", "hp8", "macroman", "latin7"}

var modes = []string{"", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ORACLE", "MSSQL"}

// generate makes a text with one snippet or two in its gaps.
func generate(r *rand.Rand, forms []form, g *generated) {
	f := forms[r.IntN(len(forms))]
	pieces := slices.Clone(f.pieces)
	for range 1 + r.IntN(2) {
		s := snippets[r.IntN(len(snippets))]
		if at := r.IntN(len(pieces) + 1); at < len(pieces) {
			pieces[at] = s + pieces[at]
		} else {
			pieces[at-1] += s
		}
	}
	g.text, g.rows = strings.Join(pieces, ""), f.rows
}

// search runs such texts, direct and through the proxy.
type search struct {
	*env
	direct, proxied *sql.Conn
	accepted        func(ctx context.Context, text string) bool

	texts, rejected, filled, refused, harmless int
	failed                                     map[string]int
}

// rows counts the rows of t, and those with keys that the server made.
func (s *search) rows(ctx context.Context, c *sql.Conn) (all, generated int) {
	s.t.Helper()
	row := c.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*), COUNT(IF(id >= %d, 1, NULL)) FROM t", serversKey))
	if err := row.Scan(&all, &generated); err != nil {
		s.t.Fatal(err)
	}
	return all, generated
}

// runText runs a text to its end, which may have several statements or rows.
func runText(ctx context.Context, c *sql.Conn, text string) error {
	rows, err := c.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
		}
	}
	return rows.Err()
}

// runPrepared runs a text by the protocol for prepared statements.
func runPrepared(ctx context.Context, c *sql.Conn, text string) error {
	st, err := c.PrepareContext(ctx, text)
	if err != nil {
		return err
	}
	defer st.Close()
	rows, err := st.QueryContext(ctx)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func (s *search) one(ctx context.Context, g generated, how func(context.Context, *sql.Conn, string) error) {
	s.texts++
	if !s.accepted(ctx, g.text) {
		s.rejected++
		return
	}
	wrong := func(format string, args ...any) {
		key := fmt.Sprintf(format, args...)
		if s.failed[key]++; s.failed[key] <= 5 {
			s.t.Errorf("%q in %s, sql_mode %q: %s", g.text, g.charset, g.mode, key)
		}
	}
	direct := func() (rows int, err error) {
		exec(s.t, s.direct, "START TRANSACTION")
		err = how(ctx, s.direct, g.text)
		rows, _ = s.rows(ctx, s.direct)
		exec(s.t, s.direct, "ROLLBACK")
		return rows, err
	}
	err := how(ctx, s.proxied, g.text)
	all, generated := s.rows(ctx, s.direct)
	defer func() {
		if all > 0 {
			exec(s.t, s.direct, "DELETE FROM t")
		}
	}()
	var refused *mysql.MySQLError
	switch {
	case generated > 0:
		wrong("the server made a key")
	case err != nil && errors.As(err, &refused) && refused.Number == 1235 && strings.HasPrefix(refused.Message, "seqproxy: "):
		s.refused++
		if rows, err := direct(); err == nil && rows == 0 && !g.rows && g.charset != "swe7" {
			// The proxy reads no text of this command.
			wrong("refused, though it brings no row in: %v", refused)
		}
	case err != nil:
		exec(s.t, s.direct, "DELETE FROM t")
		if _, direct := direct(); direct == nil {
			wrong("failed only through the proxy: %v", err)
		}
	case all > 0:
		s.filled++
	default:
		s.harmless++
		if rows, err := direct(); err == nil && rows > 0 {
			wrong("it brought no row in through the proxy, and %d direct", rows)
		}
	}
}

// TestNoGeneratedTextBringsRowsInUnfilled puts snippets into the gaps of statements. A text that
// the server accepts must be filled, refused, or bring no row into the bound table.
func TestNoGeneratedTextBringsRowsInUnfilled(t *testing.T) {
	seed, n := uint64(1), 6000
	lasts := time.Hour
	if long := os.Getenv(searchFor); long != "" {
		d, err := time.ParseDuration(long)
		if err != nil {
			t.Fatalf("%s: %v", searchFor, err)
		}
		seed, n, lasts = rand.Uint64(), 1<<40, d/2
		t.Logf("seed %d", seed)
	}
	e := newEnv(t, bound(proxy.Binding{Table: "t", Column: "id", Sequence: "photos"}))
	for _, several := range []bool{false, true} {
		t.Run(map[bool]string{false: "one statement", true: "several statements"}[several], func(t *testing.T) {
			agreed := func(c *mysql.Config) { c.MultiStatements = several }
			ctx := t.Context()
			s := &search{env: e, direct: e.DirectConn(t, 0, e.Schemas[0], agreed), proxied: e.Conn(t, e.Schemas[0], agreed), failed: map[string]int{}}
			exec(t, s.direct, "DROP TABLE IF EXISTS t", fmt.Sprintf("CREATE TABLE t (id BIGINT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(50)) AUTO_INCREMENT = %d", serversKey))
			exec(t, s.proxied, "CREATE SEQUENCE IF NOT EXISTS photos")
			s.accepted = func(ctx context.Context, text string) bool {
				st, err := s.direct.PrepareContext(ctx, text)
				if err == nil {
					st.Close()
				}
				return err == nil
			}
			if several { // no server prepares several statements
				s.accepted = func(ctx context.Context, text string) bool {
					exec(t, s.direct, "START TRANSACTION")
					err := runText(ctx, s.direct, text)
					exec(t, s.direct, "ROLLBACK")
					return err == nil
				}
			}
			forms := formsOfInsert(e.Schemas[0])
			if several {
				for i := range forms {
					more := [][]string{{"SELECT 1", ";", " "}, {}}[i%2]
					forms[i].pieces = append(slices.Clone(more), forms[i].pieces...)
					if i%3 > 0 {
						forms[i].pieces = append(forms[i].pieces, ";", " SELECT 1")
					}
				}
			}
			end := time.Now().Add(lasts)
			r := rand.New(rand.NewPCG(seed, 0))
			total := n
			if several {
				total /= 3
			}
			for s.texts < total && time.Now().Before(end) {
				g := generated{charset: charsets[r.IntN(len(charsets))], mode: modes[r.IntN(len(modes))]}
				if r.IntN(2) == 0 {
					g.charset, g.mode = "utf8mb4", ""
				}
				set := fmt.Sprintf("SET NAMES %s, sql_mode = '%s'", g.charset, g.mode)
				if runText(ctx, s.direct, set) != nil {
					continue // not every server has every character set
				}
				exec(t, s.proxied, set)
				for range 20 {
					how := runText
					if !several && r.IntN(4) == 0 {
						how = runPrepared
					}
					generate(r, forms, &g)
					s.one(ctx, g, how)
				}
			}
			t.Logf("%d texts: %d rejected by the server, %d filled, %d refused, %d relayed that bring no row in", s.texts, s.rejected, s.filled, s.refused, s.harmless)
			if s.filled < 100 || s.harmless < 100 {
				t.Errorf("too few texts were filled, refused or relayed")
			}
		})
	}
}
