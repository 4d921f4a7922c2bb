package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"seqproxy/test/mysqltest"
)

// documentedSQL returns the statements in a section's sql blocks on a page of docs, by block.
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

func TestTheDocumentedRightsAreEnough(t *testing.T) {
	s := mysqltest.Start(t) // a server of its own, since the statements name schemas and accounts
	grants := append(documentedSQL(t, "security.md", "The account for sequences"), documentedSQL(t, "security.md", "Fewer rights")...)
	if len(grants) != 2 {
		t.Fatalf("got %d blocks of grants, want 2", len(grants))
	}
	file := write(t, "seqproxy.toml", apart+fmt.Sprintf(`
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
	if got := ask("SELECT NEXTVAL('photos'); SHOW SEQUENCES"); !strings.HasPrefix(got, "2\nphotos\t3\t999\t") {
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
	if len(table) != 3 {
		t.Fatalf("got %d blocks about the table, want 3", len(table))
	}
	s.Exec(t, append(table[0], table[2]...)...)
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

// TestThePageOfOperationsTellsWhyKeysJump compares docs/operations.md with gapTexts, or writes them
// with -update.
func TestThePageOfOperationsTellsWhyKeysJump(t *testing.T) {
	table := "\n| cause | how far | how to see it |\n|---|---|---|\n"
	for _, g := range gapTexts {
		table += "| " + g.cause + " | " + g.far + " | " + g.see + " |\n"
	}
	keepTable(t, "operations.md", "gaps", table+"\n")
}

// TestThePageOfWhatToDoHasTheStepsOfHelp compares the pages with the texts that help prints, or
// writes them with -update.
func TestThePageOfWhatToDoHasTheStepsOfHelp(t *testing.T) {
	numbered := func(steps []string) string {
		var list strings.Builder
		for i, step := range steps {
			wrapAt(&list, 120, fmt.Sprintf("%d. ", i+1), step)
		}
		return "\n" + list.String() + "\n"
	}
	keepTable(t, "operations.md", "restore", numbered(restoreSteps))
	keepTable(t, "one-server.md", "steps", numbered(onlyOneSteps))
	table := "\n| what is lost | run |\n|---|---|\n"
	for _, l := range lostMembers {
		table += "| " + l.lost + " | " + l.run + " |\n"
	}
	keepTable(t, "members.md", "lost", table+"\n")
}

func TestTheDocumentedWayToBeginAgainWorks(t *testing.T) {
	s := mysqltest.Start(t)
	blocks := documentedSQL(t, "operations.md", "Beginning again")
	if len(blocks) != 1 {
		t.Fatalf("got %d blocks about beginning again, want 1", len(blocks))
	}
	p := begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	address := p.address()
	if got := query(t, address, "root", "", "CREATE SEQUENCE photos START 4000; SELECT NEXTVAL('photos')"); got != "4000" {
		t.Fatalf("a first number: got %q, want 4000", got)
	}
	query(t, address, "root", "", strings.Join(blocks[0], ";"))
	if got := query(t, address, "root", "", "SELECT NEXTVAL('photos')"); got != "1" {
		t.Errorf("after it began again: got %q, want 1", got)
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}
