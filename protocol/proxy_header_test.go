package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
)

// header2 is a header of version 2.
func header2(command, family byte, rest string) string {
	return string(proxySignature) + string([]byte{command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

const (
	// 192.0.2.7:56324 to 127.0.0.1:4306
	addresses4 = "\xc0\x00\x02\x07\x7f\x00\x00\x01\xdc\x04\x10\xd2"
	addresses6 = "\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x07" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" + "\xdc\x04\x10\xd2"
	mapped4    = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xc0\x00\x02\x07" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01" + "\xdc\x04\x10\xd2"
)

var proxyHeaders = []struct {
	what, header string
	host         string // "127.0.0.1": the balancer's own; "": refused
}{
	{"1, IPv4", "PROXY TCP4 192.0.2.7 127.0.0.1 56324 4306\r\n", "192.0.2.7"},
	{"1, IPv6", "PROXY TCP6 2001:db8::7 ::1 56324 4306\r\n", "2001:db8::7"},
	{"1, IPv4 in IPv6", "PROXY TCP6 ::ffff:192.0.2.7 ::ffff:127.0.0.1 56324 4306\r\n", "192.0.2.7"},
	{"1, longest", "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe 65535 65535\r\n", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	{"1, unknown", "PROXY UNKNOWN\r\n", "127.0.0.1"},
	{"1, unknown with addresses", "PROXY UNKNOWN 192.0.2.7 127.0.0.1 1 2\r\n", "127.0.0.1"},
	{"1, of another family", "PROXY TCP4 2001:db8::7 ::1 56324 4306\r\n", ""},
	{"1, a port too high", "PROXY TCP4 192.0.2.7 127.0.0.1 65536 4306\r\n", ""},
	{"1, a name", "PROXY TCP4 localhost 127.0.0.1 56324 4306\r\n", ""},
	{"1, without ports", "PROXY TCP4 192.0.2.7 127.0.0.1\r\n", ""},
	{"1, with more", "PROXY TCP4 192.0.2.7 127.0.0.1 56324 4306 x\r\n", ""},
	{"1, without CR", "PROXY TCP4 192.0.2.7 127.0.0.1 56324 4306\n", ""},
	{"1, UDP", "PROXY UDP4 192.0.2.7 127.0.0.1 56324 4306\r\n", ""},
	{"1, endless", "PROXY TCP4 " + strings.Repeat("1", 200), ""},
	{"2, IPv4", header2(0x21, 0x11, addresses4), "192.0.2.7"},
	{"2, IPv6", header2(0x21, 0x21, addresses6), "2001:db8::7"},
	{"2, IPv4 in IPv6", header2(0x21, 0x21, mapped4), "192.0.2.7"},
	{"2, with TLVs", header2(0x21, 0x11, addresses4+"\x04\x00\x03abc\x05\x00\x01x"), "192.0.2.7"},
	{"2, with TLVs that are broken", header2(0x21, 0x11, addresses4+"\x04\xff"), "192.0.2.7"},
	{"2, as long as is taken", header2(0x21, 0x11, addresses4+strings.Repeat("\x04\x00\x01x", 1021)), "192.0.2.7"},
	{"2, longer", header2(0x21, 0x11, addresses4+strings.Repeat("\x04\x00\x01x", 1022)), ""},
	{"2, local", header2(0x20, 0x00, ""), "127.0.0.1"},
	{"2, local with addresses", header2(0x20, 0x11, addresses4), "127.0.0.1"},
	{"2, local with TLVs", header2(0x20, 0x00, "\x04\x00\x03abc"), "127.0.0.1"},
	{"2, unspecified", header2(0x21, 0x00, ""), "127.0.0.1"},
	{"2, unspecified with TLVs", header2(0x21, 0x00, "\x04\x00\x03abc"), "127.0.0.1"},
	{"2, Unix socket", header2(0x21, 0x31, strings.Repeat("/run/x", 36)), "127.0.0.1"},
	{"2, UDP", header2(0x21, 0x12, addresses4), ""},
	{"2, an unknown family", header2(0x21, 0x41, addresses4), ""},
	{"2, an unknown command", header2(0x22, 0x11, addresses4), ""},
	{"2, another version", header2(0x31, 0x11, addresses4), ""},
	{"2, too short", header2(0x21, 0x11, addresses4[:8]), ""},
	{"2, IPv6 too short", header2(0x21, 0x21, addresses4), ""},
}

func TestAPROXYHeaderNamesTheClient(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.ProxyHeader, l.TLS = true, serverTLS() })
	for _, c := range proxyHeaders {
		for _, how := range []string{"at once", "byte by byte", "in front of the login", "over TLS"} {
			if how == "byte by byte" && len(c.header) > 300 {
				continue
			}
			t.Run(c.what+"/"+how, func(t *testing.T) {
				client := &rawClient{Conn: s.dial(t), t: t}
				write := func() {
					piece := len(c.header)
					if how == "byte by byte" {
						piece = 1
					}
					for b := []byte(c.header); len(b) > 0; b = b[min(piece, len(b)):] {
						if _, err := client.Write(b[:min(piece, len(b))]); err != nil {
							return // refused already
						}
						if piece == 1 {
							time.Sleep(100 * time.Microsecond)
						}
					}
				}
				if how == "at once" {
					write()
				}
				var err error
				if client.greeting, err = ReadGreeting(client.Conn); err != nil {
					t.Fatal(err)
				}
				if how != "at once" {
					write()
				}
				if c.host == "" {
					var refused *ServerError
					if b, err := client.Conn.ReadPacket(1 << 16); err == nil {
						if err := ParseServerError(b); !errors.As(err, &refused) || refused.Code != 1105 {
							t.Errorf("got %v, want error 1105", err)
						}
					}
					var he *HandshakeError
					if got := s.take(t); !errors.As(got.err, &he) || !errors.Is(he, ErrMalformed) {
						t.Errorf("got %v, want a malformed login", got.err)
					}
					return
				}
				r := HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "caching_sha2_password"}
				if how == "over TLS" {
					client.send(r.SSLRequest())
					if err := client.StartTLSClient(clientTLS()); err != nil {
						t.Fatal(err)
					}
				}
				client.respond(r)
				client.wantERR(1045, "Access denied for user 'app'@'"+c.host+"' (using password: NO)")
				var ae *AuthError
				if got := s.take(t); !errors.As(got.err, &ae) || ae.Host != c.host {
					t.Errorf("got %v, want a refusal of a client at %s", got.err, c.host)
				}
			})
		}
	}
}

func TestAHeaderForAUnixSocketDoesNotMakeTheConnectionSafe(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.ProxyHeader, l.TLS, l.RequireTLS = true, serverTLS(), true })
	client := s.raw(t)
	if _, err := client.Write([]byte(header2(0x21, 0x31, strings.Repeat("/run/x", 36)))); err != nil {
		t.Fatal(err)
	}
	client.respond(HandshakeResponse{Capabilities: loginCapabilities, User: "app", Plugin: "mysql_clear_password", AuthResponse: []byte(appPassword + "\x00")})
	client.wantERR(3159, "insecure transport")
}

func TestALoginWithoutTheHeaderThatIsExpectedIsRefused(t *testing.T) {
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.ProxyHeader = true })
	err := func() error {
		_, err := (&ClientLogin{User: "app", Password: appPassword}).Run(s.dial(t))
		return err
	}()
	var refused *ServerError
	if !errors.As(err, &refused) || refused.Code != 1043 || refused.State != "08S01" || !strings.Contains(refused.Message, "PROXY header") {
		t.Errorf("got %v, want 1043 that names the header", err)
	}
	if got := s.take(t); !errors.Is(got.err, errNoProxyHeader) {
		t.Errorf("got %v, want the reason", got.err)
	}
}

func TestAHeaderThatIsNotExpectedIsRefusedAtOnce(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	for _, c := range proxyHeaders {
		client := s.raw(t)
		if _, err := client.Write([]byte(c.header)); err != nil {
			t.Fatal(err)
		}
		// The refusal does not wait for more.
		client.wantERR(1130, "Proxy header is not accepted from 127.0.0.1")
		if got := s.take(t); !errors.Is(got.err, ErrMalformed) {
			t.Errorf("%s: got %v, want a malformed login", c.what, got.err)
		}
	}
}

func TestAHeaderThatDoesNotEndIsBoundedByTheDeadline(t *testing.T) {
	for _, part := range []string{"", "PROX", "PROXY TCP4 192.0.2.7 ", string(proxySignature), header2(0x21, 0x11, addresses4)[:20]} {
		client, server := socketPair(t)
		if err := server.SetDeadline(time.Now().Add(30 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		err := server.ReadProxyHeader(true)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%q: got %v, want a timeout", part, err)
		}
		client.Close()
		server.Close()
	}
}

// FuzzProxyHeader gives the front of a stream any bytes, whole and cut in two.
func FuzzProxyHeader(f *testing.F) {
	for _, c := range proxyHeaders {
		f.Add([]byte(c.header), 5)
		f.Add([]byte(c.header+"\x01\x00\x00\x01x"), len(c.header))
	}
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		n, err := proxyHeaderLen(b)
		if n < 0 || n > len(b) || n > proxyHead+maxProxyRest || (n > 0 && err != nil) {
			t.Fatalf("length %d, %v of %d bytes", n, err, len(b))
		}
		// A decision about a prefix stands, whatever follows.
		if cut >= 0 && cut <= len(b) {
			part, partErr := proxyHeaderLen(b[:cut])
			if part > 0 && part != n || partErr != nil && err == nil {
				t.Fatalf("of %d bytes: %d, %v; of all: %d, %v", cut, part, partErr, n, err)
			}
		}
		// The library finds the end of the header at the same place.
		stream := bufio.NewReaderSize(bytes.NewReader(b), 1<<17)
		h, libraryErr := proxyproto.Read(stream)
		if n == 0 {
			if libraryErr == nil && err == nil {
				t.Fatalf("more is waited for, but the library is content with %d bytes: %+v", len(b), h)
			}
			return
		}
		addr, err := parseProxyHeader(b[:n])
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Fatalf("got %v, want a malformed packet", err)
		}
		if libraryErr == nil {
			rest, err := io.ReadAll(stream)
			if err != nil || !bytes.Equal(rest, b[n:]) {
				t.Fatalf("got %d bytes after the header, want %d as in the library (%v)", len(b)-n, len(rest), err)
			}
		}
		if addr != nil && (libraryErr != nil || HostOf(addr) != HostOf(h.SourceAddr) || addr.Network() != "tcp") {
			t.Fatalf("got %v, the library %+v, %v", addr, h, libraryErr)
		}
	})
}
