package proxy_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/lex"
	"seqproxy/test/mysqltest"
)

// countedTables are a source of 1200 rows and tables to be filled from it.
func countedTables(server *mysqltest.Server) []string {
	return []string{
		"CREATE TABLE src (id INT PRIMARY KEY, g INT, a VARCHAR(20)) ENGINE=InnoDB",
		"INSERT INTO src SELECT seq, seq % 7, CONCAT('row ', seq) FROM " + server.Numbers(1200),
		"CREATE TABLE dst (id BIGINT UNSIGNED, a VARCHAR(40), x BIGINT UNSIGNED, s VARCHAR(40), KEY (id), KEY (a)) ENGINE=InnoDB",
		"CREATE TABLE auto (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n BIGINT UNSIGNED, a VARCHAR(40), UNIQUE (n)) ENGINE=InnoDB",
		"CREATE TABLE uniq (a VARCHAR(40) PRIMARY KEY, n BIGINT UNSIGNED) ENGINE=InnoDB",
		"CREATE TABLE parts (id BIGINT UNSIGNED NOT NULL, a VARCHAR(40)) ENGINE=InnoDB PARTITION BY HASH (id) PARTITIONS 3",
		"CREATE TEMPORARY TABLE IF NOT EXISTS nothing (id INT)",
		"CREATE TABLE isam (id BIGINT UNSIGNED, a VARCHAR(40)) ENGINE=MyISAM",
		"CREATE VIEW v AS SELECT id, a FROM dst",
		"CREATE TABLE watched (id BIGINT UNSIGNED, a VARCHAR(40)) ENGINE=InnoDB",
		"CREATE FUNCTION noted(n INT) RETURNS VARCHAR(20) DETERMINISTIC RETURN IF(n, n, NULL)",
		"CREATE TRIGGER watch BEFORE INSERT ON watched FOR EACH ROW SET NEW.a = 'seen'",
	}
}

// countedStep is a statement in which the server counts numbers off. «calls» stand for
// NEXTVAL('photos').
type countedStep struct {
	text    string
	numbers uint64 // how many it takes
	block   uint64 // size of the first block; 0: 1000
	other   string // the direct text, where replacing the calls by the constant is not enough
}

// The answers are those of the same statement with LAST_INSERT_ID(n) for each call: n is the first
// number for an INSERT, as with generated keys, and the last for an UPDATE.
var countedSteps = []countedStep{
	{text: "INSERT INTO dst (id, a) SELECT «», a FROM src WHERE id <= 50", numbers: 50},
	{text: "INSERT INTO dst SELECT «», CONCAT(a, '/', g), «», NULL FROM src WHERE g = 2 ORDER BY a DESC", numbers: 2 * 172},
	{text: "INSERT dst (id, a) SELECT «», MAX(a) FROM src GROUP BY g", numbers: 7},
	{text: "INSERT INTO dst (a, id) SELECT a, «» FROM src WHERE g = 1 UNION ALL SELECT 'x', «» + 0 FROM src WHERE g = 2", numbers: 171 + 172},
	{text: "INSERT INTO dst (id, a) SELECT «», CONCAT('=', ROW_NUMBER() OVER (ORDER BY a)) FROM src WHERE id <= 60", numbers: 60},
	{text: "INSERT INTO dst (id, a) SELECT «», CONCAT('=', COUNT(*)) FROM src", numbers: 1},
	{text: "INSERT INTO dst (id, a) SELECT «», CONCAT('=', MAX(x.id)) FROM src x JOIN src y ON x.g = y.id GROUP BY y.id ORDER BY y.id DESC", numbers: 6},
	{text: "INSERT INTO dst (id, a) SELECT «», '=' FROM src WHERE id = 5 UNION ALL SELECT «», '=' FROM src WHERE id = 6", numbers: 2},
	{text: "INSERT INTO dst (id, a) SELECT «», '=' FROM src WHERE id IN (SELECT g * 2 FROM src) ORDER BY RAND()", numbers: 6},
	{text: "INSERT INTO dst (id, a) WITH c AS (SELECT g FROM src GROUP BY g) SELECT «», '=' FROM c JOIN dst d ON d.id < 0 OR d.a = 'row 1'", numbers: 7},
	{text: "INSERT INTO dst (id, a) SELECT «», a FROM src WHERE id < 0", numbers: 0},
	{text: "INSERT INTO dst (id, a) (SELECT «», a FROM src WHERE id <= 50)", numbers: 50},
	{text: "INSERT INTO dst (SELECT «», a, «», NULL FROM src WHERE id <= 20 ORDER BY 2 LIMIT 5)", numbers: 10},
	{text: "INSERT INTO dst (id, a) ((SELECT «», a FROM src WHERE id <= 50)) ON DUPLICATE KEY UPDATE a = '='", numbers: 50},
	{text: "INSERT INTO dst (id, a) SELECT «», MAX(a) FROM src GROUP BY LEFT(a, 5), ROUND(g, 1) HAVING COALESCE(SUM(g), 0) > 1 ORDER BY 2, FIELD(MAX(g), 2, 1)", numbers: 54},
	{text: "INSERT INTO dst (id, a) SELECT «», d.a FROM dst d JOIN src s ON s.a = d.a", numbers: 50},
	{text: "INSERT INTO dst (id, a) SELECT CASE WHEN g = 3 THEN «» END, a FROM src WHERE id < 15", numbers: 2},
	{text: "INSERT INTO auto (id, a) SELECT «», a FROM src WHERE id < 4", numbers: 3, other: "INSERT INTO auto (id, a) SELECT LAST_INSERT_ID({n}) + id - 1, a FROM src WHERE id < 4"},
	{text: "INSERT INTO auto (n, a) SELECT «», a FROM src WHERE id < 4", numbers: 3, other: "INSERT INTO auto (n, a) SELECT LAST_INSERT_ID({n}) + id, a FROM src WHERE id < 4"},
	{text: "INSERT INTO auto SELECT «», g, a FROM src WHERE id BETWEEN 21 AND 23", numbers: 3, other: "INSERT INTO auto SELECT LAST_INSERT_ID({n}) + id - 21, g, a FROM src WHERE id BETWEEN 21 AND 23"},
	{text: "REPLACE INTO auto (a, id) SELECT CONCAT(a, a), «» FROM src WHERE id < 4", numbers: 3, other: "REPLACE INTO auto (a, id) SELECT CONCAT(a, a), LAST_INSERT_ID({n}) + id - 1 FROM src WHERE id < 4"},
	{text: "INSERT INTO auto (id, a) SELECT «», noted(g) FROM src WHERE id < 4", numbers: 3, other: "INSERT INTO auto (id, a) SELECT LAST_INSERT_ID({n}) + 3 - id, noted(g) FROM src WHERE id < 4"},
	{text: "INSERT INTO dst (id, s) SELECT «», noted(0) FROM src WHERE id < 4", numbers: 3},
	{text: "UPDATE dst SET x = «», s = noted(0) WHERE id IS NOT NULL LIMIT 2", numbers: 2, block: 2},
	{text: "REPLACE INTO uniq (a, n) SELECT a, «» FROM src WHERE id < 30", numbers: 29},
	{text: "REPLACE INTO uniq SELECT a, «» FROM src WHERE id BETWEEN 20 AND 40", numbers: 21},
	{text: "INSERT INTO uniq (a, n) SELECT a, «» FROM src WHERE id BETWEEN 35 AND 45 ON DUPLICATE KEY UPDATE n = n + 1000000000", numbers: 11},
	{text: "INSERT INTO uniq (a, n) VALUES ('row 1', NULL), ('new 1', NULL), ('row 2', NULL) ON DUPLICATE KEY UPDATE n = «»", numbers: 2, block: 3},
	{text: "INSERT INTO uniq (a, n) VALUES ('row 3', «»), (CONCAT('new ', 2), «») ON DUPLICATE KEY UPDATE n = IF(uniq.n > 0, «», NULL)", numbers: 3, block: 4},
	{text: "INSERT INTO uniq (a, n) VALUES ('new 3', «»), ('new 4', «»), ('new 5', NULL) ON DUPLICATE KEY UPDATE n = «»", numbers: 2, block: 5},
	{text: "INSERT INTO uniq (a, n) SELECT s.a, NULL FROM src s JOIN src x ON x.id = s.id WHERE s.id BETWEEN 40 AND 50 ON DUPLICATE KEY UPDATE n = «»", numbers: 6},
	{text: "INSERT INTO uniq (a, n) SELECT a, «» FROM src WHERE id BETWEEN 49 AND 52 ON DUPLICATE KEY UPDATE n = «»", numbers: 6},
	{text: "INSERT INTO uniq (a, n) VALUES ('new 6', NULL), ('new 7', NULL) ON DUPLICATE KEY UPDATE n = «»", numbers: 0, block: 2},
	{text: "INSERT INTO auto (id, a) VALUES (7, 'x'), (8, 'y'), (8, 'z') ON DUPLICATE KEY UPDATE n = «»", numbers: 1, block: 3},
	{text: "INSERT INTO parts SELECT «», a FROM src WHERE id < 100", numbers: 99},
	{text: "INSERT INTO dst (id, a) SELECT «», a FROM src LIMIT 3", numbers: 3, block: 3},
	// more rows than the first block has
	{text: "INSERT INTO dst (id, a) SELECT «», a FROM src", numbers: 1200},
	{text: "INSERT INTO dst (id, a) SELECT «», x.a FROM src x, src y WHERE y.id <= 10", numbers: 12000},
	{text: "UPDATE dst SET x = «» WHERE id IS NOT NULL ORDER BY id LIMIT 10", numbers: 10, block: 10},
	// see the test
	{text: "UPDATE dst SET id = «», a = LEFT(a, 30), x = «» WHERE a LIKE 'row 1%'", numbers: 0},
	{text: "UPDATE dst SET id = «» WHERE a = 'nobody'", numbers: 0},
	{text: "UPDATE parts SET a = CONCAT('n', «»)", numbers: 99},
	{text: "UPDATE parts SET a = CONCAT('n', COALESCE(NULL, (IFNULL(«», 5))), LPAD(UPPER('x'), 2, 'y'))", numbers: 99},
	{text: "UPDATE LOW_PRIORITY dst SET x = IF(x IS NULL, «», x) WHERE id IS NULL", numbers: 7},
	// Warnings, and errors of the statement itself.
	{text: "INSERT INTO dst (id, a) SELECT «», CAST(a AS SIGNED) FROM src WHERE id < 5", numbers: 4},
	{text: "INSERT INTO auto (n, a) SELECT «», nothing FROM src"},
	{text: "UPDATE dst SET nothing = «»"},
}

func TestTheServerCountsNumbersOffRowByRow(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, countedTables(server)...)
	uncached(t, o)
	steps := countedSteps
	if !server.IsMariaDB() {
		steps = append(slices.Clip(steps), countedStep{
			text: `INSERT INTO dst (id, a) SELECT «», JSON_VALUE('{"a": "="}', '$.a' RETURNING CHAR(10)) FROM src WHERE id <= 3`, numbers: 3,
		})
	}
	for _, name := range []string{"with EOF", "without EOF", "with EOF, prepared", "without EOF, prepared"} {
		ending, rest, _ := strings.Cut(name, ",")
		prepared := rest != ""
		p := o.pairOfSchemas(t, endings[ending]|protocol.FoundRows)
		for _, w := range []*wire{p.Proxy, p.Direct} {
			// In this mode a negative difference is no error.
			w.query("SET sql_mode = 'NO_UNSIGNED_SUBTRACTION'")
		}
		p.query("SELECT LAST_INSERT_ID(77)")
		for _, step := range steps {
			if step.numbers == 0 && strings.Contains(step.text, "LIKE") {
				count := p.Direct.rows("SELECT 2 * COUNT(*) FROM dst WHERE a LIKE 'row 1%'")[0]
				fmt.Sscan(count, &step.numbers)
			}
			first, size := o.nextNumber(t, "photos"), max(step.block, 1000)
			if step.block != 0 {
				size = step.block
			}
			for size < step.numbers {
				first, size = first+size, size*10
			}
			n := first
			if strings.HasPrefix(step.text, "UPDATE") {
				n = first + step.numbers - 1
			}
			direct := strings.ReplaceAll(step.text, "«»", fmt.Sprintf("LAST_INSERT_ID(%d)", n))
			if step.other != "" {
				direct = strings.ReplaceAll(step.other, "{n}", fmt.Sprint(n))
			}
			want := p.Direct.query(direct)
			text := strings.ReplaceAll(step.text, "«»", "NEXTVAL('photos')")
			var got []byte
			if !prepared {
				got = p.Proxy.query(text)
			} else if got = p.Proxy.do(protocol.ComStmtPrepare, text); got[4] == 0 {
				got = p.Proxy.do(protocol.ComStmtExecute, string(execution(binary.LittleEndian.Uint32(got[5:]), nil, true)[1:]))
			}
			compare(t, name+": "+step.text, got, want)
			next := first + size
			if prepared && got[4] == 0xff {
				next = first // the proxy refused it before it took any
			}
			if got := o.nextNumber(t, "photos"); got != next {
				t.Errorf("%s: %s: the next number: got %d, want %d", name, step.text, got, next)
			}
			p.query("SELECT ROW_COUNT(), FOUND_ROWS(), @@warning_count, LAST_INSERT_ID(), @@identity")
			if got, want := fmt.Sprint(p.Proxy.rows("SELECT COUNT(*), COUNT(x), COUNT(s), SUM(a LIKE 'row%') FROM dst")), fmt.Sprint(p.Direct.rows("SELECT COUNT(*), COUNT(x), COUNT(s), SUM(a LIKE 'row%') FROM dst")); got != want {
				t.Errorf("%s: %s: got %s rows, values, strings, want %s", name, step.text, got, want)
			}
		}
		o.noNumberTwice(t, p.Proxy)
	}
}

// noNumberTwice checks that no number is in two rows or columns of the tables.
func (o *oracle) noNumberTwice(t testing.TB, w *wire) {
	t.Helper()
	const all = "(SELECT id AS n FROM dst UNION ALL SELECT x FROM dst UNION ALL SELECT SUBSTR(s, 2) FROM dst UNION ALL SELECT n FROM uniq " +
		"UNION ALL SELECT id FROM parts UNION ALL SELECT SUBSTR(a, 2) FROM parts WHERE a LIKE 'n%' UNION ALL SELECT n FROM auto UNION ALL SELECT id FROM auto WHERE n IS NULL) AS numbers"
	if got := w.rows("SELECT COUNT(n) - COUNT(DISTINCT n) FROM " + all)[0]; got != "0" {
		t.Errorf("%s numbers stand in more than one place", got)
	}
}

func TestNumbersAreCountedOffWithParametersAndUpToTheLargest(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, countedTables(server)...)
	o.fresh(t)
	for _, s := range []struct {
		name  string
		start uint64
	}{{"middle", math.MaxInt64 - 1500}, {"end", math.MaxUint64 - 30}} {
		if _, err := o.Sequences.Create(t.Context(), sequence.CreateOptions{Name: s.name, Start: s.start}); err != nil {
			t.Fatal(err)
		}
	}
	db := o.DB(t, o.Schemas[0], nil)
	c := o.Conn(t, o.Schemas[0], nil)
	insert, err := c.PrepareContext(t.Context(), "INSERT INTO dst (a, id, x) SELECT CONCAT(?, a), NEXTVAL('middle'), ? + NEXTVAL('middle') - ? FROM src WHERE id > ? LIMIT ?")
	if err != nil {
		t.Fatal(err)
	}
	defer insert.Close()
	for _, rows := range []int64{4, 900, 1200} {
		exec(t, c, "DELETE FROM dst")
		result, err := insert.ExecContext(t.Context(), "param ", 0, 0, 0, rows)
		if err != nil {
			t.Fatal(err)
		}
		affected, _ := result.RowsAffected()
		first, _ := result.LastInsertId()
		if want := fmt.Sprint(uint64(first), " ", 2*rows, " param row"); affected != rows || value(t, c, "SELECT CONCAT(MIN(id), ' ', COUNT(DISTINCT id) + COUNT(DISTINCT x), ' ', LEFT(MAX(a), 9)) FROM dst") != want {
			t.Errorf("%d rows: got %d, id %d, and %s, want %s", rows, affected, first, value(t, c, "SELECT CONCAT(MIN(id), ' ', COUNT(DISTINCT id) + COUNT(DISTINCT x), ' ', LEFT(MAX(a), 9)) FROM dst"), want)
		}
		if got := value(t, c, "SELECT LAST_INSERT_ID()"); got != fmt.Sprint(uint64(first)) {
			t.Errorf("LAST_INSERT_ID(): got %s, want %d", got, uint64(first))
		}
	}
	// With a count each row has a range of its own.
	before := o.nextNumber(t, "middle")
	exec(t, c, "DELETE FROM dst", "INSERT INTO dst (id) SELECT NEXTVAL('middle', 1000000) FROM src LIMIT 7")
	if got, want := value(t, c, "SELECT CONCAT(MIN(id), ' ', MAX(id), ' ', COUNT(DISTINCT id)) FROM dst"), fmt.Sprint(before, " ", before+6_000_000, " 7"); got != want {
		t.Errorf("a million for each row: got %s, want %s", got, want)
	}
	wantError(t, c, 1235, "INSERT INTO dst (id) SELECT NEXTVAL('middle', 1000000) FROM src", "more than 10 rows")
	if got, want := o.nextNumber(t, "middle"), before+17_000_000; got != want {
		t.Errorf("the next number: got %d, want %d", got, want)
	}
	// A schema that is no longer the current one.
	other := server.Schema(t)
	if _, err := c.ExecContext(t.Context(), "USE "+other); err != nil {
		t.Fatal(err)
	}
	if _, err := insert.ExecContext(t.Context(), "x", 0, 0, 0, 2); err != nil {
		t.Errorf("in another schema: %v", err)
	}
	// The rest of a sequence is enough for a statement, or is not.
	for _, text := range []string{"INSERT INTO dst (id) SELECT NEXTVAL('end') FROM src LIMIT 20", "UPDATE dst SET x = NEXTVAL('end') WHERE id > 0"} {
		_, err := db.ExecContext(t.Context(), text)
		if strings.HasPrefix(text, "UPDATE") {
			checkError(t, text, err, 4084)
		} else if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := value(t, o.DirectConn(t, 0, o.Schemas[0], nil), "SELECT COUNT(DISTINCT id) FROM dst WHERE id > 18446744073709551500"); got != "20" {
		t.Errorf("got %s of the last numbers, want 20", got)
	}
}

func TestNumbersThatCannotBeCountedOffAreRefused(t *testing.T) {
	server := mysqltest.StartUnsynced(t, "--log-bin=log", "--server-id=1", "--binlog-format=ROW")
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, countedTables(server)...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], multi)
	// The temporary table hides the other table.
	exec(t, c, "CREATE TEMPORARY TABLE parts (id BIGINT, a TEXT) ENGINE=MyISAM")
	log := logStatements(t, server)
	tests := []struct{ word, text string }{
		{"InnoDB", "INSERT INTO isam SELECT NEXTVAL('photos'), a FROM src"},
		{"InnoDB", "INSERT INTO parts SELECT NEXTVAL('photos'), a FROM src"},
		{"InnoDB", "UPDATE v SET id = NEXTVAL('photos')"},
		{"InnoDB", "INSERT INTO v (id, a) SELECT NEXTVAL('photos'), a FROM src"},
		{"trigger", "INSERT INTO watched SELECT NEXTVAL('photos'), a FROM src"},
		{"trigger", "INSERT INTO `" + o.Schemas[0] + "`.watched SELECT NEXTVAL('photos'), a FROM src"},
		{"IGNORE", "INSERT IGNORE INTO dst (id) SELECT NEXTVAL('photos') FROM src"},
		{"IGNORE", "UPDATE IGNORE dst SET id = NEXTVAL('photos')"},
		{"IGNORE", "INSERT /*! IGNORE */ INTO dst (id) SELECT NEXTVAL('photos') FROM src"},
		{"several tables", "UPDATE dst, src SET dst.id = NEXTVAL('photos')"},
		{"several tables", "UPDATE dst JOIN src USING (id) SET dst.id = NEXTVAL('photos')"},
		{"WHERE", "UPDATE dst SET x = 1 WHERE id = NEXTVAL('photos')"},
		{"WHERE", "UPDATE dst SET x = 1 ORDER BY NEXTVAL('photos')"},
		{"DELETE", "DELETE FROM dst WHERE id = NEXTVAL('photos')"},
		{"functions", "UPDATE dst SET a = ExtractValue(CONCAT('<a>', NEXTVAL('photos'), '</a>'), '/a')"},
		{"functions", "UPDATE dst SET a = JSON_SET('{}', IF(1, CONCAT('$.k', NEXTVAL('photos')), ''), 1)"},
		{"functions", "UPDATE dst SET a = `if`(1, NEXTVAL('photos'), 1)"},
		{"functions", "UPDATE dst SET id = x.concat(NEXTVAL('photos'))"},
		{"functions", "UPDATE dst SET id = NEXTVAL('photos') + (2 IN (NEXTVAL('photos'), 5))"},
		{"two sequences", "INSERT INTO dst (id, x) SELECT NEXTVAL('photos'), NEXTVAL('other') FROM src"},
		{"two counts", "INSERT INTO dst (id, x) SELECT NEXTVAL('photos', 5), NEXTVAL('photos') FROM src"},
		{"LAST_INSERT_ID(expression)", "UPDATE dst SET id = NEXTVAL('photos'), x = LAST_INSERT_ID(5)"},
		{":=", "UPDATE dst SET id = NEXTVAL('photos'), x = (@x := 5)"},
		{"GET_LOCK", "INSERT INTO dst (id, x) SELECT NEXTVAL('photos'), GET_LOCK('x', 1) FROM src"},
		{"ROW_COUNT", "UPDATE dst SET id = NEXTVAL('photos'), x = ROW_COUNT()"},
		{"ROLLUP", "INSERT INTO dst (id, a) SELECT NEXTVAL('photos'), g FROM src GROUP BY g WITH ROLLUP"},
		{"BUFFER", "INSERT INTO dst (id) SELECT SQL_BUFFER_RESULT NEXTVAL('photos') FROM src"},
		{"DISTINCT", "INSERT INTO dst (id, a) SELECT DISTINCT NEXTVAL('photos'), g FROM src"},
		{"GROUP BY", "INSERT INTO dst (id, a) SELECT NEXTVAL('photos') AS n, MAX(g) FROM src GROUP BY n"},
		{"ORDER BY", "INSERT INTO dst (id, a) SELECT NEXTVAL('photos'), g FROM src ORDER BY 1"},
		{"ORDER BY", "INSERT INTO dst (a, id) SELECT g, NEXTVAL('photos') FROM src ORDER BY 1, 2"},
		{"ORDER BY", "INSERT INTO dst SELECT src.*, NEXTVAL('photos') FROM src ORDER BY 4"},
		{"ORDER BY", "INSERT INTO dst SELECT ALL *, NEXTVAL('photos') FROM src ORDER BY 4"},
		{"ROLLUP", "INSERT INTO dst (id, a) (SELECT NEXTVAL('photos'), g FROM src GROUP BY g WITH ROLLUP)"},
		{"DISTINCT", "INSERT INTO dst (id, a) (SELECT DISTINCT NEXTVAL('photos'), g FROM src)"},
		{"DISTINCT", "INSERT INTO dst ((SELECT DISTINCT NEXTVAL('photos'), g, g, g FROM src))"},
		{"GROUP BY", "INSERT INTO dst (id, a) (SELECT NEXTVAL('photos') AS n, MAX(g) FROM src GROUP BY n)"},
		{"HAVING", "INSERT INTO dst (id, a) (SELECT g, NEXTVAL('photos') + 1 AS `n` FROM src HAVING N > 5)"},
		{"ORDER BY", "INSERT INTO dst (id, a) (SELECT NEXTVAL('photos'), g FROM src) ORDER BY 1"},
		{"HAVING", "INSERT INTO dst (id, a) SELECT g, NEXTVAL('photos') + 1 AS `n` FROM src HAVING N > 5"},
		{"multi", "UPDATE dst SET id = NEXTVAL('photos'); SELECT 1"},
	}
	if server.IsMariaDB() {
		tests = append(tests, struct{ word, text string }{"RETURNING", "INSERT INTO dst (id) SELECT NEXTVAL('photos') FROM src RETURNING id"})
	}
	before := o.nextNumber(t, "photos")
	for _, test := range tests {
		_, err := c.ExecContext(context.Background(), test.text)
		checkError(t, test.text, err, 1235, "NEXTVAL", test.word)
	}
	exec(t, c, "SET TRANSACTION READ WRITE")
	wantError(t, c, 1235, "UPDATE dst SET id = NEXTVAL('photos')", "SET TRANSACTION")
	exec(t, c, "BEGIN", "COMMIT", "DROP TEMPORARY TABLE parts", "SET SESSION binlog_format = 'MIXED'")
	wantError(t, c, 1235, "UPDATE dst SET id = NEXTVAL('photos')", "set binlog_format = ROW")
	exec(t, c, "SET SESSION binlog_format = 'STATEMENT'")
	wantError(t, c, 1235, "INSERT INTO dst (id) SELECT NEXTVAL('photos') FROM src", "binlog_format")
	exec(t, c, "SET SESSION sql_log_bin = 0")
	if got := value(t, c, "SELECT COUNT(*) FROM dst"); got != "0" {
		t.Errorf("got %s rows of refused statements", got)
	}
	for _, word := range []string{"nextval", "last_insert_id()+"} {
		if reached := log.since(word); len(reached) > 0 {
			t.Errorf("reached the server: %q", reached)
		}
	}
	if after := o.nextNumber(t, "photos"); after != before {
		t.Errorf("%d numbers were taken for statements that were refused", after-before)
	}
	exec(t, c, "INSERT INTO dst (id) SELECT NEXTVAL('photos') FROM src") // this session writes no binary log
	if got := value(t, c, "SELECT COUNT(DISTINCT id) FROM dst"); got != "1200" {
		t.Errorf("without the binary log: got %s numbers, want 1200", got)
	}
}

func TestAReplicaHasTheNumbersThatWereCountedOff(t *testing.T) {
	args := []string{"--log-bin=log", "--server-id=1", "--binlog-format=ROW"}
	var gtid []string
	if !mysqltest.Shared(t).IsMariaDB() {
		gtid = []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}
	}
	server := mysqltest.Start(t, append(args, gtid...)...)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, countedTables(server)...)
	o.fresh(t)
	r := o.replicate(t, server.Addr(), gtid...)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "INSERT INTO dst (id, a) SELECT NEXTVAL('photos'), a FROM src", "UPDATE dst SET x = NEXTVAL('photos') WHERE id % 2",
		"BEGIN", "INSERT INTO dst (id, a) SELECT NEXTVAL('photos'), a FROM src WHERE id < 9", "ROLLBACK",
		"BEGIN", "REPLACE INTO uniq SELECT a, NEXTVAL('photos') FROM src", "COMMIT")
	for _, query := range []string{
		"SELECT CONCAT_WS(' ', COUNT(*), COUNT(x), SUM(id), SUM(x), SUM(id * (1 + MOD(COALESCE(x, 0), 977))), BIT_XOR(CRC32(CONCAT_WS('/', id, a, x)))) FROM %s.dst",
		"SELECT CONCAT_WS(' ', COUNT(*), SUM(n), BIT_XOR(CRC32(CONCAT_WS('/', a, n)))) FROM %s.uniq",
	} {
		query = fmt.Sprintf(query, o.Schemas[0])
		r.await(query, value(t, c, query))
	}
}

// Whatever LAST_INSERT_ID() is when the statement begins, the statement fails or its rows have
// numbers of its own block, each once.
func TestAStatementThatCountsFromElsewhereFailsWhole(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, countedTables(server)...)
	o.fresh(t)
	c := o.DirectConn(t, 0, o.Schemas[0], nil)
	for _, text := range []string{
		"INSERT INTO dst (id) SELECT NEXTVAL('s') FROM src WHERE id <= 20",
		"UPDATE auto SET n = NEXTVAL('s')",
		"INSERT INTO auto (id) SELECT id FROM src WHERE id <= 20 ON DUPLICATE KEY UPDATE n = NEXTVAL('s')",
		"INSERT INTO dst (id) SELECT COALESCE(NEXTVAL('s'), 0) FROM src WHERE id <= 20",
	} {
		var st statement.Statement
		st.Analyze([]byte(text), lex.Mode{})
		const lo, hi = 1000, 1019 // the block is 1001 to 1020
		rewritten := string(st.Rewrite(nil, []byte(text), []statement.Substitution{{Replacement: statement.AsCounted, Value: lo, Bound: hi, Step: 1}}))
		for _, mode := range []string{"", "NO_UNSIGNED_SUBTRACTION", "STRICT_ALL_TABLES"} {
			exec(t, c, "SET sql_mode = '"+mode+"'")
			for _, start := range []string{"0", "1", "999", "1001", "1019", "1020", "5000", "9223372036854775807", "9223372036854775808", "18446744073709551615"} {
				exec(t, c, "DELETE FROM dst", "DELETE FROM auto", "INSERT INTO auto (id) SELECT id FROM src WHERE id <= 20", "DO LAST_INSERT_ID("+start+")")
				_, err := c.ExecContext(context.Background(), rewritten)
				checkError(t, mode+" from "+start+": "+rewritten, err, 1690)
				if got := value(t, c, "SELECT COUNT(*) FROM dst") + value(t, c, "SELECT COUNT(n) FROM auto"); got != "00" {
					t.Errorf("from %s: %s: got %s rows, want none", start, rewritten, got)
				}
			}
			exec(t, c, "DELETE FROM dst", "DO LAST_INSERT_ID(1000)", rewritten)
			if got := value(t, c, "SELECT CONCAT(MIN(n), ' ', MAX(n), ' ', COUNT(DISTINCT n)) FROM (SELECT id AS n FROM dst UNION ALL SELECT n FROM auto) AS a"); got != "1001 1020 20" {
				t.Errorf("%s: got %s, want 1001 1020 20", rewritten, got)
			}
		}
	}
}

func TestManyClientsCountNumbersOffAndNoneComesTwice(t *testing.T) {
	server := mysqltest.Shared(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{server}}, countedTables(server)...)
	o.fresh(t)
	var wg sync.WaitGroup
	for i := range 6 {
		c := o.Conn(t, o.Schemas[0], nil)
		wg.Go(func() {
			for range 5 {
				for _, text := range []string{
					fmt.Sprintf("INSERT INTO dst (id, a) SELECT NEXTVAL('photos'), 'client %d' FROM src LIMIT 300", i),
					"SELECT NEXTVAL('photos') FROM src LIMIT 20",
					fmt.Sprintf("UPDATE dst SET x = NEXTVAL('photos') WHERE a = 'client %d' AND x IS NULL", i),
				} {
					_, err := c.ExecContext(context.Background(), text)
					for err != nil && strings.Contains(err.Error(), "1213") { // a deadlock is tried again
						_, err = c.ExecContext(context.Background(), text)
					}
					if err != nil {
						t.Errorf("%s: %v", text, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	if got := w.rows("SELECT COUNT(*), COUNT(x) FROM dst"); got[0] != "9000" || got[1] != "9000" {
		t.Errorf("got %s rows and numbers, want 9000", got)
	}
	o.noNumberTwice(t, w)
}
