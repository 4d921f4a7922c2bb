package protocol

import (
	"crypto/tls"
	"testing"
)

// An empty answer to the greeting's own plugin means that there is no password. To another plugin
// it means that the client waits to be asked. MySQL 9's clients have no mysql_native_password, and
// answer so if the greeting names it.
//
// Checklist 6.
func TestAnEmptyAnswerIsOneToTheGreetingsPluginOnly(t *testing.T) {
	const nativeName, sha2Name = "mysql_native_password", "caching_sha2_password"
	for greeted, prove := range map[string]bool{nativeName: true, sha2Name: false} {
		s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.Prove = prove })
		for _, plugin := range []string{nativeName, sha2Name, "sha256_password", "something", "mysql_clear_password"} {
			for user, password := range map[string]string{"open": "", "app": appPassword} {
				c := s.raw(t)
				if c.greeting.Plugin != greeted {
					t.Fatalf("the greeting names %s, want %s", c.greeting.Plugin, greeted)
				}
				salt, asked := c.greeting.Salt, plugin
				answer := func() []byte {
					switch {
					case password == "" && asked == nativeName:
						return nil
					case password == "":
						return []byte{0}
					case asked == nativeName:
						return native(salt, password)
					case asked == sha2Name:
						return sha2(salt, password)
					}
					return encrypted(t, salt, password)
				}
				r := HandshakeResponse{Capabilities: loginCapabilities, User: user, Plugin: plugin}
				if plugin == greeted {
					r.AuthResponse = answer()
				}
				c.respond(r)
				if plugin != greeted {
					switch plugin {
					case "something":
						asked = greeted
					case "mysql_clear_password":
						// mysql_clear_password is not asked for without TLS, and MySQL 9's clients
						// have no other plugin of their own.
						asked = sha2Name
					}
					salt = c.wantSwitch(asked)
					c.send(answer())
				}
				b := c.receive()
				if b[0] == headerMoreData {
					b = c.receive()
				}
				if b[0] != headerOK {
					t.Errorf("greeting %s, client %s, user %s: got %q", greeted, plugin, user, b)
				}
				if got := s.take(t); got.err != nil || got.hello.Plugin != asked {
					t.Errorf("greeting %s, client %s, user %s: got %+v, %v, want success by %s", greeted, plugin, user, got.hello, got.err, asked)
				}
			}
		}
	}
}

func TestATLSSessionOfAClientIsResumed(t *testing.T) {
	current := serverTLS()
	for name, cfg := range map[string]*tls.Config{
		"fixed":          serverTLS(),
		"read from file": {GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current, nil }},
	} {
		for _, prove := range []bool{false, true} {
			s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS, l.Prove = cfg, prove })
			client := clientTLS()
			client.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			for i := range 2 {
				conn := s.dial(t)
				if _, err := (&ClientLogin{User: "app", Password: appPassword, TLS: client}).Run(conn); err != nil {
					t.Fatal(err)
				}
				if got := conn.tls.ConnectionState().DidResume; got != (i == 1) {
					t.Errorf("%s, proving %v, connection %d: resumed %v", name, prove, i, got)
				}
				if got := s.take(t); got.err != nil {
					t.Error(got.err)
				}
			}
		}
	}
}
