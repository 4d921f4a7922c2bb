package proxy_test

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// useTLS is the option that makes CLI's client use TLS.
func (e *env) useTLS(t testing.TB) string {
	t.Helper()
	if filepath.Base(e.Servers[0].Client(t)) == "mysql" {
		return "--ssl-mode=REQUIRED"
	}
	return "--ssl"
}

// Whatever plugin checks a client's login, its session is the same, and the proxy's own login at
// the server does not depend on it.
func TestClientsLogInByThePluginThatTheyName(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.TLS = serverTLS }})
	plugins := []string{"caching_sha2_password", "sha256_password", "mysql_clear_password"}
	if e.Servers[0].IsMariaDB() { // the client of MySQL 9 has no mysql_native_password
		plugins = append(plugins, "mysql_native_password")
	}
	for _, plugin := range plugins {
		for _, transport := range []string{"plain", "TLS"} {
			t.Run(plugin+"/"+transport, func(t *testing.T) {
				args := []string{"--default-auth=" + plugin}
				if transport == "TLS" {
					args = append(args, e.useTLS(t))
				}
				if plugin == "mysql_clear_password" {
					args = append(args, "--enable-cleartext-plugin")
				}
				out := e.CLI(t, e.Addr(), e.Schemas[0], "SELECT CONCAT('in ', DATABASE()) AS x;", args...)
				if !strings.Contains(out, "in "+e.Schemas[0]) {
					t.Errorf("right password: got\n%s", out)
				}
				out = e.CLI(t, e.Addr(), "", "SELECT 1", append(args, "--password=wrong")...)
				if !strings.Contains(out, "ERROR 1045 (28000): Access denied for user '"+e.User+"'@'127.0.0.1' (using password: YES)") {
					t.Errorf("wrong password: got\n%s", out)
				}
			})
		}
	}
	// The proxy does not ask for a clear password a driver that would give it.
	for _, cfg := range []*tls.Config{nil, clientTLS} {
		if err := e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.AllowCleartextPasswords, m.TLS = true, cfg }); err != nil {
			t.Errorf("a driver that allows clear text, TLS %v: %v", cfg != nil, err)
		}
	}
}
