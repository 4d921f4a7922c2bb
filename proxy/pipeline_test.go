package proxy_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// piped is one command of a pipeline with the shape of its answer.
type piped struct {
	payload []byte
	shape   protocol.Shape
}

func asText(sql string) piped {
	return piped{command(protocol.ComQuery, sql), protocol.ShapeResult}
}

func (w *wire) pipeline(steps []piped) (answers [][]byte) {
	w.t.Helper()
	var all []byte
	for _, s := range steps {
		all = append(all, packet(s.payload)...)
	}
	w.send(all)
	for _, s := range steps {
		answers = append(answers, bytes.Clone(w.receive(s.shape, nil)))
	}
	w.ping("a pipeline")
	return answers
}

// Checklist 11.
// Checklist 13.
// Checklist 14.
func TestCommandsInOneWriteAreAnsweredInOrder(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	ids := func(n uint32, rest string) string { return string(binary.LittleEndian.AppendUint32(nil, n)) + rest }
	steps := []piped{
		asText("SELECT 1"), asText("SELECT 2"), asText("SELECT nothing"), asText("SELECT 3"),
		{command(protocol.ComPing, ""), protocol.ShapeOne},
		asText("SET @x = 5"), asText("SELECT @x"),
		asText("CREATE TEMPORARY TABLE t (a INT)"), asText("INSERT INTO t VALUES (1), (2)"), asText("SELECT ROW_COUNT()"),
		asText("BEGIN"), asText("DELETE FROM t"), asText("ROLLBACK"), asText("SELECT COUNT(*) FROM t"),
		asText("SELECT 1; SELECT 2; SELECT 3"), asText("SELECT LAST_INSERT_ID(44)"), asText("SELECT LAST_INSERT_ID()"),
		asText("SET SESSION sql_mode = 'ANSI_QUOTES'"), asText(`SELECT "a" FROM t`), asText("SET SESSION sql_mode = DEFAULT"), asText(`SELECT "a" FROM t`),
		{command(protocol.ComSetOption, "\x01\x00"), protocol.ShapeOne},
		asText("SELECT 1; SELECT 2"),
		{command(protocol.ComSetOption, "\x00\x00"), protocol.ShapeOne},
		asText("SELECT 1; SELECT 2"),
		{command(protocol.ComInitDB, "mysql"), protocol.ShapeOne},
		asText("SELECT DATABASE()"),
		{command(protocol.ComStmtClose, ids(99, "")), protocol.ShapeNone},
		{command(0x55, ""), protocol.ShapeOne},
		{nil, protocol.ShapeOne},
		{command(protocol.ComStmtExecute, ids(99, "\x00\x01\x00\x00\x00")), protocol.ShapeOne},
		asText("SELECT REPEAT('x', 100000)"), asText("SELECT 'end'"),
		{command(protocol.ComResetConn, ""), protocol.ShapeOne},
		asText("SELECT @x, DATABASE() IS NULL"),
	}
	// The direct answers one by one: pipelined or not, they are the same.
	direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	got := w.pipeline(steps)
	for i, s := range steps {
		direct.send(packet(s.payload))
		want := direct.receive(s.shape, nil)
		compare(t, fmt.Sprintf("step %d, %.60q", i, s.payload), got[i], want)
	}
	// A read may return any number of bytes.
	var all []byte
	for _, s := range steps {
		all = append(all, packet(s.payload)...)
	}
	w = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	go func() {
		for rest := all; len(rest) > 0; {
			n := min(1+rand.IntN(40), len(rest))
			if _, err := w.nc.Write(rest[:n]); err != nil {
				return // the reader reports it
			}
			rest = rest[n:]
			if rand.IntN(4) == 0 {
				time.Sleep(100 * time.Microsecond)
			}
		}
	}()
	for i, s := range steps {
		answer := w.receive(s.shape, nil)
		compare(t, fmt.Sprintf("in pieces: step %d, %.60q", i, s.payload), answer, got[i])
	}
}

// Checklist 11.
func TestAPipelineMixesAnswersOfTheProxyOfBothShardsAndErrors(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	createSequence(t, e, "s")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	var steps []piped
	const rounds = 30
	for i := range rounds {
		steps = append(steps,
			asText(fmt.Sprintf("SELECT 'a%d', @@port", i)), asText("SELECT NEXTVAL('s')"), asText("SELECT LAST_INSERT_ID()"),
			asText("USE "+e.Schemas[1]), asText(fmt.Sprintf("SELECT 'b%d', @@port", i)), asText("SELECT NEXTVAL('s')"),
			asText("SELECT NEXTVAL('unknown')"), asText("SELECT nothing"), asText("SELECT CONNECTION_ID()"),
			asText("USE "+e.Schemas[0]), asText(fmt.Sprintf("SET @x = %d", i)), asText("SELECT @x"))
	}
	answers := w.pipeline(steps)
	id := strconv.FormatUint(uint64(w.hello.Greeting.ConnectionID), 10)
	for i := range rounds {
		a, n := answers[i*12:(i+1)*12], strconv.Itoa(2*i+1)
		next := strconv.Itoa(2*i + 2)
		for at, want := range map[int][]string{
			0: {fmt.Sprint("a", i), e.port(0)}, 1: {n}, 2: {n}, 4: {fmt.Sprint("b", i), e.port(1)}, 5: {next},
			8: {id}, 11: {strconv.Itoa(i)},
		} {
			row := split(a[at])
			for _, v := range want {
				if !bytes.Contains(row[len(row)-2], []byte(v)) {
					t.Fatalf("round %d, answer %d: got %q, want %q", i, at, row[len(row)-2], v)
				}
			}
		}
		if err := serverError(t, a[6]); err.Code != 4091 {
			t.Errorf("round %d: got %v, want 4091", i, err)
		}
		if err := serverError(t, a[7]); err.Code != 1054 {
			t.Errorf("round %d: got %v, want 1054", i, err)
		}
	}
}

// Checklist 13.
// Checklist 35.
func TestAMegabyteOfStatementsWithLargeAnswersDoesNotLockUp(t *testing.T) {
	server, client := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.TLS = server }})
	createSequence(t, e, "s")
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": client} {
		t.Run(name, func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{TLS: config})
			if err := w.nc.(interface{ SetReadBuffer(int) error }).SetReadBuffer(32 << 10); err != nil {
				t.Fatal(err)
			}
			const answer = 40_000
			var all []byte
			n := 0
			for ; len(all) < 1<<20; n++ {
				all = append(all, packet(command(protocol.ComQuery, fmt.Sprintf("SELECT %d, REPEAT('%d', %d) /* %1000s */", n, n%10, answer, "")))...)
				if n%50 == 49 {
					all = append(all, packet(command(protocol.ComQuery, "SELECT NEXTVAL('s')"))...)
				}
			}
			w.send(all) // before the client reads anything
			for i := range n {
				got := split(w.receive(protocol.ShapeResult, nil))
				row := got[len(got)-2]
				v, size, _ := protocol.ReadLenEncBytes(row)
				long, _, _ := protocol.ReadLenEncBytes(row[size:])
				if string(v) != strconv.Itoa(i) || len(long) != answer || long[0] != byte('0'+i%10) {
					t.Fatalf("answer %d: got %q and %d bytes", i, v, len(long))
				}
				if i%50 == 49 {
					w.receive(protocol.ShapeResult, nil)
				}
			}
			w.ping("the pipeline")
		})
	}
}

// Checklist 35.
func TestAClientThatReadsSlowlyGetsEverything(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('x', 1000) FROM "+e.Servers[0].Numbers(20_000))))
	for range 10 {
		time.Sleep(30 * time.Millisecond)
		if err := w.Fill(); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(split(w.receive(protocol.ShapeResult, nil))); got < 20000 {
		t.Errorf("got %d packets, want more than 20000", got)
	}
	w.ping("a slow read")
}

// Checklist 35.
func TestAClientThatNeverReadsIsClosed(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.WriteTimeout = 300 * time.Millisecond }})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('x', 1000) FROM "+e.Servers[0].Numbers(100_000))))
	e.awaitSessions(t, 0)
}

// awaitSessions waits until the proxy has n sessions.
func (e *env) awaitSessions(t testing.TB, n int) {
	t.Helper()
	if !eventually(t, "the sessions", func() bool { return e.Proxy.Sessions() == n }) {
		t.Errorf("sessions: got %d, want %d", e.Proxy.Sessions(), n)
	}
}

// Checklist 11.
func TestPacketNumbersOfLongAnswersBeginAnewBehind255(t *testing.T) {
	e := newEnv(t, setup{})
	for i := range 300 {
		createSequence(t, e, fmt.Sprintf("s%03d", i))
	}
	for _, caps := range endings {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		for _, sql := range []string{"SHOW SEQUENCES", "SELECT seq FROM " + e.Servers[0].Numbers(600)} {
			// of the proxy, and of the server
			answer := w.query(sql)
			num, packets := uint8(1), 0
			for rest := answer; len(rest) > 0; num++ {
				if rest[3] != num {
					t.Fatalf("%s, packet %d: got number %d, want %d", sql, packets, rest[3], num)
				}
				rest = rest[protocol.HeaderSize+protocol.PayloadLen(rest):]
				packets++
			}
			if packets < 300 {
				t.Errorf("%s: got %d packets, want more than numbers", sql, packets)
			}
		}
	}
}
