package proxy_test

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence/kind"
)

// textKinds are kinds whose keys are texts or bytes, with a type of a column for them.
var textKinds = []struct{ clause, column string }{
	{"uuid version 7", "CHAR(36)"},
	{"uuid version 4", "VARCHAR(40)"},
	{"uuid version 7 binary", "BINARY(16)"},
	{"format 'PO-{yyyyMMdd}-{n:6}' time zone 'Asia/Shanghai'", "VARCHAR(18)"},
	{"format 'a\"b{n}' ", "CHAR(23)"},
	{"format '{n:3}' widen", "VARCHAR(20)"},
}

// Keys that are texts stand in the statement's text, and LAST_INSERT_ID() and the insert id do not
// change.
func TestKeysThatAreTexts(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE own (id BIGINT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(64))", "INSERT INTO own (id) VALUES (77)")
	for i, of := range textKinds {
		t.Run(of.clause, func(t *testing.T) {
			k, err := kind.Parse(of.clause)
			if err != nil {
				t.Fatal(err)
			}
			name, ids := fmt.Sprintf("t%d", i), fmt.Sprintf("ids%d", i)
			e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+name+" (k "+of.column+" PRIMARY KEY, n BIGINT)")
			c := e.Conn(t, e.Schemas[0], nil)
			exec(t, c, "CREATE SEQUENCE "+name+" "+of.clause+" OWNED BY "+name+".k")
			exec(t, c, "CREATE SEQUENCE "+ids+" START WITH 500")
			if got := createOf(t, e, name); !strings.Contains(got, " "+strings.TrimSpace(of.clause)+" owned by") {
				t.Errorf("SHOW CREATE SEQUENCE prints %s", got)
			}
			exec(t, c, "INSERT INTO own (a) VALUES ('b')")
			last := value(t, c, "SELECT LAST_INSERT_ID()")
			seen, counter := make(map[string]bool), uint64(0)
			check := func(what, key string) {
				t.Helper()
				n, _, ok := k.Origin(key)
				if !ok || seen[key] || k.Counts() && n <= counter {
					t.Errorf("%s: got the key %q, of the counter %d behind %d", what, key, n, counter)
				}
				seen[key], counter = true, n
				if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != last {
					t.Errorf("%s: LAST_INSERT_ID() is %s, want %s", what, got, last)
				}
			}
			next := "NEXTVAL('" + name + "')"
			check("SELECT", value(t, c, "SELECT "+next))
			check("a prepared SELECT", value(t, c, "SELECT NEXTVAL(?)", name))
			check("SELECT of more", value(t, c, "SELECT CONCAT("+next+", '')"))
			check("a prepared SELECT of more", value(t, c, "SELECT CONCAT("+next+", ?)", ""))
			for j, insert := range []string{
				"INSERT INTO " + name + " VALUES (" + next + ", %d)",
				"INSERT INTO " + name + " (n, k) VALUES (?, " + next + ")",
				"INSERT INTO " + name + " (n) VALUES (%d)",
				"INSERT INTO " + name + " SET n = %d",
				"INSERT INTO " + name + " VALUES (NULL, %d)",
				"INSERT INTO " + name + " VALUES (DEFAULT, %d)",
				"INSERT INTO " + name + " (n) VALUES (?)",
				"REPLACE INTO " + name + " (k, n) VALUES (NULL, ?)",
				"INSERT INTO " + name + " (n) VALUES (%d) ON DUPLICATE KEY UPDATE n = 0",
				"INSERT IGNORE INTO " + name + " (n) VALUES (%d)",
			} {
				var args []any
				if strings.Contains(insert, "?") {
					args = append(args, 10+j)
				} else {
					insert = fmt.Sprintf(insert, 10+j)
				}
				r, err := c.ExecContext(t.Context(), insert, args...)
				if err != nil {
					t.Errorf("%s: %v", insert, err)
					continue
				}
				if id, _ := r.LastInsertId(); id != 0 {
					t.Errorf("%s: the insert id is %d", insert, id)
				}
				check(insert, value(t, c, fmt.Sprintf("SELECT k FROM %s WHERE n = %d", name, 10+j)))
			}
			// A client's explicit key is a parameter, or NULL.
			if _, err := c.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (?, 30)", nil); err != nil {
				t.Error(err)
			} else {
				check("NULL in a parameter", value(t, c, "SELECT k FROM "+name+" WHERE n = 30"))
			}
			exec(t, c, "INSERT INTO "+name+" VALUES ('0', 31)")
			if _, err := c.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (?, 32)", "own"); err != nil {
				t.Error(err)
			}
			exec(t, c, "INSERT INTO "+name+" VALUES (CONCAT('o', 'wn', 2), 33)")
			exec(t, c, "INSERT INTO "+name+" SELECT 'own3', 36 FROM DUAL WHERE NOT EXISTS (SELECT * FROM "+name+" WHERE n = 36)")
			for n, want := range map[int]string{31: "0", 32: "own", 33: "own2", 36: "own3"} {
				if got := strings.TrimRight(value(t, c, fmt.Sprintf("SELECT k FROM %s WHERE n = %d", name, n)), "\x00"); got != want {
					t.Errorf("the client's own key %s became %q", want, got)
				}
			}
			exec(t, c, "INSERT INTO "+name+" VALUES (NULLIF(1, 1), 34)")
			check("an expression that is NULL", value(t, c, "SELECT k FROM "+name+" WHERE n = 34"))
			if _, err := c.ExecContext(t.Context(), "INSERT INTO "+name+" VALUES (NULLIF(1, 1), ?)", 35); err != nil {
				t.Error(err)
			} else {
				check("a prepared one", value(t, c, "SELECT k FROM "+name+" WHERE n = 35"))
			}

			// LAST_INSERT_ID() in the same text is the number, at any place.
			for j, insert := range []string{
				"INSERT INTO " + name + " VALUES (" + next + ", NEXTVAL('" + ids + "'))",
				"INSERT INTO " + name + " (n, k) VALUES (NEXTVAL('" + ids + "'), " + next + ")",
				"INSERT INTO " + name + " (n) VALUES (NEXTVAL('" + ids + "'))",
				"INSERT INTO " + name + " (n) SELECT NEXTVAL('" + ids + "') + ?",
			} {
				if j == 3 {
					wantError(t, c, 1235, strings.Replace(insert, "?", "0", 1), "keys are texts")
					insert = "INSERT INTO " + name + " VALUES (" + next + ", NEXTVAL('" + ids + "') + ?)"
				}
				var args []any
				if strings.Contains(insert, "?") {
					args = append(args, 0)
				}
				r, err := c.ExecContext(t.Context(), insert, args...)
				if err != nil {
					t.Errorf("%s: %v", insert, err)
					continue
				}
				want := fmt.Sprint(500 + j)
				if id, _ := r.LastInsertId(); fmt.Sprint(id) != want {
					t.Errorf("%s: the insert id is %d, want %s", insert, id, want)
				}
				last = want
				check(insert, value(t, c, "SELECT k FROM "+name+" WHERE n = "+want))
			}
			exec(t, c, "INSERT INTO "+name+" VALUES ("+next+", 50), ("+next+", 51)")
			check("several rows", value(t, c, "SELECT k FROM "+name+" WHERE n = 50"))
			check("several rows", value(t, c, "SELECT k FROM "+name+" WHERE n = 51"))
			if got := value(t, c, "SELECT LENGTH("+next+")"); got != fmt.Sprint(k.Length()) && of.column != "CHAR(23)" && !strings.Contains(of.clause, "widen") {
				t.Errorf("a key has the length %s", got)
			}

			for _, refused := range []struct{ statement, want string }{
				{"SELECT NEXTVAL('" + name + "', 2)", "NEXTVAL with a count"},
				{"SELECT SETVAL('" + name + "', 70)", "SETVAL"},
				{"SELECT LASTVAL('" + name + "')", "LASTVAL of sequence"},
				{"SELECT " + next + " FROM " + name, "whose keys are texts"},
				{"INSERT INTO " + name + " SELECT " + next + ", 60 FROM own", "whose keys are texts"},
				{"INSERT INTO " + name + " (n) SELECT 60 FROM own", "its keys are texts"},
				{"UPDATE own SET a = " + next, "whose keys are texts"},
				{"ALTER SEQUENCE " + name + " UUID", "never changes"},
				{"ALTER SEQUENCE " + name + " INCREMENT BY 2", "INCREMENT BY 2"},
				{"ALTER SEQUENCE " + name + " CYCLE", "CYCLE"},
				{"ALTER SEQUENCE " + name + " JSON_SAFE", "JSON_SAFE"},
				{"CREATE OR REPLACE SEQUENCE " + name, "another kind"},
			} {
				wantError(t, c, 1235, refused.statement, refused.want)
			}
			if _, err := c.ExecContext(t.Context(), "INSERT INTO own (a) VALUES (CONCAT(?, NEXTVAL(?)))", "", name); err == nil || !strings.Contains(err.Error(), "prepare it again") {
				t.Errorf("a text where a number was prepared: got %v", err)
			}
			if _, rows := table(t, c, "CHECK SEQUENCE "+name); !strings.Contains(fmt.Sprint(rows), "texts") || !strings.Contains(fmt.Sprint(rows), "OK") {
				t.Errorf("CHECK SEQUENCE says %v", rows)
			}
			_, rows := table(t, c, "SHOW SEQUENCES LIKE '"+name+"'")
			if len(rows) != 1 || rows[0][0] != name || rows[0][len(rows[0])-2] != k.String() {
				t.Errorf("SHOW SEQUENCES lists %v", rows)
			}
			for key := range seen {
				if !k.IsBinary() {
					n, date, _ := k.Origin(key)
					_, rows := table(t, c, "SELECT SEQUENCE_DECODE('"+name+"', '"+key+"')")
					if len(rows) != 1 || k.Counts() && rows[0][0] != fmt.Sprint(n) || date != "" && rows[0][2] != date {
						t.Errorf("SEQUENCE_DECODE of %q says %v", key, rows)
					}
				}
			}
			exec(t, c, "DROP SEQUENCE "+name)
			wantError(t, c, 4091, "SELECT "+next, "'"+name+"'")
			wantError(t, c, 1235, "CREATE SEQUENCE "+name, "another kind")
			exec(t, c, "CREATE SEQUENCE "+name+" "+of.clause)
			check("after DROP and CREATE", value(t, c, "SELECT "+next))
		})
	}
}

// A text is a literal in the connection's character set, and 16 bytes are binary.
func TestTextsAreInTheCharacterSetOfTheConnection(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE words (id VARCHAR(40) CHARACTER SET utf8mb4 PRIMARY KEY)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE words FORMAT 'PO-{n:6}' OWNED BY words.id", "CREATE SEQUENCE bytes UUID BINARY")
	for i, charset := range []string{"latin1", "gbk", "sjis", "big5", "utf8mb4"} {
		exec(t, c, "SET NAMES "+charset)
		if got := value(t, c, "SELECT CONCAT(CHARSET(NEXTVAL('words')), ' ', CHARSET(NEXTVAL('bytes')))"); got != charset+" binary" {
			t.Errorf("SET NAMES %s: the keys are in %s", charset, got)
		}
		exec(t, c, "INSERT INTO words VALUES (NEXTVAL('words'))")
		if got, want := value(t, c, "SELECT MAX(id) FROM words"), fmt.Sprintf("PO-%06d", 2*i+2); got != want {
			t.Errorf("SET NAMES %s: the row has the key %s, want %s", charset, got, want)
		}
	}
}

// Each row has a key of its own where several are asked for, and so has each row of a bulk
// execution. A column of MariaDB's type UUID accepts both forms.
func TestRowsWithTexts(t *testing.T) {
	e := newEnv(t, setup{})
	hello, _ := e.Shards.Routes().Greeting()
	bulk := hello.Capabilities.Has(protocol.BulkOperations)
	kinds := textKinds
	if e.Servers[0].IsMariaDB() {
		kinds = append(slices.Clone(kinds), []struct{ clause, column string }{{"uuid", "UUID"}, {"uuid binary", "UUID"}}...)
	}
	for i, of := range kinds {
		t.Run(of.clause+" "+of.column, func(t *testing.T) {
			name := fmt.Sprintf("t%d", i)
			e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+name+" (k "+of.column+" PRIMARY KEY, n BIGINT, u INT)")
			c := e.Conn(t, e.Schemas[0], nil)
			exec(t, c, "CREATE SEQUENCE "+name+" "+of.clause+" OWNED BY "+name+".k")
			k, err := kind.Parse(of.clause)
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			check := func(what string, count int) {
				t.Helper()
				rows += count
				if got := value(t, c, "SELECT COUNT(DISTINCT k) FROM "+name+" WHERE k IS NOT NULL"); got != fmt.Sprint(rows) {
					t.Errorf("%s: %s keys, want %d", what, got, rows)
				}
			}
			into := "INSERT INTO " + name
			exec(t, c, into+" (n) VALUES (1), (2), (3)")
			check("rows", 3)
			exec(t, c, into+" VALUES (NULL, 4, 0), (DEFAULT, 5, 0)")
			check("NULL and DEFAULT", 2)
			exec(t, c, into+" (n, k) VALUES (6, NEXTVAL('"+name+"')), (7, NEXTVAL('"+name+"'))")
			check("NEXTVAL in each row", 2)
			if _, err := c.ExecContext(t.Context(), into+" (n, k) VALUES (?, NULL), (?, ?)", 8, 9, nil); err != nil {
				t.Error(err)
			}
			check("prepared", 2)
			// The client's own keys, as drivers and dumps write bytes, and expressions.
			own := func(n int) []string {
				hex := fmt.Sprintf("0190163d8694739baea5966c26f8ad%02x", n)
				switch {
				case k.IsBinary():
				case k.Counts():
					hex = fmt.Sprintf("%x", fmt.Sprintf("own%d", n))
				default:
					text := fmt.Sprintf("'0190163d-8694-739b-aea5-966c26f8ad%02x'", n)
					return []string{"UUID()", "_latin1" + text, "N" + text, "LOWER(UUID())"}
				}
				return []string{"x'" + hex + "'", "0x" + hex, "_binary x'" + hex + "'", "CONCAT(x'" + hex + "')"}
			}
			for i := range 4 {
				exec(t, c, fmt.Sprintf("%s VALUES (%s, 10, 0), (%s, 10, 0)", into, own(4 * i)[i], own(4*i + 1)[i]))
				check("own keys "+own(0)[i], 2)
				if _, err := c.ExecContext(t.Context(), fmt.Sprintf("%s VALUES (%s, 10, 0), (?, ?, 0)", into, own(4*i + 2)[i]), nil, 10); err != nil {
					t.Error(err)
				}
				check("own keys, prepared "+own(0)[i], 2)
			}
			exec(t, c, fmt.Sprintf("%s VALUES (%s, 10, 0), (NULL, 10, 0), (NULLIF(1, 1), 10, 0)", into, own(60)[3]))
			check("own keys beside filled ones", 3)
			if !bulk {
				return
			}
			p, _ := e.bulkPair(t)
			for _, text := range []string{" (n) VALUES (?)", " (n, k) VALUES (?, NEXTVAL('" + name + "'))"} {
				id := string(p.Proxy.do(protocol.ComStmtPrepare, into+text)[5:9])
				if got := p.Proxy.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeLong, bulkLong(19), bulkLong(20), bulkLong(21))); got[4] == 0xff {
					t.Errorf("%s: %q", text, got)
				}
				check(text, 3)
			}
			id := string(p.Proxy.do(protocol.ComStmtPrepare, into+" (n, k) VALUES (?, ?)")[5:9])
			p.Proxy.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeLong+typeString, bulkLong(22)+bulkNull, bulkLong(23)+bulkNull))
			check("NULL in each row", 2)
			id = string(p.Proxy.do(protocol.ComStmtPrepare, into+" (k, n) VALUES ("+own(70)[3]+", ?)")[5:9])
			if got := p.Proxy.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeLong, bulkLong(24))); got[4] == 0xff {
				t.Errorf("an own key: %q", got)
			}
			check("an own key in a batch", 1)
		})
	}
}

// Rows whose keys are filled in leave the insert id and LAST_INSERT_ID() as they are when the
// client writes the texts itself: 0, or the table's own AUTO_INCREMENT.
func TestTheInsertIDOfRowsWithTexts(t *testing.T) {
	e := newEnv(t, setup{})
	for i, columns := range []string{"k VARCHAR(20) PRIMARY KEY, n INT", "k VARCHAR(20) UNIQUE, n INT, id BIGINT PRIMARY KEY AUTO_INCREMENT"} {
		filled, given := fmt.Sprintf("filled%d", i), fmt.Sprintf("given%d", i)
		e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE "+filled+" ("+columns+")", "CREATE TABLE "+given+" ("+columns+")")
		c, direct := e.Conn(t, e.Schemas[0], nil), e.DirectConn(t, 0, e.Schemas[0], nil)
		exec(t, c, "CREATE SEQUENCE "+filled+" FORMAT 'PO-{n:6}' OWNED BY "+filled+".k")
		exec(t, c, "DO LAST_INSERT_ID(77)")
		exec(t, direct, "DO LAST_INSERT_ID(77)")
		for _, test := range []struct{ rows, given string }{
			{"(n) VALUES (1), (2)", "VALUES ('PO-000001', 1), ('PO-000002', 2)"},
			{"(k, n) VALUES (NULL, 3), ('own', 4)", "(k, n) VALUES ('PO-000003', 3), ('own', 4)"},
			{"(n) VALUES (?), (?)", "(k, n) VALUES ('PO-000004', ?), ('PO-000005', ?)"},
			{"(k, n) VALUES (?, 5), (?, 6)", ""},
			{"(n) VALUES (LAST_INSERT_ID()), (LAST_INSERT_ID())", "(k, n) VALUES ('PO-000008', LAST_INSERT_ID()), ('PO-000009', LAST_INSERT_ID())"},
		} {
			if test.given == "" {
				test.given = test.rows
			} else if i == 1 {
				test.given = strings.Replace(test.given, "VALUES ('PO-000001'", "(k, n) VALUES ('PO-000001'", 1)
			}
			said := func(conn *sql.Conn, text string, args ...any) string {
				if !strings.Contains(text, "?") {
					args = nil
				}
				r, err := conn.ExecContext(t.Context(), text, args...)
				if err != nil {
					return err.Error()
				}
				id, _ := r.LastInsertId()
				n, _ := r.RowsAffected()
				return fmt.Sprint("insert id ", id, ", rows ", n, ", LAST_INSERT_ID() ", value(t, conn, "SELECT LAST_INSERT_ID()"))
			}
			got := said(c, "INSERT INTO "+filled+" "+test.rows, "7", "8")
			want := said(direct, "INSERT INTO "+given+" "+test.given, "7", "8")
			if got != want {
				t.Errorf("INSERT INTO %s %s: got %s, want %s", filled, test.rows, got, want)
			}
		}
		if !e.Servers[0].IsMariaDB() {
			continue
		}
		for _, rows := range []string{"(n) VALUES (20)", "(n) VALUES (21), (22)"} {
			got := names(t, c, "INSERT INTO "+filled+" "+rows+" RETURNING LAST_INSERT_ID()")
			with := strings.NewReplacer("(n)", "(n, k)", "20)", "20, 'a')", "21)", "21, 'b')", "22)", "22, 'c')").Replace(rows)
			if want := names(t, direct, "INSERT INTO "+given+" "+with+" RETURNING LAST_INSERT_ID()"); !slices.Equal(got, want) {
				t.Errorf("RETURNING with %s: got %v, want %v", rows, got, want)
			}
		}
	}
}

// A format of digits is a number, and LAST_INSERT_ID(). Its counter ends like any other.
func TestAFormatOfDigitsIsAnInsertID(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Bindings = []proxy.Binding{{Table: "bound", Column: "k", Sequence: "words"}} }})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT)", "CREATE TABLE bound (k VARCHAR(64), n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE t FORMAT '9{yyyy}{n:2}' NOCACHE OWNED BY t.id")
	year := time.Now().UTC().Year()
	for n, statement := range []string{"INSERT INTO t (n) VALUES (1)", "INSERT INTO t VALUES (NEXTVAL('t'), 2)", "INSERT INTO t SET n = 3"} {
		r, err := c.ExecContext(t.Context(), statement)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("9%04d%02d", year, n+1)
		id, _ := r.LastInsertId()
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != want || fmt.Sprint(id) != want || value(t, c, "SELECT MAX(id) FROM t") != want {
			t.Errorf("%s: the insert id is %d, LAST_INSERT_ID() %s, want %s", statement, id, got, want)
		}
	}
	if _, rows := table(t, c, "SELECT SEQUENCE_DECODE('t', 9"+fmt.Sprint(year)+"03)"); rows[0][0] != "3" {
		t.Errorf("SEQUENCE_DECODE says %v", rows)
	}
	if _, rows := table(t, c, "CHECK SEQUENCE t"); !strings.Contains(fmt.Sprint(rows), "counters go up to 3") {
		t.Errorf("CHECK SEQUENCE says %v", rows)
	}
	exec(t, c, "ALTER SEQUENCE t RESTART WITH 99", "INSERT INTO t (n) VALUES (99)")
	wantError(t, c, 4084, "INSERT INTO t (n) VALUES (100)")
	exec(t, c, "CREATE SEQUENCE words FORMAT 'a{n:1}' START WITH 9", "CREATE SEQUENCE wide FORMAT 'a{n:1}' WIDEN START WITH 9")
	wantError(t, c, 1235, "INSERT INTO bound (n) VALUES (1)", "whose keys are texts", "OWNED BY")
	if got := value(t, c, "SELECT NEXTVAL('wide')") + value(t, c, "SELECT NEXTVAL('wide')"); got != "a9a10" {
		t.Errorf("a format that widens gives %s", got)
	}
	wantError(t, c, 4084, "SELECT NEXTVAL('words')")
}

// A literal is never NULL, so the row goes to the server as it is, and takes no counter.
func TestALiteralKeyTakesNoText(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY, n INT)", "CREATE TABLE given (k VARCHAR(10) PRIMARY KEY, n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE t FORMAT 'a{n:3}' OWNED BY t.k")
	const rows = " VALUES (x'61', 1), (X'62', 2), (0x63, 3), (0x646464646464646464, 4), (_latin1'e', 5), (_binary x'66', 6), (_latin1 0x67, 7), (N'h', 8), ('i' 'j', 9), " +
		"(_utf8mb4'k' 'l', 10), (b'01101101', 11), (_latin1 b'01101110', 12), (0.5, 13), (1e3, 14), (\"o\", 15)"
	exec(t, c, "INSERT INTO given"+rows, "INSERT INTO t"+rows)
	if _, err := c.ExecContext(t.Context(), "INSERT INTO t VALUES (x'70', ?), (_latin1'q', ?)", 16, 17); err != nil {
		t.Error(err)
	}
	got, want := names(t, c, "SELECT k FROM t WHERE n <= 15 ORDER BY n"), names(t, c, "SELECT k FROM given ORDER BY n")
	if !slices.Equal(got, want) {
		t.Errorf("the keys are %q, want %q", got, want)
	}
	exec(t, c, "INSERT INTO t (n) VALUES (20)", "INSERT INTO t VALUES (\\N, 21)")
	if got := strings.Join(names(t, c, "SELECT k FROM t WHERE n >= 20 ORDER BY n"), " "); got != "a001 a002" {
		t.Errorf("the keys behind those are %s", got)
	}
}

// A key is a value of its own, whatever stands beside it: the server joins a string to one next to
// it.
func TestAKeyIsJoinedToNothing(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE words FORMAT 'a{n:3}' CACHE 1000", "CREATE SEQUENCE bytes UUID BINARY", "CREATE SEQUENCE numbers CACHE 1000")
	isKey := map[string]func(string) bool{
		"words":   func(v string) bool { return len(v) == 4 && v[0] == 'a' },
		"bytes":   func(v string) bool { return len(v) == 16 },
		"numbers": func(v string) bool { return len(v) <= 3 && strings.Trim(v, "0123456789") == "" },
	}
	for name, is := range isKey {
		next := "NEXTVAL('" + name + "')"
		for _, alias := range []string{`"no"`, `'no'`, ` 'no'`, ` "e5"`, `e5`, `x`, " `no`", "/**/'no'", "\n'no'", ` as 'no'`, `AS"no"`} {
			column := strings.Trim(strings.NewReplacer("as", "", "AS", "", "/**/", "").Replace(alias), " \n'\"`")
			for _, rest := range []string{", NOW()", " LIMIT 1", ""} {
				columns, rows := table(t, c, "SELECT "+next+alias+rest)
				if columns[0] != column || !is(rows[0][0]) {
					t.Errorf("SELECT %s%s%s: column %q, key %q", next, alias, rest, columns[0], rows[0][0])
				}
			}
			exec(t, c, "SET sql_select_limit = 5")
			if columns, rows := table(t, c, "SELECT "+next+alias); columns[0] != column || !is(rows[0][0]) {
				t.Errorf("SELECT %s%s with sql_select_limit: column %q, key %q", next, alias, columns[0], rows[0][0])
			}
			exec(t, c, "SET sql_select_limit = DEFAULT")
		}
		for _, nonsense := range []string{"_latin1 " + next, "N " + next, "'a' " + next, "1." + next, next + "'a' 'b', 1", "1 AS " + next} {
			if rows, err := c.QueryContext(t.Context(), "SELECT "+nonsense); err == nil {
				rows.Close()
				t.Errorf("SELECT %s is no error", nonsense)
			}
		}
	}
}

// OWNED BY does not compare texts, nor a counter that begins again, and says so.
func TestOWNEDBYWarnsOfKeysThatItDoesNotCompare(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE po (no VARCHAR(36) PRIMARY KEY, id BIGINT)", "INSERT INTO po VALUES ('PO-000990', 20261130000990)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE later FORMAT 'PO-{n:6}'", "CREATE SEQUENCE dated FORMAT '{yyyyMMdd}{n:6}' RESET DAILY")
	const compared = " are not compared: if there are some, say RESTART WITH n, with n above their counters"
	for _, test := range []struct{ statement, want string }{
		{"CREATE SEQUENCE po FORMAT 'PO-{n:6}' OWNED BY po.no", "the keys in po.no" + compared + "]"},
		{"ALTER SEQUENCE po OWNED BY NONE", ""},
		{"CREATE SEQUENCE above FORMAT 'PO-{n:6}' START WITH 991 OWNED BY po.no", ""},
		{"ALTER SEQUENCE above OWNED BY NONE", ""},
		{"CREATE SEQUENCE numbers FORMAT '{n:14}' OWNED BY po.id", "sequence begins at 20261130000991"},
		{"ALTER SEQUENCE numbers OWNED BY NONE", ""},
		{"CREATE SEQUENCE days FORMAT '{yyyyMMdd}{n:6}' RESET DAILY START WITH 5 OWNED BY po.id", "po.id" + compared + " in this period]"},
		{"ALTER SEQUENCE days OWNED BY NONE", ""},
		{"ALTER SEQUENCE dated OWNED BY po.id", "po.id" + compared + " in this period]"},
		{"ALTER SEQUENCE dated OWNED BY NONE", ""},
		{"ALTER SEQUENCE later OWNED BY po.no", "po.no" + compared + "]"},
		{"ALTER SEQUENCE later OWNED BY po.no RESTART WITH 991", ""},
		{"ALTER SEQUENCE later CACHE 5", ""},
		{"ALTER SEQUENCE later OWNED BY NONE", ""},
		{"CREATE SEQUENCE u UUID OWNED BY po.no", ""},
	} {
		exec(t, c, test.statement)
		_, rows := table(t, c, "SHOW WARNINGS")
		if got := fmt.Sprint(rows); !strings.Contains(got, test.want) || test.want == "" && len(rows) != 0 {
			t.Errorf("%s: warned %s, want %q", test.statement, got, test.want)
		}
	}
	if got := value(t, c, "SELECT NEXTVAL('later')"); got != "PO-000991" {
		t.Errorf("got %s, want PO-000991", got)
	}
}

// A key that was used by hand is passed over.
func TestATextThatWasUsedIsPassedOver(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (k VARCHAR(10) PRIMARY KEY, n INT)")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE t FORMAT 'a{n:3}' OWNED BY t.k", "INSERT INTO t VALUES ('a001', 1)", "INSERT INTO t (n) VALUES (2)")
	if got := value(t, c, "SELECT k FROM t WHERE n = 2"); got != "a002" {
		t.Errorf("the key is %s", got)
	}
}

// The proxy's own SELECT has the column of a text, like one that goes to the server.
func TestColumnsOfTexts(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE words FORMAT 'a{n:3}'", "CREATE SEQUENCE bytes UUID BINARY")
	for name, literal := range map[string]string{"words": "'a001'", "bytes": "_binary x'017f22e279b07cc398c4dc0c0c07398f'"} {
		for _, args := range [][]any{nil, {name}} {
			of := func(c *sql.Conn, query string, args ...any) string {
				t.Helper()
				rows, err := c.QueryContext(t.Context(), query, args...)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				types, err := rows.ColumnTypes()
				if err != nil || len(types) != 1 {
					t.Fatal(types, err)
				}
				nullable, _ := types[0].Nullable()
				return fmt.Sprint(types[0].Name(), " ", types[0].DatabaseTypeName(), " ", nullable)
			}
			number, direct := "SELECT NEXTVAL('"+name+"') AS k", "SELECT "+literal+" AS k"
			if args != nil {
				number = "SELECT NEXTVAL(?) AS k"
			}
			got, want := of(c, number, args...), of(e.DirectConn(t, 0, e.Schemas[0], nil), direct)
			if args != nil { // a parameter may be NULL
				want = strings.Replace(want, "false", "true", 1)
			}
			if got != want {
				t.Errorf("%s: the column is %s, want %s", number, got, want)
			}
		}
	}
	_, rows := table(t, c, "EXPLAIN FORMAT=ROUTE SELECT CONCAT(NEXTVAL('words'), 'b')")
	if !strings.Contains(fmt.Sprint(rows), "CONCAT(CONCAT(?), 'b')") {
		t.Errorf("EXPLAIN FORMAT=ROUTE says %v", rows)
	}
}
