package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

// Capabilities that only MariaDB has.

// Checklist 34.
func TestProgressReportsPassThrough(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.Progress, "progress reports")
	server, schema := e.Servers[0], e.Schemas[0]
	statements := []string{
		"ALTER TABLE t FORCE, ALGORITHM=COPY",
		"ALTER TABLE t ADD COLUMN a INT, ALGORITHM=COPY",
		"ALTER TABLE t DROP COLUMN no_such, ALGORITHM=COPY",
		"ALTER TABLE t ADD UNIQUE (a), ADD UNIQUE (same), ALGORITHM=COPY", // ERR after a report
		"CREATE INDEX i ON t (id)", "DROP INDEX i ON t",
		"INSERT INTO u SELECT id FROM t", "INSERT INTO u SELECT id FROM t", "DELETE FROM u",
		"CHECK TABLE u", "REPAIR TABLE u", "OPTIMIZE TABLE u, t", "ANALYZE TABLE t",
		"ALTER TABLE t FORCE, ALGORITHM=COPY; SELECT 1; ALTER TABLE t FORCE, ALGORITHM=COPY; SELECT 2",
		"SELECT LAST_INSERT_ID(5)",
		"CREATE TABLE w ENGINE=Aria SELECT * FROM t",
		"CALL alter_it()",
	}
	for _, caps := range []protocol.Capability{protocol.Progress, protocol.Progress | protocol.DeprecateEOF | protocol.SessionTrack, protocol.DeprecateEOF} {
		caps |= protocol.LongFlag | protocol.Transactions | protocol.MultiResults | protocol.MultiStatements
		run := func(addr string) (answers [][]byte) {
			server.Exec(t, "DROP DATABASE "+schema, "CREATE DATABASE "+schema, "USE "+schema, "CREATE TABLE t (id INT, same INT)", "INSERT INTO t VALUES (1, 0), (2, 0)",
				"CREATE TABLE u (id INT PRIMARY KEY) ENGINE=Aria", "CREATE PROCEDURE alter_it() ALTER TABLE t FORCE, ALGORITHM=COPY")
			w := e.Wire(t, addr, wireLogin{Schema: schema, Capabilities: caps})
			defer w.quit()
			for _, sql := range statements {
				answers = append(answers, w.query(sql))
			}
			id := w.do(protocol.ComStmtPrepare, statements[0])[5:9]
			return append(answers, w.do(protocol.ComStmtExecute, string(id)+"\x00\x01\x00\x00\x00"))
		}
		want, got := run(server.Addr()), run(e.Addr())
		answers, reports, behind := 0, 0, 0
		for i := range want {
			compare(t, fmt.Sprintf("flags %x: %s", uint64(caps), append(statements, "the execution")[i]), got[i], want[i])
			packets := split(got[i])
			for _, p := range packets {
				if protocol.IsProgress(p) {
					reports++
				}
			}
			if protocol.IsProgress(packets[0]) {
				answers++
			} else if len(packets) > 1 && slices.ContainsFunc(packets, func(p []byte) bool { return protocol.IsProgress(p) }) {
				behind++ // reports among rows, or between several answers
			}
		}
		if asked := caps.Has(protocol.Progress); asked != (reports > 0) || asked && answers == 0 {
			t.Errorf("flags %x: got %d reports, %d before answers and %d inside, want them where they were agreed on", uint64(caps), reports, answers, behind)
		}
		t.Logf("flags %x: %d reports, %d before answers, %d inside", uint64(caps), reports, answers, behind)
	}
}

// Checklist 20.
// Checklist 34.
func TestDefinitionsThatTheClientHasAreLeftOut(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.CacheMetadata, "cached metadata")
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 40}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT, j JSON)", "INSERT INTO t VALUES (1, '{}')")
	for _, more := range []protocol.Capability{0, protocol.ExtendedMetadata} {
		for _, eof := range []protocol.Capability{0, protocol.DeprecateEOF} {
			p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: protocol.LongFlag | protocol.Transactions | protocol.PSMultiResults | protocol.CacheMetadata | more | eof})
			s := p.prepare("SELECT ? AS x, j FROM t")
			for _, value := range []string{typeLong, typeLong, typeString, typeString, typeLong} {
				s.execute("\x00", value, map[string]string{typeLong: "\x05\x00\x00\x00", typeString: "\x03abc"}[value])
			}
			cursor := func() []byte {
				return s.same(protocol.ComStmtExecute, "\x01\x01\x00\x00\x00\x00\x01"+typeLong+"\x05\x00\x00\x00")
			}
			cursor()
			s.same(protocol.ComStmtFetch, "\x05\x00\x00\x00")
			s.same(protocol.ComStmtReset, "")
			s.execute("\x00", typeLong, "\x05\x00\x00\x00")
			e.Servers[0].Exec(t, "ALTER TABLE "+e.Schemas[0]+".t ADD COLUMN z INT")
			all := p.prepare("SELECT * FROM t")
			all.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
			e.Servers[0].Exec(t, "ALTER TABLE "+e.Schemas[0]+".t DROP COLUMN z")
			all.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
			all.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")

			// The proxy's own answers: SELECT NEXTVAL against SELECT LAST_INSERT_ID(?), and texts
			// without an argument, which are equal on both sides.
			for _, text := range []string{"SELECT CONNECTION_ID() * 0 AS c, LAST_INSERT_ID() AS l", "SELECT LAST_INSERT_ID() AS l"} {
				s := p.prepare(text)
				for range 3 {
					s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00")
				}
			}
			got := binary.LittleEndian.Uint32(p.Proxy.do(protocol.ComStmtPrepare, "SELECT NEXTVAL('s') AS n")[5:])
			want := binary.LittleEndian.Uint32(p.Direct.do(protocol.ComStmtPrepare, "SELECT LAST_INSERT_ID(?) AS n")[5:])
			for range 3 {
				n := e.nextNumber(t, "s")
				g := p.Proxy.do(protocol.ComStmtExecute, string(execution(got, nil, true)[1:]))
				w := p.Direct.do(protocol.ComStmtExecute, string(execution(want, []argument{unsigned(n)}, true)[1:]))
				compare(t, fmt.Sprintf("flags %x: number %d", uint64(p.Proxy.caps), n), g, w)
			}
		}
	}
}

// nextNumber returns the next number of a sequence.
func (e *env) nextNumber(t testing.TB, name string) uint64 {
	t.Helper()
	all, err := e.Sequences.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Name == name {
			return i.Next
		}
	}
	t.Fatalf("no sequence %s", name)
	return 0
}

// bulk makes the part of COM_STMT_BULK_EXECUTE after the statement's id: rows of integers, "" for
// NULL.
func bulk(flags uint16, rows ...[]string) string {
	const sendTypes = 128
	b := binary.LittleEndian.AppendUint16(nil, flags|sendTypes)
	for range rows[0] {
		b = append(b, mysql.MYSQL_TYPE_VAR_STRING, 0)
	}
	for _, row := range rows {
		for _, v := range row {
			if v == "" {
				b = append(b, 1) // the indicator of NULL
				continue
			}
			b = protocol.AppendLenEncBytes(append(b, 0), v)
		}
	}
	return string(b)
}

// Checklist 34.
func TestBulkExecutionsAreAnsweredAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.BulkOperations, "bulk execution")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a VARCHAR(100))")
	const unitResults = 64
	caps := allFraming | protocol.BulkOperations
	flags := []uint16{0}
	if hello, _ := e.Shards.Routes().Greeting(); hello.Capabilities.Has(protocol.BulkUnitResults) {
		caps |= protocol.BulkUnitResults
		flags = append(flags, unitResults)
	}
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
	for _, f := range flags {
		p.query("TRUNCATE TABLE t")
		insert := p.prepare("INSERT INTO t VALUES (?, ?)")
		insert.sequential(protocol.ComStmtBulkExecute, bulk(f, []string{"1", "one"}, []string{"2", ""}, []string{"3", "three"}), "DELETE FROM t")
		insert.sequential(protocol.ComStmtBulkExecute, bulk(f, []string{"1", "one"}, []string{"1", "again"}), "DELETE FROM t")
		returning := p.prepare("INSERT INTO t (id, a) VALUES (?, ?) RETURNING id, a")
		returning.sequential(protocol.ComStmtBulkExecute, bulk(f, []string{"7", "a"}, []string{"8", "b"}), "DELETE FROM t")
		update := p.prepare("UPDATE t SET a = ? WHERE id = ?")
		update.sequential(protocol.ComStmtBulkExecute, bulk(f, []string{"x", "1"}, []string{"y", "2"}), "DELETE FROM t")
		long := make([][]string, 3000)
		for i := range long {
			long[i] = []string{fmt.Sprint(i + 1), strings.Repeat("z", 100)}
		}
		insert.sequential(protocol.ComStmtBulkExecute, bulk(f, long...), "DELETE FROM t")
		p.prepare("SELECT ? + ?").same(protocol.ComStmtBulkExecute, bulk(f, []string{"1", "2"}))
		insert.same(protocol.ComStmtBulkExecute, "\x00\x00")
		insert.same(protocol.ComStmtBulkExecute, "\x80\x00")
		insert.same(protocol.ComStmtBulkExecute, "\x80\x00\xfd")
		insert.same(protocol.ComStmtBulkExecute, "")
	}
	p.same(protocol.ComStmtBulkExecute, "\xf0\x00\x00\x00\x00\x00\x00")
	p.same(protocol.ComStmtBulkExecute, "\xf0\x00")
	// Without the flag.
	p = e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	p.prepare("INSERT INTO t VALUES (?, ?)").same(protocol.ComStmtBulkExecute, bulk(0, []string{"1", "one"}))
	p.same(protocol.ComStmtBulkExecute, "\xf0\x00\x00\x00\x00\x00\x00")
}

// sequential is same for a command whose effects the other connection shares: undo runs direct,
// before the command and between the two.
func (s stmt) sequential(cmd protocol.Command, rest, undo string) {
	s.p.t.Helper()
	var answers [2][]byte
	for i, w := range []*wire{s.p.Proxy, s.p.Direct} {
		s.p.Direct.query(undo)
		id := s.proxy
		if i == 1 {
			id = s.direct
		}
		answers[i] = bytes.Clone(w.do(cmd, string(binary.LittleEndian.AppendUint32(nil, id))+rest))
		answers[i] = append(answers[i], w.query("SELECT LAST_INSERT_ID()")...)
		answers[i] = append(answers[i], w.query("SELECT * FROM t ORDER BY id")...)
	}
	compare(s.p.t, fmt.Sprintf("command %d, %.40x", cmd, rest), answers[0], answers[1])
}

// Checklist 34.
func TestBulkExecutionsGetANumberForEachRow(t *testing.T) {
	e := newEnv(t, setup{})
	e.offers(t, protocol.BulkOperations, "bulk execution")
	for _, name := range []string{"s", "other"} {
		if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: name, Start: 1 << 40}); err != nil {
			t.Fatal(err)
		}
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT PRIMARY KEY, a VARCHAR(100), other BIGINT)")
	const unitResults = 64
	flags, caps := []uint16{0}, allFraming|protocol.BulkOperations
	if hello, _ := e.Shards.Routes().Greeting(); hello.Capabilities.Has(protocol.BulkUnitResults) {
		flags, caps = append(flags, unitResults), caps|protocol.BulkUnitResults
	}
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
	id := func(w *wire, sql string) string {
		t.Helper()
		answer := w.do(protocol.ComStmtPrepare, sql)
		if answer[4] != 0 {
			t.Fatalf("%s: %v", sql, serverError(t, answer))
		}
		return string(answer[5:9])
	}
	long := make([][]string, 2000)
	for i := range long {
		long[i] = []string{strings.Repeat("z", 100)}
	}
	for _, f := range flags {
		for _, c := range []struct {
			proxied, direct string
			rows            [][]string
			// place puts the numbers among the direct statement's parameters.
			place func(row []string, s, other string) []string
		}{
			{
				"INSERT INTO t VALUES (NEXTVAL('s'), ?, NULL)", "INSERT INTO t VALUES (LAST_INSERT_ID(?), ?, NULL)",
				[][]string{{"one"}, {""}, {"three"}},
				func(row []string, s, _ string) []string { return []string{s, row[0]} },
			},
			{
				"INSERT INTO t VALUES (NEXTVAL('s'), ?, NULL)", "INSERT INTO t VALUES (LAST_INSERT_ID(?), ?, NULL)",
				[][]string{{"one"}},
				func(row []string, s, _ string) []string { return []string{s, row[0]} },
			},
			{
				"INSERT INTO t (a, id, other) VALUES (?, ? + NEXTVAL('s'), NEXTVAL('other'))", "INSERT INTO t (a, id, other) VALUES (?, ? + LAST_INSERT_ID(?), CAST(? AS UNSIGNED))",
				[][]string{{"one", "0"}, {"", "0"}, {"three", "0"}},
				func(row []string, s, other string) []string { return []string{row[0], row[1], s, other} },
			},
			{
				// a duplicate
				"INSERT INTO t VALUES (NEXTVAL('s') * 0 + 5, ?, NULL)", "INSERT INTO t VALUES (LAST_INSERT_ID(?) * 0 + 5, ?, NULL)",
				[][]string{{"one"}, {"two"}},
				func(row []string, s, _ string) []string { return []string{s, row[0]} },
			},
			{
				"INSERT INTO t VALUES (NEXTVAL('s'), ?, NULL)", "INSERT INTO t VALUES (LAST_INSERT_ID(?), ?, NULL)",
				long, func(row []string, s, _ string) []string { return []string{s, row[0]} },
			},
		} {
			s, other := e.nextNumber(t, "s"), e.nextNumber(t, "other")
			rows := make([][]string, len(c.rows))
			for i, row := range c.rows {
				rows[i] = c.place(row, fmt.Sprint(s+uint64(i)), fmt.Sprint(other+uint64(i)))
			}
			run := func(w *wire, sql string, rows [][]string) []byte {
				p.Direct.query("DELETE FROM t")
				answer := bytes.Clone(w.do(protocol.ComStmtBulkExecute, id(w, sql)+bulk(f, rows...)))
				answer = append(answer, w.query("SELECT LAST_INSERT_ID()")...)
				return append(answer, w.query("SELECT * FROM t ORDER BY id")...)
			}
			compare(t, fmt.Sprintf("%d rows of %s", len(rows), c.proxied), run(p.Proxy, c.proxied, c.rows), run(p.Direct, c.direct, rows))
		}
	}

	// A bulk that is malformed, or that the proxy refuses, takes no number.
	before := e.nextNumber(t, "s")
	insert := id(p.Proxy, "INSERT INTO t VALUES (NEXTVAL('s'), ?, NULL)")
	for _, rest := range []string{"\x00\x00\x00\x03one", "", "\x80\x00", "\x80\x00\xfd", "\x80\x00\xfd\x00", "\x80\x00\xfd\x00\x00\x63one", "\x80\x00\xfd\x00\x00\x03one\x00"} {
		serverError(t, p.Proxy.do(protocol.ComStmtBulkExecute, insert+rest))
	}
	row := bulk(0, []string{"one"})
	for sql, code := range map[string]uint16{
		"INSERT INTO t VALUES (NEXTVAL('s'), 'a', NULL)":           1295,
		"INSERT INTO t VALUES (NEXTVAL('s'), ?, LAST_INSERT_ID())": 1235,
		"SELECT NEXTVAL('s')": 1295,
		"INSERT INTO t VALUES (NEXTVAL('s'), CONCAT(?, 'a'), NULL)": 1235, // with long data
	} {
		s := id(p.Proxy, sql)
		if strings.Contains(sql, "CONCAT") {
			p.Proxy.send(packet(longDataCommand(binary.LittleEndian.Uint32([]byte(s)), 0, []byte("long"))))
		}
		if err := serverError(t, p.Proxy.do(protocol.ComStmtBulkExecute, s+row)); err.Code != code {
			t.Errorf("%s: got %v, want error %d", sql, err, code)
		}
	}
	if after := e.nextNumber(t, "s"); after != before {
		t.Errorf("numbers: got %d next, want %d still", after, before)
	}
}
