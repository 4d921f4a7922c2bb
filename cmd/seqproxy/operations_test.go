package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"seqproxy/internal/mysqltest"
)

// documentedSQL returns the statements of the sql blocks in a section of a page of
// docs, one element for each block.
func documentedSQL(t *testing.T, page, section string) (blocks [][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for {
		_, after, ok := strings.Cut(rest, "```sql\n")
		if !ok {
			return blocks
		}
		block, after, _ := strings.Cut(after, "```")
		var statements []string
		for s := range strings.SplitSeq(block, ";\n") {
			if s != "" {
				statements = append(statements, s)
			}
		}
		blocks = append(blocks, statements)
		rest = after
	}
}

// TestEveryLogLineIsDocumented compares the table on the page with the messages in the
// code, both ways.
func TestEveryLogLineIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Log lines\n")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := make(map[string]bool)
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			cell := strings.TrimSpace(cells[1])
			if inner, ok := strings.CutPrefix(cell, "`` "); ok { // a message with back quotes of its own
				documented[strings.TrimSuffix(inner, " ``")] = true
				continue
			}
			if inner, ok := strings.CutPrefix(cell, "``"); ok {
				documented[strings.TrimSuffix(inner, "``")] = true
				continue
			}
			for _, match := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
				documented[match[1]] = true
			}
		}
	}
	logged := make(map[string]bool)
	call := regexp.MustCompile(`(?s)(?:log|log\(\)|[lL]ogger|Logger\(\))\.(?:Info|Warn|Error)\(\s*"((?:[^"\\]|\\.)*)"`)
	event := regexp.MustCompile(`(?:event (?::=|=)|LoggerName: "log", Message:) "([^"]+)"|level, event :?= zap\.\w+, "([^"]+)"`) // of the session's end
	for _, folder := range []string{"cmd/seqproxy", "proxy", "backend", "sequence", "admin", "protocol", "internal/tlsfiles", "internal/statefile", "internal/logs"} {
		files, err := filepath.Glob("../../" + folder + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range call.FindAllStringSubmatch(string(code), -1) {
				logged[match[1]] = true
			}
			for _, match := range event.FindAllStringSubmatch(string(code), -1) {
				logged[match[1]+match[2]] = true
			}
		}
	}
	if len(logged) < 15 {
		t.Errorf("found %d messages in the code, want more: the test does not see them", len(logged))
	}
	for message := range logged {
		if !documented[message] {
			t.Errorf("docs/operations.md does not explain the log line %q", message)
		}
	}
	for message := range documented {
		if !logged[message] {
			t.Errorf("docs/operations.md explains the log line %q, which is not in the code", message)
		}
	}
}

func TestTheDocumentedRightsAreEnough(t *testing.T) {
	s := mysqltest.Start(t) // of its own: the statements name schemas and accounts
	grants := documentedSQL(t, "operations.md", "Accounts")
	if len(grants) != 2 {
		t.Fatalf("got %d blocks of grants, want 2", len(grants))
	}
	file := write(t, "seqproxy.toml", fmt.Sprintf(`
listen = "127.0.0.1:0"
http.listen = "127.0.0.1:0"
admin_users = ["app"]
[[user]]
name = "app"
[[sequence.server]]
address = %q
user = "seqproxy"
password = "change me too"
`, s.Addr()))
	ask := func(sql string) string {
		p := begin(t, "-config", file)
		output, err := client(t, p.address(), "app", "", "-N", "-e", sql)
		if err != nil {
			t.Errorf("%s: %v: %s", sql, err, output)
		}
		p.signal(syscall.SIGTERM)
		p.end(0)
		if strings.Contains(p.stderr(), "WARN") {
			t.Errorf("the log has a warning:\n%s", p.stderr())
		}
		return output
	}

	s.Exec(t, grants[0]...)
	got := ask("CREATE SEQUENCE photos; SELECT NEXTVAL('photos'); CREATE SEQUENCE old CACHE 5; SELECT NEXTVAL('old'); DROP SEQUENCE old")
	if want := "1\n1\n"; got != want {
		t.Errorf("with all rights: got %q, want %q", got, want)
	}
	s.Exec(t, grants[1]...)
	if got := ask("SELECT NEXTVAL('photos'); SHOW SEQUENCES"); !strings.HasPrefix(got, "2\nphotos\t3\t999\t1000\t") {
		t.Errorf("with SELECT and UPDATE alone: got %q, want 2 and the sequence", got)
	}
}

func TestTheDocumentedStatementsOnTheTableWork(t *testing.T) {
	s := mysqltest.Start(t)
	db := s.DB(t, "")
	s.Exec(t, "CREATE DATABASE album0", "CREATE TABLE album0.photos (id BIGINT UNSIGNED PRIMARY KEY)", "INSERT INTO album0.photos VALUES (5000)")
	p := begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	address := p.address()
	if got := query(t, address, "root", "", "CREATE SEQUENCE photos; SELECT NEXTVAL('photos')"); got != "1" {
		t.Fatalf("a first number: got %q, want 1", got)
	}
	id := func() (id int) {
		t.Helper()
		if err := db.QueryRow("SELECT id FROM seqproxy.sequence WHERE name = 'photos'").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	table := documentedSQL(t, "operations.md", "The sequence table")
	if len(table) != 2 {
		t.Fatalf("got %d blocks about the table, want 2", len(table))
	}
	s.Exec(t, table[0]...)
	before := id()
	s.Exec(t, table[1]...)
	if got := id(); got != before+1 {
		t.Errorf("the row after a number was taken by hand: got %d, want %d", got, before+1)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	if got := id(); got != before+1 {
		t.Errorf("the row after the stop: got %d, want %d: numbers below one taken by hand cannot go back", got, before+1)
	}

	restore := documentedSQL(t, "operations.md", "Backup and restore")
	if len(restore) != 1 {
		t.Fatalf("got %d blocks about a restore, want 1", len(restore))
	}
	s.Exec(t, "UPDATE seqproxy.sequence SET id = 7") // an old dump
	s.Exec(t, restore[0]...)
	if got := id(); got != 5000 {
		t.Errorf("the row after the restore: got %d, want that of the highest key, 5000", got)
	}
	s.Exec(t, "UPDATE seqproxy.sequence SET id = 9000")
	s.Exec(t, restore[0]...)
	if got := id(); got != 9000 {
		t.Errorf("a row that is higher: got %d, want it untouched, 9000", got)
	}
}
