package proxy_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
)

// Parts of COM_STMT_*; stmt puts in the statement's id.

const (
	typeLong   = "\x03\x00"
	typeString = "\xfd\x00"
	typeBlob   = "\xfc\x00"
)

// stmt is one prepared statement on both connections of a pair.
type stmt struct {
	p             *pair
	proxy, direct uint32
}

// prepare prepares on both and compares the answers without the ids.
func (p *pair) prepare(sql string) stmt {
	p.t.Helper()
	got, want := p.Proxy.do(protocol.ComStmtPrepare, sql), p.Direct.do(protocol.ComStmtPrepare, sql)
	s := stmt{p: p}
	if got[4] == 0 && want[4] == 0 {
		s.proxy, s.direct = binary.LittleEndian.Uint32(got[5:]), binary.LittleEndian.Uint32(want[5:])
		got, want = bytes.Clone(got), bytes.Clone(want)
		clear(got[5:9])
		clear(want[5:9])
	}
	compare(p.t, fmt.Sprintf("prepare %.100s", sql), got, want)
	return s
}

// same sends a command on the statement, with rest after its id, and compares.
func (s stmt) same(cmd protocol.Command, rest string) []byte {
	s.p.t.Helper()
	with := func(id uint32) string { return string(binary.LittleEndian.AppendUint32(nil, id)) + rest }
	want := s.p.Direct.do(cmd, with(s.direct))
	got := s.p.Proxy.do(cmd, with(s.proxy))
	// The server counts its ids over all connections, and they stand in its messages.
	got, want = statementNumber.ReplaceAll(got, nil), statementNumber.ReplaceAll(want, nil)
	if len(got) > 4 && got[4] == 0xff && !protocol.IsProgress(got[4:]) {
		got, want = got[3:], want[3:]
	}
	compare(s.p.t, fmt.Sprintf("command %d of statement %d, %x", cmd, s.direct, rest[:min(len(rest), 40)]), got, want)
	return got
}

var statementNumber = regexp.MustCompile(`(?:statement|handler) \(\d+\)`)

// execute runs the statement: nulls, types ("" relies on the last ones) and values.
func (s stmt) execute(nulls, types, values string) []byte {
	s.p.t.Helper()
	return s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+binding(nulls, types, values))
}

func binding(nulls, types, values string) string {
	if nulls == "" {
		return ""
	}
	if types == "" {
		return nulls + "\x00" + values
	}
	return nulls + "\x01" + types + values
}

// Checklist 13.
// Checklist 17.
// Checklist 18.
// Checklist 20.
// Checklist 21.
func TestPreparedStatementsAreAnsweredAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	schema := e.Schemas[0]
	for _, caps := range []protocol.Capability{allFraming, protocol.LongFlag | protocol.Transactions | protocol.MultiResults | protocol.PSMultiResults} {
		t.Run(fmt.Sprintf("%010x", uint64(caps)), func(t *testing.T) {
			e.Servers[0].Exec(t, "USE "+schema, "DROP PROCEDURE IF EXISTS two", "CREATE PROCEDURE two(IN i INT, OUT o INT) BEGIN SELECT i AS a; SELECT i + 1 AS b, 'x' AS c; SET o = i + 2; END")
			p := e.Pair(t, 0, wireLogin{Schema: schema, Capabilities: caps})
			p.query("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, a VARCHAR(50), b LONGBLOB)")
			one := p.prepare("SELECT ? + 1 AS x, ? AS y")
			one.execute("\x00", typeLong+typeString, "\x05\x00\x00\x00\x03abc")
			one.execute("\x00", "", "\x06\x00\x00\x00\x02de") // the types of the last execution
			one.execute("\x03", "", "")                       // two NULLs
			one.execute("\x02", typeLong+typeString, "\x07\x00\x00\x00")
			one.same(protocol.ComStmtReset, "")
			one.execute("\x00", "", "\x06\x00\x00\x00\x02de")

			insert := p.prepare("INSERT INTO t VALUES (?, ?, ?)")
			insert.same(protocol.ComStmtLongData, "\x02\x00first ")
			insert.same(protocol.ComStmtLongData, "\x02\x00second")
			insert.execute("\x02", typeLong+typeString+typeBlob, "\x01\x00\x00\x00")
			// The key is a duplicate.
			insert.execute("\x00", typeLong+typeString+typeBlob, "\x01\x00\x00\x00\x01a\x01b")
			insert.same(protocol.ComStmtLongData, "\x02\x00dropped by the reset")
			insert.same(protocol.ComStmtReset, "")
			insert.execute("\x00", typeLong+typeString+typeBlob, "\x02\x00\x00\x00\x01a\x01b")
			insert.same(protocol.ComStmtLongData, "\x09\x00no such parameter")
			insert.execute("\x00", typeLong+typeString+typeBlob, "\x03\x00\x00\x00\x01a\x01b")
			insert.same(protocol.ComStmtReset, "")

			all := p.prepare("SELECT * FROM t ORDER BY id")
			all.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
			all.same(protocol.ComStmtExecute, "\x01\x01\x00\x00\x00") // with a cursor
			all.same(protocol.ComStmtFetch, "\x01\x00\x00\x00")
			all.same(protocol.ComStmtFetch, "\x05\x00\x00\x00")
			all.same(protocol.ComStmtFetch, "\x05\x00\x00\x00") // after the last row
			all.same(protocol.ComStmtExecute, "\x01\x01\x00\x00\x00")
			all.same(protocol.ComStmtFetch, "\x01\x00\x00\x00")
			all.same(protocol.ComStmtReset, "") // closes the cursor
			all.same(protocol.ComStmtFetch, "\x01\x00\x00\x00")
			none := p.prepare("SELECT * FROM t WHERE 0")
			none.same(protocol.ComStmtExecute, "\x01\x01\x00\x00\x00")
			none.same(protocol.ComStmtFetch, "\x01\x00\x00\x00")

			call := p.prepare("CALL two(?, @o)")
			call.execute("\x00", typeLong, "\x05\x00\x00\x00")
			call = p.prepare("CALL two(?, ?)") // OUT parameters come as a result set
			call.execute("\x00", typeLong+typeLong, "\x05\x00\x00\x00\x00\x00\x00\x00")
			p.query("SELECT @o")

			for _, sql := range []string{
				"SET @v = 4", "SELECT @v", "BEGIN", "UPDATE t SET a = 'z'", "ROLLBACK", "DELETE FROM t WHERE id = 99",
				"SHOW WARNINGS", "SELECT LAST_INSERT_ID()", "SELECT ROW_COUNT()", "SELECT CAST('x' AS INT)", "DO 1", "SELECT * FROM t WHERE 0",
			} {
				s := p.prepare(sql)
				if s.direct == 0 {
					continue // MySQL cannot prepare it
				}
				s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
				s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
				p.query("SHOW WARNINGS")
				s.same(protocol.ComStmtClose, "")
			}
			for _, sql := range []string{"SELECT 1; SELECT 2", "no sql", "SELECT * FROM no_such", "PREPARE s FROM 'SELECT 1'"} {
				p.prepare(sql)
			}
			gone := p.prepare("SELECT 5")
			gone.same(protocol.ComStmtClose, "")
			for _, w := range []*wire{p.Proxy, p.Direct} {
				id := gone.proxy
				if w == p.Direct {
					id = gone.direct
				}
				answer := w.do(protocol.ComStmtExecute, string(binary.LittleEndian.AppendUint32(nil, id))+"\x00\x01\x00\x00\x00")
				if err := serverError(t, answer); err.Code != 1243 {
					t.Errorf("execute after close: got %v, want 1243", err)
				}
			}
		})
	}
}

// Checklist 21.
func TestEveryWayOfBindingIsTheServersToUnderstand(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED, a INT, b INT)")
	for _, caps := range endings {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		// Without parameters the byte that says whether types follow is optional.
		none := p.prepare("SELECT 5")
		for _, rest := range []string{"", "\x00", "\x01", "\x00\x00\x00"} {
			none.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+rest)
		}
		// The bitmap of NULLs, at the edges of its bytes, and types that stay from one execution to
		// the next.
		for _, n := range []int{1, 7, 8, 9, 16, 17, 64, 65, 300} {
			s := p.prepare("SELECT CONCAT_WS(','" + strings.Repeat(", COALESCE(?, 'n')", n) + ")")
			nulls, values, types := make([]byte, (n+7)/8), "", ""
			for i := range n {
				types += typeLong
				if i%3 == 1 || i == n-1 {
					nulls[i/8] |= 1 << (i % 8)
					continue
				}
				values += string(binary.LittleEndian.AppendUint32(nil, uint32(i)))
			}
			s.execute(string(nulls), types, values)
			s.execute(string(nulls), "", values)
			s.execute(strings.Repeat("\xff", len(nulls)), "", "")
			s.execute(string(nulls), "", values)
			s.same(protocol.ComStmtReset, "")
			s.execute(string(nulls), "", values)
			// the type NULL
			s.execute(strings.Repeat("\xff", len(nulls)), strings.Repeat("\x06\x00", n), "")
			// The same with a number as a parameter before, between and after them.
			sql := "INSERT INTO t VALUES (NEXTVAL('s'), COALESCE(0" + strings.Repeat(", ?", n) + "), NEXTVAL('s') * 0)"
			id := string(p.Proxy.do(protocol.ComStmtPrepare, sql)[5:9])
			for _, binds := range []string{binding(string(nulls), types, values), binding(string(nulls), "", values), binding(strings.Repeat("\xff", len(nulls)), "", "")} {
				if got := p.Proxy.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+binds); got[4] != 0 {
					t.Errorf("%d parameters and two numbers: %v", n, serverError(t, got))
				}
			}
		}
		// Too few and too many bytes.
		for _, rest := range []string{"", "\x00", "\x00\x00", "\x00\x01", "\x00\x01\x03", "\x00\x01" + typeLong, "\x00\x01" + typeLong + "\x05\x00", "\x00\x01" + typeString + "\xfc\x03"} {
			p.prepare("SELECT ?").same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+rest)
		}
	}
	if got := e.DirectConn(t, 0, e.Schemas[0], nil); value(t, got, "SELECT COUNT(*) = COUNT(DISTINCT id) AND SUM(a) = 0 FROM t") != "1" {
		t.Errorf("the rows with numbers: got %s", value(t, got, "SELECT GROUP_CONCAT(id, '-', a) FROM t"))
	}
}

// Checklist 20.
func TestStatementIdsOfTwoShardsDoNotMix(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, schema := range e.Schemas {
		e.Servers[i].Exec(t, "USE "+schema, fmt.Sprintf("CREATE TABLE t AS SELECT %d AS n", i))
	}
	ctx := context.Background()
	c := e.Conn(t, e.Schemas[0], nil)
	on0, err := c.PrepareContext(ctx, "SELECT n, ?, @@port FROM t")
	if err != nil {
		t.Fatal(err)
	}
	exec(t, c, "USE "+e.Schemas[1])
	on1, err := c.PrepareContext(ctx, "SELECT n, ?, @@port FROM t")
	if err != nil {
		t.Fatal(err)
	}
	// A statement stays on the shard and in the schema that it was prepared in, as on one server,
	// whichever shard is current.
	for round := range 4 {
		if round == 2 {
			exec(t, c, "USE "+e.Schemas[0])
		}
		for i, s := range []*sql.Stmt{on0, on1} {
			var n, arg, port int
			if err := s.QueryRow(100*round+i).Scan(&n, &arg, &port); err != nil {
				t.Fatal(err)
			}
			if n != i || arg != 100*round+i || port != e.Servers[i].Port() {
				t.Errorf("round %d, shard %d: got n %d, argument %d, port %d", round, i, n, arg, port)
			}
		}
	}
	if err := on0.Close(); err != nil {
		t.Fatal(err)
	}
	var n, arg, port int
	if err := on1.QueryRow(1).Scan(&n, &arg, &port); err != nil || n != 1 {
		t.Errorf("after the other was closed: got %d, %v, want 1", n, err)
	}
	if err := on1.Close(); err != nil {
		t.Fatal(err)
	}
	// Both servers close their statement. COM_STMT_CLOSE has no answer to wait for.
	for i, s := range e.Servers {
		pool, open := s.DB(t, ""), ""
		eventually(t, fmt.Sprintf("server %d has no prepared statement", i), func() bool {
			var name string
			if err := pool.QueryRow("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'").Scan(&name, &open); err != nil {
				t.Fatal(err)
			}
			return open == "0"
		})
	}
}

// Checklist 20.
func TestThousandsOfPreparedStatementsAreKeptApart(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{})
	const n = 300
	var ids []uint32
	for i := range n {
		answer := w.do(protocol.ComStmtPrepare, "SELECT "+strconv.Itoa(i))
		ids = append(ids, binary.LittleEndian.Uint32(answer[5:]))
	}
	for i := n - 1; i >= 0; i -= 7 {
		answer := w.do(protocol.ComStmtExecute, string(binary.LittleEndian.AppendUint32(nil, ids[i]))+"\x00\x01\x00\x00\x00")
		row := split(answer)[2]
		if got := int(binary.LittleEndian.Uint32(row[2:])); got != i {
			t.Errorf("statement %d: got %d", i, got)
		}
		w.do(protocol.ComStmtClose, string(binary.LittleEndian.AppendUint32(nil, ids[i])))
	}
}

func TestADriverWithArgumentsPreparesOrInterpolatesAsDirect(t *testing.T) {
	e := newEnv(t, setup{})
	ctx := context.Background()
	for _, interpolate := range []bool{false, true} {
		change := func(c *mysql.Config) { c.InterpolateParams, c.ParseTime, c.MultiStatements = interpolate, true, true }
		run := func(direct bool) string {
			var out strings.Builder
			c := e.Conn(t, e.Schemas[0], change)
			if direct {
				c = e.DirectConn(t, 0, e.Schemas[0], change)
			}
			exec(t, c, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(50), b DATETIME(6), c DOUBLE, d BLOB)")
			for i := range 3 {
				r, err := c.ExecContext(ctx, "INSERT INTO t (a, b, c, d) VALUES (?, ?, ?, ?)", fmt.Sprint("a'b\\", i), "2020-01-02 03:04:05.678901", 1.5*float64(i), []byte{0, 1, 255})
				if err != nil {
					t.Fatal(err)
				}
				id, _ := r.LastInsertId()
				n, _ := r.RowsAffected()
				fmt.Fprintln(&out, id, n)
			}
			rows, err := c.QueryContext(ctx, "SELECT * FROM t WHERE id >= ? AND a LIKE ?", 2, "a%")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			types, _ := rows.ColumnTypes()
			for _, ct := range types {
				length, _ := ct.Length()
				nullable, _ := ct.Nullable()
				fmt.Fprintln(&out, ct.Name(), ct.DatabaseTypeName(), ct.ScanType(), length, nullable)
			}
			for rows.Next() {
				v := make([]any, 5)
				if err := rows.Scan(&v[0], &v[1], &v[2], &v[3], &v[4]); err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(&out, v...)
			}
			_, err = c.ExecContext(ctx, "INSERT INTO t (id) VALUES (?)", 1)
			fmt.Fprintln(&out, err, rows.Err())
			return out.String()
		}
		compareTexts(t, run(false), run(true))
	}
}

func TestAPreparedStatementOfAnotherShardRunsInTheSessionsState(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, schema := range e.Schemas {
		e.Servers[i].Exec(t, "USE "+schema, "CREATE TABLE t (n INT)")
	}
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	prepare := func(sql string) func() []byte {
		id := string(w.do(protocol.ComStmtPrepare, sql)[5:9])
		return func() []byte { return w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00") }
	}
	begins := e.Servers[0].IsMariaDB() // MySQL cannot prepare it
	read, insert := prepare("SELECT @@time_zone, @x, @@port"), prepare("INSERT INTO t VALUES (1)")
	states := map[string]func() []byte{"GET_LOCK": prepare("SELECT GET_LOCK('l', 0)"), "@y": prepare("SELECT @y := 5")}
	if begins {
		states["BEGIN"] = prepare("BEGIN")
	}
	on0 := e.DirectConn(t, 0, e.Schemas[0], nil)
	count := func(want string) {
		t.Helper()
		if got := value(t, on0, "SELECT COUNT(*) FROM t"); got != want {
			t.Errorf("committed rows on shard s0: got %s, want %s", got, want)
		}
	}
	refused := func(answer []byte, word string) {
		t.Helper()
		if err := serverError(t, answer); err.Code != 1235 || !strings.Contains(err.Message, word) || !strings.Contains(err.Message, "shard s0") {
			t.Errorf("got %v, want 1235 with %q", err, word)
		}
	}

	w.query("USE " + e.Schemas[1])
	w.query("SET time_zone = '+07:00', @x = 'there'")
	row := string(split(read())[4])
	for _, want := range []string{"+07:00", "there"} {
		if !strings.Contains(row, want) {
			t.Errorf("executed on the other shard: got %q, want %s", row, want)
		}
	}
	insert()
	count("1")
	for name, execute := range states {
		refused(execute(), "prepared on")
		if w.query("SELECT 1"); w.answer.Status.Has(protocol.InTransaction) {
			t.Errorf("%s: in a transaction", name)
		}
	}
	// No statement would commit a transaction that begins there.
	w.query("SET autocommit = 0")
	refused(insert(), "autocommit")
	w.query("SET autocommit = 1")
	w.query("BEGIN")
	refused(insert(), "inside a transaction")
	w.query("COMMIT")
	w.query("SELECT @z := 7") // this value cannot be carried to another shard
	refused(read(), "user variable")
	count("1")

	// On its own shard everything works as before.
	w = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	insert = prepare("INSERT INTO t VALUES (1)")
	if begins {
		prepare("BEGIN")()
	} else {
		w.query("BEGIN")
	}
	insert()
	count("1")
	w.query("COMMIT")
	count("2")
}
