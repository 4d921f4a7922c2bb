package proxy_test

import (
	"bytes"
	"database/sql"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// otherHost is where relayFromOtherHost connects from: servers never count errors of 127.0.0.1.
const otherHost = "127.0.0.2"

// relayFromOtherHost relays connections to a server, which sees them come from otherHost. It
// returns its address.
func relayFromOtherHost(t testing.TB, server *mysqltest.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var pipes sync.WaitGroup
	pipes.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(otherHost)}, Timeout: wireTimeout}
			out, err := dialer.Dial("tcp", server.Addr())
			if err != nil {
				in.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				pipes.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // the end of one direction ends both
					way[0].Close()
					way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		l.Close()
		pipes.Wait()
	})
	return l.Addr().String()
}

// handshakeErrors returns how many faulty logins of otherHost a server has counted, and how many
// since its last login that succeeded: at max_connect_errors the server blocks the host.
func handshakeErrors(t testing.TB, db *sql.DB) (all, since int) {
	t.Helper()
	const query = "SELECT COUNT_HANDSHAKE_ERRORS, SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE IP = ?"
	err := db.QueryRow(query, otherHost).Scan(&all, &since)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return all, since
}

// startByOtherHost is an env whose logins are checked by a server that counts the errors of the
// proxy's host, and blocks it after a few.
func startByOtherHost(t testing.TB, change func(*proxy.Options), args ...string) (*env, *mysqltest.Server) {
	t.Helper()
	server := mysqltest.StartCountingHosts(t, append([]string{"--max-connect-errors=3"}, args...)...)
	node := relayFromOtherHost(t, server)
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{server},
		Proxy: func(o *proxy.Options) {
			byServer(o)
			if change != nil {
				change(o)
			}
		},
		Backend: func(o *backend.Options) { o.Shards[0].Nodes = []string{node} },
	})
	return e, server
}

// accountsByPlugin makes an account for each password plugin of a server, all with the password
// "pw", and returns their names. One has no password, one does not exist.
func accountsByPlugin(t testing.TB, s *mysqltest.Server) []string {
	t.Helper()
	names := []string{"nobody_here", "by_nothing"}
	account(t, s, "by_nothing@'%'", "")
	db := s.DB(t, "")
	if s.IsMariaDB() {
		for file, plugin := range map[string]string{"auth_ed25519": "ed25519", "auth_parsec": "parsec", "auth_mysql_sha2": "caching_sha2_password"} {
			if _, err := db.Exec("INSTALL SONAME '" + file + "'"); err != nil {
				t.Logf("the server has no %s: %v", plugin, err)
				continue
			}
			account(t, s, "by_"+plugin+"@'%'", "IDENTIFIED VIA "+plugin+" USING PASSWORD('pw')")
			account(t, s, "by_"+plugin+"_or_native@'%'", "IDENTIFIED VIA "+plugin+" USING PASSWORD('pw') OR mysql_native_password USING PASSWORD('pw')")
			names = append(names, "by_"+plugin, "by_"+plugin+"_or_native")
		}
		account(t, s, "by_native@'%'", "IDENTIFIED BY 'pw'")
		account(t, s, "by_native_twice@'%'", "IDENTIFIED VIA mysql_native_password USING PASSWORD('pw') OR mysql_native_password USING PASSWORD('other')")
		names = append(names, "by_native", "by_native_twice")
	} else {
		for _, plugin := range []string{"caching_sha2_password", "sha256_password"} {
			account(t, s, "by_"+plugin+"@'%'", "IDENTIFIED WITH "+plugin+" BY 'pw'")
			names = append(names, "by_"+plugin)
		}
	}
	slices.Sort(names)
	return names
}

// answerLengths are those of the plugins' answers, and others around them.
var answerLengths = []int{0, 1, 5, 19, 20, 21, 31, 32, 33, 63, 64, 65, 96, 128, 255, 256, 257, 512, 10000, 130 << 10}

// misbehave logs in as a client that sends senseless answers, or none, and returns how the login
// ended.
func misbehave(t *testing.T, addr, user string, r *rand.Rand) (code uint16) {
	t.Helper()
	c := dialPackets(t, "tcp", addr)
	defer c.Close()
	greeting, err := protocol.ReadGreeting(c)
	var refused *protocol.ServerError
	if errors.As(err, &refused) {
		return refused.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	response := protocol.HandshakeResponse{
		Capabilities: protocol.LongPassword | protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth,
		User:         user, Collation: 45, Plugin: greeting.Plugin,
	}
	if r.IntN(4) == 0 {
		response.Capabilities &^= protocol.PluginAuth
	}
	response.AuthResponse = bytes.Repeat([]byte{byte(r.IntN(2))}, []int{0, 1, 20, 32}[r.IntN(4)])
	payload, err := response.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if err := c.WritePacket(payload); err != nil {
			return 0
		}
		p, err := c.ReadPacket(1 << 16)
		if err != nil {
			return 0
		}
		if p[0] == 0xff {
			if err := protocol.ParseServerError(p); errors.As(err, &refused) {
				return refused.Code
			}
			t.Fatalf("got %x", p)
		}
		if p[0] == 0 { // as by_nothing may
			return 0
		}
		switch r.IntN(8) {
		case 0:
			return 0 // hang up
		case 1:
			c.SetPacketNum(uint8(r.IntN(256)))
		}
		payload = make([]byte, answerLengths[r.IntN(len(answerLengths))])
		for i := range payload {
			payload[i] = byte(r.IntN(3)) // 1 and 2 ask for keys, and texts end with 0
		}
	}
	return 0
}

// A server blocks a host after max_connect_errors logins that break off or are spoiled. For the
// server all clients are on the proxy's host.
func TestWhatClientsDoWrongInALoginDoesNotCountAgainstTheProxysHost(t *testing.T) {
	e, server := startByOtherHost(t, nil)
	names, db := accountsByPlugin(t, server), server.DB(t, "")
	r := rand.New(rand.NewPCG(21, 3))
	codes := map[uint16]int{}
	for range 40 {
		for _, name := range names {
			before, _ := handshakeErrors(t, db)
			code := misbehave(t, e.Addr(), name, r)
			codes[code]++
			if code == 1129 {
				t.Fatalf("%s: the proxy's host is blocked: %v", name, codes)
			}
			e.awaitSessions(t, 0)
			all, since := handshakeErrors(t, db)
			// With parsec a wrong password counts, and the server may ask an unknown user by any
			// plugin.
			parsec := slices.Contains(names, "by_parsec") && (strings.Contains(name, "parsec") || name == "nobody_here")
			if all != before && !parsec || since != 0 {
				t.Errorf("%s, answered with %d: it counts as a faulty login of the proxy's host: %d since the last one", name, code, since)
			}
		}
	}
	if codes[1045] == 0 || codes[0] == 0 {
		t.Errorf("got the errors %v, want 1045 among them, and none", codes)
	}
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("another client: %v", err)
	}
	// The test's way of counting works: direct, a few are enough.
	for range 4 {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(otherHost)}, Timeout: wireTimeout}
		nc, err := dialer.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		before, _ := handshakeErrors(t, db)
		if _, err := nc.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		nc.Close()
		eventually(t, "a faulty login is counted", func() bool {
			all, since := handshakeErrors(t, db)
			return all > before || since >= 3
		})
	}
	checkError(t, "another client, after faults of the host itself", e.tryLogin(t, e.Addr(), "", nil), 1129)
}

// Odd names in a login do not count either.
func TestOddNamesInALoginDoNotCountAgainstTheProxysHost(t *testing.T) {
	e, server := startByOtherHost(t, nil)
	account(t, server, "by_nothing@'%'", "")
	db := server.DB(t, "")
	odd := []string{"", strings.Repeat("n", 300), strings.Repeat("n", 5000), "\xff\xfe", "a\xc3", strings.Repeat("\xff", 100), strings.Repeat("ä", 100)}
	var responses []protocol.HandshakeResponse
	for i := range 256 {
		responses = append(responses, protocol.HandshakeResponse{User: "by_nothing", Collation: uint8(i)})
	}
	for _, collation := range []uint8{8, 28, 45} { // latin1, gbk, utf8mb4
		for _, name := range odd {
			responses = append(responses,
				protocol.HandshakeResponse{User: "nobody_here", Database: name, Collation: collation},
				protocol.HandshakeResponse{User: "by_nothing", Database: name, Collation: collation},
				protocol.HandshakeResponse{User: name, Collation: collation},
				protocol.HandshakeResponse{User: "nobody_here", Collation: collation, Attrs: protocol.Attrs(nil).With("name", strings.Repeat(name, 10))})
		}
	}
	codes := map[uint16]int{}
	for _, r := range responses {
		c := dialPackets(t, "tcp", e.Addr())
		if _, err := protocol.ReadGreeting(c); err != nil {
			t.Fatal(err)
		}
		r.Capabilities = protocol.LongPassword | protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth
		if r.Database != "" {
			r.Capabilities |= protocol.ConnectWithDB
		}
		if r.Attrs != nil {
			r.Capabilities |= protocol.ConnectAttrs
		}
		answer, err := r.Append(nil)
		var p []byte
		for err == nil && (p == nil || p[0] == 0xfe) {
			if err = c.WritePacket(answer); err == nil {
				p, err = c.ReadPacket(1 << 16)
			}
			answer = nil
		}
		if err != nil {
			t.Fatalf("%.100q: %v", r.User, err)
		}
		var refused *protocol.ServerError
		if p[0] == 0xff && errors.As(protocol.ParseServerError(p), &refused) {
			codes[refused.Code]++
		}
		c.Close()
		e.awaitSessions(t, 0)
		if _, since := handshakeErrors(t, db); since != 0 {
			t.Errorf("user %.20q, schema %.20q, collation %d: it counts as a faulty login of the proxy's host: %v", r.User, r.Database, r.Collation, refused)
		}
	}
	if codes[1231] == 0 || codes[1129] != 0 {
		t.Errorf("got the errors %v, want 1231 among them, and never 1129", codes)
	}
}

func TestASilentClientIsGivenUpBeforeTheServerDoes(t *testing.T) {
	e, server := startByOtherHost(t, func(o *proxy.Options) { o.LoginTimeout = time.Minute }, "--connect-timeout=2")
	response := protocol.HandshakeResponse{
		Capabilities: protocol.LongPassword | protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth, User: e.User, Collation: 45,
	}
	payload, err := response.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	db := server.DB(t, "")
	// The proxy is 0.4 s ahead of the server. A busy machine needs that at times.
	eventually(t, "the proxy gives up first", func() bool {
		before, _ := handshakeErrors(t, db)
		if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
			// The proxy knows the server's limit of time.
			t.Log(err)
			return false
		}
		c := dialPackets(t, "tcp", e.Addr())
		if _, err := protocol.ReadGreeting(c); err != nil {
			t.Fatal(err)
		}
		if err := c.WritePacket(payload); err != nil {
			t.Fatal(err)
		}
		if p, err := c.ReadPacket(1 << 16); err != nil || p[0] != 0xfe {
			t.Logf("got %x, %v, want a switch of plugins", p, err)
			return false
		}
		if _, err := c.ReadPacket(1 << 16); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, want the end of the connection", err)
		}
		n, _ := handshakeErrors(t, db)
		if n != before {
			t.Logf("the server counts %d faulty logins of the proxy's host", n-before)
		}
		return n == before
	})
}

func TestFaultyAnswersCountAgainstTheirAddress(t *testing.T) {
	e, _ := startByOtherHost(t, func(o *proxy.Options) {
		o.FailedLogins, o.FailedLoginDelay = 3, 300*time.Millisecond
	})
	const spoiler, other = "127.0.0.3", "127.0.0.4"
	for i, answer := range [][]byte{{1}, nil, make([]byte, 7)} { // nil: the client hangs up
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(spoiler)}, Timeout: wireTimeout}
		nc, err := dialer.Dial("tcp", e.Addr())
		if err != nil {
			t.Fatal(err)
		}
		c, err := protocol.NewConn(nc, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := protocol.ReadGreeting(c); err != nil {
			t.Fatal(err)
		}
		response := protocol.HandshakeResponse{
			Capabilities: protocol.LongPassword | protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth, User: e.User, Collation: 45,
		}
		payload, err := response.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.WritePacket(payload); err != nil {
			t.Fatal(err)
		}
		if p, err := c.ReadPacket(1 << 16); err != nil || p[0] != 0xfe {
			t.Fatalf("answer %d: got %x, %v, want a switch of plugins", i, p, err)
		}
		if answer != nil {
			if err := c.WritePacket(answer); err != nil {
				t.Fatal(err)
			}
			if p, err := c.ReadPacket(1 << 16); err != nil || p[0] != 0xff {
				t.Errorf("answer %x: got %x, %v, want an error", answer, p, err)
			}
		}
		c.Close()
		e.awaitSessions(t, 0)
	}
	if took, err := e.loginFrom(t, spoiler, nil); err != nil || took < 100*time.Millisecond {
		t.Errorf("login from the same address: got error %v after %s, want none, after 100ms", err, took)
	}
	if e.Logs.FilterMessage("logins delayed").Len() != 1 {
		t.Error("the log has no line about delayed logins of the address")
	}
	if _, err := e.loginFrom(t, other, func(m *mysql.Config) {}); err != nil {
		t.Errorf("login from another address: %v", err)
	}
}
