package clients_test

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
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

	"github.com/go-sql-driver/mysql"

	"seqproxy/test/matrix"
)

// keyKinds are the kinds of keys for the tests of drivers.
var keyKinds = []struct {
	clause string // "" for a plain sequence
	// steady: keys of several rows differ by one, so drivers may count on from the first
	steady bool
	text   string // the column type of keys that are texts, which are no insert ids
}{
	{clause: "", steady: true},
	{clause: "BIT_REVERSED"},
	{clause: "BIT_REVERSED JSON_SAFE"},
	{clause: "ROTATE 1 DIGITS 12"},
	{clause: "SHARD BITS 4", steady: true},
	{clause: "SNOWFLAKE", steady: true},
	{clause: "FORMAT 'P-{n:6}'", text: "VARCHAR(20)"},
	{clause: "UUID", text: "CHAR(36)"},
}

// keyForms are the ways to insert rows. In a statement %t is the table without a bound column. %o
// and %b have a column bound by OWNED BY and by [[bind]]. %s is the sequence.
var keyForms = []struct {
	name, how, sql string
	values         []string
	titles         string // of the rows, in order
	needsSteady    bool   // refused for other kinds of numbers
	numbersOnly    bool   // refused for texts
	insertID       bool   // reports the insert id, and nothing else
	mayRefuse      bool   // may be refused for other kinds of numbers: drivers send a batch as one statement or as many
	reportsNone    bool   // the driver does not report the key: see "Compatibility"
}{
	{name: "insert id", how: "text", sql: "INSERT INTO %t (id, title) VALUES (NEXTVAL('%s'), 'a')", titles: "a", insertID: true},
	{name: "LAST_INSERT_ID()", how: "rows", sql: "SELECT LAST_INSERT_ID()", titles: "a", insertID: true},
	{name: "OWNED BY", how: "text", sql: "INSERT INTO %o (title) VALUES ('b')", titles: "b"},
	{name: "[[bind]]", how: "text", sql: "INSERT INTO %b (title) VALUES ('c')", titles: "c", numbersOnly: true},
	{name: "rows of NEXTVAL", how: "text", sql: "INSERT INTO %t (id, title) VALUES (NEXTVAL('%s'), 'd'), (NEXTVAL('%s'), 'e')", titles: "de"},
	{name: "rows, filled in", how: "text", sql: "INSERT INTO %o (title) VALUES ('f'), ('g')", titles: "fg", needsSteady: true},
	{name: "prepared", how: "prepared", sql: "INSERT INTO %t (id, title) VALUES (NEXTVAL('%s'), ?)", values: []string{"h"}, titles: "h"},
	{name: "prepared, filled in", how: "prepared", sql: "INSERT INTO %o (title) VALUES (?)", values: []string{"i"}, titles: "i"},
	{name: "batch", how: "batch", sql: "INSERT INTO %t (id, title) VALUES (NEXTVAL('%s'), ?)", values: []string{"j", "k"}, titles: "jk", reportsNone: true},
	{name: "batch, filled in", how: "batch", sql: "INSERT INTO %o (title) VALUES (?)", values: []string{"l", "m"}, titles: "lm", reportsNone: true, mayRefuse: true},
	{name: "INSERT ... SELECT", how: "text", sql: "INSERT INTO %t (id, title) SELECT NEXTVAL('%s'), title FROM words ORDER BY title", titles: "no", needsSteady: true, numbersOnly: true},
	{name: "RETURNING", how: "rows", sql: "INSERT INTO %t (id, title) VALUES (NEXTVAL('%s'), 'p') RETURNING id", titles: "p"},
}

// kindDrivers are the keyDrivers whose programs take steps.
var kindDrivers = []keyProgram{
	{name: "go-sql-driver", run: runGoKinds},
	{name: "MariaDB-Connector-J", missing: func() string { return missing("MariaDB-Connector-J", "javac", "Connector.java") }, run: runJavaKinds},
	keyScript("php-mysqli", "php", "kinds/kinds.php", "mysqli", "mysqli.php"),
	keyScript("php-PDO", "php", "kinds/kinds.php", "PDO", "pdo.php"),
	keyScript("PyMySQL", python, "kinds/kinds.py", "pymysql", "pymysql"),
	keyScript("mysqlclient", python, "kinds/kinds.py", "MySQLdb", "MySQLdb"),
	keyScript("npm-mysql2", "node", "node/kinds.mjs", "mysql2", "node/mysql2.mjs"),
	keyScript("npm-mariadb", "node", "node/kinds.mjs", "mariadb", "node/mariadb.mjs"),
}

// kindTables has the names of the tables and the sequence for a kind, in a driver's schema.
func kindTables(driver, kind int) *strings.Replacer {
	// Names are of one driver: a statement of one that is prepared would have to be prepared again
	// when a table of that name in another schema gets an owner.
	name := kindSequence(driver, kind)
	return strings.NewReplacer("%t", "plain_"+name, "%o", "owned_"+name, "%b", "bound_"+name, "%s", name)
}

func kindSequence(driver, kind int) string { return fmt.Sprintf("kinds%d_%d", driver, kind) }

// kindBindings is the configuration that binds columns for kindTest.
func kindBindings() string {
	var text strings.Builder
	for driver := range kindDrivers {
		for kind := range keyKinds {
			fmt.Fprintf(&text, "[[bind]]\ncolumn = \"kinds%d.bound_%s.id\"\nsequence = %[2]q\n", driver, kindSequence(driver, kind))
		}
	}
	return text.String()
}

// kindTest inserts rows with a driver in all forms, with keys of each kind. The driver must report
// the right keys, or the form is refused.
func kindTest(t *testing.T, p *place, driver int) {
	k := kindDrivers[driver]
	k.find(t)
	schema := fmt.Sprintf("kinds%d", driver)
	p.empty(t, schema, []string{"CREATE TABLE words (title VARCHAR(20))", "INSERT INTO words VALUES ('n'), ('o')"})
	db := p.open(t, p.proxy, schema, nil)
	for kind, of := range keyKinds {
		names := kindTables(driver, kind)
		for _, table := range []string{"%t", "%o", "%b"} {
			p.server.Exec(t, names.Replace("CREATE TABLE "+schema+"."+table+" (id "+cmp.Or(of.text, "BIGINT UNSIGNED")+" NOT NULL PRIMARY KEY, title VARCHAR(20) NOT NULL)"))
		}
		for _, sql := range []string{"CREATE SEQUENCE %s " + of.clause, "CREATE SEQUENCE %s_owns " + of.clause + " OWNED BY " + schema + ".%o.id"} {
			if _, err := db.ExecContext(t.Context(), names.Replace(sql)); err != nil {
				t.Fatal(err)
			}
		}
		var steps []string
		for _, f := range keyForms {
			steps = append(steps, strings.Join(append([]string{f.name, f.how, names.Replace(f.sql)}, f.values...), "\t"))
		}
		transcript := k.transcript(t, p, p.proxy, schema, steps...)
		run := matrix.Kind{
			Client: k.name, Server: matrix.Server(string(p.server.Flavour()), p.server.Version()), Kind: of.clause, Cells: make(map[string]string),
		}
		for _, f := range keyForms {
			value := transcript.value(f.name)
			if value == nil || f.name == "RETURNING" && value == "1064" && !p.server.IsMariaDB() {
				continue // the driver or the server does not support it
			}
			var keys []string
			for _, title := range strings.Split(f.titles, "") {
				var key string
				err := db.QueryRowContext(t.Context(), names.Replace("SELECT id FROM %t WHERE title = ? UNION SELECT id FROM %o WHERE title = ? UNION SELECT id FROM %b WHERE title = ?"),
					title, title, title).Scan(&key)
				if err != nil && !errors.Is(err, sql.ErrNoRows) {
					t.Fatal(err)
				}
				if err == nil {
					keys = append(keys, key)
				}
			}
			texts := of.text != ""
			cell, wrong := judge(value, keys, len(f.titles), f.reportsNone || texts && f.how != "rows")
			if texts && f.insertID {
				cell, wrong = "none", ""
				if got := text(value); got != `["0"]` && got != "[]" {
					wrong = "a text is reported as an insert id"
				}
			}
			if wrong == "" && f.needsSteady && !texts && cell == "yes" {
				first, err := strconv.ParseUint(keys[0], 10, 64)
				if err != nil || keys[1] != strconv.FormatUint(first+1, 10) {
					wrong = "the keys are not one apart"
				}
			}
			scattered := !of.steady && !texts
			refused := scattered && f.needsSteady || texts && f.numbersOnly
			right := cell == "yes" && !refused || cell == "none" || cell == "1235" && (refused || scattered && f.mayRefuse)
			if wrong == "" && !right {
				wrong = "it is " + cell
			}
			if wrong != "" {
				t.Errorf("%s, %s of %q: %s (it reports %s, and the keys are %q)", k.name, f.name, of.clause, wrong, text(value), keys)
			}
			run.Cells[f.name] = cell
		}
		if matrix.Out() != "" {
			if err := run.Write(matrix.Out()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// judge compares a driver's keys with the rows' keys. cell is "yes" or the error.
func judge(reported any, keys []string, rows int, reportsNone bool) (cell, wrong string) {
	if code, failed := reported.(string); failed {
		if len(keys) > 0 {
			wrong = "an error, and rows are there"
		}
		return code, wrong
	}
	list, _ := reported.([]any)
	switch {
	case len(keys) != rows || slices.Contains(keys, "0"):
		return "no", "rows are missing, or have no key"
	case reportsNone:
		return "yes", ""
	case len(list) == 0 || list[0] != keys[0]:
		return "no", "it took the first row for another"
	}
	return "yes", ""
}

// runJavaKinds compiles the program the first time.
func runJavaKinds(ctx context.Context, t *testing.T, p *place, to target, args ...string) ([]byte, error) {
	classes := filepath.Join(p.dir, "kinds")
	if _, err := os.Stat(classes); err != nil {
		if out, err := exec.CommandContext(ctx, "javac", "-d", classes, "testdata/kinds/Kinds.java").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("javac: %w\n%s", err, out)
		}
	}
	command := []string{"java", "-XX:TieredStopAtLevel=1", "-cp", connectorJar + ":" + classes, "Kinds", to.host, to.port, to.user, password, to.schema}
	return run(ctx, t, p, to, "", append(command, args...)...)
}

// runGoKinds is the program for go-sql-driver, in this process.
func runGoKinds(ctx context.Context, t *testing.T, p *place, to target, args ...string) (out []byte, err error) {
	c, err := p.open(t, net.JoinHostPort(to.host, to.port), to.schema, nil).Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // every statement was answered
	for _, step := range args {
		fields := strings.Split(step, "\t")
		how, query, values := fields[1], fields[2], make([]any, len(fields)-3)
		for i, v := range fields[3:] {
			values[i] = v
		}
		var key string
		var failed error
		switch how {
		case "text", "prepared":
			var r sql.Result
			if r, failed = c.ExecContext(ctx, query, values...); failed == nil {
				id, _ := r.LastInsertId()
				key = strconv.FormatInt(id, 10)
			}
		case "rows":
			failed = c.QueryRowContext(ctx, query).Scan(&key)
		default:
			continue // no batches
		}
		var value any = []string{key}
		if refused := new(mysql.MySQLError); errors.As(failed, &refused) {
			value = strconv.Itoa(int(refused.Number))
		} else if failed != nil {
			return out, failed
		}
		line, err := json.Marshal(map[string]any{"step": fields[0], "value": value})
		if err != nil {
			return out, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// TestKindsInDrivers makes the table of kinds, forms and drivers.
func TestKindsInDrivers(t *testing.T) {
	p := start(t)
	if p.server.IsMariaDB() { // for INSERT ... SELECT; this is MySQL's default
		p.server.Exec(t, "SET GLOBAL binlog_format = 'ROW'")
	}
	for i, k := range kindDrivers {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			kindTest(t, p, i)
		})
	}
}
