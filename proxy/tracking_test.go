package proxy_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// sessionStateChanged marks an OK with session tracking in it.
const sessionStateChanged = protocol.Status(mysql.SERVER_SESSION_STATE_CHANGED)

// trackers returns the kinds of session tracking in an answer's OK packets.
func trackers(t testing.TB, answer []byte) (kinds []byte) {
	t.Helper()
	for _, p := range split(answer) {
		if p[0] != 0 && p[0] != 0xfe || len(p) < 7 {
			continue
		}
		rest := p[1:]
		for range 2 { // rows affected, insert id
			_, n, ok := protocol.ReadLenEncInt(rest)
			if !ok {
				t.Fatalf("malformed OK %x", p)
			}
			rest = rest[n:]
		}
		status := protocol.Status(rest[0]) | protocol.Status(rest[1])<<8
		rest = rest[4:]
		if !status.Has(sessionStateChanged) {
			continue
		}
		_, n, _ := protocol.ReadLenEncBytes(rest) // the message
		all, _, ok := protocol.ReadLenEncBytes(rest[n:])
		if !ok {
			t.Fatalf("malformed OK %x", p)
		}
		for len(all) > 0 {
			kinds = append(kinds, all[0])
			_, n, ok := protocol.ReadLenEncBytes(all[1:])
			if !ok {
				t.Fatalf("malformed tracking %x", all)
			}
			all = all[1+n:]
		}
	}
	return kinds
}

// Checklist 26.
func TestEveryTrackerOfASessionIsPassedOn(t *testing.T) {
	e := newEnv(t, setup{})
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id INT) ENGINE=InnoDB", "CREATE PROCEDURE p() BEGIN SET @@session.time_zone = '+02:00'; SELECT * FROM t; END")
	variables := "*"
	if !e.Servers[0].IsMariaDB() { // MySQL counts statements in one tracker
		variables = "time_zone,autocommit,sql_mode,character_set_client,character_set_results,character_set_connection"
	}
	for _, caps := range []protocol.Capability{allFraming, allFraming &^ protocol.DeprecateEOF} {
		p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		p.query("SET SESSION session_track_system_variables = '" + variables + "', session_track_state_change = ON, session_track_transaction_info = 'CHARACTERISTICS'")
		seen := make(map[byte]bool)
		for _, sql := range []string{
			"SET time_zone = '+01:00'", "SET NAMES latin1", "USE " + e.Schemas[0], "SET @x = 5", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
			"START TRANSACTION READ ONLY", "SELECT * FROM t", "COMMIT", "BEGIN", "INSERT INTO t VALUES (1)", "ROLLBACK",
			"CREATE TEMPORARY TABLE tt (a INT)", "SET time_zone = '+03:00'; SELECT 1; SET autocommit = 0", "SET autocommit = 1", "CALL p()",
			"SET session_track_system_variables = 'sql_mode'", "SET sql_mode = 'ANSI_QUOTES'", "SET time_zone = '+04:00'",
		} {
			var answers [2][]byte // without a ping behind it, for which MySQL may send trackers, too
			for i, w := range []*wire{p.Proxy, p.Direct} {
				w.send(packet(command(protocol.ComQuery, sql)))
				answers[i] = bytes.Clone(w.receive(protocol.ShapeResult, nil))
			}
			compare(t, sql, answers[0], answers[1])
			for _, kind := range trackers(t, answers[0]) {
				seen[kind] = true
			}
		}
		for kind, name := range []string{0: "system variables", 1: "schema", 2: "state change", 4: "transaction characteristics", 5: "transaction state"} {
			if name != "" && !seen[byte(kind)] {
				t.Errorf("flags %x: got no tracking of the %s from the server", uint64(caps), name)
			}
		}
	}
}

// Checklist 27.
func TestAClientThatAskedForNoTrackingGetsNone(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s"}); err != nil {
		t.Fatal(err)
	}
	tracked := false
	for _, caps := range []protocol.Capability{withoutTracking, allFraming} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Capabilities: caps})
		answers := [][]byte{w.query("SET SESSION session_track_system_variables = '*', session_track_state_change = ON")}
		for _, sql := range []string{
			"SET time_zone = '+01:00'", "USE " + e.Schemas[1], "SET NAMES latin1", "SELECT NEXTVAL('s')", "DO 1", "SELECT LAST_INSERT_ID()",
			"USE " + e.Schemas[0], "SET time_zone = '+02:00'; DO 2", "CREATE SEQUENCE IF NOT EXISTS s",
		} {
			answers = append(answers, w.query(sql))
		}
		answers = append(answers, w.do(protocol.ComInitDB, e.Schemas[1]), w.do(protocol.ComResetConn, ""), w.do(protocol.ComInitDB, e.Schemas[0]),
			w.change(e.User, e.Password, e.Schemas[1], "caching_sha2_password"), w.query("SET time_zone = '+03:00'"))
		for i, answer := range answers {
			kinds := trackers(t, answer)
			tracked = tracked || len(kinds) > 0
			if !caps.Has(protocol.SessionTrack) && len(kinds) > 0 {
				t.Errorf("answer %d has tracking that the client did not ask for: %s", i, fmt.Sprintf("%x", answer))
			}
		}
	}
	if !tracked {
		t.Error("no tracking for a client that asked, so this shows nothing")
	}
}

// Drivers that follow it would leave the proxy, and get keys past it.
func TestARedirectionByAServerStaysWithTheProxy(t *testing.T) {
	const url = "mariadb://127.0.0.1:1"
	for _, relayed := range []bool{false, true} {
		e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
			if o.RelayLogins = relayed; relayed {
				byServer(o)
			}
		}})
		direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
		if !bytes.Contains(direct.query("SHOW GLOBAL VARIABLES LIKE 'redirect_url'"), []byte("redirect_url")) {
			t.Skip("this server redirects nobody")
		}
		e.Servers[0].Exec(t, "SET GLOBAL redirect_url = '"+url+"'")
		t.Cleanup(func() { e.Servers[0].Exec(t, "SET GLOBAL redirect_url = ''") })
		tells := func(addr string) bool {
			ok := logInBySha2(t, dialPackets(t, "tcp", addr), e.User, e.Password, protocol.SessionTrack)
			if ok[protocol.HeaderSize] != 0 {
				t.Fatal(serverError(t, ok))
			}
			return bytes.Contains(ok, []byte(url))
		}
		if !tells(e.Servers[0].Addr()) {
			t.Fatal("the server does not tell its redirect_url, so this shows nothing")
		}
		if tells(e.Addr()) {
			t.Errorf("relayed %v: a login tells the client to leave", relayed)
		}
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		if got := w.query("SELECT @@redirect_url"); !bytes.Contains(got, []byte(url)) {
			t.Errorf("relayed %v: @@redirect_url is not the server's: %q", relayed, got)
		}
		for _, answer := range [][]byte{w.do(protocol.ComResetConn, ""), w.change(e.User, e.Password, e.Schemas[0], "mysql_native_password")} {
			if answer[protocol.HeaderSize] != 0 || bytes.Contains(answer, []byte(url)) {
				t.Errorf("relayed %v: got %q, want an OK without %s", relayed, answer, url)
			}
		}
	}
}
