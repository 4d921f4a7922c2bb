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

// shared is the one server of this test process.
var shared struct {
	mu      sync.Mutex
	enabled bool    // Main runs, so somebody will stop it
	server  *Server // nil until first asked for
	dir     string
	err     error // a failed start, for every later caller
}

// Shared returns the server that all tests of this process share. The first call
// starts it, [Main] stops it. Tests must not kill it, restart it or change global
// variables; they work in schemas of their own. If it died, the caller's test
// fails with the end of its log.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.enabled {
		t.Fatal("mysqltest.Shared needs in this package: func TestMain(m *testing.M) { mysqltest.Main(m) }")
	}
	if shared.server == nil && shared.err == nil {
		shared.server, shared.dir, shared.err = startShared()
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	if !shared.server.Running() {
		t.Fatalf("the shared server is gone: %v", shared.server.Wait())
	}
	return shared.server
}

func startShared() (*Server, string, error) {
	dir, err := os.MkdirTemp("", "seqproxy-mysqltest-")
	if err != nil {
		return nil, "", err
	}
	s, err := start(dir, false, nil)
	if err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	return s, dir, nil
}

// stopShared ends the shared server and removes its directory.
func stopShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.enabled = false
	if shared.server == nil {
		return nil
	}
	err := errors.Join(shared.server.Crashed(), shared.server.Stop(), os.RemoveAll(shared.dir))
	shared.server = nil
	return err
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

// Main runs the tests of a package and then stops the shared server. It is the
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
