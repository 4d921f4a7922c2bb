package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

func TestAStatementThatCrossesAMarkIsWarned(t *testing.T) {
	for name, s := range map[string]setup{"with a shard": {}, "keys only": {Shards: noShards}} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, s)
			schema := ""
			if s.Shards != noShards {
				schema = e.Schemas[0]
				e.Servers[0].Exec(t, "CREATE TABLE "+schema+".photos (id TINYINT UNSIGNED PRIMARY KEY)")
			}
			w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
			want := map[int]string{75: "75%", 90: "90%", 99: "99%"}
			w.query("CREATE SEQUENCE s MAXVALUE 100 NOCACHE")
			for i := 1; i <= 100; i++ {
				// Without a ping behind it, which would reset the warnings.
				w.send(packet(command(protocol.ComQuery, "SELECT NEXTVAL('s')")))
				answer := w.receive(protocol.ShapeResult, nil)
				if w.answer.ErrCode != 0 || w.answer.Warnings != uint16(len(want[i])/3) {
					t.Fatalf("number %d: got error %d and %d warnings, want %q: %x", i, w.answer.ErrCode, w.answer.Warnings, want[i], answer)
				}
				if want[i] == "" {
					continue
				}
				for range 2 {
					w.send(packet(command(protocol.ComQuery, "SHOW WARNINGS")))
					rows := w.decode(w.receive(protocol.ShapeResult, nil))
					if len(rows) != 1 || rows[0][0] != "Warning" || !strings.HasPrefix(rows[0][2], want[i]+" of the numbers of sequence 's' are used; the last is 100") {
						t.Errorf("number %d: SHOW WARNINGS: got %q, want %s", i, rows, want[i])
					}
				}
			}
			if s.Shards == noShards {
				return
			}
			// The other values that the statement leaves, and LAST_INSERT_ID().
			c := e.Conn(t, schema, nil)
			for i, test := range []struct{ ask, want string }{
				{"SELECT LAST_INSERT_ID()", "75"},
				{"SELECT @@warning_count", "1"},
				{"SELECT CONCAT(ROW_COUNT(), ' ', @@warning_count)", "-1 1"},
				{"SELECT FOUND_ROWS()", "1"},
			} {
				exec(t, c, fmt.Sprintf("CREATE SEQUENCE q%d MAXVALUE 100 NOCACHE START 75", i))
				if got := value(t, c, fmt.Sprintf("SELECT NEXTVAL('q%d')", i)); got != "75" {
					t.Fatalf("got %s, want 75", got)
				}
				if got := value(t, c, test.ask); got != test.want {
					t.Errorf("after a warning: %s: got %s, want %s", test.ask, got, test.want)
				}
			}
			c = e.Conn(t, schema, nil)
			// The sequence ends before the last number of the column that owns it.
			exec(t, c, "CREATE SEQUENCE photos NOCACHE OWNED BY photos.id START 189", "SELECT NEXTVAL('photos')")
			if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 0 {
				t.Errorf("189 of 254: got %q, want no warning", rows)
			}
			for range 2 {
				exec(t, c, "SELECT NEXTVAL('photos')")
			}
			if _, rows := table(t, c, "SHOW WARNINGS"); len(rows) != 1 || !strings.Contains(rows[0][2], "the last is 254") {
				t.Errorf("191 of 254: got %q, want a warning", rows)
			}
			if _, rows := table(t, c, "SHOW SEQUENCES LIKE 'photos'"); rows[0][8] != "75.20" {
				t.Errorf("used_percent: got %s, want 75.20", rows[0][8])
			}
		})
	}
}

// The server's own warnings, and their count, stay together with the proxy's.
func TestAStatementOfTheServersThatCrossesAMarkIsWarned(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Bindings = []proxy.Binding{{Table: "filled", Column: "id", Sequence: "filled"}}
	}})
	schema := e.Schemas[0]
	e.Servers[0].Exec(t, "CREATE TABLE "+schema+".photos (id BIGINT UNSIGNED PRIMARY KEY, n TINYINT)",
		"CREATE TABLE "+schema+".filled (id BIGINT UNSIGNED PRIMARY KEY, n TINYINT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: schema})
	ask := func(cmd protocol.Command, arg string) (warnings uint16, rows [][]string) {
		t.Helper()
		w.send(packet(command(cmd, arg))) // without a ping behind it, which would reset the warnings
		answer := w.receive(protocol.ShapeResult, nil)
		if w.answer.ErrCode != 0 {
			t.Fatalf("%q: %v", arg, serverError(t, answer))
		}
		if w.answer.Rows {
			rows = w.decode(answer)
		}
		return w.answer.Warnings, rows
	}
	warned := func(what string, got uint16, servers ...string) {
		t.Helper()
		if got != uint16(len(servers))+1 {
			t.Errorf("%s: the OK counts %d warnings, want %d of the server and one of ours", what, got, len(servers))
		}
		for range 2 {
			_, rows := ask(protocol.ComQuery, " show  WARNINGS ; ")
			if len(rows) != len(servers)+1 || !strings.Contains(rows[len(rows)-1][2], "of the numbers of sequence") {
				t.Errorf("%s: SHOW WARNINGS: got %q, want %q and one of the proxy", what, rows, servers)
				continue
			}
			for i, code := range servers {
				if rows[i][1] != code {
					t.Errorf("%s: warning %d is %q, want code %s", what, i, rows[i], code)
				}
			}
		}
	}
	ask(protocol.ComQuery, "SET sql_mode = ''")
	for _, name := range []string{"photos", "filled"} {
		ask(protocol.ComQuery, "CREATE SEQUENCE "+name+" MAXVALUE 100 NOCACHE START 75")
	}
	got, _ := ask(protocol.ComQuery, "INSERT INTO photos VALUES (NEXTVAL('photos'), 1)")
	warned("an INSERT", got)
	if got, _ := ask(protocol.ComQuery, "INSERT INTO photos VALUES (1, 1)"); got != 0 {
		t.Errorf("the next INSERT: got %d warnings, want none", got)
	}
	if _, rows := ask(protocol.ComQuery, "SHOW WARNINGS"); len(rows) != 0 {
		t.Errorf("SHOW WARNINGS after the next INSERT: got %q, want nothing", rows)
	}
	ask(protocol.ComQuery, "ALTER SEQUENCE photos RESTART WITH 90")
	// 1264: out of range
	got, _ = ask(protocol.ComQuery, "INSERT INTO photos VALUES (NEXTVAL('photos'), 1000)")
	warned("an INSERT of which the server warns, too", got, "1264")
	got, _ = ask(protocol.ComQuery, "INSERT INTO filled (n) VALUES (1)")
	warned("an INSERT that is filled in", got)

	ask(protocol.ComQuery, "ALTER SEQUENCE photos RESTART WITH 99")
	ask(protocol.ComQuery, "CREATE SEQUENCE counted MAXVALUE 4000 NOCACHE START 2999")
	got, _ = ask(protocol.ComQuery, "INSERT INTO filled SELECT NEXTVAL('counted'), 1 FROM photos")
	warned("an INSERT ... SELECT", got)
	ask(protocol.ComQuery, "CREATE SEQUENCE each MAXVALUE 100 NOCACHE START 75")
	// The count is the server's.
	ask(protocol.ComQuery, "SELECT NEXTVAL('each'), id FROM photos LIMIT 1")
	if _, rows := ask(protocol.ComQuery, "SHOW WARNINGS"); len(rows) != 1 || !strings.Contains(rows[0][2], "of sequence 'each'") {
		t.Errorf("a SELECT with a number per row: SHOW WARNINGS: got %q, want one of the proxy", rows)
	}

	id := binary.LittleEndian.Uint32(w.do(protocol.ComStmtPrepare, "INSERT INTO photos VALUES (NEXTVAL('photos'), 1)")[5:])
	got, _ = ask(protocol.ComStmtExecute, string(execution(id, nil, false)[1:]))
	warned("an execution", got)
	for _, keeps := range []struct {
		cmd protocol.Command
		arg string
	}{
		{protocol.ComPing, ""},
		{protocol.ComInitDB, schema},
		{protocol.ComStatistics, ""},
		{protocol.ComSetOption, "\x00\x00"},
		{protocol.ComStmtReset, string(binary.LittleEndian.AppendUint32(nil, id))},
	} {
		w.do(keeps.cmd, keeps.arg)
		warned(fmt.Sprintf("an execution, and command %d behind it", keeps.cmd), got)
	}
	ask(protocol.ComQuery, "INSERT INTO photos VALUES (2, 1)")
	if _, rows := ask(protocol.ComQuery, "SHOW WARNINGS"); len(rows) != 0 {
		t.Errorf("SHOW WARNINGS after another INSERT: got %q, want nothing", rows)
	}
}

// A sequence ends before the last number of its column, so that a row with that, or a key that the
// column refuses, moves no counter. Once the column was widened, OWNED BY says so, and goes above
// the keys that came in meanwhile.
func TestASequenceEndsWithItsColumn(t *testing.T) {
	e := newEnv(t, setup{})
	c := e.Conn(t, e.Schemas[0], nil)
	const owned = "ALTER SEQUENCE photos OWNED BY photos.id"
	exec(t, c, "CREATE TABLE photos (id TINYINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100))",
		"CREATE SEQUENCE photos NOCACHE START 252", owned, "INSERT INTO photos (title) VALUES ('a')")
	wantError(t, c, 1264, "INSERT INTO photos (id, title) VALUES (99999999999, 'b')")
	wantError(t, c, 1264, "INSERT INTO photos (id, title) VALUES (256, 'b')")
	exec(t, c, "INSERT INTO photos (id, title) VALUES (255, 'sentinel')")
	exec(t, c, "INSERT INTO photos (title) VALUES ('c')", "INSERT INTO photos (title) VALUES ('d')")
	wantError(t, c, 4084, "INSERT INTO photos (title) VALUES ('e')")
	exec(t, c, "ALTER TABLE photos MODIFY id INT UNSIGNED AUTO_INCREMENT", "INSERT INTO photos (id, title) VALUES (1000, 'f')")
	wantError(t, c, 4084, "INSERT INTO photos (title) VALUES ('g')")
	exec(t, c, owned, "INSERT INTO photos (title) VALUES ('h')")
	if got := value(t, c, "SELECT GROUP_CONCAT(id ORDER BY id) FROM photos"); got != "252,253,254,255,1000,1001" {
		t.Errorf("the keys are %s", got)
	}
}
