package proxy_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
)

// inOnePiece makes one write of several texts.
func inOnePiece(texts ...string) (all []byte) {
	for _, sql := range texts {
		all = append(all, packet(command(protocol.ComQuery, sql))...)
	}
	return all
}

// Statements that a client has sent behind a failed BEGIN must not run outside of a transaction.
func TestWhatCameBehindAStatementThatFailedInAPauseDoesNotRunWithoutIt(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.PauseTimeout = 100 * time.Millisecond }})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	login := wireLogin{Schema: e.Schemas[0], Packing: notPacked}
	for _, first := range []string{"BEGIN", "SET autocommit = 0", "START TRANSACTION READ ONLY", "DO 1; BEGIN", "LOCK TABLES t READ"} {
		w := e.Wire(t, e.Addr(), login)
		e.pause(t, "s0")
		e.ending(t, first, func() {
			w.send(inOnePiece(first, "INSERT INTO t VALUES (1)", "ROLLBACK"))
			w.answerError(first, 1429, "is paused since")
			if rest := w.ended(); len(rest) > 0 {
				t.Errorf("%s: got %q behind its error, want the end", first, rest)
			}
		}, "backend_gone")
		e.resume(t, "s0")
	}
	// Statements that do not depend on it are answered as by a server: each has its own error.
	w := e.Wire(t, e.Addr(), login)
	e.pause(t, "s0")
	w.send(inOnePiece("INSERT INTO t VALUES (2)", "SELECT 1"))
	for range 2 {
		w.answerError("a statement of its own", 1429, "is paused since")
	}
	w.sendText("BEGIN")
	w.answerError("BEGIN with nothing behind it", 1429, "is paused since")
	e.resume(t, "s0")
	if got := w.rows("SELECT COUNT(*) FROM t")[0]; got != "0" {
		t.Errorf("%s rows were inserted, want none", got)
	}
}

func TestWhatCameBehindABeginThatWasKilledInAPauseDoesNotRun(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	killer := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	e.pause(t, "s0")
	w.sendText("BEGIN")
	e.awaitPausedSessions(t, 1)
	w.sendText("INSERT INTO t VALUES (1)") // this text is not in the proxy's buffer
	killer.sendText("KILL QUERY " + w.id())
	killer.answerOK("KILL QUERY")
	w.answerError("BEGIN", 1317, "interrupted")
	if rest := w.ended(); len(rest) > 0 {
		t.Errorf("got %q behind the error, want the end", rest)
	}
	e.resume(t, "s0")
	if got := killer.rows("SELECT COUNT(*) FROM " + e.Schemas[0] + ".t")[0]; got != "0" {
		t.Errorf("%s rows were inserted, want none", got)
	}
}

func TestWhatCameBehindABeginForAServerThatIsAwayDoesNotRun(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away := silent.Addr().String()
	silent.Close()
	e := newEnv(t, setup{Backend: func(o *backend.Options) {
		o.Shards = append(o.Shards, backend.ShardOptions{Name: "away", Nodes: []string{away}, Schemas: []string{"away"}})
	}})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: "away", Packing: notPacked})
	w.send(inOnePiece("BEGIN", "INSERT INTO t VALUES (1)", "COMMIT"))
	w.answerError("BEGIN", 1429, "away")
	if rest := w.ended(); len(rest) > 0 {
		t.Errorf("got %q behind the error, want the end", rest)
	}
	w = e.Wire(t, e.Addr(), wireLogin{Schema: "away", Packing: notPacked})
	w.send(inOnePiece("INSERT INTO t VALUES (1)", "SELECT 1"))
	for range 2 {
		w.answerError("a statement of its own", 1429, "away")
	}
	w.send(inOnePiece("CREATE SEQUENCE photos", "SELECT NEXTVAL('photos')"))
	w.answerOK("CREATE SEQUENCE")
	if got := string(w.receive(protocol.ShapeResult, nil)); !strings.Contains(got, "1") {
		t.Errorf("a number: got %q", got)
	}
}

// A pause must not delay an answer that the proxy makes itself.
func TestAnswersBeforeAStatementThatWaitsAreSent(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "photos")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	e.pause(t, "s0")
	w.send(inOnePiece("SELECT NEXTVAL('photos')", "SELECT 1"))
	w.answerOK("the number")
	e.awaitPausedSessions(t, 1)
	e.resume(t, "s0")
	w.answerOK("the statement")
}

func TestKillOfAVariableWaitsForAPausedShard(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	victim := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
	w.query("SET @x = " + victim.id())
	w.send(packet(command(protocol.ComStmtPrepare, "KILL QUERY @x")))
	if _, err := w.receivePrepare(); err != nil {
		t.Fatal(err)
	}
	for what, sent := range map[string][]byte{
		"a text":       inOnePiece("KILL QUERY @x"),
		"an execution": packet(execution(1, nil, false)),
	} {
		w.query("DO 0") // so that the session has used the shard
		e.pause(t, "s0")
		w.send(sent)
		e.awaitPausedSessions(t, 1)
		e.resume(t, "s0")
		w.answerOK(what)
	}
}

// The proxy asks for LAST_INSERT_ID() on the shard that has it.
func TestLastInsertIDOfAPausedShardIsWaitedFor(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.query("DO LAST_INSERT_ID(77)")
	w.query("USE " + e.Schemas[1])
	e.pause(t, "s0")
	w.sendText("SELECT LAST_INSERT_ID()")
	e.awaitPausedSessions(t, 1)
	e.resume(t, "s0")
	if got := string(w.receive(protocol.ShapeResult, nil)); !strings.Contains(got, "77") {
		t.Errorf("got %q, want 77", got)
	}
}
