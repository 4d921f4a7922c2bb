package proxy_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// patiently is the wait_timeout of servers to which clients of these tests must not be silent for
// so long, and pause how long they are silent each time. On a busy machine a pause lasts longer.
// All pauses together are longer than patiently.
const (
	patiently = 5 * time.Second
	pause     = 800 * time.Millisecond
	pauses    = patiently/pause + 2
)

// hasty starts a server that ends idle connections soon: wait for those that are not interactive,
// interactive for those that are.
func hasty(t *testing.T, wait, interactive time.Duration) *mysqltest.Server {
	return mysqltest.Start(t, fmt.Sprintf("--wait-timeout=%.0f", wait.Seconds()), fmt.Sprintf("--interactive-timeout=%.0f", interactive.Seconds()))
}

// alone runs a query without the ping behind it, which the server would see.
func (w *wire) alone(sql string) []byte {
	w.t.Helper()
	w.send(packet(command(protocol.ComQuery, sql)))
	return w.receive(protocol.ShapeResult, nil)
}

func TestASessionThatNeverNeededItsServerIsClosedAsByTheServer(t *testing.T) {
	const soon, late = 4 * time.Second, 10 * wireTimeout // ended does not wait for late
	serverTLS, clientTLS := testTLS()
	start := func(wait, interactive time.Duration) *env {
		server := hasty(t, wait, interactive)
		e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.TLS = serverTLS }})
		createSequence(t, e, "photos")
		return e
	}
	usual, interactive := start(soon, late), start(late, soon)
	caps := allFraming &^ protocol.SessionTrack // otherwise the proxy asks MariaDB 11.8 at the login
	for name, c := range map[string]struct {
		e           *env
		login       wireLogin
		tls, number bool
	}{
		"wait_timeout":          {e: usual, login: wireLogin{Capabilities: caps}},
		"after a number":        {e: usual, login: wireLogin{Capabilities: caps}, number: true},
		"with TLS":              {e: usual, login: wireLogin{Capabilities: caps}, number: true, tls: true},
		"interactive":           {e: interactive, login: wireLogin{Capabilities: caps | protocol.Interactive}},
		"interactive, a number": {e: interactive, login: wireLogin{Capabilities: caps | protocol.Interactive}, number: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers [2][]byte
			for i, addr := range []string{c.e.Addr(), c.e.Servers[0].Addr()} {
				l := c.login
				if c.tls && i == 0 {
					l.TLS = clientTLS
				}
				begin := time.Now()
				w := c.e.Wire(t, addr, l)
				if c.number && i == 0 {
					time.Sleep(300 * time.Millisecond) // this does not move the alarm
					begin = time.Now()
					w.alone("SELECT NEXTVAL('photos')")
				}
				answers[i] = w.ended()
				// MySQL counts fractions of a second.
				if took := time.Since(begin); took < soon-100*time.Millisecond {
					t.Errorf("%s: closed after %s, want %s", addr, took, soon)
				}
			}
			if !bytes.Equal(answers[0], answers[1]) {
				t.Errorf("before the end: got %q, want %q as direct", answers[0], answers[1])
			}
		})
	}
}

func TestAClientThatTakesNumbersKeepsItsConnectionAndWhatIsThere(t *testing.T) {
	server := hasty(t, patiently, patiently)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	createSequence(t, e, "photos")
	busy := func(w *wire) {
		for range pauses {
			time.Sleep(pause)
			w.alone("SELECT NEXTVAL('photos')")
		}
	}
	for name, c := range map[string]struct{ before, look, want string }{
		"nothing":           {"SELECT 1", "SELECT 7", "7"},
		"a transaction":     {"INSERT INTO t VALUES (3)", "SELECT SUM(a) FROM t", "3"},
		"a temporary table": {"CREATE TEMPORARY TABLE x AS SELECT 5 AS a", "SELECT a FROM x", "5"},
		"another timeout":   {"SET SESSION wait_timeout = 4", "SELECT @@wait_timeout", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := server.Schema(t)
			w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
			w.query("CREATE TABLE t (a INT) ENGINE=InnoDB")
			w.query("BEGIN")
			id := w.backendID()
			w.query(c.before)
			busy(w)
			if got := w.rows(c.look); len(got) != 1 || got[0] != c.want {
				t.Errorf("%s: got %v, want %s", c.look, got, c.want)
			}
			if got := w.backendID(); got != id {
				t.Errorf("got connection %s of the server, want %s still", got, id)
			}
		})
	}
	t.Run("no connection", func(t *testing.T) {
		t.Parallel()
		w := e.Wire(t, e.Addr(), wireLogin{Capabilities: allFraming &^ protocol.SessionTrack})
		busy(w)
		w.query("SELECT 1")
		busy(w)
		w.query("SELECT 1")
	})
}

func TestAPingDoesNotChangeWhatTheLastStatementLeft(t *testing.T) {
	server := hasty(t, patiently, patiently)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	createSequence(t, e, "photos")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, c := range []struct{ last, look string }{
		{"INSERT INTO t (b) VALUES (1), (2), (3)", "SELECT LAST_INSERT_ID()"},
		{"INSERT INTO t (b) VALUES (1), (2), (3)", "SELECT ROW_COUNT()"},
		{"SELECT 1 + '1x'", "SHOW WARNINGS"},
		{"SELECT 1 UNION SELECT 2", "SELECT FOUND_ROWS()"},
		{"SELECT 1 + '1x'", "SELECT @@warning_count"},
	} {
		var found [2][][]string // without and with a ping
		for i, pause := range []time.Duration{0, patiently/10 + 100*time.Millisecond} {
			for _, text := range []string{"SELECT NEXTVAL('photos')", "SELECT NEXTVAL('nothing')"} {
				w.query("DROP TABLE IF EXISTS t")
				w.query("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT)")
				w.alone(c.last)
				time.Sleep(pause)
				w.alone(text)
				_, rows := w.result(c.look)
				if c.look == "SELECT LAST_INSERT_ID()" && text == "SELECT NEXTVAL('photos')" {
					rows = nil // another number each time
				}
				found[i] = append(found[i], rows...)
			}
		}
		if got, want := fmt.Sprint(found[1]), fmt.Sprint(found[0]); got != want {
			t.Errorf("%s, pings, %s: got %s, want %s as without", c.last, c.look, got, want)
		}
	}
}

func TestConnectionsToOtherShardsAreKeptWhileTheSessionIsBusy(t *testing.T) {
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Shared(t), hasty(t, patiently, patiently)}})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1]})
	w.send(packet(command(protocol.ComStmtPrepare, "SELECT @@port")))
	p, err := w.receivePrepare()
	if err != nil {
		t.Fatal(err)
	}
	w.query("USE " + e.Schemas[0])
	for range pauses {
		time.Sleep(pause)
		w.query("SELECT 1")
	}
	execute := append([]byte{byte(protocol.ComStmtExecute)}, p[5:9]...)
	w.send(packet(append(execute, 0, 1, 0, 0, 0)))
	if got := w.receive(protocol.ShapeResult, nil); got[4] == 0xff {
		t.Errorf("a statement prepared on the other shard: got %q, want its rows", got)
	}
}

func TestWaitTimeoutIsFollowedWithoutAnyServer(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	w, other := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{})
	begin := time.Now()
	w.alone("SET wait_timeout = 1")
	if got := w.ended(); len(got) > 0 {
		t.Errorf("got %q before the end, want nothing, as from the MySQL 8.0.11 that the greeting names", got)
	}
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("closed after %s, want 1s", took)
	}
	other.ping("the end of another session")
	if e.Logs.FilterMessage("session ended as its client was idle").Len() != 1 {
		t.Error("the log has no line about the end")
	}
}

func TestACommandThatComesSlowlyIsNotEndedByWaitTimeout(t *testing.T) {
	e := newEnv(t, setup{Servers: []*mysqltest.Server{hasty(t, patiently, patiently)}})
	w := e.Wire(t, e.Addr(), wireLogin{Capabilities: allFraming &^ protocol.SessionTrack, Packing: notPacked})
	w.ping("the login")
	statement := packet(command(protocol.ComQuery, "SELECT LENGTH('"+string(bytes.Repeat([]byte("x"), 2<<20))+"')"))
	w.send(statement[:100_000])
	for part := statement[100_000:]; len(part) > 0; {
		time.Sleep(pause)
		n := min(len(part), len(statement)/int(pauses))
		w.send(part[:n])
		part = part[n:]
	}
	if got := w.receive(protocol.ShapeResult, nil); !bytes.Contains(got, []byte("2097152")) {
		t.Errorf("got %.200q, want the length", got)
	}
}
