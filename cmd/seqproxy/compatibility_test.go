package main

import (
	"strings"
	"syscall"
	"testing"

	sessions "seqproxy/proxy/state"
	"seqproxy/test/mysqltest"
)

// routed is a row of docs/compatibility.md: its words, and the texts that it is about.
type routed struct {
	what, becomes string
	kind, numbers string   // of EXPLAIN FORMAT=ROUTE
	texts         []string // apart from the page's words, because a row is about many texts
}

// The rows of the three tables. s, S and o are sequences, and o owns the column owned.id.
var (
	spelledTexts = []routed{
		{"MariaDB, the standard", "a number", "nextval", "s (1)", []string{"NEXTVAL('s')", "NEXTVAL(s)", "NEXT VALUE FOR s"}},
		{"seqproxy", "ten numbers in a row; the value is the first. 1,000,000 at most", "nextval", "s (10)", []string{"NEXTVAL('s', 10)"}},
		{"Vitess", "a number, if `s` is a sequence here; the column is `nextval`", "nextval", "s (1)", []string{"SELECT NEXT VALUE FROM s"}},
		{"Vitess", "ten numbers in a row", "nextval", "s (10)", []string{"SELECT NEXT 10 VALUES FROM s"}},
		{"MyCat", "a number of `S2`", "nextval", "S2 (1)", []string{"NEXT VALUE FOR MYCATSEQ_S2"}},
		{"Oracle", "a number, if `s` is a sequence and nothing else in the text", "nextval", "s (1)", []string{"s.NEXTVAL"}},
		{"MariaDB, Oracle", "the last one of `s` in this session, or NULL", "nextval", "NULL", []string{"s.CURRVAL", "LASTVAL(s)", "PREVIOUS VALUE FOR s"}},
		{"MariaDB", "raises the sequence, or NULL; for `admin_users`", "nextval", "NULL", []string{"SETVAL(s, 9)", "SETVAL('s', 9, 0)"}},
	}
	placeTexts = []routed{
		{"SELECT without a table", "a number", "nextval", "s (1)", []string{"SELECT NEXTVAL('s')", "SELECT NEXTVAL('s') AS n FROM DUAL"}},
		{"VALUES and SET, also with IGNORE, ON DUPLICATE KEY UPDATE, RETURNING", "a number for each", "rewrite", "s (1)", []string{
			"INSERT INTO t VALUES (NEXTVAL('s'), 'x')", "REPLACE INTO t SET id = NEXTVAL('s')", "INSERT IGNORE INTO t VALUES (NEXTVAL('s'), 'x')",
			"INSERT INTO t VALUES (NEXTVAL('s'), 'x') ON DUPLICATE KEY UPDATE a = 'y'", "INSERT INTO t VALUES (NEXTVAL('s'), 'x') RETURNING id",
		}},
		{"SET, DO, arguments of CALL and EXECUTE ... USING", "a number for each", "rewrite", "s (1)", []string{"SET @x = NEXTVAL('s')", "DO NEXTVAL('s')", "CALL f(NEXTVAL('s'))", "EXECUTE p USING NEXTVAL('s')"}},
		{"an item of its own in SELECT ... FROM, or RETURNING", "[a number for each row](#a-number-for-each-row)", "rewrite", "s (1 for each row)", []string{"SELECT NEXTVAL('s'), a FROM t", "INSERT INTO t VALUES (5, 'x'), (6, 'y') RETURNING NEXTVAL('s')"}},
		{"INSERT ... SELECT, UPDATE, ON DUPLICATE KEY UPDATE", "the same, [with conditions](#a-number-for-each-row)", "rewrite", "s (1 for each row)", []string{"INSERT INTO t SELECT NEXTVAL('s'), a FROM t", "INSERT INTO t VALUES (5, 'x'), (6, 'y') ON DUPLICATE KEY UPDATE id = NEXTVAL('s')", "UPDATE t SET id = NEXTVAL('s')"}},
		{"EXPLAIN", "the plan, with 1 for each number; none is taken", "rewrite", "NULL", []string{"EXPLAIN SELECT NEXTVAL('s')"}},
		{"PREPARE FROM '...', EXECUTE IMMEDIATE", "error 1235: let the driver prepare it", "refused", "NULL", []string{"PREPARE p FROM 'SELECT NEXTVAL(s)'", "EXECUTE IMMEDIATE 'SELECT NEXTVAL(s)'"}},
		{"WHERE, ORDER BY, LIMIT, derived tables, and all else", "error 1235, which names the way out", "refused", "NULL", []string{
			"SELECT a FROM t WHERE id = NEXTVAL('s')", "SELECT a FROM t ORDER BY NEXTVAL('s')", "SELECT a FROM t LIMIT NEXTVAL('s')", "SELECT * FROM (SELECT NEXTVAL('s')) AS d",
		}},
		{"bodies of views, routines, triggers and events", "the proxy does not see it: the server answers", "relay", "NULL", []string{"CREATE VIEW v AS SELECT NEXTVAL('s')", "CREATE PROCEDURE q() SELECT NEXTVAL('s')"}},
	}
	filledTexts = []routed{
		{"the column left out; NULL, DEFAULT, 0 (not with NO_AUTO_VALUE_ON_ZERO)", "filled in", "rewrite", "o (1)", []string{
			"INSERT INTO owned (a) VALUES ('x')", "REPLACE INTO owned SET a = 'x'", "INSERT INTO owned VALUES (NULL, 'x')", "INSERT INTO owned VALUES (DEFAULT, 'x')", "INSERT INTO owned VALUES (0, 'x')",
		}},
		{"an explicit number", "stays; most sequences [do not give it later](sequences.md#keys-that-the-application-chooses)", "rewrite", "NULL", []string{"INSERT INTO owned VALUES (7, 'x')"}},
		{"an explicit number behind CREATE TABLE or USE in one text", "the same, or error 1235, which names the way out", "rewrite", "NULL", []string{"CREATE TABLE new (id INT); INSERT INTO owned (id, a) VALUES (7, 'x')"}},
		{"an expression: `@id`, `5 + 1`, `N'5'`", "filled in if NULL or 0; else stays, costs a number, and may be given later", "rewrite", "o (1)", []string{
			"INSERT INTO owned VALUES (@id, 'x')", "INSERT INTO owned VALUES (5 + 1, 'x')", "INSERT INTO owned VALUES (N'5', 'x')", "INSERT INTO owned VALUES (('5'), 'x')",
		}},
		{"`?` in a prepared statement, also in bulk", "decided at each execution: NULL and 0 are filled in", "rewrite", "NULL", []string{"INSERT INTO owned VALUES (?, 'x')"}},
		{"INSERT ... SELECT without the column", "filled in, [with conditions](#a-number-for-each-row)", "rewrite", "o (1 for each row)", []string{"INSERT INTO owned (a) SELECT a FROM t"}},
		{"the same with UNION, DISTINCT, WITH ROLLUP or IGNORE", "error 1235, which names the way out", "refused", "NULL", []string{
			"INSERT INTO owned (a) SELECT a FROM t UNION ALL SELECT 'x'", "INSERT INTO owned (a) SELECT DISTINCT a FROM t", "INSERT IGNORE INTO owned (a) SELECT a FROM t", "INSERT INTO owned (a) SELECT a FROM t GROUP BY a WITH ROLLUP",
		}},
		{"INSERT ... SELECT with the column; LOAD DATA with it in the file", "passed on, also NULL and 0", "relay", "NULL", []string{"INSERT INTO owned SELECT id, a FROM t", "LOAD DATA LOCAL INFILE 'x' INTO TABLE owned"}},
		{"LOAD DATA without the column", "error 1235, which names the way out", "refused", "NULL", []string{"LOAD DATA LOCAL INFILE 'x' INTO TABLE owned (a)"}},
		{"a function or a subquery as value", "error 1235, which names the way out", "refused", "NULL", []string{"INSERT INTO owned VALUES (ABS(7), 'x')", "INSERT INTO owned VALUES ((SELECT 1), 'x')"}},
		{"LAST_INSERT_ID() behind another statement, if the key is not last in one row", "error 1235, which names the way out", "refused", "NULL", []string{
			"INSERT INTO t VALUES (1, 'x'); INSERT INTO owned VALUES (NULL, LAST_INSERT_ID())", "SET @a = 1; INSERT INTO owned (a) VALUES (LAST_INSERT_ID()), (LAST_INSERT_ID())",
		}},
		{"without columns, behind CREATE, ALTER, DROP, RENAME or USE in one text", "error 1235, which names the way out", "refused", "NULL", []string{"ALTER TABLE owned ADD b INT; INSERT INTO owned VALUES (NULL, 'x', 5)"}},
		{"what routines, triggers, events, views, BEGIN NOT ATOMIC, FOR PORTION OF insert", "the proxy does not see it", "relay", "NULL", []string{"BEGIN NOT ATOMIC INSERT INTO owned (a) VALUES ('x'); END", "CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW INSERT INTO owned (a) VALUES ('x')"}},
	}
)

// TestThePageOfCompatibilityIsWhatTheProxyDoes asks the proxy how it handles each text, and
// compares docs/compatibility.md with the rows, or writes them there with -update.
func TestThePageOfCompatibilityIsWhatTheProxyDoes(t *testing.T) {
	db := mysqltest.Start(t)
	db.Exec(t, "CREATE DATABASE shop", "CREATE TABLE shop.t (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, a VARCHAR(20))", "CREATE TABLE shop.owned LIKE shop.t")
	p := begin(t, "-backend", db.Addr(), "-user", "root", "-listen", "127.0.0.1:0", "-admin-listen", "", "-http-listen", "")
	ask := func(sql string) string { return query(t, p.address(), "root", "", "USE shop; "+sql, plain(t)...) }
	ask("CREATE SEQUENCE s; CREATE SEQUENCE S2; CREATE SEQUENCE o OWNED BY shop.owned.id")

	for name, table := range map[string]struct {
		head string
		rows []routed
	}{
		"spellings": {"| spelling | of | means |\n|---|---|---|\n", spelledTexts},
		"places":    {"| where | what happens |\n|---|---|\n", placeTexts},
		"filled":    {"| the text | what happens |\n|---|---|\n", filledTexts},
	} {
		text := "\n" + table.head
		for _, row := range table.rows {
			for _, sql := range row.texts {
				if name == "spellings" && !strings.HasPrefix(sql, "SELECT ") {
					sql = "SELECT " + sql
				}
				got := strings.Split(ask("\nDELIMITER //\nEXPLAIN FORMAT=ROUTE "+sql+"//"), "\t")
				if len(got) < 5 || got[0] != row.kind || got[4] != row.numbers {
					t.Errorf("%s: got %q, want the kind %s and the numbers %s", sql, got, row.kind, row.numbers)
				}
			}
			if name == "spellings" {
				text += "| `" + strings.Join(row.texts, "`, `") + "` "
			}
			text += "| " + row.what + " | " + row.becomes + " |\n"
		}
		keepTable(t, "compatibility.md", name, text+"\n")
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// TestThePageOfCompatibilityHasThePins compares docs/compatibility.md with the pins of a session,
// or writes them with -update.
func TestThePageOfCompatibilityHasThePins(t *testing.T) {
	table := "\n| pin | why |\n|---|---|\n"
	for p := range sessions.PinCount {
		table += "| `" + p.String() + "` | " + p.Words() + " |\n"
	}
	keepTable(t, "compatibility.md", "pins", table+"\n")
}
