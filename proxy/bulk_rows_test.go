package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// Flags and indicators of COM_STMT_BULK_EXECUTE (https://mariadb.com/kb/en/com_stmt_bulk_execute/).
const (
	bulkUnitResults = 64
	bulkSendTypes   = 128

	bulkNull    = "\x01"
	bulkDefault = "\x02"
	bulkIgnore  = "\x03"
)

// bulkRows makes the part of COM_STMT_BULK_EXECUTE after the statement's id: types, if there are
// any, and the values of all rows with their indicators.
func bulkRows(flags uint16, types string, values ...string) string {
	if types != "" {
		flags |= bulkSendTypes
	}
	return string(binary.LittleEndian.AppendUint16(nil, flags)) + types + strings.Join(values, "")
}

// bulkText is a string with its indicator.
func bulkText(s string) string { return "\x00" + string(protocol.AppendLenEncBytes(nil, s)) }

// bulkLong is a typeLong with its indicator.
func bulkLong(n uint32) string { return "\x00" + string(binary.LittleEndian.AppendUint32(nil, n)) }

// bulkNumber is a BIGINT UNSIGNED with its indicator.
func bulkNumber(n uint64) string { return "\x00" + string(binary.LittleEndian.AppendUint64(nil, n)) }

const typeNumber = "\x08\x80"

// bulkPair is a pair that has agreed on bulk executions, with the flags that may be used. Both
// sides share the table t, which bulkPair empties.
func (e *env) bulkPair(t testing.TB) (p *pair, flags []uint16) {
	t.Helper()
	caps := allFraming | protocol.BulkOperations
	flags = []uint16{0}
	if hello, _ := e.Shards.Routes().Greeting(); hello.Capabilities.Has(protocol.BulkUnitResults) {
		caps |= protocol.BulkUnitResults
		flags = append(flags, bulkUnitResults)
	}
	return e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps}), flags
}

// Checklist 34.
func TestEveryIndicatorOfABulkExecutionIsTheServersToUnderstand(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.BulkOperations, "bulk execution")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(100) NOT NULL DEFAULT 'def', b INT DEFAULT 7)")
	p, flags := e.bulkPair(t)
	types := typeLong + typeString + typeLong
	row := func(id uint32, rest ...string) string { return bulkLong(id) + strings.Join(rest, "") }
	rows := []string{
		row(1, bulkText("x"), bulkLong(1)), row(2, bulkDefault, bulkDefault), row(3, bulkIgnore, bulkIgnore), row(4, bulkText("y"), bulkNull),
		bulkNull + bulkText("generated") + bulkLong(5), bulkDefault + bulkText("generated, too") + bulkLong(6),
	}
	for _, f := range flags {
		p.query("ALTER TABLE t AUTO_INCREMENT = 1")
		insert := p.prepare("INSERT INTO t VALUES (?, ?, ?)")
		const undo = "DELETE FROM t"
		insert.sequential(protocol.ComStmtBulkExecute, bulkRows(f, types, rows[:4]...), undo)
		// The types are those of the last bulk execution.
		insert.sequential(protocol.ComStmtBulkExecute, bulkRows(f, "", rows[:4]...), undo)
		insert.sequential(protocol.ComStmtBulkExecute, bulkRows(f, types, rows[0], row(2, bulkNull, bulkLong(1))), undo)
		insert.sequential(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+binding("\x06", types, "\x09\x00\x00\x00"), undo)
		// The types are those of an execution of one row.
		insert.sequential(protocol.ComStmtBulkExecute, bulkRows(f, "", rows[1:3]...), undo)
		update := p.prepare("UPDATE t SET a = ?, b = ? WHERE id = ?")
		update.sequential(protocol.ComStmtBulkExecute, bulkRows(f, typeString+typeLong+typeLong,
			bulkIgnore+bulkLong(50)+bulkLong(1), bulkDefault+bulkNull+bulkLong(2), bulkText("z")+bulkIgnore+bulkLong(3)), undo)
		for _, sql := range []string{"REPLACE INTO t VALUES (?, ?, ?)", "INSERT IGNORE INTO t VALUES (?, ?, ?)", "INSERT INTO t VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE b = b + 1"} {
			p.prepare(sql).sequential(protocol.ComStmtBulkExecute, bulkRows(f, types, append(rows[:2:2], rows[0])...), undo)
		}
		del := p.prepare("DELETE FROM t WHERE id = ?")
		del.sequential(protocol.ComStmtBulkExecute, bulkRows(f, typeLong, bulkLong(1), bulkLong(2)), "REPLACE INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
		// The bulk stands between other commands in one write.
		p.Direct.query(undo)
		p.inOneWrite("in a pipeline", prepares("DELETE FROM t WHERE id = ?"), sent{protocol.ComQuery, "SELECT 1"},
			sent{protocol.ComStmtBulkExecute, lastPrepared + bulkRows(f, typeLong, bulkLong(1), bulkLong(2))}, sent{protocol.ComQuery, "SELECT ROW_COUNT()"})
		for i := range rows[4:] { // the server's own numbers differ on the two connections
			insert.same(protocol.ComStmtBulkExecute, bulkRows(f, types, row(1, bulkText("dup"), bulkNull), row(1, bulkText("dup"), bulkNull)))
			for _, w := range []*wire{p.Direct, p.Proxy} {
				p.Direct.query("TRUNCATE TABLE t")
				id := map[*wire]uint32{p.Direct: insert.direct, p.Proxy: insert.proxy}[w]
				w.do(protocol.ComStmtBulkExecute, string(binary.LittleEndian.AppendUint32(nil, id))+bulkRows(f, types, rows[4+i], rows[4+i]))
				if got := strings.Join(w.rows("SELECT GROUP_CONCAT(id ORDER BY id), LAST_INSERT_ID() FROM t"), " "); got != "1,2 1" && got != "1,2 2" {
					t.Errorf("generated numbers: got %s, want rows 1 and 2", got)
				}
			}
		}
	}
}

// Checklist 34.
func TestNumbersOfABulkExecutionStandBesideEveryIndicator(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.BulkOperations, "bulk execution")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1 << 33}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a VARCHAR(100) NOT NULL DEFAULT 'def', b INT DEFAULT 7)")
	p, flags := e.bulkPair(t)
	rows := []string{
		bulkText("x") + bulkLong(1), bulkDefault + bulkDefault, bulkIgnore + bulkIgnore, bulkText("") + bulkNull, bulkText(strings.Repeat("long", 25)) + bulkLong(1<<31),
	}
	for _, f := range flags {
		proxied := p.Proxy.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('s'), ?, ?)")[5:9]
		direct := p.Direct.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (LAST_INSERT_ID(?), ?, ?)")[5:9]
		run := func(w *wire, cmd protocol.Command, command string) []byte {
			p.Direct.query("DELETE FROM t")
			answer := bytes.Clone(w.do(cmd, command))
			answer = append(answer, w.query("SELECT LAST_INSERT_ID()")...)
			answer = append(answer, w.query("SHOW WARNINGS")...)
			return append(answer, w.query("SELECT * FROM t ORDER BY id")...)
		}
		one := func() {
			t.Helper()
			n := e.nextNumber(t, "s")
			compare(t, "one row", run(p.Proxy, protocol.ComStmtExecute, string(proxied)+"\x00\x01\x00\x00\x00"+binding("\x00", typeString+typeLong, "\x01a\x02\x00\x00\x00")),
				run(p.Direct, protocol.ComStmtExecute, string(direct)+"\x00\x01\x00\x00\x00"+binding("\x00", typeNumber+typeString+typeLong, bulkNumber(n)[1:]+"\x01a\x02\x00\x00\x00")))
		}
		many := func(types string, rows ...string) {
			t.Helper()
			n := e.nextNumber(t, "s")
			numbered := make([]string, len(rows))
			for i := range rows {
				numbered[i] = bulkNumber(n+uint64(i)) + rows[i]
			}
			directTypes := types
			if types != "" {
				directTypes = typeNumber + types
			}
			compare(t, fmt.Sprintf("flags %d, %d rows, types %x", f, len(rows), types), run(p.Proxy, protocol.ComStmtBulkExecute, string(proxied)+bulkRows(f, types, rows...)),
				run(p.Direct, protocol.ComStmtBulkExecute, string(direct)+bulkRows(f, directTypes, numbered...)))
			if got, want := e.nextNumber(t, "s"), n+uint64(len(rows)); got != want {
				t.Errorf("%d rows: got %d as the next number, want %d", len(rows), got, want)
			}
		}
		types := typeString + typeLong
		many(types, rows...)
		many("", rows[1:]...) // the types are those of the last bulk
		one()
		many("", rows...) // the types are those of an execution of one row
		one()
		many(types, rows[0])
		many(types, rows[0], bulkNull+bulkLong(1)) // the column does not accept a NULL
		var all []string
		for len(all) < 5000 { // so long that the proxy reads it in parts
			all = append(all, rows...)
		}
		many(types, all...)
		before := e.nextNumber(t, "s")
		for _, c := range []struct{ types, rows string }{
			{typeString, ""},
			{typeString + "\x03", ""},
			{types, ""},
			{types, "\x09" + bulkLong(1)},
			{types, "\x04" + bulkLong(1)},
			{types, rows[0] + "\x04\x04"},
			{types, "\x00\x05abc"},
			{types, rows[0] + "\x00"},
			{"", "\x00\xfe\xff"},
		} {
			directTypes, number := typeNumber+c.types, ""
			if c.types == "" {
				directTypes = ""
			}
			if c.rows != "" {
				number = bulkNumber(before)
			}
			got, want := p.Proxy.do(protocol.ComStmtBulkExecute, string(proxied)+bulkRows(f, c.types, c.rows)), p.Direct.do(protocol.ComStmtBulkExecute, string(direct)+bulkRows(f, directTypes, number, c.rows))
			compare(t, fmt.Sprintf("malformed: types %x, rows %x", c.types, c.rows), got, want)
		}
		if got := e.nextNumber(t, "s"); got != before {
			t.Errorf("after malformed bulks: got %d as the next number, want %d", got, before)
		}
	}
}

// Checklist 12.
// Checklist 34.
func TestABulkExecutionMayBeLongerThanIsHeld(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.MaxStatement = 1 << 20 }})
	e.offers(t, protocol.BulkOperations, "bulk execution")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1}); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED, a LONGTEXT)")
	p, _ := e.bulkPair(t)
	w := p.Proxy
	plain := string(w.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (1, ?)")[5:9])
	numbered := string(w.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('s'), ?)")[5:9])
	for _, size := range []int{100, 40_000, 900_000, 2 << 20, 17 << 20} {
		const rows = 40
		each := bulkText(strings.Repeat("x", size/rows))
		rest := bulkRows(0, typeString, slices.Repeat([]string{each}, rows)...)
		for _, id := range []string{plain, numbered, "\xf0\x00\x00\x00"} {
			w.query("TRUNCATE TABLE t")
			all, _ := protocol.AppendPacket(nil, command(protocol.ComStmtBulkExecute, id+rest), 0)
			w.send(all)
			answer := w.receive(protocol.ShapeResult, nil)
			w.ping("a long bulk")
			got := strings.Join(w.rows("SELECT COUNT(*), COALESCE(MAX(id) - MIN(id), 0), COALESCE(MAX(LENGTH(a)), 0) FROM t"), " ")
			switch {
			case id == plain:
				if want := fmt.Sprint(rows, 0, size/rows); answer[4] != 0 || got != want {
					t.Errorf("%d bytes: got %s, want %s", size, got, want)
				}
			case id == numbered && len(rest) < 1<<20:
				if want := fmt.Sprint(rows, rows-1, size/rows); answer[4] != 0 || got != want {
					t.Errorf("%d bytes with numbers: got %s, want %s", size, got, want)
				}
			case id == numbered:
				if err := serverError(t, answer); err.Code != 1153 || !strings.Contains(err.Message, "max_statement") || got != "0 0 0" {
					t.Errorf("%d bytes with numbers: got %v and rows %s, want 1153 and none", size, err, got)
				}
			default:
				if err := serverError(t, answer); err.Code != 1243 {
					t.Errorf("%d bytes, unknown statement: got %v, want 1243", size, err)
				}
			}
		}
	}
}

// A row of one byte may need many numbers. The proxy refuses a bulk that would become too long
// before it takes numbers and memory for it.
func TestABulkExecutionThatItsNumbersMakeTooLongTakesNone(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.BulkOperations, "bulk execution")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (a BIGINT UNSIGNED, b BIGINT UNSIGNED, c TEXT)")
	p, _ := e.bulkPair(t)
	id := string(p.Proxy.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('s'), NEXTVAL('s'), ?)")[5:9])
	before := e.nextNumber(t, "s")
	for _, rows := range []int{1 << 20, 4 << 20} {
		answer := p.Proxy.do(protocol.ComStmtBulkExecute, id+bulkRows(0, typeString, strings.Repeat(bulkNull, rows)))
		if err := serverError(t, answer); err.Code != 1153 {
			t.Errorf("%d rows: got %v, want 1153", rows, err)
		}
	}
	if got := e.nextNumber(t, "s"); got != before {
		t.Errorf("got %d as the next number, want %d", got, before)
	}
}

// Without the flag the server refuses the command as unknown, whatever its length.
func TestABulkExecutionThatWasNotAgreedOnIsRefusedAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT, a TEXT)")
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	s := p.prepare("INSERT INTO t VALUES (1, ?)")
	for _, size := range []int{1, 40_000, 300_000} {
		s.same(protocol.ComStmtBulkExecute, bulkRows(0, typeString, bulkText(strings.Repeat("x", size))))
		p.same(protocol.ComStmtBulkExecute, "\xf0\x00\x00\x00"+bulkRows(0, typeString, bulkText(strings.Repeat("x", size))))
	}
	p.query("SELECT COUNT(*) FROM t")
}
