package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seqproxy/internal/mysqld"
	"seqproxy/test/mysqltest"
)

var updatePages = flag.Bool("update", false, "write what the commands of the pages print into the pages")

// session follows a section of a page as a reader would. It runs SQL on the servers that a block's
// first line names, writes the configuration, and types the commands.
type session struct {
	t       *testing.T
	dir     string
	env     []string
	servers map[string]*mysqltest.Server // by their names on the page
	proxy   *process
	names   *strings.Replacer // from the page's addresses to the test's
	back    *strings.Replacer
	ran     int // commands with output on the page
}

// newSession starts a session with servers called db0, db1 and so on. password is the reader's
// answer when a client asks.
func newSession(t *testing.T, password string, servers ...*mysqltest.Server) *session {
	t.Helper()
	s := &session{t: t, dir: t.TempDir(), servers: make(map[string]*mysqltest.Server)}
	for i, server := range servers {
		s.servers[fmt.Sprintf("db%d", i)] = server
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := mysqld.FindClient()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"seqproxy": fmt.Sprintf("exec env %s=1 '%s' \"$@\"", asProgram, exe),
		// The password comes from the environment.
		"mariadb": fmt.Sprintf("for a; do shift; [ \"$a\" = -p ] || set -- \"$@\" \"$a\"; done\nexec '%s' --no-defaults %s \"$@\"", program, strings.Join(plain(t), " ")),
	} {
		path := filepath.Join(s.dir, "bin", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
			t.Fatal(err)
		}
	}
	s.env = []string{"PATH=" + filepath.Join(s.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + s.dir, "MYSQL_PWD=" + password}
	s.rename("", "", "")
	return s
}

// rename maps the page's addresses to those of the test.
func (s *session) rename(address, admin, http string) {
	pairs := []string{}
	for name, server := range s.servers {
		host, port, err := net.SplitHostPort(server.Addr())
		if err != nil {
			s.t.Fatal(err)
		}
		pairs = append(pairs, "-h "+name+" -P 3306", "-h "+host+" -P "+port, name+":3306", server.Addr())
	}
	for page, real := range map[string]string{"4306": address, "4307": admin, "4308": http} {
		if real == "" {
			continue
		}
		host, port, err := net.SplitHostPort(real)
		if err != nil {
			s.t.Fatal(err)
		}
		pairs = append(pairs, "-h 127.0.0.1 -P "+page, "-h "+host+" -P "+port, "127.0.0.1:"+page, real)
	}
	back := make([]string, len(pairs))
	for i := 0; i < len(pairs); i += 2 {
		back[i], back[i+1] = pairs[i+1], pairs[i]
	}
	if host, port, err := net.SplitHostPort(address); err == nil { // one that no application knows
		pairs = append(pairs, "-h 127.0.0.1 -P 4316", "-h "+host+" -P "+port)
	}
	back = append(back, "127.0.0.1:0", "127.0.0.1:4306")
	s.names, s.back = strings.NewReplacer(pairs...), strings.NewReplacer(back...)
}

// trailing matches spaces that pages omit.
var trailing = regexp.MustCompile(`(?m) +$`)

var block = regexp.MustCompile("(?ms)^```(sql|toml|console)\n(.*?)^```$")

// follow works through a section. With -update it also rewrites it.
func (s *session) follow(page, section string) {
	s.t.Helper()
	path := filepath.Join("..", "..", "docs", page)
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	at := regexp.MustCompile("(?m)^#+ " + section + "\n").FindIndex(text)
	if at == nil {
		s.t.Fatalf("%s has no section %q", page, section)
	}
	before, rest, after := string(text[:at[1]]), string(text[at[1]:]), ""
	if end := strings.Index(rest, "\n##"); end >= 0 {
		rest, after = rest[:end], rest[end:]
	}
	done := block.ReplaceAllStringFunc(rest, func(b string) string {
		m := block.FindStringSubmatch(b)
		switch m[1] {
		case "sql":
			s.sql(m[2])
		case "toml":
			s.configure(m[2])
		case "console":
			return "```console\n" + s.console(m[2]) + "```"
		}
		return b
	})
	if !*updatePages {
		return
	}
	if err := os.WriteFile(path, []byte(before+done+after), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// sql runs a block on the servers in its first line, "-- on db0 and db1".
func (s *session) sql(text string) {
	s.t.Helper()
	head, text, _ := strings.Cut(text, "\n")
	ran := false
	for name, server := range s.servers {
		if !strings.HasPrefix(head, "-- on ") || !strings.Contains(head, name) {
			continue
		}
		for statement := range strings.SplitSeq(text, ";\n") {
			if statement != "" {
				server.Exec(s.t, statement)
			}
		}
		ran = true
	}
	if !ran {
		s.t.Fatalf("%q names no server", head)
	}
}

// configure writes seqproxy.toml, or the file named in the first line. It replaces the addresses,
// so that proxies of tests do not collide.
func (s *session) configure(text string) {
	s.t.Helper()
	file := "seqproxy.toml"
	if name, rest, found := strings.Cut(text, ".toml\n"); found && strings.HasPrefix(name, "# ") {
		file, text = name[len("# "):]+".toml", rest
	}
	listen, rest, _ := strings.Cut(s.names.Replace(text), "\n")
	if !strings.HasPrefix(listen, "listen = ") {
		s.t.Fatalf("the configuration begins with %q", listen)
	}
	if err := os.WriteFile(filepath.Join(s.dir, file), []byte(apart+rest), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// console types the commands of a block. It returns the block with their output.
func (s *session) console(text string) string {
	s.t.Helper()
	var is strings.Builder
	for _, entry := range strings.Split("\n"+text, "\n$ ")[1:] {
		command, want, _ := strings.Cut(strings.TrimSuffix(entry, "\n")+"\n", "\n")
		for strings.HasSuffix(command, `\`) {
			var line string
			line, want, _ = strings.Cut(want, "\n")
			command += "\n" + line
		}
		got := trailing.ReplaceAllString(s.back.Replace(s.run(command)), "")
		if got != want && !*updatePages {
			s.t.Errorf("$ %s\ngot\n%swant\n%s", command, got, want)
		}
		s.ran++
		is.WriteString("$ " + command + "\n" + got)
	}
	return is.String()
}

// run types a command. If the command is the proxy itself, it goes on in another terminal and
// replaces the one before.
func (s *session) run(command string) string {
	s.t.Helper()
	if strings.HasPrefix(command, "seqproxy -") {
		s.begin(command)
		return ""
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", s.names.Replace(command))
	cmd.Dir, cmd.Env = s.dir, s.env
	open, err := cmd.StdinPipe() // its end would end the program
	if err != nil {
		s.t.Fatal(err)
	}
	defer open.Close() //nolint:errcheck // the command has ended
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		s.t.Errorf("$ %s: %v", command, err)
	}
	return string(out)
}

func (s *session) begin(command string) {
	s.t.Helper()
	if s.proxy != nil {
		s.proxy.signal(os.Interrupt)
		s.proxy.end(0)
	}
	s.rename("", "", "")
	words := strings.Fields(s.names.Replace(command))[1:]
	for i, word := range words {
		if strings.HasSuffix(word, ".toml") || strings.HasSuffix(word, ".password") {
			words[i] = filepath.Join(s.dir, word)
		}
	}
	s.proxy = begin(s.t, append(words, "-listen", "127.0.0.1:0", "-admin-listen", "127.0.0.1:0", "-http-listen", "127.0.0.1:0")...)
	address := s.proxy.address()
	s.rename(address, s.proxy.field("admin"), s.proxy.field("http"))
}

// field returns a text field from the log of the process.
func (p *process) field(name string) string {
	p.t.Helper()
	_, rest, found := strings.Cut(p.stderr(), fmt.Sprintf("%q: \"", name))
	text, _, _ := strings.Cut(rest, `"`)
	if !found {
		p.t.Fatalf("the log has no %s", name)
	}
	return text
}

func TestAReaderGetsStartedInFrontOfOneServer(t *testing.T) {
	db := mysqltest.Start(t)
	db.Exec(t, "CREATE DATABASE album", "CREATE TABLE album.photos (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20))",
		"INSERT INTO album.photos (title) VALUES ('sea'), ('sky')", "CREATE USER app@'%' IDENTIFIED BY 'change me'", "GRANT ALL ON album.* TO app@'%'")
	s := newSession(t, "change me", db)
	s.follow("getting-started.md", "In front of one server")
	if s.ran < 5 {
		t.Errorf("the page has %d commands, want more", s.ran)
	}
}

func TestAReaderGetsStartedInFrontOfTwoShards(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.Start(t), mysqltest.Start(t)}
	for i, db := range servers {
		album := fmt.Sprintf("album%d", i)
		db.Exec(t, "CREATE DATABASE "+album, "CREATE TABLE "+album+".photos (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(20))",
			fmt.Sprintf("INSERT INTO %s.photos (id, title) VALUES (%d, 'sea')", album, 70+830*i), "CREATE USER app@'%' IDENTIFIED BY 'change me'", "GRANT ALL ON "+album+".* TO app@'%'")
	}
	s := newSession(t, "change me", servers...)
	s.follow("getting-started.md", "In front of two shards")
	if s.ran < 7 {
		t.Errorf("the page has %d commands, want more", s.ran)
	}
}

func TestAReaderAddsSequenceServersAndTakesALostOneOut(t *testing.T) {
	var servers []*mysqltest.Server
	for range 3 {
		db := mysqltest.Start(t)
		db.Exec(t, documentedGrants(t, db.Flavour(), "The account for sequences")...)
		servers = append(servers, db)
	}
	s := newSession(t, "hush-hush", servers...)
	if err := os.WriteFile(filepath.Join(s.dir, "seqproxy.toml"), []byte(apart+fmt.Sprintf(`
admin_users = ["admin"]
[[user]]
name = "admin"
password = "hush-hush"
[sequence]
direct_writers = false
[[sequence.server]]
address = %q
user = "seqproxy"
password = "change me too"
`, servers[0].Addr())), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin("seqproxy -config seqproxy.toml")
	s.follow("members.md", "Changing their number")
	if err := servers[2].Stop(); err != nil {
		t.Fatal(err)
	}
	s.follow("members.md", "A member is gone for good")
	if s.ran < 7 {
		t.Errorf("the page has %d commands, want more", s.ran)
	}
}

// TestAReaderComesFromAnotherSourceOfKeys has all counters of the page on one server.
func TestAReaderComesFromAnotherSourceOfKeys(t *testing.T) {
	db := mysqltest.Start(t)
	db.OnMariaDB(t, "it has sequences of its own")
	db.Exec(t, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO shop.orders VALUES (70)",
		"CREATE SEQUENCE shop.bills_seq", "SELECT NEXTVAL(shop.bills_seq)",
		"CREATE DATABASE flickr", "CREATE TABLE flickr.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE)",
		"INSERT INTO flickr.tickets64 VALUES (7000, 'a')",
		"CREATE DATABASE leaf", "CREATE TABLE leaf.leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL)",
		"INSERT INTO leaf.leaf_alloc VALUES ('orders', 20001, 2000), ('users', 1, 100)",
		"CREATE DATABASE tinyid", "CREATE TABLE tinyid.tiny_id_info (biz_type VARCHAR(63) PRIMARY KEY, begin_id BIGINT, max_id BIGINT, step INT, delta INT, remainder INT)",
		"INSERT INTO tinyid.tiny_id_info VALUES ('photos', 1, 300000, 100000, 1, 0)",
		"CREATE DATABASE cosid", "CREATE TABLE cosid.cosid (name VARCHAR(100) PRIMARY KEY, last_max_id BIGINT UNSIGNED NOT NULL DEFAULT 0, last_fetch_time BIGINT UNSIGNED NOT NULL DEFAULT 0)",
		"INSERT INTO cosid.cosid VALUES ('shop.orders', 9000, 1700000000)",
		"CREATE DATABASE mycat", "CREATE TABLE mycat.MYCAT_SEQUENCE (name VARCHAR(50) PRIMARY KEY, current_value INT NOT NULL, increment INT NOT NULL DEFAULT 100)",
		"INSERT INTO mycat.MYCAT_SEQUENCE VALUES ('GLOBAL', 100000, 100)",
		"CREATE DATABASE commerce", "CREATE TABLE commerce.orders_seq (id INT PRIMARY KEY, next_id BIGINT, cache BIGINT) COMMENT 'vitess_sequence'",
		"INSERT INTO commerce.orders_seq VALUES (0, 1001, 100)",
		"CREATE USER admin@'%' IDENTIFIED BY 'hush-hush'", "GRANT ALL ON *.* TO admin@'%'")
	for section, least := range map[string]int{
		"AUTO_INCREMENT per shard": 1, "Ticket tables": 1, "Leaf, tinyid, CosId, MyCat, Vitess, MariaDB": 7, "Check": 1,
	} {
		t.Run(section, func(t *testing.T) {
			db.Exec(t, "DROP DATABASE IF EXISTS seqproxy")
			s := newSession(t, "hush-hush", db)
			if err := os.WriteFile(filepath.Join(s.dir, "seqproxy.toml"), []byte(apart+`
admin_users = ["admin"]
[[user]]
name = "admin"
password = "hush-hush"
`+sequencesAt(db.Addr())+shardAt("main", db.Addr())), 0o600); err != nil {
				t.Fatal(err)
			}
			s.begin("seqproxy -config seqproxy.toml")
			if section == "Check" {
				query(t, s.proxy.address(), "admin", "hush-hush", "CREATE SEQUENCE orders", plain(t)...)
			}
			s.follow("coming-from.md", section)
			if s.ran < least {
				t.Errorf("the section has %d commands, want %d", s.ran, least)
			}
			s.proxy.signal(os.Interrupt)
			s.proxy.end(0)
		})
	}
}

// TestAReaderMakesSequencesAgain loses db0, the only sequence server, while keys are in use on the
// shard db1.
func TestAReaderMakesSequencesAgain(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.Start(t), mysqltest.Start(t), mysqltest.Start(t)}
	for _, i := range []int{0, 2} {
		servers[i].Exec(t, documentedGrants(t, servers[i].Flavour(), "The account for sequences")...)
	}
	servers[1].Exec(t, "CREATE DATABASE album", "CREATE TABLE album.photos (id BIGINT UNSIGNED PRIMARY KEY)",
		"CREATE USER admin@'%' IDENTIFIED BY 'hush-hush'", "GRANT ALL ON album.* TO admin@'%'")
	s := newSession(t, "hush-hush", servers...)
	if err := os.WriteFile(filepath.Join(s.dir, "seqproxy.toml"), []byte(apart+fmt.Sprintf(`
admin_users = ["admin"]
[[user]]
name = "admin"
password = "hush-hush"
[[sequence.server]]
address = %q
user = "seqproxy"
password = "change me too"
`, servers[0].Addr())+shardAt("main", servers[1].Addr())), 0o600); err != nil {
		t.Fatal(err)
	}
	s.begin("seqproxy -config seqproxy.toml")
	query(t, s.proxy.address(), "admin", "hush-hush", "CREATE SEQUENCE photos START WITH 900 OWNED BY album.photos.id; INSERT INTO album.photos VALUES (NEXTVAL('photos'))", plain(t)...)
	if err := servers[0].Stop(); err != nil {
		t.Fatal(err)
	}
	s.follow("one-server.md", "The only one is gone for good")
	if s.ran != 5 {
		t.Errorf("the page has %d commands, want 5", s.ran)
	}
}

func TestAReaderHasTheSameSchemaOnTwoServers(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.Start(t), mysqltest.Start(t)}
	servers[0].Exec(t, documentedGrants(t, servers[0].Flavour(), "The account for sequences")...)
	for i, db := range servers {
		db.Exec(t, "CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)",
			fmt.Sprintf("INSERT INTO shop.orders VALUES (%d)", 70+830*i), "CREATE USER app@'%' IDENTIFIED BY 'change me'", "GRANT ALL ON shop.* TO app@'%'")
	}
	s := newSession(t, "change me", servers...)
	for name, password := range map[string]string{"app": "change me", "sequence": "change me too"} {
		if err := os.WriteFile(filepath.Join(s.dir, name+".password"), []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.follow("getting-started.md", "Both servers have the same schema")
	if s.ran != 5 {
		t.Errorf("the page has %d commands, want 5", s.ran)
	}
}
