package proxy_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// The lists that a DBA needs in an outage work during it, with a warning about it.
func TestSequencesAreListedWhileTheSequenceServerIsAway(t *testing.T) {
	numbers := mysqltest.Start(t)
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{mysqltest.Shared(t), numbers}, AdminAddress: true,
		Backend: func(o *backend.Options) { o.Shards = o.Shards[:1] },
		Proxy: func(o *proxy.Options) {
			withWatcher(o)
			// Only the server can say whether another spelling of a name means the same.
			o.Users = append(o.Users, proxy.User{Name: "clerk", Password: "clerk", Sequences: []string{"nothing", "photo*"}})
		},
		Sequence: func(o *sequence.Options) {
			o.Servers[0].Addr, o.Servers[0].Database = numbers.Addr(), numbers.Schema(t)
			o.AllocateTimeout = time.Minute // longer than a client of this test waits
		},
	})
	exec(t, e.AdminConn(t, nil), "CREATE SEQUENCE photos", "CREATE SEQUENCE albums", "CREATE SEQUENCE unused")
	exec(t, e.Conn(t, "", nil), "SELECT NEXTVAL('photos')", "SELECT NEXTVAL('albums')")
	clients := map[string]*wire{
		"admin address": e.Wire(t, e.AdminAddr(), wireLogin{Capabilities: withoutTracking}), "data port": e.Wire(t, e.Addr(), wireLogin{Capabilities: withoutTracking &^ protocol.DeprecateEOF}),
	}
	texts := map[string]string{"SHOW SEQUENCES": "only the sequences known here", "SHOW SEQPROXY SEQUENCE SERVERS": "only the sequence servers known here"}
	ids := map[string]uint32{}
	for where, w := range clients {
		w.query("SET NAMES utf8mb4")
		for text := range texts {
			ids[where+text] = binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, text)[5:])
		}
	}
	ask := func(w *wire, cmd protocol.Command, arg string) (warnings uint16, rows [][]string) {
		t.Helper()
		w.send(packet(command(cmd, arg))) // without a ping behind it, which would reset the warnings
		answer := w.receive(protocol.ShapeResult, nil)
		if w.answer.ErrCode != 0 {
			t.Fatalf("%q: %v", arg, serverError(t, answer))
		}
		if cmd == protocol.ComQuery {
			rows = w.decode(answer)
		}
		return w.answer.Warnings, rows
	}
	// inEachWay queries both lists, and checks their warnings.
	inEachWay := func(warns bool, check func(where, text string, rows [][]string)) {
		t.Helper()
		for where, w := range clients {
			for text, warning := range texts {
				for _, prepared := range []bool{false, true} {
					var got uint16
					if prepared {
						got, _ = ask(w, protocol.ComStmtExecute, string(execution(ids[where+text], nil, false)[1:]))
					} else {
						var rows [][]string
						got, rows = ask(w, protocol.ComQuery, text)
						check(where, text, rows)
					}
					_, warned := ask(w, protocol.ComQuery, "SHOW WARNINGS")
					if !warns {
						if got != 0 || len(warned) != 0 {
							t.Errorf("%s, %s, prepared %v: got %d warnings, %q, want none", where, text, prepared, got, warned)
						}
					} else if got != 1 || len(warned) != 1 || warned[0][0] != "Warning" || warned[0][1] != "1105" || !strings.Contains(warned[0][2], warning) || !strings.Contains(warned[0][2], numbers.Addr()) {
						t.Errorf("%s, %s, prepared %v: got %d warnings, %q, want one with %q and %s", where, text, prepared, got, warned, warning, numbers.Addr())
					}
				}
			}
		}
	}
	names := func(rows [][]string) string {
		var all []string
		for _, row := range rows {
			all = append(all, row[0])
		}
		return strings.Join(all, " ")
	}
	if err := numbers.Kill(); err != nil {
		t.Fatal(err)
	}
	inEachWay(true, func(where, text string, rows [][]string) {
		if text == "SHOW SEQUENCES" {
			if got := names(rows); got != "albums photos" {
				t.Errorf("%s: %s: got %q, want albums and photos", where, text, got)
			}
			for _, row := range rows {
				if next, cached, seconds := row[1], row[2], row[3]; next != "2" || cached != "999" || seconds == "NULL" || seconds == "0.0" {
					t.Errorf("%s: got %q, want 2, 999 and seconds", where, row)
				}
			}
			return
		}
		if len(rows) != 1 || rows[0][0] != "0" || rows[0][1] != numbers.Addr() || rows[0][4] != "away" || !strings.Contains(rows[0][7], "connect") {
			t.Errorf("%s: %s: got %q, want one that is away, and why", where, text, rows)
		}
	})
	for user, want := range map[string]string{watcher: "albums photos", stranger: "albums photos", "clerk": "photos"} {
		_, rows := table(t, e.Conn(t, "", as(user)), "SHOW SEQUENCES")
		if got := names(rows); got != want {
			t.Errorf("%s sees %q, want %q", user, got, want)
		}
	}
	if _, rows := table(t, e.AdminConn(t, nil), "SHOW SEQUENCES LIKE 'pho%'"); names(rows) != "photos" {
		t.Errorf("LIKE: got %q, want photos", rows)
	}
	if err := numbers.Restart(); err != nil {
		t.Fatal(err)
	}
	c := e.AdminConn(t, nil)
	eventually(t, "the lists without a warning", func() bool {
		for text := range texts {
			table(t, c, text)
			if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 0 {
				return false
			}
		}
		return true
	})
	inEachWay(false, func(where, text string, rows [][]string) {
		want := "albums photos unused"
		if text != "SHOW SEQUENCES" {
			want = "0"
		}
		if got := names(rows); got != want {
			t.Errorf("%s: %s: got %q, want %q", where, text, got, want)
		}
	})
}

// Where no sequence was used the lists know none, and the error says why.
func TestSequencesThatAreNotKnownAreNotListedWithoutTheServer(t *testing.T) {
	const addr = "127.0.0.1:1" // nothing listens there
	e := newEnv(t, setup{AdminAddress: true, Shards: noShards, Sequence: func(o *sequence.Options) { o.Servers[0].Addr, o.AllocateTimeout = addr, time.Second }})
	for _, c := range []string{e.Addr(), e.AdminAddr()} {
		conn := one(t, e.open(t, c, "", nil))
		wantError(t, conn, 1105, "SHOW SEQUENCES", addr, "unavailable")
		_, rows := table(t, conn, "SHOW SEQPROXY SEQUENCE SERVERS")
		if len(rows) != 1 || rows[0][1] != addr || rows[0][4] != "away" {
			t.Errorf("%s: got %q, want the configured sequence server to be away", c, rows)
		}
	}
}

// A statement may need several answers of the sequence server. Where it does not answer they share
// one timeout, and the error has the whole wait.
func TestAStatementWaitsOnceForAllThatItNeedsOfTheSequenceServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	const limit = time.Second
	e := newEnv(t, setup{
		// With several shards an INSERT is an error after the first wait.
		Backend: func(o *backend.Options) { o.Shards = o.Shards[:1] },
		Sequence: func(o *sequence.Options) {
			o.Servers[0].Addr, o.AllocateTimeout = silent.Addr().String(), limit
		},
	})
	conn := e.Conn(t, mysqltest.Shared(t).Schema(t), nil)
	exec(t, conn, "CREATE TEMPORARY TABLE t (id BIGINT UNSIGNED)")
	// The first query is whether a column of t is filled, the second for the sequence.
	_, err = conn.ExecContext(t.Context(), "INSERT INTO t VALUES (NEXTVAL('photos'))")
	found := regexp.MustCompile(`\(waited (\S+)\)`).FindStringSubmatch(fmt.Sprint(err))
	if found == nil {
		t.Fatalf("got %v, want an error with the length of the wait", err)
	}
	if waited, err := time.ParseDuration(found[1]); err != nil || waited < limit+limit/10 {
		t.Errorf("got a wait of %q, %v, want that of the second wait added to the %v of the first", found[1], err, limit)
	}
	wantError(t, conn, 1105, "SELECT NEXTVAL('photos')", "photos", "its sequence server is unavailable")
}
