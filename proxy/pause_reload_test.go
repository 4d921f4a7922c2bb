package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
)

// CREATE DATABASE of another shard's schema runs on that shard's node after the pause.
func TestASchemaOfAnotherShardIsCreatedWhereItBelongsAfterAPause(t *testing.T) {
	for what, test := range map[string]struct {
		schemaAt, schemaThen int // the shard of the schema, before and after the reload
		pause                string
		prefix               string
		node                 bool // the second shard's node changes, to the first one's
		server               int  // the server that gets the schema
	}{
		"a shard that gets another node":      {schemaAt: 1, schemaThen: 1, pause: "s1", node: true, server: 0},
		"both shards paused":                  {schemaAt: 1, schemaThen: 1, pause: "", node: true, server: 0},
		"a schema that comes to the session":  {schemaAt: 1, schemaThen: 0, pause: "s1", server: 0},
		"a schema that goes to another shard": {schemaAt: 0, schemaThen: 1, pause: "s0", server: 1},
		"the same, with a comment":            {schemaAt: 0, schemaThen: 1, pause: "s0", prefix: "/* x */ ", server: 1},
	} {
		for _, cmd := range []protocol.Command{protocol.ComQuery, protocol.ComCreateDB} {
			if cmd == protocol.ComCreateDB && test.prefix != "" {
				continue
			}
			t.Run(fmt.Sprintf("%s, %v", what, cmd), func(t *testing.T) {
				var name string
				e := newEnv(t, setup{Shards: 2, Backend: func(o *backend.Options) {
					name = "new_" + o.Shards[0].Schemas[0]
					o.Shards[test.schemaAt].Schemas = append(o.Shards[test.schemaAt].Schemas, name)
				}})
				w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
				if cmd == protocol.ComCreateDB && serverError(t, e.Wire(t, e.Servers[0].Addr(), wireLogin{}).command(cmd, e.Schemas[0])).Code == 1047 {
					t.Skip("the server does not know the command")
				}
				w.query("SET @x = 1")
				e.pause(t, test.pause)
				if cmd == protocol.ComCreateDB {
					w.send(packet(command(cmd, name)))
				} else {
					w.sendText(test.prefix + "CREATE DATABASE " + name)
				}
				e.awaitPausedSessions(t, 1)
				e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
					if test.node {
						b.Shards[1].Nodes = []string{e.Servers[0].Addr()}
					}
					b.Shards[0].Schemas, b.Shards[1].Schemas = []string{e.Schemas[0]}, []string{e.Schemas[1]}
					b.Shards[test.schemaThen].Schemas = append(b.Shards[test.schemaThen].Schemas, name)
				})
				e.resume(t, test.pause)
				w.answerOK("CREATE DATABASE")
				for i, server := range e.Servers {
					var there bool
					if err := server.DB(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", name).Scan(&there); err != nil {
						t.Fatal(err)
					}
					if want := i == test.server; there != want {
						t.Errorf("the schema is at server %d: %v, want %v", i, there, want)
					}
					if there {
						server.Exec(t, "DROP DATABASE "+name)
					}
				}
			})
		}
	}
}

// USE that waited for both shards runs on their nodes after the pause.
func TestUSEThatWaitedGoesToTheNewNode(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	e.Servers[0].Exec(t, "CREATE DATABASE `"+e.Schemas[1]+"`")
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP DATABASE `"+e.Schemas[1]+"`") })
	for _, second := range []string{"s0", "s1"} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
		w.query("SET @x = 7")
		e.pause(t, "")
		w.sendText("USE " + e.Schemas[1])
		e.awaitPausedSessions(t, 1)
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[1].Nodes = []string{e.Servers[0].Addr()} })
		first := map[string]string{"s0": "s1", "s1": "s0"}[second]
		e.resume(t, first)
		e.resume(t, second)
		w.answerOK("USE")
		if got, want := w.rows("SELECT CONCAT(@@port, ' ', @x)")[0], e.port(0)+" 7"; got != want {
			t.Errorf("%s resumed last: got %s, want %s", second, got, want)
		}
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[1].Nodes = []string{e.Servers[1].Addr()} })
		w.quit()
	}
}

// A reload may send a session to a shard that it has a connection to. The session must not use it
// while the shard is paused.
func TestASessionThatMovesToAPausedShardWaits(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	e.Servers[1].Exec(t, "CREATE DATABASE `"+e.Schemas[0]+"`")
	t.Cleanup(func() { e.Servers[1].Exec(t, "DROP DATABASE `"+e.Schemas[0]+"`") })
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1], Packing: notPacked})
	w.query("SELECT 1")
	w.query("USE " + e.Schemas[0])
	e.pause(t, "")
	w.sendText("SELECT CONCAT('at ', @@port)")
	e.awaitPausedSessions(t, 1)
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
		b.Shards[0].Schemas, b.Shards[1].Schemas = nil, append([]string{e.Schemas[0]}, b.Shards[1].Schemas...)
	})
	e.resume(t, "s0")
	// It still waits for s1, because otherwise its answer would come before s1 is resumed.
	e.awaitPausedSessions(t, 1)
	if n := e.active(t, 1); n != "0" {
		t.Errorf("%s statements run in the pause", n)
	}
	e.resume(t, "s1")
	if got, want := string(w.receive(protocol.ShapeResult, nil)), "at "+e.port(1); !strings.Contains(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A reload that takes a shard away undoes a pause of it that is under way, and the answer says so.
// A pause of all shards includes those that come.
func TestAPauseDuringAReload(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	e.Servers[0].Exec(t, "CREATE DATABASE `"+e.Schemas[1]+"`")
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP DATABASE `"+e.Schemas[1]+"`") })
	login := func(i int) wireLogin { return wireLogin{Schema: e.Schemas[i], Packing: notPacked} }
	pause := func(shard string) <-chan proxy.Paused {
		done := make(chan proxy.Paused, 1)
		go func() { done <- e.Proxy.Pause(context.Background(), shard, 0) }()
		return done
	}
	paused := func(shard string) bool {
		for _, p := range e.Shards.Routes().Named(shard) {
			return p.Paused() != nil
		}
		return false
	}
	there := e.back.Shards[1]

	busy := e.Wire(t, e.Addr(), login(1))
	busy.query("BEGIN")
	done := pause("s1")
	eventually(t, "s1 is paused", func() bool { return paused("s1") })
	w := e.Wire(t, e.Addr(), login(0))
	w.sendText("USE " + e.Schemas[1])
	e.awaitPausedSessions(t, 1)
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards = b.Shards[:1] })
	w.answerOK("USE of a schema whose shard was taken away")
	busy.sendText("COMMIT") // not query, whose ping would wait
	busy.answerOK("COMMIT")
	if p := <-done; len(p.Shards) != 0 || len(p.Resumed) != 1 || p.Resumed[0].Name() != "s1" {
		t.Errorf("a pause of a shard that was taken away: got %d paused, %d resumed, want 0 and 1", len(p.Shards), len(p.Resumed))
	}

	busy = e.Wire(t, e.Addr(), login(0))
	busy.query("BEGIN")
	done = pause("")
	eventually(t, "s0 is paused", func() bool { return paused("s0") })
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards = append(b.Shards, there) })
	busy.sendText("COMMIT") // not query, whose ping would wait
	busy.answerOK("COMMIT")
	if p := <-done; len(p.Shards) != 2 || len(p.Resumed) != 0 || p.Busy != 0 {
		t.Errorf("a pause of all while one comes: got %d paused, %d resumed, %d busy, want 2, 0, 0", len(p.Shards), len(p.Resumed), p.Busy)
	}
	if !paused("s1") {
		t.Error("the new shard is not paused")
	}
	e.resume(t, "")

	busy.query("BEGIN")
	done = pause("s0")
	eventually(t, "s0 is paused", func() bool { return paused("s0") })
	e.resume(t, "s0")
	busy.sendText("COMMIT") // not query, whose ping would wait
	busy.answerOK("COMMIT")
	if p := <-done; len(p.Shards) != 0 || len(p.Resumed) != 1 {
		t.Errorf("a pause that was ended: got %d paused, %d resumed, want 0 and 1", len(p.Shards), len(p.Resumed))
	}
}

// Pauses, resumes and reloads at the same time: no session waits for ever.
func TestPausesResumesAndReloadsAtOnce(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	e.Servers[0].Exec(t, "CREATE DATABASE `"+e.Schemas[1]+"`")
	t.Cleanup(func() { e.Servers[0].Exec(t, "DROP DATABASE `"+e.Schemas[1]+"`") })
	var stop atomic.Bool
	var clients, admins sync.WaitGroup
	for i := range 6 {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[i%2], Packing: notPacked})
		clients.Go(func() {
			texts := []string{"BEGIN", "SELECT 1", "COMMIT", "SELECT 2", "USE " + e.Schemas[(i+1)%2], "SELECT 3", "USE " + e.Schemas[i%2]}
			for !stop.Load() {
				for _, sql := range texts {
					w.sendText(sql)
					w.answerOK(sql)
				}
			}
		})
	}
	there := e.back.Shards[1]
	for _, shard := range []string{"", "s0", "s1"} {
		admins.Go(func() {
			for range 15 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				e.Proxy.Pause(ctx, shard, 0)
				cancel()
				e.Proxy.Resume(shard)
			}
		})
	}
	admins.Go(func() {
		for i := range 30 {
			e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
				if b.Shards = b.Shards[:1]; i%2 == 1 {
					b.Shards = append(b.Shards, there)
				}
			})
		}
	})
	admins.Wait()
	e.Proxy.Resume("")
	e.awaitPausedSessions(t, 0)
	stop.Store(true)
	clients.Wait()
}

// One of many shards is paused alone.
func TestOfManyShardsOneIsPaused(t *testing.T) {
	const many = 130
	e := newEnv(t, setup{Backend: func(o *backend.Options) {
		for i := 1; i < many; i++ {
			o.Shards = append(o.Shards, backend.ShardOptions{
				Name: fmt.Sprintf("s%d", i), Nodes: []string{"127.0.0.1:1"}, Schemas: []string{fmt.Sprintf("none%d", i)},
			})
		}
	}})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	w.query("BEGIN")
	for i := 1; i < many; i++ {
		e.pause(t, fmt.Sprintf("s%d", i)) // no session is busy there
	}
	w.query("COMMIT")
	w.query("SELECT 1")
	e.awaitPausedSessions(t, 0)
	e.resume(t, "")
}

// A pause is the time to switch primaries. A session that cannot move to the new one ends, because
// it must not go on at the old one.
func TestASessionThatCannotMoveAfterAPauseEnds(t *testing.T) {
	const insert = "INSERT INTO t VALUES (1)"
	relayed, password := "relay_left", "pw"
	for what, test := range map[string]struct {
		proxy  func(*proxy.Options)
		spoil  func(e *env) // makes the session unable to move
		causes []string
		back   bool // a new session can be at the new node
	}{
		"the proxy has no password": {proxy: byServer, causes: []string{"the password of " + relayed, "[[user]]"}, back: true},
		"the new node refuses the account": {spoil: func(e *env) {
			e.Servers[1].Exec(e.t, "ALTER USER "+relayed+"@'%' IDENTIFIED BY 'another'")
		}, causes: []string{"Access denied for user '" + relayed}},
		"the new node lacks the schema": {spoil: func(e *env) {
			e.Servers[1].Exec(e.t, "DROP DATABASE `"+e.Schemas[0]+"`", "CREATE DATABASE empty_"+e.Schemas[0])
			e.t.Cleanup(func() {
				e.Servers[1].Exec(e.t, "DROP DATABASE empty_"+e.Schemas[0], "CREATE DATABASE IF NOT EXISTS `"+e.Schemas[0]+"`")
			})
		}, causes: []string{"Unknown database"}},
	} {
		t.Run(what, func(t *testing.T) {
			e, move := moved(t)
			e.Reload(t, func(_ *backend.Options, o *proxy.Options) {
				o.Users = append(o.Users, proxy.User{Name: relayed, Password: password})
				if test.proxy != nil {
					test.proxy(o)
				}
			})
			for _, s := range e.Servers {
				account(t, s, relayed+"@'%'", "IDENTIFIED BY '"+password+"'")
				s.Exec(t, "CREATE TABLE IF NOT EXISTS `"+e.Schemas[0]+"`.t (a INT)")
			}
			login := wireLogin{User: &relayed, Password: &password, Schema: e.Schemas[0], Packing: notPacked}
			if !e.Servers[0].IsMariaDB() { // without TLS only a server that has the password in its cache lets the proxy relay
				for _, s := range e.Servers {
					e.Wire(t, s.Addr(), login)
				}
			}
			waiting, resting, preparing, behind := e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login), e.Wire(t, e.Addr(), login)
			for _, w := range []*wire{waiting, resting, preparing, behind} {
				w.query("DO 1")
			}
			if test.spoil != nil {
				test.spoil(e)
			}
			kept := e.Wire(t, e.Addr(), login)
			kept.query("CREATE TEMPORARY TABLE tmp (a INT)")
			e.pause(t, "")
			waiting.sendText(insert)
			behind.send(inOnePiece(insert, insert, "SELECT 1"))
			e.awaitPausedSessions(t, 2)
			move()
			e.Reload(t, func(*backend.Options, *proxy.Options) {}) // a later one changes nothing of it
			e.ending(t, what, func() {
				e.resume(t, "")
				resting.sendText(insert)
				preparing.send(packet(command(protocol.ComStmtPrepare, insert)))
				for session, w := range map[string]*wire{"one that waited": waiting, "one that rested": resting, "one that prepares": preparing, "one that sent more": behind} {
					got := w.receive(protocol.ShapeResult, nil)
					refused := serverError(t, got)
					if refused.Code != 1429 || refused.State != "08S01" {
						t.Errorf("%s: got %v, want error 1429 (08S01)", session, refused)
					}
					for _, text := range append(test.causes, "connect again", "shard s0") {
						if !strings.Contains(refused.Message, text) {
							t.Errorf("%s: got %q, want %q in it", session, refused.Message, text)
						}
					}
					if rest := w.ended(); len(rest) > 0 {
						t.Errorf("%s: got %q behind the error, want the end", session, rest)
					}
				}
			}, "backend_gone", "backend_gone", "backend_gone", "backend_gone")
			var n int
			if err := e.Servers[0].DB(t, e.Schemas[0]).QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n > 0 {
				t.Errorf("the old node: got %d rows, %v, want none", n, err)
			}
			if got := e.Logs.FilterMessage("session ended as it could not move").Len(); got != 4 {
				t.Errorf("the log says %d times that a session could not move, want 4", got)
			}
			if got := kept.rows("SELECT @@port")[0]; got != e.port(0) {
				t.Errorf("one with a pin: got port %s, want the old one, %s", got, e.port(0))
			}
			if !test.back {
				return
			}
			if got := e.Wire(t, e.Addr(), login).rows("SELECT @@port")[0]; got != e.port(1) {
				t.Errorf("a new session: got port %s, want %s", got, e.port(1))
			}
		})
	}
}

// A session that could not move by a reload without a pause does not go on at the old node after a
// reload in a pause.
func TestASessionThatTriesAgainEndsAfterAPause(t *testing.T) {
	e, move := moved(t)
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	e.Servers[1].Exec(t, "DROP DATABASE `"+e.Schemas[0]+"`")
	t.Cleanup(func() { e.Servers[1].Exec(t, "CREATE DATABASE IF NOT EXISTS `"+e.Schemas[0]+"`") })
	w.query("DO 1")
	move()
	if got := w.rows("SELECT @@port")[0]; got != e.port(0) {
		t.Fatalf("got port %s, want the old one, %s", got, e.port(0))
	}
	e.pause(t, "s0")
	move()
	e.resume(t, "s0")
	w.sendText("SELECT @@port")
	w.answerError("after the pause", 1429, "Unknown database")
	w.ended()
}

// What waited in a pause writes to the new node, whatever it may read of the statement before. Only
// a text that names ROW_COUNT() or the like runs where that is.
func TestWhatWritesAfterAPauseGoesToTheNewNode(t *testing.T) {
	e, move := moved(t)
	for _, s := range e.Servers {
		s.Exec(t, "CREATE TABLE `"+e.Schemas[0]+"`.t (a INT)", "CREATE PROCEDURE `"+e.Schemas[0]+"`.put() INSERT INTO t VALUES (77)")
	}
	e.Servers[0].Exec(t, "CREATE TABLE `"+e.Schemas[0]+"`.u SELECT 1 AS a UNION SELECT 2")
	texts := []string{
		"INSERT INTO t VALUES (LAST_INSERT_ID())", "INSERT INTO t VALUES (77); SELECT ROW_COUNT()", "CALL put()", "INSERT INTO t VALUES (/*!50000 77 */)",
		"INSERT INTO t VALUES (77) /*" + strings.Repeat("x", 100_000) + "*/", // longer than max_statement
	}
	login := wireLogin{Schema: e.Schemas[0], Packing: notPacked}
	var all []*wire
	for range texts {
		w := e.Wire(t, e.Addr(), login)
		w.query("DO LAST_INSERT_ID(77)")
		all = append(all, w)
	}
	counting := e.Wire(t, e.Addr(), login)
	counting.sendText("UPDATE u SET a = a + 1")
	counting.answerOK("UPDATE")
	e.pause(t, "s0")
	for i, w := range all {
		w.sendText(texts[i])
	}
	counting.sendText("SELECT CONCAT('rows: ', ROW_COUNT())")
	e.awaitPausedSessions(t, len(texts)+1)
	move()
	e.resume(t, "s0")
	for i, w := range all {
		w.answerOK(texts[i])
	}
	if got := string(counting.receive(protocol.ShapeResult, nil)); !strings.Contains(got, "rows: 2") {
		t.Errorf("ROW_COUNT(): got %q, want 2", got)
	}
	if got := counting.rows("SELECT @@port")[0]; got != e.port(1) {
		t.Errorf("after ROW_COUNT(): got port %s, want the new one, %s", got, e.port(1))
	}
	for i, want := range []string{"0 ", "5 77"} {
		var got string
		if err := e.Servers[i].DB(t, e.Schemas[0]).QueryRow("SELECT CONCAT(COUNT(*), ' ', COALESCE(GROUP_CONCAT(DISTINCT a), '')) FROM t").Scan(&got); err != nil || got != want {
			t.Errorf("server %d: got %q, %v, want %q", i, got, err, want)
		}
	}
}
