package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// Checklist 19.
func TestAFileMayBeAskedForByARewrittenStatement(t *testing.T) {
	server := mysqltest.Start(t, "--local-infile=1")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE ld (a INT, b BIGINT UNSIGNED)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{
		"LOAD DATA LOCAL INFILE 'f' INTO TABLE ld (a) SET b = CONNECTION_ID()",
		"SELECT CONNECTION_ID(); LOAD DATA LOCAL INFILE 'f' INTO TABLE ld (a) SET b = 1; SELECT CONNECTION_ID()",
	} {
		w.doFile(protocol.ComQuery, sql, file("1\n2\n3\n"))
		w.ping(sql)
	}
	if got, want := strings.Join(w.rows("SELECT COUNT(*), SUM(a) FROM ld"), " "), "6 12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestALongExecutionIsAStatementLikeAnyOther(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE au (id INT AUTO_INCREMENT PRIMARY KEY, d LONGBLOB, p BIGINT UNSIGNED)")
	for _, size := range []int{10, 20_000, 60_000, 200_000} {
		blob := strings.Repeat("x", size)
		c := e.Conn(t, e.Schemas[0], nil)
		if _, err := c.ExecContext(t.Context(), "INSERT INTO au (d) VALUES (?)", blob); err != nil {
			t.Fatal(err)
		}
		if got, want := value(t, c, "SELECT LAST_INSERT_ID()"), value(t, c, "SELECT MAX(id) FROM au"); got != want {
			t.Errorf("%d bytes: LAST_INSERT_ID() is %s, want %s", size, got, want)
		}
		n := value(t, c, "SELECT NEXTVAL('s')")
		if _, err := c.ExecContext(t.Context(), "INSERT INTO au (d, p) VALUES (?, LAST_INSERT_ID())", blob); err != nil {
			t.Fatal(err)
		}
		if got := value(t, c, "SELECT p FROM au ORDER BY id DESC LIMIT 1"); got != n {
			t.Errorf("%d bytes: LAST_INSERT_ID() in an INSERT was %s, want %s", size, got, n)
		}
		if got, want := value(t, c, "SELECT LAST_INSERT_ID()"), value(t, c, "SELECT MAX(id) FROM au"); got != want {
			t.Errorf("%d bytes, after NEXTVAL: LAST_INSERT_ID() is %s, want %s", size, got, want)
		}
	}
}

// Checklist 13.
// Checklist 21.
func TestLongDataOfAStatementWithNumbersGoesToItsParameter(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE au (id BIGINT PRIMARY KEY, d LONGBLOB)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	answer := w.do(protocol.ComStmtPrepare, "INSERT INTO au VALUES (NEXTVAL('s'), ?)")
	id := string(answer[5:9])
	long := strings.Repeat("y", 300_000)
	w.send(packet(command(protocol.ComStmtLongData, id+"\x00\x00"+long)))
	w.do(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+"\x00"+"\x01"+typeBlob)
	if got, want := w.rows("SELECT LENGTH(d) FROM au")[0], fmt.Sprint(len(long)); got != want {
		t.Errorf("got %s bytes, want %s", got, want)
	}
}

// The name of a sequence comes in pieces, which the proxy keeps, between pieces for the server.
func TestLongDataThatTheProxyKeepsDoesNotReachTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE au (id BIGINT PRIMARY KEY, d VARCHAR(20))")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	answer := w.do(protocol.ComStmtPrepare, "INSERT INTO au VALUES (NEXTVAL(?), ?)")
	id := string(answer[5:9])
	var sent []byte
	for _, piece := range []string{"\x01\x00x", "\x00\x00s", "\x01\x00y"} {
		sent = append(sent, packet(command(protocol.ComStmtLongData, id+piece))...)
	}
	w.send(append(sent, packet(command(protocol.ComStmtExecute, id+"\x00\x01\x00\x00\x00"+"\x00"+"\x01"+typeBlob+typeBlob))...))
	if answer := w.receive(protocol.ShapeResult, nil); answer[protocol.HeaderSize] != 0 {
		t.Fatal(serverError(t, answer))
	}
	if got := w.rows("SELECT CONCAT(id > 0, d) FROM au")[0]; got != "1xy" {
		t.Errorf("a key, and the pieces for the server: got %s, want 1xy", got)
	}
}

// Checklist 11.
// Checklist 12.
func TestAnErrorToACommandOfSeveralPacketsGoesOnWithTheirNumbers(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	text := "SELECT '" + strings.Repeat("x", 17<<20) + "'"
	all, next := protocol.AppendPacket(nil, command(protocol.ComStmtPrepare, text), 0)
	w.send(all)
	answer, err := w.raw()
	if err != nil {
		t.Fatal(err)
	}
	if got := answer[3]; got != next {
		t.Errorf("the error's packet number is %d, want %d", got, next)
	}
	if se := serverError(t, answer); se == nil || se.Code != 1153 {
		t.Errorf("got %v, want 1153", se)
	}
}

func TestAnswersThatNobodyReadsAreNotHeaped(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: megabytes that are not read")
	}
	e := newEnv(t, setup{})
	for i := range 50 {
		createSequence(t, e, fmt.Sprintf("s%d", i))
	}
	w := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	show := packet(command(protocol.ComQuery, "SHOW SEQUENCES"))
	const n = 1000
	go w.nc.Write([]byte(strings.Repeat(string(show), n))) // ends when the connection does
	for range n {
		w.receive(protocol.ShapeResult, nil)
	}
}

func TestADialIsBoundedByTheConnectTimeout(t *testing.T) {
	address := mysqltest.SilentListener(t).String()
	e := newEnv(t, setup{Shards: 2, Backend: func(o *backend.Options) {
		o.ConnectTimeout = 1500 * time.Millisecond
		o.Shards[1].Nodes = []string{address}
	}})
	c := e.Conn(t, "", nil)
	for range 3 {
		wantErrorInTime(t, c, 1429, "USE "+e.Schemas[1], "shard")
	}
	// A busy machine's other shard may need longer than that at times.
	eventually(t, "the other shard", func() bool { return run(t.Context(), c, "text", "SELECT 1") == nil })
}

func TestClosingAStatementOfAnotherShardLeavesTheWarningsWhereTheyAre(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	answer := w.do(protocol.ComStmtPrepare, "SELECT 1")
	id := string(answer[5:9])
	w.query("USE " + e.Schemas[1])
	w.query("SELECT CAST('x' AS SIGNED)")
	w.send(packet(command(protocol.ComStmtLongData, id+"\x00\x00y")))
	w.send(packet(command(protocol.ComStmtClose, id)))
	if got := strings.Join(w.rows("SHOW WARNINGS"), " "); !strings.Contains(got, "1292") {
		t.Errorf("got %q, want the warning 1292", got)
	}
}
