package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
)

// tryLogin opens one connection with go-sql-driver and returns its error.
func (e *env) tryLogin(t testing.TB, addr, schema string, change func(*mysql.Config)) error {
	t.Helper()
	return e.open(t, addr, schema, change).PingContext(context.Background())
}

func TestALoginIsRefusedAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	for _, c := range []struct {
		name, user, password, schema string
		code                         uint16
	}{
		{"wrong password", e.User, "wrong", "", 1045},
		{"no password", e.User, "", "", 1045},
		{"unknown user", "nobody_here", "x", "", 1045},
		{"unknown user without a password", "nobody_here", "", "", 1045},
		{"unknown schema", e.User, e.Password, "no_such_schema", 1049},
		{"right", e.User, e.Password, "", 0},
		{"right with a schema", e.User, e.Password, e.Schemas[0], 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			login := func(m *mysql.Config) { m.User, m.Passwd = c.user, c.password }
			got, want := e.tryLogin(t, e.Addr(), c.schema, login), e.tryLogin(t, e.Servers[0].Addr(), c.schema, login)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("driver: got %v, want %v as direct", got, want)
			}
			var refused *mysql.MySQLError
			if c.code != 0 && (!errors.As(got, &refused) || refused.Number != c.code) {
				t.Errorf("got %v, want number %d", got, c.code)
			}
			cli := func(addr string) string {
				out := e.CLI(t, addr, c.schema, "SELECT 1", "-u", c.user, "--password="+c.password)
				return withoutTimes(out)
			}
			compareTexts(t, cli(e.Addr()), cli(e.Servers[0].Addr()))

			_, gotErr := e.tryWire(t, e.Addr(), wireLogin{User: &c.user, Password: &c.password, Schema: c.schema})
			_, wantErr := e.tryWire(t, e.Servers[0].Addr(), wireLogin{User: &c.user, Password: &c.password, Schema: c.schema})
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Errorf("wire: got %v, want %v as direct", gotErr, wantErr)
			}
		})
	}
}

// Checklist 5.
func TestTheGreetingIsTheServersButForIdAndPlugin(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{})
	got, want := p.Proxy.hello.Greeting, p.Direct.hello.Greeting
	if got.Version != want.Version || got.Collation != want.Collation || got.Status != want.Status {
		t.Errorf("greeting: got version %s, collation %d, status %04x, want %s, %d, %04x",
			got.Version, got.Collation, got.Status, want.Version, want.Collation, want.Status)
	}
	if more := got.Capabilities &^ want.Capabilities; more != 0 {
		t.Errorf("the proxy offers %x, which the server does not", uint64(more))
	}
	// Each side decides about TLS itself.
	const notOffered = protocol.SSL
	if less := want.Capabilities &^ (got.Capabilities | notOffered); less != 0 {
		t.Logf("the proxy does not offer %x, which the server does", uint64(less))
	}
	for _, c := range []protocol.Capability{
		protocol.Protocol41, protocol.PluginAuth, protocol.PluginAuthLenEnc, protocol.ConnectAttrs, protocol.MultiStatements,
		protocol.MultiResults, protocol.PSMultiResults, protocol.Transactions, protocol.DeprecateEOF, protocol.FoundRows,
		protocol.SessionTrack, protocol.LocalFiles, protocol.IgnoreSpace, protocol.Interactive, protocol.Compress,
	} {
		if !got.Capabilities.Has(c) {
			t.Errorf("the proxy does not offer %x", uint64(c))
		}
	}
	if p.Proxy.hello.Status != p.Direct.hello.Status {
		t.Errorf("status after the login: got %04x, want %04x", p.Proxy.hello.Status, p.Direct.hello.Status)
	}
}

// Checklist 33.
func TestCONNECTION_IDIsTheGreetingsAndNoServers(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{})
	id := w.hello.Greeting.ConnectionID
	if id < 1<<31 {
		t.Errorf("greeting: got id %d, want 2^31 or more", id)
	}
	if got := w.rows("SELECT CONNECTION_ID()")[0]; got != strconv.FormatUint(uint64(id), 10) {
		t.Errorf("CONNECTION_ID(): got %s, want %d", got, id)
	}
	prepared, err := e.Conn(t, "", nil).PrepareContext(t.Context(), "SELECT CONNECTION_ID()")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	var got uint64
	if err := prepared.QueryRow().Scan(&got); err != nil || got>>21 != uint64(id)>>21 {
		t.Errorf("CONNECTION_ID(), prepared: got %d, %v, want one of the proxy's", got, err)
	}
	// In a text with the list of the server's connections, CONNECTION_ID() is the server's.
	if got := w.rows("SELECT COUNT(*) FROM information_schema.processlist WHERE id = CONNECTION_ID()")[0]; got != "1" {
		t.Errorf("rows of the process list with CONNECTION_ID(): got %s, want 1", got)
	}
	other := e.Wire(t, e.Addr(), wireLogin{})
	if other.hello.Greeting.ConnectionID == id {
		t.Errorf("two connections have the id %d", id)
	}
	if other.hello.Greeting.ConnectionID>>21 != id>>21 {
		t.Errorf("ids %d and %d do not name the same proxy", id, other.hello.Greeting.ConnectionID)
	}
}

func TestAUsersDefaultSchemaIsCurrentUnlessTheLoginNamesAnother(t *testing.T) {
	e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: "with_schema", Password: "p", Schema: "information_schema"})
	}, Backend: func(o *backend.Options) {
		o.Shards[0].Login = &o.Probe
	}})
	user, password := "with_schema", "p"
	if got := e.Wire(t, e.Addr(), wireLogin{User: &user, Password: &password}).rows("SELECT DATABASE()")[0]; got != "information_schema" {
		t.Errorf("schema of a user with a default: got %s, want information_schema", got)
	}
	if got := value(t, e.Conn(t, "", nil), "SELECT DATABASE()"); got != "NULL" {
		t.Errorf("schema of a login without one: got %s, want NULL", got)
	}
	for i, want := range e.Schemas {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: want})
		if got := w.rows("SELECT DATABASE(), @@port"); got[0] != want || got[1] != strconv.Itoa(e.Servers[i].Port()) {
			t.Errorf("got schema and port %v, want %s and %d", got, want, e.Servers[i].Port())
		}
	}
}

func TestConnectionsAboveTheLimitGet1040(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.MaxConnections = 2 }})
	a, b := e.Wire(t, e.Addr(), wireLogin{}), e.Wire(t, e.Addr(), wireLogin{})
	a.query("SELECT 1")
	checkError(t, "third login", e.tryLogin(t, e.Addr(), "", nil), 1040, "Too many connections")
	if out := e.CLI(t, e.Addr(), "", "SELECT 1"); !strings.Contains(out, "1040") || !strings.Contains(out, "Too many connections") {
		t.Errorf("command-line client: got %q", out)
	}
	b.send(packet(command(protocol.ComQuit, "")))
	b.ended()
	eventually(t, "a login after one session has ended", func() bool { return e.tryLogin(t, e.Addr(), "", nil) == nil })
}

// Checklist 2.
func TestALoginThatDoesNotComeIsEndedAtItsDeadline(t *testing.T) {
	const loginLimit = 1500 * time.Millisecond
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.LoginTimeout = loginLimit }})
	for name, sent := range map[string][]byte{"nothing": nil, "half a packet": {200, 0, 0, 1, 3, 4}} {
		t.Run(name, func(t *testing.T) {
			nc := dialTCP(t, e.Addr())
			if _, err := nc.Write(sent); err != nil {
				t.Fatal(err)
			}
			readToEnd(t, nc)
		})
	}
	// The limit does not apply to a session that has logged in.
	var w *wire
	eventually(t, "a login in time", func() (ok bool) {
		var err error
		w, err = e.tryWire(t, e.Addr(), wireLogin{})
		return err == nil
	})
	if t.Failed() {
		return
	}
	time.Sleep(loginLimit)
	w.query("SELECT SLEEP(0.4)")
}

// Checklist 2.
func TestALoginOutOfBoundsEndsWithoutMemory(t *testing.T) {
	e := newEnv(t, setup{})
	for name, sent := range map[string][]byte{
		"announced 16 MB":   {0xff, 0xff, 0xff, 1},
		"announced 1 MB":    {0, 0, 0x10, 1, 0, 0, 0, 0},
		"empty":             {0, 0, 0, 1},
		"old protocol":      append([]byte{9, 0, 0, 1}, "\x05\x00\x00\x00\x00root"...),
		"HTTP":              []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"zeros":             make([]byte, 64),
		"a megabyte of 'a'": bytes.Repeat([]byte("a"), 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			nc := dialTCP(t, e.Addr())
			_, _ = nc.Write(sent) // may be closed meanwhile
			_ = nc.(*net.TCPConn).CloseWrite()
			if got := readToEnd(t, nc); len(got) > 1000 {
				t.Errorf("got %d bytes", len(got))
			}
		})
	}
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("a login after them: %v", err)
	}
}

func dialTCP(t testing.TB, addr string) net.Conn {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, wireTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// readToEnd reads until the peer closes, which must happen soon.
func readToEnd(t testing.TB, nc net.Conn) (got []byte) {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(wireTimeout))
	b := make([]byte, 4096)
	for {
		n, err := nc.Read(b)
		got = append(got, b[:n]...)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatal("the connection is still open")
		}
		if err != nil {
			return got
		}
	}
}

func TestOverTLSEverythingIsTheSame(t *testing.T) {
	server, client := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.TLS = server }})
	schema := e.Schemas[0]
	direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: schema})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: schema, TLS: client})
	for _, sql := range []string{"SELECT 1", "SELECT REPEAT('x', 1000000)", "SELECT nothing", "SELECT 1; SELECT 2"} {
		compare(t, sql, w.query(sql), direct.query(sql))
	}
	if err := e.tryLogin(t, e.Addr(), schema, func(c *mysql.Config) { c.TLS = client }); err != nil {
		t.Errorf("driver over TLS: %v", err)
	}
	err := e.tryLogin(t, e.Addr(), schema, func(c *mysql.Config) { c.TLS, c.Passwd = client, "wrong" })
	checkError(t, "wrong password over TLS", err, 1045)
	if out := e.CLI(t, e.Addr(), schema, `\s`, e.useTLS(t)); !strings.Contains(out, "Cipher in use is TLS") {
		t.Errorf("command-line client: got no cipher in:\n%s", out)
	}
	if err := e.tryLogin(t, e.Addr(), schema, nil); err != nil {
		t.Errorf("driver without TLS: %v", err)
	}
}

// changeUser makes a COM_CHANGE_USER; its answer to the challenge is empty, so that
// the server asks.
func changeUser(user, schema, plugin string, collation uint16) []byte {
	b := append([]byte{byte(protocol.ComChangeUser)}, user...)
	b = append(b, 0, 0)
	b = append(append(b, schema...), 0)
	b = binary.LittleEndian.AppendUint16(b, collation)
	b = append(append(b, plugin...), 0)
	return append(b, 0) // no attributes
}

// change runs COM_CHANGE_USER to its end and returns the last packet.
func (w *wire) change(user, password, schema, plugin string) []byte {
	w.t.Helper()
	return w.changeTo(user, password, schema, plugin, 45)
}

// changeTo is change with a collation.
func (w *wire) changeTo(user, password, schema, plugin string, collation uint16) []byte {
	w.t.Helper()
	w.send(packet(changeUser(user, schema, plugin, collation)))
	var salt []byte
	for range 6 {
		p, err := w.raw()
		if err != nil {
			w.t.Fatal(err)
		}
		if p[4] != 0xfe {
			var answer []byte
			switch {
			case p[4] != 1:
				return p
			case len(p) == 6 && p[5] == 3: // caching_sha2: the fast exchange succeeded, and the OK follows
				continue
			case len(p) == 6 && p[5] == 4 && w.IsTLS():
				answer = append([]byte(password), 0)
			case len(p) == 6 && p[5] == 4: // caching_sha2: the full exchange, which begins with the key
				answer = []byte{2}
			default:
				answer = sha2Encrypt(w.t, p[5:], salt, password)
			}
			b, _ := protocol.AppendPacket(nil, answer, p[3]+1)
			w.send(b)
			continue
		}
		name, rest, _ := bytes.Cut(p[5:], []byte{0})
		salt = bytes.TrimSuffix(rest, []byte{0})
		var answer []byte
		switch string(name) {
		case "mysql_native_password":
			answer = nativeScramble(salt, password)
		case "caching_sha2_password":
			answer = sha2Scramble(salt, password)
		default:
			w.t.Fatalf("asked for plugin %s", name)
		}
		b, _ := protocol.AppendPacket(nil, answer, p[3]+1)
		w.send(b)
	}
	w.t.Fatal("the server asks without an end")
	return nil
}

// Checklist 14.
func TestChangeUserStartsTheSessionAnew(t *testing.T) {
	for _, plugin := range []string{"mysql_native_password", "caching_sha2_password", ""} {
		t.Run("plugin "+plugin, func(t *testing.T) {
			e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) {
				o.Users = append(o.Users, proxy.User{Name: "second", Password: "other"})
			}})
			for _, s := range e.Servers {
				s.Exec(t, "DROP USER IF EXISTS second@'%'", "CREATE USER second@'%' IDENTIFIED BY 'other'", "GRANT ALL ON *.* TO second@'%'")
			}
			t.Cleanup(func() { // runs before the env checks the account's connections
				for _, s := range e.Servers {
					s.Exec(t, "DROP USER second@'%'")
				}
			})
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			id := w.hello.Greeting.ConnectionID
			w.query("SET @x = 5, SESSION sql_mode = 'ANSI_QUOTES', autocommit = 0")
			w.query("CREATE TEMPORARY TABLE tt (a INT)")
			w.query("CREATE TABLE IF NOT EXISTS t (a INT) ENGINE=InnoDB")
			w.query("INSERT INTO t VALUES (1)")
			if got := w.change("second", "other", e.Schemas[1], plugin); got[4] != 0 || len(got) < 9 {
				t.Fatalf("change user: got %x, want OK", got)
			}
			w.ping("the change of user")
			want := []string{"second", e.Schemas[1], "NULL", "1", strconv.Itoa(e.Servers[1].Port()), "0", strconv.FormatUint(uint64(id), 10)}
			row := w.rows("SELECT SUBSTRING_INDEX(USER(), '@', 1), DATABASE(), @x, @@autocommit, @@port, @@sql_mode LIKE '%ANSI_QUOTES%'")
			row = append(row, w.rows("SELECT CONNECTION_ID()")...)
			if fmt.Sprint(row) != fmt.Sprint(want) {
				t.Errorf("after the change: got %v, want %v", row, want)
			}
			// The first user's connection is closed, which ends its transaction.
			direct := e.DirectConn(t, 0, e.Schemas[0], nil)
			if got := value(t, direct, "SELECT COUNT(*) FROM t"); got != "0" {
				t.Errorf("rows of the first user's open transaction: got %s, want 0", got)
			}
			// A wrong password ends the session, as it does at the server.
			got := w.change("second", "wrong", "", plugin)
			if err := serverError(t, got); err.Code != 1045 {
				t.Errorf("wrong password: got %v, want 1045", err)
			}
			w.ended()
			// A schema that does not exist ends it, too.
			w = e.Wire(t, e.Addr(), wireLogin{})
			if err := serverError(t, w.change("second", "other", "no_such_schema", plugin)); err.Code != 1049 {
				t.Errorf("unknown schema: got %v, want 1049", err)
			}
			w.ended()
		})
	}
}

// Checklist 14.
func TestResetConnectionLeavesOnlyTheLogin(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: e.Schemas[0]})
	for _, p := range []*wire{w, direct} {
		p.query("SET @x = 5, SESSION sql_mode = 'ANSI_QUOTES', autocommit = 0, time_zone = '+05:00'")
		p.query("SET NAMES latin1")
		p.query("CREATE TEMPORARY TABLE tt (a INT)")
		p.query("SELECT GET_LOCK('reset " + e.User + "', 0)")
		p.query("SELECT LAST_INSERT_ID(9)")
		p.do(protocol.ComStmtPrepare, "SELECT 1")
	}
	compare(t, "reset", w.do(protocol.ComResetConn, ""), direct.do(protocol.ComResetConn, ""))
	for _, sql := range []string{
		"SELECT @x, @@sql_mode, @@autocommit, @@time_zone, DATABASE(), LAST_INSERT_ID()",
		"SELECT @@character_set_client, @@collation_connection, @@character_set_results",
		"SELECT * FROM tt",
		"SELECT IS_FREE_LOCK('reset " + e.User + "')",
		`SELECT "a"`,
	} {
		compare(t, sql, w.query(sql), direct.query(sql))
	}
	compare(t, "execute after reset", w.do(protocol.ComStmtExecute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00"),
		direct.do(protocol.ComStmtExecute, "\x01\x00\x00\x00\x00\x01\x00\x00\x00"))
	// The session is no longer pinned to its shard.
	w.query("USE " + e.Schemas[1])
	if got := w.rows("SELECT @@port, @x, @@time_zone"); got[0] != strconv.Itoa(e.Servers[1].Port()) || got[1] != "NULL" || got[2] != "SYSTEM" {
		t.Errorf("after USE: got port, @x, time_zone %v, want %d, NULL, SYSTEM", got, e.Servers[1].Port())
	}
}

// The client chooses the length of the name, and must not fill the log with it.
func TestALongNameIsNotLoggedWhole(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.RelayLogins = relayed }})
		for _, name := range []string{strings.Repeat("n", 100_000), strings.Repeat("\xff", 100_000), "'" + strings.Repeat("'", 100_000)} {
			e.Logs.TakeAll()
			err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = name, "x" })
			checkError(t, fmt.Sprintf("%.10q, relayed %t", name, relayed), err, 1045)
			eventually(t, "the log", func() bool { return e.Logs.FilterMessage("login refused").Len() == 1 })
			for _, entry := range e.Logs.All() {
				if size := len(entry.Message) + len(fmt.Sprint(entry.ContextMap())); size > 2000 {
					t.Errorf("%.10q, relayed %t: got a log line of %d bytes, want a short one", name, relayed, size)
				}
			}
		}
	}
}

// The log line of a refused login has the name that the client gave, and the error that it got.
func TestTheLogSaysWhoWasRefusedAndWhatHeWasTold(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		withWatcher(o)
		o.RelayLogins = true
	}})
	e.Servers[0].Exec(t, "CREATE USER locked@'%' IDENTIFIED BY 'locked'", "ALTER USER locked@'%' ACCOUNT LOCK")
	defer e.Servers[0].Exec(t, "DROP USER locked")
	wrong := "wrong"
	byPassword := wireLogin{User: &e.User, Password: &wrong}
	for what, login := range map[string]func() *protocol.ServerError{
		e.User:   func() *protocol.ServerError { return e.refusal(t, e.Addr(), byPassword) },
		"nobody": func() *protocol.ServerError { return e.refusal(t, e.AdminAddr(), asWire("nobody")) },
		stranger: func() *protocol.ServerError { return e.refusal(t, e.AdminAddr(), asWire(stranger)) },
		"locked": func() *protocol.ServerError { return e.refusal(t, e.Addr(), asWire("locked")) },
	} {
		e.Logs.TakeAll()
		refused := login()
		var fields map[string]any
		eventually(t, "the log", func() bool {
			entries := e.Logs.FilterMessage("login refused").All()
			if len(entries) == 1 {
				fields = entries[0].ContextMap()
			}
			return fields != nil
		})
		if fields["user"] != what || fields["code"] != refused.Code || fields["sqlstate"] != refused.State {
			t.Errorf("%s got %d %s, but the log has %v", what, refused.Code, refused.State, fields)
		}
	}

	e.Logs.TakeAll()
	e.raw(t, packet([]byte("\x01\x02")))
	eventually(t, "the log", func() bool { return e.Logs.FilterMessage("login malformed").Len() == 1 })
	if fields := e.Logs.FilterMessage("login malformed").All()[0].ContextMap(); fields["code"] != uint16(1043) || fields["sqlstate"] != "08S01" {
		t.Errorf("bytes that are no login: the log has %v", fields)
	}
}
