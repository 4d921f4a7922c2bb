package proxy_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os/user"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/sync/errgroup"

	"seqproxy/backend"
	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// byServer leaves all users to the server's check.
func byServer(o *proxy.Options) {
	o.Users, o.RelayLogins = nil, true
}

// overSocket makes the proxy reach shard 0 by its Unix socket.
func overSocket(s *mysqltest.Server) func(*backend.Options) {
	return func(o *backend.Options) { o.Shards[0].Nodes = []string{"unix:" + s.Socket()} }
}

// account creates an account on a server and drops it at the test's end.
func account(t testing.TB, s *mysqltest.Server, name, identified string) {
	t.Helper()
	s.Exec(t, "CREATE USER "+name+" "+identified, "GRANT ALL ON *.* TO "+name)
	t.Cleanup(func() { s.Exec(t, "DROP USER IF EXISTS "+name) })
}

// Checklist 7.
// Checklist 8.
func TestAnUnknownUserIsCheckedByTheServer(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	shared := mysqltest.Shared(t)
	for _, node := range []string{"tcp", "unix"} {
		for _, c := range []struct {
			name string
			tls  *tls.Config
		}{{"plain", nil}, {"TLS", clientTLS}} {
			t.Run(node+"/"+c.name, func(t *testing.T) {
				e := newEnv(t, setup{
					Proxy: func(o *proxy.Options) {
						byServer(o)
						o.TLS = serverTLS
					},
					Backend: func(o *backend.Options) {
						if node == "unix" {
							overSocket(shared)(o)
						}
					},
				})
				account(t, shared, "relay_empty@'%'", "")
				account(t, shared, "relay_locked@'%'", "IDENTIFIED BY 'p' ACCOUNT LOCK")
				type login struct {
					name, user, password, schema string
					codes                        []uint16 // none: the login succeeds
				}
				logins := []login{
					{"right", e.User, e.Password, e.Schemas[0], nil}, // on MySQL the full exchange
					{"right again", e.User, e.Password, "", nil},     // on MySQL the fast exchange
					{"wrong password", e.User, "wrong", "", []uint16{1045}},
					{"no password", e.User, "", "", []uint16{1045}},
					{"unknown user", "nobody_here", "x", "", []uint16{1045, 1698}},
					{"unknown user without a password", "nobody_here", "", "", []uint16{1045, 1698}},
					{"no user", "", "", "", []uint16{1045, 1698}},
					{"account without a password", "relay_empty", "", "", nil},
					{"account without a password, one given", "relay_empty", "x", "", []uint16{1045}},
					{"locked account", "relay_locked", "p", "", []uint16{3118, 4151}},
					{"unknown schema", e.User, e.Password, "no_such_schema", []uint16{1049}},
				}
				if !shared.IsMariaDB() {
					account(t, shared, "relay_sha256@'%'", "IDENTIFIED WITH sha256_password BY 'a pässword'")
					logins = append(logins, login{"sha256_password", "relay_sha256", "a pässword", "", nil},
						login{"sha256_password, a wrong one", "relay_sha256", "x", "", []uint16{1045}},
						login{"sha256_password, none", "relay_sha256", "", "", []uint16{1045}})
				}
				for _, l := range logins {
					t.Run(l.name, func(t *testing.T) {
						login := func(m *mysql.Config) {
							m.User, m.Passwd, m.TLS = l.user, l.password, c.tls
						}
						got := e.tryLogin(t, e.Addr(), l.schema, login)
						if len(l.codes) == 0 {
							if got != nil {
								t.Errorf("got %v", got)
							}
							return
						}
						var refused *mysql.MySQLError
						if !errors.As(got, &refused) || refused.Number != l.codes[0] && refused.Number != l.codes[len(l.codes)-1] {
							t.Fatalf("got %v, want one of %v", got, l.codes)
						}
						// A direct server may ask without a switch of the plugin, but its errors
						// are the same.
						plain := func(m *mysql.Config) { m.User, m.Passwd = l.user, l.password }
						want := e.tryLogin(t, e.Servers[0].Addr(), l.schema, plain)
						text := strings.ReplaceAll(fmt.Sprint(got), "'localhost'", "'127.0.0.1'")
						if l.user != "nobody_here" && l.user != "" && text != fmt.Sprint(want) {
							t.Errorf("got %v, want %v as direct", text, want)
						}
					})
				}
				conn := e.Conn(t, e.Schemas[0], func(m *mysql.Config) { m.TLS = c.tls })
				exec(t, conn, "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (5)")
				if got := value(t, conn, "SELECT CONCAT(SUBSTRING_INDEX(USER(), '@', 1), a, DATABASE()) FROM t"); got != e.User+"5"+e.Schemas[0] {
					t.Errorf("got %s, want the session of %s in %s", got, e.User, e.Schemas[0])
				}
				if out := e.CLI(t, e.Addr(), e.Schemas[0], "SELECT a FROM t"); !strings.Contains(out, "|    5 |") {
					t.Errorf("command-line client: got\n%s", out)
				}
				if out := e.CLI(t, e.Addr(), "", "SELECT 1", "--password=wrong"); !strings.Contains(out, "ERROR 1045") {
					t.Errorf("command-line client with a wrong password: got\n%s", out)
				}
			})
		}
	}
}

func TestManyRelayedLoginsAtOnceDoNotMixUp(t *testing.T) {
	e := newEnv(t, setup{Proxy: byServer})
	const accounts = 4
	for i := range accounts {
		account(t, e.Servers[0], fmt.Sprintf("relay_%d@'%%'", i), fmt.Sprintf("IDENTIFIED BY 'pw%d'", i))
	}
	var group errgroup.Group
	for i := range 48 {
		name, password := fmt.Sprintf("relay_%d", i%accounts), fmt.Sprintf("pw%d", i%accounts)
		if i%3 == 0 {
			password = fmt.Sprintf("pw%d", (i+1)%accounts) // the password of another account
		}
		group.Go(func() error {
			pool := e.open(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = name, password })
			var got string
			err := pool.QueryRow("SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)").Scan(&got)
			var refused *mysql.MySQLError
			switch {
			case i%3 == 0 && (!errors.As(err, &refused) || refused.Number != 1045):
				return fmt.Errorf("%s with another's password: got %q, %w, want 1045", name, got, err)
			case i%3 != 0 && (err != nil || got != name):
				return fmt.Errorf("%s: got %q, %w", name, got, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestSeveralFactorsAreOfferedWhereTheServerChecks(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.RelayLogins = relayed }})
		direct := e.Wire(t, e.Servers[0].Addr(), wireLogin{}).hello.Greeting.Capabilities.Has(protocol.MultiFactor)
		if got := e.Wire(t, e.Addr(), wireLogin{}).hello.Greeting.Capabilities.Has(protocol.MultiFactor); got != (direct && relayed) {
			t.Errorf("logins checked by the server %v, which offers it %v: got %v", relayed, direct, got)
		}
		e.stop()
	}
}

// Checklist 7.
func TestARelayedLoginTakesOneConnectionWhichIsTheSessions(t *testing.T) {
	e := newEnv(t, setup{Proxy: byServer, Sequence: nil})
	direct := e.DirectConn(t, 0, "", nil)
	connections := func() []string {
		return strings.Split(value(t, direct, "SELECT GROUP_CONCAT(id) FROM information_schema.processlist WHERE user = '"+e.User+"'"), ",")
	}
	for _, schema := range []string{"", e.Schemas[0]} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: schema, Attrs: protocol.Attrs(nil).With("program_name", "the test")})
		d := e.Wire(t, e.Servers[0].Addr(), wireLogin{Schema: schema})
		if got, want := w.hello.Status, d.hello.Status; got != want {
			t.Errorf("status: got %04x, want %04x as direct", got, want)
		}
		before := connections()
		compare(t, "a statement", w.query("SELECT DATABASE(), @@collation_connection, 'ä'"), d.query("SELECT DATABASE(), @@collation_connection, 'ä'"))
		for _, id := range connections() { // connections of earlier clients may have ended meanwhile
			if !slices.Contains(before, id) {
				t.Errorf("the first statement opened connection %s beside the login's: %v", id, before)
			}
		}
		w.Close()
		d.Close()
	}
}

// osUser is the user of this process, whom a server trusts over its Unix socket.
func osUser(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// A server takes the proxy for the client. Over a Unix socket it knows the proxy's user id, which
// must never let a client in.
//
// Checklist 8.
func TestOverAUnixSocketNobodyIsLetInForTheProxysUserID(t *testing.T) {
	s := mysqltest.Start(t)
	me := "`" + osUser(t) + "`@localhost"
	// Another name that the server accepts for this process, where it can be configured.
	if s.IsMariaDB() {
		s.Exec(t, "CREATE USER other@localhost IDENTIFIED VIA mysql_native_password USING PASSWORD('pw') OR unix_socket AS '"+osUser(t)+"'")
	} else {
		s.Exec(t, "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'", "CREATE USER other@localhost IDENTIFIED WITH auth_socket AS '"+osUser(t)+"'")
	}
	type attempt struct {
		password string
		ok       bool
	}
	identified := map[string][]attempt{}
	if s.IsMariaDB() {
		identified["VIA unix_socket"] = []attempt{{"", false}, {"x", false}}
		identified["VIA unix_socket OR mysql_native_password USING PASSWORD('pw')"] = []attempt{{"", false}, {"x", false}}
		identified["VIA mysql_native_password USING PASSWORD('pw') OR unix_socket"] = []attempt{{"", false}, {"x", false}}
		identified["VIA mysql_native_password USING 'invalid' OR unix_socket"] = []attempt{{"", false}, {"x", false}}
		identified["VIA mysql_native_password USING PASSWORD('pw')"] = []attempt{{"", false}, {"x", false}, {"pw", true}}
	} else {
		identified["WITH auth_socket"] = []attempt{{"", false}, {"x", false}}
		identified["WITH auth_socket AS '"+osUser(t)+"'"] = []attempt{{"", false}, {"x", false}}
		identified["BY 'pw'"] = []attempt{{"", false}, {"x", false}, {"pw", true}}
	}
	e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Proxy: byServer, Backend: overSocket(s)})
	for _, password := range []string{"", "x"} {
		err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "other", password })
		if checked, ok := err.(*mysql.MySQLError); !ok || checked.Number != 1045 && checked.Number != 1698 {
			t.Errorf("another name, password %q: got %v, want 1045 or 1698", password, err)
		}
	}
	for how, attempts := range identified {
		t.Run(how, func(t *testing.T) {
			s.Exec(t, "DROP USER IF EXISTS "+me, "CREATE USER "+me+" IDENTIFIED "+how, "GRANT ALL ON *.* TO "+me)
			for _, a := range attempts {
				for _, plugin := range []string{"", "mysql_native_password", "caching_sha2_password"} {
					err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = osUser(t), a.password })
					if a.ok && err != nil {
						t.Errorf("password %q: got %v", a.password, err)
					}
					if !a.ok {
						checkError(t, fmt.Sprintf("password %q", a.password), err, 1045, "Access denied for user")
					}
					if a.ok {
						continue
					}
					// A change of user is refused, too.
					w := e.Wire(t, e.Addr(), wireLogin{})
					if err := serverError(t, w.change(osUser(t), a.password, "", plugin)); err.Code != 1045 {
						t.Errorf("change of user by %q, password %q: got %v, want 1045", plugin, a.password, err)
					}
					w.ended()
				}
			}
		})
	}
	// Over TCP the server trusts no user id, and a password is enough.
	if s.IsMariaDB() {
		tcp := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Proxy: byServer})
		account(t, s, "relay_multi@'%'", "IDENTIFIED VIA mysql_native_password USING PASSWORD('pw') OR unix_socket")
		as := func(password string) error {
			return tcp.tryLogin(t, tcp.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "relay_multi", password })
		}
		if err := as("pw"); err != nil {
			t.Errorf("over TCP with the password: got %v", err)
		}
		checkError(t, "over TCP with a wrong password", as("x"), 1698) // the error of the second plugin
	}
}

func TestARelayedAccountKeepsItsPluginRolesAndExpiry(t *testing.T) {
	var options []string
	if mysqltest.Shared(t).IsMariaDB() { // the default plugin of MySQL
		options = append(options, "--disconnect-on-expired-password=ON")
	}
	s := mysqltest.Start(t, options...)
	e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Proxy: byServer})
	login := func(name, password string) func(*mysql.Config) {
		return func(m *mysql.Config) { m.User, m.Passwd = name, password }
	}
	s.Exec(t, "CREATE ROLE a_role", "CREATE USER with_role@'%' IDENTIFIED BY 'pw'", "GRANT SELECT ON "+e.Schemas[0]+".* TO a_role", "GRANT a_role TO with_role@'%'")
	if s.IsMariaDB() {
		s.Exec(t, "SET DEFAULT ROLE a_role FOR with_role@'%'", "CREATE USER either@'%' IDENTIFIED VIA mysql_native_password USING PASSWORD('one') OR mysql_native_password USING PASSWORD('two')")
	} else {
		s.Exec(t, "SET DEFAULT ROLE a_role TO with_role@'%'")
	}
	s.Exec(t, "CREATE TABLE "+e.Schemas[0]+".t (a INT)", "CREATE USER expired@'%' IDENTIFIED BY 'pw' PASSWORD EXPIRE")

	conn := e.Conn(t, e.Schemas[0], login("with_role", "pw"))
	if got := value(t, conn, "SELECT COUNT(*) FROM t"); got != "0" {
		t.Errorf("by the default role: got %s rows, want 0", got)
	}
	direct := e.tryLogin(t, s.Addr(), "", login("expired", "pw"))
	got := e.tryLogin(t, e.Addr(), "", login("expired", "pw"))
	checkError(t, "an expired password", got, 1862)
	if fmt.Sprint(got) != fmt.Sprint(direct) {
		t.Errorf("an expired password: got %v, want %v as direct", got, direct)
	}
	// A client with the flag may set a new password.
	name, password := "expired", "pw"
	expired := wireLogin{User: &name, Password: &password, Capabilities: allFraming | protocol.ExpiredPasswords}
	if !e.Wire(t, s.Addr(), wireLogin{}).hello.Greeting.Capabilities.Has(protocol.ExpiredPasswords) {
		expired.Capabilities = allFraming
	}
	w, d := e.Wire(t, e.Addr(), expired), e.Wire(t, s.Addr(), expired)
	compare(t, "a statement with an expired password", w.query("SELECT a FROM t"), d.query("SELECT a FROM t"))
	w.query("SET PASSWORD = " + map[bool]string{true: "PASSWORD('new')", false: "'new'"}[s.IsMariaDB()])
	if err := e.tryLogin(t, e.Addr(), "", login("expired", "new")); err != nil {
		t.Errorf("with the new password: %v", err)
	}
	if !s.IsMariaDB() {
		return
	}
}

func TestMariaDBsOtherPluginsAreRelayed(t *testing.T) {
	if !mysqltest.Shared(t).IsMariaDB() {
		t.Log("the server is not MariaDB")
		return
	}
	s := mysqltest.Start(t)
	db := s.DB(t, "")
	var names []string
	for _, p := range []struct{ file, name string }{{"auth_ed25519", "ed25519"}, {"auth_parsec", "parsec"}, {"auth_mysql_sha2", "caching_sha2_password"}} {
		if _, err := db.Exec("INSTALL SONAME '" + p.file + "'"); err != nil {
			t.Logf("the server has no %s: %v", p.name, err)
			continue
		}
		s.Exec(t, "CREATE USER by_"+p.name+"@'%' IDENTIFIED VIA "+p.name+" USING PASSWORD('pw')")
		names = append(names, p.name)
	}
	serverTLS, _ := testTLS()
	for _, node := range []string{"tcp", "unix"} {
		for _, secure := range []string{"--skip-ssl", "--skip-ssl-verify-server-cert"} {
			t.Run(node+"/"+secure, func(t *testing.T) {
				e := newEnv(t, setup{
					Servers: []*mysqltest.Server{s},
					Proxy: func(o *proxy.Options) {
						byServer(o)
						o.TLS = serverTLS
					},
					Backend: func(o *backend.Options) {
						if node == "unix" {
							overSocket(s)(o)
						}
					},
				})
				for _, name := range names {
					if name == "caching_sha2_password" && node == "tcp" {
						// MariaDB 11.8 has no RSA key for it, and accepts the password only over
						// its socket
						continue
					}
					s.Exec(t, "FLUSH PRIVILEGES") // MySQL forgets the passwords for the fast exchange
					for range 2 {
						if out := ownClient(t, s, e.Addr(), secure, "-u", "by_"+name, "--password=pw", "-N", "-e", "SELECT 6*7"); out != "42\n" {
							t.Errorf("%s: got %q, want 42", name, out)
						}
					}
					if out := ownClient(t, s, e.Addr(), secure, "-u", "by_"+name, "--password=x", "-e", "SELECT 1"); !strings.Contains(out, "ERROR 1045") {
						t.Errorf("%s with a wrong password: got %q, want 1045", name, out)
					}
				}
			})
		}
	}
}

func TestAChangeOfUserIsCheckedByTheServer(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	for _, secure := range []bool{false, true} {
		for _, plugin := range []string{"mysql_native_password", "caching_sha2_password", ""} {
			t.Run(fmt.Sprintf("TLS %v/%s", secure, plugin), func(t *testing.T) {
				e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
					o.RelayLogins, o.TLS = true, serverTLS
				}})
				account(t, e.Servers[0], "second@'%'", "IDENTIFIED BY 'other'")
				l := wireLogin{Schema: e.Schemas[0]}
				if secure {
					l.TLS = clientTLS
				}
				w := e.Wire(t, e.Addr(), l) // a user whom the proxy knows
				id := w.rows("SELECT CONNECTION_ID()")
				w.query("SET @x = 5, autocommit = 0")
				w.query("CREATE TEMPORARY TABLE tt (a INT)")
				// MySQL asks for the whole password the first time only.
				for range 2 {
					if got := w.change("second", "other", "information_schema", plugin); got[4] != 0 || len(got) < 9 {
						t.Fatalf("change of user: got %x, want OK", got)
					}
					want := []string{"second", "information_schema", "NULL", "1"}
					if got := w.rows("SELECT SUBSTRING_INDEX(USER(), '@', 1), DATABASE(), @x, @@autocommit"); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("after the change: got %v, want %v", got, want)
					}
					if got := w.rows("SELECT CONNECTION_ID()"); got[0] != id[0] {
						t.Errorf("connection id: got %s, want %s", got[0], id[0])
					}
				}
				// And back to a user whom the proxy knows.
				if got := w.change(e.User, e.Password, e.Schemas[0], plugin); got[4] != 0 {
					t.Fatalf("change back: got %x, want OK", got)
				}
				w.query("SELECT 1")
				if err := serverError(t, w.change("second", "wrong", "", plugin)); err.Code != 1045 {
					t.Errorf("wrong password: got %v, want 1045", err)
				}
				w.ended()
				w = e.Wire(t, e.Addr(), l)
				if err := serverError(t, w.change("second", "other", "no_such_schema", plugin)); err.Code != 1049 {
					t.Errorf("unknown schema: got %v, want 1049", err)
				}
				w.ended()
			})
		}
	}
}

func TestKnownUsersAreNotTheServersToCheck(t *testing.T) {
	e := newEnv(t, setup{
		Proxy: func(o *proxy.Options) {
			o.RelayLogins = true
			o.Users = append(o.Users, proxy.User{Name: "known", Password: "the proxy's"})
		},
		Backend: func(o *backend.Options) { o.Shards[0].Login = &o.Probe },
	})
	account(t, e.Servers[0], "known@'%'", "IDENTIFIED BY 'the servers'")
	login := func(password string) error {
		return e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "known", password })
	}
	if err := login("the proxy's"); err != nil {
		t.Errorf("the proxy's password: %v", err)
	}
	checkError(t, "the server's password", login("the servers"), 1045)
}

// A server strips quotes of a name and cuts a long one. Neither may bypass the proxy's check of a
// user whom it knows.
func TestAKnownUserIsKnownByOtherSpellingsOfTheName(t *testing.T) {
	long := strings.Repeat("漢", 32) // 96 bytes, where MySQL cuts
	if mysqltest.Shared(t).IsMariaDB() {
		long = strings.Repeat("n", 127) + "é" // 128 characters, where MariaDB cuts
	}
	e := newEnv(t, setup{
		Proxy: func(o *proxy.Options) {
			o.RelayLogins = true
			o.Users = append(o.Users, proxy.User{Name: "known", Password: "the proxy's"}, proxy.User{Name: long, Password: "the proxy's"})
		},
		Backend: func(o *backend.Options) { o.Shards[0].Login = &o.Probe },
	})
	for _, name := range []string{"known", long} {
		account(t, e.Servers[0], name+"@'%'", "IDENTIFIED BY 'the servers'")
	}
	for _, name := range []string{"'known'", long + "n", long + "漢漢", "'" + long + "'"} {
		err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = name, "the servers" })
		checkError(t, name+" with the server's password", err, 1045)
	}
	if err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "'known'", "the proxy's" }); err != nil {
		t.Errorf("in quotes, with the proxy's password: %v", err)
	}
	for _, name := range []string{"'known'", long + "n"} {
		err := e.tryLogin(t, e.Servers[0].Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = name, "the servers" })
		if err != nil {
			t.Errorf("direct, as %s: %v", name, err)
		}
	}
}

// A server converts a name from the client's character set, and MySQL cuts it at an incomplete
// character.
func TestAKnownUserIsKnownInEveryCharacterSet(t *testing.T) {
	e := newEnv(t, setup{
		Proxy: func(o *proxy.Options) {
			o.RelayLogins = true
			o.Users = append(o.Users, proxy.User{Name: "known", Password: "the proxy's"}, proxy.User{Name: "ärger", Password: "the proxy's"})
		},
		Backend: func(o *backend.Options) { o.Shards[0].Login = &o.Probe },
	})
	for _, name := range []string{"known", "ärger", "söhne"} {
		account(t, e.Servers[0], name+"@'%'", "IDENTIFIED BY 'the servers'")
	}
	taken := 0
	for _, c := range []struct{ name, collation string }{
		{"\xe4rger", "latin1_swedish_ci"},
		{"known\xff", "utf8mb4_general_ci"},
		{"known\xe6", "utf8mb4_general_ci"},
		{"known\x81", "sjis_japanese_ci"},
		{"'known\xff'", "utf8mb4_general_ci"},
		{"''known''", "utf8mb4_general_ci"},
		{"'''known'''", "utf8mb4_general_ci"},
	} {
		login := func(m *mysql.Config) { m.User, m.Passwd, m.Collation = c.name, "the servers", c.collation }
		if e.tryLogin(t, e.Servers[0].Addr(), "", login) == nil {
			taken++
		}
		err := e.tryLogin(t, e.Addr(), "", login)
		checkError(t, fmt.Sprintf("%q in %s with the server's password", c.name, c.collation), err, 1045)
	}
	if taken == 0 {
		t.Error("no name is converted by the server, so this shows nothing")
	}
	for _, c := range []struct{ name, collation string }{{"s\xf6hne", "latin1_swedish_ci"}, {"söhne", "utf8mb4_general_ci"}} {
		err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd, m.Collation = c.name, "the servers", c.collation })
		if err != nil {
			t.Errorf("%q in %s, whom only the server knows: %v", c.name, c.collation, err)
		}
	}
}

func TestWithoutTheServerOnlyKnownUsersLogIn(t *testing.T) {
	s := mysqltest.Start(t)
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{mysqltest.Shared(t)}, Proxy: func(o *proxy.Options) { o.RelayLogins = true },
		Backend: func(o *backend.Options) { o.Shards[0].Nodes = []string{s.Addr()} },
	})
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User = "nobody_here" })
	checkError(t, "an unknown user", err, 1429, "log says why")
	if host, port, _ := net.SplitHostPort(s.Addr()); strings.Contains(err.Error(), host) || strings.Contains(err.Error(), port) {
		t.Errorf("an unknown user: %v has the server's address", err)
	}
	eventually(t, "the log has the reason", func() bool {
		return slices.ContainsFunc(e.Logs.FilterMessage("session ended").All(), func(line observer.LoggedEntry) bool {
			return strings.Contains(fmt.Sprint(line.ContextMap()["err"]), "shard s0: node "+s.Addr()+" cannot be used")
		})
	})
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("a known user: %v", err)
	}
}

// Where auth_socket is the second factor, a server accepts the proxy's user id for it, and asks the
// client nothing.
func TestOverAUnixSocketTheProxysUserIDIsNoSecondFactor(t *testing.T) {
	if mysqltest.Shared(t).IsMariaDB() {
		t.Log("MariaDB has no accounts with several factors")
		return
	}
	s := mysqltest.Start(t)
	s.Exec(t, "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'", "SET GLOBAL authentication_policy = '*,,'",
		"CREATE USER two@'%' IDENTIFIED BY 'pw' AND IDENTIFIED WITH auth_socket AS '"+osUser(t)+"'")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Proxy: byServer, Backend: overSocket(s)})
	for _, factors := range []protocol.Capability{0, protocol.MultiFactor} {
		c := dialPackets(t, "tcp", e.Addr())
		if refusal := serverError(t, logInBySha2(t, c, "two", "pw", factors)); refusal.Code != 1045 {
			t.Errorf("flags %x: got %v, want 1045", uint64(factors), refusal)
		}
	}
	if ok := logInBySha2(t, dialPackets(t, "unix", s.Socket()), "two", "pw", protocol.MultiFactor); ok[4] != 0 {
		t.Errorf("direct: got %q, want OK", ok)
	}
}

func dialPackets(t *testing.T, network, addr string) *protocol.Conn {
	t.Helper()
	nc, err := net.DialTimeout(network, addr, wireTimeout)
	if err != nil {
		t.Fatal(err)
	}
	c, err := protocol.NewConn(nc, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		t.Fatal(err)
	}
	return c
}

// logInBySha2 logs in with more flags than protocol.ClientLogin has, and returns the last packet
// with its header. The server may ask for mysql_native_password.
func logInBySha2(t *testing.T, c *protocol.Conn, name, password string, flags protocol.Capability) []byte {
	t.Helper()
	g, err := protocol.ReadGreeting(c)
	if err != nil {
		t.Fatal(err)
	}
	salt := g.Salt[:]
	r := protocol.HandshakeResponse{
		Capabilities: protocol.LongPassword | protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth | flags,
		User:         name, Plugin: "caching_sha2_password", AuthResponse: sha2Scramble(salt, password), Collation: 45,
	}
	answer, err := r.Append(nil)
	for range 8 {
		if err == nil && answer != nil {
			err = c.WritePacket(answer)
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.ReadPacket(1 << 16)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case p[0] == 0xfe:
			salt = bytes.Clone(p[len(p)-21 : len(p)-1])
			if answer = sha2Scramble(salt, password); bytes.HasPrefix(p[1:], []byte("mysql_native_password\x00")) {
				answer = nativeScramble(salt, password)
			}
		case p[0] != 1:
			return append(make([]byte, 4), p...)
		case len(p) == 2 && p[1] == 3:
			answer = nil
		case len(p) == 2 && c.RemoteAddr().Network() == "unix":
			answer = append([]byte(password), 0)
		case len(p) == 2:
			answer = []byte{2}
		default:
			answer = sha2Encrypt(t, p[1:], salt, password)
		}
	}
	t.Fatal("the server asks without an end")
	return nil
}

// A slow client, or one that fails, must not count against the server, because others could not log
// in then.
func TestASlowClientIsNotTheServersFault(t *testing.T) {
	const connectLimit = 5 * time.Second
	e := newEnv(t, setup{Proxy: byServer, Backend: func(o *backend.Options) { o.ConnectTimeout = connectLimit }})
	w := e.Wire(t, e.Addr(), wireLogin{})
	w.send(packet(changeUser(e.User, "", "mysql_native_password", 45)))
	asked, err := w.raw()
	if err != nil || asked[4] != 0xfe {
		t.Fatalf("got %x, %v, want a switch of plugins", asked, err)
	}
	gone := e.Wire(t, e.Addr(), wireLogin{})
	gone.send(packet(changeUser(e.User, "", "mysql_native_password", 45)))
	if _, err := gone.raw(); err != nil {
		t.Fatal(err)
	}
	gone.Close()
	time.Sleep(connectLimit + connectLimit/10)
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("another client meanwhile: %v", err)
	}
	b, _ := protocol.AppendPacket(nil, []byte("an answer of no use."), asked[3]+1)
	w.send(b)
	p, err := w.raw()
	for err == nil && p[4] == 1 { // the full exchange
		b, _ := protocol.AppendPacket(nil, []byte{0}, p[3]+1)
		w.send(b)
		p, err = w.raw()
	}
	if err != nil {
		t.Fatal(err)
	}
	if refusal := serverError(t, p); refusal.Code != 1045 {
		t.Errorf("the slow client: got %v, want 1045", refusal)
	}
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("another client at once: %v", err)
	}
}

func TestAClientThatNeverAnswersIsNotTheServersFault(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		byServer(o)
		o.LoginTimeout = 3 * time.Second
	}})
	w := e.Wire(t, e.Addr(), wireLogin{})
	w.send(packet(changeUser(e.User, "", "mysql_native_password", 45)))
	if _, err := w.raw(); err != nil {
		t.Fatal(err)
	}
	w.ended()
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("another client at once: %v", err)
	}
}

// slowJudge is a server that asks each login for a password and takes any. It never answers the
// password of "late". It refuses all commands.
func slowJudge(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const offered = protocol.Relayable | protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth
	serve := func(nc net.Conn) error {
		defer nc.Close()
		c, err := protocol.NewConn(nc, 0, 0)
		if err != nil {
			return err
		}
		greeting := protocol.Greeting{Version: "8.4.3", Salt: protocol.NewSalt(), Capabilities: offered, Collation: 45, Plugin: "mysql_native_password"}
		p, _ := greeting.Append(nil)
		if err := c.WritePacket(p); err != nil {
			return err
		}
		if p, err = c.ReadPacket(1 << 16); err != nil {
			return err
		}
		asked, err := protocol.ParseHandshakeResponse(p, offered)
		if err != nil {
			return err
		}
		answers := protocol.AppendOK(nil, 0, protocol.OK{Status: protocol.Autocommit})[protocol.HeaderSize:]
		if asked.User == "late" {
			answers = nil
		}
		if err := c.WritePacket(append([]byte("\xfemysql_native_password\x00"), bytes.Repeat([]byte("s"), 21)...)); err != nil {
			return err
		}
		for {
			if _, err := c.ReadPacket(1 << 16); err != nil {
				return err
			}
			if answers != nil {
				err = c.WritePacket(answers)
			}
			if err != nil {
				return err
			}
			if asked.User != "late" {
				answers = protocol.AppendERR(nil, 0, 1820, "HY000", "not here")[protocol.HeaderSize:]
			}
		}
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { _ = serve(nc) }) // it ends with the proxy's connection
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// A server may delay its verdict on an account that has failed before. Then that account alone
// waits.
func TestALateVerdictConcernsItsAccountAlone(t *testing.T) {
	judge := slowJudge(t)
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		byServer(o)
		o.FailedLogins = 1
	}, Backend: func(o *backend.Options) {
		o.Shards[0].Nodes, o.Probe = []string{judge}, backend.Credentials{}
	}})
	login := func(user string) wireLogin {
		return wireLogin{User: &user, Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth, Packing: notPacked}
	}
	e.Wire(t, e.Addr(), login("app"))
	if refusal := e.refusal(t, e.Addr(), login("late")); refusal.Code != 1429 {
		t.Errorf("a login without a verdict: got %v, want 1429", refusal)
	}
	eventually(t, "the log names the timeout", func() bool {
		return slices.ContainsFunc(e.Logs.FilterMessage("session ended").All(), func(line observer.LoggedEntry) bool {
			return strings.Contains(fmt.Sprint(line.ContextMap()["err"]), "timeout")
		})
	})
	e.Wire(t, e.Addr(), login("app")) // the server counts as up
	if n := e.Logs.FilterMessage("logins delayed").Len(); n > 0 {
		t.Error("a login that the server did not judge counts as a failed one")
	}
}

func TestFurtherShardsOfARelayedSession(t *testing.T) {
	t.Run("the proxy has no password", func(t *testing.T) {
		e := newEnv(t, setup{Shards: 2, Proxy: byServer})
		c := e.Conn(t, e.Schemas[0], nil)
		exec(t, c, "SELECT 1")
		if e.Servers[0].IsMariaDB() {
			wantError(t, c, 1235, "USE "+e.Schemas[1], "shard s1", e.User, "shard s0", "[[user]]")
		}
		exec(t, c, "SELECT 1")
		if e.Servers[0].IsMariaDB() {
			err := e.tryLogin(t, e.Addr(), e.Schemas[1], nil)
			checkError(t, "login with the other shard's schema", err, 1235, "shard s1")
		}
	})
	t.Run("the account has no password", func(t *testing.T) {
		e := newEnv(t, setup{Shards: 2, Proxy: byServer})
		for _, s := range e.Servers {
			account(t, s, "relay_none@'%'", "")
		}
		c := e.Conn(t, e.Schemas[1], func(m *mysql.Config) { m.User, m.Passwd = "relay_none", "" })
		if got := value(t, c, "SELECT USER()"); got != "relay_none@127.0.0.1" {
			t.Errorf("got %s, want relay_none", got)
		}
		exec(t, c, "USE "+e.Schemas[0], "USE "+e.Schemas[1])
	})
	t.Run("the shard has credentials", func(t *testing.T) {
		e := newEnv(t, setup{Shards: 2, Proxy: byServer, Backend: func(o *backend.Options) { o.Shards[1].Login = &o.Probe }})
		account(t, e.Servers[0], "relay_first@'%'", "IDENTIFIED BY 'pw'")
		login := func(m *mysql.Config) { m.User, m.Passwd = "relay_first", "pw" }
		if !e.Servers[0].IsMariaDB() {
			// The full exchange would bypass the proxy, but the fast one does not need it.
			if err := e.tryLogin(t, e.Addr(), "", login); err != nil {
				t.Fatal(err)
			}
		}
		c := e.Conn(t, e.Schemas[1], login)
		if got := value(t, c, "SELECT SUBSTRING_INDEX(USER(), '@', 1)"); got != e.User {
			t.Errorf("on the further shard: got user %s, want %s", got, e.User)
		}
		exec(t, c, "USE "+e.Schemas[0])
		if got := value(t, c, "SELECT USER()"); got != "relay_first@127.0.0.1" {
			t.Errorf("on the default shard: got %s, want relay_first", got)
		}
	})
	t.Run("a reset keeps the way back", func(t *testing.T) {
		e := newEnv(t, setup{Shards: 2, Proxy: byServer, Backend: func(o *backend.Options) { o.Shards[1].Login = &o.Probe }})
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
		w.query("SET @x = 5")
		w.query("USE " + e.Schemas[1])
		w.do(protocol.ComResetConn, "")
		w.query("USE " + e.Schemas[0])
		if got := w.rows("SELECT DATABASE(), @x"); got[0] != e.Schemas[0] || got[1] != "NULL" {
			t.Errorf("after the reset: got %v, want %s and NULL", got, e.Schemas[0])
		}
	})
}

func TestStatementsOfARelayedLoginCanBeEnded(t *testing.T) {
	const statement = "SELECT GET_LOCK('held', 20)"
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		byServer(o)
		o.Admins = []string{"relay_admin"}
	}, Backend: func(o *backend.Options) {
		// The probe has the account of the sequence server.
		o.Shards[0].Probe, o.Probe = o.Probe, backend.Credentials{}
	}})
	s := e.Servers[0]
	e.hold(t, 0)
	account(t, s, "relay_plain@'%'", "IDENTIFIED BY 'pw'")
	s.Exec(t, "REVOKE ALL, GRANT OPTION FROM relay_plain@'%'")
	account(t, s, "relay_admin@'%'", "IDENTIFIED BY 'pw'")
	login := func(name string) *wire {
		password := "pw"
		return e.Wire(t, e.Addr(), wireLogin{User: &name, Password: &password})
	}
	db := s.DB(t, "")
	await := func(running int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s runs %d times", statement, running), func() bool {
			n := -1
			if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = ?", statement).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n == running
		})
	}
	for _, name := range []string{"relay_plain", "relay_admin"} {
		killer, w := login(name), login("relay_plain")
		w.send(packet(command(protocol.ComQuery, statement)))
		await(1)
		if got := killer.query("KILL QUERY " + w.id()); got[4] != 0 {
			t.Errorf("KILL QUERY by %s: %v", name, serverError(t, got))
		}
		w.receive(protocol.ShapeResult, nil)
		await(0)
		// The statement of a client that vanishes is killed.
		w.send(packet(command(protocol.ComQuery, statement)))
		await(1)
		w.nc.Close()
		await(0)
	}
}

func TestAdminUsersMayBeTheServers(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		byServer(o)
		o.Admins = []string{"relay_admin", "relay_false"}
	}})
	s := e.Servers[0]
	account(t, s, "relay_admin@'%'", "IDENTIFIED BY 'pw'")
	account(t, s, "relay_other@'%'", "IDENTIFIED BY 'pw'")
	as := func(name, password string) func(*mysql.Config) {
		return func(m *mysql.Config) { m.User, m.Passwd = name, password }
	}
	exec(t, e.Conn(t, "", as("relay_admin", "pw")), "CREATE SEQUENCE photos", "DROP SEQUENCE photos")
	wantError(t, e.Conn(t, "", as("relay_other", "pw")), 1227, "CREATE SEQUENCE photos")
	// Through an anonymous account a server accepts every name.
	account(t, s, "''@'127.0.0.1'", "")
	wantError(t, e.Conn(t, "", as("relay_false", "")), 1227, "CREATE SEQUENCE photos")
}

func TestWithoutAnyAccountTheServerIsAskedOnce(t *testing.T) {
	s := mysqltest.Start(t, "--sql-mode=ANSI_QUOTES,STRICT_ALL_TABLES")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Proxy: byServer, Backend: func(o *backend.Options) { o.Probe = backend.Credentials{} }})
	hello, ok := e.Shards.Routes().Default.Hello()
	if !ok || hello.Version == "" || hello.Capabilities == 0 || hello.MariaDB != s.IsMariaDB() || hello.SQLMode != "" {
		t.Errorf("before a login: got %+v, %v, want what the greeting says", hello, ok)
	}
	db := s.DB(t, "")
	selects := func() (n int) {
		var name string
		if err := db.QueryRow("SHOW GLOBAL STATUS LIKE 'Com_select'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	w := e.Wire(t, e.Addr(), wireLogin{})
	w.query(`SELECT 1 AS "quoted"`)
	if hello, _ = e.Shards.Routes().Default.Hello(); !strings.Contains(hello.SQLMode, "ANSI_QUOTES") {
		t.Errorf("after a login: got sql_mode %q, want ANSI_QUOTES in it", hello.SQLMode)
	}
	before := selects()
	e.Wire(t, e.Addr(), wireLogin{})
	if after := selects(); after != before {
		t.Errorf("a second login: got Com_select from %d to %d, want no statement", before, after)
	}
}

// An account may have a certificate in place of a password. The server sees the proxy's, whoever
// the client is.
func TestTheProxysCertificateIsNoPassword(t *testing.T) {
	ca := mysqltest.NewCA(t)
	s := mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	client := ca.Client(t, "proxy")
	files := tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File, Cert: client.CertFile, Key: client.KeyFile}
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{s}, Proxy: byServer,
		Backend: func(o *backend.Options) { o.Shards[0].Security = secured(t, files) },
	})
	account(t, s, "relay_certificate@'%'", "REQUIRE SUBJECT '/CN=proxy'")
	account(t, s, "relay_both@'%'", "IDENTIFIED BY 'secret' REQUIRE X509")
	err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "relay_certificate", "" })
	checkError(t, "with the proxy's certificate alone", err, 1045)
	err = e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "relay_both", "" })
	checkError(t, "without the password", err, 1045)
	if err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = "relay_both", "secret" }); err != nil {
		t.Errorf("with a password: %v", err)
	}
}
