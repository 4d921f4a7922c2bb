package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/mysqltest"
)

func (c *changing) loginCases() []reloadCase {
	return []reloadCase{
		{
			keys: []string{"login_timeout"}, is: "closed",
			before: part{top: "login_timeout = '1h'"}, after: part{top: "login_timeout = '100ms'"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				nc, err := net.Dial("tcp", s.address())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, nc); err != nil && !errors.Is(err, syscall.ECONNRESET) {
					return err.Error()
				}
				return "closed"
			},
		},
		{
			keys: []string{"max_connections"}, was: "1040", is: "ok",
			before: part{top: "max_connections = 1"}, after: part{top: "max_connections = 2"},
			look: as("root", "r"),
		},
		{
			keys: []string{"max_user_connections"}, was: "1203", is: "ok",
			before: part{top: "max_user_connections = 1"}, after: part{top: "max_user_connections = 2"},
			look: as("app", "p"),
		},
		{
			keys: []string{"max_logins"}, is: "greeted",
			before: part{top: "max_logins = 1\nlogin_timeout = '1h'"}, after: part{top: "max_logins = 2\nlogin_timeout = '1h'"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				nc, err := net.Dial("tcp", s.address()) // takes a place and keeps it
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if _, err := nc.Read(make([]byte, 4)); err != nil {
					t.Fatal(err)
				}
				firstBytes(t, s)
				return "greeted"
			},
		},
		{
			keys: []string{"failed_logins"}, was: "at once", is: "delayed",
			before: part{top: "failed_logins = 0"}, after: part{top: "failed_logins = 1\nfailed_login_delay = '1ms'"},
			look: wrongLogin,
		},
		{
			keys: []string{"failed_login_exempt"}, was: "at once", is: "delayed",
			before: part{top: "failed_logins = 1\nfailed_login_exempt = ['127.0.0.1']"}, after: part{top: "failed_logins = 1\nfailed_login_delay = '1ms'"},
			look: wrongLogin,
		},
		{
			keys: []string{"failed_login_delay"}, was: "answered", is: "blocked",
			before: part{top: "failed_logins = 1\nlogin_timeout = '3h'\nfailed_login_delay = '1ms'"},
			after:  part{top: "failed_logins = 1\nlogin_timeout = '3h'\nfailed_login_delay = '1h'"},
			look:   manyWrongLogins,
		},
		{
			keys: []string{"proxy_protocol_from"}, was: "not read", is: "read",
			after: part{top: "proxy_protocol_from = ['127.0.0.1']"},
			look: func(t *testing.T, s *subject, _ *sql.Conn) string {
				nc, err := net.Dial("tcp", s.address())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				if _, err := io.WriteString(nc, "PROXY TCP4 192.0.2.9 192.0.2.1 1000 4306\r\n"); err != nil {
					t.Fatal(err)
				}
				c := mysql.NewConfig()
				c.User, c.Passwd, c.Net, c.Addr, c.Timeout, c.ReadTimeout = "app", "wrong", "tcp", s.address(), patience, patience
				c.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nc, nil }
				connector, err := mysql.NewConnector(c)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := connector.Connect(context.Background()); err != nil && strings.Contains(err.Error(), "'app'@'192.0.2.9'") {
					return "read"
				}
				return "not read"
			},
		},
	}
}

func wrongLogin(t *testing.T, s *subject, _ *sql.Conn) string {
	login(t, s.address(), "app", "wrong", nil)
	if strings.Contains(s.logged(), `"event":"logins delayed"`) {
		return "delayed"
	}
	return "at once"
}

// manyWrongLogins makes more wrong logins at the same time than may wait.
func manyWrongLogins(t *testing.T, s *subject, _ *sql.Conn) string {
	ctx, cancel := context.WithCancel(context.Background())
	const n = 18 // 16 may wait
	outcomes := make(chan string, n)
	for range n {
		go func() {
			c := mysql.NewConfig()
			c.User, c.Passwd, c.Net, c.Addr = "app", "wrong", "tcp", s.address()
			c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
				var d net.Dialer
				nc, err := d.DialContext(ctx, network, address)
				if err == nil {
					context.AfterFunc(ctx, func() { _ = nc.Close() })
				}
				return nc, err
			}
			connector, err := mysql.NewConnector(c)
			if err == nil {
				_, err = connector.Connect(ctx)
			}
			outcomes <- outcomeWord(err)
		}()
	}
	got := "answered"
	for i := range n {
		if <-outcomes == "1129" && i < n {
			got = "blocked"
			cancel() // the others wait
		}
	}
	cancel()
	return got
}

func (c *changing) userCases() []reloadCase {
	file := func(name string) string { return fmt.Sprintf("%q", filepath.Join(c.dir, name)) }
	extra := "[[user]]\nname = 'extra'\n"
	withTLS := fmt.Sprintf("[tls]\ncert_file = %q\nkey_file = %q\nclient_ca_file = %q\n", c.front.CertFile, c.front.KeyFile, c.ca.File)
	return []reloadCase{
		{keys: []string{"user.name"}, before: part{more: extra}, look: as("extra", ""), was: "ok", is: "1045"},
		{keys: []string{"user.password"}, before: part{more: extra}, after: part{more: extra + "password = 'x'\n"}, look: as("extra", "x"), was: "1045", is: "ok"},
		{
			keys:   []string{"user.password_file"},
			before: part{more: extra + "password_file = " + file("p1")}, after: part{more: extra + "password_file = " + file("p2")},
			look: as("extra", "two"), was: "1045", is: "ok",
		},
		{
			keys:   []string{"user.password_env"},
			before: part{more: extra + "password_env = 'RELOAD_P1'"}, after: part{more: extra + "password_env = 'RELOAD_P2'"},
			look: as("extra", "two"), was: "1045", is: "ok",
		},
		{keys: []string{"user.old_password"}, after: part{user: "old_password = 'x'"}, look: as("app", "x"), was: "1045", is: "ok"},
		{
			keys:   []string{"user.old_password_file"},
			before: part{user: "old_password_file = " + file("p1")}, after: part{user: "old_password_file = " + file("p2")},
			look: as("app", "two"), was: "1045", is: "ok",
		},
		{
			keys:   []string{"user.old_password_env"},
			before: part{user: "old_password_env = 'RELOAD_P1'"}, after: part{user: "old_password_env = 'RELOAD_P2'"},
			look: as("app", "two"), was: "1045", is: "ok",
		},
		{
			keys:   []string{"user.schema"},
			before: part{user: "schema = 'mysql'"}, after: part{user: fmt.Sprintf("schema = %q", c.schema)},
			look: as("app", "p", "SELECT DATABASE()"), was: "mysql", is: c.schema,
		},
		{
			keys:   []string{"user.max_connections"},
			before: part{user: "max_connections = 1"}, after: part{user: "max_connections = 2"},
			look: as("app", "p"), was: "1226", is: "ok",
		},
		{
			keys:   []string{"user.sequences"},
			before: part{user: "sequences = []"},
			look:   as("app", "p", "SELECT IF(NEXTVAL('photos') > 0, 'given', '')"), was: "1227", is: "given",
		},
		{
			keys:   []string{"user.require_tls"},
			before: part{more: withTLS}, after: part{user: "require_tls = true", more: withTLS},
			look: as("app", "p"), was: "ok", is: "1045",
		},
		{
			keys:   []string{"user.require_certificate"},
			before: part{more: withTLS}, after: part{user: "require_certificate = true", more: withTLS},
			look: overTLS(mysqltest.Certificate{}), was: "ok", is: "1045",
		},
		{
			keys:   []string{"user.certificate_subject"},
			before: part{more: withTLS}, after: part{user: "certificate_subject = '/CN=two'", more: withTLS},
			look: overTLS(c.one), was: "ok", is: "1045",
		},
		{
			keys:   []string{"user.certificate_issuer"},
			before: part{more: withTLS}, after: part{user: "certificate_issuer = '/CN=two'", more: withTLS},
			look: overTLS(c.one), was: "ok", is: "1045",
		},
	}
}

func (c *changing) tlsCases() []reloadCase {
	front := fmt.Sprintf("[tls]\ncert_file = %q\nkey_file = %q\n", c.front.CertFile, c.front.KeyFile)
	return []reloadCase{
		{keys: []string{"tls.cert_file", "tls.key_file"}, after: part{more: front}, look: overTLS(mysqltest.Certificate{}), was: "no TLS", is: "ok"},
		{
			keys:   []string{"tls.client_ca_file"},
			before: part{more: front + fmt.Sprintf("client_ca_file = %q\n", c.ca.File)}, after: part{more: front + fmt.Sprintf("client_ca_file = %q\n", c.wrongCA.File)},
			look: overTLS(c.stray), was: "no TLS", is: "ok",
		},
		{keys: []string{"tls.required"}, before: part{more: front}, after: part{more: front + "required = true\n"}, look: as("app", "p"), was: "ok", is: "3159"},
	}
}
