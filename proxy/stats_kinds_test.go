package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/proxy"
)

// statements returns the counts, by "kind shard".
func statements(e *env) map[string]uint64 {
	counts := make(map[string]uint64)
	for _, c := range e.Proxy.Stats().Statements {
		if c.N > 0 {
			counts[c.Kind.String()+" "+c.Shard] = c.N
		}
	}
	return counts
}

// counted runs a function and checks what it adds to the counts of statements.
func (e *env) counted(what string, want map[string]uint64, run func()) {
	e.t.Helper()
	before := statements(e)
	run()
	var got map[string]uint64
	if !eventually(e.t, what, func() bool {
		got = statements(e)
		for k, n := range before {
			if got[k] -= n; got[k] == 0 {
				delete(got, k)
			}
		}
		return maps.Equal(got, want)
	}) {
		e.t.Errorf("%s: counted %v, want %v", what, got, want)
	}
}

func TestStatementsAreCountedByWhatBecameOfThem(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Tickets = []proxy.TicketTable{{Table: "sequence"}}
		o.Bindings = []proxy.Binding{{Table: "bound", Column: "id", Sequence: "keys"}}
	}})
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(100))", "CREATE TABLE bound (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(100))",
		"CREATE TABLE sequence (name VARCHAR(50) PRIMARY KEY, id BIGINT UNSIGNED NOT NULL)", "CREATE TABLE titles (title VARCHAR(100))", "INSERT INTO titles VALUES ('x'), ('y')",
		"CREATE SEQUENCE photos", "CREATE SEQUENCE `keys`")
	eventually(t, "all earlier statements are counted", func() bool { return statements(e)["admin "] == 2 && statements(e)["relay s0"] == 5 })
	other := e.Conn(t, "", nil)
	id := value(t, other, "SELECT CONNECTION_ID()")
	eventually(t, "the id is counted", func() bool { return statements(e)["own "] == 1 })

	for _, x := range []struct{ text, sql, prepared string }{
		{"relay s0", "SELECT 1", ""},
		{"relay s0", "INSERT INTO titles VALUES ('z')", ""},
		{"relay s0", "SET @x = 5", ""},
		{"relay s0", "COMMIT", ""},
		// An error of the server, which it gives at the PREPARE.
		{"relay s0", "SELECT no_such_column FROM titles", "none"},
		{"nextval ", "SELECT NEXTVAL('photos')", ""},
		{"nextval ", "SELECT NEXT VALUE FOR photos", ""},
		{"nextval ", "SELECT NEXTVAL('photos', 5)", ""},
		{"nextval ", "SELECT LASTVAL(photos)", ""},
		{"nextval ", "SELECT NEXTVAL('photos'), LAST_INSERT_ID()", "rewrite s0"},
		{"nextval ", "SELECT NEXTVAL('photos')", ""},
		// Prepared, it goes to the server in any case.
		{"last_insert_id ", "SELECT LAST_INSERT_ID()", "relay s0"},
		{"nextval ", "SELECT NEXTVAL('photos')", ""},
		{"last_insert_id ", "SELECT @@last_insert_id", "relay s0"},
		{"rewrite s0", "INSERT INTO photos VALUES (NEXTVAL('photos'), 'x')", ""},
		{"rewrite s0", "SELECT title, NEXTVAL('photos') FROM titles", ""},
		{"rewrite s0", "INSERT INTO photos SELECT NEXTVAL('photos'), title FROM titles", ""},
		{"rewrite s0", "INSERT INTO bound (title) VALUES ('x')", ""},
		{"relay s0", fmt.Sprintf("INSERT INTO bound (id, title) VALUES (%d, 'x')", 1<<40), ""},
		{"nextval ", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", ""},
		{"own ", "SELECT CONNECTION_ID()", ""},
		{"own ", "KILL QUERY " + id, ""},
		{"admin ", "SHOW SEQUENCES", ""},
		{"admin ", "SHOW CREATE SEQUENCE photos", ""},
		{"refused ", "SELECT NEXTVAL('nobody')", ""},
		{"refused ", "DROP SEQUENCE nobody", ""},
		{"refused ", "DELETE FROM photos WHERE id = NEXTVAL('photos')", ""},
	} {
		want := map[string]uint64{x.text: 1}
		e.counted("text: "+x.sql, want, func() {
			rows, err := c.QueryContext(context.Background(), x.sql)
			drain(rows, err)
		})
		switch x.prepared {
		case "":
		case "none":
			want = map[string]uint64{}
		default:
			want = map[string]uint64{x.prepared: 1}
		}
		e.counted("prepared: "+x.sql, want, func() {
			st, err := c.PrepareContext(context.Background(), x.sql)
			if err != nil { // a count of its own, if the proxy has refused it
				return
			}
			defer st.Close()
			rows, err := st.Query()
			drain(rows, err)
		})
	}
}

// drain reads all rows. The test allows an error.
func drain(rows *sql.Rows, err error) {
	if err != nil {
		return
	}
	defer rows.Close()
	for rows.Next() {
	}
}

func TestStatementsAreCountedHoweverTheyCome(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) { o.MaxStatement = 1 << 20 }})
	createSequence(t, e, "photos")
	exec(t, e.Conn(t, e.Schemas[0], nil), "CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY)")
	hello, _ := e.Shards.Routes().Greeting()
	bulk := (protocol.BulkOperations | protocol.BulkUnitResults) & hello.Capabilities
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Capabilities: allFraming | bulk})
	eventually(t, "all earlier statements are counted", func() bool { return statements(e)["relay s0"] == 1 })
	queries := func(texts ...string) (batch []byte) {
		for _, sql := range texts {
			batch = append(batch, packet(command(protocol.ComQuery, sql))...)
		}
		return batch
	}
	e.counted("in one go", map[string]uint64{"relay s0": 2, "nextval ": 1, "refused ": 1}, func() {
		w.send(queries("SELECT 1", "SELECT NEXTVAL('photos')", "SELECT 2", "SELECT NEXTVAL('nobody')"))
		for range 4 {
			w.receive(protocol.ShapeResult, nil)
		}
	})
	e.counted("on two shards", map[string]uint64{"relay s1": 2, "relay s0": 2}, func() {
		w.query("USE " + e.Schemas[1])
		w.query("SELECT 1")
		w.query("USE " + e.Schemas[0])
		w.query("SELECT 1")
	})
	e.counted("longer than is looked at", map[string]uint64{"relay s0": 1}, func() {
		w.query("SELECT LENGTH('" + strings.Repeat("x", 1<<20) + "')")
	})
	e.counted("no statements", map[string]uint64{}, func() {
		w.do(protocol.ComPing, "")
		w.do(protocol.ComInitDB, e.Schemas[0])
		w.do(protocol.ComStatistics, "")
		w.do(protocol.ComStmtPrepare, "SELECT ?")
		w.do(protocol.ComStmtReset, "\x01\x00\x00\x00")
		w.do(protocol.ComResetConn, "")
	})
	e.counted("refused when they are prepared", map[string]uint64{"refused ": 1}, func() {
		w.do(protocol.ComStmtPrepare, "DELETE FROM photos WHERE id = NEXTVAL('photos')")
	})
	e.counted("executions of what is not prepared", map[string]uint64{"refused ": 1}, func() {
		w.do(protocol.ComStmtExecute, "\x99\x00\x00\x00\x00\x01\x00\x00\x00")
	})
	e.counted("prepared as text", map[string]uint64{"refused ": 1, "relay s0": 2, "rewrite s0": 1}, func() {
		w.query("PREPARE s FROM 'INSERT INTO photos VALUES (NEXTVAL(''photos''))'")
		w.query("PREPARE r FROM 'SELECT 1'")
		w.query("EXECUTE r")
		w.query("SELECT CONNECTION_ID() + 0") // with the id that the client knows
	})
	if bulk.Has(protocol.BulkOperations) {
		e.counted("in bulk", map[string]uint64{"relay s0": 1, "rewrite s0": 1}, func() {
			for i, sql := range []string{"REPLACE INTO photos VALUES (?)", "REPLACE INTO photos VALUES (NEXTVAL('photos') + ?)"} {
				id := w.do(protocol.ComStmtPrepare, sql)[5:9]
				if got := w.do(protocol.ComStmtBulkExecute, string(id)+bulkRows(0, typeLong, bulkLong(uint32(i)), bulkLong(uint32(i)+1))); got[4] == 0xff {
					t.Errorf("%s: %v", sql, serverError(t, got))
				}
			}
		})
	}
}
