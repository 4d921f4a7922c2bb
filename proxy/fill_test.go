package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// bound is a setup whose proxy fills columns from sequences.
func bound(bindings ...proxy.Binding) setup {
	return setup{Proxy: func(o *proxy.Options) { o.Bindings = bindings }}
}

// given is a step of a script whose text takes n numbers from photos through the proxy,
// and from AUTO_INCREMENT direct.
func given(n int, sql string) string { return fmt.Sprintf("%s => /*{p%d}*/ %s", sql, n, sql) }

// meet makes the next number of AUTO_INCREMENT that of the sequence, after a step that took none.
const meet = "direct: ALTER TABLE photos AUTO_INCREMENT = {p1}"

func TestAColumnThatOwnsASequenceIsFilledIn(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "INSERT INTO photos (title) VALUES ('the server''s')")
	if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != "3" {
		t.Errorf("before: got %s, want the server's 3", got)
	}
	setOwner := func(column sequence.Column) {
		t.Helper()
		if _, err := o.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{OwnedBy: &column}); err != nil {
			t.Fatal(err)
		}
	}
	filled := func() bool {
		exec(t, c, "INSERT INTO photos (title) VALUES ('filled')")
		id := value(t, c, "SELECT LAST_INSERT_ID()")
		exec(t, c, "DELETE FROM photos WHERE title = 'filled'")
		return len(id) == 4
	}
	setOwner(sequence.Column{Schema: o.Schemas[0], Table: "photos", Column: "id"})
	if !filled() {
		t.Error("the next INSERT after OWNED BY: not filled in")
	}
	setOwner(sequence.Column{})
	eventually(t, "a number of the server", func() bool { exec(t, c, "ALTER TABLE photos AUTO_INCREMENT = 4"); return !filled() })
}

func TestKeysAreFilledInAsAutoIncrementWould(t *testing.T) {
	o := newOracle(t, bound(proxy.Binding{Table: "photos", Column: "id", Sequence: "photos"}, proxy.Binding{Table: "plain", Column: "id", Sequence: "photos"}),
		"CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL DEFAULT '', parent BIGINT UNSIGNED, n INT, UNIQUE (n))",
		"CREATE TABLE plain (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(100) NOT NULL DEFAULT '', parent BIGINT UNSIGNED)",
		"CREATE TABLE other (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, a INT)",
		"INSERT INTO photos (id, title) VALUES (1, 'one'), (2, 'two')",
	)
	const all = "SELECT * FROM photos ORDER BY id"
	o.run(t, []script{
		{"where the column is left out", []string{
			meet,
			given(1, "INSERT INTO photos (title) VALUES ('a')"), insertIDs,
			given(1, "insert photos(title)values('b');"), insertIDs,
			given(1, "INSERT INTO photos () VALUES ()"), insertIDs,
			given(1, "INSERT INTO photos VALUES ()"), insertIDs,
			given(1, "INSERT INTO photos SET title = 'c', n = 3"), insertIDs,
			given(2, "INSERT INTO photos () VALUES (), ()"), insertIDs,
			given(1, "REPLACE INTO photos (title, n) VALUES ('d', 3)"), insertIDs,
			given(1, "REPLACE photos SET title = 'e', n = 3"), insertIDs,
			given(3, "INSERT INTO photos (title, n) VALUES ('f', 1 + (2 * 3)), (CONCAT('g', ')'), NULL), ('h', DEFAULT)"), insertIDs,
			"SELECT ROW_COUNT()",
			given(1, "/* x */ INSERT /*! LOW_PRIORITY */ INTO /* photos */ `photos` (title) /* VALUES */ VALUES ('it''s \\' ), ('/*' -- x\n)"), insertIDs,
			all,
		}},
		{"where the value is empty", []string{
			meet,
			given(1, "INSERT INTO photos (id, title) VALUES (NULL, 'a')"), insertIDs,
			given(1, "INSERT INTO photos (id, title) VALUES (0, 'b')"), insertIDs,
			given(1, "INSERT INTO photos (title, id) VALUES ('c', DEFAULT)"), insertIDs,
			given(1, "INSERT INTO photos (title, ID) VALUES ('d', '0')"), insertIDs,
			given(1, "INSERT INTO photos SET id = NULL, title = 'e'"), insertIDs,
			given(1, "INSERT INTO photos SET title = 'f', photos.id = DEFAULT"), insertIDs,
			given(4, "INSERT INTO photos (title, id) VALUES ('g', NULL), ('h', 0), ('i', DEFAULT), ('j', -0.0)"), insertIDs,
			all,
		}},
		{"without a list of columns", []string{
			meet,
			given(1, "INSERT INTO photos VALUES (NULL, 'a', NULL, NULL)"), insertIDs,
			given(2, "INSERT INTO photos VALUES (0, 'b', 1, 1), (DEFAULT, 'c', 2, 2)"), insertIDs,
			"INSERT INTO photos VALUES (77, 'd', 3, 3)", insertIDs,
			"INSERT INTO photos VALUES (NULL, 'e')",
			"INSERT INTO photos VALUES (NULL, 'e', 3, 3, 3)",
			all,
			"ALTER TABLE photos MODIFY title VARCHAR(100) FIRST",
			given(1, "INSERT INTO photos VALUES ('f', NULL, 4, 4)"), insertIDs,
			"ALTER TABLE photos ADD m INT FIRST",
			given(1, "INSERT INTO photos VALUES (1, 'g', NULL, 5, 5)"), insertIDs,
			all,
		}},
		{"beside values that are given", []string{
			"INSERT INTO photos (id, title) VALUES (500, 'a')", insertIDs,
			"INSERT INTO photos (id, title) VALUES (0x300, 'hex')", insertIDs,
			"INSERT INTO photos (id, title) VALUES (0b1100000001, 'bits')", insertIDs,
			"INSERT INTO photos (id, title) VALUES (501, 'b'), (502, 'c')", insertIDs,
			meet,
			given(2, "INSERT INTO photos (id, title) VALUES (503, 'd'), (NULL, 'e'), (0, 'f')"), insertIDs, meet,
			given(1, "INSERT INTO photos (id, title) VALUES (504, 'g'), (NULL, 'h')"), insertIDs, meet,
			"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
			"INSERT INTO photos (id, title) VALUES (0, 'zero')", insertIDs,
			given(1, "INSERT INTO photos (id, title) VALUES (NULL, 'h')"), insertIDs,
			all,
		}},
		{"with columns that are not meant", []string{
			"ALTER TABLE photos ADD g INT GENERATED ALWAYS AS (n + 1) VIRTUAL FIRST, ADD h INT INVISIBLE DEFAULT 3 FIRST",
			meet,
			given(1, "INSERT INTO photos VALUES (DEFAULT, NULL, 'a', NULL, 4)"), insertIDs,
			given(2, "INSERT INTO photos VALUES (DEFAULT, 0, 'b', NULL, 5), (DEFAULT, DEFAULT, 'c', 1, 6)"), insertIDs,
			given(1, "INSERT INTO photos (h, title) VALUES (5, 'd')"), insertIDs,
			"SELECT id, title, parent, n, g, h FROM photos ORDER BY id",
			// Otherwise the proxy remembers the columns for a second, also in a new schema.
			"ALTER TABLE photos DROP g, DROP h",
		}},
		{"in steps", []string{
			meet,
			"SET auto_increment_increment = 1",
			given(2, "INSERT INTO photos (title) VALUES ('a'), ('b')"), insertIDs,
			all,
		}},
		{"with LAST_INSERT_ID() in it", []string{
			meet,
			"SELECT LAST_INSERT_ID(42)",
			given(1, "INSERT INTO photos (title, parent) VALUES ('a', LAST_INSERT_ID())"), insertIDs,
			given(2, "INSERT INTO photos (title, parent) VALUES ('b', LAST_INSERT_ID()), ('c', @@last_insert_id)"), insertIDs,
			given(1, "INSERT INTO photos (id, parent) VALUES (NULL, LAST_INSERT_ID())"), insertIDs,
			"INSERT INTO other (a) VALUES (LAST_INSERT_ID())", insertIDs,
			all,
		}},
		{"that may insert nothing", []string{
			meet,
			"SELECT LAST_INSERT_ID(42)",
			given(1, "INSERT INTO photos (title, n) VALUES ('a', 1)"), insertIDs, meet,
			given(1, "INSERT IGNORE INTO photos (title, n) VALUES ('b', 1)"), insertIDs, meet,
			given(1, "INSERT IGNORE INTO photos (title, n) VALUES ('c', 2)"), insertIDs, meet,
			given(1, "INSERT INTO photos (title, n) VALUES ('d', 2) ON DUPLICATE KEY UPDATE title = 'd'"), insertIDs, meet,
			given(1, "INSERT INTO photos (title, n) VALUES ('d', 2) ON DUPLICATE KEY UPDATE title = 'd'"), insertIDs, meet,
			given(1, "INSERT INTO photos (title, n) VALUES ('e', 3) ON DUPLICATE KEY UPDATE title = 'e'"), insertIDs, meet,
			given(1, "INSERT INTO photos (id, title, n) VALUES (NULL, 'f', 3) ON DUPLICATE KEY UPDATE title = 'f', id = LAST_INSERT_ID(id)"), insertIDs, meet,
			given(1, "INSERT IGNORE INTO photos VALUES (0, 'g', LAST_INSERT_ID(), 4)"), insertIDs, meet,
			given(1, "INSERT IGNORE INTO photos SET n = 4"),
			"SELECT ROW_COUNT()",
			all,
		}},
		{"that fails", []string{
			meet,
			given(1, "INSERT INTO photos (title, n) VALUES ('a', 1)"), insertIDs,
			"INSERT INTO photos (title, nothing) VALUES ('a', 1)", insertIDs,
			"INSERT INTO photos (title) VALUES ('a', 1)", insertIDs,
			"INSERT INTO photos (title, n) VALUES ('a'), ('b', 1)", insertIDs,
			"INSERT INTO photos (title, n) VALUES ('a', )",
			all,
		}},
		{"in a transaction", []string{
			meet,
			"BEGIN",
			given(1, "INSERT INTO photos (title) VALUES ('a')"), insertIDs,
			"ROLLBACK", insertIDs,
			"START TRANSACTION READ ONLY",
			given(1, "INSERT INTO photos (title) VALUES ('a')"),
			"ROLLBACK",
			all,
		}},
		{"in other modes", []string{
			meet,
			"SET sql_mode = 'ANSI_QUOTES'",
			given(1, `INSERT INTO "photos" ("title", "id") VALUES ('\'', NULL)`), insertIDs,
			"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
			given(1, `INSERT INTO photos (title) VALUES ('\')`), insertIDs,
			all,
		}},
	})
	if !o.Servers[0].IsMariaDB() {
		o.run(t, []script{{"as MySQL alone writes it", []string{
			meet,
			given(2, "INSERT INTO photos (title, n) VALUES ROW('a', 1), ROW('b', 2)"), insertIDs,
			given(1, "INSERT INTO photos (title, n) VALUES ('c', 1) AS new ON DUPLICATE KEY UPDATE title = new.title"), insertIDs, meet,
			given(1, "INSERT INTO photos (title, n) VALUES ('d', 3) AS new (t, m) ON DUPLICATE KEY UPDATE title = new.t"), insertIDs,
			given(1, "INSERT INTO photos SET title = 'e', n = 4 AS new ON DUPLICATE KEY UPDATE title = new.title"), insertIDs,
			given(1, "INSERT INTO photos (photos.title, `n`) VALUES ('f', 4) AS `new`ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), title = new.title"), insertIDs, meet,
			given(1, "INSERT INTO photos SET title = 'g', n = 5 AS new ON DUPLICATE KEY UPDATE title = IF(id > 0, new.title, '')"), insertIDs,
			given(1, "INSERT INTO photos () VALUES () AS new ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"), insertIDs,
			all,
		}}})
	}
	if o.Servers[0].IsMariaDB() {
		o.run(t, []script{{"with RETURNING", []string{
			meet,
			given(1, "INSERT INTO photos (title) VALUES ('a') RETURNING id, title"), insertIDs,
			given(2, "INSERT INTO photos (id, title) VALUES (NULL, 'b'), (0, 'c') RETURNING id"), insertIDs,
			given(1, "REPLACE INTO photos VALUES (NULL, 'd', NULL, 1) RETURNING *, id + 1"), insertIDs,
			given(1, "INSERT IGNORE INTO photos (title, n) VALUES ('e', 2) RETURNING id"), insertIDs,
			given(1, "INSERT INTO photos (title, n) VALUES ('f', 3) ON DUPLICATE KEY UPDATE title = 'g' RETURNING id"), insertIDs,
			all,
		}}})
	}
	o.run(t, []script{{"in another character set", []string{
		meet,
		"SET NAMES gbk",
		given(2, "INSERT INTO photos (title) VALUES ('\xbf\x5c'), ('\xbf\x5c\\'')"), insertIDs,
		given(1, "INSERT INTO photos VALUES (NULL, '\xbf\x5c', NULL, NULL)"), insertIDs,
		"SET NAMES latin1",
		given(1, "INSERT INTO photos (title, id) VALUES ('\xe4\xa0', 0)"), insertIDs,
		"SET NAMES utf8mb4",
		"SELECT id, HEX(title) FROM photos ORDER BY id",
	}}}, "packets with EOF", "go-sql-driver")
	o.run(t, []script{{"that inserts nothing, in a text of several statements", []string{
		meet,
		given(1, "INSERT INTO photos (n) VALUES (1)"),
		"INSERT IGNORE INTO photos (n) VALUES (1); SELECT LAST_INSERT_ID() => INSERT IGNORE INTO photos (n, id) VALUES (1, LAST_INSERT_ID({p1})); SELECT LAST_INSERT_ID()",
		insertIDs,
	}}}, "packets with EOF")
	if o.Servers[0].IsMariaDB() {
		o.fresh(t)
		c := o.Conn(t, o.Schemas[0], nil)
		for _, mode := range []string{"EMPTY_STRING_IS_NULL", "EMPTY_STRING_IS_NULL,NO_AUTO_VALUE_ON_ZERO", "STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL"} {
			exec(t, c, "SET sql_mode = '"+mode+"'")
			for _, text := range []string{
				"INSERT INTO photos (id, title) VALUES ('', 'a')", "INSERT INTO photos (id, title) VALUES (NULL, 'b'), ('', 'c')",
				"INSERT INTO photos (id, title) SELECT '', 'd'", "INSERT INTO photos (id, title) VALUES (' ', 'a')",
			} {
				wantError(t, c, 1235, text, "EMPTY_STRING_IS_NULL")
			}
			if _, err := c.ExecContext(t.Context(), "INSERT INTO photos (id, title) VALUES (?, 'e')", ""); err == nil || !strings.Contains(err.Error(), "EMPTY_STRING_IS_NULL") {
				t.Errorf("in %s, prepared: got %v, want that it is refused", mode, err)
			}
			exec(t, c, "INSERT INTO photos (id, title) VALUES (NULL, 'f'), ('0', 'g')")
		}
	}
}

func TestWithoutWordOfOwnersNoShardGeneratesKeys(t *testing.T) {
	for _, shards := range []int{1, 2} {
		numbers := mysqltest.Start(t)
		numbers.Exec(t, "CREATE DATABASE numbers", "CREATE TABLE numbers.sequence (name VARCHAR(50) NOT NULL PRIMARY KEY, id BIGINT UNSIGNED NOT NULL DEFAULT 0) ENGINE=InnoDB")
		if err := numbers.Kill(); err != nil {
			t.Fatal(err)
		}
		e := newEnv(t, setup{Shards: shards, Sequence: func(o *sequence.Options) {
			o.Servers[0].Addr, o.Servers[0].User, o.Servers[0].Password, o.Servers[0].Database = numbers.Addr(), "root", "", "numbers"
			o.AllocateTimeout = time.Second
		}})
		for i := range shards {
			exec(t, e.DirectConn(t, i, e.Schemas[i], nil), "CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title TEXT)")
		}
		const insert = "INSERT INTO photos (title) VALUES ('sea')"
		c := e.Conn(t, e.Schemas[0], nil)
		if shards == 1 {
			exec(t, c, insert)
		} else {
			for range 2 {
				wantError(t, c, 1105, insert, "OWNED BY", "its sequence server is unavailable")
			}
			if _, err := c.PrepareContext(t.Context(), insert); err == nil {
				t.Error("prepared before the bindings are known: got no error, want one")
			}
			if got := value(t, c, "SELECT COUNT(*) FROM photos"); got != "0" {
				t.Errorf("got %s rows, want none", got)
			}
		}
		if err := numbers.Restart(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "INSERT once the sequence server has answered", func() bool {
			_, err := c.ExecContext(t.Context(), insert)
			return err == nil
		})
	}
}

// The key of a table that OWNED BY names with its schema got another name. AUTO_INCREMENT of each
// shard would give the keys, and no warning names a column that is not there.
func TestARenamedKeyIsNotLeftToTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE photos (id BIGINT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20))", "CREATE TABLE src (title VARCHAR(20))",
		"INSERT INTO src VALUES ('s')")
	c, temporary := e.Conn(t, e.Schemas[0], nil), e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE SEQUENCE photos OWNED BY "+e.Schemas[0]+".photos.id", "INSERT INTO photos (title) VALUES ('before')")
	early, err := c.PrepareContext(t.Context(), "INSERT INTO photos (title) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close() //nolint:errcheck // the session ends
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "ALTER TABLE photos CHANGE id photo_id BIGINT AUTO_INCREMENT")
	for _, text := range []string{
		"INSERT INTO photos (title) VALUES ('x')",
		"INSERT INTO photos (photo_id, title) VALUES (NULL, 'x')",
		"INSERT INTO photos VALUES (NULL, 'x')",
		"INSERT INTO photos (title) SELECT title FROM src",
		"INSERT INTO photos SELECT NULL, title FROM src",
		"REPLACE INTO photos SET title = 'x'",
	} {
		wantError(t, c, 1235, text, "OWNED BY", e.Schemas[0], "photos", "id")
	}
	if _, err := early.ExecContext(t.Context(), "x"); err == nil {
		t.Error("prepared before: no error")
	}
	for _, text := range []string{"INSERT INTO photos (title) VALUES (?)", "INSERT INTO photos VALUES (NULL, ?)", "INSERT INTO photos SELECT NULL, ?"} {
		if s, err := c.PrepareContext(t.Context(), text); err == nil {
			if _, err = s.ExecContext(t.Context(), "x"); err == nil {
				t.Errorf("%s, prepared: no error", text)
			}
			s.Close() //nolint:errcheck // the session ends
		}
	}
	exec(t, temporary, "CREATE TEMPORARY TABLE photos (n INT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20))", "INSERT INTO photos (title) VALUES ('mine')")
	if got := value(t, c, "SELECT GROUP_CONCAT(title) FROM photos"); got != "before" {
		t.Errorf("rows: got %s, want that of before alone", got)
	}
	exec(t, c, "ALTER SEQUENCE photos OWNED BY "+e.Schemas[0]+".photos.photo_id", "INSERT INTO photos (title) VALUES ('after')")
	if got, want := value(t, c, "SELECT MAX(photo_id) FROM photos"), value(t, c, "SELECT PREVIOUS VALUE FOR photos"); got != want || got == "1" {
		t.Errorf("after OWNED BY of the new name: key %s, want %s of the sequence", got, want)
	}
}
