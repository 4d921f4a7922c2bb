package proxy_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// largeText is a statement of so many bytes, which are without meaning after the text.
func largeText(text string, size int) []byte {
	b := packet(append(command(protocol.ComQuery, text+" /*"), bytes.Repeat([]byte("x"), size-len(text)-6)...))
	return append(b[:len(b)-2], "*/"...)
}

// withMemory sets how much memory large statements may take. A wait for it does not end soon, even
// on a busy machine.
func withMemory(bytes int64) func(*proxy.Options) {
	return func(o *proxy.Options) { o.StatementMemory, o.PauseTimeout = bytes, 10*time.Minute }
}

// awaitWaiting waits until so many sessions wait for memory.
func (e *env) awaitWaiting(t testing.TB, n int) {
	t.Helper()
	var size, used, waiting uint64
	if !eventually(t, fmt.Sprint(n, " sessions wait for memory"), func() bool {
		size, used, waiting, _ = e.Proxy.StatementMemory()
		return waiting == uint64(n) && used <= size
	}) {
		t.Fatalf("got %d that wait, and %d of %d bytes in use", waiting, used, size)
	}
}

// noMemoryTaken checks that all memory was given back.
func (e *env) noMemoryTaken(t testing.TB) {
	t.Helper()
	eventually(t, "all memory is given back", func() bool {
		_, used, waiting, _ := e.Proxy.StatementMemory()
		return used == 0 && waiting == 0
	})
}

// A hundred sessions send fifteen megabytes each at the same time, all but the last byte. The proxy
// holds as much as it may, the rest waits in the connections, and all are answered.
func TestLargeStatementsOfAllSessionsStayWithinTheirMemory(t *testing.T) {
	mysqltest.MovesMegabytes(t, "a hundred statements of 15 MB at a time")
	const size, budget = 15 << 20, 64 << 20
	e := newEnv(t, setup{Proxy: withMemory(budget)})
	createSequence(t, e, "photos")
	for name, test := range map[string]struct {
		clients int // fewer for a server that reads it all
		text    []byte
		code    uint16
		error   string
	}{
		"relayed":   {clients: 30, text: largeText("SELECT 1", size)},
		"rewritten": {clients: 30, text: largeText("SELECT NEXTVAL('photos') + 1", size)},
		"answered":  {clients: 100, text: largeText("SELECT NEXTVAL('photos')", size)},
		"a name":    {100, packet(command(protocol.ComQuery, "SELECT NEXTVAL('"+strings.Repeat("é", size/2)+"')")), 4091, "Unknown SEQUENCE: 'ééé"},
	} {
		t.Run(name, func(t *testing.T) {
			text, clients := test.text, test.clients
			wires := make([]*wire, clients)
			for i := range wires {
				wires[i] = e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
				if err := wires[i].SetDeadline(time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
			before := heap()
			var peak atomic.Uint64
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-stop:
						return
					case <-time.After(10 * time.Millisecond):
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						peak.Store(max(peak.Load(), m.HeapAlloc))
					}
				}
			}()
			last, sent := make(chan struct{}), make(chan error, clients)
			for _, w := range wires {
				go func() {
					_, err := w.Write(text[:len(text)-1])
					<-last
					if err == nil {
						_, err = w.Write(text[len(text)-1:])
					}
					sent <- err
				}()
			}
			e.awaitWaiting(t, clients-budget/(2*size))
			if grown := heap() - before; int64(grown) > budget {
				t.Errorf("memory grew by %d MB while the statements wait, want at most %d", grown>>20, budget>>20)
			}
			close(last)
			for range wires {
				if err := <-sent; err != nil {
					t.Fatal(err)
				}
			}
			for _, w := range wires {
				answer, err := w.tryReceive(protocol.ShapeResult, nil)
				switch {
				case err != nil:
					t.Fatal(err)
				case test.code == 0 && answer[4] == 0xff:
					t.Fatal(serverError(t, answer))
				case test.code != 0:
					if got := serverError(t, answer); got.Code != test.code || !strings.HasPrefix(got.Message, test.error) || len(got.Message) > 10_000 {
						t.Fatalf("got %d, %.100q of %d bytes", got.Code, got.Message, len(got.Message))
					}
				}
				w.Close()
			}
			close(stop)
			<-stopped
			// The budget, and what was dropped but not yet collected.
			if top := int64(peak.Load()) - int64(before); top > 4*budget {
				t.Errorf("the heap grew by %d MB, want at most %d", top>>20, 4*budget>>20)
			}
			e.noMemoryTaken(t)
		})
	}
}

// heap returns the bytes in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A statement that was sent on takes no memory, because it may wait for a lock of a session that
// sends a large one.
func TestStatementsThatWaitForALockHoldNoMemory(t *testing.T) {
	const size = 8 << 20
	e := newEnv(t, setup{Proxy: withMemory(2 * size)})
	c := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB", "INSERT INTO t VALUES (1, 0)")
	holder := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	holder.query("BEGIN")
	holder.query("UPDATE t SET n = 1")
	text := largeText("UPDATE t SET n = n + 1", size)
	before := heap()
	var waiters [6]*wire
	for i := range waiters {
		waiters[i] = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		waiters[i].send(text)
	}
	e.holdsNothing(t, len(waiters), "UPDATE", before, 2*size)
	holder.send(text)
	if answer := holder.receive(protocol.ShapeResult, nil); answer[4] != 0 {
		t.Fatal(serverError(t, answer))
	}
	holder.query("COMMIT")
	for _, w := range waiters {
		if answer := w.receive(protocol.ShapeResult, nil); answer[4] != 0 {
			t.Fatal(serverError(t, answer))
		}
	}
	if got := value(t, c, "SELECT n FROM t"); got != "8" {
		t.Errorf("n is %s, want 8", got)
	}
}

// holdsNothing waits until so many statements that begin with a word wait for a lock. It makes sure
// that they have no memory then, and that the heap has not grown by more than most bytes.
func (e *env) holdsNothing(t *testing.T, waiters int, word string, before uint64, most int64) {
	t.Helper()
	pool := e.Servers[0].DB(t, "")
	eventually(t, "all wait for the lock", func() bool {
		n := 0
		if err := pool.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE LEFT(info, 6) = ? AND user = ?", word, e.User).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == waiters
	})
	e.noMemoryTaken(t)
	if grown := int64(heap()) - int64(before); grown > most {
		t.Errorf("memory grew by %d MB for statements that were sent on, want less", grown>>20)
	}
}

// A rewritten statement is sent once, too.
func TestRewrittenStatementsThatWaitForALockHoldNoMemory(t *testing.T) {
	const size = 4 << 20
	e := newEnv(t, setup{Proxy: withMemory(2 * size)})
	createSequence(t, e, "photos")
	c := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE t (id BIGINT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB")
	text := largeText("INSERT INTO t VALUES (NEXTVAL('photos'), NULL)", size)
	blob := protocol.AppendLenEncBytes([]byte("\x00\x01\x00\x00\x00\x00\x01\xfc\x00"), bytes.Repeat([]byte("x"), size-100))
	for name, begin := range map[string]func(*wire) []byte{
		"text": func(*wire) []byte { return text },
		"execution": func(w *wire) []byte {
			prepared := w.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('photos'), ?)")
			if prepared[4] != 0 {
				t.Fatal(serverError(t, prepared))
			}
			return packet(append(command(protocol.ComStmtExecute, string(prepared[5:9])), blob...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var waiters [6]*wire
			var statements [len(waiters)][]byte
			for i := range waiters {
				waiters[i] = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
				statements[i] = begin(waiters[i])
			}
			exec(t, c, "LOCK TABLES t READ")
			before := heap()
			for i, w := range waiters {
				w.send(statements[i])
			}
			e.holdsNothing(t, len(waiters), "INSERT", before, 2*size)
			runtime.KeepAlive(statements)
			other := e.Wire(t, e.Addr(), wireLogin{})
			other.send(largeText("SELECT 1", size))
			if answer := other.receive(protocol.ShapeResult, nil); answer[4] == 0xff {
				t.Error(serverError(t, answer))
			}
			exec(t, c, "UNLOCK TABLES")
			for _, w := range waiters {
				if answer := w.receive(protocol.ShapeResult, nil); answer[4] != 0 {
					t.Error(serverError(t, answer))
				}
				w.ping("a statement that gave its memory back")
			}
			if got := value(t, c, "SELECT COUNT(*) FROM t"); got != "6" {
				t.Errorf("%s rows, want 6", got)
			}
			exec(t, c, "DELETE FROM t")
		})
	}
}

// What is known of several statements may take many times the memory of a short text.
func TestSeveralStatementsThatWaitForALockHoldNoMemory(t *testing.T) {
	const size, waiters = 2 << 20, 6
	of := bound(proxy.Binding{Table: "photos", Column: "id", Sequence: "photos"})
	binds := of.Proxy
	of.Proxy = func(o *proxy.Options) {
		withMemory(2 * size)(o)
		binds(o)
	}
	e := newEnv(t, of)
	createSequence(t, e, "photos")
	c := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY, a INT) ENGINE=MEMORY", "CREATE TABLE t (a INT) ENGINE=MEMORY")
	for name, text := range map[string]string{
		"relayed":   "INSERT INTO t VALUES (1); " + strings.Repeat("DO 1;", 10_000),
		"rewritten": "INSERT INTO photos VALUES (NEXTVAL('photos'), 1); " + strings.Repeat("DO 1;", 10_000),
		"filled in": strings.Repeat("INSERT INTO photos (a) VALUES (1);", 1500),
	} {
		for _, large := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", large: ", large), func(t *testing.T) {
				command := packet(command(protocol.ComQuery, text))
				if large {
					command = largeText(text, size)
				}
				var wires [waiters]*wire
				for i := range wires {
					wires[i] = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
					wires[i].query("SELECT 1")
				}
				exec(t, c, "LOCK TABLES photos READ, t READ")
				before := heap()
				for _, w := range wires {
					w.send(command)
				}
				e.holdsNothing(t, waiters, "INSERT", before, 2<<20)
				runtime.KeepAlive(command)
				exec(t, c, "UNLOCK TABLES")
				for _, w := range wires {
					if answer := w.receive(protocol.ShapeResult, nil); answer[4] != 0 {
						t.Error(serverError(t, answer))
					}
					w.ping("several statements that gave their memory back")
				}
				exec(t, c, "DELETE FROM photos")
			})
		}
	}
}

// The rows that get keys take memory, too, however short they are.
func TestRowsThatGetKeysTakeMemory(t *testing.T) {
	const size = 1 << 20
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		withMemory(2*size + 400<<10)(o)
		o.Bindings = []proxy.Binding{{Table: "photos", Column: "id", Sequence: "photos"}}
	}})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".photos (id BIGINT PRIMARY KEY, n TINYINT)")
	login := wireLogin{Schema: e.Schemas[0]}
	holder, w := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
	text := largeText("SELECT 1", size)
	holder.send(text[:len(text)-1])
	eventually(t, "a statement has its memory", func() bool {
		_, used, _, _ := e.Proxy.StatementMemory()
		return used > size
	})
	if answer := w.query("CREATE SEQUENCE photos"); answer[4] != 0 {
		t.Fatal(serverError(t, answer))
	}
	insert := "INSERT INTO photos (n) VALUES (1)" + strings.Repeat(",(1)", 20_000)
	if answer := w.query(insert); answer[4] != 0xff || serverError(t, answer).Code != 1041 {
		t.Errorf("got %.80q, want error 1041", answer)
	}
	holder.send(text[len(text)-1:])
	holder.receive(protocol.ShapeResult, nil)
	if answer := w.query(insert); answer[4] != 0 {
		t.Error(serverError(t, answer))
	}
	e.noMemoryTaken(t)
}

// Many short statements take memory, too, however short their text is. A session that has a share
// for its text does not wait for more.
func TestManyStatementsInOneTextTakeMemory(t *testing.T) {
	const size, rest = 1 << 20, 200 << 10
	e := newEnv(t, setup{Proxy: withMemory(2*size + rest)})
	holder, w, large := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{})
	text := largeText("SELECT 1", size)
	holder.send(text[:len(text)-1])
	eventually(t, "a statement has its memory", func() bool {
		_, used, _, _ := e.Proxy.StatementMemory()
		return used > size
	})
	few, many := strings.Repeat("DO 1;", 1000), strings.Repeat("DO 1;", 12_000)
	if answer := w.query(few); answer[4] != 0 {
		t.Error(serverError(t, answer))
	}
	if answer := large.query(many + strings.Repeat(" ", 20_000)); answer[4] != 0xff || serverError(t, answer).Code != 1041 {
		t.Errorf("many statements in a large text: got %.80q, want error 1041", answer)
	}
	w.send(packet(command(protocol.ComQuery, many)))
	e.awaitWaiting(t, 1)
	holder.send(text[len(text)-1:])
	holder.receive(protocol.ShapeResult, nil)
	if answer := w.receive(protocol.ShapeResult, nil); answer[4] != 0 {
		t.Error(serverError(t, answer))
	}
	e.noMemoryTaken(t)
	if answer := large.query(many + strings.Repeat(" ", 20_000)); answer[4] != 0 {
		t.Error(serverError(t, answer))
	}
	e.noMemoryTaken(t)
}

// A session that takes memory and sends nothing is ended, but only where others wait for memory.
func TestASlowClientDoesNotKeepMemoryFromOthers(t *testing.T) {
	server, client := testTLS()
	for name, l := range map[string]wireLogin{"plain": {Packing: notPacked}, "TLS": {TLS: client, Packing: notPacked}} {
		t.Run(name, func(t *testing.T) {
			const size = 1 << 20
			e := newEnv(t, setup{
				Proxy:  func(o *proxy.Options) { o.StatementMemory, o.TLS = 2*size, server },
				Before: func(s *proxy.Server) { s.SetReceivePeriod(20 * time.Millisecond) },
			})
			text := largeText("SELECT 1", size)
			slow, other := e.Wire(t, e.Addr(), l), e.Wire(t, e.Addr(), l)
			slow.send(text[:size/2])
			eventually(t, "the first has memory", func() bool { _, used, _, _ := e.Proxy.StatementMemory(); return used > 0 })
			time.Sleep(100 * time.Millisecond) // meanwhile nobody else wants memory
			slow.send(text[size/2 : size/2+1])
			other.send(text)
			if answer := other.receive(protocol.ShapeResult, nil); answer[4] == 0xff {
				t.Error(serverError(t, answer))
			}
			if got := serverError(t, slow.receive(protocol.ShapeResult, nil)); got.Code != 1159 {
				t.Errorf("the slow client: got %v, want 1159", got)
			}
			slow.ended()
			// A slow statement is accepted where nobody waits.
			for from := 0; from < len(text); from += size / 4 {
				other.send(text[from:min(from+size/4, len(text))])
			}
			if answer := other.receive(protocol.ShapeResult, nil); answer[4] == 0xff {
				t.Error(serverError(t, answer))
			}
			e.noMemoryTaken(t)
		})
	}
}

// A wait for memory ends with the session's client, and by KILL, and others go on.
func TestAWaitForMemoryEnds(t *testing.T) {
	const size = 1 << 20
	e := newEnv(t, setup{Proxy: withMemory(2 * size)})
	text := largeText("SELECT 1", size)
	begin := func() *wire {
		w := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
		w.send(text[:100_000])
		return w
	}
	first := begin()
	eventually(t, "the first has memory", func() bool { _, used, _, _ := e.Proxy.StatementMemory(); return used > 0 })
	gone, killed, interrupted, stays := begin(), begin(), begin(), begin()
	e.awaitWaiting(t, 4)
	gone.Close()
	e.awaitWaiting(t, 3)
	exec(t, e.Conn(t, "", nil), "KILL "+killed.id())
	killed.ended()
	e.awaitWaiting(t, 2)
	exec(t, e.Conn(t, "", nil), "KILL QUERY "+interrupted.id())
	e.awaitWaiting(t, 1)
	interrupted.send(text[100_000:])
	if got := serverError(t, interrupted.receive(protocol.ShapeResult, nil)); got.Code != 1317 {
		t.Errorf("after KILL QUERY: got %v, want 1317", got)
	}
	interrupted.ping("a wait that was interrupted")
	if _, _, _, waits := e.Proxy.StatementMemory(); waits != 4 {
		t.Errorf("%d statements have waited, want 4", waits)
	}
	first.send(text[100_000:])
	first.receive(protocol.ShapeResult, nil)
	stays.send(text[100_000:])
	stays.receive(protocol.ShapeResult, nil)
	e.noMemoryTaken(t)
}

// Statements that are under way for long do not keep the memory from others without an end.
func TestAWaitForMemoryIsBounded(t *testing.T) {
	const size = 1 << 20
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.StatementMemory, o.PauseTimeout = 2*size, 100*time.Millisecond }})
	createSequence(t, e, "photos")
	lock := e.DirectConn(t, 0, "", nil)
	exec(t, lock, "DO GET_LOCK('"+e.Schemas[0]+"', 0)")
	holder, waiter := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked}), e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	holder.send(largeText("SET @n = NEXTVAL('photos'), @l = GET_LOCK('"+e.Schemas[0]+"', 100)", size)) // the session notes what it sets
	eventually(t, "the first has memory", func() bool { _, used, _, _ := e.Proxy.StatementMemory(); return used > 0 })
	text := largeText("SELECT 1", size)
	waiter.send(text)
	if got := serverError(t, waiter.receive(protocol.ShapeResult, nil)); got.Code != 1041 || !strings.Contains(got.Message, "statement_memory") {
		t.Errorf("got %v, want 1041 that names statement_memory", got)
	}
	waiter.ping("a wait that was too long")
	exec(t, lock, "DO RELEASE_LOCK('"+e.Schemas[0]+"')")
	if answer := holder.receive(protocol.ShapeResult, nil); answer[4] == 0xff {
		t.Error(serverError(t, answer))
	}
	e.noMemoryTaken(t)
	waiter.send(text)
	if answer := waiter.receive(protocol.ShapeResult, nil); answer[4] == 0xff {
		t.Error(serverError(t, answer))
	}
	e.noMemoryTaken(t)
}

// The texts of prepared statements that a session keeps are bounded.
func TestTheTextsOfPreparedStatementsAreBounded(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "photos")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, text := range []string{"SELECT NEXTVAL('photos')", "SET @x = 1", "SHOW SEQUENCES"} {
		text := text + " /*" + strings.Repeat("x", 600_000) + "*/"
		first := w.do(protocol.ComStmtPrepare, text)
		if first[4] != 0 {
			t.Fatal(serverError(t, first))
		}
		if got := serverError(t, w.do(protocol.ComStmtPrepare, text)); got.Code != 1235 {
			t.Errorf("%.20s: got %v, want 1235", text, got)
		}
		w.send(packet(command(protocol.ComStmtClose, string(first[5:9]))))
		again := w.do(protocol.ComStmtPrepare, text)
		if again[4] != 0 {
			t.Errorf("%.20s: after the first was closed: %v", text, serverError(t, again))
		}
		w.send(packet(command(protocol.ComStmtClose, string(again[5:9]))))
	}
}
