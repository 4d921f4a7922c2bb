package proxy_test

import (
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// MariaDB's client since 11.4 trusts an unsigned certificate if the server proves that it knows the
// password. The client does not check an address of this machine, but does check a name.
func TestAClientTrustsTheProxysCertificateByItsPassword(t *testing.T) {
	shared := mysqltest.Shared(t)
	if !shared.IsMariaDB() || !shared.Binary().AtLeast(11, 4) {
		t.Logf("the client of %s does not know it", shared.Version())
		return
	}
	serverTLS, _ := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.TLS, o.RelayLogins = serverTLS, true
		o.Users = append(o.Users, proxy.User{Name: "proof_two", Password: "new", OldPassword: "old"})
	}})
	account(t, shared, "proof_two@'%'", "IDENTIFIED BY 'new'")
	account(t, shared, "proof_relayed@'%'", "IDENTIFIED BY 'pw'")
	cli := func(addr, schema, user, password string, more ...string) string {
		return ownClient(t, shared, addr, append([]string{"-h", "localhost", "-u", user, "--password=" + password, "-D", schema, "-e", `\s`}, more...)...)
	}
	if out := cli(shared.Addr(), "", e.User, e.Password); !strings.Contains(out, "Cipher in use is TLS") {
		t.Errorf("direct: got\n%s", out)
	}
	for _, schema := range []string{"", e.Schemas[0]} {
		// With a schema the proxy relays the server's own OK.
		if out := cli(e.Addr(), schema, e.User, e.Password); !strings.Contains(out, "Cipher in use is TLS") {
			t.Errorf("schema %q: got\n%s", schema, out)
		}
	}
	for _, password := range []string{"new", "old"} {
		if out := cli(e.Addr(), "", "proof_two", password); !strings.Contains(out, "Cipher in use is TLS") {
			t.Errorf("with the %s password: got\n%s", password, out)
		}
	}
	// For a user whom only the server knows, the proxy cannot prove it.
	if out := cli(e.Addr(), "", "proof_relayed", "pw"); !strings.Contains(out, "NOT trusted") {
		t.Errorf("a relayed login: got\n%s\nwant a certificate that is not trusted", out)
	}
	if out := cli(e.Addr(), "", "proof_relayed", "pw", "--skip-ssl-verify-server-cert"); !strings.Contains(out, "Cipher in use is TLS") {
		t.Errorf("a relayed login by a client that does not look: got\n%s", out)
	}
}

// ownClient runs the command-line client that came with a server, because the one in PATH may be
// older, and returns its output.
func ownClient(t *testing.T, s *mysqltest.Server, addr string, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(s.Binary().Path)
	if plugins, _ := filepath.Glob(filepath.Join(home, "..", "lib", "*", "libmariadb3", "plugin")); len(plugins) == 1 {
		args = append([]string{"--plugin-dir=" + plugins[0]}, args...)
	}
	program := filepath.Join(home, "mariadb")
	if _, err := os.Stat(program); err != nil {
		program = s.Client(t)
	}
	args = append([]string{"--no-defaults", "--protocol=TCP", "-h", host, "-P", port}, args...)
	out, err := osexec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	return string(out)
}
