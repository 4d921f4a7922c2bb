package protocol

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

func TestErrorsTellTheLogWhatTheClientIsNotTold(t *testing.T) {
	for want, err := range map[string]error{
		`login of "app" from 10.0.0.9 refused: unknown user (caching_sha2_password)`:        &AuthError{User: "app", Host: "10.0.0.9", Plugin: "caching_sha2_password", UsingPassword: true},
		`login of "app" from 10.0.0.9 refused: wrong password (mysql_native_password)`:      &AuthError{User: "app", Host: "10.0.0.9", Plugin: "mysql_native_password", UsingPassword: true, UserExists: true},
		`login of "a\nb" from localhost refused: no password given (caching_sha2_password)`: &AuthError{User: "a\nb", Host: "localhost", Plugin: "caching_sha2_password", UserExists: true},
		`login refused (1043): malformed packet`:                                            &HandshakeError{Code: 1043, Err: ErrMalformed},
		`server error 1040: Too many connections`:                                           &ServerError{Code: 1040, Message: "Too many connections"},
		`server error 1045 (28000): Access denied`:                                          &ServerError{Code: 1045, State: "28000", Message: "Access denied"},
	} {
		if err.Error() != want {
			t.Errorf("got %s, want %s", err, want)
		}
	}
	if err := fmt.Errorf("client: %w", &HandshakeError{Code: 1043, Err: ErrMalformed}); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v, want its cause to be found", err)
	}
}

func TestTheClientIsToldTheSameForEveryRefusal(t *testing.T) {
	user := &AuthError{User: "app", Host: "h", UsingPassword: true, UserExists: true, Plugin: "a"}
	unknown := &AuthError{User: "app", Host: "h", UsingPassword: true, Plugin: "b"}
	if user.message() != unknown.message() || !strings.Contains(user.message(), "'app'@'h' (using password: YES)") {
		t.Errorf("got %q and %q", user.message(), unknown.message())
	}
}

func TestPrintingAnAccountDoesNotShowItsPassword(t *testing.T) {
	a := Account{Password: "s3cret"}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, a); strings.Contains(got, "s3cret") {
			t.Errorf("%s: got %s", format, got)
		}
	}
}

func TestAHostIsNamedWithoutItsPort(t *testing.T) {
	for want, addr := range map[string]net.Addr{
		"127.0.0.1":   &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9},
		"::1":         &net.TCPAddr{IP: net.IPv6loopback, Port: 9},
		"10.1.2.3":    &net.TCPAddr{IP: net.ParseIP("::ffff:10.1.2.3"), Port: 9},
		"localhost":   &net.UnixAddr{Net: "unix"},
		"":            nil,
		"192.168.1.1": textAddr("192.168.1.1:44"),
	} {
		if got := HostOf(addr); got != want {
			t.Errorf("%v: got %q, want %q", addr, got, want)
		}
	}
}

type textAddr string

func (textAddr) Network() string  { return "test" }
func (a textAddr) String() string { return string(a) }
