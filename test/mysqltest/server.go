package mysqltest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/mysqld"
)

// ServerEnv is the environment variable that chooses the server program.
const ServerEnv = "SEQPROXY_TEST_SERVER"

// DirEnv is the environment variable with the directory for servers' data. Without it they are with
// other temporary files. A file system in memory halves the cost of a start. Whoever starts the
// tests removes it, since a server in it may be killed with its test.
const DirEnv = "SEQPROXY_TEST_DIR"

// Server is a private server for tests. It hides methods of mysqld.Server with a context behind
// methods without one. A method with a testing.TB fails that test, and must be called from its
// goroutine. Any goroutine may call the others.
type Server struct {
	*mysqld.Server
}

// restartTimeout bounds Restart and Stop: a crash recovery on a loaded machine.
const restartTimeout = 90 * time.Second

// findBinary runs the program once per process to find its version.
var findBinary = sync.OnceValues(func() (mysqld.Binary, error) {
	return mysqld.Find(os.Getenv(ServerEnv))
})

// Start starts a server for this test only and kills it when the test ends. Its data are then
// removed, and a MySQL server with replicas would take half a minute to stop. extraArgs are server
// options, "--sql-mode=ANSI", and override the usual ones. The test fails if the server dies
// without Kill or Stop.
func Start(t testing.TB, extraArgs ...string) *Server {
	t.Helper()
	return startFor(t, false, extraArgs)
}

// StartCountingHosts is [Start] for a server that counts each host's faults in logins, in
// performance_schema.host_cache. It blocks a host at --max-connect-errors, but never 127.0.0.1.
func StartCountingHosts(t testing.TB, extraArgs ...string) *Server {
	t.Helper()
	return startFor(t, true, append([]string{"--performance-schema=ON", "--host-cache-size=128"}, extraArgs...))
}

func startFor(t testing.TB, resolveNames bool, extraArgs []string) *Server {
	t.Helper()
	dir := t.TempDir()
	if !losesCommits(extraArgs) {
		var err error
		if dir, err = os.MkdirTemp(os.Getenv(DirEnv), "seqproxy-mysqltest-"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := os.RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	s, err := start(dir, resolveNames, extraArgs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Crashed(); err != nil {
			t.Errorf("the server died by itself: %v", err)
		}
		if s.Running() {
			if err := s.Kill(); err != nil {
				t.Error(err)
			}
		}
		if err := s.Stop(); err != nil { // removes the directory of its socket
			t.Error(err)
		}
	})
	return s
}

// losesCommits says whether a killed server may lose commits. Such a server has its data on disk,
// since MariaDB treats a redo log in memory as one that loses nothing, and writes there at once.
func losesCommits(extraArgs []string) bool {
	return slices.ContainsFunc(extraArgs, func(arg string) bool { return strings.HasPrefix(arg, "--innodb-flush-log-at-") })
}

// StartUnsynced is [Start] without a flush at every commit, for tests with many statements that
// kill no server.
func StartUnsynced(t testing.TB, extraArgs ...string) *Server {
	t.Helper()
	b, err := findBinary()
	if err != nil {
		t.Fatal(err)
	}
	return Start(t, append([]string{unsynced(b)}, extraArgs...)...)
}

// unsynced is the option of a server that flushes nothing to its disk.
func unsynced(b mysqld.Binary) string {
	if b.Flavour == mysqld.MySQL {
		return "--innodb-flush-method=nosync"
	}
	return "--debug-no-sync"
}

// start runs a server in dir on a copy of the template.
func start(dir string, resolveNames bool, extraArgs []string) (*Server, error) {
	bin, err := findBinary()
	if err != nil {
		return nil, err
	}
	if err := copyTemplate(bin, filepath.Join(dir, "data")); err != nil {
		return nil, err
	}
	// InnoDB would recompute its statistics in the background some time after changes. Answers that
	// depend on them would then differ. ANALYZE TABLE computes them.
	extraArgs = append([]string{"--innodb-stats-auto-recalc=OFF"}, extraArgs...)
	if bin.Flavour == mysqld.MySQL {
		// MariaDB's default.
		extraArgs = append([]string{"--local-infile=ON"}, extraArgs...)
	}
	if makesCertificate(bin) {
		own := certificateIn(filepath.Join(dir, "data"))
		extraArgs = append([]string{"--ssl-cert=" + own.CertFile, "--ssl-key=" + own.KeyFile}, extraArgs...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
	defer cancel()
	s, err := mysqld.Start(ctx, mysqld.Config{Binary: bin, Dir: dir, SkipNameResolve: !resolveNames, ExtraArgs: extraArgs})
	if err != nil {
		return nil, err
	}
	return &Server{Server: s}, nil
}

// Stop ends the server in order. Restart starts it again. Tests need no Stop at their end.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
	defer cancel()
	return s.Server.Stop(ctx)
}

// Restart starts the server again on the same port and data. It may run, or have ended by Kill or
// Stop. Restart returns once the server answers.
func (s *Server) Restart() error {
	ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
	defer cancel()
	return s.Server.Restart(ctx)
}

// RestartWith is Restart with more server options than Start had. They hold until the next restart.
func (s *Server) RestartWith(moreArgs ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), restartTimeout)
	defer cancel()
	return s.Server.RestartWith(ctx, moreArgs...)
}

// DSN returns the data source name for go-sql-driver: root over TCP without a password, in the
// schema db, which may be empty. Append "?name=value" for parameters.
func (s *Server) DSN(db string) string {
	cfg := mysql.NewConfig()
	cfg.User = "root"
	cfg.Net = "tcp"
	cfg.Addr = s.Addr()
	cfg.DBName = db
	return cfg.FormatDSN()
}

// DB opens a pool as root in the schema db, which may be empty. It is closed when the test ends. It
// has connected once, so that the first statement does not fail for want of a server.
func (s *Server) DB(t testing.TB, db string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", s.DSN(db))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() }) // an error only says that the test has killed the server
	if err := pool.Ping(); err != nil {
		t.Fatalf("connect to %s: %v", s.DSN(db), err)
	}
	return pool
}

// Exec runs statements as root on one connection, so that USE and SET hold for later ones. The
// first error fails the test.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	if err := s.exec(statements...); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) exec(statements ...string) error {
	pool, err := sql.Open("mysql", s.DSN(""))
	if err != nil {
		return err
	}
	defer pool.Close() //nolint:errcheck // every statement was answered
	ctx := context.Background()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", s.Addr(), err)
	}
	defer conn.Close() //nolint:errcheck // every statement was answered
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// Schema creates a schema with a unique name and drops it when the test ends.
func (s *Server) Schema(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("t_%016x", rand.Uint64())
	s.Exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		if !s.Running() {
			return // killed by the test; its data goes with it
		}
		if err := s.exec("DROP DATABASE IF EXISTS " + name); err != nil {
			t.Errorf("drop schema: %v", err)
		}
	})
	return name
}

// Client returns the path of the command-line client mariadb or mysql, preferably the server's own.
func (s *Server) Client(t testing.TB) string {
	t.Helper()
	path, err := s.Binary().Client()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
