package mysqltest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

// shared are the servers of this test process.
var shared struct {
	mu      sync.Mutex
	enabled bool // Main runs, so somebody will stop them
	servers [2]sharedServer
}

// sharedServer is a server that all tests of this process share.
type sharedServer struct {
	server *Server // nil until first asked for
	dir    string
	err    error // a failed start, for every later caller
}

// Shared returns the server that all tests of this process share. The first call
// starts it, [Main] stops it. Tests must not kill it, restart it or change global
// variables; they work in schemas of their own. If it died, the caller's test
// fails with the end of its log.
func Shared(t testing.TB) *Server {
	t.Helper()
	return sharedAt(t, 0)
}

// SharedSecond returns another such server, for tests that need two.
func SharedSecond(t testing.TB) *Server {
	t.Helper()
	return sharedAt(t, 1)
}

func sharedAt(t testing.TB, i int) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.enabled {
		t.Fatal("a shared server needs in this package: func TestMain(m *testing.M) { mysqltest.Main(m) }")
	}
	s := &shared.servers[i]
	if s.server == nil && s.err == nil {
		s.server, s.dir, s.err = startShared()
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	if !s.server.Running() {
		t.Fatalf("a shared server is gone: %v", s.server.Wait())
	}
	return s.server
}

func startShared() (*Server, string, error) {
	dir, err := os.MkdirTemp(os.Getenv(DirEnv), "seqproxy-mysqltest-")
	if err != nil {
		return nil, "", err
	}
	s, err := start(dir, false, nil)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return s, dir, nil
}

// stopShared ends the shared servers and removes their directories.
func stopShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.enabled = false
	var errs []error
	for i := range shared.servers {
		s := &shared.servers[i]
		if s.server == nil {
			continue
		}
		errs = append(errs, s.server.Crashed(), s.server.Stop(), os.RemoveAll(s.dir))
		s.server = nil
	}
	return errors.Join(errs...)
}

// Option changes what Main does.
type Option func(*mainConfig)

type mainConfig struct {
	checkLeaks bool
	leakOpts   []goleak.Option
}

// CheckLeaks makes a successful run fail when goroutines are left at its end,
// except those that opts ignore.
func CheckLeaks(opts ...goleak.Option) Option {
	return func(c *mainConfig) {
		c.checkLeaks = true
		c.leakOpts = append(c.leakOpts, opts...)
	}
}

// Main runs the tests of a package and then stops the shared servers. It is the
// whole of a TestMain:
//
//	func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }
//
// It ends the process. A server that cannot be stopped or that died by itself
// makes the run fail. If the process is killed instead, so are its servers. What
// go-sql-driver prints of connections that break is left out.
func Main(m *testing.M, opts ...Option) {
	var cfg mainConfig
	for _, opt := range opts {
		opt(&cfg)
	}
	// Tests break connections by the thousand. Each error that the driver prints is returned, too.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // fails only without a logger
	shared.mu.Lock()
	shared.enabled = true
	shared.mu.Unlock()

	code := m.Run()
	if err := stopShared(); err != nil {
		code = failed(code, err)
	}
	if code == 0 && cfg.checkLeaks {
		if err := goleak.Find(cfg.leakOpts...); err != nil {
			code = failed(code, err)
		}
	}
	os.Exit(code)
}

// failed prints err and returns an exit code that is not 0.
func failed(code int, err error) int {
	fmt.Fprintln(os.Stderr, "mysqltest:", err)
	return max(code, 1)
}
