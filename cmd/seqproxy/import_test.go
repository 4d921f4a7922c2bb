package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// importInto writes a configuration that has its sequences in a schema of s.
func importInto(t *testing.T, s *mysqltest.Server) (file, schema string) {
	t.Helper()
	schema = s.Schema(t)
	user := "imp_" + schema[len(schema)-8:]
	s.Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'p'", user), fmt.Sprintf("GRANT ALL ON *.* TO %s@'%%'", user))
	t.Cleanup(func() { s.Exec(t, fmt.Sprintf("DROP USER %s@'%%'", user)) })
	return write(t, "seqproxy.toml", fmt.Sprintf(`
[[user]]
name = "app"
password = "p"
[sequence]
database = %q
[[sequence.server]]
address = %q
user = %q
password = "p"
`, schema, s.Addr(), user)), schema
}

// counters returns the rows of the sequence table as "name=next", in order.
func counters(t *testing.T, s *mysqltest.Server, schema string) string {
	t.Helper()
	var all string
	err := s.DB(t, schema).QueryRow("SELECT IFNULL(GROUP_CONCAT(name, '=', id + 1 ORDER BY name SEPARATOR ' '), '') FROM sequence").Scan(&all)
	if err != nil && strings.Contains(err.Error(), "doesn't exist") {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCountersOfOtherSystemsBecomeSequences(t *testing.T) {
	s := mysqltest.Shared(t)
	for name, test := range map[string]struct {
		tables []string
		args   string
		want   string // the next numbers
		print  []string
		later  []string // the old counters are used further
		then   string
	}{
		"leaf": {
			[]string{
				"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256), PRIMARY KEY (biz_tag))",
				"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 20001, 2000), ('fresh', 1, 100), ('zero', 0, 10)",
			},
			"-from leaf", "fresh=1 orders=20001 zero=1",
			[]string{`orders +20001 +2000 +\w+\.leaf_alloc`},
			[]string{"UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'orders'"},
			"fresh=1 orders=22001 zero=1",
		},
		"leaf, in another table, adaptive": {
			[]string{"CREATE TABLE `my``alloc` (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT, step INT)", "INSERT INTO `my``alloc` VALUES ('a', 18, 5)"},
			"-from leaf -table my`alloc -adaptive", "a=18",
			[]string{`a +18 +adaptive`},
			nil, "",
		},
		"mycat": {
			[]string{
				"CREATE TABLE MYCAT_SEQUENCE (NAME VARCHAR(50) NOT NULL, current_value INT NOT NULL, increment INT NOT NULL DEFAULT 100, PRIMARY KEY (NAME)) ENGINE=InnoDB",
				"INSERT INTO MYCAT_SEQUENCE VALUES ('GLOBAL', 100000, 100), ('MEMBER', 0, 100)",
			},
			"-from mycat", "GLOBAL=100101 MEMBER=101",
			[]string{`GLOBAL +100101 +100 `},
			nil, "",
		},
		"tinyid": {
			[]string{
				"CREATE TABLE tiny_id_info (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) NOT NULL DEFAULT '' UNIQUE, begin_id BIGINT NOT NULL DEFAULT 0, " +
					"max_id BIGINT NOT NULL DEFAULT 0, step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0, version BIGINT NOT NULL DEFAULT 0)",
				"INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) VALUES ('photos', 1, 300000, 100000, 1, 0), ('odd', 1, 200001, 100000, 2, 1), ('bare', 0, 5, NULL, 1, 0)",
			},
			"-from tinyid", "bare=6 odd=200002 photos=300001",
			[]string{`photos +300001 +100000 +\w+\.tiny_id_info`, `bare +6 +adaptive `},
			[]string{"UPDATE tiny_id_info SET max_id = max_id + step WHERE biz_type = 'photos'"},
			"bare=6 odd=200002 photos=400001",
		},
		"cosid": {
			[]string{
				"CREATE TABLE cosid (name VARCHAR(100) NOT NULL PRIMARY KEY, last_max_id BIGINT UNSIGNED NOT NULL DEFAULT 0, last_fetch_time BIGINT UNSIGNED NOT NULL DEFAULT 0)",
				"INSERT INTO cosid VALUES ('shop.orders', 9000, 1700000000), ('shop.fresh', 0, 0)",
			},
			"-from cosid", "shop.fresh=1 shop.orders=9001",
			[]string{`shop\.orders +9001 +adaptive +\w+\.cosid`},
			[]string{"UPDATE cosid SET last_max_id = last_max_id + 100 WHERE name = 'shop.orders'"},
			"shop.fresh=1 shop.orders=9101",
		},
		"vitess": {
			[]string{
				"CREATE TABLE user_seq (id INT, next_id BIGINT, cache BIGINT, PRIMARY KEY (id)) COMMENT 'vitess_sequence'",
				"INSERT INTO user_seq VALUES (0, 1001, 100)",
				"CREATE TABLE music_seq (id INT UNSIGNED, next_id BIGINT UNSIGNED, cache BIGINT UNSIGNED, PRIMARY KEY (id)) COMMENT 'vitess_sequence'",
				"INSERT INTO music_seq VALUES (0, 18446744073709551000, 50)",
				"CREATE TABLE other (id INT, next_id BIGINT, cache BIGINT)",
			},
			"-from vitess", "music_seq=18446744073709551000 user_seq=1001",
			[]string{`user_seq +1001 +100`},
			[]string{"UPDATE user_seq SET next_id = 2001"},
			"music_seq=18446744073709551000 user_seq=2001",
		},
		"vitess, one by its name": {
			[]string{"CREATE TABLE user_seq (id INT, next_id BIGINT, cache BIGINT)", "INSERT INTO user_seq VALUES (0, 7, 3)"},
			"-from vitess -table user_seq=users", "users=7", nil, nil, "",
		},
		"ticket, emptied later": {
			[]string{
				"CREATE TABLE tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, stub CHAR(1) NOT NULL DEFAULT '', PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=MyISAM",
				"REPLACE INTO tickets64 (stub) VALUES ('a')", "REPLACE INTO tickets64 (stub) VALUES ('a')", "REPLACE INTO tickets64 (stub) VALUES ('b')",
				"CREATE TABLE another (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
			},
			"-from ticket -table tickets64=photos", "photos=5", // the import itself takes 4 numbers
			[]string{
				`photos +5 +adaptive +\w+\.tickets64 +(would be )?created; the table goes on above 1099511627779$`,
				`\w+\.tickets64: its engine is MyISAM, so a crash`,
			},
			[]string{"TRUNCATE tickets64", "INSERT INTO tickets64 VALUES (7, 'a')", "REPLACE INTO tickets64 (stub) VALUES ('a')"},
			"photos=10",
		},
		"tickets of two tables with a row for each, and of a small one": {
			[]string{
				"CREATE TABLE ids_a (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO ids_a VALUES (NULL), (NULL)",
				"CREATE TABLE ids_b (id INT AUTO_INCREMENT PRIMARY KEY)",
			},
			"-from ticket -table ids_a -table ids_b=b", "b=2 ids_a=4",
			[]string{`ids_a +4 +adaptive .* above 1099511627778$`, `b +2 +adaptive .* above 1073741823$`},
			[]string{"TRUNCATE ids_b"},
			"b=2 ids_a=4",
		},
		"table": {
			[]string{
				"CREATE TABLE photos (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 500",
				"CREATE TABLE albums (n INT, id SMALLINT AUTO_INCREMENT, KEY (id))", "INSERT INTO albums VALUES (1, -3), (1, 40)",
				"CREATE TABLE plain (id INT PRIMARY KEY)",
				"CREATE VIEW v AS SELECT * FROM photos",
			},
			"-from table", "albums=41 photos=500", nil,
			[]string{"INSERT INTO photos VALUES (700)"},
			"albums=41 photos=701",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, target := importInto(t, s)
			schema := s.Schema(t)
			s.Exec(t, append([]string{"USE " + schema}, test.tables...)...)
			args := append([]string{"import", "-config", file, "-schema", schema}, strings.Fields(test.args)...)
			n := len(strings.Fields(test.want))
			last := func(p *process) string {
				p.end(0)
				lines := strings.Split(strings.TrimSpace(p.stdout()), "\n")
				return lines[len(lines)-1]
			}

			s.Exec(t, "DROP SCHEMA "+target)
			dry := begin(t, append(args, "-dry-run")...)
			if got := last(dry); got != "nothing was changed: this was a dry run" {
				t.Errorf("a dry run ends with %q", got)
			}
			var made int
			if err := s.DB(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", target).Scan(&made); err != nil || made != 0 {
				t.Errorf("after a dry run: got %d schemas and %v, want that it makes none", made, err)
			}
			if want := fmt.Sprintf("%d to be created, 0 to be raised, 0 there already, 0 failed", n); !strings.Contains(dry.stdout(), want) {
				t.Errorf("a dry run says\n%swant %s", dry.stdout(), want)
			}

			first := begin(t, args...)
			if got, want := last(first), fmt.Sprintf("%d created, 0 raised, 0 there already, 0 failed", n); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := counters(t, s, target); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			for _, p := range []*process{dry, first} {
				for _, want := range test.print {
					if !regexp.MustCompile("(?m)^" + want).MatchString(p.stdout()) {
						t.Errorf("got the output\n%swant a line %s", p.stdout(), want)
					}
				}
			}

			if got, want := last(begin(t, args...)), fmt.Sprintf("0 created, 0 raised, %d there already, 0 failed", n); got != want {
				t.Errorf("again: got %q, want %q", got, want)
			}
			if test.later != nil {
				s.Exec(t, append([]string{"USE " + schema}, test.later...)...)
				dry := begin(t, append(args, "-dry-run")...)
				last(dry)
				if got := counters(t, s, target); got != test.want || !strings.Contains(dry.stdout(), "0 to be created, 1 to be raised") {
					t.Errorf("a dry run later: got %s, and\n%s", got, dry.stdout())
				}
				last(begin(t, args...))
				if got := counters(t, s, target); got != test.then {
					t.Errorf("later: got %s, want %s", got, test.then)
				}
			}
			// An import never lowers a sequence.
			s.Exec(t, "UPDATE "+target+".sequence SET id = 18446744073709551500")
			before := counters(t, s, target)
			last(begin(t, args...))
			if got := counters(t, s, target); got != before {
				t.Errorf("ahead: got %s, want %s", got, before)
			}
		})
	}
}

// MariaDB's sequences keep their increments and ends.
func TestSequencesOfMariaDBBecomeSequences(t *testing.T) {
	s := mysqltest.Shared(t)
	s.OnMariaDB(t, "sequences")
	file, target := importInto(t, s)
	schema := s.Schema(t)
	s.Exec(t, "USE "+schema, "CREATE SEQUENCE orders_seq CACHE 10 MAXVALUE 5000", "DO NEXTVAL(orders_seq)",
		"CREATE SEQUENCE photos_seq START WITH 1 INCREMENT BY 50 NOCACHE", "DO NEXTVAL(photos_seq)", "DO NEXTVAL(photos_seq)",
		"CREATE SEQUENCE round CYCLE", "CREATE SEQUENCE down INCREMENT BY -1", "CREATE SEQUENCE own INCREMENT BY 0", "CREATE TABLE t (id INT)")
	args := []string{"import", "-config", file, "-from", "mariadb", "-schema", schema}
	dry := begin(t, append(args, "-dry-run")...)
	dry.end(1)
	if got := counters(t, s, target); got != "" {
		t.Errorf("after a dry run: got %s", got)
	}
	p := begin(t, args...)
	p.end(1)
	for _, p := range []*process{dry, p} {
		for _, want := range []string{`sequence round of \w+\.round: it has CYCLE`, `sequence down of \w+\.down: its next number is -1, its increment -1`} {
			if !regexp.MustCompile(want).MatchString(p.stderr()) {
				t.Errorf("got the error %s, want %s", p.stderr(), want)
			}
		}
	}
	if got, want := counters(t, s, target), "orders_seq=11 own=1 photos_seq=101"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var options string
	if err := s.DB(t, target).QueryRow("SELECT GROUP_CONCAT(name, ' ', increment, ' ', maximum ORDER BY name) FROM sequence_options WHERE name LIKE '%\\_seq'").Scan(&options); err != nil {
		t.Fatal(err)
	}
	if want := "orders_seq 1 5000,photos_seq 50 9223372036854775806"; options != want {
		t.Errorf("got %s, want %s", options, want)
	}
	long := begin(t, append(args, "-table", "own="+strings.Repeat("n", 51), "-dry-run")...)
	long.end(1)
	if !strings.Contains(long.stderr(), "has 51 characters, want at most 50") {
		t.Errorf("of a name that is too long a dry run says %s", long.stderr())
	}
	s.Exec(t, "USE "+schema, "DROP SEQUENCE round, down", "DO NEXTVAL(photos_seq)")
	again := begin(t, append(args, "-table", "photos_seq", "-table", "own=mine")...)
	again.end(0)
	if got, want := counters(t, s, target), "mine=1 orders_seq=11 own=1 photos_seq=151"; got != want {
		t.Errorf("again: got %s, want %s\n%s", got, want, again.stdout())
	}
	s.Exec(t, "USE "+schema, "ALTER SEQUENCE photos_seq MAXVALUE 120")
	p = begin(t, append(args, "-table", "photos_seq=ended")...)
	p.end(1)
	if !strings.Contains(p.stderr(), "it has given all numbers up to its maximum, 120") {
		t.Errorf("an ended one: got %s", p.stderr())
	}
}

// A sequence of tables ends with the narrowest of their columns. A column with no number left is an
// error, and a sequence that was made before is told apart.
func TestSequencesOfTablesEndWhereTheirColumnsDo(t *testing.T) {
	s := mysqltest.Shared(t)
	file, target := importInto(t, s)
	one, other := s.Schema(t), s.Schema(t)
	s.Exec(t, "USE "+one, "CREATE TABLE small (id SMALLINT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO small VALUES (70)",
		"CREATE TABLE large (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE ended (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO ended VALUES (9223372036854775807)",
		"CREATE TABLE beyond (id SMALLINT AUTO_INCREMENT PRIMARY KEY)", "USE "+other, "CREATE TABLE small (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY)",
		"INSERT INTO small VALUES (90)", "CREATE TABLE beyond (id INT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO beyond VALUES (40000)")
	run := func(status int, more ...string) *process {
		p := begin(t, append([]string{"import", "-config", file, "-from", "table", "-schema", one, "-schema", other}, more...)...)
		p.end(status)
		return p
	}
	for _, p := range []*process{run(1, "-dry-run"), run(1)} {
		for _, want := range []string{
			"sequence beyond of " + one + ".beyond, " + other + ".beyond: a column ends at 32767, below 40001: make it wider, ALTER TABLE ... MODIFY ... BIGINT UNSIGNED",
			"sequence ended of " + one + ".ended: a column ends at 9223372036854775807, below 9223372036854775808: make it wider",
		} {
			if !strings.Contains(p.stderr(), want) {
				t.Errorf("got the error %s, want %s", p.stderr(), want)
			}
		}
	}
	maxima := func() (all string) {
		if err := s.DB(t, target).QueryRow("SELECT GROUP_CONCAT(name, ' ', maximum ORDER BY name) FROM sequence_options").Scan(&all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	if got, want := maxima(), "large 0,small 32767"; got != want {
		t.Errorf("the ends: got %s, want %s", got, want)
	}
	const note = "; ALTER SEQUENCE `small` MAXVALUE 32767 has it end where its column does"
	if p := run(1); strings.Contains(p.stdout(), note) {
		t.Errorf("a sequence that ends there: got\n%s", p.stdout())
	}
	s.Exec(t, "USE "+target, "DELETE FROM sequence", "DELETE FROM sequence_options")
	p := begin(t, "import", "-config", file, "-from", "table", "-schema", other, "-table", "small")
	p.end(0)
	if got, want := maxima(), "small 4294967295"; got != want {
		t.Errorf("of one table: got %s, want %s", got, want)
	}
	for _, p := range []*process{run(1, "-dry-run"), run(1)} {
		if want := "is there already, at 91" + note; !strings.Contains(p.stdout(), want) {
			t.Errorf("a sequence that ends above: got\n%swant %s", p.stdout(), want)
		}
	}
}

// If shards have counters of the same name, the highest counts. A shard without the schema is
// skipped. A shard without the table is an error if -table names it, and one whose table counts no
// more in any case: they may have the highest key.
func TestCountersOfSeveralShardsBecomeOneSequence(t *testing.T) {
	shards := []*mysqltest.Server{mysqltest.Start(t), mysqltest.Start(t)}
	for i, s := range shards {
		album := fmt.Sprintf("album%d", i)
		s.Exec(t, "CREATE USER reader@'%' IDENTIFIED BY 'p'", "GRANT SELECT ON *.* TO reader@'%'", "CREATE SCHEMA "+album,
			"CREATE TABLE "+album+".photos (id BIGINT AUTO_INCREMENT PRIMARY KEY, n INT)", fmt.Sprintf("INSERT INTO %s.photos VALUES (%d, 1)", album, 70+i),
			fmt.Sprintf("CREATE TABLE %s.users (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = %d", album, 900-i))
	}
	s := mysqltest.Shared(t)
	file, target := importInto(t, s)
	args := []string{
		"import", "-config", file, "-from", "table", "-source", shards[0].Addr(), "-source", shards[1].Addr(), "-user", "reader",
		"-password-file", write(t, "password", "p\n"), "-schema", "album0", "-schema", "album1",
	}
	p := begin(t, args...)
	p.end(0)
	if got, want := counters(t, s, target), "photos=72 users=900"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if want := fmt.Sprintf("album0.photos at %s, album1.photos at %s", shards[0].Addr(), shards[1].Addr()); !strings.Contains(p.stdout(), want) {
		t.Errorf("got the output\n%swant %s", p.stdout(), want)
	}
	p = begin(t, append(args, "-schema", "album2")...)
	p.end(1)
	if !strings.Contains(p.stderr(), "there is no schema album2") {
		t.Errorf("a schema that no shard has: got %s", p.stderr())
	}
	shards[1].Exec(t, "ALTER TABLE album1.users MODIFY id INT NOT NULL", "INSERT INTO album1.users VALUES (5000)",
		"CREATE TABLE album1.never (id INT PRIMARY KEY)")
	const wayOut = ": make the sequence yourself, CREATE SEQUENCE `users` START WITH n, or ALTER SEQUENCE `users` RESTART WITH n, n above the greatest key of every server"
	p = begin(t, args...)
	p.end(1)
	if want := "album1.users at " + shards[1].Addr() + " has no AUTO_INCREMENT, so its keys are not read" + wayOut; !strings.Contains(p.stderr(), want) {
		t.Errorf("a table that counts no more on one shard: got %s, want %s", p.stderr(), want)
	}
	if want := "0 created, 0 raised, 1 there already, 1 failed"; !strings.Contains(p.stdout(), want) {
		t.Errorf("a table that counts no more on one shard: got\n%swant %s", p.stdout(), want)
	}
	for _, statement := range []string{"DO 0", "DROP TABLE album1.users"} {
		shards[1].Exec(t, statement)
		p = begin(t, append(args, "-table", "users")...)
		p.end(1)
		if want := "album1.users is no table with an AUTO_INCREMENT, or the user may not see it" + wayOut; !strings.Contains(p.stderr(), want) {
			t.Errorf("after %s: got %s, want %s", statement, p.stderr(), want)
		}
	}
}

// Two ticket servers share one counter, as at Flickr. The higher one counts, in either order.
func TestCountersOfOtherServersAreImportedOverTLS(t *testing.T) {
	ca := mysqltest.NewCA(t)
	sources := []*mysqltest.Server{mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...), mysqltest.Start(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)}
	for _, s := range sources {
		s.Exec(t, "CREATE SCHEMA tickets", "CREATE USER reader@'%' IDENTIFIED BY 'it''s' REQUIRE SSL", "GRANT SELECT, INSERT, DELETE, TRIGGER, LOCK TABLES ON tickets.* TO reader@'%'")
	}
	password := write(t, "password", "it's\n")
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		s := mysqltest.Shared(t)
		file, target := importInto(t, s)
		for i, s := range sources {
			s.Exec(t, "DROP TABLE IF EXISTS tickets.photos", "CREATE TABLE tickets.photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) UNIQUE) AUTO_INCREMENT = "+strconv.Itoa(500+i))
		}
		for _, i := range order {
			how, env := []string{"-password-file", password}, []string(nil)
			if i == 1 {
				how, env = []string{"-password-env", "TICKETS"}, []string{"TICKETS=it's"}
			}
			p := beginIn(t, env, append([]string{
				"import", "-config", file, "-from", "ticket", "-schema", "tickets", "-table", "photos", "-source", sources[i].Addr(),
				"-user", "reader", "-tls", "VERIFY_CA", "-tls-ca-file", ca.File,
			}, how...)...)
			p.end(0)
		}
		if got := counters(t, s, target); got != "photos=502" {
			t.Errorf("order %v: got %s, want photos=502", order, got)
		}
	}
	other := mysqltest.NewCA(t)
	file, _ := importInto(t, sources[0])
	p := begin(t, "import", "-config", file, "-from", "ticket", "-schema", "tickets", "-table", "photos", "-source", sources[0].Addr(), "-user", "reader",
		"-password-file", password, "-tls", "VERIFY_CA", "-tls-ca-file", other.File)
	p.end(1)
	if !strings.Contains(p.stderr(), "certificate") {
		t.Errorf("with another CA: got %s", p.stderr())
	}
}

// After an import an existing sequence gives no number of the counter, even if its row is higher
// and a proxy has lower numbers in memory.
func TestAnImportRaisesWhatAProxyHasInMemory(t *testing.T) {
	server := mysqltest.Shared(t)
	file, _ := importInto(t, server)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := startSubject(t, "listen = \"127.0.0.1:0\"\nadmin.listen = \"\"\nhttp.listen = \"\"\nadmin_users = [\"app\"]\n"+string(text))
	c := s.mustConnect(t, "app", "p")
	must(t, c, "CREATE SEQUENCE orders CACHE 1000", "CREATE SEQUENCE short MAXVALUE 50", "CREATE SEQUENCE spread BIT_REVERSED", "SELECT NEXTVAL('orders')")
	source := server.Schema(t)
	server.Exec(t, "USE "+source, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128), max_id BIGINT, step INT)",
		"INSERT INTO leaf_alloc VALUES ('orders', 500, 10), ('short', 60, 10), ('spread', 60, 10)")
	for range 2 {
		p := begin(t, "import", "-config", file, "-from", "leaf", "-schema", source)
		p.end(1)
		if !strings.Contains(p.stdout(), "0 created, 0 raised, 1 there already, 2 failed") || !strings.Contains(p.stderr(), "ends at 50, below 60") ||
			!strings.Contains(p.stderr(), "BIT_REVERSED") {
			t.Errorf("got %s and %s, want that one is above, one ends below and one has keys of a kind", p.stdout(), p.stderr())
		}
	}
	for ; ; time.Sleep(10 * time.Millisecond) {
		n, err := strconv.ParseUint(valueOf(c, "SELECT NEXTVAL('orders')"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if n >= 500 {
			break
		}
		if n >= 400 { // the SELECT for single rows is not there yet
			t.Fatalf("the proxy gives %d, though %s.leaf_alloc gave the numbers below 500", n, source)
		}
	}
}

// What was made stays, and of what is left nothing is said.
func TestAnInterruptedImportStopsAtOnce(t *testing.T) {
	s := mysqltest.Shared(t)
	file, target := importInto(t, s)
	source := s.Schema(t)
	s.Exec(t, "USE "+source, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128), max_id BIGINT, step INT)", "INSERT INTO leaf_alloc VALUES ('b', 5, 1)")
	args := []string{"import", "-config", file, "-from", "leaf", "-schema", source}
	begin(t, args...).end(0)
	s.Exec(t, "USE "+source, "INSERT INTO leaf_alloc VALUES ('a', 5, 1), ('c', 5, 1), ('d', 5, 1)")
	held, err := s.DB(t, target).Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Rollback() }()
	if _, err := held.Exec("UPDATE sequence SET id = id + 1 WHERE name = 'b'"); err != nil {
		t.Fatal(err)
	}
	p := begin(t, args...)
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var waits int
		if err := s.DB(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST "+
			"WHERE TIME >= 1 AND INFO LIKE '%FOR UPDATE%' AND USER = ?", "imp_"+target[len(target)-8:]).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		if waits > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the import does not wait for the row of b")
		}
	}
	p.signal(os.Interrupt)
	p.end(1)
	if got, want := p.stderr(), "seqproxy: interrupted after 1 of 4 counters: run it again for the others\n"; got != want {
		t.Errorf("got the error %s, want %s", got, want)
	}
	if got := p.stdout(); strings.Contains(got, "FAILED") || !strings.Contains(got, "1 created, 0 raised, 0 there already, 0 failed") {
		t.Errorf("got\n%swant the one that was made", got)
	}
}

// The replica lags behind. Its counter would be too low, and a lock there would stop nobody.
func TestAnImportFromAGroupGoesToItsPrimary(t *testing.T) {
	g := mysqltest.StartGroup(t, 2)
	file, target := importInto(t, g.Nodes[0])
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("address = %q", g.Nodes[0].Addr())
	nodes := fmt.Sprintf("nodes = [%q, %q]", g.Nodes[1].Addr(), g.Nodes[0].Addr())
	file = write(t, "group.toml", strings.Replace(string(text), address, nodes, 1))
	g.Nodes[0].Exec(t, "CREATE SCHEMA tickets", "CREATE TABLE tickets.ids (id BIGINT AUTO_INCREMENT PRIMARY KEY)",
		"INSERT INTO tickets.ids VALUES (NULL), (NULL), (NULL)")
	begin(t, "import", "-config", file, "-from", "ticket", "-schema", "tickets", "-table", "ids").end(0)
	if got := counters(t, g.Nodes[0], target); got != "ids=5" {
		t.Errorf("got %s, want ids=5", got)
	}
	from := func(kind string, node int, status int) *process {
		p := begin(t, "import", "-config", file, "-from", kind, "-schema", "tickets", "-table", "ids=of_"+kind, "-source", g.Nodes[node].Addr(), "-user", "root")
		p.end(status)
		return p
	}
	if p := from("ticket", 1, 1); !strings.Contains(p.stderr(), "read only: name the primary") {
		t.Errorf("from the replica: got %s", p.stderr())
	}
	const note = " is read only: if it is a replica, its counters may be behind, so import from its primary, too\n"
	if p := from("table", 1, 0); !strings.Contains(p.stdout(), "\n"+g.Nodes[1].Addr()+note) {
		t.Errorf("a table of the replica: got\n%swant the note", p.stdout())
	}
	if p := from("table", 0, 0); strings.Contains(p.stdout(), note) {
		t.Errorf("a table of the primary: got\n%swant no note", p.stdout())
	}
}

// The source's defaults for sessions hide no counter and change no name.
func TestAnImportReadsAllWhateverTheSourceGivesToNewSessions(t *testing.T) {
	source := mysqltest.Start(t)
	source.Exec(t, "CREATE SCHEMA leaf", "CREATE TABLE leaf.leaf_alloc (biz_tag CHAR(20) CHARACTER SET utf8mb4 PRIMARY KEY, max_id BIGINT, step INT)",
		"INSERT INTO leaf.leaf_alloc VALUES ('größe', 101, 10), ('orders', 201, 10), ('users', 301, 10)",
		"CREATE USER reader@'%' IDENTIFIED BY 'p'", "GRANT SELECT ON leaf.* TO reader@'%'",
		"SET GLOBAL sql_select_limit = 2", "SET GLOBAL max_join_size = 1", "SET GLOBAL sql_mode = 'ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH'", "SET GLOBAL init_connect = 'SET NAMES latin1'")
	s := mysqltest.Shared(t)
	file, target := importInto(t, s)
	begin(t, "import", "-config", file, "-from", "leaf", "-schema", "leaf", "-source", source.Addr(), "-user", "reader", "-password-file", write(t, "password", "p\n")).end(0)
	if got, want := counters(t, s, target), "größe=101 orders=201 users=301"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAnImportThatCannotBeSaysWhy(t *testing.T) {
	s := mysqltest.Shared(t)
	file, target := importInto(t, s)
	schema := s.Schema(t)
	s.Exec(t, "USE "+schema, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128), max_id BIGINT, step INT)",
		"INSERT INTO leaf_alloc VALUES ('ok', 5, 1), ('"+strings.Repeat("x", 51)+"', 5, 1), ('too', 7, 2)",
		"CREATE TABLE loud (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE TRIGGER t BEFORE INSERT ON loud FOR EACH ROW SET @a = 1",
		"CREATE TABLE behind (biz_tag VARCHAR(128), max_id BIGINT, step INT)", "INSERT INTO behind VALUES ('b', -5, 1)",
		"CREATE TABLE empty_seq (id INT, next_id BIGINT, cache BIGINT) COMMENT 'Vitess_Sequence'")
	for args, test := range map[string]struct {
		status int
		want   string
	}{
		"":                          {2, "import needs -config FILE"},
		"-config FILE":              {2, "import needs -from KIND: cosid, leaf, mariadb, mycat, table, ticket, tinyid or vitess"},
		"-config FILE -from idgo":   {2, `-from must be cosid, leaf, mariadb, mycat, table, ticket, tinyid or vitess, is "idgo"`},
		"-config FILE -from leaf":   {2, "import needs -schema NAME: where the counters are"},
		"-config FILE -from leaf x": {2, `"x" is too much`},
		"-config FILE -from ticket -schema SCHEMA":                                                 {2, "-from ticket needs -table NAME"},
		"-config FILE -from leaf -schema SCHEMA -user u":                                           {2, "go with -source"},
		"-config FILE -from leaf -schema SCHEMA -source h:1":                                       {2, "-source needs -user NAME"},
		"-config FILE -from leaf -schema SCHEMA -source h:1 -user u -password-env NO_SUCH_THING":   {2, "NO_SUCH_THING is not set"},
		"-config FILE -from leaf -schema SCHEMA -source ADDRESS -user nobody -password-env SECRET": {1, "Access denied for user 'nobody'"},
		"-config FILE -from leaf -schema SCHEMA -source h:1 -user u -tls on":                       {2, "-tls must be one of [DISABLED"},
		"-config FILE -from leaf -schema nowhere":                                                  {1, "there is no table nowhere.leaf_alloc"},
		"-config FILE -from leaf -schema SCHEMA -table a=b":                                        {2, "its rows name the sequences"},
		"-config FILE -from leaf -schema SCHEMA -table behind":                                     {1, "b has max_id -5 and step 1"},
		"-config FILE -from leaf -schema SCHEMA -table empty_seq":                                  {1, "has not the columns of its kind"},
		"-config FILE -from vitess -schema SCHEMA":                                                 {1, "empty_seq has no row with id = 0"},
		"-config FILE -from mariadb -schema mysql":                                                 {1, `holds no counter of the kind "mariadb"`},
		"-config FILE -from cosid -schema SCHEMA -table behind":                                    {1, "has not the columns of its kind"},
		"-config FILE -from vitess -schema mysql":                                                  {1, `holds no counter of the kind "vitess"`},
		"-config FILE -from ticket -schema SCHEMA -table leaf_alloc":                               {1, "leaf_alloc is no table with an AUTO_INCREMENT"},
		"-config FILE -from ticket -schema SCHEMA -table loud":                                     {1, "`loud`: it has a trigger, t, "},
		"-config FILE -from ticket -schema SCHEMA -table loud -dry-run":                            {1, "(-from table makes a sequence of such a table, and does not raise its counter)"},
		"-config FILE -from leaf -schema SCHEMA":                                                   {1, strings.Repeat("x", 51)},
	} {
		text := strings.NewReplacer("FILE", file, "SCHEMA", schema, "ADDRESS", s.Addr()).Replace("import " + args)
		p := beginIn(t, []string{"SECRET=not this one"}, strings.Fields(text)...)
		p.end(test.status)
		if !strings.Contains(p.stderr(), test.want) || strings.Contains(p.stderr()+p.stdout(), "not this one") {
			t.Errorf("%s: got %s, want %q in it", text, p.stderr(), test.want)
		}
		if last := p.stdout(); args == "-config FILE -from leaf -schema SCHEMA" && !strings.Contains(last, "2 created, 0 raised, 0 there already, 1 failed") {
			t.Errorf("one of three fails: got\n%s", last)
		}
	}
	if got := counters(t, s, target); got != "ok=5 too=7" {
		t.Errorf("got %s, want those that could be made", got)
	}
}

// TestThePageOfComingFromHasTheKinds compares docs/coming-from.md with importTexts, which have all
// kinds, or writes them with -update.
func TestThePageOfComingFromHasTheKinds(t *testing.T) {
	kinds := make([]string, 0, len(importTexts))
	table := "\n| `-from` | makes a sequence of each | which begins at | CACHE |\n|---|---|---|---|\n"
	for _, i := range importTexts {
		kinds = append(kinds, i.kind)
		table += "| `" + i.kind + "` | " + i.counter + " | " + i.begins + " | " + i.cache + " |\n"
	}
	slices.Sort(kinds)
	if want := slices.Sorted(maps.Keys(readers)); !slices.Equal(kinds, want) {
		t.Errorf("the texts are about %q, want %q", kinds, want)
	}
	keepTable(t, "coming-from.md", "kinds", table+"\n")
}
