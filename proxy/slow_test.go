package proxy_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zaptest/observer"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/statement/redact"
)

// slowEnough is a limit that SLEEP(0.3) reaches.
const slowEnough = 250 * time.Millisecond

func slowLimit(limit time.Duration) setup {
	return setup{Proxy: func(o *proxy.Options) { o.SlowStatement = limit }}
}

// slowLines waits for a line about a slow statement that contains text, and returns all lines.
func (e *env) slowLines(t *testing.T, text string) (lines []observer.LoggedEntry) {
	t.Helper()
	eventually(t, "a line of the slow statement "+text, func() bool {
		lines = nil
		for _, line := range e.Logs.FilterMessage("slow statement").All() {
			if line.ContextMap()["statement"] == text {
				lines = append(lines, line)
			}
		}
		return len(lines) > 0
	})
	if len(lines) == 0 {
		for _, line := range e.Logs.FilterMessage("slow statement").All() {
			t.Logf("there is %v", line.ContextMap())
		}
	}
	return lines
}

func TestSlowStatementsAreLoggedWithoutTheirLiterals(t *testing.T) {
	e := newEnv(t, slowLimit(slowEnough))
	createSequence(t, e, "photos")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, a VARCHAR(50)) ENGINE=InnoDB", "INSERT INTO t VALUES (1000, 'x')")
	const secret = "5ecret"
	ctx := context.Background()
	type want struct{ text, kind string }
	for _, test := range []struct {
		run  func() error
		want want
	}{
		{func() error { _, err := c.ExecContext(ctx, "DO SLEEP(0.3),  '"+secret+"' -- "+secret); return err }, want{"DO SLEEP(?), ?", "relay"}},
		{func() error { _, err := c.ExecContext(ctx, "SELECT SLEEP(0.3), 'a"+secret+"'"); return err }, want{"SELECT SLEEP(?), ?", "relay"}},
		{func() error { _, err := c.ExecContext(ctx, "SELECT SLEEP(?) AS p, ?", 0.3, secret); return err }, want{"SELECT SLEEP(?) AS p, ?", "relay"}},
		{func() error {
			_, err := c.ExecContext(ctx, "INSERT INTO t SELECT NEXTVAL('photos'), CONCAT('"+secret+"', SLEEP(0.3))")
			return err
		}, want{"INSERT INTO t SELECT NEXTVAL(?), CONCAT(?, SLEEP(?))", "rewrite"}},
		{func() error {
			_, err := c.ExecContext(ctx, "INSERT INTO t VALUES (NEXTVAL('photos'), CONCAT(?, SLEEP(0.3)))", secret)
			return err
		}, want{"INSERT INTO t VALUES (NEXTVAL(?), CONCAT(?, SLEEP(?)))", "rewrite"}},
		{func() error {
			_, err := c.ExecContext(ctx, "SELECT SLEEP(0.3) AS long_one, '"+strings.Repeat(secret, 300)+"'")
			return err
		}, want{"SELECT SLEEP(?) AS long_one, ...", "relay"}},
	} {
		if err := test.run(); err != nil {
			t.Fatal(err)
		}
		for _, line := range e.slowLines(t, test.want.text) {
			f := line.ContextMap()
			took, _ := f["duration_ms"].(float64)
			if f["kind"] != test.want.kind || f["shard"] != "s0" || f["node"] != e.Servers[0].Addr() || f["user"] != e.User ||
				took < float64(slowEnough.Milliseconds()) || f["conn"] == nil || f["client"] == nil || f["bytes"] == uint64(0) || f["code"] != nil {
				t.Errorf("%s: got %v, want the kind %s, user, shard, node, duration and bytes", test.want.text, f, test.want.kind)
			}
		}
	}

	// The line of a slow statement that fails has the error.
	locked := e.DirectConn(t, 0, e.Schemas[0], nil)
	exec(t, locked, "BEGIN", "SELECT * FROM t WHERE id = 1000 FOR UPDATE")
	exec(t, c, "SET innodb_lock_wait_timeout = 1")
	wantError(t, c, 1205, "UPDATE t SET a = '"+secret+"' WHERE id = 1000")
	if lines := e.slowLines(t, "UPDATE t SET a = ? WHERE id = ?"); len(lines) > 0 && lines[0].ContextMap()["code"] != uint16(1205) {
		t.Errorf("a lock wait timeout: got %v, want code 1205", lines[0].ContextMap())
	}
	exec(t, locked, "ROLLBACK")

	for _, line := range e.Logs.All() {
		if strings.Contains(fmt.Sprint(line.Message, line.ContextMap()), secret) {
			t.Errorf("the log holds a literal: %s %v", line.Message, line.ContextMap())
		}
	}
}

// TestASlowStatementThatTheProxyRefusesSaysWithWhat: no server has answered it, and the line of the
// next statement has nothing of it.
func TestASlowStatementThatTheProxyRefusesSaysWithWhat(t *testing.T) {
	// This sequence server never answers.
	mute, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	e := newEnv(t, setup{
		Proxy:    func(o *proxy.Options) { o.SlowStatement = slowEnough },
		Sequence: func(o *sequence.Options) { o.Servers[0].Addr, o.AllocateTimeout = mute.Addr().String(), 2*slowEnough },
	})
	c := e.Conn(t, e.Schemas[0], nil)
	wantError(t, c, 1105, "SELECT NEXTVAL('photos')")
	exec(t, c, "DO SLEEP(0.3)")
	for text, want := range map[string]map[string]any{
		"SELECT NEXTVAL(?)": {"kind": "refused", "code": uint16(1105), "shard": nil, "node": nil},
		"DO SLEEP(?)":       {"kind": "relay", "code": nil, "shard": "s0", "node": e.Servers[0].Addr()},
	} {
		for _, line := range e.slowLines(t, text) {
			for field, value := range want {
				if got := line.ContextMap()[field]; got != value {
					t.Errorf("%s: %s is %v, want %v: %v", text, field, got, value, line.ContextMap())
				}
			}
		}
	}
}

// TestOneOfSeveralStatementsIsSlow sends several at a time: the line is about the right one, at any
// place.
func TestOneOfSeveralStatementsIsSlow(t *testing.T) {
	e := newEnv(t, slowLimit(time.Second))
	createSequence(t, e, "photos")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for i, steps := range [][]piped{
		{asText("SELECT SLEEP(1.2) AS a0"), asText("SELECT 1 AS b0"), asText("SELECT 2 AS c0")},
		{asText("SELECT 1 AS b1"), asText("SELECT SLEEP(1.2) AS a1"), asText("SELECT NEXTVAL('photos') AS d1"), asText("SELECT 2 AS c1")},
		{asText("SELECT 1 AS b2"), asText("SET @x = 5"), asText("SELECT SLEEP(1.2) AS a2")},
		{asText("SELECT 1 AS b3"), {command(protocol.ComPing, ""), protocol.ShapeOne}, asText("SELECT SLEEP(1.2) + LAST_INSERT_ID() AS a3"), asText("SELECT 2 AS c3")},
	} {
		w.pipeline(steps)
		text := fmt.Sprintf("SELECT SLEEP(?) AS a%d", i)
		if i == 3 {
			text = "SELECT SLEEP(?) + LAST_INSERT_ID() AS a3"
		}
		if lines := e.slowLines(t, text); len(lines) != 1 {
			t.Errorf("%s: got %d lines, want 1", text, len(lines))
		}
	}
}

// TestASlowStatementWithNumbersIsLoggedAsItself, and not as the one behind it.
func TestASlowStatementWithNumbersIsLoggedAsItself(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.SlowStatement, o.Bindings = slowEnough, []proxy.Binding{{Table: "photos", Column: "id", Sequence: "photos"}}
	}})
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE SEQUENCE photos", "CREATE TABLE photos (id BIGINT PRIMARY KEY, a INT)",
		"CREATE TABLE one (id BIGINT PRIMARY KEY, a BIGINT)", "INSERT INTO one VALUES (1, 1)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	for sql, text := range map[string]string{
		"INSERT INTO photos (a) VALUES (SLEEP(0.3))":            "INSERT INTO photos (a) VALUES (SLEEP(?))",
		"SELECT NEXTVAL('photos'), SLEEP(0.3) FROM one":         "SELECT NEXTVAL(?), SLEEP(?) FROM one",
		"UPDATE one SET id = NEXTVAL('photos'), a = SLEEP(0.3)": "UPDATE one SET id = NEXTVAL(?), a = SLEEP(?)",
	} {
		w.pipeline([]piped{asText(sql), asText("SELECT 1 AS behind")})
		for _, line := range e.slowLines(t, text) {
			if f := line.ContextMap(); f["kind"] != "rewrite" || f["bytes"] == uint64(0) {
				t.Errorf("%s: got %v, want the kind rewrite and its bytes", text, f)
			}
		}
	}
}

func TestAStatementIsSlowWhoseClientGivesUp(t *testing.T) {
	e := newEnv(t, slowLimit(time.Millisecond))
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), 'gives up'")))
	e.awaitStatement(e.Servers[0], "SELECT SLEEP(100), 'gives up'")
	w.nc.Close()
	e.slowLines(t, "SELECT SLEEP(?), ?")
}

func TestTextsThatAreNotHeldWholeAreLoggedByTheirBeginning(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.SlowStatement, o.MaxStatement = time.Nanosecond, 20_000 }})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "SELECT 1 AS held, '"+strings.Repeat("x", 18_000)+"'", "SELECT 1 AS passed_on, '"+strings.Repeat("x", 100_000)+"'", "SELECT 1 AS short")
	for _, text := range []string{"SELECT ? AS held, ...", "SELECT ? AS passed_on, ...", "SELECT ? AS short"} {
		e.slowLines(t, text)
	}
	// The proxy must know how to read such a text.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.query("SET SESSION sql_mode = 'ANSI_QUOTES'")
	w.query(`SELECT 1 AS "quoted", 'a'`)
	e.slowLines(t, `SELECT ? AS "quoted", ?`)
	for _, line := range e.Logs.FilterMessage("slow statement").All() {
		if text := line.ContextMap()["statement"].(string); len(text) > redact.Longest+400 {
			t.Errorf("a text of %d bytes: %s", len(text), text)
		}
	}
}

func TestNoStatementIsSlowWithoutALimit(t *testing.T) {
	for _, limit := range []time.Duration{0, time.Hour} {
		t.Run(limit.String(), func(t *testing.T) {
			e := newEnv(t, slowLimit(limit))
			c := e.Conn(t, e.Schemas[0], nil)
			exec(t, c, "DO SLEEP(0.3)")
			value(t, c, "SELECT ?", 5)
			if n := e.Logs.FilterMessage("slow statement").Len(); n != 0 {
				t.Errorf("got %d lines, want none", n)
			}
		})
	}
}
