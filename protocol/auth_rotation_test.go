package protocol

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
)

// lookupRotating knows users with names of one length, as messages hold them.
func lookupRotating(user string) (Account, bool) {
	a, ok := map[string]Account{"app": {Password: "new", OldPassword: "old"}, "one": {Password: "one"}, "opn": {}}[user]
	return a, ok
}

func TestAnOldPasswordLetsInBesideTheNewOne(t *testing.T) {
	for _, plugin := range []string{"mysql_native_password", "caching_sha2_password", "sha256_password", "in full"} {
		s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.OldPasswords = true })
		s.mu.Lock()
		s.lookup = lookupRotating
		s.mu.Unlock()
		steps := make(map[bool][]string) // of accepted logins, and of refused ones
		for _, c := range []struct {
			user, password string
			right, old     bool
		}{
			{"app", "new", true, false},
			{"app", "old", true, true},
			{"app", "odd", false, false},
			{"app", "", false, false},
			{"opn", "old", false, false},
			{"opn", "", true, false},
			{"one", "old", false, false},
			{"one", "one", true, false},
			{"non", "new", false, false},
		} {
			t.Run(fmt.Sprintf("%s/%s:%s", plugin, c.user, c.password), func(t *testing.T) {
				client := s.raw(t)
				salt := client.greeting.Salt
				r := HandshakeResponse{Capabilities: loginCapabilities, User: c.user, Plugin: plugin}
				switch {
				case plugin == "in full":
					r.Plugin, r.AuthResponse = "caching_sha2_password", make([]byte, sha2Answer)
				case c.password == "" && plugin != "mysql_native_password":
					r.AuthResponse = []byte{0}
				case plugin == "caching_sha2_password":
					r.AuthResponse = sha2(salt, c.password)
				case plugin == "sha256_password":
					r.AuthResponse = encrypted(t, salt, c.password)
				}
				client.respond(r)
				for b := client.receive(); b[0] != headerOK && b[0] != headerERR; b = client.receive() {
					switch {
					case b[0] == headerAuthSwitch:
						request, err := ParseAuthSwitch(b)
						if err != nil {
							t.Fatal(err)
						}
						if salt, err = request.salt(); err != nil {
							t.Fatal(err)
						}
						client.send(native(salt, c.password))
					case bytes.Equal(b, []byte{headerMoreData, sha2FullAuth}):
						client.send(encrypted(t, salt, c.password))
					}
				}
				got := s.take(t)
				if c.right = c.right && (plugin != "in full" || c.password != ""); (got.err == nil) != c.right || got.usedOld != c.old {
					t.Errorf("got %v, by the old one: %v, want let in %v, %v", got.err, got.usedOld, c.right, c.old)
				}
				if c.password == "" {
					return
				}
				if before := steps[c.right]; before != nil && !reflect.DeepEqual(before, got.steps) {
					t.Errorf("steps %v, of another login with that end %v", got.steps, before)
				}
				steps[c.right] = got.steps
			})
		}
	}
}

func TestEveryAnswerIsComparedWithAsManyPasswords(t *testing.T) {
	for _, two := range []bool{false, true} {
		for _, user := range []string{"app", "one", "opn", "non"} {
			account, exists := lookupRotating(user)
			v := newVerifier(account, exists, two)
			n := 0
			v.compareAll(func(string) int { n++; return 0 })
			if want := map[bool]int{false: 1, true: 2}[two]; n != want {
				t.Errorf("%s: compared with %d, want %d", user, n, want)
			}
		}
	}
}

func TestTheDecoyIsNoOldPassword(t *testing.T) {
	for _, user := range []string{"app", "one", "opn", "non"} {
		account, exists := lookupRotating(user)
		v := newVerifier(account, exists, true)
		if v.clear([]byte(decoyPassword())) {
			t.Errorf("%s: the decoy was accepted", user)
		}
	}
}
