package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

func TestLastInsertIDIsRightWhicheverNumberCameLast(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	const given = "SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a"
	o.run(t, []script{
		{"numbers and rows in turn", []string{
			insertIDs,
			given, insertIDs,
			"INSERT INTO auto (a) VALUES ('x')", insertIDs,
			given, insertIDs,
			"INSERT INTO photos (id) VALUES (555)", insertIDs,
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»)", insertIDs,
			"INSERT INTO auto (a) VALUES ('y'), ('z')", insertIDs,
			"SELECT LAST_INSERT_ID(8)", insertIDs,
			given, insertIDs,
			"UPDATE photos SET n = LAST_INSERT_ID(9) WHERE id = 1", insertIDs,
			"SET last_insert_id = 10", insertIDs,
			"INSERT INTO auto SET a = 'u'", insertIDs,
			"INSERT INTO auto (id, a) VALUES (900, 'explicit')", insertIDs,
			given,
			"DELETE FROM photos WHERE id = 555", insertIDs,
			given,
			"REPLACE INTO auto (a) VALUES ('x')", insertIDs,
			"INSERT IGNORE INTO auto (a) VALUES ('x')", insertIDs,
			"INSERT INTO auto (a) VALUES ('x') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), ref = 1", insertIDs,
		}},
		{"after SELECT NEXTVAL, explicit key", []string{
			given, "INSERT INTO photos (id) VALUES (LAST_INSERT_ID())", insertIDs,
			given, "INSERT INTO photos (id, parent) VALUES (600, LAST_INSERT_ID())", insertIDs,
			given, "INSERT INTO auto (id, a) VALUES (601, 'explicit')", insertIDs,
			given, "INSERT INTO auto (a) VALUES ('made')", insertIDs,
			given, "INSERT INTO auto (a, ref) VALUES ('child', LAST_INSERT_ID())", insertIDs,
			given, "UPDATE photos SET parent = LAST_INSERT_ID() WHERE id = 2", "SELECT ROW_COUNT()", insertIDs,
			given, "SELECT * FROM photos WHERE parent < LAST_INSERT_ID() ORDER BY id", insertIDs,
			given, "INSERT INTO photos (id, parent) SELECT LAST_INSERT_ID(), 5", insertIDs,
			given, "DELETE FROM photos WHERE id = LAST_INSERT_ID()", "SELECT ROW_COUNT()", insertIDs,
			given, "SET @x = LAST_INSERT_ID()", "SELECT @x", insertIDs,
			given, "DO LAST_INSERT_ID() + 1", insertIDs,
			given, "CREATE TABLE c AS SELECT LAST_INSERT_ID() AS v", "SELECT * FROM c", insertIDs,
			given, "SELECT 1; SELECT LAST_INSERT_ID()", insertIDs,
			given, "SELECT LAST_INSERT_ID() INTO @y", "SELECT ROW_COUNT(), @y", insertIDs,
			given, "SELECT EXISTS (SELECT 1 FROM photos WHERE id < @@identity)", insertIDs,
			given, "PREPARE s FROM 'SELECT LAST_INSERT_ID() AS v'", "EXECUTE s", insertIDs,
			given, "EXECUTE IMMEDIATE 'SELECT LAST_INSERT_ID() AS v'", insertIDs,
			"SELECT * FROM photos ORDER BY id", "SELECT * FROM auto ORDER BY id",
		}},
		{"every way to make or not to make a row", func() (steps []string) {
			for _, insert := range []string{
				"INSERT INTO auto (a) VALUES ('a1'), ('a2')",
				"INSERT INTO auto (id, a) VALUES (200, 'b1'), (201, 'b2')",
				"INSERT INTO auto (id, a) VALUES (300, 'c1'), (NULL, 'c2'), (0, 'c3')",
				"INSERT INTO auto (id, a) VALUES (NULL, 'd1'), (400, 'd2'), (NULL, 'd3')",
				"UPDATE auto SET ref = 1", "DELETE FROM auto WHERE id = 401", "CREATE TABLE other (a INT)", "INSERT INTO other VALUES (1)",
				"UPDATE auto SET ref = LAST_INSERT_ID(777) WHERE id = 100", "INSERT INTO keyless (v) VALUES (LAST_INSERT_ID(555))",
				"REPLACE INTO auto (a) VALUES ('a1')", "REPLACE INTO auto (id, a) VALUES (200, 'b1')",
				"INSERT IGNORE INTO auto (a) VALUES ('a1'), ('a2')", "INSERT IGNORE INTO auto (a) VALUES ('a1'), ('e1')",
				"INSERT INTO auto (a) VALUES ('a1') ON DUPLICATE KEY UPDATE ref = 2", "INSERT INTO auto (a) VALUES ('a1') ON DUPLICATE KEY UPDATE ref = 2",
				"INSERT INTO auto (a) VALUES ('a1') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
				"INSERT INTO auto (a) VALUES ('f1'), ('a1') ON DUPLICATE KEY UPDATE ref = 3", "INSERT INTO auto (a) VALUES ('a1'), ('f2') ON DUPLICATE KEY UPDATE ref = 4",
				"INSERT INTO auto (a) VALUES ('a1')", "INSERT INTO auto (a) VALUES ('g1'), ('a1')",
				"INSERT INTO auto (a) SELECT CONCAT('h', id) FROM photos", "INSERT INTO auto (id, a) SELECT id + 5000, CONCAT('i', id) FROM photos",
				"INSERT INTO auto (a, ref) VALUES ('j1', LAST_INSERT_ID())", "SELECT LAST_INSERT_ID(42)", "SET last_insert_id = 66",
				"SET insert_id = 8000", "INSERT INTO auto (a) VALUES ('k1')", "SET auto_increment_increment = 10, auto_increment_offset = 3",
				"INSERT INTO auto (a) VALUES ('l1'), ('l2')", "SET auto_increment_increment = 1, auto_increment_offset = 1",
				"BEGIN", "INSERT INTO auto (a) VALUES ('m1')", "ROLLBACK", "ALTER TABLE auto ADD z INT", "TRUNCATE TABLE keyless",
			} {
				// Alone, after a number given by the proxy, and after one inside an INSERT.
				steps = append(steps, insert, insertIDs)
				again := strings.NewReplacer("1'", "1x'", "2'", "2x'", "3'", "3x'", "CONCAT('", "CONCAT('x", "TABLE other", "TABLE another", " z INT", " y INT",
					"(200,", "(2000,", "(201,", "(2001,", "(300,", "(3000,", "(400,", "(4000,", "= 8000", "= 9000", "5000", "6000").Replace(insert)
				steps = append(steps, given, again, insertIDs)
			}
			return append(steps, "SELECT * FROM auto ORDER BY id", "SELECT * FROM keyless")
		}()},
		{"in stored code", []string{
			"CREATE PROCEDURE p(OUT o BIGINT UNSIGNED) BEGIN SET o = LAST_INSERT_ID(); INSERT INTO auto (a) VALUES ('in p'); END",
			given, "CALL p(@o)", "SELECT @o", insertIDs,
			"CREATE FUNCTION f() RETURNS BIGINT UNSIGNED RETURN LAST_INSERT_ID()",
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»)", "SELECT f() = LAST_INSERT_ID()", insertIDs,
		}},
		{"after statements that fail", []string{
			given, "INSERT INTO auto (a) VALUES ('first')", insertIDs,
			given, "INSERT INTO auto (a) VALUES ('new'), ('first')", insertIDs,
			given, "SELECT nothing", insertIDs,
			given, "SELEKT", insertIDs,
			given, "SELECT LAST_INSERT_ID(), nothing", insertIDs,
			given, "INSERT INTO photos (id) VALUES (1)", insertIDs,
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»)", "INSERT INTO photos (id, n) VALUES (LAST_INSERT_ID(), 1)", insertIDs,
			given, "UPDATE photos SET id = 1 WHERE id = 2", insertIDs,
			"SELECT * FROM auto ORDER BY id",
		}},
	})
}

// Checklist 30.
func TestWhatAStatementLeavesBehindIsThereAfterAnAnswerOfTheProxy(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	const given = "SELECT NEXTVAL('photos') a => SELECT LAST_INSERT_ID({p1}) a"
	// Statements that read these values, each alone and all in one.
	asks := []string{
		"SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SHOW WARNINGS", "SHOW ERRORS", "SELECT @@warning_count, @@error_count",
		"SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS(), @@warning_count",
		"SELECT ROW_COUNT() AS n, @@identity FROM photos LIMIT 2",
		"INSERT INTO keyless VALUES (LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS())",
		"SET @r = ROW_COUNT(), @f = FOUND_ROWS(), @i = LAST_INSERT_ID()",
		"GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT",
	}
	var scripts []script
	for _, before := range []struct {
		name  string
		steps []string
	}{
		{"right after it", nil},
		{"rows between", []string{"SELECT id FROM photos WHERE id > 1"}},
		{"no rows between", []string{"SELECT id FROM photos WHERE 0"}},
		{"rows with warnings between", []string{"SELECT id, 1/0, CAST('x' AS SIGNED) FROM photos"}},
		{"counted rows between", []string{"SELECT SQL_CALC_FOUND_ROWS id FROM photos LIMIT 1"}},
		{"changed rows between", []string{"UPDATE photos SET n = 5"}},
		{"changed rows with warnings between", []string{"SET sql_mode = ''", "UPDATE photos SET n = 'x'"}},
		{"inserted rows between", []string{"INSERT INTO auto (a) VALUES ('k'), ('l')"}},
		{"an error between", []string{"SELECT * FROM nowhere"}},
		{"a duplicate between", []string{"INSERT INTO photos (id) VALUES (1)"}},
		{"SET between", []string{"SELECT id FROM photos", "SET @a = 1"}},
		{"DO between", []string{"SELECT id FROM photos", "DO 1"}},
		{"INTO between", []string{"SELECT COUNT(*) FROM photos INTO @c"}},
		{"SHOW between", []string{"SHOW VARIABLES LIKE 'sql_mode'"}},
		{"BEGIN between", []string{"UPDATE photos SET n = 6", "BEGIN"}},
		{"several between", []string{"SELECT 1; SELECT id FROM photos; SELECT 1/0"}},
	} {
		var steps []string
		for _, ask := range asks {
			steps = append(steps, "UPDATE photos SET n = 4", "SELECT id FROM photos", given)
			steps = append(steps, before.steps...)
			steps = append(steps, ask, insertIDs)
		}
		steps = append(steps, "SELECT * FROM keyless", "SELECT @r, @f, @i, @n")
		scripts = append(scripts, script{before.name, steps})
	}
	scripts = append(scripts, script{"after the proxy's other answers", []string{
		"UPDATE photos SET n = 3",
		"SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT(), FOUND_ROWS()",
		"UPDATE photos SET n = 2",
		given, "SELECT LAST_INSERT_ID() x", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
		given, "SELECT id FROM photos", "SELECT LAST_INSERT_ID() x", "DO 1", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
		"UPDATE photos SET n = 1",
		given, "SELECT 1 FROM photos", "SELECT LAST_INSERT_ID() x", "SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()",
	}})
	o.run(t, scripts, "packets with EOF")
}

// Checklist 30.
func TestWhatAStatementLeavesBehindIsThereForPreparedStatements(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	n := o.nextNumber(t, "photos")
	run := func(proxied bool) (answers []string) {
		o.fresh(t)
		c := o.DirectConn(t, 0, o.Schemas[0], nil)
		given := func(i uint64) string { return fmt.Sprintf("SELECT LAST_INSERT_ID(%d)", n+i) }
		if proxied {
			c = o.Conn(t, o.Schemas[0], nil)
			given = func(uint64) string { return "SELECT NEXTVAL('photos')" }
		}
		defer c.Close()
		// The driver prepares a text with arguments, executes it and closes it.
		const ask = "SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS(), @@warning_count, ?"
		exec(t, c, "UPDATE photos SET n = 4", given(0))
		answers = append(answers, driverAnswer(c, true, ask, 1))
		exec(t, c, "UPDATE photos SET n = 5", given(1))
		answers = append(answers, driverAnswer(c, true, "SELECT id, 1/0 FROM photos WHERE id < ?", 3), driverAnswer(c, true, ask, 1))
		exec(t, c, "UPDATE photos SET n = 6", given(2))
		answers = append(answers, driverAnswer(c, true, "SELECT nothing, ?", 3), driverAnswer(c, true, ask, 1))
		exec(t, c, given(3))
		answers = append(answers, driverAnswer(c, false, "UPDATE photos SET n = ?", 3), driverAnswer(c, true, ask, 1))
		exec(t, c, given(4))
		answers = append(answers, driverAnswer(c, false, "SET @x = ?", 3), driverAnswer(c, true, ask, 1), driverAnswer(c, true, "SELECT @x, ROW_COUNT(), ?", 1))
		exec(t, c, given(5))
		answers = append(answers, driverAnswer(c, false, "SELECT id FROM photos WHERE id = ? INTO @x", 3), driverAnswer(c, true, ask, 1))
		return answers
	}
	got, want := run(true), run(false)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("answer %d: got\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
}

func TestAStatementThatCannotKeepWhatItReadsIsRefused(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	const mixed = "INSERT INTO photos (id, parent, n) VALUES (NEXTVAL('photos'), LAST_INSERT_ID(), ROW_COUNT())"
	exec(t, c, "SELECT LAST_INSERT_ID(42)", "UPDATE photos SET n = 4")
	before := o.nextNumber(t, "photos")
	wantError(t, c, 1235, mixed, "LAST_INSERT_ID()", "ROW_COUNT()")
	stmt, err := c.PrepareContext(t.Context(), mixed)
	if err == nil {
		_, err = stmt.Exec()
		stmt.Close()
	}
	checkError(t, "prepared", err, 1235)
	if after := o.nextNumber(t, "photos"); after != before {
		t.Errorf("%d numbers were taken, want 0", after-before)
	}
	// A value that the proxy knows is kept.
	n := value(t, c, "SELECT NEXTVAL('photos')")
	exec(t, c, mixed)
	if got := value(t, c, "SELECT CONCAT(parent, ' ', n) FROM photos WHERE id = LAST_INSERT_ID()"); got != n+" -1" {
		t.Errorf("previous id and row count: got %s, want %s -1", got, n)
	}
}

// Checklist 30.
func TestWhatAStatementLeavesBehindIsThereInAPipeline(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	n := o.nextNumber(t, "photos")
	run := func(addr string, given []string) string {
		o.fresh(t)
		w := o.Wire(t, addr, wireLogin{Schema: o.Schemas[0]})
		var all []byte
		texts := []string{
			"SELECT id FROM photos", given[0], "SELECT nothing", "SELECT LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()",
			given[1], "SELECT id FROM photos", "SELECT nothing", "SELECT LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()",
			given[2], "INSERT INTO auto (a) VALUES ('x')", given[3], "SELECT LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()",
			"INSERT INTO auto (a) VALUES ('y')", "SELECT id FROM photos", "SELECT LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT()",
		}
		for _, text := range texts {
			all = append(all, packet(command(protocol.ComQuery, text))...)
		}
		w.send(all)
		var answers []byte
		for range texts {
			answers = append(answers, w.receive(protocol.ShapeResult, nil)...)
		}
		return describe(answers)
	}
	var direct, proxied []string
	for i := range uint64(4) {
		direct = append(direct, fmt.Sprintf("SELECT LAST_INSERT_ID(%d) AS v", n+i))
		proxied = append(proxied, "SELECT NEXTVAL('photos') AS v")
	}
	got, want := run(o.Addr(), proxied), run(o.Servers[0].Addr(), direct)
	if got != want {
		g, w := differing(got, want)
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}
