package mysqltest

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m, CheckLeaks()) }

// recorder is a testing.TB that remembers failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) end() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func TestEveryServerHasItsOwnData(t *testing.T) {
	a, b := Start(t), Start(t, "--sql-mode=ANSI")
	if a.Addr() == b.Addr() || a.Socket() == b.Socket() {
		t.Fatalf("two servers share an address: %s, %s", a.Addr(), b.Addr())
	}
	a.Exec(t, "CREATE DATABASE only_a")
	var n int
	if err := b.DB(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='only_a'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Error("a schema of one server is seen on the other")
	}
	var mode string
	if err := b.DB(t, "").QueryRow("SELECT @@sql_mode").Scan(&mode); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(mode, "ANSI") {
		t.Errorf("sql_mode: got %q, want the extra argument's ANSI", mode)
	}
}

func TestStatisticsAreMadeOnlyWhenTheyAreAskedFor(t *testing.T) {
	s := Shared(t)
	db := s.DB(t, s.Schema(t))
	var anew bool
	if err := db.QueryRow("SELECT @@innodb_stats_auto_recalc").Scan(&anew); err != nil || anew {
		t.Errorf("InnoDB makes statistics anew in the background: %v, %v", anew, err)
	}
	for _, statement := range []string{
		"CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO t VALUES (1), (2), (3), (4), (5), (6), (7)", "ANALYZE TABLE t",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	var different int
	err := db.QueryRow("SELECT CARDINALITY FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 't'").Scan(&different)
	if err != nil || different != 7 {
		t.Errorf("after ANALYZE TABLE there are %d different ids, %v, want 7", different, err)
	}
}

func TestASharedServerIsOneServerWithASchemaPerTest(t *testing.T) {
	var names []string
	for range 2 {
		t.Run("schema", func(t *testing.T) {
			s := Shared(t)
			name := s.Schema(t)
			names = append(names, name)
			s.Exec(t, "USE "+name, "CREATE TABLE t (id INT)", "INSERT INTO t VALUES (3)")
			var id int
			if err := s.DB(t, name).QueryRow("SELECT id FROM t").Scan(&id); err != nil || id != 3 {
				t.Errorf("got %d, %v, want 3", id, err)
			}
		})
	}
	s := Shared(t)
	if s != Shared(t) {
		t.Error("two shared servers")
	}
	if names[0] == names[1] {
		t.Errorf("two tests got one schema %s", names[0])
	}
	var open int
	if err := s.DB(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name IN (?,?)", names[0], names[1]).Scan(&open); err != nil {
		t.Fatal(err)
	}
	if open != 0 {
		t.Errorf("schemas left after their tests: got %d, want 0", open)
	}
}

func TestKillAndRestartKeepAddressAndCommittedRows(t *testing.T) {
	s := Start(t)
	schema := s.Schema(t)
	s.Exec(t, "CREATE TABLE "+schema+".t (id INT) ENGINE=InnoDB", "INSERT INTO "+schema+".t VALUES (5)")
	addr := s.Addr()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.exec("SELECT 1"); err == nil {
		t.Error("a killed server answers")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Errorf("address after Restart: got %s, want %s", s.Addr(), addr)
	}
	var id int
	if err := s.DB(t, schema).QueryRow("SELECT id FROM t").Scan(&id); err != nil || id != 5 {
		t.Errorf("row after Kill and Restart: got %d, %v, want 5", id, err)
	}
}

func TestAServerThatDiesByItselfFailsTheTest(t *testing.T) {
	r := &recorder{TB: t}
	s := Start(r)
	if err := syscall.Kill(s.PID(), syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the server outlives SIGABRT")
	}
	r.end()
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "died by itself") {
		t.Errorf("failures: got %q, want one that says it died by itself", r.failures)
	}
}

func TestTheClientProgramReachesTheServer(t *testing.T) {
	s := Shared(t)
	host, port, _ := strings.Cut(s.Addr(), ":")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var warnings strings.Builder // MariaDB 11.8's, about the missing password
	cmd := exec.CommandContext(ctx, s.Client(t), "--no-defaults", "--protocol=tcp", "-uroot", "-h"+host, "-P"+port, "-Ne", "SELECT @@port")
	cmd.Stderr = &warnings
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, warnings.String())
	}
	if got := strings.TrimSpace(string(out)); got != strconv.Itoa(s.Port()) {
		t.Errorf("port by the client program: got %q, want %d", got, s.Port())
	}
}
