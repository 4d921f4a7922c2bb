package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// awkwardStatements look like the proxy's own, and are the server's. There are sequences photos, t,
// nextval and value, and column id of table bound is filled in.
var awkwardStatements = []string{
	"CREATE TABLE photos (id INT PRIMARY KEY, nextval INT, currval INT, `next` INT, `value` INT, lastval INT, setval INT, `previous` INT, sequence INT)",
	"CREATE TABLE nextval (nextval INT, photos INT)",
	"CREATE TABLE `lastval` (`setval` INT, nextval INT)",
	"CREATE TABLE sequence (id INT, name VARCHAR(20), UNIQUE (name))",
	"CREATE TABLE bound (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
	"INSERT INTO photos (id, nextval, currval, next, value, lastval, setval, previous, sequence) VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9)",
	"INSERT INTO photos (id, photos.nextval) VALUES (2, id)",
	"INSERT INTO photos SET id = 3, nextval = photos.id, photos.currval = photos.nextval + 1",
	"INSERT INTO photos (id) VALUES (3) ON DUPLICATE KEY UPDATE nextval = photos.nextval + photos.currval, lastval = VALUES(nextval)",
	"REPLACE INTO photos SET id = 4, nextval = 4, lastval = nextval, setval = (nextval) + (lastval)",
	"UPDATE photos SET nextval = photos.nextval + 1 WHERE photos.currval = 3",
	"UPDATE photos AS t SET t.nextval = t.nextval + 1 ORDER BY t.nextval LIMIT 1",
	"UPDATE photos t, nextval SET t.nextval = nextval.nextval WHERE t.id = nextval.photos",
	"DELETE FROM photos WHERE photos.nextval > 1000",
	"DELETE t FROM photos t WHERE t.nextval > 1000",
	"SELECT photos.nextval, photos.currval, nextval, currval, lastval, setval, sequence FROM photos ORDER BY photos.id",
	"SELECT t.nextval, `t`.`currval` FROM photos t ORDER BY t.nextval",
	"SELECT `photos`.nextval FROM photos ORDER BY 1",
	"SELECT (SELECT photos.nextval), (SELECT MAX(t.nextval + photos.nextval) FROM photos t) FROM photos ORDER BY 1",
	"SELECT nextval.nextval FROM nextval NATURAL JOIN photos nextval2",
	"SELECT t.nextval FROM (SELECT 1 AS nextval) t",
	"WITH t AS (SELECT 1 AS nextval) SELECT t.nextval FROM t",
	"WITH nextval AS (SELECT 1 AS nextval) SELECT nextval.nextval FROM nextval",
	"WITH nextval (nextval) AS (SELECT 1) SELECT * FROM nextval",
	"SELECT 1 AS nextval, 2 nextval, 3 'NEXTVAL(''photos'')', 4 `NEXTVAL('photos')`",
	"SELECT 'NEXTVAL(''photos'')', \"NEXTVAL('photos')\" /* NEXTVAL('photos') */ -- NEXTVAL('photos')\n # NEXTVAL('photos')",
	"SELECT previous value FROM photos ORDER BY id",
	"SELECT `next` value FROM photos ORDER BY id FOR UPDATE",
	"SELECT next 'value' FROM photos ORDER BY id",
	"SELECT next, value FROM photos ORDER BY id",
	"SELECT value FROM photos ORDER BY value, id",
	"SELECT @nextval := 5, @`nextval('photos')`, @nextval",
	"SELECT @@nextval",
	"SET @photos = 1, @nextval = @photos + 1",
	"SELECT nextval",
	"SELECT nextval.photos",
	"SELECT nextval()",
	"SELECT lastval()",
	"SELECT nextval('no_such_sequence')",
	"SELECT lastval('no_such_sequence')",
	"SELECT setval('no_such_sequence', 5)",
	"SELECT no_such_sequence.nextval",
	"SELECT NEXT VALUE FOR no_such_sequence",
	"SELECT PREVIOUS VALUE FOR no_such_sequence",
	"INSERT INTO photos (id) VALUES (nextval('no_such_sequence'))",
	"ALTER SEQUENCE no_such_sequence RESTART",
	"DROP SEQUENCE no_such_sequence",
	"DROP SEQUENCE IF EXISTS no_such_sequence",
	"SHOW CREATE SEQUENCE no_such_sequence",
	"SHOW WARNINGS",
	"CREATE FUNCTION lastval_of(s VARCHAR(20)) RETURNS BIGINT DETERMINISTIC RETURN 7",
	"SELECT lastval_of('photos'), LAST_INSERT_ID ( )",
	"CREATE VIEW v AS SELECT photos.nextval, photos.id FROM photos",
	"SELECT v.nextval FROM v ORDER BY 1",
	"SHOW CREATE VIEW v",
	"CREATE TRIGGER nextval BEFORE INSERT ON nextval FOR EACH ROW SET NEW.nextval = NEW.nextval + 1",
	"INSERT INTO nextval (nextval, photos) VALUES (1, 2)",
	"SELECT * FROM nextval",
	"CREATE PROCEDURE photos(nextval INT) SELECT nextval, photos.nextval FROM photos ORDER BY photos.id",
	"CALL photos(3)",
	"EXPLAIN SELECT photos.nextval FROM photos WHERE id = 1",
	"EXPLAIN UPDATE photos SET nextval = photos.nextval WHERE id = 1",
	"UPDATE sequence SET id = id + 1 WHERE name = 'photos'",
	"UPDATE sequence SET id = LAST_INSERT_ID(id) WHERE name = 'photos'",
	"UPDATE sequence SET id = LAST_INSERT_ID(id - 1) WHERE name = 'photos'",
	"UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos' OR id = 1",
	"UPDATE sequence s SET s.id = LAST_INSERT_ID(s.id + 1) WHERE s.name = 'photos'",
	"REPLACE INTO sequence (id, name) VALUES (5, 'photos')",
	"SELECT LAST_INSERT_ID(), ROW_COUNT()",
	"INSERT INTO sequence (name) VALUES ('other') ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)",
	"SELECT * FROM sequence ORDER BY name",
	"INSERT INTO bound (id, a) VALUES (5, 1), (7, 2)",
	"INSERT INTO bound SELECT 8, 3",
	"INSERT INTO bound (id) SELECT id FROM no_such_table",
	"INSERT INTO bound (id, a) VALUES (5, 1)",
	"INSERT IGNORE INTO bound (id, a) VALUES (5, 1)",
	"SHOW WARNINGS",
	"INSERT INTO bound (id, a) VALUES (5, 1) ON DUPLICATE KEY UPDATE a = a + 1",
	"UPDATE bound SET a = LAST_INSERT_ID(a + 1) WHERE id = 5",
	"INSERT INTO bound (no_such_column) VALUES (1)",
	"INSERT INTO bound (a VALUES (1)",
	"INSERT INTO no_such_schema.bound (a) VALUES (1)",
	"TRUNCATE TABLE bound",
	"SELECT LAST_INSERT_ID(), ROW_COUNT()",
	"CHECK TABLE photos, nextval",
	"REPAIR TABLE photos",
	"FLUSH LOCAL TABLES photos",
	"CHECKSUM TABLE sequence",
	"SHOW COLUMNS FROM photos LIKE 'nextval'",
	"SHOW INDEX FROM sequence",
	"SHOW TABLES LIKE 'next%'",
	"PREPARE s FROM 'SELECT photos.nextval FROM photos WHERE id = ?'",
	"SET @one = 1",
	"EXECUTE s USING @one",
	"DEALLOCATE PREPARE s",
	"DROP PREPARE s",
	"PREPARE nextval FROM 'INSERT INTO photos (id, nextval) VALUES (90, 4)'",
	"EXECUTE nextval",
	"EXECUTE nextval",
	"SHOW WARNINGS",
	"PREPARE s FROM 'no statement'",
	"PREPARE s FROM @one",
	"EXECUTE s",
	"SET @text = 'SELECT nextval, @one FROM photos WHERE id = 1'",
	"PREPARE s FROM @text",
	"EXECUTE s",
	"DEALLOCATE PREPARE s",
	"SET sql_mode = 'ANSI_QUOTES'",
	"SELECT \"photos\".\"nextval\", \"photos\".nextval FROM \"photos\" ORDER BY 1",
	"SELECT \"nextval\" FROM photos ORDER BY 1",
	"SELECT \"nextval('photos')\"",
	"SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
	"SELECT 'it\\', ' nextval(''photos'')'",
	"SET sql_mode = 'IGNORE_SPACE,PIPES_AS_CONCAT'",
	"SELECT 'a' || 'nextval(photos)', LAST_INSERT_ID (3)",
	"SET sql_mode = 'ORACLE'",
	"SELECT photos.nextval FROM photos ORDER BY 1",
	"SELECT nextval FROM photos t WHERE t.currval IS NULL ORDER BY 1",
	"SET sql_mode = DEFAULT",
	"SET NAMES latin1",
	"SELECT 'n\xebxtval(', photos.nextval FROM photos ORDER BY 1",
	"SET NAMES gbk",
	"SELECT '\xbf\\' , '\x81\\\\nextval(\\'photos\\')', 1",
	"SET NAMES utf8mb4",
	"/*!50000 SELECT */ photos.nextval /*!50000 FROM photos */ ORDER BY 1",
	"SELECT nextval FROM photos; SELECT photos.nextval FROM photos ORDER BY 1; SELECT lastval.nextval FROM lastval",
	"SELECT nextval('no_such_sequence'); SELECT 2",
	"SET photos = 1",
	"SELECT photos.nextval FROM photos, (SELECT nextval FROM nextval) AS n WHERE photos.id = 1",
	"TABLE photos ORDER BY photos.nextval",
	"VALUES ROW(1, 2), ROW(3, 4)",
	"VALUES (1, 2), (3, 4)",
	"DO 1, SLEEP(0)",
	"HANDLER photos OPEN AS nextval",
	"HANDLER nextval READ FIRST WHERE nextval.nextval > 0",
	"HANDLER nextval CLOSE",
	"SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count",
}

// Checklist 11.
func TestWhatOnlyLooksLikeTheProxysOwnIsTheServersToTheByte(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Unknown = proxy.UnknownRelay
		o.Bindings = []proxy.Binding{{Table: "bound", Column: "id", Sequence: "photos"}}
		o.Tickets = []proxy.TicketTable{{Schema: "listed", Table: "sequence"}}
	}})
	for _, name := range []string{"photos", "t", "nextval", "value"} {
		if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	server, schema := e.Servers[0], e.Schemas[0]
	for _, caps := range []protocol.Capability{allFraming, allFraming &^ protocol.DeprecateEOF &^ protocol.SessionTrack} {
		run := func(addr string) (answers [][]byte) {
			server.Exec(t, "DROP DATABASE "+schema, "CREATE DATABASE "+schema)
			w := e.Wire(t, addr, wireLogin{Schema: schema, Capabilities: caps})
			for _, sql := range awkwardStatements {
				if server.IsMariaDB() && strings.HasPrefix(sql, "SELECT next 'value'") {
					sql = "SELECT 1"
				}
				answers = append(answers, w.query(sql))
			}
			w.send(packet(command(protocol.ComQuit, "")))
			w.ended()
			return answers
		}
		want, got := run(server.Addr()), run(e.Addr())
		for i, sql := range awkwardStatements {
			compare(t, sql, got[i], want[i])
		}
	}
}
