package tlsfiles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/test/mysqltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newStore returns a store with a watcher, which the test's end stops, and its log.
func newStore(t *testing.T) (*Store, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	s := NewStore(zap.New(core))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.watch(ctx, 10*time.Millisecond)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s, logs
}

// copyTo writes a copy of the certificate beside other ones.
func copyTo(t *testing.T, c mysqltest.Certificate, certFile, keyFile string) {
	t.Helper()
	for from, to := range map[string]string{c.CertFile: certFile, c.KeyFile: keyFile} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// handshake connects a client and a server and returns the client's state.
func handshake(t *testing.T, server, client *tls.Config) (state tls.ConnectionState, clientErr, serverErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // a pipe has no buffer, and both may write at the same time
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_ = a.SetDeadline(time.Now().Add(10 * time.Second))
	_ = b.SetDeadline(time.Now().Add(10 * time.Second))
	served := make(chan error, 1)
	go func() {
		s := tls.Server(b, server)
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("x")) // after the session tickets
		}
		served <- err
		b.Close()
	}()
	c := tls.Client(a, client)
	clientErr = c.Handshake()
	if clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1))
	}
	state = c.ConnectionState()
	a.Close()
	return state, clientErr, <-served
}

// shown returns the serial number of the server's certificate.
func shown(t *testing.T, server *tls.Config) string {
	t.Helper()
	state, err, _ := handshake(t, server, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	return state.PeerCertificates[0].SerialNumber.String()
}

func serialOf(t *testing.T, c mysqltest.Certificate) string {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.String()
}

func awaitShown(t *testing.T, server *tls.Config, want string) {
	t.Helper()
	var got string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if got = shown(t, server); got == want {
			return
		}
	}
	t.Errorf("certificate shown: got %s, want %s", got, want)
}

func TestACertificateThatWasReplacedIsShownToNewClients(t *testing.T) {
	ca := mysqltest.NewCA(t)
	for name, replace := range map[string]func(t *testing.T, dir string, next mysqltest.Certificate){
		"written in place, certificate first": func(t *testing.T, dir string, next mysqltest.Certificate) {
			copyTo(t, next, filepath.Join(dir, "cert"), filepath.Join(dir, "new"))
			time.Sleep(50 * time.Millisecond) // the Store sees it without its key
			if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "key")); err != nil {
				t.Fatal(err)
			}
		},
		"a link that leads elsewhere": func(t *testing.T, dir string, next mysqltest.Certificate) {
			if err := os.Mkdir(filepath.Join(dir, "data2"), 0o700); err != nil {
				t.Fatal(err)
			}
			copyTo(t, next, filepath.Join(dir, "data2", "cert"), filepath.Join(dir, "data2", "key"))
			if err := os.Symlink("data2", filepath.Join(dir, "tmp")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "data")); err != nil {
				t.Fatal(err)
			}
		},
		"a copy of the same size and time": func(t *testing.T, dir string, next mysqltest.Certificate) {
			old, err := os.Stat(filepath.Join(dir, "cert"))
			if err != nil {
				t.Fatal(err)
			}
			copyTo(t, next, filepath.Join(dir, "cert"), filepath.Join(dir, "key"))
			for _, f := range []string{"cert", "key"} {
				if err := os.Chtimes(filepath.Join(dir, f), old.ModTime(), old.ModTime()); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, next := ca.Server(t, "a"), ca.Server(t, "a")
			dir := t.TempDir()
			cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
			if strings.Contains(name, "link") {
				// The layout is that of a Kubernetes secret.
				if err := os.Mkdir(filepath.Join(dir, "data1"), 0o700); err != nil {
					t.Fatal(err)
				}
				copyTo(t, first, filepath.Join(dir, "data1", "cert"), filepath.Join(dir, "data1", "key"))
				for link, to := range map[string]string{"data": "data1", "cert": "data/cert", "key": "data/key"} {
					if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				copyTo(t, first, cert, key)
			}
			store, _ := newStore(t)
			cfg, err := store.Server("tls", ServerFiles{Cert: cert, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := shown(t, cfg), serialOf(t, first); got != want {
				t.Errorf("at the start: got %s, want %s", got, want)
			}
			replace(t, dir, next)
			awaitShown(t, cfg, serialOf(t, next))
		})
	}
}

func TestACertificateThatCannotBeUsedIsLoggedOnceAndTheOldOneStays(t *testing.T) {
	ca := mysqltest.NewCA(t)
	first, other := ca.Server(t, "a"), ca.Server(t, "a")
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	// A link changes in one step. The Store may see a file that is half written.
	lead := func(link, to string) {
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.Symlink(to, next), os.Rename(next, link)); err != nil {
			t.Fatal(err)
		}
	}
	holding := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	noPEM, noKey, endless := holding("no PEM", []byte("no PEM")), holding("no key", []byte("no key")), holding("endless", make([]byte, 5<<20))
	lead(cert, first.CertFile)
	lead(key, first.KeyFile)
	store, logs := newStore(t)
	cfg, err := store.Server("tls", ServerFiles{Cert: cert, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	complaints := func() int { return logs.FilterMessage("changed certificates not used").Len() }
	for i, spoil := range []func(){
		func() { lead(key, other.KeyFile) },               // the key of another certificate
		func() { lead(cert, noPEM) },                      // no PEM in it
		func() { lead(cert, filepath.Join(dir, "none")) }, // missing
		func() { lead(cert, dir) },                        // a directory
		// as before: nothing to log
		func() { lead(key, first.KeyFile); lead(cert, first.CertFile) },
		func() { lead(key, noKey) },   // a different error: logged again
		func() { lead(key, endless) }, // never ends
	} {
		spoil()
		want := i + 1
		if i >= 4 {
			want = i
		}
		for end := time.Now().Add(30 * time.Second); complaints() < want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		}
		time.Sleep(50 * time.Millisecond) // five more checks
		if got := complaints(); got != want {
			t.Errorf("after spoiling %d: got %d complaints, want %d", i, got, want)
		}
		if got, want := shown(t, cfg), serialOf(t, first); got != want {
			t.Errorf("after spoiling %d: got certificate %s, want %s", i, got, want)
		}
	}
	lead(cert, other.CertFile)
	lead(key, other.KeyFile)
	awaitShown(t, cfg, serialOf(t, other))
	if got := logs.FilterMessage("certificates read again").Len(); got != 1 {
		t.Errorf("got %d log lines of a success, want 1", got)
	}
	for _, entry := range logs.All() {
		if strings.Contains(entry.Message, "PRIVATE") {
			t.Errorf("logged: %s", entry.Message)
		}
	}
}

func TestReloadIsAtOnceAndSaysWhatChanged(t *testing.T) {
	ca := mysqltest.NewCA(t)
	store := NewStore(zap.NewNop())
	made := make(map[string]mysqltest.Certificate)
	var cfgs []*tls.Config
	for _, name := range []string{"one", "two", "three"} {
		made[name] = ca.Server(t, name)
		cfg, err := store.Server(name, ServerFiles{Cert: made[name].CertFile, Key: made[name].KeyFile})
		if err != nil {
			t.Fatal(err)
		}
		cfgs = append(cfgs, cfg)
	}
	if changed, err := store.Reload(); len(changed) > 0 || err != nil {
		t.Errorf("nothing changed: got %v, %v", changed, err)
	}
	next := ca.Server(t, "next")
	copyTo(t, next, made["two"].CertFile, made["two"].KeyFile)
	if err := os.WriteFile(made["three"].KeyFile, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	changed, err := store.Reload()
	if len(changed) != 1 || changed[0] != "two" || err == nil || !strings.Contains(err.Error(), "three: cert_file ") {
		t.Errorf("got %v, %v, want two, and an error that names three", changed, err)
	}
	if got := shown(t, cfgs[1]); got != serialOf(t, next) {
		t.Errorf("got %s, want the new one", got)
	}
}

func TestNothingOlderThanTLS12IsSpoken(t *testing.T) {
	ca := mysqltest.NewCA(t)
	cert := ca.Server(t, "a")
	store := NewStore(zap.NewNop())
	server, err := store.Server("tls", ServerFiles{Cert: cert.CertFile, Key: cert.KeyFile})
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		name := tls.VersionName(version)
		_, err, _ := handshake(t, server, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
		if got := err == nil; got != want {
			t.Errorf("a client with %s: got %v, want success: %v", name, err, want)
		}
		pair, err := tls.LoadX509KeyPair(cert.CertFile, cert.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		client, err := store.Client(name, ClientFiles{Mode: Required})
		if err != nil {
			t.Fatal(err)
		}
		_, err, _ = handshake(t, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: version, MaxVersion: version}, client.To("a:1").Security().TLS)
		if got := err == nil; got != want {
			t.Errorf("a server with %s: got %v, want success: %v", name, err, want)
		}
		if !want && !strings.Contains(Explain(err).Error(), "it speaks no TLS 1.2") {
			t.Errorf("a server with %s: got %v, want the way out in it", name, Explain(err))
		}
	}
}

func TestASessionOfAClientsCertificateIsNotResumedUnderAnotherCA(t *testing.T) {
	ca, next := mysqltest.NewCA(t), mysqltest.NewCA(t)
	cert, client := ca.Server(t, "a"), ca.Client(t, "c")
	pair, err := tls.LoadX509KeyPair(client.CertFile, client.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	store := NewStore(zap.NewNop())
	server, err := store.Server("tls", ServerFiles{Cert: cert.CertFile, Key: cert.KeyFile, ClientCA: ca.File})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cfg := &tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}, ServerName: "a", MaxVersion: version,
			ClientSessionCache: tls.NewLRUClientSessionCache(1),
		}
		for i := range 2 {
			state, err, serverErr := handshake(t, server, cfg)
			if err != nil || serverErr != nil || state.DidResume != (i == 1) {
				t.Errorf("%s, handshake %d: got %v, %v, resumed: %v", tls.VersionName(version), i, err, serverErr, state.DidResume)
			}
		}
		before, err := os.ReadFile(ca.File)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(next.File)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ca.File, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if changed, err := store.Reload(); len(changed) != 1 || err != nil {
			t.Fatalf("got %v, %v, want one change", changed, err)
		}
		if state, _, serverErr := handshake(t, server, cfg); serverErr == nil {
			t.Errorf("%s: a client of a CA that is gone was let in, resumed: %v", tls.VersionName(version), state.DidResume)
		}
		if err := os.WriteFile(ca.File, before, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}
