package clients_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// keyProgram is a program that inserts rows without knowing their keys. Each step of its transcript
// has two lists: the rows as the program sees them, and as they are.
type keyProgram struct {
	name    string
	missing func() string // as in client
	// run passes args after the arguments of all scripts.
	run func(ctx context.Context, t *testing.T, p *place, to target, args ...string) ([]byte, error)
}

func (k keyProgram) find(t *testing.T) {
	t.Helper()
	client{missing: k.missing}.find(t)
}

// keyDrivers report generated keys. Their argument is the expression for a key; without it the
// column is left out.
var keyDrivers = []keyProgram{
	{name: "go-sql-driver", run: runGoKeys},
	{name: "MariaDB-Connector-J", missing: func() string { return missing("MariaDB-Connector-J", "javac", "Connector.java") }, run: runJavaKeys},
	keyScript("php-mysqli", "php", "keys/keys.php", "mysqli", "mysqli.php"),
	keyScript("php-PDO", "php", "keys/keys.php", "PDO", "pdo.php"),
	keyScript("PyMySQL", python, "keys/keys.py", "pymysql", "pymysql"),
	keyScript("mysqlclient", python, "keys/keys.py", "MySQLdb", "MySQLdb"),
	keyScript("npm-mysql2", "node", "node/keys.mjs", "mysql2", "node/mysql2.mjs"),
	keyScript("npm-mariadb", "node", "node/keys.mjs", "mariadb", "node/mariadb.mjs"),
}

// keyScript is a script of testdata for a driver. probe is the driver's name in probes.
func keyScript(name, interpreter, file, driver, probe string) keyProgram {
	return keyProgram{
		name: name,
		missing: func() string {
			return missing(name, interpreter, probe)
		},
		run: func(ctx context.Context, t *testing.T, p *place, to target, args ...string) ([]byte, error) {
			command := []string{interpreter, filepath.Join("testdata", file), driver, to.host, to.port, to.user, password, to.schema}
			return run(ctx, t, p, to, "", append(command, args...)...)
		},
	}
}

// runJavaKeys compiles the program the first time.
func runJavaKeys(ctx context.Context, t *testing.T, p *place, to target, args ...string) ([]byte, error) {
	classes := filepath.Join(p.dir, "classes")
	if _, err := os.Stat(classes); err != nil {
		if out, err := exec.CommandContext(ctx, "javac", "-d", classes, "testdata/keys/Keys.java").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("javac: %w\n%s", err, out)
		}
	}
	command := []string{"java", "-XX:TieredStopAtLevel=1", "-cp", connectorJar + ":" + classes, "Keys", to.host, to.port, to.user, password, to.schema}
	return run(ctx, t, p, to, "", append(command, args...)...)
}

// photosOf is the table for the drivers' programs.
func photosOf(autoIncrement string) []string {
	return []string{"CREATE TABLE photos (id BIGINT UNSIGNED NOT NULL " + autoIncrement + " PRIMARY KEY, title VARCHAR(100) NOT NULL UNIQUE) ENGINE=InnoDB"}
}

// driverTest runs the program directly, and through the proxy with keys that it asks for and with
// keys that are filled in.
func driverTest(t *testing.T, p *place, k keyProgram, schema string) {
	k.find(t)
	auto, plain := photosOf("AUTO_INCREMENT"), photosOf("")
	p.empty(t, schema, auto)
	direct := k.transcript(t, p, p.server.Addr(), schema)
	checkKeys(t, direct)
	p.empty(t, schema, auto)
	through := k.transcript(t, p, p.proxy, schema)
	checkKeys(t, through)
	if got, want := text(through), text(direct); got != want {
		t.Errorf("through the proxy: %s", difference(got, want))
	}
	for _, tables := range [][]string{auto, plain} {
		p.empty(t, schema, tables)
		checkKeys(t, k.transcript(t, p, p.proxy, schema, "NEXTVAL('"+sequence+"')"))
		p.empty(t, filled(schema), tables)
		transcript := k.transcript(t, p, p.proxy, filled(schema))
		// For each row of a batch MariaDB 11.8 reports the generated key, or 0.
		transcript.replaceZeros("batch, row")
		checkFilled(t, transcript, direct)
	}
}

// empty makes a schema with only the tables.
func (p *place) empty(t *testing.T, schema string, tables []string) {
	t.Helper()
	p.server.Exec(t, append([]string{"DROP DATABASE IF EXISTS " + schema, "CREATE DATABASE " + schema + " CHARACTER SET utf8mb4", "USE " + schema}, tables...)...)
}

// filled is another schema whose keys are bound to sequences.
func filled(schema string) string { return "filled_" + schema }

// boundTables are the tables in filled's schemas whose column id is bound to the sequence with the
// table's name.
var boundTables = []string{sequence, "albums", "pictures", "tags"}

// firstFilled is the start of these sequences, above all numbers of AUTO_INCREMENT.
const firstFilled = 1000

// bindings is the configuration that binds the columns.
func bindings() string {
	var text strings.Builder
	bind := func(schema, table string) {
		fmt.Fprintf(&text, "[[bind]]\ncolumn = %q\nsequence = %q\n", filled(schema)+"."+table+".id", table)
	}
	for i := range keyDrivers {
		bind(fmt.Sprintf("keys%d", i), sequence)
	}
	for i := range orms {
		for _, table := range boundTables[1:] {
			bind(fmt.Sprintf("orm%d", i), table)
		}
	}
	return text.String()
}

// transcript runs the program.
func (k keyProgram) transcript(t *testing.T, p *place, addr, schema string, args ...string) transcript {
	t.Helper()
	to := target{schema: schema, user: user, login: "password"}
	var err error
	if to.host, to.port, err = net.SplitHostPort(addr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out, err := k.run(ctx, t, p, to, args...)
	if err != nil {
		t.Fatalf("%s %q at %s: %v\n%s", k.name, args, addr, err, tail(string(out)))
	}
	got, err := parse(out)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// sorted sorts rows by the part after their keys, since an explicit key may be above or below the
// sequence's next ones.
func sorted(list any) []any {
	rows := slices.Clone(list.([]any))
	slices.SortFunc(rows, func(a, b any) int {
		return cmp.Or(strings.Compare(text(a.([]any)[1:]), text(b.([]any)[1:])), strings.Compare(text(a), text(b)))
	})
	return rows
}

// checkFilled checks that the keys came from the sequences. Apart from the numbers they must be
// those of the direct connection.
func checkFilled(t *testing.T, tr, direct transcript) {
	t.Helper()
	checkKeys(t, tr)
	for _, s := range tr {
		both, _ := s.Value.([]any)
		if len(both) != 2 {
			continue
		}
		rows, _ := both[1].([]any)
		for _, row := range rows {
			if n, err := strconv.ParseUint(fmt.Sprint(row.([]any)[0]), 10, 64); err != nil || n < firstFilled {
				t.Errorf("%s: got key %v, want one of the sequence, from %d on", s.Step, row, firstFilled)
			}
		}
	}
	if got, want := text(withoutNumbers(tr)), text(withoutNumbers(direct)); got != want {
		t.Errorf("apart from the numbers: %s", difference(got, want))
	}
}

// replaceZeros replaces zeros that a program got as keys by the real keys, in steps whose names
// begin with prefix.
func (tr transcript) replaceZeros(prefix string) {
	for _, s := range tr {
		if !strings.HasPrefix(s.Step, prefix) {
			continue
		}
		both := s.Value.([]any)
		reported, rows := sorted(both[0]), sorted(both[1])
		for i := range min(len(reported), len(rows)) {
			if object := reported[i].([]any); object[0] == "0" {
				object[0] = rows[i].([]any)[0]
			}
		}
	}
}

// withoutNumbers removes all numbers.
func withoutNumbers(tr transcript) transcript {
	var walk func(v any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case []any:
			list := make([]any, len(v))
			for n := range v {
				list[n] = walk(v[n])
			}
			return list
		case string:
			if _, err := strconv.ParseUint(v, 10, 64); err == nil {
				return "#"
			}
		}
		return v
	}
	bare := slices.Clone(tr)
	for i, s := range tr {
		if both, ok := s.Value.([]any); ok && len(both) == 2 {
			s.Value = []any{sorted(both[0]), sorted(both[1])}
		}
		bare[i].Value = walk(s.Value)
	}
	return bare
}

// checkKeys compares the rows as a program sees them with the rows as they are. An unknown key is
// null.
func checkKeys(t *testing.T, tr transcript) {
	t.Helper()
	if len(tr) < 3 {
		t.Errorf("the steps are %q, want some", tr.steps())
	}
	for _, s := range tr {
		both, _ := s.Value.([]any)
		if s.Step == "client" {
			continue
		}
		if len(both) != 2 {
			t.Errorf("%s: got %s, want two lists", s.Step, text(s.Value))
			continue
		}
		reported, rows := sorted(both[0]), sorted(both[1])
		if len(rows) == 0 || len(reported) != len(rows) {
			t.Errorf("%s: the program reports %s, but the rows are %s", s.Step, text(reported), text(rows))
			continue
		}
		for i := range rows {
			row, object := rows[i].([]any), reported[i].([]any)
			for n := range row {
				if n == 0 && object[0] == nil {
					continue
				}
				if row[n] != object[n] {
					t.Errorf("%s: the program took row %d for %s, but it is %s", s.Step, i, text(object), text(row))
					break
				}
			}
		}
	}
}

// runGoKeys is the program for go-sql-driver, in this process.
func runGoKeys(ctx context.Context, t *testing.T, p *place, to target, args ...string) ([]byte, error) {
	db := p.open(t, net.JoinHostPort(to.host, to.port), to.schema, nil)
	s := &goSession{ctx: ctx}
	var err error
	if s.c, err = db.Conn(ctx); err != nil {
		return nil, err
	}
	defer s.c.Close() //nolint:errcheck // every statement was answered
	column, key := "", ""
	if len(args) > 0 {
		column, key = "id, ", args[0]+", "
	}
	insert := func(titles ...string) string {
		return "INSERT INTO photos (" + column + "title) VALUES (" + key + strings.Join(titles, "), ("+key) + ")"
	}
	step := func(name string, first any, titles ...string) {
		var reported [][]any
		n, err := strconv.ParseInt(fmt.Sprint(first), 10, 64)
		s.keep(err)
		for i, title := range titles {
			reported = append(reported, []any{n + int64(i), title})
		}
		s.step(name, reported, s.rows("SELECT id, title FROM photos WHERE title IN ('"+strings.Join(titles, "', '")+"') ORDER BY id"))
	}
	step("text", s.exec(insert("'a'"))[0], "a")
	step("prepared", s.exec(insert("?"), "b")[0], "b")
	step("rows in a text", s.exec(insert("'c'", "'d'", "'e'"))[0], "c", "d", "e")
	step("rows prepared", s.exec(insert("?", "?", "?"), "f", "g", "h")[0], "f", "g", "h")
	step("function", s.one("SELECT LAST_INSERT_ID()"), "f")
	step("found", s.exec(insert("?")+" ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)", "c")[0], "c")
	return s.out.Bytes(), errors.Join(s.errs...)
}
