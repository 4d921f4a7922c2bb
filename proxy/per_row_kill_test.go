package proxy_test

import (
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/sequence"
)

// The server has sent its rows, so that KILL can end only the wait for their numbers.
func TestKillQueryEndsRowsThatWaitForNumbers(t *testing.T) {
	servers := twoServers(t)
	e := newEnv(t, setup{Servers: servers, Sequence: func(o *sequence.Options) {
		// The timeout is longer than the test waits.
		o.Servers[0].Addr, o.AllocateTimeout = servers[1].Addr(), 2*time.Minute
	}})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Cache: 1}); err != nil {
		t.Fatal(err)
	}
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)")
	w, killer := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]}), e.Wire(t, e.Addr(), wireLogin{})
	w.query("DO NEXTVAL('s')") // the proxy knows the sequence now
	if err := servers[1].Kill(); err != nil {
		t.Fatal(err)
	}
	before := e.Sequences.Stats().Waits
	waits := func() uint64 { return e.Sequences.Stats().Waits - before }
	w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('s'), a FROM t")))
	answer := make(chan []byte, 1)
	go func() { answer <- w.receive(protocol.ShapeResult, nil) }()
	eventually(t, "a wait for numbers", func() bool { return waits() > 0 })
	if !eventually(t, "KILL QUERY ends the wait", func() bool {
		// The first KILL may come a moment before the wait begins.
		if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 {
			t.Fatalf("KILL QUERY: %v", serverError(t, got))
		}
		return len(answer) > 0
	}) {
		t.FailNow()
	}
	packets := split(<-answer)
	if last := packets[len(packets)-1]; last[0] != 0xff || last[1] != 1317&0xff || last[2] != 1317>>8 {
		t.Errorf("the answer ends with %q, want the error 1317", last)
	}
	if got := waits(); got != 1 {
		t.Errorf("the statement waited for numbers %d times, want once: it was killed in the first", got)
	}
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "numbers again", func() bool { return w.query("DO NEXTVAL('s')")[4] == 0 })
}

// The queries that the proxy makes for a statement that it refuses end with the statement: neither
// KILL QUERY nor time counts for them afterwards.
func TestARefusedStatementLeavesNoWaitBehind(t *testing.T) {
	e := newEnv(t, setup{})
	for _, name := range []string{"s1", "s2"} {
		createSequence(t, e, name)
	}
	exec(t, e.DirectConn(t, 0, e.Schemas[0], nil), "CREATE TABLE t (a BIGINT UNSIGNED, b BIGINT UNSIGNED) ENGINE=InnoDB")
	w, killer := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]}), e.Wire(t, e.Addr(), wireLogin{})
	if err := serverError(t, w.query("UPDATE t SET a = NEXTVAL('s1'), b = NEXTVAL('s2')")); err.Code != 1235 {
		t.Fatalf("two sequences: got %v, want 1235", err)
	}
	if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 { // it is idle
		t.Fatalf("KILL QUERY: %v", serverError(t, got))
	}
	if got := w.rows("SELECT NEXTVAL('s2')"); len(got) != 1 || got[0] != "1" {
		// The first number has to be reserved.
		t.Errorf("after a KILL QUERY between statements: got %q, want 1", got)
	}
}
