package proxy_test

import (
	crand "crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/tlsfiles"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// secured makes the TLS settings of connections to servers.
func secured(t testing.TB, files tlsfiles.ClientFiles) *tlsfiles.Client {
	t.Helper()
	c, err := tlsfiles.NewStore(zap.NewNop()).Client("test", files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cipher returns the cipher of the session's connection to its server, "" without TLS.
func (w *wire) cipher() string {
	w.t.Helper()
	return w.rows("SHOW STATUS LIKE 'Ssl_cipher'")[1]
}

// Checklist 9.
func TestEachModeMeetsEachServerAsWithAClient(t *testing.T) {
	ca, other := mysqltest.NewCA(t), mysqltest.NewCA(t)
	type cell struct{ works, encrypted bool }
	for _, server := range []struct {
		name string
		args []string
		want map[tlsfiles.Mode]cell
	}{
		{"with a good certificate", ca.Server(t, "127.0.0.1", "localhost").ServerArgs(ca), map[tlsfiles.Mode]cell{
			tlsfiles.Disabled: {true, false}, tlsfiles.Preferred: {true, true}, tlsfiles.Required: {true, true},
			tlsfiles.VerifyCA: {true, true}, tlsfiles.VerifyIdentity: {true, true},
		}},
		{"with a certificate of another CA", other.Server(t, "127.0.0.1", "localhost").ServerArgs(other), map[tlsfiles.Mode]cell{
			tlsfiles.Disabled: {true, false}, tlsfiles.Preferred: {true, true}, tlsfiles.Required: {true, true},
			tlsfiles.VerifyCA: {false, false}, tlsfiles.VerifyIdentity: {false, false},
		}},
		{"with another server's certificate", ca.Server(t, "db2.example").ServerArgs(ca), map[tlsfiles.Mode]cell{
			tlsfiles.Disabled: {true, false}, tlsfiles.Preferred: {true, true}, tlsfiles.Required: {true, true},
			tlsfiles.VerifyCA: {true, true}, tlsfiles.VerifyIdentity: {false, false},
		}},
		{"without TLS", mysqltest.WithoutTLS(t), map[tlsfiles.Mode]cell{
			tlsfiles.Disabled: {true, false}, tlsfiles.Preferred: {true, false}, tlsfiles.Required: {false, false},
			tlsfiles.VerifyCA: {false, false}, tlsfiles.VerifyIdentity: {false, false},
		}},
	} {
		t.Run(server.name, func(t *testing.T) {
			s := mysqltest.Start(t, server.args...)
			for mode, want := range server.want {
				t.Run(string(mode), func(t *testing.T) {
					files := tlsfiles.ClientFiles{Mode: mode}
					if mode == tlsfiles.VerifyCA || mode == tlsfiles.VerifyIdentity {
						files.CA = ca.File
					}
					security := secured(t, files)
					e := newEnv(t, setup{
						Servers: []*mysqltest.Server{s},
						Backend: func(o *backend.Options) { o.Shards[0].Security = security },
						Sequence: func(o *sequence.Options) {
							o.Servers[0].Security = security
							if !want.works {
								o.AllocateTimeout = 500 * time.Millisecond // the test waits this out
							}
						},
					})
					e.compareWithClient(t, mode, ca, want.works)
					if !want.works {
						c := e.Conn(t, "", nil)
						words := []string{"shard s0: node " + s.Addr() + " cannot be used: ", "TLS", `tls = "`}
						wantError(t, c, 1429, "SELECT 1", words...)
						wantError(t, c, 1105, "CREATE SEQUENCE s", "TLS", `tls = "`)
						return
					}
					w := e.Wire(t, e.Addr(), wireLogin{})
					if got := w.cipher(); (got != "") != want.encrypted {
						t.Errorf("cipher of the connection to the server: got %q, want one: %v", got, want.encrypted)
					}
					createSequence(t, e, "s")
					if got := w.rows("SELECT NEXTVAL('s')")[0]; got != "1" {
						t.Errorf("a number: got %s, want 1", got)
					}
					// A long text in both directions takes many TLS records.
					if long := w.query("SELECT LENGTH('" + strings.Repeat("x", 3<<20) + "') AS n"); !strings.Contains(string(long), fmt.Sprint(3<<20)) {
						t.Errorf("a long statement: got %d bytes, want the length in them", len(long))
					}
					if got := len(w.rows("SELECT REPEAT('y', 3000000)")[0]); got != 3000000 {
						t.Errorf("a long row: got %d bytes, want 3000000", got)
					}
				})
			}
		})
	}
}

// compareWithClient checks that the command-line client succeeds or fails in the same mode as the
// proxy.
func (e *env) compareWithClient(t *testing.T, mode tlsfiles.Mode, ca *mysqltest.CA, want bool) {
	t.Helper()
	cli := e.Servers[0].Client(t)
	args := map[tlsfiles.Mode][]string{
		tlsfiles.Disabled:       {"--skip-ssl"},
		tlsfiles.VerifyIdentity: {"--ssl", "--ssl-verify-server-cert", "--ssl-ca=" + ca.File},
	}[mode]
	if out, _ := osexec.CommandContext(t.Context(), cli, "--version").CombinedOutput(); !strings.Contains(string(out), "MariaDB") {
		args = []string{"--ssl-mode=" + string(mode)}
		if mode == tlsfiles.VerifyCA || mode == tlsfiles.VerifyIdentity {
			args = append(args, "--ssl-ca="+ca.File)
		}
	}
	if args == nil {
		return // MariaDB's client has no such mode; its --ssl is PREFERRED, up to 10.11
	}
	// MariaDB's client 11.4 and later does not check the name in the certificate for 127.0.0.1, but
	// does for localhost.
	_, port, _ := net.SplitHostPort(e.Servers[0].Addr())
	args = append([]string{"--no-defaults", "--protocol=tcp", "-h", "localhost", "-P", port, "-uroot", "-e", "SELECT 1"}, args...)
	out, err := osexec.CommandContext(t.Context(), cli, args...).CombinedOutput()
	if got := err == nil; got != want {
		t.Errorf("%s %s: got %v, %s, want success: %v", cli, strings.Join(args, " "), err, out, want)
	}
}

func TestAccountsThatDemandTLSAreServedWithIt(t *testing.T) {
	ca := mysqltest.NewCA(t)
	s := mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	client, stranger := ca.Client(t, "proxy"), mysqltest.NewCA(t).Client(t, "proxy")
	plain := tlsfiles.ClientFiles{Mode: tlsfiles.Disabled}
	encrypted := tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File}
	shown := encrypted
	shown.Cert, shown.Key = client.CertFile, client.KeyFile
	strange := encrypted
	strange.Cert, strange.Key = stranger.CertFile, stranger.KeyFile
	for _, test := range []struct {
		require string
		files   tlsfiles.ClientFiles
		code    uint16
	}{
		{"SSL", plain, 1045},
		{"SSL", encrypted, 0},
		{"X509", plain, 1045},
		{"X509", encrypted, 1045},
		{"X509", shown, 0},
		{"SUBJECT '/CN=proxy'", shown, 0},
		{"SUBJECT '/CN=other'", shown, 1045},
		{"NONE", strange, 1429},
	} {
		t.Run(fmt.Sprintf("%s, %s, %v", test.require, test.files.Mode, test.files.Cert != ""), func(t *testing.T) {
			e := newEnv(t, setup{
				Servers: []*mysqltest.Server{s},
				Backend: func(o *backend.Options) {
					o.Shards[0].Security = secured(t, test.files)
				},
				Sequence: func(o *sequence.Options) { o.Servers[0].Security = secured(t, shown) },
			})
			s.Exec(t, "ALTER USER "+e.User+" REQUIRE "+test.require)
			c := e.Conn(t, "", nil)
			if test.code != 0 {
				wantError(t, c, test.code, "SELECT 1")
				if test.code == 1429 {
					wantError(t, c, test.code, "SELECT 1", "tls_cert_file")
				}
				return
			}
			for range 3 { // the later ones resume the session
				if w := e.Wire(t, e.Addr(), wireLogin{}); w.cipher() == "" {
					t.Errorf("REQUIRE %s: the connection is not encrypted", test.require)
				}
			}
			createSequence(t, e, "s")
			if got := value(t, c, "SELECT NEXTVAL('s')"); got != "1" {
				t.Errorf("REQUIRE %s: got number %s, want 1", test.require, got)
			}
		})
	}
}

// authPlugins returns the server's plugins for accounts, with the clause that creates an account
// with each.
func authPlugins(t *testing.T, s *mysqltest.Server) map[string]string {
	t.Helper()
	pool := s.DB(t, "")
	_, _ = pool.ExecContext(t.Context(), "INSTALL SONAME 'auth_ed25519'") // only where the server has the plugin
	rows, err := pool.QueryContext(t.Context(), "SELECT plugin_name FROM information_schema.plugins WHERE plugin_type = 'AUTHENTICATION' AND plugin_status = 'ACTIVE'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	has := make(map[string]string)
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		switch name {
		case "mysql_native_password", "ed25519":
			has[name] = "IDENTIFIED VIA " + name + " USING PASSWORD('%s')"
		case "caching_sha2_password", "sha256_password":
			has[name] = "IDENTIFIED WITH " + name + " BY '%s'"
		}
		if name == "mysql_native_password" && s.Flavour() == "MySQL" {
			has[name] = "IDENTIFIED WITH " + name + " BY '%s'"
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return has
}

// TestTheProxyLogsInByEveryPlugin is about the way from the proxy to the server. Each login is made
// twice: caching_sha2_password asks for the password itself only the first time.
func TestTheProxyLogsInByEveryPlugin(t *testing.T) {
	ca := mysqltest.NewCA(t)
	s := mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	rightKey := filepath.Join(s.DataDir(), "public_key.pem") // only MySQL has this file
	if _, err := os.Stat(rightKey); err != nil {
		rightKey = ""
	}
	wrongKey := writePublicKey(t)
	plugins := authPlugins(t, s)
	if len(plugins) == 0 {
		t.Fatal("the server has no plugin that this test knows")
	}
	for plugin, create := range plugins {
		for _, way := range []struct {
			name, address string
			files         tlsfiles.ClientFiles
		}{
			{"plain", s.Addr(), tlsfiles.ClientFiles{Mode: tlsfiles.Disabled}},
			{"plain with the right key", s.Addr(), tlsfiles.ClientFiles{Mode: tlsfiles.Disabled, PublicKey: rightKey}},
			{"plain with a wrong key", s.Addr(), tlsfiles.ClientFiles{Mode: tlsfiles.Disabled, PublicKey: wrongKey}},
			{"TLS", s.Addr(), tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File}},
			{"socket", "unix:" + s.Socket(), tlsfiles.ClientFiles{Mode: tlsfiles.Disabled}},
			{"socket with TLS", "unix:" + s.Socket(), tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File, ServerName: "127.0.0.1"}},
		} {
			t.Run(plugin+"/"+way.name, func(t *testing.T) {
				const user, password = "by_plugin", "pässword's"
				s.Exec(t, "CREATE USER "+user+"@'%' "+fmt.Sprintf(create, "pässword''s"), "GRANT ALL ON *.* TO "+user+"@'%'")
				t.Cleanup(func() { s.Exec(t, "DROP USER "+user) })
				e := newEnv(t, setup{
					Servers: []*mysqltest.Server{s},
					Proxy: func(o *proxy.Options) {
						o.Users = append(o.Users, proxy.User{Name: user, Password: password})
					},
					Backend: func(o *backend.Options) {
						o.Shards[0].Nodes, o.Shards[0].Security = []string{way.address}, secured(t, way.files)
					},
					Sequence: func(o *sequence.Options) {
						o.Servers[0].User, o.Servers[0].Password = user, password
						o.Servers[0].Security = secured(t, way.files)
						if path, ok := strings.CutPrefix(way.address, "unix:"); ok {
							o.Servers[0].Network, o.Servers[0].Addr = "unix", path
						}
					},
				})
				login := func(m *mysql.Config) { m.User, m.Passwd = user, password }
				if way.files.PublicKey == wrongKey && (plugin == "caching_sha2_password" || plugin == "sha256_password") {
					wantError(t, e.Conn(t, "", login), 1045, "SELECT 1")
					return // nothing decrypts what is encrypted with this key
				}
				for range 2 {
					c := e.Conn(t, "", login)
					if got := value(t, c, "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)"); got != user {
						t.Errorf("logged in as %s, want %s", got, user)
					}
				}
				createSequence(t, e, "s") // the driver uses the same account
			})
		}
	}
}

func TestTheCertificatesThatServersMakeThemselvesCanBeUsed(t *testing.T) {
	s := mysqltest.Shared(t)
	modes := map[tlsfiles.Mode]string{tlsfiles.Preferred: "", tlsfiles.Required: ""}
	if ca := filepath.Join(s.DataDir(), "ca.pem"); !s.IsMariaDB() {
		modes[tlsfiles.VerifyCA] = ca // MySQL keeps its CA in the data directory
	} else if s.Binary().AtLeast(11, 4) {
		s = mysqltest.Start(t, "--ssl-cert=", "--ssl-key=") // others have one from a file
	} else {
		delete(modes, tlsfiles.Required)
	}
	for mode, ca := range modes {
		t.Run(string(mode), func(t *testing.T) {
			e := newEnv(t, setup{Servers: []*mysqltest.Server{s}, Backend: func(o *backend.Options) {
				o.Shards[0].Security = secured(t, tlsfiles.ClientFiles{Mode: mode, CA: ca})
			}})
			w := e.Wire(t, e.Addr(), wireLogin{})
			if got, want := w.cipher() != "", len(modes) > 1; got != want {
				t.Errorf("the connection to the server is encrypted: %v, want %v", got, want)
			}
		})
	}
}

func TestUsersAreCheckedByTheServerOverTLS(t *testing.T) {
	ca := mysqltest.NewCA(t)
	s := mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	serverTLS, clientTLS := testTLS()
	for _, withTLS := range []bool{false, true} {
		t.Run(fmt.Sprintf("client with TLS: %v", withTLS), func(t *testing.T) {
			e := newEnv(t, setup{
				Servers: []*mysqltest.Server{s},
				Proxy: func(o *proxy.Options) {
					byServer(o)
					o.TLS = serverTLS
				},
				Backend: func(o *backend.Options) {
					o.Shards[0].Security = secured(t, tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File})
				},
			})
			// REQUIRE SSL is about the connection that the server sees.
			s.Exec(t, "ALTER USER "+e.User+" REQUIRE SSL")
			login := wireLogin{}
			if withTLS {
				login.TLS = clientTLS
			}
			for range 2 { // the full exchange of caching_sha2_password, and the fast one
				if w := e.Wire(t, e.Addr(), login); w.cipher() == "" {
					t.Error("the connection to the server is not encrypted")
				}
			}
			wrong := "wrong"
			login.Password = &wrong
			if _, err := e.tryWire(t, e.Addr(), login); err == nil || !strings.Contains(err.Error(), "1045") {
				t.Errorf("wrong password: got %v, want 1045", err)
			}
			s.Exec(t, "ALTER USER "+e.User+" REQUIRE NONE") // the test's own connections have no TLS
		})
	}
}

// writePublicKey writes a public key whose private half no server has.
func writePublicKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(crand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "public_key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
