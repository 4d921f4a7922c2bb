package protocol

import (
	"bytes"
	"testing"
)

// FuzzRelayedLogin combines arbitrary packets of a server and a client, without TLS. A client may
// log in only if a plugin that checks passwords has challenged it and it has answered.
func FuzzRelayedLogin(f *testing.F) {
	salt := append(bytes.Repeat([]byte{7}, SaltSize), 0)
	ok := okPayload()
	for _, plugin := range []string{"mysql_native_password", "caching_sha2_password", "sha256_password", "client_ed25519", "parsec", "auth_socket", "mysql_clear_password", "dialog", ""} {
		f.Add(switchPayload(plugin, salt), ok, ok, []byte("an answer"), []byte{2})
		f.Add([]byte("\x02"+plugin+"\x00"), ok, ok, []byte("an answer"), []byte{2})
	}
	f.Add(ok, ok, ok, []byte{}, []byte{})
	f.Add(switchPayload("caching_sha2_password", salt), []byte{headerMoreData, sha2FullAuth}, ok, make([]byte, 32), []byte{2})
	f.Add(switchPayload("caching_sha2_password", salt), []byte{headerMoreData, sha2FastOK}, ok, make([]byte, 32), []byte{2})
	f.Add([]byte{headerMoreData, sha2FastOK}, ok, ok, []byte{0}, []byte{0})
	f.Add(switchPayload("mysql_native_password", salt), switchPayload("unix_socket", nil), ok, make([]byte, 20), []byte{0})
	passwords := map[string]bool{"mysql_native_password": true, "caching_sha2_password": true, "sha256_password": true, "client_ed25519": true, "parsec": true}
	f.Fuzz(func(t *testing.T, first, second, third, answer, further []byte) {
		said := [][]byte{first, second, third}
		server, client := &scriptedPackets{in: said}, &scriptedPackets{in: [][]byte{answer, further}}
		a := &Attempt{
			Hello: ClientHello{User: "app", Capabilities: loginCapabilities | MultiFactor},
			login: &ServerLogin{RSA: testRSA}, pc: client,
		}
		r := a.Relay()
		response := &HandshakeResponse{Capabilities: loginCapabilities | MultiFactor}
		if err := r.respond(server, &Greeting{Capabilities: PluginAuth}, response); err != nil {
			t.Fatal(err)
		}
		_, err := r.run()
		challenged := false
		for _, b := range client.out {
			if len(b) == 0 || b[0] != headerAuthSwitch && (b[0] != headerNextFactor || challenged) {
				continue // a plugin's data may begin with any byte
			}
			name, _, _ := bytes.Cut(b[1:], []byte{0})
			if !passwords[string(name)] {
				t.Errorf("the client was asked by the plugin %q", name)
			}
			challenged = true
		}
		if err == nil && (!challenged || len(server.out) == 0 || !bytes.Equal(server.out[0], answer)) {
			t.Errorf("the login succeeded: the server sent %q, the client got %q, the server %q", said, client.out, server.out)
		}
	})
}
