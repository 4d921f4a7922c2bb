package protocol

import (
	"bytes"
	"errors"
	"testing"
)

// encrypted is a password under the test server's key.
func encrypted(t *testing.T, salt Salt, password string) []byte {
	t.Helper()
	keys, err := testRSA.load()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&prover{password: password, salt: salt}).encrypt(&keys.private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// overTLS starts a login over TLS.
func (s *loginServer) overTLS(t *testing.T) *rawClient {
	t.Helper()
	c := s.raw(t)
	c.send((&HandshakeResponse{Capabilities: loginCapabilities}).SSLRequest())
	if err := c.StartTLSClient(clientTLS()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPasswordInClearOrUnderTheKeyIsJudgedByThePluginThatTheClientNames(t *testing.T) {
	const sha256Name, clearName = "sha256_password", "mysql_clear_password"
	inClear := func(_ *testing.T, _ Salt, password string) []byte { return []byte(password + "\x00") }
	nothing := func(*testing.T, Salt, string) []byte { return nil }
	requestKey := func(*testing.T, Salt, string) []byte { return []byte{sha256RequestKey} }
	type answer = func(*testing.T, Salt, string) []byte
	for _, c := range []struct {
		what, network string
		withTLS       bool
		plugin        string
		first         answer
		switched      answer // to the same plugin; nil: not asked again
		afterKey      answer // nil: does not get the key
	}{
		{"sha256, TLS, at once", "tcp", true, sha256Name, inClear, nil, nil},
		{"sha256, TLS, asked again", "tcp", true, sha256Name, nothing, inClear, nil},
		{"sha256, plain, key known", "tcp", false, sha256Name, encrypted, nil, nil},
		{"sha256, plain, key asked for", "tcp", false, sha256Name, requestKey, nil, encrypted},
		{"sha256, plain, asked again", "tcp", false, sha256Name, nothing, requestKey, encrypted},
		{"sha256, socket", "unix", false, sha256Name, requestKey, nil, encrypted},
		{"clear text, TLS, at once", "tcp", true, clearName, inClear, nil, nil},
		{"clear text, TLS, asked again", "tcp", true, clearName, nothing, inClear, nil},
		{"clear text, socket", "unix", false, clearName, inClear, nil, nil},
	} {
		s := startLoginServer(t, c.network, func(l *ServerLogin) { l.TLS = serverTLS() })
		for _, u := range []struct {
			user, password string
			right          bool
		}{
			{"app", appPassword, true},
			{"open", "", true},
			{"app", "", false},
			{"app", "wrong", false},
			{"app", appPassword + "x", false},
			{"app", appPassword[:8], false},
			{"open", "x", false},
			{"nobody", "", false},
			{"nobody", "x", false},
		} {
			t.Run(c.what+"/"+u.user+":"+u.password, func(t *testing.T) {
				dial := s.raw
				if c.withTLS {
					dial = s.overTLS
				}
				client := dial(t)
				salt := client.greeting.Salt
				give := func(of answer) []byte {
					if u.password == "" { // clients send this for an empty password, whatever the plugin
						return []byte{0}
					}
					return of(t, salt, u.password)
				}
				first := c.first(t, salt, u.password)
				if len(first) > 0 {
					first = give(c.first)
				}
				client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: u.user, Plugin: c.plugin, AuthResponse: first})
				if c.switched != nil {
					salt = client.wantSwitch(c.plugin)
					client.send(give(c.switched))
				}
				if c.afterKey != nil && u.password != "" {
					key, err := ParseAuthMoreData(client.receive())
					if err != nil {
						t.Fatal(err)
					}
					if public, err := parsePublicKey(key); err != nil || public == nil {
						t.Fatalf("got no key: %v", err)
					}
					client.send(c.afterKey(t, salt, u.password))
				}
				using := u.password != ""
				if u.right {
					client.wantOK()
				} else {
					client.wantERR(1045, "(using password: "+map[bool]string{true: "YES", false: "NO"}[using]+")")
				}
				got := s.take(t)
				if (got.err == nil) != u.right {
					t.Fatalf("got %v", got.err)
				}
				if u.right && (got.hello.Plugin != c.plugin || got.hello.PasswordUsed != using) {
					t.Errorf("got %+v, want %s", got.hello, c.plugin)
				}
			})
		}
	}
}

// A client that names mysql_clear_password on a readable connection is asked for another answer.
//
// Checklist 9.
func TestAPasswordInClearIsNeverAskedForInPlain(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS = serverTLS() })
	for _, first := range [][]byte{nil, {0}, []byte(appPassword + "\x00")} {
		c := s.raw(t)
		c.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "mysql_clear_password", AuthResponse: first})
		c.send(sha2(c.wantSwitch("caching_sha2_password"), appPassword))
		if b := c.receive(); !bytes.Equal(b, []byte{headerMoreData, sha2FastOK}) {
			t.Fatalf("got %x, want success", b)
		}
		c.wantOK()
		if got := s.take(t); got.err != nil {
			t.Error(got.err)
		}
	}
	// Such an answer does not count if the client gives it anyway.
	for _, plugin := range []string{"mysql_clear_password", "sha256_password"} {
		c := s.raw(t)
		c.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: plugin, AuthResponse: []byte(appPassword + "\x00")})
		if plugin == "mysql_clear_password" {
			c.wantSwitch("caching_sha2_password")
			c.send([]byte(appPassword + "\x00"))
			c.receive() // asks for the password, encrypted under the key
			c.send([]byte(appPassword + "\x00"))
		}
		c.wantERR(1045, "using password: YES")
		var ae *AuthError
		if got := s.take(t); !errors.As(got.err, &ae) {
			t.Errorf("%s: got %v, want an *AuthError", plugin, got.err)
		}
	}
}

func TestClearTextServesAChangeOfUserOverTLS(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS = serverTLS() })
	c := s.overTLS(t)
	c.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "mysql_clear_password", AuthResponse: []byte(appPassword + "\x00")})
	c.wantOK()
	s.take(t)
	c.SetPacketNum(0)
	c.send(changeUserPayload(&ChangeUserRequest{User: "other", AuthResponse: []byte("other\x00"), HasCollation: true, Plugin: "mysql_clear_password", Attrs: Attrs{}}, loginCapabilities))
	c.wantSwitch("mysql_clear_password")
	c.send([]byte("other\x00"))
	c.wantOK()
	if got := s.take(t); got.err != nil || got.hello.User != "other" || got.hello.Plugin != "mysql_clear_password" {
		t.Errorf("got %+v, %v", got.hello, got.err)
	}
}
