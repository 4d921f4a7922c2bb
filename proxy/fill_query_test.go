package proxy_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"golang.org/x/sync/errgroup"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// sourceTables are what the tests of filled INSERT ... SELECT begin with.
var sourceTables = append([]string{
	"CREATE TABLE src (id INT PRIMARY KEY, g INT, title VARCHAR(20), f BIGINT UNSIGNED)",
	"INSERT INTO src VALUES (9, 2, 'i', 90), (3, 0, 'c', 30), (7, 1, 'g', 70), (4, 1, 'd', NULL), (1, 1, 'a', 10), (8, 2, 'h', 80), (5, 2, 'e', NULL), (2, 2, 'b', 20), (6, 0, 'f', 60)",
	"CREATE TABLE pair (title VARCHAR(20), n INT)",
	"INSERT INTO pair VALUES ('x', NULL), ('y', 12), ('z', NULL)",
}, filledTables...)

// counting takes the first block of numbers that the server counts off. The rest of the block is a
// gap.
func counting(sql string) string { return given(1000, sql) }

// uncached empties the cache of the sequence photos: its row has the next number.
func uncached(t testing.TB, o *oracle) {
	t.Helper()
	one := uint64(1)
	if _, err := o.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{Cache: &one}); err != nil {
		t.Fatal(err)
	}
}

func TestKeysOfInsertSelectAreFilledInAsAutoIncrementWould(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), sourceTables...)
	uncached(t, o)
	const all = "SELECT * FROM photos ORDER BY id"
	scripts := []script{
		{"where the column is left out", []string{
			meet,
			"SELECT LAST_INSERT_ID(42)",
			counting("INSERT INTO photos (title) SELECT title FROM src"), insertIDs, meet,
			counting("INSERT photos(title)SELECT title FROM src WHERE g=1;"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT title FROM src WHERE g > 7"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT title, id + 1 FROM src ORDER BY title DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT title AS t, f `parent` FROM src ORDER BY g, t"), insertIDs, meet,
			given(3, "INSERT INTO photos (title) SELECT title FROM src ORDER BY id DESC LIMIT 3"), insertIDs, meet,
			counting("INSERT INTO photos (title, n) SELECT * FROM pair"), insertIDs, meet,
			counting("REPLACE INTO photos (title, n) SELECT * FROM pair"), insertIDs, meet,
			counting("INSERT INTO photos (title) (SELECT title FROM src WHERE id < 4)"), insertIDs, meet,
			counting("INSERT INTO photos (title)((SELECT title FROM src WHERE id < 4));"), insertIDs, meet,
			counting("INSERT INTO photos (title) WITH c AS (SELECT title, 'FROM' FROM src WHERE id < 5) SELECT title FROM c"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT CONCAT(title, COUNT(*)) FROM src GROUP BY title"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT MAX(title), SUM(f) FROM src GROUP BY g ORDER BY g DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT MAX(title), g FROM src GROUP BY g HAVING SUM(f) > 95 ORDER BY SUM(f)"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT title, ROW_NUMBER() OVER (ORDER BY id DESC) FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT s.title FROM src s JOIN src d ON d.g = s.g WHERE d.id IN (SELECT g FROM src) ORDER BY d.id, s.title"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT title FROM (SELECT DISTINCT title FROM src UNION SELECT 'u') d ORDER BY title"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT title FROM photos WHERE id < 3"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT EXTRACT(YEAR FROM '2024-01-02') FROM src"), insertIDs, meet,
			all,
		}},
		{"in an order of the query's", []string{
			meet,
			counting("INSERT INTO photos (title, parent) SELECT MIN(title), COUNT(*) FROM src GROUP BY g ORDER BY COUNT(*) DESC, g DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT SQL_BIG_RESULT MIN(title), g FROM src GROUP BY g ORDER BY g DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT SQL_SMALL_RESULT MIN(title), g + 1 AS h FROM src GROUP BY h ORDER BY MAX(f) DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT s.title, COUNT(*) FROM src s JOIN src d ON d.g = s.g GROUP BY s.title ORDER BY MAX(s.f) DESC, s.title"), insertIDs, meet,
			given(4, "INSERT INTO photos (title, parent) SELECT title, RANK() OVER (PARTITION BY g ORDER BY f) FROM src ORDER BY g DESC, title DESC LIMIT 4"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT MAX(title), SUM(COUNT(*)) OVER (ORDER BY g) FROM src GROUP BY g ORDER BY g DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT title, f FROM src ORDER BY f IS NULL, f DESC LIMIT 2, 4"), insertIDs, meet,
			given(7, "INSERT INTO photos (title, parent) SELECT s.title, d.id FROM src s LEFT JOIN src d ON d.id = s.id + 5 ORDER BY d.id, s.title DESC LIMIT 7"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT p.title, s.id FROM photos p JOIN src s ON s.title <> p.title WHERE p.id < 3 ORDER BY s.f, s.id, p.title"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT title FROM src s WHERE EXISTS (SELECT * FROM src d WHERE d.g = s.g AND d.id > s.id) ORDER BY (SELECT MAX(f) FROM src d WHERE d.g = s.g), title"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT REPEAT(title, 9), (SELECT COUNT(*) FROM photos) FROM src ORDER BY CONCAT(g, title) DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT title FROM src HAVING title > 'c' ORDER BY title DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT GROUP_CONCAT(title ORDER BY id) FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT MAX(title), COUNT(DISTINCT g) FROM src WHERE id > 100"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT title, id FROM src WHERE id IN (SELECT MAX(id) FROM src GROUP BY g) OR f = 10 ORDER BY id DESC"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent) SELECT v, n FROM (SELECT title AS v, NULL AS n FROM src ORDER BY title DESC LIMIT 5) d ORDER BY v"), insertIDs, meet,
			all,
		}},
		{"of one row without a table", []string{
			meet,
			given(1, "INSERT INTO photos (title) SELECT 'a'"), insertIDs, meet,
			given(1, "INSERT INTO photos (title) SELECT 'b' FROM DUAL WHERE NOT EXISTS (SELECT * FROM photos WHERE title = 'b')"), insertIDs, meet,
			given(1, "INSERT INTO photos (title) SELECT 'b' FROM DUAL WHERE NOT EXISTS (SELECT * FROM photos WHERE title = 'b')"), insertIDs, meet,
			given(1, "INSERT INTO photos (id, title) SELECT NULL, 'c'"), insertIDs, meet,
			given(1, "INSERT INTO photos (title, parent) SELECT 'd', LAST_INSERT_ID()"), insertIDs, meet,
			all,
		}},
		{"where a literal is empty", []string{
			meet,
			counting("INSERT INTO photos (id, title) SELECT NULL, title FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title, ID) SELECT title, 0 FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title, id, parent) SELECT title, '0' AS id, f FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (id, title) SELECT'0',title FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (id, title) SELECT ALL (NULL) x, title FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title, parent, id) SELECT p.*, NULL FROM pair p"), insertIDs, meet,
			counting("INSERT INTO photos SELECT NULL, title, f, NULL FROM src"), insertIDs, meet,
			counting("INSERT INTO photos SELECT 0, p.title, 5, p.n FROM pair p ON DUPLICATE KEY UPDATE title = 'dup'"), insertIDs, meet,
			counting("INSERT INTO photos SELECT NULL, t.* FROM (SELECT title, f, NULL FROM src) t ORDER BY f"), insertIDs, meet,
			all,
		}},
		{"where it is a value", []string{
			"INSERT INTO photos (id, title) SELECT id + 100, title FROM src", insertIDs,
			"INSERT INTO photos SELECT id + 200, title, NULL, NULL FROM src", insertIDs,
			"INSERT INTO photos SELECT * FROM (SELECT id + 300, title, f, NULL FROM src) t", insertIDs,
			"INSERT INTO photos (id, title) SELECT 400, 'x'", insertIDs,
			"INSERT INTO photos (id, title) SELECT 401, 'x' UNION SELECT 402, 'y'", insertIDs,
			"INSERT INTO photos (id, title) SELECT «NEXTVAL('photos')», 'v' FROM DUAL WHERE NOT EXISTS (SELECT * FROM photos WHERE title = 'v')", insertIDs,
			"INSERT INTO photos (title, id) SELECT 'w', «NEXT VALUE FOR photos» WHERE NOT EXISTS (SELECT * FROM src WHERE title = 'w')", insertIDs,
			"INSERT INTO photos (title, id) SELECT 'w', «NEXTVAL('photos')» AS k", insertIDs,
			"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
			"INSERT INTO photos (id, title) SELECT 0, 'zero' FROM src LIMIT 1", insertIDs,
			all,
		}},
		{"that fails", []string{
			meet,
			counting("INSERT INTO photos (title, n) SELECT title, id FROM src WHERE id = 1"), insertIDs, meet,
			counting("INSERT INTO photos (title, n) SELECT title, id FROM src ORDER BY id"), insertIDs, meet,
			counting("INSERT INTO photos (title, nothing) SELECT title, id FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT title, id FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title, n) SELECT title FROM src"), insertIDs, meet,
			counting("INSERT INTO photos (title) SELECT * FROM src"), insertIDs, meet,
			counting("INSERT INTO photos SELECT NULL, title FROM src"), insertIDs, meet,
			"INSERT INTO photos (title) SELECT", insertIDs,
			all,
		}},
		{"in a transaction", []string{
			meet,
			"BEGIN",
			counting("INSERT INTO photos (title) SELECT title FROM src"), insertIDs, "SELECT ROW_COUNT()",
			"ROLLBACK", insertIDs, meet,
			"START TRANSACTION", "SAVEPOINT a",
			counting("INSERT INTO photos (title) SELECT title FROM src"), insertIDs,
			"ROLLBACK TO a", insertIDs,
			"COMMIT",
			all,
		}},
		{"in steps", []string{
			"SET auto_increment_increment = 3",
			"direct: SET auto_increment_offset = 1 + ({p1} - 1) % 3",
			meet,
			given(3000, "INSERT INTO photos (title) SELECT title FROM src"), insertIDs,
			"direct: SET auto_increment_offset = 1 + ({p1} - 1) % 3",
			meet,
			given(6, "INSERT INTO photos (title) SELECT title FROM src LIMIT 2"), insertIDs,
			all,
		}},
		{"in other modes", []string{
			meet,
			"SET sql_mode = 'ANSI_QUOTES'",
			counting(`INSERT INTO "photos" ("title", "id") SELECT title, NULL FROM src`), insertIDs, meet,
			"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
			counting(`INSERT INTO photos (title) SELECT '\' FROM src`), insertIDs, meet,
			"SET sql_mode = ''",
			counting("INSERT INTO photos (title) SELECT CONCAT('a', \"b\") FROM src"), insertIDs, meet,
			all,
		}},
	}
	o.run(t, scripts, "packets with EOF", "go-sql-driver")
}

func TestKeysOfPreparedInsertSelectAreFilledIn(t *testing.T) {
	const long, text = uint8(mysql.MYSQL_TYPE_LONGLONG), uint8(mysql.MYSQL_TYPE_VAR_STRING)
	o := newOracle(t, bound(filledPhotos), sourceTables...)
	uncached(t, o)
	for _, c := range []struct {
		sql        string
		executions [][]argument
	}{
		{"INSERT INTO photos (title, parent) SELECT CONCAT(title, ?), ? FROM src WHERE id > ?", [][]argument{
			{textArg(text, "a"), integer(long, 1), integer(long, 0)},
			{textArg(text, "b"), null(long), integer(long, 5)},
			{textArg(text, "c"), null(long), integer(long, 50)},
		}},
		{"INSERT INTO photos SELECT NULL, title, ?, NULL FROM src ORDER BY title LIMIT ?", [][]argument{{integer(long, 7), integer(long, 4)}, {integer(long, 8), integer(long, 2)}}},
		{"INSERT INTO photos (title, id) SELECT ?, «NEXTVAL('photos')» FROM DUAL WHERE NOT EXISTS (SELECT * FROM photos WHERE title = ?)", [][]argument{
			{textArg(text, "a"), textArg(text, "a")}, {textArg(text, "b"), textArg(text, "b")},
		}},
		{"INSERT INTO photos (title) SELECT ? FROM DUAL WHERE NOT EXISTS (SELECT * FROM photos WHERE title = ?)", [][]argument{
			{textArg(text, "a"), textArg(text, "a")}, {textArg(text, "a"), textArg(text, "a")}, {textArg(text, "b"), textArg(text, "b")},
		}},
	} {
		p := o.pairOfSchemas(t, allFraming)
		p.same(protocol.ComQuery, "SELECT LAST_INSERT_ID(42)")
		pp := o.prepare(t, p, c.sql)
		for _, args := range c.executions {
			o.meets(t, p)
			pp.execute(true, args...)
			p.same(protocol.ComQuery, insertIDs)
		}
		pp.sameRows("SELECT * FROM photos ORDER BY id")
	}
	// The step is that of the time of the execution.
	c := o.Conn(t, o.Schemas[0], nil)
	o.fresh(t)
	insert, err := c.PrepareContext(t.Context(), "INSERT INTO photos (title) SELECT title FROM src WHERE id <= ?")
	if err != nil {
		t.Fatal(err)
	}
	defer insert.Close()
	for _, step := range []uint64{1, 5, 2} {
		exec(t, c, fmt.Sprintf("SET auto_increment_increment = %d", step))
		first := o.nextNumber(t, "photos")
		r, err := insert.ExecContext(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := r.LastInsertId()
		want := fmt.Sprintf("%d,%d,%d", first, first+step, first+2*step)
		if got := value(t, c, fmt.Sprintf("SELECT GROUP_CONCAT(id ORDER BY id) FROM photos WHERE id >= %d", first)); got != want || uint64(id) != first {
			t.Errorf("step %d: got %s, id %d, want %s", step, got, id, want)
		}
	}
}

func TestInsertSelectWhoseKeysCannotBeFilledInIsRefused(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(opts *proxy.Options) {
		opts.Bindings = []proxy.Binding{filledPhotos, {Table: "isam", Column: "id", Sequence: "photos"}, {Table: "watched", Column: "id", Sequence: "photos"}}
	}}, append(sourceTables,
		"CREATE TABLE isam (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title TEXT) ENGINE=MyISAM",
		"CREATE TABLE watched (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title TEXT)",
		"CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW SET NEW.title = 'seen'",
	)...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], multi)
	before := o.nextNumber(t, "photos")
	for _, test := range []struct{ word, text string }{
		{"ENGINE = InnoDB", "INSERT INTO isam (title) SELECT title FROM src"},
		{"trigger watch", "INSERT INTO watched (title) SELECT title FROM src"},
		{"leave it out", "INSERT IGNORE INTO photos (title) SELECT title FROM src"},
		{"may be NULL", "INSERT INTO photos (id, title) SELECT NEXTVAL('photos'), 'a' UNION ALL SELECT NULL, 'b'"},
		{"AS q", "INSERT INTO photos (title) SELECT DISTINCT title FROM src"},
		{"AS q", "INSERT INTO photos (id, title) SELECT DISTINCT NULL, title FROM src"},
		{"AS q", "INSERT INTO photos (title) (SELECT DISTINCT title FROM src)"},
		{"AS q", "INSERT INTO photos (title) SELECT title FROM src GROUP BY title WITH ROLLUP"},
		{"AS q", "INSERT INTO photos (title) SELECT title FROM src UNION SELECT 'x'"},
		{"AS q", "INSERT INTO photos (id, title) SELECT NULL, title FROM src UNION ALL SELECT NULL, 'x'"},
		{"AS q", "INSERT INTO photos (title) (SELECT title FROM src) LIMIT 1"},
		{"another NEXTVAL", "INSERT INTO photos (title, n) SELECT title, NEXTVAL('photos') FROM src"},
		{"another NEXTVAL", "INSERT INTO photos (id, title, n) SELECT NULL, title, NEXTVAL('other') FROM src"},
		{"LAST_INSERT_ID(expression)", "INSERT INTO photos (title, n) SELECT title, LAST_INSERT_ID(7) FROM src"},
		{"create the table first", "CREATE TABLE IF NOT EXISTS photos AS SELECT * FROM src"},
		{"another table", "LOAD DATA INFILE 'nowhere' INTO TABLE photos (title)"},
		{"alone", "SELECT 1; INSERT INTO photos (title) SELECT title FROM src"},
		{"PREPARE", "PREPARE s FROM 'INSERT INTO photos (title) SELECT title FROM src'"},
	} {
		wantError(t, c, 1235, test.text, test.word)
	}
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE id > 2"); got != "0" {
		t.Errorf("rows: got %s, want 0", got)
	}
	if got := o.nextNumber(t, "photos"); got != before {
		t.Errorf("numbers taken: got %d, want none", got-before)
	}
	// More rows than a block has, and a sequence with an INCREMENT of its own.
	exec(t, c, "INSERT INTO photos (title) SELECT s.title FROM src s, src t, src u, src v")
	want := fmt.Sprintf("%d 6561 %d %d", before+1000, before+1000, before+1000+6560)
	if got := value(t, c, "SELECT CONCAT_WS(' ', LAST_INSERT_ID(), COUNT(DISTINCT id), MIN(id), MAX(id)) FROM photos WHERE id > 2"); got != want {
		t.Errorf("6561 rows: got %s, want %s", got, want)
	}
	if _, err := o.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos", OrReplace: true, Increment: 2, Start: 100_001}); err != nil {
		t.Fatal(err)
	}
	wantError(t, c, 1235, "INSERT INTO photos (title) SELECT title FROM src", "INCREMENT")
	exec(t, c, "SET auto_increment_increment = 4", "INSERT INTO photos (title) SELECT title FROM src")
	if got := value(t, c, "SELECT CONCAT_WS(' ', COUNT(*), MIN(id) - LAST_INSERT_ID(), MAX(id) - MIN(id), MIN(id) % 2) FROM photos WHERE id > 100000"); got != "9 0 32 1" {
		t.Errorf("a sequence by 2, rows by 4: got %s", got)
	}
}

// While another client adds, moves and drops columns, keys stay in their column.
func TestKeysOfInsertSelectStandInTheirColumn(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), sourceTables...)
	uncached(t, o)
	o.fresh(t)
	c, direct := o.Conn(t, o.Schemas[0], nil), o.DirectConn(t, 0, o.Schemas[0], nil)
	insert := func() { exec(t, c, "INSERT INTO photos SELECT NULL, title, 7, NULL FROM src") }
	insert()
	// title, parent, n, id
	exec(t, direct, "ALTER TABLE photos MODIFY COLUMN id BIGINT UNSIGNED AUTO_INCREMENT AFTER n")
	exec(t, c, "INSERT INTO photos SELECT title, 7, NULL, NULL FROM src", "INSERT INTO photos (title, parent) SELECT p.title, 7 FROM pair p")
	if got := value(t, c, "SELECT CONCAT_WS(' ', COUNT(*), SUM(parent = 7), SUM(n > 0), SUM(id > 1000)) FROM photos WHERE title NOT IN ('one', 'two')"); got != "21 21 21" && got != "21 21 0 21" {
		t.Errorf("rows, parents, ids: got %s", got)
	}
	exec(t, direct, "DROP TABLE photos", "CREATE TABLE photos (title VARCHAR(20), b INT)")
	exec(t, c, "INSERT INTO photos (title) SELECT title FROM src", "INSERT INTO photos SELECT title, NULL FROM src")
	if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', COUNT(b)) FROM photos"); got != "18 0" {
		t.Errorf("a table of that name without the column: got %s, want 18 rows as they were given", got)
	}
}

func TestKeysOfInsertSelectAreThoseOfTheirSequenceAlone(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(opts *proxy.Options) {
		opts.Bindings = []proxy.Binding{filledPhotos, {Table: "pair", Column: "n", Sequence: "nowhere"}, {Table: "plain", Column: "id", Sequence: "other"}}
		opts.Unknown = proxy.UnknownRelay
		opts.Users[0].Sequences = []string{"photos", "nowhere"}
	}}, append(sourceTables, "CREATE TABLE plain (id BIGINT UNSIGNED, title TEXT)")...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	wantError(t, c, 4091, "INSERT INTO pair (title) SELECT title FROM src", "nowhere")
	wantError(t, c, 1227, "INSERT INTO plain (title) SELECT title FROM src", "other")
	wantError(t, c, 1227, "INSERT INTO plain SELECT NULL, title FROM src LIMIT 1", "other")
	if _, err := c.PrepareContext(t.Context(), "INSERT INTO pair (title) SELECT title FROM src WHERE id = ?"); err == nil {
		t.Error("prepared with an unknown sequence: got no error, want one")
	}
	exec(t, c, "ALTER TABLE photos MODIFY title VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL", "SET NAMES gbk", "INSERT INTO photos (title, parent) SELECT '\xbf\x5c', 5 FROM src", "INSERT INTO photos SELECT NULL, '\xbf\x5c\\'', 5, NULL FROM src", "SET NAMES utf8mb4")
	if got := value(t, c, "SELECT CONCAT_WS(' ', COUNT(*), COUNT(DISTINCT title), MIN(id) > 1000, MAX(CHAR_LENGTH(title))) FROM photos WHERE parent = 5"); got != "18 2 1 2" {
		t.Errorf("in gbk: got %s", got)
	}
	// Many at once, in both ways, beside INSERTs of rows.
	pool := o.DB(t, o.Schemas[0], nil)
	exec(t, c, "DELETE FROM photos", "ALTER TABLE photos MODIFY id BIGINT UNSIGNED NOT NULL, DROP PRIMARY KEY, ADD KEY (id)")
	var group errgroup.Group
	for client := range 4 {
		group.Go(func() error {
			prepared, err := pool.PrepareContext(t.Context(), "INSERT INTO photos (title, parent) SELECT title, ? FROM src ORDER BY id DESC")
			if err != nil {
				return err
			}
			defer prepared.Close()
			for i := range 12 {
				var r sql.Result
				batch := 1000*client + i + 1
				switch i % 3 {
				case 0:
					r, err = prepared.ExecContext(t.Context(), batch)
				case 1:
					r, err = pool.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO photos SELECT NULL, title, %d, NULL FROM src ORDER BY id DESC", batch))
				case 2:
					r, err = pool.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO photos (title, parent) VALUES ('i', %d), ('a', %[1]d)", batch))
				}
				if err != nil {
					return err
				}
				var first uint64
				if err := pool.QueryRowContext(t.Context(), "SELECT id FROM photos WHERE parent = ? ORDER BY id LIMIT 1", batch).Scan(&first); err != nil {
					return err
				}
				if id, _ := r.LastInsertId(); uint64(id) != first {
					return fmt.Errorf("batch %d: insert id: got %d, want %d", batch, id, first)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	const batches = "(SELECT MAX(id) - MIN(id) + 1 - COUNT(*) AS holes, SUBSTRING_INDEX(GROUP_CONCAT(title ORDER BY id), ',', 1) AS first FROM photos GROUP BY parent) b"
	if got := value(t, c, "SELECT CONCAT_WS(' ', COUNT(*), COUNT(DISTINCT id)) FROM photos"); got != "320 320" {
		t.Errorf("rows and numbers: got %s, want 320 of both", got)
	}
	if got := value(t, c, "SELECT CONCAT_WS(' ', COUNT(*), SUM(holes), SUM(first = 'i')) FROM "+batches); got != "48 0 48" {
		t.Errorf("statements, holes in their numbers, and those whose first row has the first: got %s", got)
	}
}

// A key beside a column with AUTO_INCREMENT: the insert id is then the server's, and may look like
// a number of the block.
func TestAFilledInsertSelectBesideAnotherColumnsAutoIncrementRepeatsNoNumber(t *testing.T) {
	o := newOracle(t, bound(proxy.Binding{Table: "pictures", Column: "number", Sequence: "photos"}),
		append([]string{"CREATE TABLE pictures (number BIGINT UNSIGNED COMMENT 'no AUTO_INCREMENT', id BIGINT AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100))"}, sourceTables...)...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	rows := 0
	for _, text := range []string{
		"INSERT INTO pictures (title) SELECT title FROM src WHERE id < 4",
		"INSERT INTO pictures (number, title) SELECT NULL, title FROM src WHERE id < 4",
		"INSERT INTO pictures (title, number) SELECT title, NEXTVAL('photos') FROM src WHERE id < 4",
	} {
		for range 2 {
			exec(t, c, fmt.Sprintf("ALTER TABLE pictures AUTO_INCREMENT = %d", o.nextNumber(t, "photos")))
			exec(t, c, text)
			rows += 3
			if got, want := value(t, c, "SELECT CONCAT(COUNT(DISTINCT number), ' ', COUNT(*)) FROM pictures"), fmt.Sprintf("%d %d", rows, rows); got != want {
				t.Errorf("%s: got %s numbers in rows, want %s", text, got, want)
			}
		}
	}
}
