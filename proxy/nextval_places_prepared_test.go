package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

// Checklist 21.
func TestAPreparedNumberInEveryPlaceIsWhatLastInsertIDWouldBe(t *testing.T) {
	o := newOracle(t, setup{}, placesTables...)
	row := ""
	if !o.Servers[0].IsMariaDB() {
		row = "ROW"
	}
	for name, caps := range endings {
		t.Run(name, func(t *testing.T) {
			p := o.pairOfSchemas(t, caps)
			for _, text := range []string{
				"WITH x AS (SELECT 1) SELECT «NEXTVAL('photos')» AS a, ? AS b",
				"SELECT «NEXTVAL('photos')» AS a WHERE ? > 0 GROUP BY 1",
				"SELECT EXISTS (SELECT «NEXTVAL('photos')») AS a, (SELECT «NEXTVAL('photos')» + ?) AS b",
				"SELECT «NEXTVAL('photos')» INTO @v",
				"SET @x = «NEXTVAL('photos')», @y = ?, @z = «NEXTVAL('other')»",
				"SET last_insert_id = «NEXTVAL('photos')»",
				"DO «NEXTVAL('photos')», ?",
				"CALL keep(«NEXTVAL('photos')», ?)",
				"CALL twice(«NEXTVAL('photos')»)",
				"INSERT IGNORE INTO photos (n, id) VALUES (?, «NEXTVAL('photos')»), (5, 1), (6, «NEXTVAL('photos')»)",
				"INSERT IGNORE INTO auto (a, ref) VALUES ('first', «NEXTVAL('photos')»), (?, «NEXTVAL('photos')»)",
				"INSERT INTO taken (id) VALUES («NEXTVAL('photos')») ON DUPLICATE KEY UPDATE hits = hits + ?",
				"INSERT INTO taken (id, hits) VALUES (1, ?) ON DUPLICATE KEY UPDATE ref = «NEXTVAL('photos')»",
				"INSERT INTO taken (id, ref) VALUES (1, «NEXTVAL('photos')»), («NEXTVAL('photos')», ?), (2, «NEXTVAL('other')») ON DUPLICATE KEY UPDATE ref = VALUES(ref)",
				"INSERT INTO taken (id) VALUES («NEXTVAL('photos')») ON DUPLICATE KEY UPDATE ref = «NEXTVAL('photos')», hits = ?",
				"INSERT INTO photos (id, n) SELECT «NEXTVAL('photos')», ? UNION ALL SELECT «NEXTVAL('photos')», 2",
				"REPLACE LOW_PRIORITY INTO taken (id, hits) VALUES (1, ?), («NEXTVAL('photos')», 6), (2, «NEXTVAL('other')»)",
				"INSERT INTO photos (id, n) VALUES ((SELECT «NEXTVAL('photos')»), ?)",
				"EXPLAIN SELECT NEXTVAL('photos'), n FROM photos WHERE id = ? => EXPLAIN SELECT CAST(1 AS UNSIGNED), n FROM photos WHERE id = ?",
				"EXPLAIN UPDATE photos SET id = NEXTVAL('photos') WHERE n = NEXTVAL('photos') => EXPLAIN UPDATE photos SET id = CAST(1 AS UNSIGNED) WHERE n = CAST(1 AS UNSIGNED)",
				"SELECT ? AS a UNION ALL VALUES " + row + "(«NEXTVAL('photos')»), " + row + "(«NEXTVAL('photos')»)",
				"INSERT INTO photos (id, n) VALUES («NEXTVAL('photos')», ?) RETURNING id + 0 AS a, 'x' AS b",
				"REPLACE INTO photos (id) VALUES («NEXTVAL('photos')»), («NEXTVAL('photos')») RETURNING id + 1 AS a",
			} {
				if strings.Contains(text, "RETURNING") && !o.Servers[0].IsMariaDB() {
					continue
				}
				o.prepare(t, p, text).executeAndAsk()
				p.query("SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(), @x, @y, @z, @v")
			}
			for _, table := range []string{"photos", "taken", "auto", "keyless"} {
				pp := preparedPair{o: o, t: t, p: p}
				pp.sameRows("SELECT * FROM " + table + " ORDER BY 1, 2")
			}
		})
	}
}

// twice finds a number that is in two rows, of a result or of a table.
type twice struct {
	t    *testing.T
	o    *oracle
	w    *wire
	seen map[string]string // the text that made each number
}

// check takes the numbers out of an answer's rows. Each must be new.
func (tw *twice) check(text string, rows [][]string) {
	tw.t.Helper()
	for _, row := range rows {
		in := map[string]bool{}
		for _, v := range row {
			if len(v) != 7 || v[0] != '7' || in[v] { // not a number of this test's sequence
				continue
			}
			in[v] = true
			if by, again := tw.seen[v]; again {
				tw.t.Errorf("%s: number %s is in rows twice; the first text was %s", text, v, by)
			}
			tw.seen[v] = text
		}
	}
}

// binaryNumbers finds the numbers in the binary rows of an answer.
func binaryNumbers(answer []byte) (rows [][]string) {
	for _, p := range split(answer) {
		var row []string
		for i := 0; i+8 <= len(p); i++ {
			if n := binary.LittleEndian.Uint64(p[i:]); n > 7_000_000 && n < 8_000_000 {
				row = append(row, strconv.FormatUint(n, 10))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// A text that would put one number into two rows must be refused, or give each its own, whatever
// makes the rows.
func TestNoConstructPutsOneNumberIntoTwoRows(t *testing.T) {
	o := newOracle(t, setup{}, append([]string{
		"CREATE TABLE sink (v BIGINT UNSIGNED, w BIGINT UNSIGNED, k INT UNIQUE)",
		"CREATE PROCEDURE pour(a BIGINT UNSIGNED) INSERT INTO sink (v) VALUES (a)",
	}, photosTables...)...)
	o.fresh(t)
	o.Servers[0].Exec(t, "UPDATE "+o.SequenceSchema+".sequence SET id = 7000000 WHERE name = 'other'")
	tw := twice{t, o, o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Capabilities: allFraming &^ protocol.DeprecateEOF}), map[string]string{}}
	given, refused := 0, 0
	for _, text := range []string{
		"SELECT NEXTVAL('other'), NEXTVAL('other') UNION ALL SELECT NEXTVAL('other'), 0",
		"SELECT NEXTVAL('other') GROUP BY 1 WITH ROLLUP",
		"SELECT NEXTVAL('other') GROUP BY ROLLUP(1)",
		"SELECT NEXTVAL('other') AS a GROUP BY a, 'x' WITH ROLLUP",
		"SELECT (SELECT NEXTVAL('other')) GROUP BY 1 WITH ROLLUP",
		"SELECT MAX(NEXTVAL('other')) GROUP BY 1 WITH ROLLUP",
		"SELECT NEXTVAL('other') FROM DUAL GROUP BY 1 WITH /**/ ROLLUP",
		"SELECT NEXTVAL('other') FROM photos",
		"SELECT NEXTVAL('other') + 0 FROM photos",
		"SELECT NEXTVAL('other') FROM (SELECT 1 UNION SELECT 2) d",
		"SELECT NEXTVAL('other') FROM (VALUES (1), (2)) d",
		"SELECT NEXTVAL('other') FROM JSON_TABLE('[1,2,3]', '$[*]' COLUMNS (a INT PATH '$')) j",
		"SELECT d.n FROM (SELECT NEXTVAL('other') AS n) d, photos",
		"SELECT d.n FROM photos, LATERAL (SELECT NEXTVAL('other') AS n) d",
		"WITH x AS (SELECT NEXTVAL('other') AS n) SELECT n FROM x UNION ALL SELECT n FROM x",
		"WITH x AS (SELECT NEXTVAL('other') AS n) SELECT n FROM x, photos",
		"WITH RECURSIVE x AS (SELECT NEXTVAL('other') AS n, 1 AS i UNION ALL SELECT n, i + 1 FROM x WHERE i < 4) SELECT n FROM x",
		"WITH RECURSIVE x AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM x WHERE i < 4) SELECT NEXTVAL('other') FROM x",
		"WITH RECURSIVE x AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM x WHERE i < 4) SELECT (SELECT NEXTVAL('other')) FROM x",
		"WITH x AS (SELECT 1 UNION SELECT 2) SELECT NEXTVAL('other') GROUP BY 1",
		"VALUES (NEXTVAL('other')), (NEXTVAL('other'))",
		"VALUES ROW(NEXTVAL('other')), ROW(NEXTVAL('other'))",
		"SELECT * FROM (VALUES (NEXTVAL('other')), (NEXTVAL('other'))) v, photos",
		"TABLE photos ORDER BY NEXTVAL('other')",
		"SELECT id, @n FROM photos WHERE (@n := NEXTVAL('other')) > 0",
		"INSERT INTO sink (v) VALUES (NEXTVAL('other')), (NEXTVAL('other'))",
		"INSERT INTO sink (v) SELECT NEXTVAL('other')",
		"INSERT INTO sink (v) SELECT NEXTVAL('other') FROM photos",
		"INSERT INTO sink (v) SELECT NEXTVAL('other') UNION ALL SELECT NEXTVAL('other') FROM photos",
		"INSERT INTO sink (v) SELECT NEXTVAL('other') GROUP BY 1 WITH ROLLUP",
		"INSERT INTO sink (v) SELECT (SELECT NEXTVAL('other')) FROM photos",
		"INSERT INTO sink (v) WITH x AS (SELECT NEXTVAL('other') AS n) SELECT n FROM x, photos",
		"INSERT INTO sink (v) SELECT n FROM (SELECT NEXTVAL('other') AS n) d, photos",
		"INSERT INTO sink (v) VALUES ((SELECT NEXTVAL('other') FROM photos LIMIT 1)), ((SELECT NEXTVAL('other')))",
		"REPLACE INTO sink (v, k) VALUES (NEXTVAL('other'), 1), (NEXTVAL('other'), 2)",
		"INSERT INTO sink (v, k) VALUES (NEXTVAL('other'), 1), (NEXTVAL('other'), 2) ON DUPLICATE KEY UPDATE v = VALUES(v)",
		"INSERT INTO sink (k) VALUES (1), (2) ON DUPLICATE KEY UPDATE v = NEXTVAL('other')",
		"INSERT INTO sink (k) VALUES ROW(1), ROW(2) ON DUPLICATE KEY UPDATE v = NEXTVAL('other')",
		"INSERT INTO sink (k) SELECT 1 UNION ALL SELECT 2 ON DUPLICATE KEY UPDATE v = NEXTVAL('other')",
		"INSERT INTO sink (k) VALUES (1) UNION ALL VALUES (2) ON DUPLICATE KEY UPDATE v = NEXTVAL('other')",
		"INSERT INTO sink (k) SELECT k FROM sink s WHERE k > 0 ON DUPLICATE KEY UPDATE v = NEXTVAL('other')",
		"INSERT INTO sink (k) VALUES (1) ON DUPLICATE KEY UPDATE v = NEXTVAL('other')",
		"INSERT INTO sink (v) VALUES (1), (2) RETURNING NEXTVAL('other')",
		"INSERT INTO sink (v) VALUES (1), (2) RETURNING w AS x, NEXTVAL('other')",
		"INSERT INTO sink (v) SELECT 1 UNION ALL SELECT 2 RETURNING v AS x, NEXTVAL('other')",
		"DELETE FROM sink RETURNING v AS x, NEXTVAL('other')",
		"INSERT INTO sink (v) VALUES (NEXTVAL('other')), (NEXTVAL('other')) RETURNING k",
		"UPDATE sink SET v = NEXTVAL('other')",
		"UPDATE sink SET v = (SELECT NEXTVAL('other'))",
		"UPDATE sink s JOIN (SELECT NEXTVAL('other') AS n) d SET s.v = d.n",
		"UPDATE sink SET v = IF(k, NEXTVAL('other'), v)",
		"WITH x AS (SELECT NEXTVAL('other') AS n) UPDATE sink SET v = (SELECT n FROM x)",
		"CALL pour(NEXTVAL('other'))",
		"SET @n = NEXTVAL('other')",
		"EXECUTE again USING NEXTVAL('other')",
		"SET STATEMENT max_statement_time = 5 FOR INSERT INTO sink (v) SELECT NEXTVAL('other') FROM photos",
		"BEGIN NOT ATOMIC FOR i IN 1..3 DO INSERT INTO sink (v) VALUES (NEXTVAL('other')); END FOR; END",
		"EXECUTE IMMEDIATE 'INSERT INTO sink (v) SELECT NEXTVAL(''other'') FROM photos'",
		"CREATE TABLE made AS SELECT NEXTVAL('other') AS n FROM photos",
		"CREATE OR REPLACE VIEW seen AS SELECT NEXTVAL('other') AS n",
		"INSERT INTO sink (v) VALUES (NEXTVAL('other')); INSERT INTO sink (v) SELECT NEXTVAL('other'); CALL pour(NEXTVAL('other')); SELECT NEXTVAL('other')",
		"INSERT INTO sink (v) VALUES (NEXTVAL('other')); INSERT INTO sink (v) SELECT NEXTVAL('other') FROM photos",
	} {
		tw.w.query("DELETE FROM sink WHERE v = 0 OR k IS NULL")
		tw.w.query("INSERT IGNORE INTO sink (k) VALUES (1), (2), (3)")
		tw.w.query("UPDATE sink SET v = NULL")
		for range 2 {
			switch answer := tw.w.query(text); {
			case answer[4] != 0xff:
				given++
				tw.check(text, tw.w.decode(answer))
			case serverError(t, answer).Code == 1235:
				refused++
			}
			_, rows := tw.w.result("SELECT v FROM sink WHERE v IS NOT NULL")
			tw.check(text, rows)
			tw.w.query("UPDATE sink SET v = NULL")
		}
		if strings.Contains(text, "; ") {
			continue
		}
		answer := tw.w.do(protocol.ComStmtPrepare, text)
		if answer[4] != 0 {
			continue
		}
		for range 2 {
			tw.w.send(packet(execution(binary.LittleEndian.Uint32(answer[5:]), nil, false)))
			if got := tw.w.receive(protocol.ShapeResult, nil); got[4] != 0xff {
				given++
				tw.check("prepared: "+text, binaryNumbers(got))
			}
			_, rows := tw.w.result("SELECT v FROM sink WHERE v IS NOT NULL")
			tw.check("prepared: "+text, rows)
			tw.w.query("UPDATE sink SET v = NULL")
		}
	}
	if given < 30 || given+refused < 100 {
		t.Errorf("%d texts were given numbers and %d refused: too few to prove anything", given, refused)
	}
}

// outlive executes all statements twice after each of the changes, and compares. A server prepares
// a statement anew when the tables that it names have changed since, and its new definitions of
// columns and parameters must fit those that the proxy has added. args returns the arguments of the
// next execution, given the index of the change before it.
func (o *oracle) outlive(t *testing.T, p *pair, all []*preparedPair, changes []string, args func(change int) []argument) {
	t.Helper()
	for i, change := range changes {
		p.query(change)
		for _, pp := range all {
			for k := range 2 {
				pp.execute(k == 0, args(i)...)
				p.query(insertIDs)
			}
		}
	}
}

func TestAPreparedNumberOutlivesChangesOfTheTable(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	for name, caps := range endings {
		t.Run(name, func(t *testing.T) {
			p := o.pairOfSchemas(t, caps)
			var all []*preparedPair
			for _, text := range []string{
				"INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», ?), («NEXTVAL('photos')», ?)",
				"INSERT INTO photos VALUES («NEXTVAL('photos')», ?, «NEXTVAL('other')», ?)",
				"SELECT «NEXTVAL('photos')» AS a, (SELECT MAX(n) FROM photos) AS b, ? AS c, ? AS d",
				"UPDATE photos SET title = ? WHERE n = ? AND LAST_INSERT_ID() > 0",
			} {
				all = append(all, o.prepare(t, p, text))
			}
			o.outlive(t, p, all, []string{
				"DO 0",
				"ALTER TABLE photos MODIFY n VARCHAR(30) CHARACTER SET latin1",
				"ALTER TABLE photos ADD COLUMN m INT FIRST",
				"ALTER TABLE photos DROP COLUMN m, MODIFY title VARBINARY(200) NOT NULL DEFAULT ''",
				"ALTER TABLE photos RENAME COLUMN title TO label",
				"ALTER TABLE photos RENAME COLUMN label TO title",
			}, func(change int) []argument {
				return []argument{textArg(mysql.MYSQL_TYPE_VAR_STRING, fmt.Sprint("t", change)), textArg(mysql.MYSQL_TYPE_VAR_STRING, fmt.Sprint(change))}
			})
			all[0].sameRows("SELECT * FROM photos ORDER BY 1, 2")
		})
	}
}
