package protocol

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

// shows is a client's TLS configuration with a certificate.
func shows(t testing.TB, ca *mysqltest.CA, c mysqltest.Certificate) *tls.Config {
	t.Helper()
	cfg := &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1"}
	if c != (mysqltest.Certificate{}) {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		// The client sends it whichever CAs the server names.
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return cfg
}

func leaf(t testing.TB, c mysqltest.Certificate) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestAnAccountsDemandsAreMetOrEveryPasswordIsWrong(t *testing.T) {
	ca, other := mysqltest.NewCA(t), mysqltest.NewCA(t)
	pair, err := tls.LoadX509KeyPair(func() (string, string) { c := ca.Server(t, "127.0.0.1"); return c.CertFile, c.KeyFile }())
	if err != nil {
		t.Fatal(err)
	}
	app := ca.Client(t, "app")
	subject, issuer := "/CN=app", "/CN=seqproxy test CA"
	users := map[string]Account{
		"free":    {Password: "pw"},
		"overtls": {Password: "pw", Require: Requirement{TLS: true}},
		"withany": {Password: "pw", Require: Requirement{Certificate: true}},
		"subject": {Password: "pw", Require: Requirement{Subject: subject}},
		"issuer_": {Password: "pw", Require: Requirement{Issuer: issuer}},
		"both___": {Password: "pw", Require: Requirement{TLS: true, Certificate: true, Subject: subject, Issuer: issuer}},
		"another": {Password: "pw", Require: Requirement{Subject: "/CN=another"}},
		"elsewho": {Password: "pw", Require: Requirement{Subject: subject, Issuer: "/CN=another"}},
		"nopassw": {Require: Requirement{Certificate: true}},
		"oldpass": {Password: "new", OldPassword: "pw", Require: Requirement{TLS: true}},
	}
	verifying := &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: ca.Pool, ClientAuth: tls.VerifyClientCertIfGiven}
	// The proxy never uses this mode.
	trusting := &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	with := func(c mysqltest.Certificate) *tls.Config { return shows(t, ca, c) }
	for _, c := range []struct {
		what, network string
		server        *tls.Config
		client        *tls.Config
		right         []string // users whose login succeeds
	}{
		{"plain", "tcp", verifying, nil, []string{"free"}},
		{"socket", "unix", verifying, nil, []string{"free"}},
		{"no certificate", "tcp", verifying, with(mysqltest.Certificate{}), []string{"free", "overtls", "oldpass"}},
		{"the certificate", "tcp", verifying, with(app), []string{"free", "overtls", "oldpass", "withany", "subject", "issuer_", "both___", "nopassw"}},
		{"another name's", "tcp", verifying, with(ca.Client(t, "another")), []string{"free", "overtls", "oldpass", "withany", "issuer_", "another", "nopassw"}},
		{"one that was not verified", "tcp", trusting, with(app), []string{"free", "overtls", "oldpass"}},
		{"another CA's that was not verified", "tcp", trusting, with(other.Client(t, "app")), []string{"free", "overtls", "oldpass"}},
	} {
		s := startLoginServer(t, c.network, func(l *ServerLogin) { l.TLS, l.OldPasswords = c.server, true })
		s.mu.Lock()
		s.lookup = func(user string) (Account, bool) { a, ok := users[user]; return a, ok }
		s.mu.Unlock()
		for user, account := range users {
			t.Run(c.what+"/"+user, func(t *testing.T) {
				password := "pw"
				if account.Password == "" {
					password = ""
				}
				for range 2 { // the second time TLS may resume a session
					_, err := (&ClientLogin{User: user, Password: password, TLS: c.client}).Run(s.dial(t))
					got := s.take(t)
					if slices.Contains(c.right, user) {
						if err != nil || got.err != nil {
							t.Errorf("client got %v, server got %v, want success", err, got.err)
						}
						continue
					}
					var refused *ServerError
					using := map[bool]string{true: "YES", false: "NO"}[password != ""]
					if !errors.As(err, &refused) || refused.Code != 1045 || refused.State != "28000" || !strings.Contains(refused.Message, "(using password: "+using+")") {
						t.Errorf("got %v, want 1045", err)
					}
					var ae *AuthError
					if !errors.As(got.err, &ae) || ae.Reason == "" || !strings.Contains(ae.Error(), ae.Reason) {
						t.Errorf("got %v, want it to say what is not met", got.err)
					}
				}
			})
		}
	}
	// A certificate that cannot be verified ends the connection in its TLS handshake.
	s := startLoginServer(t, "tcp", func(l *ServerLogin) { l.TLS = verifying })
	for what, cert := range map[string]mysqltest.Certificate{
		"another CA's":       other.Client(t, "app"),
		"one for servers":    ca.Server(t, "127.0.0.1"),
		"one that ran out":   ca.Issue(t, func(c *x509.Certificate) { c.NotAfter = c.NotBefore }),
		"one of no CA known": other.Server(t, "127.0.0.1"),
	} {
		if _, err := (&ClientLogin{User: "open", TLS: with(cert)}).Run(s.dial(t)); err == nil {
			t.Errorf("%s: let in", what)
		}
		var ae *AuthError
		if got := s.take(t); got.err == nil || errors.As(got.err, &ae) || !strings.Contains(got.err.Error(), "TLS handshake") {
			t.Errorf("%s: got %v, want the TLS handshake's error", what, got.err)
		}
	}
}

func TestADemandThatIsNotMetHasTheStepsOfAWrongPassword(t *testing.T) {
	s := startLoginServer(t, "tcp", nil)
	s.mu.Lock()
	s.lookup = func(user string) (Account, bool) {
		return map[string]Account{"plain": {Password: "pw"}, "safe1": {Password: "pw", Require: Requirement{TLS: true}}}[user], true
	}
	s.mu.Unlock()
	steps := func(user, password string) string {
		_, _ = (&ClientLogin{User: user, Password: password}).Run(s.dial(t))
		return fmt.Sprint(s.take(t).steps)
	}
	wrong := steps("plain", "no")
	for _, password := range []string{"pw", "no"} {
		if got := steps("safe1", password); got != wrong {
			t.Errorf("with %q: %s, a wrong password has %s", password, got, wrong)
		}
	}
}

// The servers compare names in OpenSSL's form. The form written here must be accepted there.
func TestACertificatesNamesAreWrittenAsTheServersCompareThem(t *testing.T) {
	ca := mysqltest.NewCA(t)
	server := mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	greeting, err := ReadGreeting(dialLogin(t, "tcp", server.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	mariadb := greeting.IsMariaDB()
	raw := func(sets ...[]any) []byte {
		type attribute struct {
			Type  asn1.ObjectIdentifier
			Value any
		}
		type attributeSET []attribute
		var name []attributeSET
		for _, set := range sets {
			var made attributeSET
			for i := 0; i < len(set); i += 2 {
				made = append(made, attribute{set[i].(asn1.ObjectIdentifier), set[i+1]})
			}
			name = append(name, made)
		}
		der, err := asn1.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	typed := func(tag int, text string) asn1.RawValue { return asn1.RawValue{Tag: tag, Bytes: []byte(text)} }
	cn := asn1.ObjectIdentifier{2, 5, 4, 3}
	var every [][]any
	for id := range attributeNames {
		every = append(every, []any{oid(t, id), "x y"})
	}
	slices.SortFunc(every, func(a, b []any) int { return strings.Compare(fmt.Sprint(a[0]), fmt.Sprint(b[0])) })
	for i, c := range []struct {
		subject []byte
		want    string // "": any text
	}{
		{raw([]any{cn, "app"}), "/CN=app"},
		{raw([]any{oid(t, "2.5.4.6"), "SE"}, []any{oid(t, "2.5.4.8"), "Stockholm"}, []any{oid(t, "2.5.4.10"), "Photos & Söns"}, []any{cn, "app"}), `/C=SE/ST=Stockholm/O=Photos & S\xC3\xB6ns/CN=app`},
		{raw([]any{cn, `b=c,d,e"f'g`}), `/CN=b=c,d,e"f'g`},
		{raw([]any{cn, `a/b+c\d`}), `/CN=a\/b\+c\d`},
		{raw([]any{cn, "a", oid(t, "2.5.4.11"), "b"}, []any{oid(t, "2.5.4.10"), "c"}), "/CN=a+OU=b/O=c"},
		{raw([]any{cn, "two"}, []any{cn, "names"}), "/CN=two/CN=names"},
		{raw([]any{oid(t, "1.2.3.4.5"), "unknown"}, []any{cn, "app"}), "/1.2.3.4.5=unknown/CN=app"},
		{raw([]any{cn, typed(asn1.TagPrintableString, "printable")}), "/CN=printable"},
		{raw([]any{oid(t, "1.2.840.113549.1.9.1"), typed(asn1.TagIA5String, "a@example.org")}), "/emailAddress=a@example.org"},
		{raw([]any{cn, typed(asn1.TagBMPString, "\x00b\x00m\x00p")}), `/CN=\x00b\x00m\x00p`},
		{raw([]any{cn, "tab\tbell\x07\x7f~"}), `/CN=tab\x09bell\x07\x7F~`},
		{raw(every...), ""},
		{raw(), ""},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			cert := ca.Issue(t, func(x *x509.Certificate) {
				x.RawSubject = c.subject
				x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
			})
			subject, issuer := certificateName(leaf(t, cert).RawSubject), certificateName(leaf(t, cert).RawIssuer)
			if c.want != "" && subject != c.want {
				t.Errorf("got %s, want %s", subject, c.want)
			}
			quoted := func(s string) string {
				return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
			}
			if mariadb && strings.Contains(subject, `\`) && !strings.Contains(subject, `\x`) {
				return // MariaDB stores such a backslash wrongly with the account
			}
			user := fmt.Sprintf("named%d", i)
			server.Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'pw' REQUIRE SUBJECT %s AND ISSUER %s", user, quoted(subject), quoted(issuer)))
			logIn := func(cert mysqltest.Certificate) error {
				_, err := (&ClientLogin{User: user, Password: "pw", TLS: shows(t, ca, cert)}).Run(dialLogin(t, "tcp", server.Addr()))
				return err
			}
			if err := logIn(cert); err != nil && subject != "" {
				t.Errorf("subject %s: the server does not let the certificate in: %v", subject, err)
			}
			var refused *ServerError
			if err := logIn(ca.Client(t, "somebody else")); subject != "" && (!errors.As(err, &refused) || refused.Code != 1045) {
				t.Errorf("another subject: the server says %v, want 1045", err)
			}
		})
	}
	if got := certificateName([]byte{1, 2, 3}); got != "" {
		t.Errorf("no name: got %q", got)
	}
}

func oid(t testing.TB, text string) asn1.ObjectIdentifier {
	t.Helper()
	var id asn1.ObjectIdentifier
	for part := range strings.SplitSeq(text, ".") {
		var n int
		if _, err := fmt.Sscan(part, &n); err != nil {
			t.Fatal(err)
		}
		id = append(id, n)
	}
	return id
}

func FuzzCertificateName(f *testing.F) {
	der, err := asn1.Marshal(pkix.Name{CommonName: "app", Country: []string{"SE"}}.ToRDNSequence())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, der []byte) {
		if name := certificateName(der); strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is not printable", name)
		}
	})
}
