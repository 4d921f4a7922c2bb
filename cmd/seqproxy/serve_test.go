package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/conf"
	"seqproxy/internal/mysqld"
	"seqproxy/internal/tlsfiles"
	"seqproxy/test/mysqltest"
)

// account creates an account with a password and rights on the shared server. rights are the words
// between GRANT and TO.
func account(t *testing.T, name string, rights ...string) {
	t.Helper()
	s := mysqltest.Shared(t)
	s.Exec(t, "CREATE USER '"+name+"'@'%' IDENTIFIED BY 'secret'")
	for _, r := range rights {
		s.Exec(t, "GRANT "+r+" TO '"+name+"'@'%'")
	}
	t.Cleanup(func() { s.Exec(t, "DROP USER '"+name+"'@'%'", "DROP DATABASE IF EXISTS seqproxy") })
}

func TestInFrontOfOneServerWithoutAConfiguration(t *testing.T) {
	s := mysqltest.Shared(t)
	account(t, "app", "ALL ON *.*")
	schema := s.Schema(t)
	password := write(t, "password", "secret\n")
	p := begin(t, "--backend", s.Addr(), "--user", "app", "--password-file", password, "--listen", "127.0.0.1:0")
	address := p.address()

	if got, want := query(t, address, "app", "secret", "SELECT DATABASE(), VERSION()", schema),
		query(t, s.Addr(), "app", "secret", "SELECT DATABASE(), VERSION()", schema); got != want {
		t.Errorf("relayed: got %q, direct %q", got, want)
	}
	script := `CREATE SEQUENCE photos;
		CREATE TABLE photos (id BIGINT UNSIGNED PRIMARY KEY, title VARCHAR(20));
		INSERT INTO photos VALUES (NEXTVAL('photos'), 'sea');
		SELECT LAST_INSERT_ID();
		SELECT * FROM photos;
		SELECT NEXTVAL('photos');`
	if got, want := query(t, address, "app", "secret", script, schema), "1\n1\tsea\n2"; got != want {
		t.Errorf("a first session: got %q, want %q", got, want)
	}
	output, err := client(t, address, "app", "wrong", "-e", "SELECT 1")
	if want := "ERROR 1045 (28000): Access denied for user 'app'@'127.0.0.1' (using password: YES)\n"; err == nil || output != want {
		t.Errorf("wrong password: got %q, %v, want %q", output, err, want)
	}
	output, err = client(t, address, "app", "secret", "-e", "SELECT NEXTVAL('nothing')")
	if want := "ERROR 4091 (42S02) at line 1: Unknown SEQUENCE: 'nothing'\n"; err == nil || !strings.HasSuffix(output, want) {
		t.Errorf("unknown sequence: got %q, %v, want %q", output, err, want)
	}

	p.signal(syscall.SIGTERM) // two at once count as one: timeout(1) sends two
	p.signal(syscall.SIGTERM)
	p.end(0)
	if got := query(t, s.Addr(), "app", "secret", "SELECT name, id FROM seqproxy.sequence"); got != "photos\t2" {
		t.Errorf("the row after the end: got %q, want the last number that was given, %q", got, "photos\t2")
	}
	for _, want := range []string{"listening", "stopping", "stopped", "login refused"} {
		if !strings.Contains(p.stderr(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	if strings.Contains(p.stderr(), "secret") {
		t.Error("the log has the password")
	}
	if got := p.stdout(); got != "" {
		t.Errorf("stdout: got %q, want nothing", got)
	}
}

func TestInFrontOfOneServerItsAccountsLogIn(t *testing.T) {
	s := mysqltest.Start(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	trusted := "VIA unix_socket"
	if s.Flavour() == mysqld.MySQL {
		s.Exec(t, "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'")
		trusted = "WITH auth_socket"
	}
	s.Exec(t, "DROP USER IF EXISTS '"+me.Username+"'@localhost", "CREATE USER '"+me.Username+"'@localhost IDENTIFIED "+trusted,
		"GRANT ALL ON *.* TO '"+me.Username+"'@localhost WITH GRANT OPTION",
		"CREATE USER later@'%' IDENTIFIED BY 'secret'", "GRANT SELECT ON *.* TO later@'%'")
	for _, backend := range []string{"unix:" + s.Socket(), s.Addr()} {
		name := "root"
		if strings.HasPrefix(backend, "unix:") {
			name = me.Username // then the proxy's own connections need no password
		}
		p := begin(t, "-backend", backend, "-user", name, "-listen", "127.0.0.1:0")
		address := p.address()
		// Without --skip-ssl MariaDB's client would send the password in clear, and be refused.
		if got := query(t, address, "later", "secret", "SELECT SUBSTRING_INDEX(USER(), '@', 1)", plain(t)...); got != "later" {
			t.Errorf("%s: an account of the server's: got %q, want later", backend, got)
		}
		output, err := client(t, address, "later", "wrong", "-e", "SELECT 1")
		if err == nil || !strings.HasPrefix(output, "ERROR 1045 (28000): Access denied for user 'later'@") {
			t.Errorf("%s: a wrong password: got %q, %v", backend, output, err)
		}
		if strings.HasPrefix(backend, "unix:") { // the server may trust the proxy's user id
			for _, password := range []string{"", "x"} {
				output, err := client(t, address, name, password, "-e", "SELECT 1")
				if err == nil || !strings.HasPrefix(output, "ERROR 1045 (28000): Access denied for user '"+name+"'@'127.0.0.1'") {
					t.Errorf("as %s with the password %q: got %q, %v", name, password, output, err)
				}
			}
		}
		p.signal(syscall.SIGTERM)
		p.end(0)
		if strings.Contains(p.stderr(), "secret") {
			t.Error("the log has the password")
		}
	}
}

func TestPasswordFileOfEverybodyIsWarnedAbout(t *testing.T) {
	password := write(t, "password", "secret\n")
	if err := os.Chmod(password, 0o644); err != nil {
		t.Fatal(err)
	}
	p := begin(t, "-backend", mysqltest.Shared(t).Addr(), "-user", "nobody", "-password-file", password, "-listen", "127.0.0.1:0")
	p.await("seqproxy: -password-file: " + password + " is readable by everybody; chmod 600 it\n")
	p.await("listening")
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// TestWarningsAreAboutTheAddressesInForce: flags open and close addresses, with a file and without.
func TestWarningsAreAboutTheAddressesInForce(t *testing.T) {
	file := func(first string) string {
		return write(t, "seqproxy.toml", first+"\nadmin_users = ['app']\n[[user]]\nname = 'app'\n"+sequencesAt("127.0.0.1:1"))
	}
	closed, open := file("listen = '127.0.0.1:0'"), file("listen = '0.0.0.0:4306'")
	backend := []string{"-backend", "127.0.0.1:1", "-user", "app"}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{backend, nil},
		{append(backend, "-listen", "0.0.0.0:4306", "-admin-listen", "", "-http-listen", ""), []string{`user["app"]: has no password, and listen "0.0.0.0:4306" lets`}},
		{append(backend, "-admin-listen", ":4307"), []string{`user["app"]: has no password, and admin.listen ":4307" lets`}},
		{append(backend, "-http-listen", ":4308"), []string{`http.listen: ":4308" lets`}},
		{[]string{"-config", closed}, nil},
		{[]string{"-config", closed, "-listen", ":4306"}, []string{`user["app"]: has no password, and listen ":4306" lets`}},
		{[]string{"-config", open}, []string{`user["app"]: has no password, and listen "0.0.0.0:4306" lets`}},
		{[]string{"-config", open, "-listen", "127.0.0.1:0"}, nil},
	} {
		cfg, err := (&program{out: io.Discard, err: io.Discard}).configure(test.args)
		if err != nil {
			t.Errorf("%q: %v", test.args, err)
			continue
		}
		got := cfg.Warnings()
		if len(got) != len(test.want) {
			t.Errorf("%q: got %q, want %q", test.args, got, test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%q: got %q, want %q in it", test.args, got[i], want)
			}
		}
	}
}

func TestKeysOnlyByAConfiguration(t *testing.T) {
	s := mysqltest.Shared(t)
	account(t, "keys", "ALL ON seqproxy.*")
	file := write(t, "seqproxy.toml", apart+`
admin_users = ["dba"]
[log]
format = "json"
[[user]]
name = "dba"
password = "dba's"
[[user]]
name = "app"
password = "app's"
[sequence]
cache = 10
`+sequencesAt("unix:"+s.Socket()))
	p := begin(t, "-config", file)
	p.await(`"event":"listening"`)
	_, rest, _ := strings.Cut(p.stderr(), `"address":"`)
	address, _, _ := strings.Cut(rest, `"`)

	if got := query(t, address, "dba", "dba's", "CREATE SEQUENCE photos START WITH 7; SHOW SEQUENCES"); !strings.HasPrefix(got, "photos\t7\t0\tNULL\t0.0\t10\tNULL\t") {
		t.Errorf("a new sequence: got %q, want %q", got, "photos\t7\t0\tNULL\t0.0\t10\tNULL")
	}
	if got := query(t, address, "app", "app's", "SELECT NEXTVAL('photos'); SELECT LAST_INSERT_ID(); SELECT @@max_allowed_packet"); got != "7\n7\n16777216" {
		t.Errorf("a key: got %q, want 7 twice and the packet size", got)
	}
	for sql, want := range map[string]string{
		"SELECT * FROM photos": "ERROR 1235 (42000) at line 1: seqproxy: only keys are served here, no shard is configured",
		"DROP SEQUENCE photos": "ERROR 1227 (42000) at line 1: Access denied; you need to be one of the proxy's admin_users for this operation",
	} {
		if output, err := client(t, address, "app", "app's", "-e", sql); err == nil || !strings.Contains(output, want) {
			t.Errorf("%s: got %q, %v, want %q", sql, output, err, want)
		}
	}
	p.signal(syscall.SIGINT)
	p.end(0)
}

// TestServersThatAreDownAreAwaited starts the proxy without servers. It logs that, accepts clients,
// and works as soon as the server does.
func TestServersThatAreDownAreAwaited(t *testing.T) {
	s := mysqltest.Start(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	p := begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	address := p.address()
	p.await("no numbers can be reserved")
	p.await("node not usable")
	output, err := client(t, address, "root", "", "-e", "SELECT 1")
	if want := "ERROR 1429 (HY000) at line 1: seqproxy: shard default: node " + s.Addr() + " cannot be used: "; err == nil || !strings.Contains(output, want) {
		t.Errorf("a statement in the outage: got %q, %v, want %q", output, err, want)
	}
	time.Sleep(2 * firstSequencePause) // it asks again
	if got := strings.Count(p.stderr(), "no numbers can be reserved"); got != 1 {
		t.Errorf("the log complains %d times about the same, want once", got)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	p.await("sequence server usable")
	if got := query(t, address, "root", "", "CREATE SEQUENCE photos; SELECT NEXTVAL('photos')"); got != "1" {
		t.Errorf("after the outage: got %q, want 1", got)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	if got := strings.Count(p.stderr(), "no numbers can be reserved"); got > 3 {
		t.Errorf("the log complains %d times about one outage", got)
	}
}

func TestShutdownWaitsForStatementsForTheConfiguredTimeAlone(t *testing.T) {
	s := mysqltest.Shared(t)
	for name, test := range map[string]struct {
		timeout string
		wantCut bool
	}{
		"long enough": {"1h", false}, // p.end does not wait for this
		"too short":   {"300ms", true},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "seqproxy.toml", apart+fmt.Sprintf(`
[drain]
timeout = %q
[[user]]
name = "root"
`, test.timeout)+sequencesAt(s.Addr())+shardAt("s", s.Addr()))
			t.Cleanup(func() { s.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
			p := begin(t, "-config", file)
			address := p.address()
			locked, err := s.DB(t, "").Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locked.Close() }() // it may have nothing left to give back
			onLock := func(text string) {
				t.Helper()
				if _, err := locked.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			onLock("DO GET_LOCK('until the stop', 0)")
			type result struct {
				output string
				err    error
			}
			answered := make(chan result, 1)
			go func() {
				output, err := client(t, address, "root", "", "-N", "-e", "SELECT GET_LOCK('until the stop', 600) + 4")
				answered <- result{output, err}
			}()
			awaitStatement(t, s.Addr(), "600) + 4")
			p.signal(syscall.SIGTERM)
			p.await("\tstopping\t")
			if !test.wantCut {
				onLock("DO RELEASE_LOCK('until the stop')")
			}
			p.end(0)
			onLock("DO RELEASE_LOCK('until the stop')")
			r := <-answered
			if cut := r.err != nil; cut != test.wantCut || !cut && r.output != "5\n" {
				t.Errorf("the statement: got %q, %v; want cut = %v", r.output, r.err, test.wantCut)
			}
			if got := strings.Contains(p.stderr(), "1 sessions were still busy and had to be closed"); got != test.wantCut {
				t.Errorf("the log says that a session was cut: %v, want %v", got, test.wantCut)
			}
		})
	}
}

func TestPortInUseIsToldAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody connected
	runs(t, 1, "", "seqproxy: address "+l.Addr().String()+" is in use: end what listens there, or choose another with -listen HOST:PORT\n",
		"-backend", "127.0.0.1:1", "-user", "u", "-listen", l.Addr().String())
}

func TestAnAdminAddressInUseIsToldWithItsKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody connected
	file := write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = %q
[[user]]
name = "root"
`, l.Addr())+sequencesAt("127.0.0.1:1"))
	runs(t, 1, "", "seqproxy: admin.listen: address "+l.Addr().String()+
		" is in use: end what listens there, or choose another, or \"\" for none, by admin.listen or -admin-listen\n", "-config", file)
}

// adminAddress returns the proxy's admin address, from its log.
func (p *process) adminAddress() string {
	p.t.Helper()
	p.await(`"admin": "`)
	_, rest, _ := strings.Cut(p.stderr(), `"admin": "`)
	address, _, _ := strings.Cut(rest, `"`)
	return address
}

func TestTheAdminAddressAnswersWithEveryServerDown(t *testing.T) {
	file := write(t, "seqproxy.toml", apart+`
monitor_users = ["watch"]
connect_timeout = "1s"
[[user]]
name = "watch"
password = "w"
`+sequencesAt("127.0.0.1:1")+shardAt("s", "127.0.0.1:1"))
	p := begin(t, "-config", file)
	address := p.adminAddress()
	if got := query(t, address, "watch", "w", "SELECT @@version_comment"); got != "seqproxy, admin address" {
		t.Errorf("got %q", got)
	}
	if output, err := client(t, address, "watch", "w", append(plain(t), "-e", "CREATE SEQUENCE s")...); err == nil || !strings.Contains(output, "ERROR 1227 (42000)") {
		t.Errorf("a change by a monitor: got %q, %v, want 1227", output, err)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

func TestNoOutageCoverIsNotTheDefault(t *testing.T) {
	cfg := conf.Default()
	cfg.Sequence.OutageCover = 0
	opts, err := sequenceOptions(cfg, tlsfiles.NewStore(zap.NewNop()), zap.NewNop())
	if got := opts.OutageCover; err != nil || got <= 0 || got > time.Microsecond {
		t.Errorf("outage_cover = 0: got %v, want next to nothing, but not 0, which means 15 minutes", got)
	}
}

func TestTLSIsOffered(t *testing.T) {
	ca, nextCA := mysqltest.NewCA(t), mysqltest.NewCA(t)
	used, next := ca.Server(t, "127.0.0.1"), nextCA.Server(t, "127.0.0.1")
	s := mysqltest.Shared(t)
	file := write(t, "seqproxy.toml", apart+fmt.Sprintf(`
[[user]]
name = "root"
password = "p"
[tls]
cert_file = %q
key_file = %q
[[shard]]
name = "s"
user = "root"
[[shard.node]]
address = %q
`, used.CertFile, used.KeyFile, s.Addr())+sequencesAt(s.Addr()))
	t.Cleanup(func() { s.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
	p := begin(t, "-config", file)
	address := p.address()
	if got := query(t, address, "root", "p", `\s`, "--ssl"); !strings.Contains(got, "Cipher in use is TLS_") {
		t.Errorf("the client's status over TLS: got %q, want a cipher in it", got)
	}

	// SIGHUP reads the files again, and ignores those that cannot be used.
	shown := func(by *mysqltest.CA) string {
		t.Helper()
		return query(t, address, "root", "p", "SELECT 7", "--ssl", "--ssl-verify-server-cert", "--ssl-ca="+by.File, "-N")
	}
	replace(t, next.KeyFile, used.KeyFile)
	p.signal(syscall.SIGHUP)
	p.await("private key does not match public key")
	if got := shown(ca); got != "7" {
		t.Errorf("after a reload of what cannot be used: got %q, want 7", got)
	}
	replace(t, next.CertFile, used.CertFile)
	p.signal(syscall.SIGHUP)
	p.await(`"changed": ["files of tls"]`)
	if got := shown(nextCA); got != "7" {
		t.Errorf("after a reload: got %q, want 7: the old certificate was shown", got)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)

	if err := os.WriteFile(used.KeyFile, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = begin(t, "-config", file)
	p.end(1)
	if want := "tls: cert_file"; !strings.Contains(p.stderr(), want) {
		t.Errorf("a broken key: got %q, want %q in it", p.stderr(), want)
	}
}

// replace renames one file over another.
func replace(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
