package proxy_test

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// filledTables are what the tests of filled keys begin with.
var filledTables = []string{
	"CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100) NOT NULL DEFAULT '', parent BIGINT UNSIGNED, n INT, UNIQUE (n))",
	"INSERT INTO photos (id, title) VALUES (1, 'one'), (2, 'two')",
}

var filledPhotos = proxy.Binding{Table: "photos", Column: "id", Sequence: "photos"}

// meets makes the next number of the direct side's AUTO_INCREMENT that of the sequence.
func (o *oracle) meets(t testing.TB, p *pair) {
	t.Helper()
	p.Direct.query(fmt.Sprintf("ALTER TABLE photos AUTO_INCREMENT = %d", o.nextNumber(t, "photos")))
}

// IGNORE makes 0 of a text that is no number, in strict modes, too. The server would number that
// row.
func TestATextOfWhichIGNOREMakesZeroIsNoKey(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	for _, key := range []string{"", "abc", "-"} {
		o.fresh(t)
		c := o.Conn(t, o.Schemas[0], nil)
		if _, err := c.ExecContext(t.Context(), "INSERT IGNORE INTO photos (id, title) VALUES (?, ?)", key, "a"); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE id > 1000"); got != "1" {
			t.Errorf("%q: got %s rows with a number of the sequence, want 1", key, got)
		}
	}
}

func TestKeysOfPreparedInsertsAreFilledIn(t *testing.T) {
	const long, text = uint8(mysql.MYSQL_TYPE_LONGLONG), uint8(mysql.MYSQL_TYPE_VAR_STRING)
	title := func(s string) argument { return textArg(text, s) }
	type execution []argument
	clients := maps.Clone(endings)
	clients["that may execute in bulk"] = allFraming | protocol.BulkOperations
	for name, caps := range clients {
		t.Run(name, func(t *testing.T) {
			o := newOracle(t, bound(filledPhotos), filledTables...)
			o.offers(t, caps&protocol.BulkOperations, "bulk execution")
			update := "ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), title = VALUES(title)"
			if !o.Servers[0].IsMariaDB() {
				update = "AS new ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), title = new.title"
			}
			for _, c := range []struct {
				sql        string
				executions []execution
			}{
				{"INSERT INTO photos (title, n) VALUES (?, 5) " + update, []execution{{title("a")}, {title("b")}}},
				{"INSERT INTO photos (title) VALUES (?)", []execution{{title("a")}, {title("b")}}},
				{"INSERT INTO photos () VALUES ()", []execution{{}, {}}},
				{"INSERT INTO photos SET title = ?, n = ?", []execution{{title("a"), integer(long, 1)}, {title("b"), null(long)}}},
				{"INSERT INTO photos (title, n) VALUES (?, ?), (?, ?)", []execution{{title("a"), null(long), title("b"), integer(long, 2)}}},
				{"INSERT INTO photos (id, title) VALUES (NULL, ?), (0, ?), (DEFAULT, ?)", []execution{{title("a"), title("b"), title("c")}}},
				{"INSERT INTO photos VALUES (?, ?, ?, ?)", []execution{{null(long), title("a"), null(long), integer(long, 1)}, {integer(long, 0), title("a"), null(long), integer(long, 2)}}},
				{"INSERT INTO photos (id, title) VALUES (?, ?)", []execution{
					{null(long), title("a")},
					{integer(long, 0), title("b")},
					{integer(mysql.MYSQL_TYPE_TINY, 0), title("c")},
					{integer(long, 77), title("d")},
					{title("0"), title("e")},
					{title("78"), title("f")},
					{null(uint8(mysql.MYSQL_TYPE_NULL)), title("g")},
					{double(0), title("h")},
					{double(79), title("i")},
				}},
				{"INSERT INTO photos (title, id, n) VALUES (?, ?, ?), (?, ?, ?)", []execution{
					{title("a"), null(long), null(long), title("b"), null(long), null(long)},
					{title("c"), integer(long, 88), null(long), title("d"), null(long), null(long)},
					{title("e"), null(long), null(long), title("f"), integer(long, 89), null(long)},
					{title("g"), integer(long, 90), null(long), title("h"), integer(long, 91), null(long)},
				}},
				{"INSERT INTO photos (title, id) VALUES (?, ?), (?, NULL)", []execution{
					{title("a"), null(long), title("b")},
					{title("c"), integer(long, 92), title("d")},
				}},
				{"INSERT INTO photos SET id = ?, title = ?", []execution{{null(long), title("a")}, {integer(long, 93), title("a")}}},
				{"INSERT INTO photos (title, parent) VALUES (?, LAST_INSERT_ID())", []execution{{title("a")}, {title("b")}}},
				{"INSERT INTO photos (parent, title) VALUES (LAST_INSERT_ID(), ?), (LAST_INSERT_ID() + ?, '')", []execution{{title("a"), integer(long, 1)}}},
				{"REPLACE INTO photos (title, n) VALUES (?, 5)", []execution{{title("a")}, {title("b")}}},
				{"INSERT IGNORE INTO photos (id, title) VALUES (?, ?)", []execution{{title("0"), title("a")}, {title("120"), title("b")}}},
				{"INSERT IGNORE INTO photos (title, n) VALUES (?, 5)", []execution{{title("a")}, {title("b")}}},
				{"INSERT IGNORE INTO photos (id, n, parent) VALUES (?, 5, LAST_INSERT_ID())", []execution{{null(long)}, {integer(long, 0)}}},
				{"INSERT INTO photos (title, n) VALUES (?, 5) ON DUPLICATE KEY UPDATE title = ?", []execution{{title("a"), title("b")}, {title("c"), title("d")}}},
				{"INSERT INTO photos (id, title, n) VALUES (?, ?, 5) ON DUPLICATE KEY UPDATE title = 'x'", []execution{
					{null(long), title("a")}, {integer(long, 0), title("b")}, {integer(long, 95), title("c")},
				}},
				{"INSERT INTO photos (id, title) VALUES (94, ?)", []execution{{title("a")}}},
			} {
				p := o.pairOfSchemas(t, caps)
				p.same(protocol.ComQuery, "SELECT LAST_INSERT_ID(42)")
				o.meets(t, p)
				pp := o.prepare(t, p, c.sql)
				for _, args := range c.executions {
					pp.execute(true, args...)
					p.same(protocol.ComQuery, insertIDs)
					o.meets(t, p)
				}
				pp.sameRows("SELECT * FROM photos ORDER BY id")
			}
		})
	}
}

func TestAStatementWithTooManyParametersNamesTheRowsThatItMayHave(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	for _, form := range []struct {
		insert, row string
		most        int
	}{
		{"INSERT INTO photos (title, parent, n) VALUES ", "(?, ?, ?)", 16383},
		{"INSERT INTO photos (id, title) VALUES ", "(?, ?)", 16383},
		{"INSERT INTO photos (id, title) VALUES ", "(NEXTVAL('photos'), ?)", 32767},
	} {
		text := func(rows int) string { return form.insert + form.row + strings.Repeat(","+form.row, rows-1) }
		_, err := c.PrepareContext(t.Context(), text(form.most+2))
		checkError(t, form.row, err, 1235, fmt.Sprintf("at most %d rows", form.most))
		stmt, err := c.PrepareContext(t.Context(), text(form.most))
		if err != nil {
			t.Errorf("%d rows of %s: %v", form.most, form.row, err)
			continue
		}
		_ = stmt.Close()
	}
	_, err := c.PrepareContext(t.Context(), "INSERT INTO photos (title) VALUES (?)"+strings.Repeat(",(?)", 1<<16))
	checkError(t, "the client's own", err, 1390)
}

// mysql2 of Node.js sends its numbers as DOUBLE, which is exact up to 2^53.
func TestAKeyIsExactWhateverTypeItsParameterHas(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	if _, err := o.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "photos", OrReplace: true, Start: 1<<53 + 1001}); err != nil {
		t.Fatal(err)
	}
	for _, zero := range []argument{double(0), single(0), integer(mysql.MYSQL_TYPE_TINY, 0), textArg(mysql.MYSQL_TYPE_NEWDECIMAL, "0"), textArg(mysql.MYSQL_TYPE_BLOB, "0"), null(mysql.MYSQL_TYPE_DOUBLE), null(mysql.MYSQL_TYPE_DATETIME)} {
		p := o.pairOfSchemas(t, allFraming)
		o.meets(t, p)
		pp := o.prepare(t, p, "INSERT INTO photos (id) VALUES (?)")
		for range 2 {
			pp.execute(true, zero)
			p.same(protocol.ComQuery, insertIDs)
			o.meets(t, p)
		}
		pp = o.prepare(t, p, "INSERT INTO photos (id) VALUES (?), (?)")
		pp.execute(true, zero, zero)
		p.same(protocol.ComQuery, insertIDs)
		pp.sameRows("SELECT id FROM photos ORDER BY id")
	}
	if !o.Servers[0].IsMariaDB() {
		return
	}
	p := o.pairOfSchemas(t, allFraming|protocol.BulkOperations)
	pp := o.prepare(t, p, "INSERT INTO photos (id) VALUES (?)")
	answer := p.Proxy.do(protocol.ComStmtBulkExecute, string(binary.LittleEndian.AppendUint32(nil, pp.id))+bulkRows(0, "\x05\x00", bulkNull, bulkNull))
	if e := serverError(t, answer); e.Code != mysql.ER_NOT_SUPPORTED_YET || !strings.Contains(e.Message, "integer") {
		t.Errorf("in bulk: got %v, want error %d", e, mysql.ER_NOT_SUPPORTED_YET)
	}
}

func TestANumberThatSomebodyHasUsedIsTriedOnce(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	direct := o.DirectConn(t, 0, o.Schemas[0], nil)
	taken := func(n int) {
		t.Helper()
		for i := range n {
			exec(t, direct, fmt.Sprintf("INSERT INTO photos (id) VALUES (%d)", o.nextNumber(t, "photos")+uint64(i)))
		}
	}
	c := o.Conn(t, o.Schemas[0], nil)
	prepared, err := c.PrepareContext(t.Context(), "INSERT INTO photos (title) VALUES (?)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	for _, way := range []struct {
		name string
		run  func() (int64, error)
	}{
		{"text", func() (int64, error) {
			r, err := c.ExecContext(t.Context(), "INSERT INTO photos (title) VALUES ('again')")
			if err != nil {
				return 0, err
			}
			return r.LastInsertId()
		}},
		{"prepared", func() (int64, error) {
			r, err := prepared.ExecContext(t.Context(), "again")
			if err != nil {
				return 0, err
			}
			return r.LastInsertId()
		}},
	} {
		taken(1)
		want := o.nextNumber(t, "photos") + 1
		id, err := way.run()
		if err != nil || uint64(id) != want {
			t.Errorf("%s: got %d, %v, want %d", way.name, id, err, want)
		}
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != strconv.FormatUint(want, 10) {
			t.Errorf("%s: LAST_INSERT_ID(): got %s, want %d", way.name, got, want)
		}
		taken(2) // both keys exist already
		_, err = way.run()
		checkError(t, way.name, err, 1062, "Duplicate")
		if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE title = 'again'"); got != "1" {
			t.Errorf("%s: rows: got %s, want 1", way.name, got)
		}
		exec(t, c, "DELETE FROM photos WHERE title = 'again'")
	}
	// Side effects of a text would happen twice.
	exec(t, c, "SET @n = 0")
	taken(1)
	wantError(t, c, 1062, "INSERT INTO photos (title) VALUES (@n := @n + 1)", "Duplicate")
	if got := value(t, c, "SELECT @n"); got != "1" {
		t.Errorf("@n := @n + 1: got %s, want 1", got)
	}
	// A duplicate of another key is the application's error, and uses one number.
	exec(t, c, "INSERT INTO photos (n) VALUES (7)")
	before := o.nextNumber(t, "photos")
	wantError(t, c, 1062, "INSERT INTO photos (n) VALUES (7)")
	if got := o.nextNumber(t, "photos"); got != before+1 {
		t.Errorf("numbers used: got %d, want 1", got-before)
	}
}

// A partitioned table needs such a key. Its error has all values of the key.
func TestANumberInACompositeKeyThatSomebodyHasUsedIsTriedOnce(t *testing.T) {
	for _, key := range []string{"id", "id, day", "day, id", "title, id, day"} {
		o := newOracle(t, bound(filledPhotos), fmt.Sprintf("CREATE TABLE photos (id BIGINT UNSIGNED NOT NULL, title VARCHAR(9) NOT NULL, day DATE NOT NULL DEFAULT '2026-11-30', "+
			"n INT, PRIMARY KEY (%s), UNIQUE (n, day))", key))
		o.fresh(t)
		c, next := o.Conn(t, o.Schemas[0], nil), o.nextNumber(t, "photos")
		exec(t, o.DirectConn(t, 0, o.Schemas[0], nil), fmt.Sprintf("INSERT INTO photos (id, title) VALUES (%d, 'x'), (%d, 'x'), (%d, 'x')", next, next+2, next+3))
		exec(t, c, "INSERT INTO photos (title) VALUES ('x')")
		if got, want := value(t, c, "SELECT LAST_INSERT_ID()"), strconv.FormatUint(next+1, 10); got != want {
			t.Errorf("PRIMARY KEY (%s): LAST_INSERT_ID(): got %s, want %s", key, got, want)
		}
		wantError(t, c, 1062, "INSERT INTO photos (title) VALUES ('x')", "Duplicate")
		// A duplicate of another key uses one number.
		exec(t, c, "INSERT INTO photos (title, n) VALUES ('x', 7)")
		before := o.nextNumber(t, "photos")
		wantError(t, c, 1062, "INSERT INTO photos (title, n) VALUES ('x', 7)", "7-2026-11-30")
		if got := o.nextNumber(t, "photos"); got != before+1 {
			t.Errorf("PRIMARY KEY (%s): numbers used: got %d, want 1", key, got-before)
		}
	}
}

// The proxy writes the columns into the text, which servers then look for.
func TestAPreparedInsertWithoutColumnsEndsWithTheNameOfOne(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	direct := o.DirectConn(t, 0, o.Schemas[0], nil)
	c, inside := o.Conn(t, o.Schemas[0], nil), o.Conn(t, o.Schemas[0], nil)
	const all, some = "INSERT INTO photos VALUES (NULL, ?, NULL, NULL)", "INSERT INTO photos (title) VALUES (?)"
	prepare := func(c *sql.Conn, text string) func() error {
		t.Helper()
		st, err := c.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		return func() error {
			_, err := st.ExecContext(t.Context(), "x")
			return err
		}
	}
	insert, insertInside, named := prepare(c, all), prepare(inside, all), prepare(inside, some)
	if err := insert(); err != nil {
		t.Fatal(err)
	}
	exec(t, direct, "ALTER TABLE photos RENAME COLUMN title TO caption")
	exec(t, inside, "BEGIN")
	checkError(t, all, insert(), 1054, "title")
	checkError(t, all, insert(), 1615, "connect again", "another name")
	checkError(t, all, insertInside(), 1054, "title")
	checkError(t, all, insertInside(), 1615, "prepare the statement again")
	for range 2 { // the text has the name
		checkError(t, some, named(), 1054, "title")
	}
	if err := prepare(inside, all)(); err != nil {
		t.Errorf("prepared again: %v", err)
	}
}

// Checklist 34.
func TestKeysOfBulkExecutionsAreFilledIn(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.offers(t, protocol.BulkOperations, "bulk execution")
	a, b, c := bulkText("a"), bulkText("b"), bulkText("c")
	for _, step := range []int{1, 3} {
		for _, test := range []struct {
			sql, types string
			rows       []string
		}{
			{"INSERT INTO photos (title) VALUES (?)", typeString, []string{a, b, c}},
			{"INSERT INTO photos (title) VALUES (?)", typeString, []string{a}},
			{"INSERT INTO photos (id, title) VALUES (?, ?)", typeLong + typeString, []string{bulkNull + a, bulkLong(0) + b, bulkDefault + c}},
			{"INSERT INTO photos (id, title) VALUES (?, ?)", typeLong + typeString, []string{bulkLong(501) + a, bulkNull + b, bulkNull + c}},
			{"INSERT INTO photos (id, title) VALUES (?, ?)", typeLong + typeString, []string{bulkLong(501) + a, bulkLong(502) + b}},
			{"INSERT INTO photos (title, id) VALUES (?, NULL)", typeString, []string{a, b, c}},
			{"INSERT INTO photos VALUES (?, ?, NULL, NULL)", typeLong + typeString, []string{bulkNull + a, bulkNull + b}},
			{"REPLACE INTO photos (title, n) VALUES (?, 7)", typeString, []string{a}},
			{"INSERT IGNORE INTO photos (title) VALUES (?)", typeString, []string{a, b, c}},
		} {
			p := o.pairOfSchemas(t, allFraming|protocol.BulkOperations)
			set := fmt.Sprintf("SET auto_increment_increment = %d", step)
			p.same(protocol.ComQuery, set)
			p.Direct.query(fmt.Sprintf("SET auto_increment_offset = %d", 1+(o.nextNumber(t, "photos")-1)%uint64(step)))
			p.same(protocol.ComQuery, "SELECT LAST_INSERT_ID(42)")
			o.meets(t, p)
			pp := o.prepare(t, p, test.sql)
			bulk := func(w *wire, id uint32) []byte {
				return w.do(protocol.ComStmtBulkExecute, string(binary.LittleEndian.AppendUint32(nil, id))+bulkRows(0, test.types, test.rows...))
			}
			what := fmt.Sprintf("%s, %d rows, step %d", test.sql, len(test.rows), step)
			compare(t, what, bulk(p.Proxy, pp.id), bulk(p.Direct, pp.directID))
			p.same(protocol.ComQuery, insertIDs)
			pp.sameRows("SELECT * FROM photos ORDER BY id")
		}
	}
}

// The key of one row would be LAST_INSERT_ID() in the next one.
func TestABulkExecutionThatReadsLastInsertIDIsRefused(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.offers(t, protocol.BulkOperations, "bulk execution")
	p := o.pairOfSchemas(t, allFraming|protocol.BulkOperations)
	p.same(protocol.ComQuery, "SELECT LAST_INSERT_ID(42)")
	o.meets(t, p)
	pp := o.prepare(t, p, "INSERT INTO photos (title, parent) VALUES (?, LAST_INSERT_ID())")
	answer := p.Proxy.do(protocol.ComStmtBulkExecute, string(binary.LittleEndian.AppendUint32(nil, pp.id))+bulkRows(0, typeString, bulkText("a"), bulkText("b")))
	if e := serverError(t, answer); e.Code != mysql.ER_NOT_SUPPORTED_YET || !strings.Contains(e.Message, "row by row") {
		t.Errorf("got %v, want error %d", e, mysql.ER_NOT_SUPPORTED_YET)
	}
	for range 2 {
		pp.execute(true, textArg(mysql.MYSQL_TYPE_VAR_STRING, "a"))
		p.same(protocol.ComQuery, insertIDs)
	}
	pp.sameRows("SELECT * FROM photos ORDER BY id")
}

// A pool may keep a statement prepared for days, and no driver prepares again.
func TestASessionEndsWithAPreparedInsertWhoseTableIsBoundOtherwise(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	o.Servers[0].Exec(t, "CREATE TABLE "+o.Schemas[0]+".others (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(9))")
	prepare := func(c *sql.Conn, text string) *sql.Stmt {
		t.Helper()
		stmt, err := c.PrepareContext(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stmt.Close() })
		return stmt
	}
	insert := func(stmt *sql.Stmt, value string) (id int64, err error) {
		result, err := stmt.ExecContext(t.Context(), value)
		if err == nil {
			id, err = result.LastInsertId()
		}
		return id, err
	}
	refused := func(what string, stmt *sql.Stmt, value, state string) {
		t.Helper()
		_, err := insert(stmt, value)
		checkError(t, what, err, 1615, "OWNED BY")
		if e, ok := err.(*driver.MySQLError); ok && string(e.SQLState[:]) != state {
			t.Errorf("%s: got state %s, want %s", what, e.SQLState, state)
		}
	}
	const text = "INSERT INTO photos (title) VALUES (?)"
	column := sequence.Column{Schema: o.Schemas[0], Table: "photos", Column: "id"}
	for _, owns := range []struct {
		sequence string
		column   sequence.Column
		filled   bool
	}{{"photos", column, true}, {"photos", sequence.Column{}, false}, {"other", column, true}} {
		c, locked, long := o.Conn(t, o.Schemas[0], nil), o.Conn(t, o.Schemas[0], nil), o.Conn(t, o.Schemas[0], nil)
		other, list := prepare(c, "INSERT INTO others (title) VALUES (?)"), prepare(c, "SELECT COUNT(*) FROM photos WHERE title = ?")
		before, beforeLocked, beforeLong := prepare(c, text), prepare(locked, text), prepare(long, text)
		if _, err := insert(before, "x"); err != nil {
			t.Fatal(err)
		}
		if _, err := o.Sequences.Alter(t.Context(), []byte(owns.sequence), sequence.Alteration{OwnedBy: &owns.column}); err != nil {
			t.Fatal(err)
		}
		if _, err := insert(other, "x"); err != nil {
			t.Errorf("of another table: %v", err)
		}
		var n int
		if err := list.QueryRowContext(t.Context(), "x").Scan(&n); err != nil {
			t.Errorf("a SELECT: %v", err)
		}
		exec(t, c, "BEGIN")
		refused("in a transaction", before, "x", "HY000")
		exec(t, c, "COMMIT")
		exec(t, locked, "DO GET_LOCK('"+o.Schemas[0]+"', 0)")
		refused("with a lock", beforeLocked, "x", "HY000")
		exec(t, locked, "DO RELEASE_LOCK('"+o.Schemas[0]+"')")
		for what, stale := range map[string]struct {
			c     *sql.Conn
			stmt  *sql.Stmt
			value string
		}{"prepared before": {c, before, "x"}, "a long execution": {long, beforeLong, strings.Repeat("x", 1<<20)}} {
			refused(what, stale.stmt, stale.value, "08S01")
			if _, err := stale.c.ExecContext(t.Context(), "DO 1"); err == nil {
				t.Errorf("%s: the session goes on", what)
			}
		}
		again := o.Conn(t, o.Schemas[0], nil)
		exec(t, again, "DELETE FROM photos WHERE id > 1000", "ALTER TABLE photos AUTO_INCREMENT = 4")
		if id, err := insert(prepare(again, text), "x"); err != nil || (id > 1000) != owns.filled {
			t.Errorf("prepared after %s OWNED BY %v: got %d, %v, want it filled: %v", owns.sequence, owns.column, id, err, owns.filled)
		}
	}
}

func TestAFilledInsertOutlivesChangesOfTheTable(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	p := o.pairOfSchemas(t, allFraming)
	var all []*preparedPair
	for _, text := range []string{
		"INSERT INTO photos (title) VALUES (?)",
		"INSERT INTO photos (id, title) VALUES (0, ?)",
	} {
		all = append(all, o.prepare(t, p, text))
	}
	o.outlive(t, p, all, []string{
		"DO 0",
		"ALTER TABLE photos ADD COLUMN m INT FIRST",
		"ALTER TABLE photos DROP COLUMN m",
		"ALTER TABLE photos MODIFY title VARBINARY(200) NOT NULL DEFAULT ''",
		"ALTER TABLE photos RENAME COLUMN title TO label",
		"ALTER TABLE photos RENAME COLUMN label TO title",
	}, func(int) []argument {
		o.meets(t, p)
		return []argument{textArg(mysql.MYSQL_TYPE_VAR_STRING, "t")}
	})
	all[0].sameRows("SELECT * FROM photos ORDER BY 1, 2")
}

// MariaDB's mode ORACLE takes :1 for a parameter. The proxy does not, so it does not know which one
// its key is.
func TestAPreparedInsertWithOtherParametersIsRefused(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	if !o.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no mode ORACLE")
	}
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	w.query("SET sql_mode = 'ORACLE'")
	for _, text := range []string{"INSERT INTO photos (title) VALUES (:1)", "INSERT INTO photos (title, n) VALUES (?, :1)", "INSERT INTO photos VALUES (NEXTVAL('photos'), :1, NULL, NULL)"} {
		w.send(packet(command(protocol.ComStmtPrepare, text)))
		got, err := w.raw()
		if err != nil {
			t.Fatal(err)
		}
		if e := serverError(t, got); e.Code != mysql.ER_NOT_SUPPORTED_YET {
			t.Errorf("%s: got %v, want error %d", text, e, mysql.ER_NOT_SUPPORTED_YET)
		}
	}
	if got := w.rows("SELECT COUNT(*) FROM photos")[0]; got != "2" {
		t.Errorf("afterwards the table has %s rows, want 2", got)
	}
}
