package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// relayed is a login that the proxy relays from a client to a server. The test plays both.
type relayed struct {
	t      *testing.T
	client *rawClient // has sent its response, as app
	server *rawClient // has greeted and read the proxy's response
	asked  *HandshakeResponse

	done     chan struct{} // closed when the login has ended
	hello    *ServerHello
	err      error
	password string // the password that the proxy keeps
}

// legs describe how the two sides of a relayed login are protected.
type legs struct {
	clientTLS, serverTLS bool
	keep                 bool
	serverKey            bool       // the proxy knows the server's RSA key
	capabilities         Capability // in addition to loginCapabilities, on both sides
	without              Capability // flags that the client does not have
	noAnswer             bool       // the client sends none with its response
}

const relayGreeting = loginCapabilities | SSL | MultiFactor

// startRelayed runs a relayed login up to the server's first packet after the response. If run is
// not nil, it is the client.
func startRelayed(t *testing.T, l legs, run func(client *Conn)) *relayed {
	t.Helper()
	clientEnd, toClient := socketPair(t)
	toServer, serverEnd := socketPair(t)
	for _, c := range []*Conn{toClient, serverEnd} {
		if err := c.SetDeadline(time.Now().Add(loginDeadline)); err != nil {
			t.Fatal(err)
		}
	}
	r := &relayed{t: t, done: make(chan struct{}), server: &rawClient{Conn: serverEnd, t: t}, client: &rawClient{Conn: clientEnd, t: t}}
	login := &ServerLogin{Version: "8.4.3", Capabilities: Relayable | MultiFactor, Collation: 45, RSA: testRSA}
	if l.clientTLS {
		login.TLS = serverTLS()
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		defer close(r.done)
		defer toClient.Close()
		defer toServer.Close()
		attempt, err := login.Receive(toClient)
		if err != nil {
			r.err = err
			return
		}
		relay := attempt.Relay()
		relay.Keep = l.keep
		c := ClientLogin{User: attempt.Hello.User, Database: attempt.Hello.Database, Capabilities: attempt.Hello.Capabilities, Relay: relay}
		if l.serverTLS {
			c.TLS = clientTLS()
		}
		if l.serverKey {
			keys, err := testRSA.load()
			if err != nil {
				r.err = err
				return
			}
			c.PublicKey = &keys.private.PublicKey
		}
		if r.hello, r.err = c.Run(toServer); r.err == nil {
			r.err = toClient.WritePacket(AppendOK(nil, 0, OK{Status: r.hello.Status})[HeaderSize:])
		}
		r.password, _ = relay.Password()
	})
	t.Cleanup(wait.Wait)
	t.Cleanup(func() {
		clientEnd.Close()
		serverEnd.Close()
	})
	if run != nil {
		var clientEnded sync.WaitGroup
		clientEnded.Go(func() { run(clientEnd) })
		t.Cleanup(clientEnded.Wait)
	} else {
		var err error
		if r.client.greeting, err = ReadGreeting(clientEnd); err != nil {
			t.Fatal(err)
		}
		response := HandshakeResponse{
			Capabilities: (loginCapabilities | l.capabilities) &^ l.without, User: "app", Database: "album0", AuthResponse: []byte("x"), Plugin: "mysql_native_password",
		}
		if l.noAnswer {
			response.AuthResponse = nil
		}
		if l.clientTLS {
			r.client.send(response.SSLRequest())
			if err := clientEnd.StartTLSClient(clientTLS()); err != nil {
				t.Fatal(err)
			}
		}
		r.client.respond(response)
	}
	r.greet(l)
	return r
}

// greet is the server's part up to the proxy's response.
func (r *relayed) greet(l legs) {
	r.t.Helper()
	g := Greeting{Version: "8.4.3", Salt: NewSalt(), Capabilities: Relayable | relayGreeting, Collation: 45, Status: Autocommit, Plugin: mysql.AUTH_CACHING_SHA2_PASSWORD}
	b, err := g.Append(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.server.send(b)
	b = r.server.receive()
	if l.serverTLS {
		if !isSSLRequest(b) {
			r.t.Fatalf("got %x, want a request for TLS", b)
		}
		if err := r.server.StartTLSServer(serverTLS()); err != nil {
			r.t.Fatal(err)
		}
		b = r.server.receive()
	}
	if r.asked, err = ParseHandshakeResponse(b, g.Capabilities); err != nil {
		r.t.Fatal(err)
	}
}

// ask sends the server's switch to a plugin.
func (r *relayed) ask(plugin string, data []byte) {
	r.server.send(append(append(append([]byte{headerAuthSwitch}, plugin...), 0), data...))
}

// wantClient checks what the client gets next, and answers it.
func (r *relayed) wantClient(want, answer []byte) {
	r.t.Helper()
	if got := r.client.receive(); !bytes.Equal(got, want) {
		r.t.Fatalf("the client gets %q, want %q", got, want)
	}
	r.client.send(answer)
}

func (r *relayed) wantServer(want string) {
	r.t.Helper()
	if got := r.server.receive(); string(got) != want {
		r.t.Fatalf("the server gets %q, want %q", got, want)
	}
}

// wantWrong checks that the server gets an answer of this length that the client did not send.
func (r *relayed) wantWrong(length int) {
	r.t.Helper()
	if got := r.server.receive(); len(got) != length || len(bytes.Trim(got, string(got[:1]))) == 0 {
		r.t.Fatalf("the server gets %q, want %d random bytes", got, length)
	}
}

// end waits for the end of the login and returns its error.
func (r *relayed) end() error {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(loginDeadline):
		r.t.Fatal("the login does not end")
	}
	return r.err
}

// wantRefused checks that the client gets 1045 and the login fails for a reason.
func (r *relayed) wantRefused(reason string) {
	r.t.Helper()
	r.client.wantERR(1045, "Access denied for user 'app'@'127.0.0.1'")
	var relay *RelayError
	var auth *AuthError
	if err := r.end(); !errors.As(err, &relay) || !errors.As(err, &auth) || !strings.Contains(auth.Error(), reason) || auth.User != "app" {
		r.t.Errorf("got %v, want a *RelayError of an *AuthError with %q", err, reason)
	}
}

var (
	loginOK = AppendOK(nil, 0, OK{Status: Autocommit})[HeaderSize:]
	salt21  = append(bytes.Repeat([]byte("s"), SaltSize), 0)

	// As long as those of mysql_native_password.
	firstAnswer, secondAnswer = bytes.Repeat([]byte("1"), nativeAnswer), bytes.Repeat([]byte("2"), nativeAnswer)
)

func TestARelayedLoginIsTheServersQuestionAndTheClientsAnswer(t *testing.T) {
	for plugin, lengths := range map[string][2]int{
		"mysql_native_password": {20, 20}, "client_ed25519": {64, 64}, "parsec": {0, 96}, "caching_sha2_password": {32, 256}, "sha256_password": {256, 256},
	} {
		answer, another := strings.Repeat("a", lengths[0]), strings.Repeat("b", lengths[1])
		t.Run(plugin, func(t *testing.T) {
			r := startRelayed(t, legs{}, nil)
			if r.asked.User != "app" || r.asked.Database != "album0" || r.asked.Plugin != noSuchPlugin || len(r.asked.AuthResponse) != 0 {
				t.Errorf("the server was asked with %+v, want app, album0, an invented plugin and no answer", r.asked)
			}
			r.ask(plugin, salt21)
			r.wantClient(append(append([]byte("\xfe"+plugin), 0), salt21...), []byte(answer))
			r.wantServer(answer)
			r.server.send([]byte("\x50 some data of the plugin's"))
			r.wantClient([]byte("\x50 some data of the plugin's"), []byte(another))
			r.wantServer(another)
			if plugin == "caching_sha2_password" {
				r.server.send([]byte{headerMoreData, sha2FastOK}) // without an answer
			}
			r.server.send(loginOK)
			if plugin == "caching_sha2_password" {
				if got := r.client.receive(); !bytes.Equal(got, []byte{headerMoreData, sha2FastOK}) {
					t.Errorf("got %x, want the word of success", got)
				}
			}
			r.client.wantOK()
			if err := r.end(); err != nil || r.hello.Plugin != plugin || r.hello.Status != Autocommit {
				t.Errorf("got %+v, %v", r.hello, err)
			}
		})
	}
}

// Checklist 8.
func TestARelayedLoginIsRefusedUnlessTheClientWasChallenged(t *testing.T) {
	r := startRelayed(t, legs{}, nil)
	r.server.send(loginOK)
	r.wantRefused("trusts whoever connects")
	if _, err := r.server.ReadPacket(1 << 10); !errors.Is(err, io.EOF) {
		t.Errorf("the server's connection: got %v, want it closed", err)
	}
}

func TestARelayedLoginIsRefusedWithAPluginThatLooksAtTheProxy(t *testing.T) {
	for _, plugin := range []string{"auth_socket", "unix_socket", "auth_gssapi_client", "authentication_windows_client", "authentication_kerberos_client", "named_pipe", "test_plugin_server", "mysql_native_passwordx"} {
		t.Run(plugin, func(t *testing.T) {
			r := startRelayed(t, legs{clientTLS: true, serverTLS: true}, nil)
			r.ask(plugin, salt21)
			r.wantServer("\x00") // ends the server's side in order
			r.server.send(loginOK)
			r.wantRefused(plugin)
		})
		t.Run(plugin+" behind another", func(t *testing.T) {
			r := startRelayed(t, legs{}, nil)
			r.ask("mysql_native_password", salt21)
			r.wantClient(append([]byte("\xfemysql_native_password\x00"), salt21...), firstAnswer)
			r.wantServer(string(firstAnswer))
			r.ask(plugin, salt21)
			r.wantServer("\x00")
			r.server.send(loginOK)
			r.wantRefused(plugin)
		})
	}
	t.Run("no name", func(t *testing.T) {
		for _, packet := range []string{"\xfe", "\xfe\x00", "\xfe\x00" + string(salt21)} {
			r := startRelayed(t, legs{}, nil)
			r.server.send([]byte(packet))
			if err := r.end(); err == nil {
				t.Errorf("%q: got no error", packet)
			}
		}
	})
	t.Run("data before a plugin is named", func(t *testing.T) {
		for _, packet := range []string{"\x01\x03", "\x01\x04", "\x02", "Password:"} {
			r := startRelayed(t, legs{}, nil)
			r.server.send([]byte(packet))
			if err := r.end(); err == nil {
				t.Errorf("%q: got no error", packet)
			}
		}
	})
}

// Checklist 7.
func TestAFurtherFactorIsPassedOnWhereBothSidesKnowIt(t *testing.T) {
	next := []byte("\x02mysql_native_password\x00" + string(salt21))
	r := startRelayed(t, legs{capabilities: MultiFactor}, nil)
	if !r.asked.Capabilities.Has(MultiFactor) {
		t.Error("the proxy did not announce several factors to the server")
	}
	r.ask("mysql_native_password", salt21)
	r.wantClient(append([]byte("\xfemysql_native_password\x00"), salt21...), firstAnswer)
	r.wantServer(string(firstAnswer))
	r.server.send(next)
	r.wantClient(next, secondAnswer)
	r.wantServer(string(secondAnswer))
	r.server.send(loginOK)
	r.client.wantOK()
	if err := r.end(); err != nil {
		t.Error(err)
	}
	// A second factor must not be one that checks the proxy.
	r = startRelayed(t, legs{capabilities: MultiFactor}, nil)
	r.server.send([]byte("\x02auth_socket\x00"))
	r.wantServer("\x00")
	r.server.send(loginOK)
	r.wantRefused("auth_socket")

	// A client that does not know factors is not asked for one: such a packet would be data of the
	// plugin.
	if r = startRelayed(t, legs{}, nil); r.asked.Capabilities.Has(MultiFactor) {
		t.Error("the proxy announced several factors, which the client does not know")
	}
	r.ask("mysql_native_password", salt21)
	r.wantClient(append([]byte("\xfemysql_native_password\x00"), salt21...), firstAnswer)
	r.wantServer(string(firstAnswer))
	r.server.send([]byte("\x02auth_socket\x00"))
	r.wantClient([]byte("\x02auth_socket\x00"), secondAnswer)
	r.wantServer(string(secondAnswer))
}

func TestAPasswordInClearIsPassedOnOverTLSOnly(t *testing.T) {
	for _, plugin := range []string{"mysql_clear_password", "dialog"} {
		for _, l := range []legs{{}, {clientTLS: true}, {serverTLS: true}, {clientTLS: true, serverTLS: true, keep: true}} {
			t.Run(fmt.Sprintf("%s/%+v", plugin, l), func(t *testing.T) {
				r := startRelayed(t, l, nil)
				r.ask(plugin, nil)
				if !l.clientTLS || !l.serverTLS {
					r.wantServer("\x00")
					r.server.send(loginOK)
					r.client.wantERR(1251, "over TLS only")
					var handshake *HandshakeError
					if err := r.end(); !errors.As(err, &handshake) {
						t.Errorf("got %v, want a *HandshakeError", err)
					}
					return
				}
				r.wantClient(append([]byte("\xfe"+plugin), 0), []byte("secret\x00"))
				r.wantServer("secret\x00")
				r.server.send(loginOK)
				r.client.wantOK()
				want := "secret"
				if plugin == "dialog" { // may be anything
					want = ""
				}
				if err := r.end(); err != nil || r.password != want {
					t.Errorf("got password %q, %v, want %q", r.password, err, want)
				}
			})
		}
	}
}

// fullExchange plays the server in the exchange that gives it the password.
func (r *relayed) fullExchange(plugin string, l legs) (password string) {
	r.t.Helper()
	keys, err := testRSA.load()
	if err != nil {
		r.t.Fatal(err)
	}
	salt := NewSalt()
	r.ask(plugin, append(salt[:], 0))
	requestKey := byte(sha256RequestKey)
	if plugin == mysql.AUTH_CACHING_SHA2_PASSWORD {
		requestKey = sha2RequestKey
		if got := r.server.receive(); len(got) != sha2Answer {
			r.t.Fatalf("got %x, want an answer to the challenge", got)
		}
		r.server.send([]byte{headerMoreData, sha2FullAuth})
	}
	given := r.server.receive()
	if l.serverTLS {
		return strings.TrimSuffix(string(given), "\x00")
	}
	if !l.serverKey {
		if len(given) != 1 || given[0] != requestKey {
			r.t.Fatalf("got %q, want a request for the key", given)
		}
		r.server.send(AuthMoreData(keys.public))
		given = r.server.receive()
	}
	got, ok := keys.decrypt(given, salt)
	if !ok {
		r.t.Fatal("the password was encrypted with another key or salt")
	}
	return string(got)
}

// Checklist 8.
func TestTheFullExchangeEndsInTheProxyWhereTheLegsDiffer(t *testing.T) {
	const password = "a pässword"
	for _, plugin := range []string{mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD} {
		for _, keep := range []bool{false, true} {
			for _, l := range []legs{
				{}, {clientTLS: true}, {serverTLS: true}, {clientTLS: true, serverTLS: true}, {serverKey: true}, {clientTLS: true, serverKey: true},
			} {
				l.keep = keep
				t.Run(fmt.Sprintf("%s/%+v", plugin, l), func(t *testing.T) {
					var clientErr error
					ended := make(chan struct{})
					r := startRelayed(t, l, func(client *Conn) {
						defer close(ended)
						login := ClientLogin{User: "app", Password: password, Capabilities: loginCapabilities}
						if l.clientTLS {
							login.TLS = clientTLS()
						}
						_, clientErr = login.Run(client)
					})
					if got := r.fullExchange(plugin, l); got != password {
						t.Errorf("the server got %q, want %q", got, password)
					}
					r.server.send(loginOK)
					if err := r.end(); err != nil {
						t.Error(err)
					}
					<-ended
					if clientErr != nil {
						t.Errorf("client: %v", clientErr)
					}
					want := ""
					if keep && (l.clientTLS || l.serverTLS) { // otherwise the exchange bypassed the proxy
						want = password
					}
					if r.password != want {
						t.Errorf("kept %q, want %q", r.password, want)
					}
				})
			}
		}
	}
}

// Checklist 9.
func TestAPasswordUnderAnotherKeyIsRefused(t *testing.T) {
	r := startRelayed(t, legs{serverTLS: true}, nil)
	r.ask(mysql.AUTH_CACHING_SHA2_PASSWORD, salt21)
	r.client.receive()
	r.client.send(bytes.Repeat([]byte("a"), sha2Answer))
	r.server.receive()
	r.server.send([]byte{headerMoreData, sha2FullAuth})
	r.wantClient([]byte{headerMoreData, sha2FullAuth}, bytes.Repeat([]byte("e"), 256))
	r.wantServer("\x00")
	r.server.send(AppendERR(nil, 0, 1045, "28000", "no")[HeaderSize:])
	r.wantRefused("RSA key")
}

// MariaDB's command-line client up to 11.3 with optional TLS sends its password in clear where
// there is no TLS. MySQL refuses that. The proxy must not pass it on to anybody.
func TestAPasswordInClearWhereItMustBeEncryptedIsRefused(t *testing.T) {
	for _, plugin := range []string{mysql.AUTH_CACHING_SHA2_PASSWORD, mysql.AUTH_SHA256_PASSWORD} {
		for _, l := range []legs{{}, {serverKey: true}, {serverTLS: true}} {
			t.Run(fmt.Sprintf("%s/%+v", plugin, l), func(t *testing.T) {
				r := startRelayed(t, l, nil)
				r.ask(plugin, salt21)
				r.client.receive()
				if plugin == mysql.AUTH_CACHING_SHA2_PASSWORD {
					r.client.send(bytes.Repeat([]byte("a"), sha2Answer))
					r.server.receive()
					r.server.send([]byte{headerMoreData, sha2FullAuth})
					r.client.receive()
				}
				r.client.send([]byte("secret\x00"))
				r.wantServer("\x00")
				r.server.send(AppendERR(nil, 0, 1045, "28000", "no")[HeaderSize:])
				r.wantRefused("in clear")
			})
		}
	}
}

func TestTheServersErrorIsTheLoginsError(t *testing.T) {
	for _, challenge := range []bool{false, true} {
		r := startRelayed(t, legs{}, nil)
		if challenge {
			r.ask("mysql_native_password", salt21)
			r.client.receive()
			r.client.send(firstAnswer)
			r.server.receive()
		}
		r.server.send(AppendERR(nil, 0, 3118, "HY000", "Access denied for user 'app'@'host'. Account is locked.")[HeaderSize:])
		var se *ServerError
		if err := r.end(); !errors.As(err, &se) || se.Code != 3118 || se.State != "HY000" || !strings.HasSuffix(se.Message, "locked.") {
			t.Errorf("got %v, want the server's error 3118", err)
		}
	}
}

// A server counts connections that break off during a login, and blocks their host at
// max_connect_errors. That host is the proxy, so all clients would be blocked.
func TestTheServersSideEndsInOrderWhenTheClientVanishes(t *testing.T) {
	r := startRelayed(t, legs{}, nil)
	r.ask("mysql_native_password", salt21)
	r.client.receive()
	r.client.Close()
	r.wantWrong(nativeAnswer)
	r.server.send(AppendERR(nil, 0, 1045, "28000", "no")[HeaderSize:])
	var relay *RelayError
	if err := r.end(); !errors.As(err, &relay) {
		t.Errorf("got %v, want a *RelayError", err)
	}
}

func TestWhoHangsUpBehindAnAnswerCountsAsRefused(t *testing.T) {
	for _, answers := range []bool{false, true} {
		r := startRelayed(t, legs{}, nil)
		r.ask(mysql.AUTH_CACHING_SHA2_PASSWORD, salt21)
		r.client.receive()
		if answers { // with a guess, whose result the server does not know
			r.client.send(bytes.Repeat([]byte("g"), sha2Answer))
			r.server.receive()
			r.server.send([]byte{headerMoreData, sha2FullAuth})
			r.client.receive()
		}
		r.client.Close()
		if answers {
			r.wantServer("\x00")
		} else {
			r.wantServer("\x01")
		}
		r.server.send(AppendERR(nil, 0, 1045, "28000", "no")[HeaderSize:])
		var auth *AuthError
		if err := r.end(); errors.As(err, &auth) != answers || answers && auth.Gone == nil {
			t.Errorf("answers %v: got %v", answers, err)
		}
	}
}

// npm mysql accepts a switch to mysql_native_password without announcing that it knows plugins.
func TestAClientThatTellsOfNoPluginsIsAskedForItsNativePassword(t *testing.T) {
	r := startRelayed(t, legs{without: PluginAuth}, nil)
	r.ask("mysql_native_password", salt21)
	r.wantClient(append([]byte("\xfemysql_native_password\x00"), salt21...), firstAnswer)
	r.wantServer(string(firstAnswer))
	r.server.send(loginOK)
	if got := r.client.receive(); got[0] != headerOK {
		t.Errorf("the client gets %q, want OK", got)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}

	r = startRelayed(t, legs{without: PluginAuth}, nil)
	r.ask("caching_sha2_password", salt21)
	r.wantServer("\x01")
	r.server.send(loginOK) // this success must not count
	r.client.wantERR(1251, "does not support authentication protocol")
	var relay *RelayError
	if err := r.end(); !errors.As(err, &relay) || !strings.Contains(err.Error(), "caching_sha2_password") {
		t.Errorf("got %v, want a *RelayError that names the plugin", err)
	}
}

func TestAServerWithoutPluginsIsNotAsked(t *testing.T) {
	l := &RelayedLogin{attempt: &Attempt{}}
	if err := l.respond(nil, &Greeting{Version: "5.1", Capabilities: Protocol41}, &HandshakeResponse{}); err == nil || !strings.Contains(err.Error(), "5.1") {
		t.Errorf("got %v, want an error", err)
	}
}

// A server gets either an answer of its plugin's form or a wrong one that ends the dialogue.
// Anything else counts as a fault of the proxy's host.
func TestAnAnswerOfNoFormIsRefusedAndNotPassedOn(t *testing.T) {
	const native, ed25519, sha2 = "mysql_native_password", "client_ed25519", "caching_sha2_password"
	repeat := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for _, c := range []struct {
		plugin  string
		answers [][]byte // all but the last are of the plugin's form
		code    uint16
		wrong   int // length of the answer that ends the server's side
	}{
		{native, [][]byte{repeat(1)}, 1043, 20},
		{native, [][]byte{{0}}, 1043, 20},
		{native, [][]byte{repeat(19)}, 1043, 20},
		{native, [][]byte{repeat(21)}, 1043, 20},
		{native, [][]byte{repeat(10000)}, 1043, 20},
		{ed25519, [][]byte{nil}, 1045, 64},
		{ed25519, [][]byte{repeat(63)}, 1045, 64},
		{"parsec", [][]byte{repeat(1)}, 1045, 1},
		{"parsec", [][]byte{nil, repeat(95)}, 1045, 96},
		{"parsec", [][]byte{nil, nil}, 1045, 96},
		{sha2, [][]byte{repeat(1)}, 1045, 1},
		{sha2, [][]byte{repeat(31)}, 1045, 1},
		{sha2, [][]byte{repeat(32), nil}, 1045, 1},
	} {
		t.Run(fmt.Sprintf("%s/%d of %d bytes", c.plugin, len(c.answers), len(c.answers[len(c.answers)-1])), func(t *testing.T) {
			r := startRelayed(t, legs{}, nil)
			r.ask(c.plugin, salt21)
			for i, answer := range c.answers {
				if i > 0 {
					r.wantServer(string(c.answers[i-1]))
					r.server.send([]byte{headerMoreData, sha2FullAuth})
				}
				r.client.receive()
				r.client.send(answer)
			}
			if c.wrong == 1 {
				if got := r.server.receive(); len(got) != 1 || got[0] > 1 {
					t.Errorf("the server gets %q, want one byte that is no password", got)
				}
			} else {
				r.wantWrong(c.wrong)
			}
			r.server.send(AppendERR(nil, 0, 1045, "28000", "no")[HeaderSize:])
			r.client.wantERR(c.code, "")
			var relay *RelayError
			if err := r.end(); !errors.As(err, &relay) || relay.Unsupported {
				t.Errorf("got %v, want a *RelayError that is the client's fault", err)
			}
		})
	}
}

// An account may have several plugins, and a server asks by one after the other. With an account
// without a password the login may succeed although the client has gone.
func TestTheServersSideEndsHoweverOftenItAsks(t *testing.T) {
	r := startRelayed(t, legs{}, nil)
	r.ask("mysql_native_password", salt21)
	r.client.receive()
	r.client.Close()
	r.wantWrong(nativeAnswer)
	r.ask("client_ed25519", salt21)
	r.wantWrong(ed25519Answer)
	r.ask("caching_sha2_password", salt21)
	r.wantServer("\x01")
	r.server.send([]byte{headerMoreData, sha2FullAuth})
	r.wantServer("\x00")
	r.server.send(loginOK)
	r.wantServer(string([]byte{byte(ComQuit)}))
	var relay *RelayError
	if err := r.end(); !errors.As(err, &relay) {
		t.Errorf("got %v, want a *RelayError", err)
	}
}

// HAProxy's check sends no plugin and no password. It takes every packet that is no error for a
// success.
func TestAClientWithoutPluginsAndPasswordIsNotAsked(t *testing.T) {
	r := startRelayed(t, legs{without: PluginAuth, noAnswer: true}, nil)
	r.ask("mysql_native_password", salt21)
	r.wantServer("")
	r.server.send(loginOK)
	if got := r.client.receive(); got[0] != headerOK {
		t.Errorf("the client gets %q, want OK", got)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
}
