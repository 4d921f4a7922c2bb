package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// mysqlCheck is what HAProxy 2.6 sends for "option mysql-check user NAME": a login without a
// password, and COM_QUIT in the same write.
func mysqlCheck(form, user string) []byte {
	var login []byte
	switch form {
	case "post-41":
		login = append([]byte("\x00\x82\x00\x00\x00\x80\x00\x01\x21"), make([]byte, 23)...)
	case "pre-41":
		login = []byte("\x00\x80\x00\x00\x01")
	}
	login = append(append(login, user...), 0, 0)
	b, _ := protocol.AppendPacket(nil, login, 1)
	return append(b, 1, 0, 0, 0, byte(protocol.ComQuit))
}

// check makes one check from an address of this machine, and returns all that comes after the
// greeting.
func check(t *testing.T, from, addr string, sent []byte) (answer []byte, err error) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: wireTimeout}
	nc, err := dialer.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := protocol.NewConn(nc, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := protocol.ReadGreeting(c); err != nil {
		return nil, err
	}
	if _, err := c.Write(sent); err != nil {
		return nil, err
	}
	for {
		if err := c.Fill(); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
				// The server resets the connection when it closes with bytes unread.
				err = nil
			}
			return append(answer, c.Buffered()...), err
		}
	}
}

// There are more checks than max_connect_errors, and each gets the server's answer.
func TestHAProxysMySQLCheckGetsTheServersAnswer(t *testing.T) {
	e, server := startByOtherHost(t, nil)
	account(t, server, "checker@'%'", "")
	account(t, server, "with_password@'%'", "IDENTIFIED BY 'pw'")
	db := server.DB(t, "")
	for _, form := range []string{"post-41", "pre-41"} {
		for _, user := range []string{"checker", "with_password", "nobody_here"} {
			want, err := check(t, "127.0.0.1", server.Addr(), mysqlCheck(form, user))
			if err != nil || len(want) == 0 {
				t.Fatalf("%s as %s, direct: got %x, %v", form, user, want, err)
			}
			// The address of the proxy.
			want = bytes.ReplaceAll(want, []byte("localhost"), []byte(otherHost))
			if ok := want[4] == 0; ok != (user == "checker" && server.IsMariaDB()) {
				t.Fatalf("%s as %s, direct: got %q", form, user, want)
			}
			for range 5 {
				got, err := check(t, "127.0.0.1", e.Addr(), mysqlCheck(form, user))
				if err != nil || string(got) != string(want) {
					t.Errorf("%s as %s: got %q, %v, want %q as direct", form, user, got, err, want)
				}
			}
		}
		for range 100 {
			if got, err := check(t, "127.0.0.1", e.Addr(), mysqlCheck(form, "checker")); err != nil || got[4] != 0 && server.IsMariaDB() {
				t.Fatalf("%s, again and again: got %q, %v", form, got, err)
			}
		}
	}
	if all, _ := handshakeErrors(t, db); all != 0 {
		t.Errorf("the server counts %d faulty logins of the proxy's host", all)
	}
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("a client: %v", err)
	}
	if !server.IsMariaDB() {
		return
	}
	// A client that goes on in the old protocol gets an error, and no bytes that it cannot read.
	login := mysqlCheck("pre-41", "checker")
	query, _ := protocol.AppendPacket(login[:len(login)-5], []byte("\x03SELECT 1"), 0)
	got, err := check(t, "127.0.0.1", e.Addr(), query)
	if err != nil || !strings.HasPrefix(string(got), "\x03\x00\x00\x02\x00\x00\x00") || !strings.Contains(string(got), "\x01\xff\xe3\x04Client does not support") {
		t.Errorf("a statement in the old protocol: got %q, %v, want OK to the login and error 1251", got, err)
	}
}

func TestUsersOfTheProxyAreCheckedLikeThoseOfTheServer(t *testing.T) {
	shared := mysqltest.Shared(t)
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: "checker"}, proxy.User{Name: "with_password", Password: "pw"})
	}})
	for _, name := range []string{"checker", "with_password"} {
		account(t, shared, name+"@'%'", map[string]string{"with_password": "IDENTIFIED BY 'pw'"}[name])
		for _, form := range []string{"post-41", "pre-41"} {
			got, err := check(t, "127.0.0.1", e.Addr(), mysqlCheck(form, name))
			want, errDirect := check(t, "127.0.0.1", shared.Addr(), mysqlCheck(form, name))
			if err != nil || errDirect != nil {
				t.Fatal(err, errDirect)
			}
			if shared.IsMariaDB() && string(got) != string(want) {
				t.Errorf("%s as %s: got %q, want %q as direct", form, name, got, want)
			}
		}
	}
}

// HAProxy itself checks a proxy whose server checks the logins.
func TestHAProxyFindsTheProxyUp(t *testing.T) {
	binary := haproxyBinary(t)
	if binary == "" {
		t.Skip("HAProxy is not there")
	}
	e, server := startByOtherHost(t, nil)
	account(t, server, "checker@'%'", "")
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "s")
	text := fmt.Sprintf("global\n\tstats socket %s\ndefaults\n\tmode tcp\n\ttimeout connect 5s\n\ttimeout client 20s\n\ttimeout server 20s\n", socket)
	for _, form := range []string{"post-41", "pre-41"} {
		text += fmt.Sprintf("backend %s\n\toption mysql-check user checker %s\n\tserver proxy %s check inter 20ms\n", form, form, e.Addr())
	}
	text += fmt.Sprintf("listen any\n\tbind unix@%s\n\tuse_backend pre-41\n", filepath.Join(dir, "l"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(binary, "-db", "-f", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	// HAProxy's view of each server: the state, and the result of the last check.
	stats := func() (lines []string) {
		nc, err := net.Dial("unix", socket)
		if err != nil {
			return nil
		}
		defer nc.Close()
		_, _ = io.WriteString(nc, "show stat\n")
		all, _ := io.ReadAll(nc)
		for line := range strings.Lines(string(all)) {
			if strings.Contains(line, ",proxy,") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	state, status := ",UP,", ",L7OK,"
	if !server.IsMariaDB() { // MySQL refuses such a client, also direct
		state, status = ",DOWN,", ",L7STS,"
	}
	eventually(t, "both checks report what they report direct", func() bool {
		lines := stats()
		for _, line := range lines {
			if !strings.Contains(line, state) || !strings.Contains(line, status) {
				return false
			}
		}
		return len(lines) == 2
	})
	if t.Failed() {
		t.Logf("%q", stats())
	}
	if err := e.tryLogin(t, e.Addr(), "", nil); err != nil {
		t.Errorf("a client: %v", err)
	}
}
