package proxy_test

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// Each user has the same demands at the proxy and on the server, so that a client with any
// certificate or none must get the same answer from both.
func TestDemandsOnTheConnectionAreThoseOfREQUIREOnTheServer(t *testing.T) {
	ca := mysqltest.NewCA(t)
	certificate := ca.Server(t, "127.0.0.1")
	server := mysqltest.Start(t, certificate.ServerArgs(ca)...)
	pair, err := tls.LoadX509KeyPair(certificate.CertFile, certificate.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	const subject, issuer = "/CN=app", "/CN=seqproxy test CA"
	users := []struct {
		name, clause string
		require      protocol.Requirement
	}{
		{"req_none", "NONE", protocol.Requirement{}},
		{"req_ssl", "SSL", protocol.Requirement{TLS: true}},
		{"req_x509", "X509", protocol.Requirement{Certificate: true}},
		{"req_subject", "SUBJECT '" + subject + "'", protocol.Requirement{Subject: subject}},
		{"req_issuer", "ISSUER '" + issuer + "'", protocol.Requirement{Issuer: issuer}},
		{"req_both", "SUBJECT '" + subject + "' AND ISSUER '" + issuer + "'", protocol.Requirement{Subject: subject, Issuer: issuer}},
		{"req_another", "SUBJECT '/CN=somebody'", protocol.Requirement{Subject: "/CN=somebody"}},
		{"req_elsewhere", "ISSUER '/CN=another CA'", protocol.Requirement{Issuer: "/CN=another CA"}},
	}
	for _, u := range users {
		server.Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'pw' REQUIRE %s", u.name, u.clause))
	}
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ca.Pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12}
		for _, u := range users {
			o.Users = append(o.Users, proxy.User{Name: u.name, Password: "pw", Require: u.require})
		}
	}, Backend: func(o *backend.Options) {
		o.Shards[0].Login = &o.Probe // the demands concern the client, not the proxy
	}})
	app, other := ca.Client(t, "app"), ca.Client(t, "other")
	for what, c := range map[string]struct {
		cert *mysqltest.Certificate
		tls  bool
	}{"plain": {}, "TLS": {tls: true}, "the certificate": {&app, true}, "another certificate": {&other, true}} {
		for _, u := range users {
			for _, password := range []string{"pw", "wrong", ""} {
				t.Run(what+"/"+u.name+":"+password, func(t *testing.T) {
					login := func(m *mysql.Config) {
						m.User, m.Passwd = u.name, password
						if c.tls {
							m.TLS = &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1"}
						}
						if c.cert != nil {
							pair, err := tls.LoadX509KeyPair(c.cert.CertFile, c.cert.KeyFile)
							if err != nil {
								t.Fatal(err)
							}
							m.TLS.Certificates = []tls.Certificate{pair}
						}
					}
					got, want := e.tryLogin(t, e.Addr(), "", login), e.tryLogin(t, server.Addr(), "", login)
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("driver: got %v, want %v as direct", got, want)
					}
					if !c.tls || password == "wrong" {
						return
					}
					args := []string{"--user=" + u.name, "--password=" + password, e.useTLS(t), "--ssl-ca=" + ca.File}
					if c.cert != nil {
						args = append(args, "--ssl-cert="+c.cert.CertFile, "--ssl-key="+c.cert.KeyFile)
					}
					cli := func(addr string) string { return withoutTimes(e.CLI(t, addr, "", "DO 1", args...)) }
					compareTexts(t, cli(e.Addr()), cli(server.Addr()))
				})
			}
		}
	}
	// The log has the reason, which the client does not get.
	reasons := ""
	for _, entry := range e.Logs.FilterMessage("login refused").All() {
		reasons += fmt.Sprintln(entry.ContextMap()["err"])
	}
	for _, words := range []string{`"req_ssl" from 127.0.0.1 refused: the user must come over TLS`, "must show a certificate", `subject must be "/CN=somebody", is "/CN=app"`, `issuer must be "/CN=another CA"`} {
		if !strings.Contains(reasons, words) {
			t.Errorf("no refusal was logged with %q:\n%s", words, reasons)
		}
	}
	// A change of user has the same demands.
	for user, let := range map[string]bool{"req_none": true, "req_ssl": false, "req_subject": false} {
		answer := e.Wire(t, e.Addr(), wireLogin{}).change(user, "pw", "", "mysql_native_password")
		err := protocol.ParseServerError(answer[protocol.HeaderSize:])
		if ok := answer[protocol.HeaderSize] == 0; ok != let || !ok && !strings.Contains(err.Error(), "1045") {
			t.Errorf("change of user in plain to %s: got %q, %v", user, answer, err)
		}
	}
}

// Checklist 9.
func TestClientsWithoutTLSGetMySQLsErrorWhereAllMustUseIt(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.TLS, o.RequireTLS = serverTLS, true }})
	for _, password := range []string{e.Password, "wrong"} {
		checkError(t, "plain", e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.Passwd = password }), 3159,
			"Connections using insecure transport are prohibited while --require_secure_transport=ON.")
	}
	if got := value(t, e.Conn(t, "", func(m *mysql.Config) { m.TLS = clientTLS }), "SELECT 1"); got != "1" {
		t.Errorf("over TLS: got %s", got)
	}
}
