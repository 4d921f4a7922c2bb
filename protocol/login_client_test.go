package protocol

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

// query sends a statement that has no rows and returns the answer.
func query(t *testing.T, c *Conn, text string) []byte {
	t.Helper()
	c.SetPacketNum(0)
	if err := c.WritePacket(append([]byte{byte(ComQuery)}, text...)); err != nil {
		t.Fatal(err)
	}
	b, err := c.ReadPacket(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b)
}

func quit(t *testing.T, c *Conn) {
	t.Helper()
	c.SetPacketNum(0)
	if err := c.WritePacket([]byte{byte(ComQuit)}); err != nil {
		t.Error(err)
	}
}

// Checklist 7.
func TestLoginToARealServer(t *testing.T) {
	s := mysqltest.Start(t)
	schema := s.Schema(t)
	s.Exec(t,
		"CREATE USER login_app@'127.0.0.1' IDENTIFIED BY 'pa$$ wörd', login_app@localhost IDENTIFIED BY 'pa$$ wörd', login_open@'127.0.0.1'",
		"GRANT ALL ON "+schema+".* TO login_app@'127.0.0.1', login_app@localhost, login_open@'127.0.0.1'",
	)
	t.Cleanup(func() {
		s.Exec(t, "DROP USER login_app@'127.0.0.1', login_app@localhost, login_open@'127.0.0.1'")
	})
	var offered Capability
	probe := dialLogin(t, "tcp", s.Addr())
	g, err := ReadGreeting(probe)
	if err != nil {
		t.Fatal(err)
	}
	probe.Close()
	offered = g.Capabilities
	if !g.IsMariaDB() {
		t.Logf("the server is %s, not MariaDB", g.Version)
	}

	for _, c := range []struct {
		what, user, password, network, database string
		capabilities                            Capability
		code                                    uint16
	}{
		{"all that can be relayed", "login_app", "pa$$ wörd", "tcp", schema, Relayable &^ QueryAttributes & offered, 0},
		{"few flags", "login_app", "pa$$ wörd", "tcp", "", Protocol41, 0},
		{"over the Unix socket", "login_app", "pa$$ wörd", "unix", schema, Relayable &^ QueryAttributes & offered, 0},
		{"no password", "login_open", "", "tcp", schema, Relayable &^ QueryAttributes & offered, 0},
		{"wrong password", "login_app", "wrong", "tcp", schema, Relayable &^ QueryAttributes & offered, 1045},
		{"no password where one is set", "login_app", "", "tcp", schema, Relayable &^ QueryAttributes & offered, 1045},
		{"unknown user", "login_nobody", "x", "tcp", "", Relayable &^ QueryAttributes & offered, 1045},
		{"unknown database", "login_app", "pa$$ wörd", "tcp", schema + "_none", Relayable &^ QueryAttributes & offered, 1044},
	} {
		t.Run(c.what, func(t *testing.T) {
			addr := s.Addr()
			if c.network == "unix" {
				addr = s.Socket()
			}
			conn := dialLogin(t, c.network, addr)
			l := ClientLogin{
				User: c.user, Password: c.password, Database: c.database, Capabilities: c.capabilities, Collation: 33,
				Attrs: Attrs(nil).With("_client_name", "seqproxy"),
			}
			hello, err := l.Run(conn)
			if c.code != 0 {
				var se *ServerError
				if !errors.As(err, &se) || se.Code != c.code || se.State == "" || se.Message == "" {
					t.Fatalf("got %v, want server error %d", err, c.code)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if hello.Greeting.Version != g.Version || hello.Greeting.ConnectionID == 0 || !hello.Status.Has(Autocommit) || hello.Plugin != g.Plugin {
				t.Errorf("got %+v", hello)
			}
			framing := Capability(PerLogin | LongPassword)
			if got, want := hello.Capabilities&^framing, (c.capabilities|Protocol41)&^framing; got != want {
				t.Errorf("got flags %s, want %s", got.names(), want.names())
			}
			// Each answer is a single OK only if both sides agree on the flags.
			for _, statement := range []string{
				"SET @x = 1",
				fmt.Sprintf("SET @ok = (SELECT 1/(CONNECTION_ID() = %d AND DATABASE() <=> NULLIF('%s','')))", hello.Greeting.ConnectionID, c.database),
				"SET sql_mode='STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO'",
			} {
				if b := query(t, conn, statement); b[0] != headerOK {
					t.Errorf("%s: got %q, want OK", statement, b)
				}
			}
			quit(t, conn)
		})
	}

	// A login that ends with COM_QUIT is not counted as an aborted one.
	var name string
	var before, after int
	db := s.DB(t, "")
	read := func(into *int) {
		if err := db.QueryRowContext(context.Background(), "SHOW GLOBAL STATUS LIKE 'Aborted_clients'").Scan(&name, into); err != nil {
			t.Fatal(err)
		}
	}
	read(&before)
	conn := dialLogin(t, "tcp", s.Addr())
	if _, err := (&ClientLogin{User: "login_open", Capabilities: Protocol41}).Run(conn); err != nil {
		t.Fatal(err)
	}
	quit(t, conn)
	_, _ = conn.ReadPacket(1) // the server has closed
	read(&after)
	if after != before {
		t.Errorf("Aborted_clients went from %d to %d by a login and COM_QUIT", before, after)
	}
}

func TestLoginToARealServerWithTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := dir+"/cert.pem", dir+"/key.pem"
	writeFile(t, cert, testCertificate().pem)
	writeFile(t, key, testCertificate().key)
	s := mysqltest.Start(t, "--ssl-cert="+cert, "--ssl-key="+key, "--ssl-ca="+cert)
	s.Exec(t, "CREATE USER safe@'127.0.0.1' IDENTIFIED BY 'pw' REQUIRE SSL")

	conn := dialLogin(t, "tcp", s.Addr())
	if _, err := (&ClientLogin{User: "safe", Password: "pw", TLS: clientTLS(), Capabilities: Protocol41}).Run(conn); err != nil {
		t.Fatal(err)
	}
	if !conn.IsTLS() {
		t.Error("the connection is not encrypted")
	}
	if b := query(t, conn, "SET @x = 1"); b[0] != headerOK {
		t.Errorf("got %q, want OK", b)
	}
	var se *ServerError
	if _, err := (&ClientLogin{User: "safe", Password: "pw", Capabilities: Protocol41}).Run(dialLogin(t, "tcp", s.Addr())); !errors.As(err, &se) || se.Code != 1045 {
		t.Errorf("without TLS: got %v, want server error 1045", err)
	}
}

func TestBothSidesUnderstandEachOther(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for _, withTLS := range []bool{false, true} {
			s := startLoginServer(t, network, func(l *ServerLogin) { l.TLS = serverTLS() })
			for _, c := range []struct {
				user, password string
				right          bool
			}{{"app", appPassword, true}, {"open", "", true}, {"app", "wrong", false}, {"app", "", false}, {"nobody", "x", false}} {
				t.Run(fmt.Sprintf("%s/tls=%v/%s:%s", network, withTLS, c.user, c.password), func(t *testing.T) {
					want := Relayable &^ (ODBC | NoSchema | Extended)
					l := ClientLogin{User: c.user, Password: c.password, Database: "album0", Capabilities: want, Collation: 45, Attrs: Attrs(nil).With("_os", "Linux")}
					if withTLS {
						l.TLS = clientTLS()
					}
					conn := s.dial(t)
					hello, err := l.Run(conn)
					got := s.take(t)
					if !c.right {
						var se *ServerError
						if !errors.As(err, &se) || se.Code != 1045 || se.State != "28000" {
							t.Errorf("got %v, want server error 1045", err)
						}
						return
					}
					if err != nil || got.err != nil {
						t.Fatalf("client got %v, server got %v", err, got.err)
					}
					if hello.Capabilities != got.hello.Capabilities || hello.Capabilities.Has(SSL) != withTLS || conn.IsTLS() != withTLS {
						t.Errorf("client has %s, server has %s", hello.Capabilities.names(), got.hello.Capabilities.names())
					}
					if got.hello.Capabilities&^PerLogin != want&^PerLogin {
						t.Errorf("got framing %s, want %s", got.hello.Capabilities.names(), want.names())
					}
					if v, _ := got.hello.Attrs.Get("_os"); v != "Linux" || got.hello.Database != "album0" || got.hello.Collation != 45 || got.hello.MaxPacket != 1<<30 {
						t.Errorf("got %+v", got.hello)
					}
					if b := query(t, conn, "DO 1"); b[0] != headerOK {
						t.Errorf("after the login: got %q, want OK", b)
					}
				})
			}
		}
	}
}

func TestFlagsThatTheServerDoesNotOfferAreNamed(t *testing.T) {
	g := scriptGreeting
	g.Capabilities &^= DeprecateEOF | FoundRows | LongPassword | Interactive | ConnectAttrs
	err := scripted(t, ClientLogin{User: "app", Capabilities: DeprecateEOF | FoundRows | MultiStatements | Interactive | LongPassword | ConnectAttrs}, g, nil)
	if err == nil || !strings.Contains(err.Error(), "CLIENT_FOUND_ROWS, CLIENT_DEPRECATE_EOF,") {
		t.Errorf("got %v, want an error that names FOUND_ROWS and DEPRECATE_EOF alone", err)
	}
	err = scripted(t, ClientLogin{User: "app", TLS: &tls.Config{ServerName: "x"}}, g, nil)
	if err == nil || !strings.Contains(err.Error(), "does not offer TLS") {
		t.Errorf("got %v, want an error about TLS", err)
	}
	err = scripted(t, ClientLogin{User: "app", Capabilities: Compress}, g, nil)
	if err == nil || !strings.Contains(err.Error(), "CLIENT_COMPRESS") {
		t.Errorf("got %v, want an error about compression", err)
	}
}
