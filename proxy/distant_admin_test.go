package proxy_test

import (
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// The sequence server is healthy, but so far away that a statement about many sequences takes
// longer than allocate_timeout.
func TestAStatementAboutManySequencesHasTheTimeForEachOfThem(t *testing.T) {
	server := mysqltest.Shared(t)
	link := mysqltest.NewLink(t, server.Addr())
	const patience = 4 * time.Second
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Sequence: func(o *sequence.Options) {
		o.Servers[0].Addr, o.AllocateTimeout = link.Addr(), patience
	}})
	c := e.Conn(t, "", nil)
	names := strings.Split("a b c d e f g h i j", " ")
	for _, name := range names {
		exec(t, c, "CREATE SEQUENCE "+name)
	}
	link.Delay(20 * time.Millisecond)
	began := time.Now()
	exec(t, c, "DROP SEQUENCE "+strings.Join(names, ", "))
	t.Logf("%d sequences were dropped within %v; each may take %v", len(names), time.Since(began), patience)
	if _, rows := table(t, c, "SHOW SEQUENCES"); len(rows) != 0 {
		t.Errorf("got %q after they were dropped", rows)
	}
}

func TestKillQueryEndsAStatementAboutSequences(t *testing.T) {
	server := mysqltest.Shared(t)
	link := mysqltest.NewLink(t, server.Addr())
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Sequence: func(o *sequence.Options) {
		// The timeout is longer than the test waits.
		o.Servers[0].Addr, o.AllocateTimeout = link.Addr(), 2*time.Minute
	}})
	createSequence(t, e, "s")
	w, killer := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{})
	link.Silence()
	w.send(packet(command(protocol.ComQuery, "DROP SEQUENCE s")))
	answer := make(chan []byte, 1)
	go func() { answer <- w.receive(protocol.ShapeOne, nil) }()
	if !eventually(t, "KILL QUERY ends the statement", func() bool { // the first KILL may come before the statement
		if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 {
			t.Fatalf("KILL QUERY: %v", serverError(t, got))
		}
		return len(answer) > 0
	}) {
		t.FailNow()
	}
	if err := serverError(t, <-answer); err.Code != 1317 {
		t.Errorf("got %v, want 1317", err)
	}
	link.Mend()
	eventually(t, "statements about sequences again", func() bool { return w.query("CREATE SEQUENCE IF NOT EXISTS s")[4] == 0 })
}
