package clients_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/mysqld"
)

// TestProgramsThatKnowSequences runs programs that look for sequences, or that could be confused by
// them.
func TestProgramsThatKnowSequences(t *testing.T) {
	p := start(t)
	p.makeShop(t, "known")
	p.server.Exec(t, "USE known", "CREATE TABLE "+boundTables[1]+" (id INT PRIMARY KEY)", "INSERT INTO "+boundTables[1]+" VALUES (1)")
	if p.server.IsMariaDB() {
		p.server.Exec(t, "USE known", "CREATE SEQUENCE theirs START WITH 5 COMMENT 'it''s'", "CREATE SEQUENCE `their``s` INCREMENT BY -3 MINVALUE -99 MAXVALUE 9 NOCACHE CYCLE", "SELECT NEXTVAL(theirs)")
	}
	p.addPlainUser(t)
	p.ofKinds(t, "CREATE SEQUENCE %s BIT_REVERSED", "CREATE SEQUENCE %s ROTATE 1 DIGITS 9", "CREATE SEQUENCE %s SHARD BITS 4",
		"CREATE SEQUENCE %s FORMAT 'PO-{yyyyMMdd}-{n:6}' TIME ZONE 'Asia/Shanghai'", "CREATE SEQUENCE %s UUID BINARY",
		"CREATE SEQUENCE %s FORMAT '{yyyyMMdd}{n:8}'", "CREATE SEQUENCE %s UUID VERSION 4", "CREATE SEQUENCE %s SNOWFLAKE",
		"CREATE SEQUENCE %s FORMAT '{yyyyMMdd}-{n:6}' RESET DAILY")
	p.ofKinds(t, slices.Repeat([]string{"SELECT NEXTVAL('%s')"}, len(sequencesOfKinds))...) // SNOWFLAKE has a row for its worker by now, RESET one for the day
	t.Run("dumps", func(t *testing.T) { dumpsLeaveSequencesAlone(t, p) })
	t.Run("mydumper", func(t *testing.T) { mydumperWritesTheSame(t, p) })
	t.Run("a dump is loaded", func(t *testing.T) { dumpsOfSequencesLoad(t, p) })
	p.dropSequences(t) // SQLAlchemy's tests fail with other sequences
	for _, driver := range []string{"pymysql", "mysqldb"} {
		t.Run("SQLAlchemy "+driver, func(t *testing.T) { sqlalchemyMakesAndDrops(t, p, driver) })
	}
}

// plainUser has the rights of the usual account. Its password is ASCII, since SQLAlchemy and
// mydumper encode others in their own ways.
const (
	plainUser     = "plain"
	plainPassword = "plain-text"
)

func (p *place) addPlainUser(t *testing.T) {
	t.Helper()
	p.server.Exec(t, "CREATE USER "+plainUser+"@'%' IDENTIFIED BY '"+plainPassword+"'", "GRANT ALL ON *.* TO "+plainUser+"@'%'")
	db := p.open(t, p.server.Addr(), "", func(c *mysql.Config) { c.User, c.Passwd = plainUser, plainPassword })
	if err := db.Ping(); err != nil { // as letIn does
		t.Fatal(err)
	}
	p.reconfigure(t, func(text string) string {
		return strings.Replace(text, fmt.Sprintf("admin_users = [%q]", user), fmt.Sprintf("admin_users = [%q, %q]", user, plainUser), 1) +
			fmt.Sprintf("\n[[user]]\nname = %q\npassword = %q\n", plainUser, plainPassword)
	})
}

// sequencesOfKinds have keys that are no counters. One has the name of a table.
var sequencesOfKinds = []string{"things", "rotated", "sharded", "formatted", "uuids", "dated", "random", "snowflakes", "daily"}

// ofKinds runs a statement about each of them through the proxy.
func (p *place) ofKinds(t *testing.T, statements ...string) {
	t.Helper()
	db := p.open(t, p.proxy, "", nil)
	for i, text := range statements {
		if _, err := db.ExecContext(t.Context(), fmt.Sprintf(text, sequencesOfKinds[i])); err != nil {
			t.Fatal(err)
		}
	}
}

// dropSequences drops what startProxy has made.
func (p *place) dropSequences(t *testing.T) {
	t.Helper()
	if _, err := p.open(t, p.proxy, "", nil).ExecContext(t.Context(), "DROP SEQUENCE "+strings.Join(slices.Concat(boundTables, sequencesOfKinds), ", ")); err != nil {
		t.Fatal(err)
	}
}

// dumpsLeaveSequencesAlone dumps a schema that has a table with the name of a sequence of the
// proxy. MariaDB's own sequences are in it, too, if the server has these.
func dumpsLeaveSequencesAlone(t *testing.T, p *place) {
	more := []string{"--routines", "--triggers", "--events", "--hex-blob", "--max-allowed-packet=64M"}
	if p.server.Flavour() == mysqld.MySQL {
		more = append(more, "--column-statistics=0", "--no-tablespaces", "--set-gtid-purged=OFF")
	}
	for _, how := range []string{"--lock-tables", "--single-transaction"} {
		dump := p.both(t, dumpVaries, "dump", append(more, how, "known")...)
		if got, want := strings.Count(dump, "\nCREATE SEQUENCE "), len(p.mariaDBSequences()); got != want {
			t.Errorf("%s: got %d sequences in the dump, want %d", how, got, want)
		}
	}
	// All schemas, including the sequence table's, with each server's tool.
	if all := p.use(t, p.proxy, "", "dump", append(more, "--all-databases", "--ignore-table=known.wide")...); !strings.Contains(all, "INSERT INTO `sequence` ") {
		t.Error("a dump of everything is without the sequence table")
	}
}

// mariaDBSequences returns MariaDB's own sequences.
func (p *place) mariaDBSequences() []string {
	if !p.server.IsMariaDB() {
		return nil
	}
	return []string{"theirs", "their`s"}
}

// mydumperWritesTheSame compares the files that mydumper writes. It crashes on names with back
// quotes.
func mydumperWritesTheSame(t *testing.T, p *place) {
	path, err := exec.LookPath("mydumper")
	if err != nil {
		lacking(t, "mydumper")
	}
	p.server.Exec(t, "CREATE DATABASE written", "USE written", "CREATE TABLE "+boundTables[1]+" SELECT * FROM known.many", "CREATE TABLE things LIKE known.things",
		"INSERT INTO things (i, exact, b) VALUES (1, 2.5, x'00ff270a5c'), (NULL, NULL, NULL)", "CREATE TABLE nothing (id INT)", "CREATE VIEW few AS SELECT n FROM "+boundTables[1]+" WHERE n < 5",
		"CREATE TRIGGER added BEFORE INSERT ON nothing FOR EACH ROW SET NEW.id = 1")
	if p.server.IsMariaDB() {
		p.server.Exec(t, "USE written", "CREATE SEQUENCE theirs START WITH 5", "SELECT NEXTVAL(theirs)")
	}
	dump := func(addr string) (map[string]string, error) {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		dir := filepath.Join(t.TempDir(), "dump")
		out, errs, err := output(ctx, t, p, target{}, "", path, "--host="+host, "--port="+port, "--user="+plainUser, "--password="+plainPassword,
			"--database=written", "--outputdir="+dir, "--triggers", "--threads=2", "--rows=3000", "--verbose=2")
		if err != nil || strings.Contains(string(errs), "CRITICAL") || strings.Contains(string(errs), "ERROR") {
			return nil, fmt.Errorf("mydumper: %w: %s%s", err, tail(string(out)), tail(string(errs)))
		}
		files := make(map[string]string)
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if base := filepath.Base(name); base != "metadata" {
				// times, and the position in the binary log
				files[base] = string(text)
			}
		}
		return files, nil
	}
	want, err := dump(p.server.Addr())
	if err != nil {
		t.Fatalf("direct: %v", err)
	}
	got, err := dump(p.proxy)
	if err != nil {
		t.Fatalf("through the proxy: %v", err)
	}
	if len(want) < 6 {
		t.Errorf("got %d files directly, want two for most tables", len(want))
	}
	if got, want := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("got files %q, want %q", got, want)
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s", name, difference(got[name], text))
		}
	}
}

// dumpsOfSequencesLoad loads a dump made directly, with sequences, while names unknown to the proxy
// belong to the server.
func dumpsOfSequencesLoad(t *testing.T, p *place) {
	if !p.server.IsMariaDB() {
		t.Skip("MySQL has no sequences")
	}
	p.reconfigure(t, func(text string) string { return "unknown_sequence = \"relay\"\n" + text })
	dump := p.use(t, p.server.Addr(), "", "dump", "--max-allowed-packet=64M", "known")
	p.server.Exec(t, "CREATE DATABASE known_copy CHARACTER SET utf8mb4")
	p.use(t, p.proxy, dump, "", "--max-allowed-packet=64M", "--default-character-set=utf8mb4", "--binary-mode", "known_copy")
	again := p.use(t, p.server.Addr(), "", "dump", "--max-allowed-packet=64M", "known_copy")
	clean := func(dump string) string {
		return strings.ReplaceAll(dumpVaries.ReplaceAllString(dump, ""), "known_copy", "known")
	}
	if got, want := clean(again), clean(dump); got != want {
		t.Errorf("what was loaded through the proxy is not what was dumped: %s", difference(got, want))
	}
	// over existing tables
	p.use(t, p.proxy, dump, "", "--max-allowed-packet=64M", "--default-character-set=utf8mb4", "--binary-mode", "known_copy")
}

// reconfigure changes the proxy's configuration until the test's end.
func (p *place) reconfigure(t *testing.T, change func(text string) string) {
	t.Helper()
	file := filepath.Join(p.dir, "seqproxy.toml")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	reload := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := p.open(t, p.proxy, "", nil).ExecContext(ctx, "SEQPROXY RELOAD"); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { reload(string(before)) })
	reload(change(string(before)))
}

// sqlalchemyMakesAndDrops lets SQLAlchemy create and drop tables with sequences. It also runs
// SQLAlchemy's own tests of sequences, directly and through the proxy.
func sqlalchemyMakesAndDrops(t *testing.T, p *place, driver string) {
	if what := missing("SQLAlchemy", python, "sqlalchemy/app.py"); what != "" {
		lacking(t, what)
	}
	if !p.server.IsMariaDB() {
		t.Skip("SQLAlchemy has no sequences for MySQL")
	}
	run := func(addr, schema string, command ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 120*time.Second)
		defer cancel()
		out, errs, err := output(ctx, t, p, target{}, "", command...)
		if err != nil {
			t.Errorf("%s, %s: %v\n%s%s", addr, schema, err, tail(string(out)), tail(string(errs)))
		}
		return string(out)
	}
	const schema = "alchemy"
	for _, name := range []string{schema, schema + "_2", "test_schema", "test_schema_2"} {
		// its tests need the last ones
		p.server.Exec(t, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name+" CHARACTER SET utf8mb4")
	}
	var made, tests [2]string
	for i, addr := range [...]string{p.server.Addr(), p.proxy} {
		host, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		made[i] = run(addr, schema, python, "-B", filepath.Join("testdata", "sqlalchemy", "app.py"), driver, host, port, plainUser, plainPassword, schema)
		restart := ""
		if addr == p.proxy {
			restart = "1"
		}
		uri := fmt.Sprintf("mariadb+%s://%s:%s@%s:%s/%s?charset=utf8mb4", driver, plainUser, plainPassword, host, port, schema)
		tests[i] = run(addr, schema, "env", "-C", filepath.Join("testdata", "sqlalchemy"), "RESTART="+restart,
			python, "-B", "-m", "pytest", "-v", "--dburi", uri, "-k", "Sequence", "test_suite.py")
	}
	if made[0] != made[1] || !strings.Contains(made[1], "made again True") {
		t.Errorf("create_all, drop_all, create_all: %s", difference(made[1], made[0]))
	}
	outcome := regexp.MustCompile(`(?m)::(\S+ [A-Z]+) +\[`)
	found := [2][][]string{outcome.FindAllStringSubmatch(tests[0], -1), outcome.FindAllStringSubmatch(tests[1], -1)}
	if len(found[0]) < 15 {
		t.Errorf("SQLAlchemy's own tests: %s", tail(tests[0]))
	}
	if got, want := fmt.Sprint(found[1]), fmt.Sprint(found[0]); got != want {
		t.Errorf("SQLAlchemy's own tests: %s\n%s", difference(got, want), tail(tests[1]))
	}
}
