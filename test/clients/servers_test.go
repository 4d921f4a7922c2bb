package clients_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }

// The account that all clients use, on the server and at the proxy.
const (
	user     = "app"
	password = "s3cret pässword"
)

// relayedUser is an account of the server that the proxy's configuration does not name.
const relayedUser = "app2"

// sequence is a sequence of the proxy.
const sequence = "photos"

// place is a private server with the program seqproxy in front of it.
type place struct {
	server *mysqltest.Server
	proxy  string // the address of the proxy
	admin  string // its admin address
	ca     string // the file of its certificate
	dir    string
	log    func() string // what the proxy has logged
}

// start makes a place that ends with the test. The proxy must end in order, without an error in its
// log.
func start(t *testing.T) *place {
	t.Helper()
	if testing.Short() {
		t.Skip("clients of other languages are for CI; without -short they are tried here")
	}
	args := []string{"--max-allowed-packet=64M", "--local-infile=1", "--server-id=1", "--log-bin=binlog"}
	p := &place{server: mysqltest.Start(t, args...), dir: t.TempDir()}
	p.server.Exec(t, "SET GLOBAL log_bin_trust_function_creators = 1")
	for _, name := range []string{user, relayedUser} {
		p.letIn(t, p.stranger(t, name))
	}
	p.startProxy(t)
	return p
}

// stranger creates an account that has never logged in. caching_sha2_password then asks for the
// password itself.
func (p *place) stranger(t *testing.T, name string) string {
	t.Helper()
	p.server.Exec(t, "CREATE USER '"+name+"'@'%' IDENTIFIED BY '"+password+"'",
		"GRANT ALL ON *.* TO '"+name+"'@'%' WITH GRANT OPTION")
	return name
}

// letIn logs in once, so that the server's cache of caching_sha2_password has the account. Clients
// then need neither TLS nor the server's RSA key.
func (p *place) letIn(t *testing.T, name string) {
	t.Helper()
	db := p.open(t, p.server.Addr(), "", func(c *mysql.Config) { c.User = name })
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
}

// config returns go-sql-driver's configuration for the account.
func config(addr, schema string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr, c.DBName = user, password, "tcp", addr, schema
	c.Timeout, c.ReadTimeout = 10*time.Second, 60*time.Second
	return c
}

// open opens a pool of the account, closed when the test ends.
func (p *place) open(t *testing.T, addr, schema string, change func(*mysql.Config)) *sql.DB {
	t.Helper()
	c := config(addr, schema)
	if change != nil {
		change(c)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() }) // the test may have broken it
	return db
}

// startProxy builds the program and runs it in front of the server. It has the race detector if the
// tests have it.
func (p *place) startProxy(t *testing.T) {
	t.Helper()
	var flags []string
	if mysqltest.Race {
		flags = append(flags, "-race")
	}
	binary := mysqltest.Program(t, flags...)
	cert, key := p.makeCertificate(t)
	p.ca = cert
	file := filepath.Join(p.dir, "seqproxy.toml")
	text := fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin.listen = "127.0.0.1:0"
admin_users = [%[1]q]
unknown_user = "backend"
[log]
format = "json"
[tls]
cert_file = %[3]q
key_file = %[4]q
[[user]]
name = %[1]q
password = %[2]q
[sequence]
allocate_timeout = "30s"
[[sequence.server]]
address = %[5]q
user = "root"
[[shard]]
name = "main"
[[shard.node]]
address = %[5]q
%[6]s`, user, password, cert, key, p.server.Addr(), bindings()+kindBindings())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	// The shell ends the proxy when the shell's input ends, which happens even if the tests are
	// killed.
	cmd := exec.Command("sh", "-c", `"$@" & p=$!; read -r _; kill $p; wait $p`, "sh", binary, "-config", file)
	cmd.Env = append(os.Environ(), "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log lockedText
	cmd.Stdout, cmd.Stderr = &log, &log
	p.log = log.String
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = stdin.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the proxy ended with %v", err)
			}
		case <-time.After(60 * time.Second):
			_ = cmd.Process.Kill() // the shell; the proxy dies when it next logs
			t.Error("the proxy did not end within a minute")
		}
		p.checkLog(t)
	})
	p.proxy, p.admin = awaitAddresses(t, &log)

	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	db := p.open(t, p.proxy, "", nil)
	for _, name := range boundTables {
		if _, err := db.ExecContext(ctx, fmt.Sprintf("CREATE SEQUENCE %s START WITH %d", name, firstFilled)); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitAddresses waits until the proxy says where it listens.
func awaitAddresses(t *testing.T, log *lockedText) (address, admin string) {
	t.Helper()
	listening := regexp.MustCompile(`"event":"listening".*"address":"([^"]+)","admin":"([^"]+)"`)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if m := listening.FindStringSubmatch(log.String()); m != nil {
			return m[1], m[2]
		}
	}
	t.Fatalf("the proxy logged no address:\n%s", log.String())
	return "", ""
}

// checkLog fails the test if the log has a password, an error, a race or a panic.
func (p *place) checkLog(t *testing.T) {
	for line := range strings.Lines(p.log()) {
		switch {
		case strings.Contains(line, password):
			t.Errorf("a password is in the proxy's log: %s", line)
		case !strings.HasPrefix(line, "{") || strings.Contains(line, `"level":"error"`):
			t.Errorf("the proxy logged: %s", line)
		}
	}
}

// makeCertificate writes a certificate for 127.0.0.1 and its key.
func (p *place) makeCertificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "127.0.0.1"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(p.dir, "server.crt"), filepath.Join(p.dir, "server.key")
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// lockedText is a buffer for one writer and concurrent readers.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wiretap forwards connections and notes whether a part of the big value passed in clear, in either
// direction.
type wiretap struct {
	addr string
	seen func() bool
}

// tap is a wiretap in front of an address, until the test's end.
func tap(t *testing.T, to string) wiretap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		seen  bool
		group sync.WaitGroup
	)
	pass := func(dst, src net.Conn) {
		defer group.Done()
		defer dst.Close() //nolint:errcheck // the other direction ends with this one
		var before []byte // the end of earlier data, since the text may be cut in two
		buf := make([]byte, 64<<10)
		for {
			n, err := src.Read(buf)
			chunk := append(before, buf[:n]...)
			if someOfIt.Match(chunk) {
				mu.Lock()
				seen = true
				mu.Unlock()
			}
			before = slices.Clone(chunk[max(0, len(chunk)-partOfIt):])
			if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			group.Add(2)
			go pass(server, client)
			go pass(client, server)
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return wiretap{addr: listener.Addr().String(), seen: func() bool {
		mu.Lock()
		defer mu.Unlock()
		return seen
	}}
}
