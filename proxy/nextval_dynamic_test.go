package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/mysqltest"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// The rows of an EXECUTE get numbers as those of the text itself do.
func TestEachRowOfATextPreparedAsTextGetsANumber(t *testing.T) {
	server := mysqltest.StartUnsynced(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, rowTables(server)...)
	o.fresh(t)
	p := o.Pair(t, 0, wireLogin{Schema: o.Schemas[0], Capabilities: allFraming &^ (protocol.OptionalMetadata | protocol.QueryAttributes)})
	for _, text := range []string{rowTexts[0], rowTexts[2], rowTexts[3], rowTexts[6], rowTexts[10], rowTexts[14]} {
		proxied, constant, sequences := rowCalls(text)
		p.Proxy.query("PREPARE s FROM '" + strings.ReplaceAll(proxied, "'", "''") + "'")
		for range 2 {
			next := map[string]uint64{"photos": o.nextNumber(t, "photos"), "other": o.nextNumber(t, "other")}
			want, last := withNumbers(p.Direct.query(constant), false, sequences, next)
			compare(t, text, p.Proxy.query("EXECUTE s"), want)
			o.sameNext(t, text, next)
			if got := p.Proxy.rows("SELECT LAST_INSERT_ID()")[0]; last != 0 && got != fmt.Sprint(last) {
				t.Errorf("LAST_INSERT_ID() after %s: got %s, want %d", text, got, last)
			}
		}
	}
}

// An EXECUTE of a text with numbers is what the text itself would be, direct, with
// LAST_INSERT_ID(n) in it.
func TestATextPreparedAsTextTakesNumbersAtEachExecute(t *testing.T) {
	o := newOracle(t, setup{}, placesTables...)
	const (
		insert = "PREPARE s FROM 'INSERT INTO photos (id, title) VALUES (NEXTVAL(''photos''), ''a''''b\\\\\\\\c''), (NEXTVAL(\"photos\"), \"ä\")'" +
			" => PREPARE s FROM 'INSERT INTO photos (id, title) VALUES (LAST_INSERT_ID(1), ''a''''b\\\\\\\\c''), (2, \"ä\")'"
		inserted = "EXECUTE s => INSERT INTO photos (id, title) VALUES (LAST_INSERT_ID({p1}), 'a''b\\\\c'), ({p2}, \"ä\")"
		all      = "SELECT * FROM photos ORDER BY id"
	)
	scripts := []script{
		{"an INSERT", []string{
			insert, "SELECT ROW_COUNT()", inserted, left, inserted, "SELECT ROW_COUNT()", "execute S; => " + strings.TrimPrefix(inserted, "EXECUTE s => ") + ";", left, all,
			"DEALLOCATE PREPARE s", "EXECUTE s", left, all,
		}},
		{"parameters", []string{
			"PREPARE `s t` FROM \"INSERT INTO photos (n, id, parent) VALUES (?, NEXTVAL('photos'), NEXTVAL('other')), (?, NEXTVAL('photos'), ?)\"" +
				" => PREPARE `s t` FROM \"INSERT INTO photos (n, id, parent) VALUES (?, LAST_INSERT_ID(1), 2), (?, 3, ?)\"",
			"SET @a = 7, @b = NULL, @c = 9",
			"EXECUTE `s t` USING @a, @b, @c => INSERT INTO photos (n, id, parent) VALUES (@a, LAST_INSERT_ID({p1}), {o1}), (@b, {p2}, @c)",
			left,
			"EXECUTE `S T` USING @c, @c,@c; => INSERT INTO photos (n, id, parent) VALUES (@c, LAST_INSERT_ID({p1}), {o1}), (@c, {p2}, @c)",
			left,
			"EXECUTE `s t` USING @a => EXECUTE `s t` USING @a # {p2} {o1}",
			"EXECUTE `s t`  => EXECUTE `s t` # {p2} {o1}",
			"DROP PREPARE `s t`", "EXECUTE `s t` USING @a", all,
		}},
		{"queries and others", []string{
			"PREPARE s FROM 'SELECT NEXTVAL(''photos''), 1 AS b' => PREPARE s FROM 'SELECT LAST_INSERT_ID(1) AS `NEXTVAL(''photos'')`, 1 AS b'",
			"EXECUTE s => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`, 1 AS b", left,
			"PREPARE s FROM 'SET @x = NEXTVAL(''photos'')' => PREPARE s FROM 'SET @x = LAST_INSERT_ID(1)'",
			"EXECUTE s => SET @x = LAST_INSERT_ID({p1})", "SELECT @x", left,
			"PREPARE d FROM 'DO NEXTVAL(''photos'')' => PREPARE d FROM 'DO LAST_INSERT_ID(1)'",
			"EXECUTE d => DO LAST_INSERT_ID({p1})", left, "EXECUTE s => SET @x = LAST_INSERT_ID({p1})", "SELECT @x", left,
			"PREPARE c FROM 'CALL keep(NEXTVAL(''photos''), ?)' => PREPARE c FROM 'CALL keep(LAST_INSERT_ID(1), ?)'",
			"SET @a = 1", "EXECUTE c USING @a => CALL keep(LAST_INSERT_ID({p1}), @a)", left, "SELECT * FROM keyless",
		}},
		{"beside LAST_INSERT_ID()", []string{
			"SELECT LAST_INSERT_ID(42)",
			"PREPARE s FROM 'INSERT INTO photos (id, parent) VALUES (NEXTVAL(''photos''), LAST_INSERT_ID())'" +
				" => PREPARE s FROM 'INSERT INTO photos (id, parent) VALUES (LAST_INSERT_ID(1), 2)'",
			left,
			"EXECUTE s => INSERT INTO photos (id, parent) VALUES (LAST_INSERT_ID({p1}), 42)", left,
			"EXECUTE s => INSERT INTO photos (id, parent) VALUES (LAST_INSERT_ID({p1}), {p0})", left, all,
		}},
		{"that fails", []string{
			"SELECT LAST_INSERT_ID(42)",
			insert,
			"PREPARE s FROM 'INSERT INTO nowhere (id) VALUES (NEXTVAL(''photos''))' => PREPARE s FROM 'INSERT INTO nowhere (id) VALUES (LAST_INSERT_ID(1))'",
			"SHOW WARNINGS",
			"EXECUTE s", // the old one is gone
			"SHOW WARNINGS",
			"PREPARE s FROM 'INSERT INTO photos (id) VALUES (1), (NEXTVAL(''photos''))' => PREPARE s FROM 'INSERT INTO photos (id) VALUES (1), (LAST_INSERT_ID(1))'",
			"EXECUTE s => INSERT INTO photos (id) VALUES (1), (LAST_INSERT_ID({p1}))",
			"SHOW WARNINGS", "SELECT ROW_COUNT()", left,
			"ALTER TABLE photos DROP PRIMARY KEY",
			"EXECUTE s => INSERT INTO photos (id) VALUES (1), (LAST_INSERT_ID({p1}))", left,
			"DROP TABLE photos",
			"EXECUTE s => INSERT INTO photos (id) VALUES (1), (LAST_INSERT_ID({p1}))",
			"SHOW WARNINGS", left,
		}},
		{"warnings", []string{
			"SET sql_mode = ''",
			"PREPARE s FROM 'INSERT INTO photos (id, title, n) VALUES (NEXTVAL(''photos''), REPEAT(''x'', 200), ''y'')'" +
				" => PREPARE s FROM 'INSERT INTO photos (id, title, n) VALUES (LAST_INSERT_ID(1), REPEAT(''x'', 200), ''y'')'",
			"SHOW WARNINGS",
			"EXECUTE s => INSERT INTO photos (id, title, n) VALUES (LAST_INSERT_ID({p1}), REPEAT('x', 200), 'y')",
			"SHOW WARNINGS", left,
		}},
		{"of a variable", []string{
			"SELECT id FROM photos LIMIT 2",
			"SET @q = 'SELECT 1 + ?', @a = 5, @n = NULL, @bad = 'SELECT nothing'",
			"PREPARE s FROM @q", "SELECT FOUND_ROWS(), ROW_COUNT()", "EXECUTE s USING @a",
			"PREPARE s FROM @n", "EXECUTE s", "PREPARE s FROM @bad", "SHOW WARNINGS", "EXECUTE s",
			"SET @q = 'INSERT INTO photos (id, title) VALUES (NEXTVAL(''photos''), \"ä\")' => SET @q = 'INSERT INTO photos (id, title) VALUES (LAST_INSERT_ID(1), \"ä\")'",
			"PREPARE s FROM @q", "SELECT ROW_COUNT()",
			"SET @q = 'SELECT 2'",
			"EXECUTE s => INSERT INTO photos (id, title) VALUES (LAST_INSERT_ID({p1}), \"ä\")", left,
			"PREPARE s FROM @`q`;", "EXECUTE s", left, all,
		}},
		{"names", []string{
			"PREPARE a FROM 'DO NEXTVAL(''photos'')' => PREPARE a FROM 'DO LAST_INSERT_ID(1)'",
			"PREPARE b FROM 'SELECT 5'", "EXECUTE b", "EXECUTE a => DO LAST_INSERT_ID({p1})", left,
			"PREPARE A FROM 'SELECT 6'", "EXECUTE a", left,
			"PREPARE b FROM 'DO NEXTVAL(''photos'')' => PREPARE b FROM 'DO LAST_INSERT_ID(1)'",
			"EXECUTE a", "EXECUTE b => DO LAST_INSERT_ID({p1})", "EXECUTE a", left,
			"DEALLOCATE PREPARE nobody", "EXECUTE nobody", left,
		}},
	}
	o.run(t, scripts)
	if o.Servers[0].IsMariaDB() {
		o.run(t, []script{{"at once", []string{
			"EXECUTE IMMEDIATE 'INSERT INTO photos (id, n) VALUES (NEXTVAL(''photos''), ?)' USING 5 => EXECUTE IMMEDIATE 'INSERT INTO photos (id, n) VALUES (LAST_INSERT_ID({p1}), ?)' USING 5",
			left,
			"EXECUTE IMMEDIATE 'SELECT NEXTVAL(''photos''), ROW_COUNT()' => EXECUTE IMMEDIATE 'SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL(''photos'')`, ROW_COUNT()'",
			"EXECUTE IMMEDIATE 'SELECT 1'",
			"EXECUTE IMMEDIATE 'INSERT INTO photos (id) VALUES (NEXTVAL(''photos'')' => EXECUTE IMMEDIATE 'INSERT INTO photos (id) VALUES (LAST_INSERT_ID({p1})'",
			"PREPARE s FROM 'SELECT ? + 1 AS a'",
			"EXECUTE s USING «NEXTVAL('photos')»",
			left, all,
		}}})
	}
}

// Where it is not certain what EXECUTE means, or a number might be used twice, it is refused.
func TestATextPreparedAsTextIsNeverExecutedWithOldNumbers(t *testing.T) {
	o := newOracle(t, setup{}, append([]string{
		"CREATE PROCEDURE again() EXECUTE s",
		"CREATE PROCEDURE another() PREPARE s FROM 'SELECT 99'",
	}, photosTables...)...)
	o.fresh(t)
	log := logStatements(t, o.Servers[0])
	c := o.Conn(t, o.Schemas[0], multi)
	const prepare = "PREPARE s FROM 'INSERT INTO photos (id) VALUES (NEXTVAL(''photos''))'"
	numbers := func() string { return value(t, c, "SELECT CONCAT(COUNT(DISTINCT id), ' ', COUNT(*)) FROM photos") }
	exec(t, c, "ALTER TABLE photos DROP PRIMARY KEY", prepare, "EXECUTE s", "EXECUTE s")
	if got := numbers(); got != "5 5" {
		t.Errorf("after two executions: got %s, want 5 numbers in 5 rows", got)
	}
	wantError(t, c, 1242, "CALL again()")
	if got := numbers(); got != "5 5" {
		t.Errorf("after an execution in a procedure: got %s, want 5 numbers in 5 rows", got)
	}
	wantError(t, c, 1235, "EXECUTE s", "PREPARE it again") // the procedure may have prepared another
	for _, change := range []string{
		"CALL another()", "SET sql_mode = 'ANSI_QUOTES'", "SET NAMES latin1", "SET collation_connection = 'latin1_bin'", "SELECT 1; SET sql_mode = ''",
	} {
		exec(t, c, prepare, "EXECUTE s", change)
		wantError(t, c, 1235, "EXECUTE s", "PREPARE it again")
	}
	exec(t, c, prepare, "INSERT INTO photos (id) VALUES (NEXTVAL('photos')); SELECT LAST_INSERT_ID()", "EXECUTE s")
	wantError(t, c, 1235, "EXECUTE s; SELECT 1", "one by one")
	wantError(t, c, 1235, "PREPARE t FROM 'SELECT 1'; EXECUTE t", "one by one")
	wantError(t, c, 1235, "/*!50000 EXECUTE */ s", "this form")
	exec(t, c, "EXECUTE s", "SET TRANSACTION READ ONLY")
	wantError(t, c, 1235, "EXECUTE s", "SET TRANSACTION")
	exec(t, c, "START TRANSACTION", "ROLLBACK", "EXECUTE s")
	for _, refused := range []string{
		"PREPARE s FROM 'INSERT IGNORE INTO photos (id) SELECT NEXTVAL(''photos'') FROM auto'",
		"PREPARE s FROM 'SELECT 1 + NEXTVAL(''photos''), id FROM photos'",
		"PREPARE s FROM 'INSERT INTO photos (id) VALUES (NEXTVAL(?))'",
		"PREPARE s FROM 'INSERT INTO photos (id, n) VALUES (NEXTVAL(''photos''), ROW_COUNT())'",
		"PREPARE ` s` FROM CONCAT('DO ', 'NEXTVAL(''photos'')')",
		"PREPARE s FROM 'DO NEXTVAL(''photos''" + strings.Repeat(" ", 65<<10) + ")'",
		"PREPARE ä FROM 'DO NEXTVAL(''photos'')'",
		"PREPARE `seqproxy: numbers` FROM 'SELECT 1'",
	} {
		_, err := c.ExecContext(t.Context(), refused)
		if e, ok := err.(*mysql.MySQLError); !ok || e.Number != 1235 && (e.Number != 1064 || !strings.Contains(refused, "CONCAT")) {
			t.Errorf("%.80s: got %v, want 1235", refused, err)
		}
	}
	wantError(t, c, 4091, "PREPARE s FROM 'DO NEXTVAL(''nobody'')'")
	// Many of them have an end.
	for i := range 256 {
		if _, err := c.ExecContext(t.Context(), fmt.Sprintf("PREPARE n%d FROM 'DO NEXTVAL(''photos'')'", i)); err != nil {
			checkError(t, "PREPARE of many", err, 1235, "DEALLOCATE")
			if i < 200 {
				t.Errorf("the %dth PREPARE was refused", i)
			}
			break
		}
	}
	// A text that cannot be spliced in the client's character set.
	exec(t, c, "DEALLOCATE PREPARE n1", "SET NAMES gbk")
	_, err := c.ExecContext(t.Context(), "PREPARE s FROM 'INSERT INTO photos (id, title) VALUES (NEXTVAL(''photos''), ''\x81\x5c'')'")
	checkError(t, "gbk", err, 1235, "gbk")
	exec(t, c, "SET NAMES utf8mb4")
	// Another schema: the text would mean its tables.
	other := o.Servers[0].Schema(t)
	exec(t, c, prepare, "USE "+other)
	wantError(t, c, 1235, "EXECUTE s", "schema")
	exec(t, c, "USE "+o.Schemas[0], "EXECUTE s")
	for _, text := range log.since("EXECUTE") {
		if strings.Contains(text, "EXECUTE s") && !strings.Contains(text, "PROCEDURE") && !strings.Contains(text, "again") {
			t.Errorf("reached the server: %s", text)
		}
	}
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	w.query(prepare)
	w.query("EXECUTE s")
	w.do(0x1f, "") // COM_RESET_CONNECTION
	if e := serverError(t, w.query("EXECUTE s")); e.Code != 1243 {
		t.Errorf("EXECUTE after COM_RESET_CONNECTION: got %v, want 1243", e)
	}
}

func TestATextPreparedAsTextIsRelayedWhereItsSequencesAreNotServed(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(p *proxy.Options) { p.Unknown = proxy.UnknownRelay }}, photosTables...)
	o.run(t, []script{{"the server's own words", []string{
		"PREPARE s FROM 'DO NEXTVAL(''nobody'')'",
		"PREPARE s FROM 'SELECT NEXTVAL(nobody)'",
		"EXECUTE s",
		"PREPARE s FROM 'SELECT NEXTVAL(''photos'') AS a' => PREPARE s FROM 'SELECT LAST_INSERT_ID(1) AS a'",
		"EXECUTE s => SELECT LAST_INSERT_ID({p1}) AS a",
		left,
	}}})
}

// Else the server would go on to make the keys, which those of the sequence may meet.
func TestAnInsertPreparedAsTextHasToBePreparedAgainWhenItsTableIsBound(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "PREPARE s FROM 'INSERT INTO photos (title) VALUES (''prepared'')'", "PREPARE n FROM 'SELECT COUNT(*) FROM photos'", "EXECUTE s")
	column := sequence.Column{Schema: o.Schemas[0], Table: "photos", Column: "id"}
	if _, err := o.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{OwnedBy: &column}); err != nil {
		t.Fatal(err)
	}
	wantError(t, c, 1615, "EXECUTE s", "OWNED BY")
	exec(t, c, "CREATE PROCEDURE nothing() DO 1", "CALL nothing()")
	wantError(t, c, 1615, "EXECUTE s", "OWNED BY")
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE title = 'prepared'"); got != "1" {
		t.Errorf("got %s rows, want the one from before OWNED BY", got)
	}
	next := o.nextNumber(t, "photos")
	exec(t, c, "EXECUTE n", "PREPARE s FROM 'INSERT INTO photos (title) VALUES (''prepared'')'", "EXECUTE s")
	if got, want := value(t, c, "SELECT MAX(id) FROM photos WHERE title = 'prepared'"), fmt.Sprint(next); got != want {
		t.Errorf("prepared again: got %s, want the sequence's %s", got, want)
	}
}
