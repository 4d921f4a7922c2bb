package protocol

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"
	"time"
)

// scripted runs a server that follows a script after its greeting. It returns the outcome of the
// login.
func scripted(t *testing.T, l ClientLogin, g Greeting, script func(*Conn)) error {
	t.Helper()
	client, server := socketPair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		if err := server.SetDeadline(time.Now().Add(loginDeadline)); err != nil {
			t.Error(err)
			return
		}
		b, err := g.Append(nil)
		if err != nil {
			t.Error(err)
			return
		}
		if err := server.WritePacket(b); err != nil {
			t.Error(err)
			return
		}
		if script != nil {
			script(server)
		}
	}()
	_, err := l.Run(client)
	client.Close()
	<-done
	return err
}

// expect reads a packet and calls check with it, unless check is nil.
func expect(t *testing.T, c *Conn, check func([]byte)) {
	t.Helper()
	b, err := c.ReadPacket(1 << 16)
	if err != nil {
		t.Errorf("script: %v", err)
		return
	}
	if check != nil {
		check(b)
	}
}

func reply(t *testing.T, c *Conn, payload ...byte) {
	t.Helper()
	if err := c.WritePacket(payload); err != nil {
		t.Errorf("script: %v", err)
	}
}

func switchPayload(plugin string, data []byte) []byte {
	return append(append(append([]byte{headerAuthSwitch}, plugin...), 0), data...)
}

func okPayload() []byte { return AppendOK(nil, 0, OK{Status: Autocommit})[HeaderSize:] }

var scriptGreeting = Greeting{Version: "8.4.3", Capabilities: Relayable | loginCapabilities, Salt: testSalt(), Plugin: "caching_sha2_password", Status: Autocommit}

// Checklist 7.
func TestPluginsAreAnsweredInWhateverOrderTheServerSwitches(t *testing.T) {
	// 32 bytes, the length of an ed25519 seed in the standard
	const password = "0123456789abcdef0123456789abcdef"
	l := ClientLogin{User: "app", Password: password, Capabilities: Protocol41}
	keys, err := testRSA.load()
	if err != nil {
		t.Fatal(err)
	}
	salt1, salt2, nonce := NewSalt(), NewSalt(), bytes.Repeat([]byte{5}, 32)
	wantClear := func(salt Salt) func([]byte) {
		return func(b []byte) {
			if got, ok := keys.decrypt(b, salt); !ok || string(got) != password {
				t.Errorf("under RSA: got %q, %v", got, ok)
			}
		}
	}
	err = scripted(t, l, scriptGreeting, func(c *Conn) {
		expect(t, c, func(b []byte) {
			r, err := ParseHandshakeResponse(b, ^Capability(0))
			if err != nil || r.Plugin != "caching_sha2_password" || !bytes.Equal(r.AuthResponse, sha2(scriptGreeting.Salt, password)) {
				t.Errorf("got %+v, %v", r, err)
			}
		})
		reply(t, c, switchPayload("mysql_native_password", append(salt1[:], 0))...)
		expect(t, c, func(b []byte) {
			if !bytes.Equal(b, native(salt1, password)) {
				t.Errorf("native: got %x", b)
			}
		})
		reply(t, c, switchPayload("client_ed25519", nonce)...)
		expect(t, c, func(b []byte) {
			public := ed25519.NewKeyFromSeed([]byte(password)).Public().(ed25519.PublicKey)
			if !ed25519.Verify(public, nonce, b) {
				t.Errorf("ed25519: got a signature that does not verify: %x", b)
			}
		})
		reply(t, c, switchPayload("caching_sha2_password", append(salt2[:], 0))...)
		expect(t, c, func(b []byte) {
			if !bytes.Equal(b, sha2(salt2, password)) {
				t.Errorf("sha2: got %x", b)
			}
		})
		reply(t, c, headerMoreData, sha2FullAuth)
		expect(t, c, func(b []byte) {
			if !isKeyRequest(b, sha2RequestKey) {
				t.Errorf("got %x, want a request for the key", b)
			}
		})
		reply(t, c, append([]byte{headerMoreData}, keys.public...)...)
		expect(t, c, wantClear(salt2))
		reply(t, c, switchPayload("sha256_password", append(salt1[:], 0))...)
		expect(t, c, func(b []byte) {
			if !bytes.Equal(b, []byte{1}) {
				t.Errorf("sha256: got %x, want a request for the key", b)
			}
		})
		reply(t, c, append([]byte{headerMoreData}, keys.public...)...)
		expect(t, c, wantClear(salt1))
		reply(t, c, okPayload()...)
	})
	if err != nil {
		t.Errorf("got %v, want success", err)
	}
}

// Checklist 9.
func TestAPinnedKeyIsUsedWithoutAsking(t *testing.T) {
	keys, err := testRSA.load()
	if err != nil {
		t.Fatal(err)
	}
	l := ClientLogin{User: "app", Password: "pw", Capabilities: Protocol41, PublicKey: &keys.private.PublicKey}
	err = scripted(t, l, scriptGreeting, func(c *Conn) {
		expect(t, c, nil)
		reply(t, c, headerMoreData, sha2FullAuth)
		expect(t, c, func(b []byte) {
			if got, ok := keys.decrypt(b, scriptGreeting.Salt); !ok || string(got) != "pw" {
				t.Errorf("got %q, %v", got, ok)
			}
		})
		reply(t, c, okPayload()...)
	})
	if err != nil {
		t.Errorf("got %v, want success", err)
	}
}

func TestAClientSpeaksTheGreetingsNativePluginAndDefaultsToSha2(t *testing.T) {
	for plugin, want := range map[string]string{
		"mysql_native_password": "mysql_native_password",
		"caching_sha2_password": "caching_sha2_password",
		"something_new":         "caching_sha2_password",
		"mysql_clear_password":  "caching_sha2_password",
	} {
		g := scriptGreeting
		g.Plugin = plugin
		err := scripted(t, ClientLogin{User: "app", Password: "pw", Capabilities: Protocol41}, g, func(c *Conn) {
			expect(t, c, func(b []byte) {
				r, err := ParseHandshakeResponse(b, ^Capability(0))
				if err != nil || r.Plugin != want || bytes.Contains(b, []byte("pw\x00")) {
					t.Errorf("%s: got %+v, %v, want %s", plugin, r, err, want)
				}
			})
			reply(t, c, okPayload()...)
		})
		if err != nil {
			t.Errorf("%s: got %v, want success", plugin, err)
		}
	}
}

func TestWhatAServerMayNotAskForIsAnErrorThatNamesTheWayOut(t *testing.T) {
	salt := append(bytes.Repeat([]byte{7}, SaltSize), 0)
	for what, c := range map[string]struct {
		answer []byte
		want   string
	}{
		"clear text without TLS": {switchPayload("mysql_clear_password", nil), "only over TLS"},
		"old password":           {[]byte{headerAuthSwitch}, "mysql_old_password"},
		"old password by name":   {switchPayload("mysql_old_password", salt), "give the account another plugin"},
		"unknown plugin":         {switchPayload("auth_gssapi_client", nil), `"auth_gssapi_client"`},
		"empty packet":           {nil, "malformed"},
		"second factor":          {[]byte{headerNextFactor, 'x', 0}, "second authentication factor"},
		"short salt":             {switchPayload("mysql_native_password", salt[:10]), "salt of 10 bytes"},
		"short nonce":            {switchPayload("client_ed25519", salt), "nonce of 21 bytes"},
		"data out of place":      {[]byte{headerMoreData, 9}, "malformed"},
		"no packet of a login":   {[]byte{0x33}, "begins with 0x33"},
		"short OK":               {[]byte{headerOK, 0, 0}, "malformed"},
	} {
		err := scripted(t, ClientLogin{User: "app", Password: "s3cret", Capabilities: Protocol41}, scriptGreeting, func(s *Conn) {
			expect(t, s, nil)
			reply(t, s, c.answer...)
		})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want an error with %q", what, err, c.want)
		}
	}
}

func TestAKeyThatIsNoneAndAServerWithoutEndAreErrors(t *testing.T) {
	l := ClientLogin{User: "app", Password: "pw", Capabilities: Protocol41}
	err := scripted(t, l, scriptGreeting, func(c *Conn) {
		expect(t, c, nil)
		reply(t, c, headerMoreData, sha2FullAuth)
		expect(t, c, nil)
		reply(t, c, headerMoreData, sha2FastOK)
	})
	if err == nil || !strings.Contains(err.Error(), "RSA key") {
		t.Errorf("got %v, want an error about the key", err)
	}
	rounds := 0
	err = scripted(t, l, scriptGreeting, func(c *Conn) {
		for {
			if _, err := c.ReadPacket(1 << 16); err != nil {
				return
			}
			rounds++
			_ = c.WritePacket(switchPayload("mysql_native_password", append(bytes.Repeat([]byte{7}, SaltSize), 0)))
		}
	})
	if err == nil || !strings.Contains(err.Error(), "went on asking") || rounds > maxAuthRounds+1 {
		t.Errorf("got %v after %d rounds", err, rounds)
	}
}
