package protocol

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// rawClient speaks the client's side byte by byte.
type rawClient struct {
	*Conn
	t        *testing.T
	greeting *Greeting
}

func (s *loginServer) raw(t *testing.T) *rawClient {
	t.Helper()
	c := &rawClient{Conn: s.dial(t), t: t}
	var err error
	if c.greeting, err = ReadGreeting(c.Conn); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *rawClient) send(payload []byte) {
	c.t.Helper()
	if err := c.WritePacket(payload); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) respond(r HandshakeResponse) {
	c.t.Helper()
	b, err := r.Append(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(b)
}

func (c *rawClient) receive() []byte {
	c.t.Helper()
	b, err := c.Conn.ReadPacket(1 << 16)
	if err != nil {
		c.t.Fatal(err)
	}
	return bytes.Clone(b)
}

// wantERR reads an ERR packet and the end of the stream.
func (c *rawClient) wantERR(code uint16, text string) {
	c.t.Helper()
	var got *ServerError
	if err := ParseServerError(c.receive()); !errors.As(err, &got) || got.Code != code || !strings.Contains(got.Message, text) {
		c.t.Errorf("got %v, want error %d with %q", err, code, text)
	}
	if _, err := c.Conn.ReadPacket(1 << 16); !errors.Is(err, io.EOF) {
		c.t.Errorf("after the error: got %v, want the connection closed", err)
	}
}

func (c *rawClient) wantOK() {
	c.t.Helper()
	if b := c.receive(); b[0] != headerOK {
		c.t.Fatalf("got %q, want OK", b)
	}
}

func (c *rawClient) wantSwitch(plugin string) Salt {
	c.t.Helper()
	s, err := ParseAuthSwitch(c.receive())
	if err != nil {
		c.t.Fatal(err)
	}
	salt, err := s.salt()
	if err != nil || s.Plugin != plugin || len(s.Data) != SaltSize+1 || salt == c.greeting.Salt {
		c.t.Fatalf("got switch to %s with %x, %v, want to %s with a fresh salt", s.Plugin, s.Data, err, plugin)
	}
	return salt
}

const appPassword = "s3cret pässword"

func native(salt Salt, password string) []byte {
	return mysql.CalcNativePassword(salt[:], []byte(password))
}

func sha2(salt Salt, password string) []byte {
	return mysql.CalcCachingSha2Password(salt[:], []byte(password))
}

func TestTheGreetingSaysWhatTheLoginIsGiven(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for i := range 2 {
		g := s.raw(t).greeting
		if g.ConnectionID != 1<<31+uint32(i) || g.Version != "8.4.3" || g.Collation != 45 || g.Status != Autocommit || g.Plugin != "caching_sha2_password" {
			t.Errorf("got %+v", g)
		}
		if want := Relayable&^Extended | loginCapabilities; g.Capabilities != want {
			t.Errorf("got capabilities %s, want %s", g.Capabilities.names(), want.names())
		}
	}
	tlsToo := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS, l.Capabilities = serverTLS(), 0 })
	if g := tlsToo.raw(t).greeting; g.Capabilities != loginCapabilities|SSL {
		t.Errorf("got capabilities %s, want those of a login and TLS", g.Capabilities.names())
	}
}

// Checklist 6.
func TestAClientWithoutPluginsLogsInByNativePassword(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for _, c := range []struct {
		user, password string
		right          bool
	}{{"app", appPassword, true}, {"open", "", true}, {"app", "wrong", false}, {"app", "", false}, {"nobody", "x", false}, {"open", "x", false}} {
		client := s.raw(t)
		client.respond(HandshakeResponse{Capabilities: Protocol41 | SecureConnection, User: c.user, AuthResponse: native(client.greeting.Salt, c.password)})
		if !c.right {
			client.wantERR(1045, "Access denied for user '"+c.user+"'@'127.0.0.1'")
			s.take(t)
			continue
		}
		client.wantOK()
		if got := s.take(t); got.err != nil || got.hello.Plugin != "mysql_native_password" || got.hello.PasswordUsed != (c.password != "") {
			t.Errorf("%s: got %+v, %v", c.user, got.hello, got.err)
		}
	}
}

// Checklist 6.
func TestTheAnswersPluginAndLengthDecideWhetherTheClientIsAskedAgain(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	const nativeName, sha2Name = "mysql_native_password", "caching_sha2_password"
	for _, c := range []struct {
		what, plugin string
		answer       func(Salt) []byte
		user         string
		switchTo     string // "": accepted or refused without a switch
	}{
		{"native", nativeName, func(s Salt) []byte { return native(s, appPassword) }, "app", ""},
		{"native, prepared for another plugin", nativeName, func(Salt) []byte { return nil }, "app", nativeName},
		{"native without password", nativeName, func(Salt) []byte { return nil }, "open", nativeName},
		{"native of a wrong length", nativeName, func(Salt) []byte { return make([]byte, 19) }, "app", sha2Name},
		{"sha2", sha2Name, func(s Salt) []byte { return sha2(s, appPassword) }, "app", ""},
		{"sha2 without password", sha2Name, func(Salt) []byte { return nil }, "open", ""},
		{"sha2 without password as libmysql says it", sha2Name, func(Salt) []byte { return []byte{0} }, "open", ""},
		{"sha2 of a wrong length", sha2Name, func(Salt) []byte { return make([]byte, 31) }, "app", sha2Name},
		{"no name, native", "", func(s Salt) []byte { return native(s, appPassword) }, "app", ""},
		{"no name, sha2", "", func(s Salt) []byte { return sha2(s, appPassword) }, "app", ""},
		{"no name, nothing", "", func(Salt) []byte { return nil }, "open", sha2Name},
		{"clear text", "mysql_clear_password", func(Salt) []byte { return []byte(appPassword + "\x00") }, "app", sha2Name},
		{"ed25519", "client_ed25519", func(Salt) []byte { return make([]byte, 64) }, "app", sha2Name},
	} {
		t.Run(c.what, func(t *testing.T) {
			client := s.raw(t)
			client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: c.user, Plugin: c.plugin, AuthResponse: c.answer(client.greeting.Salt)})
			password := testUsers[c.user].Password
			used := c.plugin
			if c.switchTo != "" {
				salt := client.wantSwitch(c.switchTo)
				used = c.switchTo
				if c.switchTo == nativeName {
					client.send(native(salt, password))
				} else {
					client.send(sha2(salt, password))
				}
			}
			b := client.receive()
			if bytes.Equal(b, []byte{headerMoreData, sha2FastOK}) {
				b = client.receive()
			} else if password != "" && used == sha2Name {
				t.Errorf("got %x, want the fast path's success", b)
			}
			if b[0] != headerOK {
				t.Errorf("got %q, want OK", b)
			}
			got := s.take(t)
			if got.err != nil || (c.plugin != "" && got.hello.Plugin != used) || got.hello.PasswordUsed != (password != "") {
				t.Errorf("got %+v, %v", got.hello, got.err)
			}
		})
	}
}

// A right password must also pass the full exchange: a client's scrambled answer may be wrong
// although its password is right.
func TestARightPasswordInTheFullExchangeIsLetIn(t *testing.T) {
	for _, mode := range []string{"rsa", "rsa with a key known before", "tls", "unix", "rsa over unix"} {
		t.Run(mode, func(t *testing.T) {
			network := "tcp"
			if strings.HasSuffix(mode, "unix") {
				network = "unix"
			}
			s := startLoginServer(t, network, func(l *ServerLogin) { l.TLS = serverTLS() })
			for _, c := range []struct {
				password string
				right    bool
			}{{appPassword, true}, {"wrong", false}, {"", false}, {appPassword + "x", false}} {
				client := s.raw(t)
				r := HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "caching_sha2_password", AuthResponse: make([]byte, 32)}
				if mode == "tls" {
					client.send(r.SSLRequest())
					if err := client.StartTLSClient(clientTLS()); err != nil {
						t.Fatal(err)
					}
				}
				client.respond(r)
				if b := client.receive(); !bytes.Equal(b, []byte{headerMoreData, sha2FullAuth}) {
					t.Fatalf("got %x, want a demand for the password", b)
				}
				p := &prover{password: c.password, salt: client.greeting.Salt}
				switch mode {
				case "rsa", "rsa over unix":
					client.send([]byte{sha2RequestKey})
					data, err := ParseAuthMoreData(client.receive())
					if err != nil {
						t.Fatal(err)
					}
					p.waiting = true
					answer, _, err := p.more(data)
					if err != nil {
						t.Fatal(err)
					}
					client.send(answer)
				case "rsa with a key known before":
					keys, err := testRSA.load()
					if err != nil {
						t.Fatal(err)
					}
					answer, err := p.encrypt(&keys.private.PublicKey)
					if err != nil {
						t.Fatal(err)
					}
					client.send(answer)
				default:
					client.send([]byte(c.password + "\x00"))
				}
				if c.right {
					client.wantOK()
				} else {
					client.wantERR(1045, "using password: YES")
				}
				if got := s.take(t); (got.err == nil) != c.right {
					t.Errorf("%q: got %v", c.password, got.err)
				}
			}
		})
	}
}

func TestAPasswordInClearWithoutTLSIsNeverLetIn(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	client := s.raw(t)
	client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "caching_sha2_password", AuthResponse: make([]byte, 32)})
	client.receive()
	client.send([]byte(appPassword + "\x00"))
	client.wantERR(1045, "using password: YES")
}

func TestWithoutKeyAndTLSAWrongPasswordIsRefusedAtOnce(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.RSA = nil })
	for _, user := range []string{"app", "nobody"} {
		client := s.raw(t)
		client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: user, Plugin: "caching_sha2_password", AuthResponse: make([]byte, 32)})
		client.wantERR(1045, "using password: YES")
	}
}

// A client cannot distinguish an unknown user from a wrong password, or from an account without a
// password.
func TestAnUnknownUserWalksTheStepsOfAWrongPassword(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for _, c := range []struct {
		what   string
		plugin string
		answer []byte
	}{
		{"sha2", "caching_sha2_password", make([]byte, 32)},
		{"sha2 after a switch", "other", nil},
		{"native", "mysql_native_password", make([]byte, 20)},
		{"native after a switch", "mysql_native_password", nil},
		{"sha256", "sha256_password", []byte{sha256RequestKey}},
		{"sha256 after a switch", "sha256_password", nil},
	} {
		var steps [][]string
		for _, user := range []string{"apple", "nobod", "openn"} {
			// all of one length, since the message contains the name
			s.mu.Lock()
			s.lookup = func(name string) (Account, bool) {
				return map[string]Account{"apple": {Password: "x"}, "openn": {}}[name], name != "nobod"
			}
			s.mu.Unlock()
			client := s.raw(t)
			client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: user, Plugin: c.plugin, AuthResponse: c.answer})
		dialogue:
			for {
				switch b := client.receive(); {
				case b[0] == headerAuthSwitch:
					n := sha2Answer
					switch {
					case bytes.Contains(b, []byte("native")):
						n = nativeAnswer
					case bytes.Contains(b, []byte("sha256")):
						n = 1
					}
					client.send(bytes.Repeat([]byte{1}, n))
				case bytes.Equal(b, []byte{headerMoreData, sha2FullAuth}):
					client.send([]byte{sha2RequestKey})
				case b[0] == headerMoreData:
					client.send(make([]byte, 256))
				case b[0] == headerERR:
					break dialogue
				default:
					t.Fatalf("%s: got %x", c.what, b)
				}
			}
			got := s.take(t)
			var ae *AuthError
			if !errors.As(got.err, &ae) || !ae.UsingPassword || ae.UserExists != (user != "nobod") {
				t.Errorf("%s, %s: got %v", c.what, user, got.err)
			}
			steps = append(steps, got.steps)
			s.mu.Lock()
			s.lookup = lookupTestUser
			s.mu.Unlock()
		}
		if !reflect.DeepEqual(steps[0], steps[1]) || !reflect.DeepEqual(steps[0], steps[2]) {
			t.Errorf("%s: wrong password %v, unknown user %v, no password set %v, want all equal", c.what, steps[0], steps[1], steps[2])
		}
	}
}

func TestTheDecoyIsNoPassword(t *testing.T) {
	salt := NewSalt()
	for user, exists := range map[string]bool{"nobody": false, "open": true} {
		account, is := lookupTestUser(user)
		v := newVerifier(account, is, true)
		decoy := decoyPassword()
		if v.exists != exists || v.native(salt, native(salt, decoy)) || v.sha2(salt, sha2(salt, decoy)) || v.clear([]byte(decoy)) || v.clear(nil) {
			t.Errorf("%s: the password that stands in for none was accepted", user)
		}
	}
	if v := newVerifier(testUsers["app"], true, true); v.empty() || v.native(salt, nil) || v.sha2(salt, nil) {
		t.Error("no password was accepted for an account with one")
	}
}

// Checklist 2.
func TestBytesThatAreNoLoginAreRefusedAndTheConnectionClosed(t *testing.T) {
	old := make([]byte, 40)
	binary.LittleEndian.PutUint32(old, uint32(SecureConnection)) // without Protocol41
	plain323 := HandshakeResponse{Capabilities: Protocol41, User: "app", AuthResponse: []byte("12345678")}
	scramble323, err := plain323.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	ssl := (&HandshakeResponse{Capabilities: loginCapabilities}).SSLRequest()
	s := startLoginServer(t, "tcp", nil)
	for what, c := range map[string]struct {
		payload []byte
		code    uint16
	}{
		"empty":               {nil, 1043},
		"too short":           {[]byte{1}, 1043},
		"head only":           {append(binary.LittleEndian.AppendUint32(nil, uint32(Protocol41)), make([]byte, 28)...), 1043},
		"too long":            {bytes.Repeat([]byte{0xff}, loginLimit+1), 1043},
		"old protocol":        {old, 1251},
		"old passwords":       {scramble323, 1251},
		"TLS, not offered":    {ssl, 1043},
		"user without an end": {bytes.Repeat([]byte{0xff}, 100), 1043},
	} {
		t.Run(what, func(t *testing.T) {
			client := s.raw(t)
			client.send(c.payload)
			got := s.take(t)
			var he *HandshakeError
			if !errors.As(got.err, &he) || he.Code != c.code {
				t.Errorf("got %v, want a *HandshakeError with %d", got.err, c.code)
			}
			if what == "too long" {
				return // unread bytes reset the connection, and the answer may be lost
			}
			client.wantERR(c.code, "")
		})
	}
}

func TestEveryShortenedLoginEndsWithoutBeingLetIn(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	whole := func(g *Greeting) []byte {
		b, err := (&HandshakeResponse{
			Capabilities: allLogin, User: "app", AuthResponse: sha2(g.Salt, appPassword), Database: "d",
			Plugin: "caching_sha2_password", Attrs: Attrs(nil).With("a", "b"),
		}).Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	probe := s.raw(t)
	answered := responseHead + len("app\x00") + 1 + sha2Answer
	n := len(whole(probe.greeting))
	probe.Close()
	s.take(t)
	for cut := range answered {
		client := s.raw(t)
		client.send(whole(client.greeting)[:cut])
		client.wantERR(1043, "Bad handshake")
		if got := s.take(t); got.err == nil {
			t.Errorf("%d of %d bytes: let in as %+v", cut, n, got.hello)
		}
	}
}

// Checklist 2.
func TestAClientThatHangsUpOrStaysSilentEndsTheLogin(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	s.raw(t).Close()
	if got := s.take(t); !errors.Is(got.err, io.EOF) {
		t.Errorf("client gone: got %v, want EOF", got.err)
	}

	l := s.login
	nc := s.dial(t) // its greeting is never answered
	defer nc.Close()
	client, server := socketPair(t)
	defer client.Close()
	defer server.Close()
	if err := server.SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	// Sending one byte at a time does not extend the deadline.
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				_, _ = client.Write([]byte{[]byte{200, 0, 0, 1}[i%4]})
			}
		}
	}()
	_, err := l.Receive(server)
	close(stop)
	<-done
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("slow client: got %v, want a timeout", err)
	}
}

// Checklist 9.
func TestClientsWithoutTLSAreRefusedWhereItIsDemanded(t *testing.T) {
	demand := func(l *ServerLogin) { l.TLS, l.RequireTLS = serverTLS(), true }
	s := startLoginServer(t, "tcp", demand)
	client := s.raw(t)
	client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "caching_sha2_password", AuthResponse: sha2(client.greeting.Salt, appPassword)})
	client.wantERR(3159, "insecure transport")

	over := ClientLogin{User: "app", Password: appPassword, TLS: clientTLS()}
	if _, err := over.Run(s.dial(t)); err != nil {
		t.Errorf("over TLS: got %v, want success", err)
	}
	u := startLoginServer(t, "unix", demand)
	if _, err := (&ClientLogin{User: "app", Password: appPassword}).Run(u.dial(t)); err != nil {
		t.Errorf("over a Unix socket: got %v, want success", err)
	}
}

// Checklist 6.
func TestFlagsOfTheTLSRequestDoNotBindTheLoginBehindIt(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS = serverTLS() })
	client := s.raw(t)
	client.send((&HandshakeResponse{Capabilities: Protocol41}).SSLRequest())
	if err := client.StartTLSClient(clientTLS()); err != nil {
		t.Fatal(err)
	}
	client.respond(HandshakeResponse{Capabilities: loginCapabilities | FoundRows, User: "app", Plugin: "caching_sha2_password", AuthResponse: sha2(client.greeting.Salt, appPassword)})
	if b := client.receive(); !bytes.Equal(b, []byte{headerMoreData, sha2FastOK}) {
		t.Fatalf("got %x, want success", b)
	}
	client.wantOK()
	if got := s.take(t); got.err != nil || got.hello.Capabilities != loginCapabilities|FoundRows {
		t.Errorf("got %+v, %v", got.hello, got.err)
	}
}

func TestATLSClientThatTrustsNobodyEndsTheLogin(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS = serverTLS() })
	strict := ClientLogin{User: "app", Password: appPassword, TLS: &tls.Config{ServerName: "127.0.0.1"}}
	if _, err := strict.Run(s.dial(t)); err == nil {
		t.Error("an unknown certificate was accepted")
	}
	var ae *AuthError
	if got := s.take(t); got.err == nil || errors.As(got.err, &ae) {
		t.Errorf("got %v, want the TLS handshake's error", got.err)
	}
}

func TestUserAndHostAreCutInTheMessageAsMySQLCutsThem(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	client := s.raw(t)
	client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: strings.Repeat("u", 5000), Plugin: "caching_sha2_password"})
	client.wantERR(1045, "'"+strings.Repeat("u", 48)+"'@'127.0.0.1' (using password: NO)")
}

func TestAConnectionCanBeRefusedBeforeTheGreeting(t *testing.T) {
	client, server := socketPair(t)
	defer client.Close()
	defer server.Close()
	if err := RefuseConnection(server, 1040, "Too many connections"); err != nil {
		t.Fatal(err)
	}
	_, err := (&ClientLogin{User: "app"}).Run(client)
	var got *ServerError
	if want := (ServerError{1040, "", "Too many connections"}); !errors.As(err, &got) || *got != want {
		t.Errorf("got %v, want %v", err, want)
	}
}

// A client that hangs up when it is asked for the password itself has guessed, and knows that the
// guess was wrong.
func TestAClientThatHangsUpAfterAWrongAnswerIsRefused(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for _, user := range []string{"app", "nobody"} {
		for _, second := range [][]byte{nil, {sha2RequestKey}} {
			client := s.raw(t)
			client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: user, Plugin: "caching_sha2_password", AuthResponse: make([]byte, 32)})
			client.receive()
			if second != nil {
				client.send(second)
				client.receive()
			}
			client.Close()
			var ae *AuthError
			if got := s.take(t); !errors.As(got.err, &ae) || !errors.Is(ae.Gone, io.EOF) || ae.UserExists != (user == "app") || !strings.Contains(ae.Error(), "EOF") {
				t.Errorf("%s: got %v, want a refusal that says that the client was gone", user, got.err)
			}
		}
	}
	// A client that leaves before it has answered was not refused.
	client := s.raw(t)
	client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "something"})
	client.wantSwitch("caching_sha2_password")
	client.Close()
	var ae *AuthError
	if got := s.take(t); got.err == nil || errors.As(got.err, &ae) {
		t.Errorf("before an answer: got %v, want the connection's error", got.err)
	}
}
