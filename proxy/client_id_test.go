package proxy_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// executed runs a text as a prepared statement without parameters.
func (w *wire) executed(sql string) []byte {
	w.t.Helper()
	prepared := w.do(protocol.ComStmtPrepare, sql)
	if prepared[4] != 0 {
		return prepared
	}
	return w.do(protocol.ComStmtExecute, string(prepared[5:9])+"\x00\x01\x00\x00\x00")
}

// A comparison of CONNECTION_ID() with the server's own figures gives 1, as on a direct connection.
func TestCONNECTION_IDBesideWhatTheServerKnowsIsTheServers(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for i, schema := range e.Schemas {
		c := e.DirectConn(t, i, schema, nil)
		exec(t, c, "CREATE TABLE ids (c BIGINT UNSIGNED, d BIGINT UNSIGNED)", "CREATE TABLE filled (c BIGINT UNSIGNED, d BIGINT UNSIGNED)",
			"CREATE FUNCTION whose() RETURNS BIGINT UNSIGNED NO SQL RETURN CONNECTION_ID()",
			"CREATE FUNCTION u\u017fer() RETURNS BIGINT UNSIGNED NO SQL RETURN CONNECTION_ID()", // USER() only where Unicode folds a long s
			"CREATE VIEW mine AS SELECT CONNECTION_ID() AS c",
			"CREATE TRIGGER fills BEFORE INSERT ON filled FOR EACH ROW SET NEW.d = CONNECTION_ID()")
		for _, addr := range []string{e.Servers[i].Addr(), e.Addr()} {
			for _, binary := range []bool{false, true} {
				w := e.Wire(t, addr, wireLogin{Schema: schema})
				do := w.query
				if binary {
					do = w.executed
				}
				for _, sql := range []string{
					"DELETE FROM ids", "DELETE FROM filled", "DO GET_LOCK('whose', 5)", "SET @c = CONNECTION_ID(), @p = @@pseudo_thread_id",
					"INSERT INTO ids VALUES (CONNECTION_ID(), @@pseudo_thread_id)", "INSERT INTO filled (c) VALUES (CONNECTION_ID())",
					"INSERT INTO ids SELECT CONNECTION_ID(), @@pseudo_thread_id",
				} {
					if got := do(sql); got[4] == 0xff {
						t.Fatalf("%s: %v", sql, serverError(t, got))
					}
				}
				for _, sql := range []string{
					"SELECT IS_USED_LOCK('whose') = CONNECTION_ID()", "SELECT IS_USED_LOCK('whose') = @@pseudo_thread_id",
					"SELECT CONNECTION_ID() = @@pseudo_thread_id", "SELECT CONNECTION_ID() = @@session.pseudo_thread_id, 1",
					"SELECT whose() = CONNECTION_ID()", "SELECT u\u017fer() = CONNECTION_ID()", "SELECT c = CONNECTION_ID() FROM mine", "SELECT (SELECT c FROM mine) = @@pseudo_thread_id",
					"SELECT COUNT(*) = 2 FROM ids WHERE c = CONNECTION_ID() AND d = @@pseudo_thread_id", "SELECT c = d FROM filled",
					"SELECT IS_USED_LOCK('whose') = @c", "SELECT @p = CONNECTION_ID()", "SELECT IS_USED_LOCK('whose') = (SELECT CONNECTION_ID())",
					"SELECT COUNT(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()",
					"SELECT COUNT(*) FROM information_schema.processlist WHERE id IN (SELECT c FROM ids) LIMIT 1",
				} {
					got := do(sql)
					if got[4] == 0xff {
						t.Errorf("%s: %v", sql, serverError(t, got))
						continue
					}
					// The only value is the text '1', or a binary number.
					packets := split(got)
					row := packets[len(packets)-2]
					one := !binary && row[0] == 1 && row[1] == '1' || binary && row[0] == 0 && row[2] == 1
					if !one {
						t.Errorf("%s at %s (prepared: %v): got %q, want 1", sql, addr, binary, row)
					}
				}
				w.query("DO RELEASE_LOCK('whose')")
			}
		}
	}
}

func TestCONNECTION_IDAloneIsTheGreetings(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, sql := range []string{
		"SELECT CONNECTION_ID()", "SELECT CONNECTION_ID() AS id, VERSION(), DATABASE(), USER()", "SELECT @@pseudo_thread_id", "SELECT @@session.pseudo_thread_id AS p",
		"SELECT CONCAT(CONNECTION_ID(), '')", "SELECT CONNECTION_ID() + 0", "SELECT CAST(CONNECTION_ID() AS CHAR), 'x' FROM DUAL",
	} {
		for _, on := range []*wire{direct, w} {
			if got := on.rows(sql)[0]; got != on.id() {
				t.Errorf("%s: got %s, want %s", sql, got, on.id())
			}
			number := on.hello.Greeting.ConnectionID
			got := split(on.executed(sql))
			row := got[len(got)-2]
			if !strings.Contains(string(row), on.id()) && !strings.Contains(string(row), string([]byte{byte(number), byte(number >> 8), byte(number >> 16), byte(number >> 24)})) {
				t.Errorf("%s, prepared: got %q, want %s", sql, row, on.id())
			}
		}
	}
	// The column is that of the server's variable.
	const variable = "SELECT @@pseudo_thread_id"
	if got, want := split(w.query(variable))[1], split(direct.query(variable))[1]; string(got) != string(want) {
		t.Errorf("%s: got the column %x, want %x", variable, got, want)
	}
	// Both become what the variable was set to.
	w.query("SET pseudo_thread_id = 5")
	if got := strings.Join(append(w.rows("SELECT @@pseudo_thread_id"), w.rows("SELECT CONNECTION_ID()")...), " "); got != "5 5" {
		t.Errorf("after SET: got %s, want 5 5", got)
	}
}

// An id that a shard's server gave means that server's connection, as in its process list.
func TestAKillByTheServersIDIsForTheShardOfWhoKills(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	on := func(shard int) *wire { return e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[shard]}) }
	serverID := func(w *wire) string {
		w.query("DO GET_LOCK('of', 5)")
		id := w.rows("SELECT IS_USED_LOCK('of')")[0]
		if got := w.rows("SELECT CONNECTION_ID() FROM (SELECT 1) d")[0]; got != id {
			t.Errorf("CONNECTION_ID() beside a table: got %s, want %s", got, id)
		}
		w.query("DO RELEASE_LOCK('of')")
		return id
	}
	for shard := range 2 {
		victim, killer, far := on(shard), on(shard), on(1-shard)
		id := serverID(victim)
		// The two servers count ids apart: an id that the other server does not have is unknown
		// there.
		if shard == 0 && id != serverID(far) {
			if err := far.query("KILL QUERY 1" + id + "000"); err[4] != 0xff {
				t.Errorf("an id of no server: got %q", err)
			}
		}
		if got := killer.query("KILL QUERY " + id); got[4] != 0 {
			t.Errorf("KILL QUERY %s: %v", id, serverError(t, got))
		}
		victim.ping("KILL QUERY of a client that waits for nothing")
		e.hold(t, shard)
		victim.send(packet(command(protocol.ComQuery, "SELECT GET_LOCK('held', 100)")))
		e.awaitStatement(e.Servers[shard], "SELECT GET_LOCK('held', 100)")
		if got := killer.executed("KILL " + id); got[4] != 0 {
			t.Errorf("KILL %s: %v", id, serverError(t, got))
		}
		victim.ended()
		for _, w := range []*wire{killer, far} {
			w.ping("KILL of another")
		}
		if _, err := strconv.Atoi(id); err != nil || fmt.Sprint(victim.hello.Greeting.ConnectionID) == id {
			t.Errorf("the server's id: got %s", id)
		}
	}
}
