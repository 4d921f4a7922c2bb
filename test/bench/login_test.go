package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// step is a packet of a scripted login. The server sends it, or reads it from the client and checks
// it.
type step struct {
	send []byte
	want func(payload []byte) error
}

// play runs a login against a script and returns the client and its error. An error of the script
// fails the test.
func play(t *testing.T, steps []step) (*client, error) {
	t.Helper()
	near, far := net.Pipe()
	script := make(chan error, 1)
	go func() {
		defer far.Close() //nolint:errcheck // a pipe
		script <- func() error {
			for i, s := range steps {
				if s.send != nil {
					if _, err := far.Write(packet(byte(i), s.send)); err != nil {
						return err
					}
					continue
				}
				other := &client{net: far, buf: make([]byte, 1024), next: byte(i)}
				p, err := other.readPacket()
				if err == nil {
					err = s.want(p)
				}
				if err != nil {
					return fmt.Errorf("step %d: %w", i, err)
				}
			}
			return nil
		}()
	}()
	c := &client{net: near, buf: make([]byte, 1024), forget: func() bool { return true }}
	err := c.login(account{user: "u", password: "secret", schema: "db"})
	if cerr := c.close(); cerr != nil {
		t.Error(cerr)
	}
	if serr := <-script; serr != nil {
		t.Errorf("server's side: %v", serr)
	}
	return c, err
}

const testSalt = "ABCDEFGHabcdefghijkl"

// response checks a handshake response for an answer to the challenge.
func response(plugin string, auth []byte) func([]byte) error {
	return func(p []byte) error {
		tail := append([]byte("u\x00"), byte(len(auth)))
		tail = append(append(tail, auth...), "db\x00"+plugin+"\x00"...)
		if len(p) != 32+len(tail) || !bytes.Equal(p[32:], tail) {
			return fmt.Errorf("handshake response %q, want it to end in %q", p, tail)
		}
		return nil
	}
}

func greetingFor(plugin string) []byte {
	return bytes.Replace(mariaGreeting(), []byte("mysql_native_password"), []byte(plugin), 1)
}

var okPayload = []byte{0, 0, 0, 2, 0, 0, 0}

func TestLoginByCachingSHA2TakesTheFastPath(t *testing.T) {
	auth := mysql.CalcCachingSha2Password([]byte(testSalt), []byte("secret"))
	c, err := play(t, []step{
		{send: greetingFor("caching_sha2_password")},
		{want: response("caching_sha2_password", auth)},
		{send: []byte{1, 3}},
		{send: okPayload},
	})
	if err != nil || c.plugin != "caching_sha2_password" {
		t.Errorf("got %v with plugin %q", err, c.plugin)
	}
}

func TestLoginFollowsASwitchOfThePlugin(t *testing.T) {
	first := mysql.CalcCachingSha2Password([]byte(testSalt), []byte("secret"))
	second := mysql.CalcNativePassword([]byte("another salt, 20 lon"), []byte("secret"))
	c, err := play(t, []step{
		{send: greetingFor("caching_sha2_password")},
		{want: response("caching_sha2_password", first)},
		{send: []byte("\xfemysql_native_password\x00another salt, 20 lon\x00")},
		{want: func(p []byte) error {
			if !bytes.Equal(p, second) {
				return errors.New("wrong answer to the second challenge")
			}
			return nil
		}},
		{send: okPayload},
	})
	if err != nil || c.plugin != "mysql_native_password" {
		t.Errorf("got %v with plugin %q", err, c.plugin)
	}
}

func TestLoginThatNeedsTheFullExchangeIsRefused(t *testing.T) {
	_, err := play(t, []step{
		{send: greetingFor("caching_sha2_password")},
		{want: func([]byte) error { return nil }},
		{send: []byte{1, 4}},
	})
	if err == nil || !strings.Contains(err.Error(), "full exchange") {
		t.Errorf("got %v", err)
	}
}

func TestRefusedLoginGivesTheServersErrorWithoutThePassword(t *testing.T) {
	_, err := play(t, []step{
		{send: greetingFor("mysql_native_password")},
		{want: response("mysql_native_password", mysql.CalcNativePassword([]byte(testSalt), []byte("secret")))},
		{send: []byte("\xff\x15\x04#28000Access denied for user 'u'")},
	})
	if err == nil || !strings.Contains(err.Error(), "1045/28000") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
