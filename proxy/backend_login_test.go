package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

func TestAShardIsLoggedInToAsTheClientUnlessItNamesCredentials(t *testing.T) {
	e := newEnv(t, setup{
		Shards: 2,
		Proxy: func(o *proxy.Options) {
			o.Users = append(o.Users, proxy.User{Name: "only_here", Password: "p"})
		},
		Backend: func(o *backend.Options) { o.Shards[1].Login = &o.Probe },
	})
	user, password := "only_here", "p"
	who := "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"
	if got := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]}).rows(who)[0]; got != e.User {
		t.Errorf("shard s0: got user %s, want %s", got, e.User)
	}
	if got := e.Wire(t, e.Addr(), wireLogin{User: &user, Password: &password, Schema: e.Schemas[1]}).rows(who)[0]; got != e.User {
		t.Errorf("shard s1: got user %s, want %s", got, e.User)
	}
	// A shard answers an unknown user with its own error, at every attempt.
	w := e.Wire(t, e.Addr(), wireLogin{User: &user, Password: &password})
	for _, answer := range [][]byte{w.query("SELECT 1"), w.do(protocol.ComInitDB, e.Schemas[0]), w.query("USE " + e.Schemas[0])} {
		if err := serverError(t, answer); err.Code != 1045 || !strings.Contains(err.Message, "only_here") {
			t.Errorf("got %v, want 1045 naming the user", err)
		}
	}
	if got := w.query("USE " + e.Schemas[1]); got[4] != 0 {
		t.Errorf("the other shard: %v", serverError(t, got))
	}
	if err := serverError(t, w.query("USE "+e.Schemas[0])); err.Code != 1045 {
		t.Errorf("back to the first: got %v, want 1045", err)
	}
	if got := w.rows("SELECT DATABASE()")[0]; got != e.Schemas[1] {
		t.Errorf("after that: got schema %s, want %s", got, e.Schemas[1])
	}
	err := e.tryLogin(t, e.Addr(), e.Schemas[0], func(c *mysql.Config) { c.User, c.Passwd = user, password })
	checkError(t, "login into a schema of a shard that refuses", err, 1045)
}

func TestConnectionAttributesReachTheServer(t *testing.T) {
	server := mysqltest.Start(t, "--performance-schema=ON")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.Version = "1.2.3" }})
	const list = "SELECT GROUP_CONCAT(attr_name, '=', COALESCE(attr_value, '') ORDER BY ordinal_position) FROM performance_schema.session_connect_attrs WHERE processlist_id = CONNECTION_ID()"
	asks := protocol.Capability(allFraming | protocol.ConnectAttrs)
	for _, c := range []struct {
		what, want string
		attrs      protocol.Attrs
	}{
		{"none", "", nil},
		{"some", "program_name=attribute test,empty=,", protocol.Attrs(nil).With("program_name", "attribute test").With("empty", "")},
		{
			"those of another proxy, and of this one", "_proxy_of_mine=1,",
			protocol.Attrs(nil).With("_proxy_client_host", "10.1.2.3").With("_proxy_of_mine", "1").With("_proxy_name", "forged"),
		},
	} {
		w := e.Wire(t, e.Addr(), wireLogin{Attrs: c.attrs, Capabilities: asks})
		want := fmt.Sprintf("%s_proxy_name=seqproxy,_proxy_version=1.2.3,_proxy_connection_id=%d,_proxy_client_host=127.0.0.1", c.want, w.hello.Greeting.ConnectionID)
		if got := w.rows(list)[0]; got != want {
			t.Errorf("%s: got %s, want %s", c.what, got, want)
		}
	}
	// The client sends as many attributes as servers accept. The proxy leaves out its own, because
	// the login matters more.
	value := strings.Repeat("x", protocol.MaxAttrs-20)
	w := e.Wire(t, e.Addr(), wireLogin{Attrs: protocol.Attrs(nil).With("much", value), Capabilities: asks})
	if got := w.rows("SELECT 1")[0]; got != "1" {
		t.Errorf("with %d bytes of attributes: got %s, want 1", len(value), got)
	}
}

func TestTheClientsCollationIsTheConnections(t *testing.T) {
	e := newEnv(t, setup{})
	const read = "SELECT @@character_set_client, @@character_set_results, @@collation_connection, 'ä'"
	for _, collation := range []uint16{8, 33, 45, 46, 63, 255, 2, 28, 1, 224, 99} {
		p := e.Pair(t, 0, wireLogin{Collation: collation, Schema: e.Schemas[0]})
		p.query(read)
		p.query("SET NAMES latin1")
		p.same(protocol.ComResetConn, "")
		p.query(read)
	}
}

// Checklist 23.
func TestABinlogStreamIsHandedOver(t *testing.T) {
	server := mysqltest.Start(t, "--log-bin=log", "--server-id=1", "--binlog-format=ROW")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	server.Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (a LONGTEXT)", "INSERT INTO t SELECT REPEAT('x', 5000) FROM "+server.Numbers(300), "FLUSH LOGS")
	if server.IsMariaDB() { // MariaDB writes the last event of the next log some time later
		db := server.DB(t, "")
		eventually(t, "the new log is the oldest that is needed", func() bool {
			rows, err := db.Query("SHOW BINLOG EVENTS IN 'log.000002'")
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			var name, kind, info string
			var from, id, to int64
			for rows.Next() {
				if err := rows.Scan(&name, &from, &kind, &id, &to, &info); err != nil {
					t.Fatal(err)
				}
				if kind == "Binlog_checkpoint" && info == "log.000002" {
					return true
				}
			}
			return false
		})
	}
	p := e.Pair(t, 0, wireLogin{})
	const register = "\x09\x00\x00\x00" + "\x00\x00\x00" + "\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"
	p.same(protocol.ComRegisterSlave, register)
	p.query("SET @master_binlog_checksum = 'NONE', @mariadb_slave_capability = 4")
	// Without waiting for more events: one EOF ends the stream.
	const dump = "\x04\x00\x00\x00" + "\x01\x00" + "\x0a\x00\x00\x00" + "log.000001"
	var streams [2][]byte
	for i, w := range []*wire{p.Proxy, p.Direct} {
		w.send(packet(command(protocol.ComBinlogDump, dump)))
		for {
			b, err := w.raw()
			if err != nil {
				t.Fatalf("after %d bytes: %v", len(streams[i]), err)
			}
			streams[i] = append(streams[i], b...)
			if b[4] == 0xfe && len(b) < 13 || b[4] == 0xff {
				break
			}
		}
		w.Close()
	}
	if len(streams[1]) < 1_000_000 {
		t.Errorf("direct: got %d bytes, want the inserted rows; they end in %q", len(streams[1]), streams[1][max(0, len(streams[1])-100):])
	}
	compare(t, "COM_BINLOG_DUMP", streams[0], streams[1])
	e.awaitSessions(t, 0)
}
