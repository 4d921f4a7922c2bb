package protocol

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"seqproxy/internal/mysqld"
)

// mariadbGreeting is the greeting of a proxy in front of MariaDB: its version, without the flags
// that it does not offer. Without LongPassword clients look for MariaDB's own flags in the
// greeting.
const mariadbGreeting = "MariaDB's greeting"

func likeMariaDB(l *ServerLogin) {
	l.Version = "5.5.5-10.11.6-MariaDB"
	l.Capabilities = Relayable & 0x81fff7fe
}

func TestGoDriverLogsIn(t *testing.T) {
	for _, mode := range []struct {
		name, network string
		withTLS       bool
	}{{"plain", "tcp", false}, {"TLS", "tcp", true}, {"socket", "unix", false}, {mariadbGreeting, "tcp", false}} {
		s := startLoginServer(t, mode.network, func(l *ServerLogin) {
			l.TLS = serverTLS()
			if mode.name == mariadbGreeting {
				likeMariaDB(l)
			}
		})
		for _, c := range []struct {
			user, password string
			using          string // of the error; "": the login succeeds
		}{
			{"app", "s3cret pässword", ""},
			{"open", "", ""},
			{"app", "wrong", "YES"},
			{"app", "s3cret pässwor", "YES"},
			{"app", "", "NO"},
			{"open", "something", "YES"},
			{"nobody", "wrong", "YES"},
			{"nobody", "", "NO"},
		} {
			t.Run(mode.name+"/"+c.user+":"+c.password, func(t *testing.T) {
				cfg := driver.NewConfig()
				cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = c.user, c.password, mode.network, s.addr(), "album0"
				cfg.ConnectionAttributes = "program_name:test"
				if mode.withTLS {
					cfg.TLS = clientTLS()
				}
				host := "127.0.0.1"
				if mode.network == "unix" {
					host = "localhost"
				}
				err := pingOnce(t, cfg)
				got := s.take(t)
				if c.using == "" {
					if err != nil || got.err != nil {
						t.Fatalf("login: client got %v, server got %v, want both nil", err, got.err)
					}
					h := got.hello
					if h.User != c.user || h.Database != "album0" || h.Plugin != "caching_sha2_password" || h.PasswordUsed != (c.password != "") {
						t.Errorf("got login %+v", h)
					}
					if v, _ := h.Attrs.Get("program_name"); v != "test" {
						t.Errorf("got attributes %q, want program_name test among them", h.Attrs)
					}
					return
				}
				wantRefusal(t, err, got.err, c.user, host, c.using)
			})
		}
	}
}

// pingOnce opens one connection and closes it.
func pingOnce(t *testing.T, cfg *driver.Config) error {
	t.Helper()
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), loginDeadline)
	defer cancel()
	db := sql.OpenDB(connector)
	defer db.Close()
	return db.PingContext(ctx)
}

func wantRefusal(t *testing.T, client, server error, user, host, using string) {
	t.Helper()
	text := fmt.Sprintf("Access denied for user '%s'@'%s' (using password: %s)", user, host, using)
	var me *driver.MySQLError
	if !errors.As(client, &me) || me.Number != 1045 || string(me.SQLState[:]) != "28000" || me.Message != text {
		t.Errorf("client got %v, want 1045 (28000): %s", client, text)
	}
	var ae *AuthError
	if !errors.As(server, &ae) {
		t.Fatalf("server got %v, want an *AuthError", server)
	}
	if _, exists := lookupTestUser(user); ae.User != user || ae.Host != host || ae.UsingPassword != (using == "YES") || ae.UserExists != exists {
		t.Errorf("server got %+v", ae)
	}
}

func TestMariaDBClientLogsIn(t *testing.T) {
	client, err := mysqld.FindClient()
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, ca, testCertificate().pem)
	const sha256Name, clearName, sha2Name, nativeName = "sha256_password", "mysql_clear_password", "caching_sha2_password", "mysql_native_password"
	for _, mode := range []struct {
		name, network string
		withTLS       bool
		asks          string // the client's --default-auth
		plugin        string // the plugin of the last answer; "": any
	}{
		{"plain", "tcp", false, "", ""},
		{"native by default", "tcp", false, nativeName, nativeName},
		{"sha2 by default", "tcp", false, sha2Name, sha2Name},
		{"sha256 by default", "tcp", false, sha256Name, sha256Name},
		{"clear text by default", "tcp", false, clearName, sha2Name},
		{"TLS", "tcp", true, "", ""},
		{"TLS, sha2 by default", "tcp", true, sha2Name, sha2Name},
		{"TLS, sha256 by default", "tcp", true, sha256Name, sha256Name},
		{"TLS, clear text by default", "tcp", true, clearName, clearName},
		{"socket", "unix", false, "", ""},
		{"socket, sha256 by default", "unix", false, sha256Name, sha256Name},
		{"socket, clear text by default", "unix", false, clearName, clearName},
		{mariadbGreeting, "tcp", false, "", ""},
	} {
		// The client takes TLS wherever it is offered.
		s := startLoginServer(t, mode.network, func(l *ServerLogin) {
			if mode.withTLS {
				l.TLS = serverTLS()
			}
			if mode.name == mariadbGreeting {
				likeMariaDB(l)
			}
		})
		for _, c := range []struct {
			user, password string
			right          bool
		}{
			{"app", "s3cret pässword", true},
			{"open", "", true},
			{"app", "wrong", false},
			{"app", "", false},
			{"nobody", "wrong", false},
			{"nobody", "", false},
			{"open", "wrong", false},
		} {
			t.Run(mode.name+"/"+c.user+":"+c.password, func(t *testing.T) {
				args := []string{"--no-defaults", "--batch", "--user=" + c.user, "--execute=DO 1", "album0"}
				if mode.withTLS {
					args = append(args, "--ssl-ca="+ca)
				}
				if mode.asks != "" {
					args = append(args, "--default-auth="+mode.asks)
				}
				host := "127.0.0.1"
				if mode.network == "unix" {
					args = append(args, "--socket="+s.addr())
					host = "localhost"
				} else {
					_, port, _ := strings.Cut(s.addr(), ":")
					args = append(args, "--protocol=tcp", "--host=127.0.0.1", "--port="+port)
				}
				ctx, cancel := context.WithTimeout(context.Background(), loginDeadline)
				defer cancel()
				cmd := exec.CommandContext(ctx, client, args...)
				cmd.Env = append(os.Environ(), "MYSQL_PWD="+c.password)
				out, err := cmd.CombinedOutput()
				got := s.take(t)
				t.Logf("steps: %v", got.steps)
				if c.right {
					if err != nil || got.err != nil {
						t.Fatalf("login: client got %v %s, server got %v, want success", err, out, got.err)
					}
					if h := got.hello; h.Database != "album0" || h.PasswordUsed != (c.password != "") || h.Capabilities.Has(SSL) != mode.withTLS || (mode.plugin != "" && h.Plugin != mode.plugin) {
						t.Errorf("got login %+v, want one by %s", h, mode.plugin)
					}
					return
				}
				using := "YES"
				if c.password == "" {
					using = "NO"
				}
				want := fmt.Sprintf("ERROR 1045 (28000): Access denied for user '%s'@'%s' (using password: %s)", c.user, host, using)
				if err == nil || !strings.Contains(string(out), want) {
					t.Errorf("client got %v %s, want %s", err, out, want)
				}
				var ae *AuthError
				if !errors.As(got.err, &ae) {
					t.Errorf("server got %v, want an *AuthError", got.err)
				}
			})
		}
	}
}
