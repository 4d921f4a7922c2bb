package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// Flags that change the session, not the bytes on the wire.

// Checklist 3.
func TestAnInteractiveClientHasTheServersInteractiveTimeout(t *testing.T) {
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Start(t, "--wait-timeout=222", "--interactive-timeout=111")}})
	for caps, want := range map[protocol.Capability]string{allFraming: "222", allFraming | protocol.Interactive: "111"} {
		p := e.Pair(t, 0, wireLogin{Capabilities: caps})
		p.query("SELECT @@wait_timeout")
		if got := p.Proxy.rows("SELECT @@wait_timeout")[0]; got != want {
			t.Errorf("flags %x: got wait_timeout %s, want %s", uint64(caps), got, want)
		}
	}
}

// Checklist 3.
func TestAnExpiredPasswordIsTheServersToJudge(t *testing.T) {
	server := mysqltest.Start(t, "--disconnect-on-expired-password=ON")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	for _, caps := range []protocol.Capability{allFraming, allFraming | protocol.ExpiredPasswords} {
		for _, schema := range []string{"", e.Schemas[0]} {
			server.Exec(t, "ALTER USER "+e.User+"@'%' PASSWORD EXPIRE")
			l := wireLogin{Schema: schema, Capabilities: caps}
			direct, directErr := e.tryWire(t, server.Addr(), l)
			proxied, proxiedErr := e.tryWire(t, e.Addr(), l)
			name := fmt.Sprintf("flags %x, schema %q", uint64(caps), schema)
			if !caps.Has(protocol.ExpiredPasswords) {
				if directErr == nil {
					t.Fatalf("%s: a direct login succeeds with an expired password", name)
				}
				if schema == "" && proxiedErr == nil { // the proxy asks the server only when it needs it
					proxiedErr = serverError(t, proxied.query("SELECT 1"))
				}
				if fmt.Sprint(proxiedErr) != fmt.Sprint(directErr) {
					t.Errorf("%s: got %v, want %v as direct", name, proxiedErr, directErr)
				}
				continue
			}
			if fmt.Sprint(proxiedErr) != fmt.Sprint(directErr) {
				t.Errorf("%s: got %v, want %v as direct", name, proxiedErr, directErr)
			}
			if directErr != nil {
				continue
			}
			p := &pair{t: t, Proxy: proxied, Direct: direct}
			p.query("SELECT 1")
			p.same(protocol.ComStmtPrepare, "SELECT 1")
			p.query("SHOW TABLES")
			set := fmt.Sprintf("ALTER USER %s@'%%' IDENTIFIED BY '%s'", e.User, e.Password)
			if strings.Contains(direct.hello.Greeting.Version, "MariaDB") {
				set = fmt.Sprintf("SET PASSWORD = PASSWORD('%s')", e.Password)
			}
			if got := proxied.query(set); got[4] != 0 {
				t.Errorf("%s: %v", name, serverError(t, got))
			}
			if got := proxied.rows("SELECT 5")[0]; got != "5" {
				t.Errorf("%s: after the password was set: got %s, want 5", name, got)
			}
		}
	}
	server.Exec(t, fmt.Sprintf("ALTER USER %s@'%%' IDENTIFIED BY '%s'", e.User, e.Password))
}
