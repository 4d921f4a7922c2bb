package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// bigPackets allows clients packets of more than 16 MB.
func bigPackets(c *mysql.Config) { c.MaxAllowedPacket = 64 << 20 }

// stored makes a statement whose packet has a payload of exactly size bytes.
func stored(id, size int) []byte {
	head := fmt.Sprintf("\x03INSERT INTO t VALUES (%d, '", id)
	return append(append([]byte(head), bytes.Repeat([]byte{'x'}, size-len(head)-2)...), "')"...)
}

// Checklist 12.
func TestPacketsAroundSixteenMegabytesPassBothWays(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: rows of 32 MB")
	}
	server := mysqltest.Start(t, "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.MaxStatement = 1 << 20 }})
	schema := e.Schemas[0]
	server.Exec(t, "USE "+schema, "CREATE TABLE t (id INT, b LONGTEXT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
	const edge = protocol.MaxFragment
	for i, size := range []int{1<<15 - 1, 1 << 15, 1 << 20, 1<<20 + 1, edge - 1, edge, edge + 1, 2 * edge} {
		b, _ := protocol.AppendPacket(nil, stored(i, size), 0)
		w.send(b)
		if got := w.receive(protocol.ShapeResult, nil); got[4] != 0 {
			t.Fatalf("%d bytes: %v", size, serverError(t, got))
		}
		w.ping("a long statement")
		want := fmt.Sprint(size - len(fmt.Sprintf("\x03INSERT INTO t VALUES (%d, '", i)) - 2)
		if got := w.rows(fmt.Sprintf("SELECT LENGTH(b) FROM t WHERE id = %d", i))[0]; got != want {
			t.Errorf("%d bytes: got length %s, want %s", size, got, want)
		}
	}
	// A row is a length (4 bytes for less than 16 MB, else 9, whose first byte may also begin a
	// terminator) and the value.
	for name, rowSizes := range map[string][]int{"with EOF": nil, "without EOF": {edge - 5, edge - 4, edge - 3, 2*edge - 9}} {
		caps := endings[name]
		w, direct := e.Wire(t, e.Addr(), wireLogin{Schema: schema, Capabilities: caps}), e.Wire(t, server.Addr(), wireLogin{Schema: schema, Capabilities: caps})
		for _, n := range rowSizes {
			sql := fmt.Sprintf("SELECT 1 UNION ALL SELECT REPEAT('\\0', %d) UNION ALL SELECT 'end'", n)
			if !bytes.Equal(sum(w, sql), sum(direct, sql)) {
				t.Errorf("%s, %s: the answers differ", name, sql)
			}
		}
		// Among several results, and prepared.
		sql := fmt.Sprintf("SELECT 1; SELECT REPEAT('\\0', %d) UNION ALL SELECT 'x'; SELECT 2", edge+1)
		if !bytes.Equal(sum(w, sql), sum(direct, sql)) {
			t.Errorf("%s, %s: the answers differ", name, sql)
		}
		var hashes [2][32]byte
		for i, w := range []*wire{w, direct} {
			// A binary row is 0, one byte of NULLs, the length and the value.
			id := string(w.do(protocol.ComStmtPrepare, fmt.Sprintf("SELECT REPEAT('\\0', %d) UNION ALL SELECT 'end'", edge-6))[5:9])
			hashes[i] = sha256.Sum256(w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"))
		}
		if hashes[0] != hashes[1] {
			t.Errorf("%s, prepared: the answers differ", name)
		}
	}
}

// sum runs a query and returns the hash of the answer's bytes.
func sum(w *wire, sql string) []byte {
	h := sha256.Sum256(w.query(sql))
	return h[:]
}

func TestAStatementTooLongForTheServerIsItsToRefuse(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=16M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	ctx := context.Background()
	text := "SELECT LENGTH('" + strings.Repeat("y", 17<<20) + "')"
	got := func(c *mysql.Config) error {
		pool := e.open(t, c.Addr, "", bigPackets)
		_, err := pool.ExecContext(ctx, text)
		return err
	}
	via, direct := got(&mysql.Config{Addr: e.Addr()}), got(&mysql.Config{Addr: e.Servers[0].Addr()})
	if via == nil || direct == nil {
		t.Errorf("got %v, direct %v, want errors", via, direct)
	}
}

// Checklist 12.
func TestBigParametersAndRowsPassWithADriver(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	ctx := context.Background()
	c := e.Conn(t, e.Schemas[0], bigPackets)
	exec(t, c, "CREATE TABLE t (id INT, b LONGBLOB)")
	big := bytes.Repeat([]byte("0123456789abcdef"), 20<<16)
	want := sha256.Sum256(big)
	for id, interpolated := range []bool{false, true} {
		c := e.Conn(t, e.Schemas[0], func(m *mysql.Config) { bigPackets(m); m.InterpolateParams = interpolated })
		if _, err := c.ExecContext(ctx, "INSERT INTO t VALUES (?, ?)", id, big); err != nil {
			t.Fatalf("interpolated %v: %v", interpolated, err)
		}
		var got []byte
		if err := c.QueryRowContext(ctx, "SELECT b FROM t WHERE id = ?", id).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if sha256.Sum256(got) != want {
			t.Errorf("interpolated %v: got %d other bytes", interpolated, len(got))
		}
	}
}

// Checklist 13.
// Checklist 21.
func TestLongDataInManyPiecesIsPutTogether(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{})
	s := p.prepare("SELECT LENGTH(?), SHA2(?, 256)")
	for i := range 40 {
		s.same(protocol.ComStmtLongData, "\x00\x00"+strings.Repeat(string(rune('a'+i%26)), 50000))
		s.same(protocol.ComStmtLongData, "\x01\x00"+strings.Repeat("z", i))
	}
	s.execute("\x00", typeBlob+typeBlob, "")
}

// Checklist 15.
// Checklist 16.
func TestResultsWithManyColumnsOrNoRowsAreTheServers(t *testing.T) {
	e := newEnv(t, setup{})
	for _, caps := range []protocol.Capability{allFraming, protocol.LongFlag | protocol.MultiResults} {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for _, n := range []int{250, 251, 252, 1000, 4000} {
			columns := make([]string, n)
			for i := range columns {
				columns[i] = fmt.Sprintf("%d AS c%d", i, i)
			}
			p.query("SELECT " + strings.Join(columns, ", "))
			p.query("SELECT " + strings.Join(columns, ", ") + " FROM DUAL WHERE 0")
		}
		p.query("SELECT * FROM (SELECT 1 AS a) x WHERE a = 2")
		p.query("SELECT '' UNION ALL SELECT NULL UNION ALL SELECT ''")
		// Rows that begin like terminators.
		p.query("SELECT REPEAT('a', 65536), 1 UNION ALL SELECT REPEAT('b', 16777), 2")
		p.query("SELECT REPEAT('x', 250) UNION ALL SELECT REPEAT('x', 251) UNION ALL SELECT REPEAT('x', 252) UNION ALL SELECT REPEAT('x', 253) UNION ALL SELECT REPEAT('x', 254) UNION ALL SELECT REPEAT('x', 255)")
	}
}

// Checklist 16.
func TestAnErrorInMidResultComesWhereTheServerPutIt(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t SELECT seq FROM "+e.Servers[0].Numbers(5000))
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	// Row by row, with an error in the last one.
	for range 2 {
		got := p.query("SELECT id, (SELECT 1 UNION SELECT IF(t.id = 5000, 2, 1)) FROM t")
		last := split(got)
		if e := protocol.ParseServerError(last[len(last)-1]); !strings.Contains(e.Error(), "1242") || len(last) < 4000 {
			t.Errorf("got %d packets and at the end %v, want 1242 behind many rows", len(last), e)
		}
		p.query("SELECT ROW_COUNT()")
	}
	p.query("SELECT 1; SELECT id, (SELECT 1 UNION SELECT IF(t.id = 5000, 2, 1)) FROM t; SELECT 3")
}

// file makes the packets of a LOCAL INFILE transfer, numbered from 2 on.
func file(chunks ...string) (b []byte) {
	num := uint8(2)
	for _, c := range chunks {
		b, num = protocol.AppendPacket(b, []byte(c), num)
	}
	b, _ = protocol.AppendPacket(b, nil, num)
	return b
}

// Checklist 12.
// Checklist 19.
func TestLoadDataLocalInfilePassesTheFile(t *testing.T) {
	server := mysqltest.Start(t, "--local-infile=1", "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	schema := e.Schemas[0]
	lines := strings.Repeat("1\tline\n", 100_000)
	var pieces []string
	for rest := lines; len(rest) > 0; {
		n := min(len(rest), 15000)
		pieces, rest = append(pieces, rest[:n]), rest[n:]
	}
	const load = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"
	for _, c := range []struct {
		name, sql string
		file      []byte
	}{
		{"small", load, file("1\ta\n2\tb\n")},
		{"empty", load, file()},
		{"in many packets", load, file(pieces...)},
		{"in long packets", load, file(lines[:300_000], lines[300_000:400_000])},
		{"in a packet of more than 16 MB", load, file(strings.Repeat("2\t"+strings.Repeat("long ", 1000)+"line\n", 17<<20/5000))},
		{"in a packet of exactly 16 MB", load, file(strings.Repeat("2", protocol.MaxFragment))},
		{"with warnings", load, file("x\ty\tz\n", "1\n")},
		{"no such table", "LOAD DATA LOCAL INFILE 'x' INTO TABLE nothing", file("1\ta\n")},
		{"with results behind", load + "; SELECT COUNT(*) FROM t; INSERT INTO t VALUES (9, 'z')", file("1\ta\n")},
		{"with results before", "SELECT 1; " + load, file("1\ta\n")},
		{"with two", load + "; " + load, file("1\ta\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			var answers [2][]byte
			var counts [2]string
			for i, addr := range []string{server.Addr(), e.Addr()} {
				server.Exec(t, "USE "+schema, "DROP TABLE IF EXISTS t", "CREATE TABLE t (a INT, b VARCHAR(20))")
				w := e.Wire(t, addr, wireLogin{Schema: schema})
				w.query("SET sql_mode = ''")
				answers[i] = w.doFile(protocol.ComQuery, c.sql, c.file)
				w.query("SHOW WARNINGS")
				counts[i] = strings.Join(w.rows("SELECT COUNT(*), SUM(a) FROM t"), " ")
			}
			compare(t, c.sql, answers[1], answers[0])
			if counts[0] != counts[1] {
				t.Errorf("rows: got %s, want %s", counts[1], counts[0])
			}
		})
	}
	t.Run("by the driver", func(t *testing.T) {
		c := e.Conn(t, schema, nil)
		mysql.RegisterReaderHandler("rows", func() io.Reader { return strings.NewReader(lines) })
		exec(t, c, "TRUNCATE t", "LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE t")
		if got := value(t, c, "SELECT COUNT(*) FROM t"); got != "100000" {
			t.Errorf("got %s rows, want 100000", got)
		}
		_, err := c.ExecContext(context.Background(), "LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE t")
		if err == nil || !strings.Contains(err.Error(), "not registered") {
			t.Errorf("got %v, want the client's own refusal", err)
		}
		if got := value(t, c, "SELECT COUNT(*) FROM t"); got != "100000" {
			t.Errorf("after the client refused a file: got %s rows, want 100000", got)
		}
	})
	t.Run("by the command-line client", func(t *testing.T) {
		path := t.TempDir() + "/rows"
		writeFile(t, path, lines[:70_000])
		script := "TRUNCATE t; LOAD DATA LOCAL INFILE '" + path + "' INTO TABLE t; SELECT COUNT(*) FROM t; LOAD DATA LOCAL INFILE '/no/such' INTO TABLE t; SELECT 1;"
		got := withoutTimes(e.CLI(t, e.Addr(), schema, script, "--local-infile=1"))
		compareTexts(t, got, withoutTimes(e.CLI(t, server.Addr(), schema, script, "--local-infile=1")))
		if !strings.Contains(got, "10000") {
			t.Errorf("got no 10000 rows:\n%s", got)
		}
	})
	t.Run("not agreed on", func(t *testing.T) {
		p := e.Pair(t, 0, wireLogin{Schema: schema, Capabilities: allFraming &^ protocol.LocalFiles})
		p.query(load)
	})
}

// Checklist 12.
func TestLongStatementsOfEveryKindKeepTheSessionWhole(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) { o.MaxStatement = 100_000 }})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
	long := strings.Repeat("/* padding */", 40_000)
	for _, sql := range []string{
		"SELECT 1 " + long, long + "SELECT 2", "SELECT nothing" + long, long, "INSERT INTO no_such VALUES ('" + long + "')",
	} {
		compare(t, "long", w.query(sql), direct.query(sql))
		compare(t, "short", w.query("SELECT 3"), direct.query("SELECT 3"))
	}
	// An unread text may have changed the session.
	if err := serverError(t, w.query("USE "+e.Schemas[1])); err.Code != 1235 {
		t.Errorf("change of shards after a statement that was not read: got %v, want 1235", err)
	}
	for _, cmd := range []protocol.Command{protocol.ComStmtPrepare, protocol.ComInitDB, protocol.ComFieldList, 0x70} {
		w.send(packet(command(cmd, long)))
		answer := w.receive(protocol.ShapeOne, nil)
		if err := serverError(t, answer); err.Code != 1153 {
			t.Errorf("command %d that is too long: got %v, want 1153", cmd, err)
		}
		w.ping("a command that is too long")
	}
	// The proxy does not keep an execution with long parameters either.
	answer := w.do(protocol.ComStmtPrepare, "SELECT LENGTH(?)")
	id := binary.LittleEndian.Uint32(answer[5:])
	args := string(binary.LittleEndian.AppendUint32(nil, id)) + "\x00\x01\x00\x00\x00" +
		binding("\x00", typeBlob, string(protocol.AppendLenEncBytes(nil, long)))
	if got := split(w.do(protocol.ComStmtExecute, args))[2]; int(binary.LittleEndian.Uint32(got[2:])) != len(long) {
		t.Errorf("length of a long parameter: got %x, want %d", got, len(long))
	}
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
