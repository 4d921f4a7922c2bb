package mysqltest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

// shared are the servers of this test process.
var shared struct {
	mu      sync.Mutex
	enabled bool // Main runs and will stop them
	servers [2]sharedServer
}

// sharedServer is a server that all tests of this process share.
type sharedServer struct {
	server *Server // nil until first asked for
	dir    string
	err    error // why the start failed, for all later callers
}

// Shared returns the server that all tests of this process share. The first call starts it, and
// [Main] stops it. Tests must not kill it, restart it or change global variables. They work in
// their own schemas. If the server has died, the caller's test fails with the end of its log.
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

// startShared starts a server that nobody kills, so it need not wait for the disk.
func startShared() (*Server, string, error) {
	b, err := findBinary()
	if err != nil {
		return nil, "", err
	}
	dir, err := os.MkdirTemp(os.Getenv(DirEnv), "seqproxy-mysqltest-")
	if err != nil {
		return nil, "", err
	}
	s, err := start(dir, false, []string{unsynced(b)})
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

// CheckLeaks lets a successful run fail if goroutines are left at its end, apart from those that
// opts ignore.
func CheckLeaks(opts ...goleak.Option) Option {
	return func(c *mainConfig) {
		c.checkLeaks = true
		c.leakOpts = append(c.leakOpts, opts...)
	}
}

// Main runs the tests of a package, then stops the shared servers and removes what [Program] built.
// It is the only call in a TestMain:
//
//	func TestMain(m *testing.M) { mysqltest.Main(m, mysqltest.CheckLeaks()) }
//
// It ends the process. The run fails if a server cannot be stopped, or has died by itself. If the
// process is killed, its servers die, too. Messages of go-sql-driver about broken connections are
// not printed.
func Main(m *testing.M, opts ...Option) {
	var cfg mainConfig
	for _, opt := range opts {
		opt(&cfg)
	}
	// Tests break thousands of connections. The driver also returns each error that it would print.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // fails only without a logger
	shared.mu.Lock()
	shared.enabled = true
	shared.mu.Unlock()

	code := m.Run()
	if err := errors.Join(stopShared(), removePrograms()); err != nil {
		code = failed(code, err)
	}
	if code == 0 && cfg.checkLeaks {
		if err := FindLeaks(cfg.leakOpts...); err != nil {
			code = failed(code, err)
		}
	}
	os.Exit(code)
}

// leaksLast is for how long a goroutine may take to end. On a busy machine it may stand still for
// seconds.
const leaksLast = 10 * time.Second

// FindLeaks reports goroutines that do not end.
func FindLeaks(opts ...goleak.Option) error {
	for end := time.Now().Add(leaksLast); ; {
		if err := goleak.Find(opts...); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// failed prints err and returns an exit code that is not 0.
func failed(code int, err error) int {
	fmt.Fprintln(os.Stderr, "mysqltest:", err)
	return max(code, 1)
}
