package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/zap/zapcore"

	"seqproxy/internal/child"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// fromThisMachine trusts balancers of this machine.
func fromThisMachine(o *proxy.Options) {
	o.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
}

// haproxy starts HAProxy with frontends on 127.0.0.1 and on a Unix socket, each with a backend line
// for to. It returns their addresses.
func haproxy(t *testing.T, to, send string) (addr, socket string) {
	t.Helper()
	binary := haproxyBinary(t)
	if binary == "" {
		t.Skip("HAProxy is not there")
	}
	addr, err := child.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	socket = filepath.Join(dir, "s")
	file := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Sprintf(`
defaults
	mode tcp
	timeout connect 5s
	timeout client 20s
	timeout server 20s
	timeout check 2s
listen tcp
	bind %s
	server proxy %s %s check inter 100ms
listen socket
	bind unix@%s
	server proxy %s %s
`, addr, to, send, socket, to, send)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := osexec.Command(binary, "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("haproxy: %s", out.String())
		}
	})
	for end := time.Now().Add(wireTimeout); ; time.Sleep(5 * time.Millisecond) {
		nc, err := net.Dial("tcp", addr)
		if err == nil {
			nc.Close()
			return addr, socket
		}
		if time.Now().After(end) {
			t.Fatalf("haproxy does not listen: %s", out.String())
		}
	}
}

func TestThroughHAProxyTheClientHasItsOwnAddress(t *testing.T) {
	e := newEnv(t, setup{Proxy: fromThisMachine})
	for _, send := range []string{"send-proxy", "send-proxy-v2", "send-proxy-v2-ssl-cn"} {
		t.Run(send, func(t *testing.T) {
			addr, socket := haproxy(t, e.Addr(), send)
			// Many clients on one machine: the test chooses the driver's address.
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 9)}}
			wrong := func(network, addr, host string) {
				t.Helper()
				config := mysql.NewConfig()
				config.User, config.Passwd, config.Net, config.Addr = e.User, "wrong", network, addr
				if network == "tcp" {
					config.DialFunc = from.DialContext
				}
				checkError(t, "wrong password", ping(t, config), 1045, fmt.Sprintf("'%s'@'%s' (using password: YES)", e.User, host))
			}
			wrong("tcp", addr, "127.0.0.9")
			wrong("unix", socket, "127.0.0.1") // no client's address: the balancer's own

			config := mysql.NewConfig()
			config.User, config.Passwd, config.Net, config.Addr, config.DialFunc = e.User, e.Password, "tcp", addr, from.DialContext
			if err := ping(t, config); err != nil {
				t.Errorf("driver: %v", err)
			}
			if out := e.CLI(t, addr, "", "SELECT 'through', CONNECTION_ID() >= 1 << 31"); !strings.Contains(out, "| through |") {
				t.Errorf("command-line client: got %q", out)
			}
			found := false
			for _, entry := range e.Logs.FilterMessage("login refused").All() {
				found = found || strings.HasPrefix(fmt.Sprint(entry.ContextMap()["client"]), "127.0.0.9:")
			}
			if !found {
				t.Errorf("the log does not have the client's address: %v", e.Logs.FilterMessage("login refused").All())
			}
		})
	}
	if n := e.Logs.FilterMessage("session ended").FilterLevelExact(zapcore.InfoLevel).Len(); n > 0 {
		t.Errorf("the balancer's checks of its server made %d lines in the log", n)
	}
	checkError(t, "a client without a header", e.tryLogin(t, e.Addr(), "", nil), 1043, "PROXY header")
}

// ping opens one connection and closes it.
func ping(t testing.TB, config *mysql.Config) error {
	t.Helper()
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := connector.Connect(t.Context())
	if err != nil {
		return err
	}
	return nc.Close()
}

// withHeader logs in with a wrong password behind a PROXY header, both in one write, and returns
// the refusal. A server that closes with bytes unread may lose its answer: withHeader tries again.
func withHeader(t *testing.T, addr, header, user string) error {
	t.Helper()
	for range 50 {
		c, err := protocol.NewConn(dialTCP(t, addr), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := protocol.ReadGreeting(c); err != nil {
			t.Fatal(err)
		}
		login := protocol.HandshakeResponse{
			Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth, User: user,
			Plugin: "mysql_native_password", AuthResponse: make([]byte, 20),
		}
		payload, err := login.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		all, _ := protocol.AppendPacket([]byte(header), payload, 1)
		if _, err := c.Write(all); err != nil {
			t.Fatal(err)
		}
		answer, err := c.ReadPacket(1 << 16)
		switch {
		case errors.Is(err, syscall.ECONNRESET):
			continue
		case err != nil:
			t.Fatal(err)
		}
		return protocol.ParseServerError(answer)
	}
	t.Fatalf("%s: no answer to %q", addr, header)
	return nil
}

// MariaDB accepts the header, too, so that the errors can be compared.
func TestARefusalNamesTheAddressInTheHeaderAsByTheServer(t *testing.T) {
	var version string
	if err := mysqltest.Shared(t).DB(t, "").QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(version, "MariaDB") {
		t.Skipf("%s does not take PROXY headers", version)
	}
	server := mysqltest.Start(t, "--proxy-protocol-networks=127.0.0.0/8")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) {
		o.ProxyProtocolFrom = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}})
	const four = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\xdc\x04\x10\xd2"
	for _, header := range []string{
		"PROXY TCP4 192.0.2.7 127.0.0.1 56324 4306\r\n",
		"PROXY TCP6 2001:db8::7 ::1 56324 4306\r\n",
		"PROXY UNKNOWN\r\n",
		four,
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00",
		"PROXY NONSENSE\r\n",
		"PROXY TCP4 a b c d\r\n",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x02ab",
	} {
		got, want := withHeader(t, e.Addr(), header, e.User), withHeader(t, server.Addr(), header, e.User)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v as direct", header, got, want)
		}
	}
}

func TestAHeaderFromAnAddressThatIsNotListedIsRefused(t *testing.T) {
	for name, from := range map[string][]netip.Prefix{
		"none is listed":  nil,
		"others are":      {netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("::1/128")},
		"others are, too": {netip.MustParsePrefix("10.0.0.0/8")},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
				o.ProxyProtocolFrom, o.LoginTimeout = from, time.Hour // the refusal does not wait for this
			}})
			err := withHeader(t, e.Addr(), "PROXY TCP4 192.0.2.7 127.0.0.1 56324 4306\r\n", e.User)
			var refused *protocol.ServerError
			if !errors.As(err, &refused) || refused.Code != 1130 {
				t.Errorf("got %v, want 1130", err)
			}
			if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
				t.Errorf("without a header: %v", err)
			}
		})
	}
}
