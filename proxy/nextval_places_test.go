package proxy_test

import "testing"

// placesTables are the tables of the scripts about places, with those of photosTables.
var placesTables = append([]string{
	"CREATE TABLE taken (id BIGINT UNSIGNED PRIMARY KEY, hits INT NOT NULL DEFAULT 0, ref BIGINT UNSIGNED)",
	"INSERT INTO taken (id) VALUES (1), (2)",
	"CREATE PROCEDURE keep(a BIGINT UNSIGNED, b BIGINT UNSIGNED) INSERT INTO keyless (v, w) VALUES (a, b)",
	"CREATE PROCEDURE twice(a BIGINT UNSIGNED) BEGIN SELECT a; SELECT a + 1, LAST_INSERT_ID(); END",
}, photosTables...)

func TestANumberInEveryPlaceIsWhatLastInsertIDWouldBe(t *testing.T) {
	o := newOracle(t, setup{}, placesTables...)
	const all, taken, keyless = "SELECT * FROM photos ORDER BY id", "SELECT * FROM taken ORDER BY id", "SELECT * FROM keyless"
	scripts := []script{
		{"queries without a table", []string{
			"WITH x AS (SELECT 1) SELECT «NEXTVAL('photos')» AS a",
			insertIDs,
			"WITH x AS (SELECT 1 AS c), y AS (SELECT 2) SELECT NEXTVAL('photos'), 1 AS b, (SELECT c FROM x) AS c => " +
				"WITH x AS (SELECT 1 AS c), y AS (SELECT 2) SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`, 1 AS b, (SELECT c FROM x) AS c",
			"SELECT «NEXTVAL('photos')» AS a GROUP BY 1",
			"SELECT «NEXTVAL('photos')» AS a, «NEXTVAL('photos')» AS b GROUP BY 1 HAVING a > 0 ORDER BY 2",
			"SELECT 1 AS a WHERE «NEXTVAL('photos')» > 0",
			insertIDs,
			"SELECT 1 AS a WHERE 0 AND «NEXTVAL('photos')» > 0",
			insertIDs,
			"SELECT EXISTS (SELECT «NEXTVAL('photos')») AS a, (SELECT «NEXTVAL('photos')» + 1) AS b",
			"SELECT 1 IN (SELECT «NEXTVAL('photos')») AS a",
			insertIDs,
			"(SELECT «NEXTVAL('photos')» AS a) UNION ALL (SELECT id FROM photos ORDER BY id LIMIT 2)",
			"SELECT CASE WHEN 0 THEN «NEXTVAL('photos')» ELSE «NEXTVAL('photos')» END AS a",
			insertIDs,
		}},
		{"SET and DO", []string{
			"SET @x = «NEXTVAL('photos')»",
			"SELECT ROW_COUNT()",
			insertIDs,
			"SELECT @x",
			"SET @x = «NEXTVAL('photos')» + 1, @y = «NEXTVAL('other')», @z = (SELECT «NEXTVAL('photos')»)",
			"SELECT @x, @y, @z",
			insertIDs,
			"SET sql_select_limit = «NEXTVAL('photos')»",
			"SELECT @@sql_select_limit",
			"SET SESSION sql_select_limit = DEFAULT",
			"SET last_insert_id = «NEXTVAL('photos')»",
			insertIDs,
			"DO «NEXTVAL('photos')»",
			insertIDs,
			"DO «NEXTVAL('photos')», «NEXTVAL('other')»",
			insertIDs,
			"DO NEXTVAL('photos') => DO LAST_INSERT_ID({p1})",
			"SET @x = LAST_INSERT_ID(), @y = NEXTVAL('photos') => SET @x = CAST({p0} AS UNSIGNED), @y = LAST_INSERT_ID({p1})",
			"SELECT @x, @y",
			"SET @nothing.x = «NEXTVAL('photos')»",
			insertIDs,
		}},
		{"CALL", []string{
			"CALL keep(«NEXTVAL('photos')», «NEXTVAL('photos')» + 1)",
			insertIDs,
			"SELECT ROW_COUNT()",
			keyless,
			"CALL twice(«NEXTVAL('photos')»)",
			insertIDs,
			"CALL twice((SELECT «NEXTVAL('photos')»))",
			"CALL nobody(«NEXTVAL('photos')»)",
			insertIDs,
			"CALL keep(«NEXTVAL('photos')»)",
			insertIDs,
		}},
		{"IGNORE", []string{
			"INSERT IGNORE INTO photos (id) VALUES («NEXTVAL('photos')»), («NEXTVAL('photos')»)",
			insertIDs,
			"INSERT IGNORE INTO photos (id, n) VALUES («NEXTVAL('photos')», 1), (1, 2), («NEXTVAL('photos')», 3)",
			"SHOW WARNINGS",
			insertIDs,
			"INSERT IGNORE INTO photos (id, n) VALUES (1, «NEXTVAL('photos')»)",
			insertIDs,
			"INSERT IGNORE photos SET id = «NEXTVAL('photos')», n = 'x'",
			"SHOW WARNINGS",
			"INSERT IGNORE INTO auto (a, ref) VALUES ('first', «NEXTVAL('photos')»), ('new', «NEXTVAL('photos')»)",
			insertIDs,
			"SELECT ROW_COUNT()",
			all, "SELECT * FROM auto ORDER BY id",
		}},
		{"ON DUPLICATE KEY UPDATE", []string{
			"INSERT INTO taken (id) VALUES («NEXTVAL('photos')») ON DUPLICATE KEY UPDATE hits = hits + 1",
			insertIDs,
			"INSERT INTO taken (id, ref) VALUES (1, «NEXTVAL('photos')») ON DUPLICATE KEY UPDATE hits = hits + 1",
			insertIDs,
			"INSERT INTO taken (id, ref) VALUES (1, «NEXTVAL('photos')»), («NEXTVAL('photos')», 2), (2, «NEXTVAL('photos')») ON DUPLICATE KEY UPDATE ref = VALUES(ref)",
			insertIDs,
			"INSERT INTO taken (id) VALUES (1) ON DUPLICATE KEY UPDATE ref = «NEXTVAL('photos')»",
			insertIDs,
			"INSERT INTO taken (id) VALUES (50) ON DUPLICATE KEY UPDATE ref = «NEXTVAL('photos')»",
			insertIDs,
			"INSERT INTO taken (id) VALUES («NEXTVAL('photos')») ON DUPLICATE KEY UPDATE ref = «NEXTVAL('photos')»",
			insertIDs,
			"INSERT INTO taken (id, ref) VALUES (2, «NEXTVAL('photos')») ON DUPLICATE KEY UPDATE ref = «NEXTVAL('photos')», hits = («NEXTVAL('other')»)",
			insertIDs,
			"INSERT INTO taken SET id = 2, hits = (5) ON DUPLICATE KEY UPDATE ref = («NEXTVAL('photos')»), hits = hits + (1)",
			insertIDs,
			"INSERT INTO taken (id) VALUES (2) ON DUPLICATE KEY UPDATE id = «NEXTVAL('photos')»",
			insertIDs,
			"INSERT INTO taken (id) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), ref = «NEXTVAL('photos')»",
			insertIDs,
			"SELECT ROW_COUNT()",
			taken,
		}},
		{"INSERT ... SELECT without a table", []string{
			"INSERT INTO photos (id) SELECT «NEXTVAL('photos')»",
			insertIDs,
			"INSERT INTO photos (id, title) (SELECT «NEXTVAL('photos')», 'a' UNION ALL SELECT «NEXTVAL('photos')», 'b')",
			insertIDs,
			"REPLACE INTO photos (id) SELECT «NEXTVAL('photos')» WHERE 1",
			"INSERT INTO photos (id) SELECT «NEXTVAL('photos')» WHERE 0",
			insertIDs,
			"INSERT INTO photos (id) SELECT «NEXTVAL('photos')» UNION ALL SELECT MAX(id) + 1000 FROM photos",
			insertIDs,
			all,
		}},
		{"other words", []string{
			"INSERT DELAYED INTO photos (id) VALUES («NEXTVAL('photos')»)",
			insertIDs,
			"REPLACE DELAYED INTO photos (id) VALUES («NEXTVAL('photos')»)",
			"REPLACE LOW_PRIORITY INTO taken (id, hits) VALUES (1, 5), («NEXTVAL('photos')», 6), (2, «NEXTVAL('other')»)",
			insertIDs,
			"INSERT INTO photos (id, parent) VALUES ((SELECT «NEXTVAL('photos')»), (SELECT MAX(p.id) FROM (SELECT id FROM photos) p))",
			insertIDs,
			taken,
		}},
		{"EXPLAIN", []string{
			"SELECT LAST_INSERT_ID(42)",
			"EXPLAIN SELECT NEXTVAL('photos') => EXPLAIN SELECT CAST(1 AS UNSIGNED)",
			"EXPLAIN SELECT id, NEXTVAL('photos') FROM photos WHERE id > NEXTVAL('photos') ORDER BY n => " +
				"EXPLAIN SELECT id, CAST(1 AS UNSIGNED) FROM photos WHERE id > CAST(1 AS UNSIGNED) ORDER BY n",
			"DESCRIBE INSERT INTO photos (id) SELECT NEXTVAL('photos') FROM auto ON DUPLICATE KEY UPDATE n = NEXTVAL('other') => " +
				"DESCRIBE INSERT INTO photos (id) SELECT CAST(1 AS UNSIGNED) FROM auto ON DUPLICATE KEY UPDATE n = CAST(1 AS UNSIGNED)",
			"EXPLAIN FORMAT=JSON DELETE FROM photos WHERE id = NEXTVAL('photos') => EXPLAIN FORMAT=JSON DELETE FROM photos WHERE id = CAST(1 AS UNSIGNED)",
			"EXPLAIN SELECT * FROM (SELECT NEXTVAL('photos') AS a, LAST_INSERT_ID(), CONNECTION_ID() > 0 FROM photos) d => " +
				"EXPLAIN SELECT * FROM (SELECT CAST(1 AS UNSIGNED) AS a, LAST_INSERT_ID(), CONNECTION_ID() > 0 FROM photos) d",
			"EXPLAIN SELECT NEXTVAL('photos') AS a FROM nowhere => EXPLAIN SELECT CAST(1 AS UNSIGNED) AS a FROM nowhere",
			insertIDs,
			"EXPLAIN SELECT NEXTVAL('photos'); SELECT NEXTVAL('photos') AS a => EXPLAIN SELECT CAST(1 AS UNSIGNED); SELECT LAST_INSERT_ID({p1}) AS a",
			insertIDs,
		}},
		{"a text of several statements", []string{
			"INSERT INTO photos (id) VALUES («NEXTVAL('photos')»); SELECT LAST_INSERT_ID()",
			insertIDs,
			"SELECT NEXTVAL('photos'); SELECT 1 => SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`; SELECT 1",
			"SELECT 1; SELECT NEXTVAL('photos'); => SELECT 1; SELECT LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`;",
			insertIDs,
			"INSERT INTO photos (id) VALUES (NEXTVAL('photos')), (NEXTVAL('photos')); INSERT INTO keyless (v, w) VALUES (LAST_INSERT_ID(), @@identity); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO photos (id) VALUES (LAST_INSERT_ID({p1})), (CAST({p2} AS UNSIGNED)); INSERT INTO keyless (v, w) VALUES (LAST_INSERT_ID(), @@identity); SELECT LAST_INSERT_ID()",
			"INSERT INTO photos (id) VALUES (NEXTVAL('photos')); INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), NEXTVAL('other')); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO photos (id) VALUES (LAST_INSERT_ID({p1})); INSERT INTO photos (id, parent) VALUES (LAST_INSERT_ID({p2}), CAST({o1} AS UNSIGNED)); SELECT LAST_INSERT_ID()",
			insertIDs,
			"BEGIN; INSERT INTO photos (id) VALUES («NEXTVAL('photos')»); COMMIT; SELECT ROW_COUNT()",
			// Statements behind an error do not run, and their numbers are lost.
			"INSERT INTO photos (id) VALUES (1); INSERT INTO photos (id) VALUES («NEXTVAL('photos')»); SELECT 1",
			insertIDs,
			"SET @x = NEXTVAL('photos'); SET @y = NEXTVAL('photos'); SELECT @x, @y, LAST_INSERT_ID()" +
				" => SET @x = LAST_INSERT_ID({p1}); SET @y = LAST_INSERT_ID({p2}); SELECT @x, @y, LAST_INSERT_ID()",
			"CALL twice(NEXTVAL('photos')); DO NEXTVAL('photos'); SELECT LAST_INSERT_ID() => CALL twice(LAST_INSERT_ID({p1})); DO LAST_INSERT_ID({p2}); SELECT LAST_INSERT_ID()",
			"SELECT LAST_INSERT_ID(42)",
			"INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), LAST_INSERT_ID()); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO photos (id, parent) VALUES (LAST_INSERT_ID({p1}), 42); SELECT LAST_INSERT_ID()",
			// After the first statement only the server knows what LAST_INSERT_ID() was before.
			"INSERT INTO photos (id) VALUES (NEXTVAL('photos')); INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), LAST_INSERT_ID()); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO photos (id) VALUES (LAST_INSERT_ID({p1})); INSERT INTO photos (parent, id) VALUES (LAST_INSERT_ID(), LAST_INSERT_ID({p2})); SELECT LAST_INSERT_ID()",
			insertIDs,
			"INSERT INTO auto (a) VALUES ('x'), ('y'); INSERT IGNORE INTO photos SET id = NEXTVAL('photos'), parent = LAST_INSERT_ID(); INSERT INTO keyless (v) VALUES (NEXTVAL('other')); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO auto (a) VALUES ('x'), ('y'); INSERT IGNORE INTO photos SET parent = LAST_INSERT_ID(), id = LAST_INSERT_ID({p1}); INSERT INTO keyless (v) VALUES (LAST_INSERT_ID({o1})); SELECT LAST_INSERT_ID()",
			"INSERT INTO auto (a) VALUES ('v'); REPLACE INTO keyless (v, w, x) VALUES (NEXTVAL('photos'), LAST_INSERT_ID(), @@identity), (NEXTVAL('photos'), LAST_INSERT_ID() + 1, NEXTVAL('other')); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO auto (a) VALUES ('v'); REPLACE INTO keyless (w, x, v) VALUES (LAST_INSERT_ID(), @@identity, {p1}), (LAST_INSERT_ID() + 1, {o1}, {p2} + 0 * LAST_INSERT_ID({p1})); SELECT LAST_INSERT_ID()",
			"INSERT INTO auto (a) VALUES ('u'); INSERT INTO auto (ref, a, id) VALUES (NEXTVAL('photos'), LAST_INSERT_ID(), NULL); SELECT LAST_INSERT_ID()" +
				" => INSERT INTO auto (a) VALUES ('u'); INSERT INTO auto (a, ref, id) VALUES (LAST_INSERT_ID(), LAST_INSERT_ID({p1}), NULL); SELECT LAST_INSERT_ID()",
			"SELECT 1; INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), LAST_INSERT_ID()), (1, 1); SELECT LAST_INSERT_ID()" +
				" => SELECT 1; INSERT INTO photos (parent, id) VALUES (LAST_INSERT_ID(), LAST_INSERT_ID({p1})), (1, 1); SELECT LAST_INSERT_ID()",
			insertIDs,
			"SELECT LAST_INSERT_ID(18446744073709551615); INSERT INTO photos (id, parent) VALUES (NEXTVAL('photos'), LAST_INSERT_ID())" +
				" => SELECT LAST_INSERT_ID(18446744073709551615); INSERT INTO photos (parent, id) VALUES (LAST_INSERT_ID(), LAST_INSERT_ID({p1}))",
			insertIDs,
			"SELECT * FROM auto",
			"SET NAMES latin1; INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», 'a')",
			"SET NAMES utf8mb4; SELECT 1",
			insertIDs, all,
			"SELECT * FROM keyless",
		}},
	}
	if o.Servers[0].IsMariaDB() {
		scripts = append(scripts, script{"DELAYED", []string{
			"CREATE TABLE later (id BIGINT UNSIGNED, a VARCHAR(10)) ENGINE=MyISAM",
			"INSERT DELAYED INTO later VALUES («NEXTVAL('photos')», 'a'), («NEXTVAL('photos')», 'b')",
			insertIDs,
			"FLUSH TABLES later", // waits for the rows
			"SELECT * FROM later ORDER BY id",
		}})
		scripts = append(scripts, script{"RETURNING", []string{
			"INSERT INTO photos (id, n) VALUES («NEXTVAL('photos')», 1), («NEXTVAL('photos')», 2) RETURNING id, n + 1, 'x' AS y", insertIDs,
			"INSERT INTO photos (id, n) VALUES (NEXTVAL('photos'), 1) RETURNING id AS i, NEXTVAL('photos'), NEXTVAL('other') + n => " +
				"INSERT INTO photos (id, n) VALUES (LAST_INSERT_ID({p1}), 1) RETURNING id AS i, IF(1,CAST({p2} AS UNSIGNED),LAST_INSERT_ID({p2})) AS `NEXTVAL('photos')`, IF(1,CAST({o1} AS UNSIGNED),LAST_INSERT_ID({o1})) + n AS `NEXTVAL('other') + n`",
			insertIDs,
			"REPLACE photos SET id = 1 RETURNING NEXTVAL('photos') => REPLACE photos SET id = 1 RETURNING LAST_INSERT_ID({p1}) AS `NEXTVAL('photos')`", insertIDs,
			"SELECT LAST_INSERT_ID(42)",
			"INSERT INTO photos (id, n) VALUES (NEXTVAL('photos'), 1) RETURNING id, LAST_INSERT_ID() => " +
				"INSERT INTO photos (id, n) VALUES (LAST_INSERT_ID({p1}), 1) RETURNING id, COALESCE(CAST(42 AS UNSIGNED),LAST_INSERT_ID()) AS `LAST_INSERT_ID()`",
			insertIDs,
		}})
		scripts = append(scripts, script{"VALUES", []string{
			"VALUES (1, 2), («NEXTVAL('photos')», «NEXTVAL('photos')» + 1), (3, «NEXTVAL('other')») ORDER BY 1", insertIDs,
			"SELECT 1 AS a UNION ALL VALUES («NEXTVAL('photos')»), («NEXTVAL('photos')»)", insertIDs,
		}})
	} else {
		scripts = append(scripts, script{"VALUES", []string{
			"VALUES ROW(«NEXTVAL('photos')», 2), ROW(«NEXTVAL('photos')», «NEXTVAL('other')») ORDER BY 1 LIMIT 5", insertIDs,
			"SELECT 1 AS a UNION ALL VALUES ROW(«NEXTVAL('photos')»), ROW(«NEXTVAL('photos')»)", insertIDs,
		}})
	}
	o.run(t, scripts)
}
