package statement_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/statement"
	"seqproxy/statement/lex"
	"seqproxy/test/mysqltest"
)

var seed = flag.Uint64("seed", 0, "seed of the random texts; 0 for another one each time")

// glued is a server session for texts whose tokens touch each other. It has a table two with two
// rows, a sequence s, and a table dup that already has every row that a text may insert.
type glued struct {
	conn    *sql.Conn
	mariaDB bool
	mode    lex.Mode
}

// newGlued opens a session with the given sql_mode and character set.
func newGlued(t *testing.T, sqlMode, charset string) *glued {
	t.Helper()
	server := mysqltest.Shared(t)
	conn, err := server.DB(t, server.Schema(t)).Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	mariaDB := server.IsMariaDB()
	if mariaDB {
		if _, err := conn.ExecContext(context.Background(), "create sequence s"); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []string{
		"create table two (x int, `5from` int)", "insert into two values (1, 1), (2, 2)",
		"create table dup (a bigint, v varchar(100), k int default 1 unique)", "insert into dup values (0, 0, 1)",
		"set sql_mode = '" + sqlMode + "'",
		"set names " + charset,
	} {
		if _, err := conn.ExecContext(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	return &glued{conn: conn, mariaDB: mariaDB, mode: lex.Mode{
		SQLMode: lex.SQLMode{
			NoBackslashEscapes: strings.Contains(sqlMode, "NO_BACKSLASH_ESCAPES"),
			ANSIQuotes:         strings.Contains(sqlMode, "ANSI_QUOTES") || strings.Contains(sqlMode, "ORACLE"),
		},
		Charset: lex.CharsetByName(charset),
	}}
}

// ask runs a text. It returns the rows, each as one string, and the number of columns, which is 0
// without a result.
func (g *glued) ask(text string) (rows []string, columns int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := g.conn.QueryContext(ctx, text)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	names, err := r.Columns()
	if err != nil {
		return nil, 0, err
	}
	cells := make([]sql.RawBytes, len(names))
	into := make([]any, len(names))
	for i := range cells {
		into[i] = &cells[i]
	}
	for r.Next() {
		if err := r.Scan(into...); err != nil {
			return nil, 0, err
		}
		rows = append(rows, string(bytes.Join(func() (all [][]byte) {
			for _, c := range cells {
				all = append(all, c)
			}
			return all
		}(), []byte("|"))))
	}
	return rows, len(names), r.Err()
}

// The NEXTVALs of a text get firstNumber, firstNumber + step, ... These are so far apart that no
// text makes one of another.
const firstNumber, step = 900001, 1000003

// erUnknownSequence is the error for a call of another sequence, such as "x".nextval.
const erUnknownSequence = 4091

// check sends a text to the server and to Analyze. It returns whether the server could read the
// text that the proxy would send, and what is wrong with the proxy's reading.
func (g *glued) check(text string) (read bool, problem string) {
	var st statement.Statement
	st.Analyze([]byte(text), g.mode)
	nextvals := 0
	for _, c := range st.Calls {
		if c.Func == statement.Nextval {
			nextvals++
		}
	}
	if st.SelfContained {
		// Call the server's own sequence, which takes no string, or another function.
		call := "nextval(s)"
		if !g.mariaDB {
			call = "last_insert_id()"
		}
		_, _, err := g.ask(strings.ReplaceAll(text, "nextval('s')", call))
		if unknown := new(mysql.MySQLError); err != nil && !(errors.As(err, &unknown) && unknown.Number == erUnknownSequence) {
			return true, fmt.Sprintf("is self-contained, but the server says %v", err)
		}
	}
	if nextvals > 0 {
		// No server accepts a string as a sequence, so one that accepts the text saw no call. MySQL
		// does not read the parts of a WITH that it does not need. The proxy refuses these.
		if _, _, err := g.ask(text); err == nil && (g.mariaDB || !strings.Contains(text, "with")) {
			return true, "has a call, but not for the server"
		}
	}
	if st.Refusal != "" || slices.ContainsFunc(st.Calls, func(c statement.FuncCall) bool { return c.Place != statement.PlaceOnce }) {
		return false, ""
	}
	needs := st.Needs(nil, nil)
	values := statement.Replacements{LastInsertID: 7, ConnectionID: 8}
	next := uint64(firstNumber)
	for _, n := range needs {
		values.Taken = append(values.Taken, statement.Taken{First: next, Step: step})
		next += uint64(n.Count) * step
	}
	sent := string(st.Rewrite(nil, []byte(text), st.Substitutions(nil, needs, nil, values)))
	rows, columns, err := g.ask(sent)
	if err != nil {
		return false, ""
	}
	if st.Kind == statement.Insert {
		return true, fmt.Sprintf("is sent as %q and no duplicate was found: it is taken for an INSERT without ON DUPLICATE KEY UPDATE", sent)
	}
	for n := uint64(firstNumber); n < next; n += step {
		in := 0
		for _, row := range rows {
			if strings.Contains(row, fmt.Sprint(n)) {
				in++
			}
		}
		if in > 1 {
			return true, fmt.Sprintf("is sent as %q, and %d is in %d rows: %q", sent, n, in, rows)
		}
	}
	const more = statement.FromTable | statement.UnionWord | statement.VersionedComment
	switch {
	case st.Kind == statement.Select && st.Words&more == 0 && len(rows) > 1 && (nextvals > 0 || !strings.Contains(text, "group by")):
		return true, fmt.Sprintf("has no FROM and no UNION, but the server gives %d rows", len(rows))
	case st.Kind == statement.Select && columns == 0 && st.Words&(statement.Into|statement.VersionedComment) == 0:
		return true, "has no INTO, but the server gives no result"
	}
	return true, ""
}

// sessions are the modes in which texts are sent to the server.
var sessions = []struct{ sqlMode, charset string }{
	{"", "utf8mb4"},
	{"ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "utf8mb4"},
	{"IGNORE_SPACE,PIPES_AS_CONCAT", "latin1"},
	{"ORACLE", "utf8mb4"},
	{"", "gbk"},
	{"NO_BACKSLASH_ESCAPES", "gbk"},
	{"", "sjis"},
	{"ANSI_QUOTES", "big5"},
	{"", "euckr"},
	{"", "ujis"},
}

// TestGluedTokensAreCutAsTheServerCutsThem has texts that were once, or could easily be, read
// differently from the server.
func TestGluedTokensAreCutAsTheServerCutsThem(t *testing.T) {
	g := newGlued(t, "", "utf8mb4")
	for _, text := range []string{
		"select nextval('s'), 1e5from two",
		"select nextval('s'), 0e0from two",
		"select nextval('s'), 1E05from two",
		"select nextval('s'), 1e+5from two",
		"select nextval('s'), 1.e5from two",
		"select nextval('s'), 1.5e-5from two",
		"select nextval('s'), 1.from two",
		"select nextval('s'), 1.5from two",
		"select nextval('s'), .5from two",
		"select nextval('s') or .5from two",
		"select nextval('s') div .5e1from two",
		"select nextval('s'), x'41'from two",
		"select nextval('s'), b'1'from two",
		"select nextval('s'), N'x'from two",
		"select nextval('s'), 'x'from two",
		"select nextval('s'), @v1.from two",
		"select nextval('s'), @`v1`from two",
		"select nextval('s'), @@`identity`from two",
		"select nextval('s'), \\Nfrom two",
		"select nextval('s'), -\\Nfrom two",
		"select nextval('s')from two",
		"select nextval('s') from.two",
		"select nextval('s') from .two",
		"select nextval('s'), two.`5from`from two",
		"select nextval('s'), two.5from from two",
		"select nextval('s'), union.x from (select 1 x union all select 2) `union`",
		"select nextval('s'), except.x from two `except`",
		"select nextval('s'), dual.x from two dual",
		"select nextval('s') from dual.two",
		"select nextval('s'), 1e5union select 900001 from two",
		"select nextval('s'), 1e5into@c",
		"select 1e5into@c",
		"select 1,\\Ninto@c",
		"select nextval('s') /*! from two */",
		"select /*! nextval('s') /*M! from two */",
		"select nextval('s') --\vfrom two",
		"select nextval('s') --from two",
		"select nextval('s') -- \x00\nfrom two",
		"select nextval('s') -- \x00\n",
		"select nextval('s') 1.e-- 5\nfrom two",
		"select @@ identity",
		"select @@/**/last_insert_id",
		"select @@\n`identity`",
		"select @@identity, @@`last_insert_id`, @@session . identity, @@session. `identity`",
		"insert into dup (a, v) select 1, 1e5on duplicate key update v = nextval('s')",
		"insert into dup (a, v) select 1, \\Non duplicate key update v = nextval('s')",
		"insert into dup (a, v) select 1, 1 or .5on duplicate key update v = nextval('s')",
	} {
		if _, problem := g.check(text); problem != "" {
			t.Errorf("%q %s", text, problem)
		}
	}
	g = newGlued(t, "ANSI_QUOTES", "utf8mb4")
	for _, text := range []string{`select @@"identity"`, `select @@session."identity"`, `select nextval('s'), "two".x from two`} {
		if _, problem := g.check(text); problem != "" {
			t.Errorf("ANSI_QUOTES: %q %s", text, problem)
		}
	}
	if g.mariaDB {
		g = newGlued(t, "ORACLE", "utf8mb4")
		for _, text := range []string{`select "x".nextval`, `select x.nextval;`} {
			if _, problem := g.check(text); problem != "" {
				t.Errorf("ORACLE: %q %s", text, problem)
			}
		}
	}
	g = newGlued(t, "", "gbk")
	for _, text := range []string{
		"select nextval('s'), @a\xbf^.5from two",
		"select nextval('s'), @a\xbf`x` from two -- `",
		"select nextval('s'), '\xbf\\' from two",
	} {
		if _, problem := g.check(text); problem != "" {
			t.Errorf("gbk: %q %s", text, problem)
		}
	}
}

// pieces are the parts of random texts, grouped by what may follow what. The first of a row is as
// likely as all others together.
var (
	operands = []string{
		"nextval('s')", "1", "12", "0", "1e5", "1E5", "1e+5", "1e-05", "0e0", "00e1", "1e", "1e5e", "1.", "1.5", "1.e5", "1.e", ".5",
		".5e1", "1..2", "1.5.5", "0x1F", "0x", "0X1F", "0b1", "0b2", "0b1e5", "1a", "x'41'", "X'4'", "b'1'", "N'x'", "n'x''y'", "'x'",
		"'x\\'", "'x\\\\'", "\"x\"", "_utf8mb4'x'", "_utf8mb4 x'41'", "'a' 'b'", "'a'/**/'b'", "'a'\n'b'", "\\N", "\\n", "@v", "@1e5",
		"@v.5", "@'v'", "@`v`", "@\"v\"", "@", "@@identity", "@@session.identity", "@@`identity`", "@@ identity", "@@1e5", "@@session.1e5",
		"x", "two.x", "two . x", "two. x", "two .x", "`two`.x", "`two`.`5from`", "two.5from", "two.`5from`", "`5from`", "union.x", "from.x",
		"nextval", "null", "$", "$a", "a$1", "\xc3\xa9", "a\xc2\xa0", "\xbf\\", "@a\xbf^", "(1)", "(select 1)", "(select x from two limit 1)",
		"@v:=1", "@v := 1e5", "case when 1 then 1e5end", "case 1 when 1then .5 end", "last_insert_id()", "--1", "- -1", "-1e5", "!1", "~1", "?",
		"`a`", "`a``b`", "``", "\"a\"\"b\"", "q'[x]'", "now()+interval 1e0day", "*", "two.*", "date'2020-01-01'",
	}
	glue  = []string{"", "", "", " ", "/**/", "\n", "\t", "/* ' */", "-- x\n", "--\n", "#'\n", "/*! */", "/*!40000 */", "/*!999999 x */", "/*M! */", "\xc2\xa0", "\x00", "*/", "/*"}
	opers = []string{",", "+", "-", "*", "/", "%", "||", "&&", "|", "&", "^", "<=>", "!=", "<<", "->", ":=", "=", "or", "div", "and", "mod", "is", "as", "", "like", "in", "collate", ";", ".", ".."}
	tails = []string{
		"from two", "from two", "from.two", "from .two", "from two-- x", "from dual", "from dual where 1", "from dual,two", "union select 2",
		"union all select 3 from two", "union all(select 4 from two)", "except select 2 from two", "into@c", "into @c,@d", "where 1", "limit 2",
		"group by 1 with rollup", "having 1", "order by 1", "for update", "", "", ";", "from(select 1 union all select 2)a",
		"/*!from two*/", "/*!40000from two*/", "/*!50000 from two*/", "/*M!from two*/", "/*!999999 from two*/", "/*!4000from two*/", "/*! /*M! from two*/", "from two*/",
		"minus select 1 from two",
	}
	insertTails = []string{
		"on duplicate key update v=nextval('s')", "on/**/duplicate key update v=nextval('s')", "/*!on*/duplicate key update v=nextval('s')", "", ";", "on duplicate key update v=values(v)+nextval('s')",
	}
)

func drawn(r *rand.Rand, from []string) string {
	if r.IntN(2) == 0 {
		return from[0]
	}
	return from[r.IntN(len(from))]
}

// bytesOf makes an operand with a few random bytes. They come in pairs that are one character in
// one character set and two in another.
func bytesOf(r *rand.Rand) string {
	const tails = "\\`'\"^|@[{}~_Aa5./*-\x80\xa0\xa1\xff"
	var b []byte
	for range 1 + r.IntN(2) {
		b = append(b, byte(0x80+r.IntN(0x80)), tails[r.IntN(len(tails))])
	}
	around := [][2]string{{"'", "'"}, {"'", "''"}, {"`", "`"}, {"\"", "\""}, {"", ""}, {"a", ""}, {"@", ""}, {"@a", ""}, {"@`", "`"}, {"@'", "'"}, {"N'", "'"}, {"@@", ""}, {"/*", "*/1"}, {"#", "\n1"}}
	in := around[r.IntN(len(around))]
	return in[0] + string(b) + in[1]
}

// operand makes a random operand.
func operand(r *rand.Rand) string {
	if r.IntN(6) == 0 {
		return bytesOf(r)
	}
	return any1(r, operands[1:])
}

func any1(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

// randomText makes a text. The server understands about one in three.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	joint := func() {
		// Mostly nothing, since the test is about tokens that touch each other.
		if r.IntN(3) == 0 {
			b.WriteString(any1(r, glue))
		}
	}
	insert := r.IntN(6) == 0
	if insert {
		b.WriteString("insert into dup (a,v) select 1,")
	} else {
		b.WriteString([]string{"select ", "select", "select/**/", "select distinct ", "(select "}[r.IntN(5)*r.IntN(2)])
		b.WriteString(drawn(r, operands))
		joint()
		b.WriteString(drawn(r, opers))
		joint()
	}
	b.WriteString(operand(r))
	for r.IntN(4) == 0 {
		joint()
		b.WriteString(any1(r, opers))
		joint()
		b.WriteString(operand(r))
	}
	joint()
	if insert {
		b.WriteString(any1(r, insertTails))
	} else {
		b.WriteString(any1(r, tails))
	}
	return b.String()
}

// queryMaker makes queries within queries, with a NEXTVAL anywhere.
type queryMaker struct {
	r     *rand.Rand
	words []string
}

// add appends words, which are separated by blanks.
func (m *queryMaker) add(words string) {
	m.words = append(m.words, strings.Fields(words)...)
}

func (m *queryMaker) value(depth int) {
	kinds := 12
	if depth > 2 {
		kinds = 8 // only kinds without values
	}
	switch n := m.r.IntN(kinds); {
	case n < 3:
		m.add("nextval('s')")
	case n < 8:
		m.add(any1(m.r, []string{"1", "1e5", ".5", "'a'", "\\N", "@v", "two.x", "union.x", "x", "x'41'", "last_insert_id()", "@@identity"}))
	case n == 8:
		m.add("(")
		m.query(depth + 1)
		m.add(")")
	case n == 9:
		m.add(any1(m.r, []string{"exists (", "1 in (", "1 = any ("}))
		m.query(depth + 1)
		m.add(")")
	case n == 10:
		m.add(any1(m.r, []string{"extract( year from", "trim( 'a' from", "substring( '3' from", "coalesce( 1 ,", "not (", "- ("}))
		m.value(depth + 1)
		m.add(")")
	default:
		m.add("case when")
		m.value(depth + 1)
		m.add("then 1e0 else")
		m.value(depth + 1)
		m.add("end")
	}
}

func (m *queryMaker) query(depth int) {
	if m.r.IntN(12) == 0 && depth < 3 {
		m.add("with w as (")
		m.query(depth + 1)
		m.add(")")
	}
	bare := m.r.IntN(5) > 0
	if !bare {
		m.add("(")
	}
	m.add("select")
	m.value(depth)
	for m.r.IntN(3) == 0 && depth == 0 {
		m.add(any1(m.r, []string{",", ",", "as a ,", "a ,", "+", "or"}))
		m.value(depth)
	}
	switch n := m.r.IntN(10); {
	case n < 3:
		m.add(any1(m.r, []string{"from two", "from dual", "from two `union`", "/*! from two */", "from ( two )", "from dual , two", "from w"}))
	case n == 3 && depth < 3:
		m.add(any1(m.r, []string{"from two join (", "from ("}))
		m.query(depth + 1)
		m.add(any1(m.r, []string{") u", ") as `union`", ") dual"}))
	}
	if m.r.IntN(6) == 0 {
		m.add("where")
		m.value(depth + 1)
	}
	if m.r.IntN(8) == 0 {
		m.add(any1(m.r, []string{"limit 1", "limit 2", "order by 1", "group by 1", "having 1", "for update"}))
	}
	if !bare {
		m.add(")")
	}
	if m.r.IntN(5) == 0 {
		m.add(any1(m.r, []string{"union", "union all", "except", "intersect"}))
		m.query(depth)
	}
}

// randomQuery makes a query and joins its words where that is allowed.
func randomQuery(r *rand.Rand) string {
	m := queryMaker{r: r}
	m.query(0)
	if r.IntN(12) == 0 {
		m.add("into @c")
	}
	var b strings.Builder
	for i, w := range m.words {
		if i > 0 {
			last := m.words[i-1]
			end, begin := last[len(last)-1], w[0]
			switch {
			case end >= 'a' && begin >= 'a', r.IntN(2) == 0:
				b.WriteString(any1(r, []string{" ", " ", "\n", "/**/", " -- x\n"}))
			}
		}
		b.WriteString(w)
	}
	return b.String()
}

// TestRandomGluedTextsAreReadAsTheServerReadsThem looks for texts that Analyze and the server read
// differently. If Analyze misses a FROM, UNION, INTO or ON DUPLICATE KEY, a number is given twice.
func TestRandomGluedTextsAreReadAsTheServerReadsThem(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("run again with: go test ./statement -run %s -args -seed %d", t.Name(), s)
	r := rand.New(rand.NewPCG(s, 0))
	texts, read := 0, 0
	end := time.Now().Add(6 * time.Second)
	for _, in := range sessions {
		if in.sqlMode == "ORACLE" && !mysqltest.Shared(t).IsMariaDB() {
			continue
		}
		g := newGlued(t, in.sqlMode, in.charset)
		for range 1000 {
			if time.Now().After(end) {
				break
			}
			text := randomText(r)
			if r.IntN(4) == 0 {
				text = randomQuery(r)
			}
			ok, problem := g.check(text)
			texts++
			if ok {
				read++
			}
			if problem != "" {
				t.Errorf("sql_mode %q, %s: %q %s", in.sqlMode, in.charset, text, problem)
			}
		}
	}
	if read*20 < texts {
		t.Errorf("the server could read %d of %d texts: too few to prove anything", read, texts)
	}
	t.Logf("%d texts, %d of them sent and read by the server", texts, read)
}
