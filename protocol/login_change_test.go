package protocol

import (
	"bytes"
	"errors"
	"testing"
)

// loggedIn is a raw client that has logged in as app.
func (s *loginServer) loggedIn(t *testing.T, capabilities Capability) *rawClient {
	t.Helper()
	c := s.raw(t)
	c.respond(HandshakeResponse{Capabilities: capabilities, User: "app", AuthResponse: native(c.greeting.Salt, appPassword), Plugin: "mysql_native_password", Attrs: Attrs(nil).With("a", "b")})
	c.wantOK()
	if got := s.take(t); got.err != nil {
		t.Fatal(got.err)
	}
	c.SetPacketNum(0)
	return c
}

// Checklist 8.
func TestAChangeOfUserAsksAgainWithAFreshSalt(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for _, plugin := range []string{"mysql_native_password", "caching_sha2_password", "sha256_password", "mysql_clear_password", "something"} {
		t.Run(plugin, func(t *testing.T) {
			c := s.loggedIn(t, loginCapabilities)
			// The answer in the command fits the greeting's salt, and is not accepted.
			c.send(changeUserPayload(&ChangeUserRequest{
				User: "other", AuthResponse: native(c.greeting.Salt, "other"), Database: "album1", HasCollation: true, Collation: 33,
				Plugin: plugin, Attrs: Attrs(nil).With("c", "d"),
			}, loginCapabilities))
			used := "caching_sha2_password"
			if plugin == "mysql_native_password" || plugin == "sha256_password" {
				used = plugin
			}
			salt := c.wantSwitch(used)
			switch used {
			case "mysql_native_password":
				c.send(native(salt, "other"))
			case "sha256_password":
				c.send(encrypted(t, salt, "other"))
			default:
				c.send(sha2(salt, "other"))
				if b := c.receive(); !bytes.Equal(b, []byte{headerMoreData, sha2FastOK}) {
					t.Fatalf("got %x, want success", b)
				}
			}
			c.wantOK()
			got := s.take(t)
			if got.err != nil {
				t.Fatal(got.err)
			}
			h := got.hello
			if v, _ := h.Attrs.Get("c"); v != "d" || h.User != "other" || h.Database != "album1" || h.Collation != 33 || h.Plugin != used || h.Capabilities != loginCapabilities || !h.PasswordUsed {
				t.Errorf("got %+v", h)
			}
		})
	}
}

func TestAChangeOfUserWithAWrongPasswordIsRefused(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for _, user := range []string{"other", "nobody"} {
		c := s.loggedIn(t, loginCapabilities)
		c.send(changeUserPayload(&ChangeUserRequest{User: user, HasCollation: true, Plugin: "mysql_native_password", Attrs: Attrs{}}, loginCapabilities))
		c.send(native(c.wantSwitch("mysql_native_password"), "wrong"))
		c.wantERR(1045, "Access denied for user '"+user+"'@'127.0.0.1' (using password: YES)")
		var ae *AuthError
		if got := s.take(t); !errors.As(got.err, &ae) || ae.User != user {
			t.Errorf("got %v, want an *AuthError", got.err)
		}
	}
}

func TestAClientWithoutPluginsChangesUserByTheGreetingsSalt(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for password, right := range map[string]bool{"other": true, "wrong": false} {
		c := s.loggedIn(t, Protocol41|SecureConnection)
		c.send(changeUserPayload(&ChangeUserRequest{User: "other", AuthResponse: native(c.greeting.Salt, password)}, 0))
		if right {
			c.wantOK()
		} else {
			c.wantERR(1045, "using password: YES")
		}
		if got := s.take(t); (got.err == nil) != right {
			t.Errorf("%s: got %v", password, got.err)
		}
	}
}

func TestAMalformedChangeOfUserIsRefused(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	c := s.loggedIn(t, loginCapabilities)
	c.send([]byte("\x11other"))
	c.wantERR(1043, "Bad handshake")
	var he *HandshakeError
	if got := s.take(t); !errors.As(got.err, &he) {
		t.Errorf("got %v, want a *HandshakeError", got.err)
	}
}
