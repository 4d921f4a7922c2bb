package protocol

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// loginServer is a server that logs clients in with ServerLogin and answers every
// command with OK.
type loginServer struct {
	t        testing.TB
	listener net.Listener
	login    ServerLogin
	lookup   func(user string) (Account, bool)
	wait     sync.WaitGroup

	mu      sync.Mutex
	results []loginResult // guarded by mu
	next    uint32        // guarded by mu
}

// loginResult is the outcome of one connection: of its login and of each later change of user.
type loginResult struct {
	hello *ClientHello
	err   error
	// usedOld: the password was the account's old one.
	usedOld bool
	steps   []string // "in 32", "out 2": the packets of the login and their lengths
}

var testUsers = map[string]Account{
	"app":   {Password: "s3cret pässword"},
	"other": {Password: "other"},
	"open":  {},
}

func lookupTestUser(user string) (Account, bool) {
	a, ok := testUsers[user]
	return a, ok
}

var testRSA = NewRSAKeys()

// loginDeadline bounds each login of the tests.
const loginDeadline = 10 * time.Second

func startLoginServer(t testing.TB, network string, change func(*ServerLogin)) *loginServer {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &loginServer{t: t, listener: l, next: 1 << 31, login: ServerLogin{
		Version: "8.4.3", Capabilities: Relayable, Collation: 45, Status: Autocommit,
		RSA: testRSA,
	}, lookup: lookupTestUser}
	if change != nil {
		change(&s.login)
	}
	s.wait.Go(s.accept)
	t.Cleanup(func() {
		l.Close()
		s.wait.Wait()
	})
	return s
}

func (s *loginServer) addr() string { return s.listener.Addr().String() }

func (s *loginServer) accept() {
	for {
		nc, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.wait.Go(func() { s.serve(nc) })
	}
}

func (s *loginServer) serve(nc net.Conn) {
	conn, err := NewConn(nc, 0, 0)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(loginDeadline)); err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	login, lookup := s.login, s.lookup
	login.ConnectionID = s.next
	s.next++
	s.mu.Unlock()

	traced := &tracedConn{Conn: conn}
	attempt, err := login.Receive(traced)
	usedOld := false
	hello, err := judged(lookup)(attempt, err)
	if attempt != nil {
		usedOld = attempt.UsedOld
	}
	s.report(loginResult{hello: hello, err: err, usedOld: usedOld, steps: traced.steps})
	if err != nil {
		return
	}
	ok := AppendOK(nil, 0, OK{Status: Autocommit})[HeaderSize:]
	for conn.WritePacket(ok) == nil {
		command, err := conn.ReadPacket(1 << 20)
		if err != nil || len(command) == 0 || Command(command[0]) == ComQuit {
			return
		}
		if Command(command[0]) == ComChangeUser {
			traced.steps = nil
			hello, err = judged(lookup)(login.ReceiveChangeUser(traced, bytes.Clone(command), hello))
			s.report(loginResult{hello: hello, err: err, steps: traced.steps})
			if err != nil {
				return
			}
		}
	}
}

// judged verifies an attempt.
func judged(lookup func(user string) (Account, bool)) func(*Attempt, error) (*ClientHello, error) {
	return func(a *Attempt, err error) (*ClientHello, error) {
		if err != nil {
			return nil, err
		}
		account, exists := lookup(a.Hello.User)
		if err := a.Verify(account, exists); err != nil {
			return nil, err
		}
		return &a.Hello, nil
	}
}

func (s *loginServer) report(r loginResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
}

// take waits for the next result.
func (s *loginServer) take(t testing.TB) loginResult {
	t.Helper()
	for end := time.Now().Add(loginDeadline); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		if len(s.results) > 0 {
			r := s.results[0]
			s.results = s.results[1:]
			s.mu.Unlock()
			return r
		}
		s.mu.Unlock()
		if time.Now().After(end) {
			t.Fatal("the server reports no login")
		}
	}
}

// tracedConn writes down the lengths of the packets that pass.
type tracedConn struct {
	*Conn
	steps []string
}

func (c *tracedConn) ReadPacket(limit int) ([]byte, error) {
	b, err := c.Conn.ReadPacket(limit)
	c.steps = append(c.steps, fmt.Sprintf("in %d", len(b)))
	return b, err
}

func (c *tracedConn) WritePacket(b []byte) error {
	c.steps = append(c.steps, fmt.Sprintf("out %d", len(b)))
	return c.Conn.WritePacket(b)
}

// dialLogin connects to addr.
func dialLogin(t testing.TB, network, addr string) *Conn {
	t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := NewConn(nc, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(loginDeadline)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// dial connects to the server.
func (s *loginServer) dial(t testing.TB) *Conn {
	t.Helper()
	return dialLogin(t, s.listener.Addr().Network(), s.addr())
}

// testCertificate is made for 127.0.0.1; the pool trusts it.
var testCertificate = sync.OnceValue(func() (made struct {
	cert tls.Certificate
	pool *x509.CertPool
	pem  []byte
	key  []byte
},
) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "seqproxy test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	made.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	made.key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if made.cert, err = tls.X509KeyPair(made.pem, made.key); err != nil {
		panic(err)
	}
	made.pool = x509.NewCertPool()
	made.pool.AppendCertsFromPEM(made.pem)
	return made
})

func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{testCertificate().cert}, MinVersion: tls.VersionTLS12}
}

func clientTLS() *tls.Config {
	return &tls.Config{RootCAs: testCertificate().pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

// socketPair returns both ends of a TCP connection.
func socketPair(t testing.TB) (client, server *Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client = dialLogin(t, "tcp", l.Addr().String())
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if server, err = NewConn(nc, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
