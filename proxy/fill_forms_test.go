package proxy_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// Without AUTO_INCREMENT on the column no direct run can leave the column out: the oracle is
// LAST_INSERT_ID(n) in its place.
func TestKeysWithoutAutoIncrementAreFilledIn(t *testing.T) {
	o := newOracle(t, bound(filledPhotos),
		"CREATE TABLE photos (title VARCHAR(100) NOT NULL DEFAULT '', id BIGINT UNSIGNED NOT NULL PRIMARY KEY, parent BIGINT UNSIGNED)",
		"CREATE TABLE child (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, photo BIGINT UNSIGNED)",
	)
	const all = "SELECT * FROM photos ORDER BY id"
	o.run(t, []script{
		{"text", []string{
			"INSERT INTO photos (title) VALUES ('a') => INSERT INTO photos (title, id) VALUES ('a', LAST_INSERT_ID({p1}))", insertIDs,
			"INSERT INTO photos VALUES ('b', NULL, 7), ('c', 0, 8) => INSERT INTO photos VALUES ('b', LAST_INSERT_ID({p1}), 7), ('c', {p2}, 8)", insertIDs,
			"INSERT INTO photos SET title = 'd' => INSERT INTO photos SET title = 'd', id = LAST_INSERT_ID({p1})", insertIDs,
			"INSERT INTO photos (id, title) VALUES (50, 'e'), (DEFAULT, 'f') => INSERT INTO photos (id, title) VALUES (50, 'e'), (LAST_INSERT_ID({p1}), 'f')", insertIDs,
			"INSERT INTO photos (title, parent) VALUES ('g', «NEXTVAL('other')»), ('h', «NEXTVAL('other')») => " +
				"INSERT INTO photos (title, parent, id) VALUES ('g', {o1}, LAST_INSERT_ID({p1})), ('h', {o2}, {p2})", insertIDs,
			"INSERT INTO photos (title, parent) VALUES ('i', «NEXTVAL('photos')») => INSERT INTO photos (title, parent, id) VALUES ('i', {p1}, LAST_INSERT_ID({p2}))", insertIDs,
			"INSERT INTO photos (id, parent) VALUES («NEXTVAL('photos')», 1)", insertIDs,
			"SET @n = NULL, @z = 0, @five = 5",
			"INSERT INTO photos (id, title) VALUES (@n, 'j'), (@z, 'k'), (@five, 'l') => INSERT INTO photos (id, title) VALUES (LAST_INSERT_ID({p1}), 'j'), ({p2}, 'k'), (@five + 0 * {p3}, 'l')", insertIDs,
			"INSERT INTO photos (title) VALUES ('m'); INSERT INTO child (photo) VALUES (LAST_INSERT_ID()) => " +
				"INSERT INTO photos (title, id) VALUES ('m', LAST_INSERT_ID({p1})); INSERT INTO child (photo) VALUES (LAST_INSERT_ID())",
			insertIDs,
			"INSERT INTO photos (title) VALUES ('n'); INSERT INTO photos (parent) VALUES (LAST_INSERT_ID()); SELECT LAST_INSERT_ID() => " +
				"INSERT INTO photos (title, id) VALUES ('n', LAST_INSERT_ID({p1})); INSERT INTO photos (parent, id) VALUES (LAST_INSERT_ID(), LAST_INSERT_ID({p2})); SELECT LAST_INSERT_ID()",
			insertIDs,
			"INSERT INTO photos (id) VALUES (?)",
			all,
			"SELECT * FROM child",
		}},
	})
}

func TestATextMayKeepLastInsertIDForItsNextInsert(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	const first = "INSERT INTO photos (title) VALUES ('album'); "
	for _, insert := range []string{
		"INSERT INTO photos VALUES (NULL, 'a', LAST_INSERT_ID(), NULL)",
		"INSERT INTO photos (title, parent) VALUES ('a', LAST_INSERT_ID()), ('b', LAST_INSERT_ID())",
	} {
		wantError(t, c, 1235, first+insert, "SET @a = LAST_INSERT_ID()")
		exec(t, c, first+"SET @a = LAST_INSERT_ID(); "+strings.ReplaceAll(insert, "LAST_INSERT_ID()", "@a"))
	}
	if got := value(t, c, "SELECT GROUP_CONCAT(a.title) FROM photos a JOIN photos p ON p.id = a.parent AND p.title = 'album'"); got != "a,a,b" {
		t.Errorf("photos with an album: got %s", got)
	}
}

// The proxy asks for modes and columns before the first such INSERT of a session.
func TestATextMayReadWhatItsInsertLeft(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO photos (title) VALUES ('a'), ('b'); SELECT ROW_COUNT()",
		"INSERT INTO photos VALUES (NULL, 'a', NULL, 1), (0, 'b', NULL, 2); UPDATE photos SET title = 'c' WHERE n = 2; SELECT ROW_COUNT()",
		"SET @a = 1; INSERT IGNORE INTO photos VALUES (0, REPEAT('a', 200), NULL, 1), (0, 'b', NULL, 2); SHOW WARNINGS; SELECT @@warning_count",
	} {
		o := newOracle(t, bound(filledPhotos), filledTables...)
		p := o.pairOfSchemas(t, allFraming)
		p.same(protocol.ComQuery, "SELECT 'x' + 1 FROM photos")
		for _, refused := range []string{"SELECT ROW_COUNT(); ", "SHOW WARNINGS; ", "SET @a = FOUND_ROWS(); "} {
			p.Proxy.send(packet(command(protocol.ComQuery, refused+text)))
			answer, err := p.Proxy.raw()
			if err != nil {
				t.Fatal(err)
			}
			if e := serverError(t, answer); e.Code != gomysql.ER_NOT_SUPPORTED_YET {
				t.Errorf("%s%s: got %v, want error %d", refused, text, e, gomysql.ER_NOT_SUPPORTED_YET)
			}
		}
		o.meets(t, p)
		p.same(protocol.ComQuery, text)
		p.same(protocol.ComQuery, "SELECT CONCAT_WS(' ', id, title, n) FROM photos ORDER BY id")
	}
}

// Servers read two bytes of COM_SET_OPTION, however many there are.
func TestAnOptionOfAnyLengthIsReadAsByTheServer(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	options := []string{"\x00\x00", "\x00\x00\x00", "\x00\x00" + strings.Repeat("\x01", 100)}
	if o.Servers[0].IsMariaDB() {
		options = append(options, "\x00")
	}
	for _, option := range options {
		w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Capabilities: allFraming &^ protocol.MultiStatements})
		if answer := w.do(protocol.ComSetOption, option); answer[4] == 0xff {
			t.Fatalf("%.5q: %v", option, serverError(t, answer))
		}
		if answer := w.query("DO 1; DO 2"); answer[4] != 0 {
			t.Errorf("%.5q: the server has no several statements: %v", option, serverError(t, answer))
		}
		const hides = "CREATE PROCEDURE p() DO 1; INSERT INTO photos (title) VALUES ('x')"
		if answer := w.query(hides); answer[4] == 0 {
			t.Errorf("%.5q: %s was relayed", option, hides)
		} else if err := serverError(t, answer); err.Code != 1235 {
			t.Errorf("%.5q: %s: got %v, want 1235", option, hides, err)
		}
		w.query("DROP PROCEDURE IF EXISTS p")
	}
}

func TestWhatCannotBeFilledInIsRefused(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(opts *proxy.Options) {
		opts.Bindings = []proxy.Binding{filledPhotos, {Table: "Upper", Column: "id", Sequence: "photos"}}
		opts.MaxStatement = 1 << 16
	}}, append([]string{"CREATE TABLE `Upper` (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)", "CREATE TABLE `upper` (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)"}, filledTables...)...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	refused := []string{
		"INSERT INTO photos (id, title) VALUES (IF(1, NULL, 1), 'x')",
		"INSERT INTO photos (id, title) VALUES ((SELECT NULL), 'x')",
		"INSERT INTO photos (id, title) VALUES (@x := NULL, 'x')",
		"INSERT INTO photos SET id = COALESCE(NULL, 0)",
		"LOAD DATA INFILE 'nowhere' INTO TABLE photos (title)",
		"PREPARE s FROM 'INSERT INTO photos (id, title) VALUES (?, ''x'')'",
		"PREPARE s FROM 'INSERT INTO photos (title) SELECT title FROM photos'",
		"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'; INSERT INTO photos (id, title) VALUES (0, 'x')",
		"SELECT 1; INSERT INTO photos (title, parent) VALUES ('x', LAST_INSERT_ID()), ('y', LAST_INSERT_ID())",
		"INSERT INTO photos (title) VALUES ('" + strings.Repeat("x", 1<<16) + "')",
	}
	if o.Servers[0].IsMariaDB() {
		refused = append(refused, "INSERT INTO photos (id, title) (VALUES (NULL, 'x'))", "ANALYZE INSERT INTO photos (title) VALUES ('x')", "SET STATEMENT lock_wait_timeout = 1 FOR INSERT INTO photos (title) VALUES ('x')",
			"EXECUTE IMMEDIATE 'INSERT INTO photos (id, title) VALUES (?, ''x'')' USING 5")
	}
	multi := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	for _, text := range refused {
		on := c
		if strings.Contains(text, ";") {
			on = multi
		}
		wantError(t, on, 1235, text)
	}
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE id > 2"); got != "0" {
		t.Errorf("rows: got %s, want 0", got)
	}
	// Statements that need no number, or name no bound table, are relayed.
	exec(t, c,
		"INSERT INTO photos (id, title) SELECT id + 10, title FROM photos",
		"INSERT INTO photos SELECT id + 20, title, parent, NULL FROM photos WHERE id < 3",
		"INSERT INTO photos (id, title) VALUES (5, 'x')",
		"UPDATE photos SET title = 'y' WHERE id = 5",
		"EXPLAIN INSERT INTO photos (title) VALUES ('x')",
	)
	if got := value(t, c, "SELECT GROUP_CONCAT(id ORDER BY id) FROM photos"); got != "1,2,5,11,12,21,22" {
		t.Errorf("rows: got %s", got)
	}
	if value(t, c, "SELECT @@lower_case_table_names") == "0" {
		exec(t, c, "INSERT INTO `upper` (a) VALUES (1)", "INSERT INTO `Upper` (a) VALUES (1)")
		if lower, upper := value(t, c, "SELECT id FROM `upper`"), value(t, c, "SELECT id FROM `Upper`"); lower != "1" || len(upper) != 4 {
			t.Errorf("tables that differ in letter case: got ids %s and %s, want only the second to be filled", lower, upper)
		}
	}
}

// The first session asks what no probe has found out.
func TestAServerThatFoldsNamesOfTablesIsKnownFromTheFirstSessionOn(t *testing.T) {
	server := mysqltest.Shared(t)
	server.OnMariaDB(t, "lower_case_table_names, which MySQL takes only when its data is made")
	server = mysqltest.Start(t, "--lower-case-table-names=1")
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.Bindings = []proxy.Binding{filledPhotos} },
		Backend: func(o *backend.Options) { o.Probe = backend.Credentials{User: "nobody", Password: "wrong"} },
	})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos", Start: 1000}); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE photos (id BIGINT AUTO_INCREMENT PRIMARY KEY, title TEXT)", "INSERT INTO Photos (title) VALUES ('sea')")
	if got := value(t, c, "SELECT id FROM photos"); got != "1000" {
		t.Errorf("got the key %s, want the sequence's", got)
	}
}

// A SET that changes nothing of how texts are read hides no INSERT behind it.
func TestAnInsertBehindASetOfTheSameCharacterSetIsRead(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	exec(t, c, "CREATE TABLE plain (a VARCHAR(20))",
		"SET NAMES utf8mb4; SET FOREIGN_KEY_CHECKS = 0; INSERT INTO plain (a) VALUES ('é')",
		"SET NAMES utf8mb4; INSERT INTO photos (title) VALUES ('é')")
}

func TestRowsOfOneStatementAreAsFarApartAsDriversThink(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	ids := func() string {
		t.Helper()
		got := value(t, c, "SELECT GROUP_CONCAT(id ORDER BY id) FROM photos WHERE id > 2")
		exec(t, c, "DELETE FROM photos WHERE id > 2")
		return got
	}
	three := func(step uint64) string {
		first := o.nextNumber(t, "photos")
		return fmt.Sprintf("%d,%d,%d", first, first+step, first+2*step)
	}
	insert := func(on *sql.Conn) { exec(t, on, "INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')") }
	for _, step := range []uint64{1, 5, 1} {
		exec(t, c, fmt.Sprintf("SET auto_increment_increment = %d, auto_increment_offset = 3", step))
		want := three(step)
		insert(c)
		if got := ids(); got != want {
			t.Errorf("auto_increment_increment %d: got %s, want %s", step, got, want)
		}
	}
	// The proxy notices what a procedure sets.
	exec(t, c, "CREATE PROCEDURE seven() SET SESSION auto_increment_increment = 7", "CALL seven()")
	want := three(7)
	insert(c)
	if got := ids(); got != want {
		t.Errorf("after a procedure: got %s, want %s", got, want)
	}
	prepared, err := c.PrepareContext(t.Context(), "INSERT INTO photos (title) VALUES (?), (?), (?)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	want = three(7)
	if _, err := prepared.ExecContext(t.Context(), "a", "b", "c"); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != want {
		t.Errorf("prepared: got %s, want %s", got, want)
	}
	if _, err := o.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos", OrReplace: true, Increment: 2}); err != nil {
		t.Fatal(err)
	}
	wantError(t, c, 1235, "INSERT INTO photos (title) VALUES ('a'), ('b'), ('c')", "INCREMENT")
	exec(t, c, "SET auto_increment_increment = 4")
	first := o.nextNumber(t, "photos")
	insert(c)
	if got, want := ids(), fmt.Sprintf("%d,%d,%d", first, first+4, first+8); got != want {
		t.Errorf("a sequence by 2, rows by 4: got %s, want %s", got, want)
	}
}

func TestAStaleListOfColumnsPutsNoNumberIntoAnother(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c, direct := o.Conn(t, o.Schemas[0], nil), o.DirectConn(t, 0, o.Schemas[0], nil)
	insert := func(want string) {
		t.Helper()
		first := o.nextNumber(t, "photos")
		exec(t, c, "INSERT INTO photos VALUES (NULL, 't', 7, NULL)")
		if got := value(t, c, fmt.Sprintf("SELECT CONCAT_WS(' ', title, parent, n) FROM photos WHERE id >= %d", first)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	insert("t 7")
	// Another client, which bypasses the proxy, changes the table within the second.
	exec(t, direct, "ALTER TABLE photos DROP COLUMN n")
	_, err := c.ExecContext(t.Context(), "INSERT INTO photos VALUES (NULL, 't', 7, NULL)")
	checkError(t, "a column less", err, 1136)
	exec(t, c, "INSERT INTO photos VALUES (NULL, 't', 8)")
	exec(t, direct, "ALTER TABLE photos ADD COLUMN m INT FIRST")
	exec(t, c, "INSERT INTO photos VALUES (9, NULL, 't', 8)")
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE m = 9 AND id > 1000"); got != "1" {
		t.Errorf("rows with the new column: got %s, want 1", got)
	}
	exec(t, direct, "ALTER TABLE photos MODIFY COLUMN m INT AFTER parent")
	// The number is in id, even though the order of the other columns is that of a second ago.
	exec(t, c, "INSERT INTO photos VALUES (9, NULL, 't', 8)")
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE parent > 1000 OR m > 1000"); got != "0" {
		t.Errorf("rows with a number in another column: got %s, want 0", got)
	}
	exec(t, direct, "DROP TABLE photos", "CREATE TABLE photos (a INT, b INT)")
	exec(t, c, "INSERT INTO photos VALUES (NULL, 1)", "INSERT INTO photos (a) VALUES (2)")
	if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', COUNT(a)) FROM photos"); got != "2 1" {
		t.Errorf("a table of that name without the column: got %s, want its rows as they were given", got)
	}
}

// The proxy reads the columns before the text runs, so it does not know what a statement in front
// makes of them.
func TestRowsWithoutColumnsBehindDDLInOneTextAreRefused(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], func(cfg *mysql.Config) { cfg.MultiStatements = true })
	before := value(t, c, "SELECT COUNT(*) FROM photos")
	const insert = "INSERT INTO photos VALUES (NULL, 't', 7, 8)"
	for _, ddl := range []string{
		"ALTER TABLE photos MODIFY COLUMN n INT AFTER title", "DROP TABLE photos; CREATE TABLE photos (id BIGINT PRIMARY KEY, n INT, title TEXT, parent INT)",
		"RENAME TABLE photos TO pictures", "USE " + o.Schemas[0],
	} {
		wantError(t, c, 1235, ddl+"; "+insert, "name the columns")
		wantError(t, c, 1235, ddl+"; INSERT INTO photos SELECT * FROM photos", "name the columns")
	}
	if got := value(t, c, "SELECT COUNT(*) FROM photos"); got != before {
		t.Errorf("got %s rows, want %s, as before", got, before)
	}
	exec(t, c, "TRUNCATE photos; "+insert, "ALTER TABLE photos COMMENT 'x'; INSERT INTO photos (title) VALUES ('t')")
	if got := value(t, c, "SELECT COUNT(*) FROM photos"); got != "2" {
		t.Errorf("got %s rows, want 2", got)
	}
}

// Laravel, for one, prepares the DDL of its migrations.
func TestPreparedDDLMakesTheProxyLookAtTheColumnsAgain(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	insert := func(row, want string) {
		t.Helper()
		first := o.nextNumber(t, "photos")
		exec(t, c, "INSERT INTO photos VALUES ("+row+")")
		if got := value(t, c, fmt.Sprintf("SELECT CONCAT_WS(' ', title, parent, n) FROM photos WHERE id >= %d", first)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	insert("NULL, 't', 7, 8", "t 7 8")
	ddl, err := c.PrepareContext(t.Context(), "ALTER TABLE photos MODIFY COLUMN n INT AFTER title")
	if err != nil {
		t.Fatal(err)
	}
	defer ddl.Close()
	if _, err := ddl.Exec(); err != nil {
		t.Fatal(err)
	}
	insert("NULL, 't', 9, 7", "t 7 9")
}

func TestRowsOnSeveralShardsHaveKeysOfOneSequence(t *testing.T) {
	o := newOracle(t, setup{
		Servers: []*mysqltest.Server{mysqltest.Shared(t), mysqltest.SharedSecond(t)},
		Proxy:   func(opts *proxy.Options) { opts.Bindings = []proxy.Binding{filledPhotos} },
	})
	seen := map[string]string{}
	for i, schema := range o.Schemas {
		o.Servers[i].Exec(t, append([]string{"USE " + schema}, filledTables...)...)
	}
	c := o.Conn(t, o.Schemas[0], nil)
	for i := range 6 {
		schema := o.Schemas[i%2]
		exec(t, c, "USE "+schema, "INSERT INTO photos (title) VALUES ('a'), ('b')")
		id := value(t, c, "SELECT LAST_INSERT_ID()")
		n, _ := strconv.Atoi(id)
		for _, id := range []string{id, strconv.Itoa(n + 1)} {
			if before, twice := seen[id]; twice {
				t.Errorf("key %s was given twice, in %s and in %s", id, before, schema)
			}
			seen[id] = schema
		}
	}
	exec(t, c, "USE "+o.Schemas[0], "INSERT INTO "+o.Schemas[0]+".photos (title) VALUES ('c')")
	if id := value(t, c, "SELECT LAST_INSERT_ID()"); len(id) != 4 || seen[id] != "" {
		t.Errorf("a qualified name: got %s", id)
	}
}

func TestANumberThatAnInsertGivesItselfIsNotFilledIn(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	prepared, err := c.PrepareContext(t.Context(), "INSERT INTO photos (id) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	fill := func(want uint64) {
		t.Helper()
		exec(t, c, "INSERT INTO photos () VALUES ()")
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != fmt.Sprint(want) {
			t.Errorf("got %s, want %d", got, want)
		}
	}
	fill(o.nextNumber(t, "photos")) // the next numbers are in memory now
	next := o.nextNumber(t, "photos")
	exec(t, c, fmt.Sprintf("INSERT INTO photos (id) VALUES (%d), ('%d')", next+1, next+3), fmt.Sprintf("INSERT INTO photos SET id = %d", next+4))
	if _, err := prepared.ExecContext(t.Context(), next+6); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 2, 5, 7} {
		fill(next + n)
	}
	// Above the counter, as for a proxy that starts anew.
	const far = 5_000_000
	if _, err := prepared.ExecContext(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	if got := value(t, c, "SELECT id >= 5000000 FROM "+o.SequenceSchema+".sequence WHERE name = 'photos'"); got != "1" {
		t.Error("the counter is below a number that was given")
	}
	exec(t, c, fmt.Sprintf("INSERT INTO photos VALUES (%d, 'again', NULL, NULL)", far+1), "DELETE FROM photos WHERE id = 1 OR id = 2")
	// The proxy does not repeat a statement whose explicit key is a duplicate.
	wantError(t, c, 1062, fmt.Sprintf("INSERT INTO photos (id) VALUES (%d)", far))
	fill(next + 8)
}

// The table has no unique key that would refuse a repeated number.
func TestNoTwoRowsAreFilledWithOneNumber(t *testing.T) {
	o := newOracle(t, setup{
		Proxy:    func(opts *proxy.Options) { opts.Bindings = []proxy.Binding{filledPhotos} },
		Sequence: func(opts *sequence.Options) { opts.CacheSize = 20 },
	}, "CREATE TABLE photos (a INT, id BIGINT UNSIGNED NOT NULL, how VARCHAR(10) NOT NULL, b INT, KEY (id))")
	o.fresh(t)
	pool := o.DB(t, o.Schemas[0], nil)
	var group errgroup.Group
	want := new(atomic.Int64)
	for client := range 4 {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(client)))
			prepared, err := pool.PrepareContext(t.Context(), "INSERT INTO photos VALUES (1, ?, 'filled', 2), (1, ?, 'filled', 2)")
			if err != nil {
				return err
			}
			defer prepared.Close()
			for range 60 {
				rows := 1 + random.IntN(4)
				switch random.IntN(5) {
				case 0:
					_, err = pool.ExecContext(t.Context(), "INSERT INTO photos (a, how, b) VALUES "+strings.Repeat("(1, 'filled', 2), ", rows-1)+"(1, 'filled', 2)")
				case 1:
					_, err = pool.ExecContext(t.Context(), "INSERT INTO photos VALUES "+strings.Repeat("(1, 0, 'filled', 2), ", rows-1)+"(1, NULL, 'filled', 2)")
				case 2:
					_, err = prepared.ExecContext(t.Context(), nil, 0)
					rows = 2
				case 3:
					_, err = pool.ExecContext(t.Context(), "INSERT INTO photos SET b = 2, how = 'filled', a = 1")
					rows = 1
				case 4: // an explicit key, now and then above the counter
					_, err = pool.ExecContext(t.Context(), "INSERT INTO photos (how, id, a, b) VALUES ('own', ?, 1, 2)", 1000+random.IntN(2000))
					rows = 0
				}
				if err != nil {
					return err
				}
				want.Add(int64(rows))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	c := o.DirectConn(t, 0, o.Schemas[0], nil)
	if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', COUNT(DISTINCT id), ' ', SUM(id < 1001)) FROM photos WHERE how = 'filled'"); got != fmt.Sprintf("%d %d 0", want.Load(), want.Load()) {
		t.Errorf("rows, distinct keys and keys below 1001: got %s, want %d, as many and 0", got, want.Load())
	}
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE a <> 1 OR b <> 2"); got != "0" {
		t.Errorf("rows with something else in another column: got %s, want 0", got)
	}
}
