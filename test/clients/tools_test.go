package clients_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"seqproxy/internal/mysqld"
)

// tool finds a program of the server's family: "dump" is mariadb-dump, or the mysqldump that `make
// servers` unpacks. "" is the command-line client. A program beside the server has the server's
// version.
func (p *place) tool(t *testing.T, name string) string {
	t.Helper()
	program := strings.TrimSuffix("mariadb-"+name, "-")
	if p.server.Flavour() == mysqld.MySQL {
		program = "mysql" + name
	}
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(p.server.Binary().Path), program)); err == nil {
		return path
	}
	if p.server.Flavour() == mysqld.MySQL {
		path, missing := unpacked("mysql-9", program)
		if missing != "" {
			t.Skipf("%s is missing; `make servers` unpacks it, where it is available", program)
		}
		return path
	}
	path, err := exec.LookPath(program)
	if err != nil {
		lacking(t, program)
	}
	return path
}

// account returns the arguments for a tool to connect to an address.
func (p *place) account(t *testing.T, addr string) []string {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--no-defaults", "--protocol=tcp", "-h" + host, "-P" + port, "-u" + user, "-p" + password}
	if p.server.Flavour() == mysqld.MySQL {
		return append(args, "--ssl-mode=DISABLED", "--get-server-public-key")
	}
	return append(args, "--skip-ssl")
}

// use runs a tool at an address and returns its standard output. The test fails if the tool fails
// or writes anything else.
func (p *place) use(t *testing.T, addr, stdin, name string, args ...string) string {
	t.Helper()
	out, errs := p.try(t, addr, stdin, name, args...)
	if errs != "" {
		t.Fatalf("%s %q: %s", name, args, tail(errs))
	}
	return out
}

// try is use for a tool that may fail.
func (p *place) try(t *testing.T, addr, stdin, name string, args ...string) (out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	command := slices.Concat([]string{p.tool(t, name)}, p.account(t, addr), args)
	stdout, stderr, err := output(ctx, t, p, target{}, stdin, command...)
	for line := range strings.Lines(string(stderr)) {
		if !strings.Contains(line, "Using a password on the command line interface can be insecure") {
			errs += line
		}
	}
	if err != nil && errs == "" {
		errs = err.Error()
	}
	return string(stdout), errs
}

// both runs a tool directly and through the proxy, and compares the output, apart from parts that
// vary.
func (p *place) both(t *testing.T, varies *regexp.Regexp, name string, args ...string) string {
	t.Helper()
	clean := func(out string) string {
		if varies == nil {
			return out
		}
		return varies.ReplaceAllString(out, "")
	}
	want := clean(p.use(t, p.server.Addr(), "", name, args...))
	got := clean(p.use(t, p.proxy, "", name, args...))
	if got != want {
		t.Errorf("%s %q: %s", name, args, difference(got, want))
	}
	return got
}

// dumpVaries matches the lines of a dump with the address and the time.
var dumpVaries = regexp.MustCompile(`(?m)^-- (Host:|Dump completed).*$`)

// shop is a schema with one of everything that a dump contains.
func shop(schema string) []string {
	return []string{
		"DROP DATABASE IF EXISTS " + schema, "CREATE DATABASE " + schema + " CHARACTER SET utf8mb4", "USE " + schema,
		"CREATE TABLE `odd``name` (`a b` INT NOT NULL DEFAULT 7 COMMENT 'it''s', c VARCHAR(30) COLLATE utf8mb4_bin, PRIMARY KEY (`a b`), UNIQUE KEY (c))",
		"INSERT INTO `odd``name` VALUES (1, 'größe 🌊'), (2, NULL), (3, ''), (4, 'a\\'b\\\\c\\n\\0\\t')",
		"CREATE TABLE things (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, i INT, exact DECIMAL(20,6), d DATE, dt DATETIME(6), t TIME(3)," +
			" ts TIMESTAMP NULL, f DOUBLE, b BLOB, e ENUM('red','green'), st SET('x','y','z'), y YEAR, bits BIT(9), g GEOMETRY," +
			" twice INT GENERATED ALWAYS AS (i * 2) STORED, KEY (i)) AUTO_INCREMENT = 1000",
		"INSERT INTO things (i, exact, d, dt, t, ts, f, b, e, st, y, bits, g) VALUES" +
			" (-7, 12345678901234.5678, '2024-02-29', '2024-02-29 23:59:58.123456', '-12:34:56.789', '2024-02-29 12:00:00', 0.1, x'00ff270a5c', 'green', 'x,z', 2024, b'101010101', ST_GeomFromText('POINT(1 2)'))," +
			" (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
		"CREATE TABLE many (n INT PRIMARY KEY, word VARCHAR(40), KEY (word)) PARTITION BY HASH (n) PARTITIONS 3",
		"INSERT INTO many SELECT a.i + 10 * b.i + 100 * c.i + 1000 * d.i, CONCAT('word ', a.i, b.i, c.i, d.i) FROM" +
			" (" + digits + ") a, (" + digits + ") b, (" + digits + ") c, (" + digits + ") d",
		"CREATE TABLE child (id INT PRIMARY KEY, n INT, FOREIGN KEY (n) REFERENCES parent (id) ON DELETE CASCADE)",
		"INSERT INTO parent VALUES (1), (2)", "INSERT INTO child VALUES (10, 1), (11, 2)",
		"CREATE TABLE wide (id INT PRIMARY KEY, data LONGBLOB)",
		"INSERT INTO wide VALUES (1, REPEAT(x'00ff27', 1200000))",
		"CREATE VIEW few AS SELECT n, UPPER(word) AS word FROM many WHERE n < 5",
		"CREATE TRIGGER added BEFORE INSERT ON child FOR EACH ROW SET NEW.n = COALESCE(NEW.n, 1)",
		"CREATE PROCEDURE two(IN n INT, OUT twice INT) COMMENT 'it''s' BEGIN SELECT n; SET twice = 2 * n; END",
		"CREATE FUNCTION inc(n INT) RETURNS INT DETERMINISTIC RETURN n + 1",
		"CREATE EVENT yearly ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01 00:00:00' DISABLE DO SET @x = 1",
		// a dump as XML has statistics, which only ANALYZE makes here
		"ANALYZE TABLE `odd``name`, things, many, parent, child, wide",
	}
}

const digits = "SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5" +
	" UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9"

// makeShop creates the schema shop, after the parent table that its child needs.
func (p *place) makeShop(t *testing.T, schema string) {
	t.Helper()
	statements := shop(schema)
	statements = slices.Insert(statements, 3, "CREATE TABLE parent (id INT PRIMARY KEY)")
	p.server.Exec(t, statements...)
}

// dumpIsTheSameAndReloads dumps a schema in several ways and loads one dump through the proxy.
func dumpIsTheSameAndReloads(t *testing.T, p *place) {
	p.makeShop(t, "shop")
	all := []string{"--routines", "--triggers", "--events", "--hex-blob", "--max-allowed-packet=64M"}
	if p.server.Flavour() == mysqld.MySQL {
		all = append(all, "--column-statistics=0", "--no-tablespaces", "--set-gtid-purged=OFF")
	}
	p.both(t, dumpVaries, "dump", append(all, "--lock-tables", "--skip-extended-insert", "--ignore-table=shop.wide", "--complete-insert", "shop")...)
	definitions := p.both(t, dumpVaries, "dump", append(all, "--single-transaction", "--quick", "--xml", "--no-data", "shop")...)
	if !regexp.MustCompile(`Key_name="word"[^>]* Cardinality="\d{4,}"`).MatchString(definitions) {
		t.Errorf("a dump as XML has no number of words:\n%s", tail(definitions))
	}
	dump := p.both(t, dumpVaries, "dump", append(all, "--single-transaction", "shop")...)

	p.server.Exec(t, "DROP DATABASE IF EXISTS shop_copy", "CREATE DATABASE shop_copy CHARACTER SET utf8mb4")
	// As files are usually restored, with the session's collation set before the script.
	p.use(t, p.proxy, dump, "", "--max-allowed-packet=64M", "--default-character-set=utf8mb4", "--binary-mode", "shop_copy")
	again := dumpVaries.ReplaceAllString(p.use(t, p.server.Addr(), "", "dump", append(all, "--single-transaction", "shop_copy")...), "")
	// Views, and the heading, name the schema.
	if got := strings.ReplaceAll(again, "shop_copy", "shop"); got != dump {
		t.Errorf("what was loaded through the proxy is not what was dumped: %s", difference(got, dump))
	}
	for _, table := range []string{"`odd``name`", "things", "many", "parent", "child", "wide"} {
		got, want := p.checksum(t, "shop_copy."+table), p.checksum(t, "shop."+table)
		if got != want {
			t.Errorf("checksum of %s: got %s, want %s", table, got, want)
		}
	}
}

// checksum returns a table's checksum, asked for directly.
func (p *place) checksum(t *testing.T, table string) string {
	t.Helper()
	var name, sum string
	if err := p.open(t, p.server.Addr(), "", nil).QueryRow("CHECKSUM TABLE "+table+" EXTENDED").Scan(&name, &sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// localFilesLoad loads files by the command-line client and by the tool for it.
func localFilesLoad(t *testing.T, p *place) {
	p.server.Exec(t, "DROP DATABASE IF EXISTS loads", "CREATE DATABASE loads", "USE loads",
		"CREATE TABLE load_d (n INT, word VARCHAR(60))", "CREATE TABLE load_p LIKE load_d")
	var text strings.Builder
	for i := range 120_000 {
		fmt.Fprintf(&text, "%d\t%x is a word of %d\n", i, i*i, i)
	}
	write := func(name, text string) string {
		dir := filepath.Join(p.dir, name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		// The import tool uses the file's name as the table's.
		for _, table := range []string{"load_d", "load_p"} {
			if err := os.WriteFile(filepath.Join(dir, table), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	big, empty, bad := write("big", text.String()), write("empty", ""), write("bad", "1\tone\nno number\ttwo\n3\n")
	load := func(addr, table, dir, options string) string {
		file := filepath.Join(dir, table)
		out, errs := p.try(t, addr, fmt.Sprintf("LOAD DATA LOCAL INFILE '%s' INTO TABLE %s %s; SHOW WARNINGS; SELECT COUNT(*), SUM(n) FROM %s; TRUNCATE %[2]s", file, table, options, table),
			"", "--local-infile=1", "-vvv", "--show-warnings", "--force", "loads")
		took := regexp.MustCompile(`\(\d+\.\d+ sec\)|\d+\.\d+ sec`)
		return strings.ReplaceAll(took.ReplaceAllString(out+errs, ""), table, "TABLE")
	}
	for _, one := range []struct{ name, dir, options string }{
		{"big", big, ""},
		{"empty", empty, ""},
		{"with bad lines", bad, ""},
		{"that does not fit", bad, "COLUMNS TERMINATED BY '' (nothing)"},
		{"missing", filepath.Join(p.dir, "nowhere"), ""},
	} {
		got, want := load(p.proxy, "load_p", one.dir, one.options), load(p.server.Addr(), "load_d", one.dir, one.options)
		if got != want {
			t.Errorf("a file %s: %s", one.name, difference(got, want))
		}
		if one.name == "big" && !strings.Contains(got, "120000") {
			t.Errorf("a big file: got %.1000s, want 120000 lines", got)
		}
	}
	// The client does not allow this.
	if _, errs := p.try(t, p.proxy, "LOAD DATA LOCAL INFILE '"+filepath.Join(big, "load_p")+"' INTO TABLE load_p", "", "--local-infile=0", "loads"); !strings.Contains(errs, "ERROR") {
		t.Errorf("LOAD DATA LOCAL of a client that forbids it: got %q, want an error", errs)
	}
	for addr, table := range map[string]string{p.server.Addr(): "load_d", p.proxy: "load_p"} {
		out := p.use(t, addr, "", "import", "--local", "loads", filepath.Join(big, table))
		if want := "loads." + table + ": Records: 120000  Deleted: 0  Skipped: 0  Warnings: 0\n"; out != want {
			t.Errorf("import to %s: got %q, want %q", addr, out, want)
		}
	}
	if got, want := p.checksum(t, "loads.load_p"), p.checksum(t, "loads.load_d"); got != want {
		t.Errorf("checksum of what was imported: got %s, want %s", got, want)
	}
}

// slapRuns lets many clients of the load generator run generated statements.
func slapRuns(t *testing.T, p *place) {
	for _, more := range [][]string{
		{"--auto-generate-sql-load-type=mixed", "--auto-generate-sql-add-autoincrement", "--commit=10"},
		{"--auto-generate-sql-load-type=update", "--auto-generate-sql-guid-primary"},
		{"--auto-generate-sql-load-type=key", "--auto-generate-sql-add-autoincrement", "--detach=20"},
	} {
		out := p.use(t, p.proxy, "", "slap", append([]string{
			"--auto-generate-sql", "--concurrency=8", "--iterations=2", "--number-of-queries=400",
			"--auto-generate-sql-write-number=50", "--create-schema=slapped",
		}, more...)...)
		if !strings.Contains(out, "Number of clients running queries: 8\n") {
			t.Errorf("slap %q: got %q", more, out)
		}
	}
}

// sysbenchRuns runs transactions with and without prepared statements.
func sysbenchRuns(t *testing.T, p *place) {
	path, err := exec.LookPath("sysbench")
	if err != nil {
		lacking(t, "sysbench")
	}
	p.server.Exec(t, "DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE sbtest")
	host, port, err := net.SplitHostPort(p.proxy)
	if err != nil {
		t.Fatal(err)
	}
	bench := func(command, mode string, more ...string) string {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		args := append([]string{
			path, "oltp_read_write", "--db-driver=mysql", "--mysql-host=" + host, "--mysql-port=" + port, "--mysql-user=" + user,
			"--mysql-password=" + password, "--mysql-db=sbtest", "--tables=2", "--table-size=5000", "--db-ps-mode=" + mode,
		}, more...)
		out, err := run(ctx, t, p, target{}, "", append(args, command)...)
		if err != nil {
			t.Fatalf("sysbench %s: %v\n%s", command, err, tail(string(out)))
		}
		return string(out)
	}
	bench("prepare", "disable")
	for _, mode := range []string{"auto", "disable"} {
		out := bench("run", mode, "--threads=4", "--events=400", "--time=30", "--rand-type=uniform", "--mysql-ignore-errors=1213,1205,1020")
		// Deadlocks come from the server. The tool repeats the events that met one.
		if !regexp.MustCompile(`transactions: +400 `).MatchString(out) || !regexp.MustCompile(`reconnects: +0 `).MatchString(out) {
			t.Errorf("sysbench with --db-ps-mode=%s: want 400 transactions and no reconnect, got %s", mode, tail(out))
		}
	}
	bench("cleanup", "disable")
}

// adminCommandsWork runs the commands of mariadb-admin, most of which have their own command in the
// protocol, and the tool that checks tables.
func adminCommandsWork(t *testing.T, p *place) {
	if got := p.both(t, nil, "admin", "ping"); got != "mysqld is alive\n" {
		t.Errorf("ping: got %q", got)
	}
	numbers := regexp.MustCompile(`[0-9.]+`)
	p.both(t, numbers, "admin", "status")
	p.both(t, regexp.MustCompile(`(?m) *\|[^|]*\|$|^\+[-+]+$`), "admin", "extended-status")
	p.both(t, regexp.MustCompile(`(?m)^\| (timestamp|pseudo_thread_id|rand_seed\d|last_insert_id|insert_id|gtid_[a-z_]+|statement_id|error_count|warning_count) +\|.*$`),
		"admin", "variables")
	p.both(t, regexp.MustCompile(`Uptime:.*|[\d.]+ (sec|min).*|TCP port.*|Threads.*`), "admin", "version")
	if got := p.use(t, p.proxy, "", "admin", "processlist", "--verbose"); !strings.Contains(got, user) {
		t.Errorf("processlist: got %q, want the account in it", got)
	}
	p.both(t, nil, "admin", "--force", "create", "made", "drop", "made")
	p.both(t, nil, "admin", "refresh")
	p.both(t, nil, "admin", "flush-tables", "flush-status", "flush-logs", "debug")
	p.both(t, nil, "show", "information_schema")

	p.makeShop(t, "checked")
	p.both(t, nil, "check", "--extended", "checked")
	p.both(t, nil, "check", "--analyze", "checked")
	p.both(t, nil, "check", "--optimize", "checked")
	p.both(t, nil, "show", "--verbose", "--keys", "checked", "things")
}
