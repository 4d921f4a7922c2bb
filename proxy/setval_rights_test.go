package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// asPlainUser makes the env's user no admin.
func asPlainUser(o *proxy.Options) { o.Users[0].Admin = false }

// audited returns an env's audit lines of one outcome, as "statement user".
func audited(e *env, outcome string) (lines []string) {
	for _, entry := range e.Logs.FilterMessage("audit").All() {
		if f := entry.ContextMap(); f["outcome"] == outcome {
			lines = append(lines, fmt.Sprint(f["statement"], " ", f["user"]))
		}
	}
	return lines
}

// SETVAL changes a sequence, so only admins may use it, wherever it can stand.
func TestSetvalNeedsAnAdmin(t *testing.T) {
	e := newEnv(t, setup{Proxy: asPlainUser})
	createSequence(t, e, "photos")
	c := e.Conn(t, e.Schemas[0], multi)
	exec(t, c, "CREATE TABLE t (id BIGINT UNSIGNED)", "INSERT INTO t VALUES (1)", "SET @s = 'SELECT SETVAL(''photos'', 500000)'")
	refused := 0
	for _, text := range []string{
		"SELECT SETVAL('photos', 9223372036854775806)", "SELECT SETVAL(photos, 500000)", "SELECT setval ( `Photos` , +500000, 0)", "SELECT SETVAL(photos, 500000, TRUE, 0) AS a",
		"SELECT SETVAL(" + e.SequenceSchema + ".photos, 500000)", "SELECT /* a */ SETVAL(photos, 500000) -- b", "SELECT SETVAL(photos, -1)", "SELECT SETVAL(photos, 1)",
		"SELECT NEXTVAL(photos), SETVAL(photos, 500000)", "SELECT SETVAL('nobody', 5)", "SELECT SETVAL(photos, 500000) FROM DUAL",
		"SELECT SETVAL(photos, 500000) FROM t", "SELECT 1 + SETVAL(photos, 500000)", "SELECT (SELECT SETVAL(photos, 500000))", "SELECT 1 UNION SELECT SETVAL(photos, 500000)",
		"INSERT INTO t VALUES (SETVAL(photos, 500000))", "UPDATE t SET id = SETVAL(photos, 500000)", "DO SETVAL(photos, 500000)", "SET @x = SETVAL(photos, 500000)",
		"SELECT SETVAL(photos, @x)", "SELECT SETVAL(photos, 1 + 1)", "SELECT SETVAL(photos, 500000) LIMIT 1", "EXPLAIN SELECT SETVAL(photos, 500000)",
	} {
		for _, how := range []string{"text", "prepared"} {
			checkError(t, text+", "+how, run(t.Context(), c, how, text), 1227, "Access denied", "admin_users")
			refused++
		}
	}
	for _, text := range []string{
		"SELECT 1; SELECT SETVAL(photos, 500000)", "PREPARE s FROM 'SELECT SETVAL(photos, 500000)'", "EXECUTE IMMEDIATE 'SELECT SETVAL(photos, 500000)'", "PREPARE s FROM @s",
	} {
		if text[0] == 'E' && !e.Servers[0].IsMariaDB() {
			continue
		}
		wantError(t, c, 1227, text, "admin_users")
		refused++
	}
	for _, test := range []struct {
		text string
		args []any
	}{
		{"SELECT SETVAL(?, ?)", []any{"photos", 500000}},
		{"SELECT SETVAL('photos', ?)", []any{500000}},
		{"SELECT SETVAL(?, 500000, 0)", []any{"PHOTOS"}},
		{"SELECT NEXTVAL(?), SETVAL(?, ?)", []any{"photos", "photos", 500000}},
	} {
		_, err := c.ExecContext(t.Context(), test.text, test.args...)
		checkError(t, test.text, err, 1227, "admin_users")
		refused++
	}
	if got := value(t, c, "SELECT NEXTVAL(photos)"); got != "1" {
		t.Errorf("the next number: got %s, want 1", got)
	}
	if lines := audited(e, "failed"); len(lines) != refused || !strings.HasPrefix(lines[0], "SETVAL(`photos`, 9223372036854775806) "+e.User) {
		t.Errorf("%d audit lines of %d refusals: %q", len(lines), refused, lines)
	}
	if lines := audited(e, "done"); len(lines) > 0 {
		t.Errorf("audited as done: got %q, want none", lines)
	}
}

// Pipelined commands are answered in a batch, each as if it came alone.
func TestSetvalIsRefusedAmongPipelinedCommands(t *testing.T) {
	e := newEnv(t, setup{Proxy: asPlainUser})
	createSequence(t, e, "photos")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	var all []byte
	for _, text := range []string{"DO 1", "SELECT SETVAL('photos', 500000)", "SELECT NEXTVAL('photos')"} {
		all = append(all, packet(command(protocol.ComQuery, text))...)
	}
	w.send(all)
	for i, code := range []uint16{0, 1227, 0} {
		answer := w.receive(protocol.ShapeResult, nil)
		if code == 0 && answer[4] == 0xff {
			t.Errorf("command %d: %v", i, serverError(t, answer))
		} else if code != 0 {
			if got := serverError(t, answer); got.Code != code {
				t.Errorf("command %d: got %v, want %d", i, got, code)
			}
		}
	}
	if got := value(t, e.Conn(t, "", nil), "SELECT NEXTVAL('photos')"); got != "2" {
		t.Errorf("the next number: got %s, want 2", got)
	}
}

// An admin's SETVAL is in the audit log, in whatever form it is asked for.
func TestSetvalOfAnAdminIsAudited(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "photos")
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "SELECT SETVAL('photos', 10)", "SELECT SETVAL(photos, 20) AS a")
	if _, err := c.ExecContext(t.Context(), "SELECT SETVAL(?, ?)", "photos", 30); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("[SETVAL(`photos`, 10) %s SETVAL(`photos`, 20) %[1]s SETVAL(`photos`, 30) %[1]s]", e.User)
	if got := fmt.Sprint(audited(e, "done")); got != want {
		t.Errorf("audited: got %s, want %s", got, want)
	}
}

// With unknown_sequence = "relay" a name that is not the proxy's belongs to the server, which
// checks whether the user may set it.
func TestSetvalOfTheServersOwnSequenceIsTheServersAffair(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		asPlainUser(o)
		o.Unknown = proxy.UnknownRelay
	}})
	createSequence(t, e, "ours")
	c, d := e.Conn(t, e.Schemas[0], nil), e.DirectConn(t, 0, e.Schemas[0], nil)
	if e.Servers[0].IsMariaDB() {
		exec(t, d, "CREATE SEQUENCE theirs", "CREATE SEQUENCE ours")
	}
	exec(t, d, "CREATE TABLE t (id BIGINT)", "INSERT INTO t VALUES (7)")
	for _, text := range []string{
		"SELECT SETVAL(theirs, 100)", "SELECT SETVAL(theirs, 200, 0) AS a", "SELECT SETVAL(theirs, 300) + id FROM t", "DO SETVAL(theirs, 400)", "SET @x = SETVAL(theirs, 500)",
		"SELECT SETVAL('theirs', 5)", "SELECT SETVAL(nobody, 5)", "INSERT INTO t VALUES (SETVAL(theirs, 600))",
	} {
		for _, how := range []string{"text", "prepared"} {
			got, want := run(t.Context(), c, how, text), run(t.Context(), d, how, text)
			if (got == nil) != (want == nil) || got != nil && !strings.Contains(fmt.Sprint(got), strings.SplitN(fmt.Sprint(want), ":", 2)[0]) {
				t.Errorf("%s, %s: got %v, want %v", text, how, got, want)
			}
		}
	}
	if e.Servers[0].IsMariaDB() {
		if got := value(t, d, "SELECT NEXTVAL(theirs)"); got != "601" {
			t.Errorf("the server's next number: got %s, want 601", got)
		}
	}
	for _, how := range []string{"text", "prepared"} {
		checkError(t, "ours, "+how, run(t.Context(), c, how, "SELECT SETVAL(ours, 100)"), 1227, "admin_users")
	}
}
