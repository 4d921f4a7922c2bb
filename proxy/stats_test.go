package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// session returns the proxy's statistics of a wire's session.
func (e *env) session(w *wire) (info proxy.SessionInfo) {
	for _, s := range e.Proxy.SessionList() {
		if s.ID == w.hello.Greeting.ConnectionID {
			return s
		}
	}
	return info
}

func TestSessionsAreListedWithWhatTheyDo(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	createSequence(t, e, "photos")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	idle := func(what string, ok func(s proxy.SessionInfo) bool) {
		t.Helper()
		if !eventually(t, what, func() bool { s := e.session(w); return s.State == proxy.SessionIdle && ok(s) }) {
			t.Errorf("%s: got %+v", what, e.session(w))
		}
	}
	idle("after the login", func(s proxy.SessionInfo) bool {
		return s.User == e.User && s.Client == w.nc.LocalAddr().String() && s.Schema == e.Schemas[0] && s.Statements == 0 && s.Pins == nil &&
			fmt.Sprint(s.Shards) == "[s0]" && !s.Connected.IsZero() && !s.Since.Before(s.Connected)
	})
	w.query("SELECT 1")
	w.query("SELECT NEXTVAL('photos')")
	idle("after two statements", func(s proxy.SessionInfo) bool { return s.Statements == 2 })
	w.query("USE " + e.Schemas[1])
	idle("on the other shard", func(s proxy.SessionInfo) bool {
		return s.Schema == e.Schemas[1] && fmt.Sprint(s.Shards) == "[s1 s0]" && s.Statements == 3
	})
	w.query("SELECT NEXTVAL('nobody')")
	w.query("BEGIN")
	idle("in a transaction", func(s proxy.SessionInfo) bool { return slices.Equal(s.Pins, []proxy.Pin{proxy.PinTransaction}) })
	w.query("COMMIT")
	before := e.session(w)
	w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), 'busy'")))
	e.awaitStatement(e.Servers[1], "SELECT SLEEP(100), 'busy'")
	if s := e.session(w); s.State != proxy.SessionBusy || s.Since.Before(before.Since) {
		t.Errorf("with a statement: got %+v, want busy, since the statement came", s)
	}
	if got := e.Proxy.BusyNodes()[proxy.NodeName{Shard: "s1", Node: e.Servers[1].Addr()}]; got != 1 {
		t.Errorf("busy connections to s1: got %d, want 1", got)
	}

	young := silent(t, e.Addr())
	eventually(t, "a session that logs in is listed", func() bool {
		list := e.Proxy.SessionList()
		last := list[len(list)-1]
		return last.State == proxy.SessionLogin && last.User == "" && last.Client == young.LocalAddr().String() && last.Since.Equal(last.Connected)
	})
	st := e.Proxy.Stats()
	if got := fmt.Sprint(st.Sessions); got != "[1 0 1]" {
		t.Errorf("sessions by state: got %s, want one in the login and one busy", got)
	}
	if len(st.Users) != 1 || st.Users[0] != (proxy.Count{Name: e.User, N: 1}) {
		t.Errorf("sessions by user: got %v", st.Users)
	}
	if st.Connections != 2 {
		t.Errorf("accepted: got %d, want 2", st.Connections)
	}
	young.Close()
	w.nc.Close()
	e.awaitSessions(t, 0)
}

func TestSessionsArePinnedForTheReasonThatHoldsThem(t *testing.T) {
	e := newEnv(t, setup{})
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE TABLE t (a INT)")
	for reason, statements := range map[string][]string{
		"transaction":       {"BEGIN"},
		"set_transaction":   {"SET TRANSACTION READ ONLY"},
		"temporary_table":   {"CREATE TEMPORARY TABLE mine (a INT)"},
		"user_lock":         {"DO GET_LOCK('pins', 0)"},
		"table_lock":        {"LOCK TABLES t READ"},
		"global_lock":       {"FLUSH TABLES WITH READ LOCK"},
		"role":              {"SET ROLE NONE"},
		"handler":           {"HANDLER t OPEN"},
		"sql_prepare":       {"PREPARE s FROM 'SELECT 1'"},
		"user_variable":     {"SET @x = RAND()"},
		"variable_name":     {"SET @ä = 1"},
		"insert_id":         {"SET insert_id = 5"},
		"timestamp":         {"SET timestamp = 5"},
		"rand_seed":         {"SET rand_seed1 = 5"},
		"pseudo_thread_id":  {"SET pseudo_thread_id = 5"},
		"opaque":            {"SELECT 1; DO 2"},
		"":                  {"SELECT 1", "SET @x = 5", "SET sql_mode = ''", "BEGIN", "COMMIT", "LOCK TABLES t READ", "UNLOCK TABLES"},
		"transaction, role": {"SET ROLE NONE", "BEGIN"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			for _, sql := range statements {
				w.send(packet(command(protocol.ComQuery, sql)))
				for more := true; more; more = w.answer.Status.Has(protocol.MoreResults) {
					w.receive(protocol.ShapeResult, nil)
				}
			}
			var got []string
			if !eventually(t, "the pins", func() bool {
				got = nil
				for _, p := range e.session(w).Pins {
					got = append(got, p.String())
				}
				return strings.Join(got, ", ") == reason
			}) {
				t.Errorf("got %v", got)
			}
			for _, p := range e.Proxy.Stats().Pinned {
				want := uint64(0)
				if slices.Contains(got, p.Name) {
					want = 1
				}
				if p.N != want {
					t.Errorf("sessions pinned by %s: got %d, want %d", p.Name, p.N, want)
				}
			}
			w.send(packet(command(protocol.ComQuit, "")))
			w.ended()
			eventually(t, "the session ends", func() bool { return e.session(w).ID == 0 })
		})
	}
}

func TestBytesAndTimesAreCounted(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.alone("SELECT 1")
	eventually(t, "the session is idle", func() bool { return e.session(w).Statements == 1 })
	before := e.Proxy.Stats()
	sql := "SELECT REPEAT('x', 1000), seq FROM " + e.Servers[0].Numbers(10_000)
	w.send(packet(command(protocol.ComQuery, sql)))
	answer := w.receive(protocol.ShapeResult, nil)
	eventually(t, "the session is idle", func() bool { return e.session(w).Statements == 2 })
	after := e.Proxy.Stats()
	command, size := uint64(len(sql)+5), uint64(len(answer))
	for what, n := range map[string][2]uint64{
		"from the client": {after.Received - before.Received, command}, "to the client": {after.Sent - before.Sent, size},
		"from the shard": {after.Shards[0].Received - before.Shards[0].Received, size}, "to the shard": {after.Shards[0].Sent - before.Shards[0].Sent, command},
		"of the session": {e.session(w).Sent, after.Sent},
		"statements":     {after.Durations.Count() - before.Durations.Count(), 1},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: counted %d, want %d", what, n[0], n[1])
		}
	}

	// The server's time is no overhead. The next round but 31 is measured again.
	const every = 31
	sampled := func() uint64 { h := e.Proxy.Stats().Overheads; return h.Count() }
	statements := e.session(w).Statements
	run := func(sql string) {
		w.alone(sql)
		statements++
		eventually(t, "the session is idle", func() bool { return e.session(w).Statements == statements })
	}
	n := sampled()
	for range every {
		if run("SELECT 2"); sampled() > n {
			break
		}
	}
	looked := func(what string, wait time.Duration, round func()) {
		t.Helper()
		for range every - 1 {
			run("SELECT 2")
		}
		before = e.Proxy.Stats()
		round()
		after = e.Proxy.Stats()
		if got := after.Overheads.Count() - before.Overheads.Count(); got != 1 {
			t.Fatalf("%s: rounds looked at: got %d, want 1", what, got)
		}
		whole, overhead := after.Durations.Sum-before.Durations.Sum, after.Overheads.Sum-before.Overheads.Sum
		if whole < wait || overhead > whole-wait/2 || overhead <= 0 {
			// A busy machine may begin the wait late.
			t.Errorf("%s: counted %s, of them %s in the proxy, without a wait of %s", what, whole, overhead, wait)
		}
	}
	looked("a slow statement", 2*time.Second, func() { run("SELECT SLEEP(2)") })
	looked("a pause", time.Second, func() {
		e.Proxy.Pause(t.Context(), "", 0)
		var resumed sync.WaitGroup
		resumed.Go(func() {
			eventually(t, "the statement waits for the shard", func() bool { return e.Proxy.PausedSessions() > 0 })
			time.Sleep(time.Second)
			e.Proxy.Resume("")
		})
		run("SELECT 2")
		resumed.Wait()
	})

	// The counts of a session remain when it ends.
	w.send(packet(mustCommand(protocol.ComQuit)))
	w.ended()
	e.awaitSessions(t, 0)
	end := e.Proxy.Stats()
	if end.Durations.Count() != after.Durations.Count() || end.Sent != after.Sent || end.Shards[0].Received < after.Shards[0].Received {
		t.Errorf("after the session has ended: counted %d statements, %d bytes, want %d, %d", end.Durations.Count(), end.Sent, after.Durations.Count(), after.Sent)
	}
}

// mustCommand makes a command without an argument.
func mustCommand(cmd protocol.Command) []byte { return []byte{byte(cmd)} }

func TestNodesAreCountedWithTheirErrors(t *testing.T) {
	server := mysqltest.Start(t)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Shared(t), server}})
	node := func() backend.NodeStats { return e.Shards.Stats()[1] }
	errors := func(code uint16) uint64 {
		for _, c := range node().Errors {
			if c.Code == code {
				return c.N
			}
		}
		return 0
	}
	if n := node(); n.Shard != "s1" || n.Node != server.Addr() || !n.Primary || !n.Up || n.Since.IsZero() || n.Version == "" || n.LastError != "" {
		t.Errorf("at the start: got %+v", n)
	}
	eventually(t, "the proxy's own connection is closed", func() bool { return node().Open == 0 })
	connects := node().Connects
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	w.query("SELECT 1")
	n := node()
	if n.Open != 1 || n.Connecting != 0 || n.Connects.Count() != connects.Count()+1 {
		t.Errorf("with a session: got %d open, %d connecting, %d connects, want 1, 0, %d", n.Open, n.Connecting, n.Connects.Count(), connects.Count()+1)
	}
	w.query("SELECT nonsense FROM nowhere")
	w.do(protocol.ComStmtPrepare, "SELEKT")
	batch := append(packet(command(protocol.ComQuery, "SELEKT 1")), packet(command(protocol.ComQuery, "SELEKT 2"))...)
	w.send(batch)
	w.receive(protocol.ShapeResult, nil)
	w.receive(protocol.ShapeResult, nil)
	eventually(t, "errors of statements", func() bool { return errors(1146) == 1 && errors(1064) == 3 })
	e.refusal(t, e.Addr(), wireLogin{Schema: e.Schemas[1] + "_not"}) // goes to the other shard
	if got := errors(1049); got != 0 {
		t.Errorf("error 1049: counted %d on this node, want 0: the other node gave it", got)
	}

	busy := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	busy.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), 'dies'")))
	e.awaitStatement(server, "SELECT SLEEP(100), 'dies'")
	since := node().Since
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lost statement is counted", func() bool { return errors(backend.CodeLost) == 1 })
	// No client connects: the node is checked since a connection was lost.
	eventually(t, "the node is down", func() bool { return !node().Up })
	if n := node(); !n.Since.After(since) || n.LastError == "" || n.LastErrorAt.IsZero() || errors(backend.CodeUnreachable) == 0 {
		t.Errorf("down: got %+v", n)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is up again", func() bool { return node().Up })
	if n := node(); n.LastError == "" {
		t.Error("the last failure of the node is gone")
	}
	eventually(t, "no connection remains", func() bool { return node().Open == 0 && node().Connecting == 0 })
}
