package protocol

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
)

func FuzzServerAnswer(f *testing.F) {
	salt := append(bytes.Repeat([]byte{7}, SaltSize), 0)
	keys, err := testRSA.load()
	if err != nil {
		f.Fatal(err)
	}
	for _, plugin := range []string{"mysql_native_password", "caching_sha2_password", "sha256_password", "client_ed25519", "mysql_old_password", "x"} {
		f.Add(switchPayload(plugin, salt), append([]byte{headerMoreData}, keys.public...))
	}
	f.Add([]byte{headerMoreData, sha2FullAuth}, append([]byte{headerMoreData}, keys.public...))
	f.Add([]byte{headerMoreData, sha2FastOK}, okPayload())
	f.Add(okPayload(), []byte("\xff\x15\x04#28000no"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		p := &prover{password: "s3cret-password"}
		p.start("caching_sha2_password", testSalt())
		pc := &scriptedPackets{in: [][]byte{first, second}}
		_, err := p.run(pc)
		for _, b := range pc.out {
			if bytes.Contains(b, []byte(p.password)) {
				t.Errorf("the password was sent in clear: %x", b)
			}
		}
		if err != nil && strings.Contains(err.Error(), p.password) && !bytes.Contains(append(first, second...), []byte(p.password)) {
			t.Errorf("the password is in the error: %v", err)
		}
	})
}

// FuzzAuthDialogue gives the server's side arbitrary answers. None may log in.
func FuzzAuthDialogue(f *testing.F) {
	f.Add("caching_sha2_password", make([]byte, 32), []byte{sha2RequestKey}, make([]byte, 256))
	f.Add("sha256_password", []byte{sha256RequestKey}, make([]byte, 256), []byte{})
	f.Add("sha256_password", []byte{}, []byte{sha256RequestKey}, make([]byte, 256))
	f.Add("mysql_clear_password", []byte(appPassword+"\x00"), []byte(appPassword+"\x00"), []byte{})
	f.Add("mysql_native_password", []byte{}, make([]byte, 20), []byte{})
	f.Add("", []byte{0}, []byte{0}, []byte{0})
	f.Fuzz(func(t *testing.T, plugin string, first, second, third []byte) {
		pc := &scriptedPackets{in: [][]byte{second, third}}
		a := &Attempt{
			Hello: ClientHello{User: "app", Capabilities: loginCapabilities, Salt: NewSalt()},
			login: &ServerLogin{RSA: testRSA}, pc: pc, plugin: plugin, answer: first,
		}
		if err := a.Verify(lookupTestUser(a.Hello.User)); err == nil {
			t.Errorf("let in by %q %x %x %x", plugin, first, second, third)
		}
	})
}

// scriptedPackets is a connection without a network, for fuzzing alone.
type scriptedPackets struct {
	in, out [][]byte
}

func (p *scriptedPackets) ReadPacket(int) ([]byte, error) {
	if len(p.in) == 0 {
		return nil, errors.New("end of script")
	}
	b := p.in[0]
	p.in = p.in[1:]
	return b, nil
}

func (p *scriptedPackets) WritePacket(b []byte) error {
	p.out = append(p.out, bytes.Clone(b))
	return nil
}

func (p *scriptedPackets) QueuePacket(b []byte) error { return p.WritePacket(b) }

func (p *scriptedPackets) StartTLSServer(*tls.Config) error   { return errors.New("no TLS") }
func (p *scriptedPackets) StartTLSClient(*tls.Config) error   { return errors.New("no TLS") }
func (p *scriptedPackets) ReadProxyHeader(bool) error         { return nil }
func (p *scriptedPackets) SetPacketNum(uint8)                 {}
func (p *scriptedPackets) PeerCertificate() *x509.Certificate { return nil }
func (p *scriptedPackets) IsTLS() bool                        { return false }
func (p *scriptedPackets) RemoteAddr() net.Addr               { return nil }
