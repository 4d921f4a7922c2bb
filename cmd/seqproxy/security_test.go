package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"seqproxy/internal/inspect"
	"seqproxy/internal/mysqld"
	"seqproxy/test/mysqltest"
)

// documentedGrants returns the statements of docs/security.md that create the account for sequences
// on a server.
func documentedGrants(t *testing.T, flavour mysqld.Flavour, sections ...string) (all []string) {
	t.Helper()
	for _, section := range sections {
		blocks := documentedSQL(t, "security.md", section)
		switch {
		case len(blocks) == 1:
			all = append(all, blocks[0]...)
		case len(blocks) == 2 && flavour == mysqld.MariaDB:
			all = append(all, blocks[0]...)
		case len(blocks) == 2:
			all = append(all, blocks[1]...)
		default:
			t.Fatalf("%q has %d blocks of SQL", section, len(blocks))
		}
	}
	return all
}

// TestTheDocumentedRightsAreEnoughForMembersAndAGroup adds a server to a single one, and uses a
// group, with exactly the rights of docs/security.md.
func TestTheDocumentedRightsAreEnoughForMembersAndAGroup(t *testing.T) {
	single, added, g := mysqltest.StartUnsynced(t), mysqltest.StartUnsynced(t), mysqltest.StartGroup(t, 2)
	flavour := single.Flavour()
	sequences := documentedGrants(t, flavour, "The account for sequences")
	singleGrants := append(slices.Clone(sequences), documentedGrants(t, flavour, "Ticket tables", "Accounts on the shards")...)
	groupGrants := append(slices.Clone(sequences), documentedGrants(t, flavour, "Groups")...)
	single.Exec(t, singleGrants...)
	added.Exec(t, sequences...)
	g.Nodes[0].Exec(t, groupGrants...)
	g.CatchUp(t, 1, 0)
	single.Exec(t, "CREATE DATABASE ids", "CREATE TABLE ids.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, stub CHAR(1) NOT NULL UNIQUE)",
		"CREATE USER admin@'%' IDENTIFIED BY 'hush-hush'", "GRANT SELECT, INSERT, DELETE ON ids.* TO admin@'%'")
	account := "user = 'seqproxy'\npassword = 'change me too'\n"
	const begins = `
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
admin_users = ["admin"]
unknown_user = "backend"
max_connections = 100
[[user]]
name = "admin"
password = "hush-hush"
[[sequence.server]]
`
	shard := `
[[shard]]
name = "photos"
[[shard.node]]
address = "` + single.Addr() + `"
`
	t.Run("members", func(t *testing.T) {
		file := write(t, "seqproxy.toml", begins+"address = \""+single.Addr()+"\"\n"+account+"[[ticket]]\ntable = \"ids.tickets64\"\n"+shard)
		rightsAreEnough(t, file, func(ask func(string) string) {
			if got := ask("REPLACE INTO ids.tickets64 (stub) VALUES ('a'); SELECT LAST_INSERT_ID()"); got != "2\n" {
				// the first one went into the stub's row
				t.Errorf("a ticket: got %q, want 2", got)
			}
			for _, what := range []string{"ADD", "REMOVE", "ADD"} {
				ask("SEQPROXY " + what + " SEQUENCE SERVER '" + added.Addr() + "' WITH DIRECT WRITERS STOPPED; SELECT NEXTVAL('photos')")
			}
		}, single, added)
	})
	t.Run("a group", func(t *testing.T) {
		file := write(t, "seqproxy.toml", begins+"nodes = [\""+strings.Join(g.Addrs(), `", "`)+"\"]\n"+account+shard)
		rightsAreEnough(t, file, func(func(string) string) {}, g.Nodes[0])
	})
}

// rightsAreEnough runs statements about sequences, and more, through a proxy that registers itself
// on the servers.
func rightsAreEnough(t *testing.T, file string, more func(ask func(string) string), servers ...*mysqltest.Server) {
	t.Helper()
	rightsAreFine := func(when string) {
		t.Helper()
		r, _ := checks(t, file)
		for _, f := range r.Findings {
			if f.Check == "rights" && f.Level != inspect.OK || f.Level == inspect.Wrong {
				t.Errorf("%s: %+v", when, f)
			}
		}
	}
	rightsAreFine("before the first start")

	p := begin(t, "-config", file)
	address := p.address()
	ask := func(sql string) string {
		t.Helper()
		output, err := client(t, address, "admin", "hush-hush", append(plain(t), "-N", "-e", sql)...)
		if err != nil {
			t.Errorf("%s: %v: %s", sql, err, output)
		}
		return output
	}
	ask("CREATE SEQUENCE photos")
	ask("SELECT NEXTVAL('photos'); SELECT NEXTVAL('photos')")
	ask("ALTER SEQUENCE photos MAXVALUE 1000000000 CACHE 50 COMMENT 'keys'; SELECT SETVAL('photos', 5000); SELECT NEXTVAL('photos')")
	ask("CREATE SEQUENCE old; SELECT NEXTVAL('old'); DROP SEQUENCE old; CREATE SEQUENCE old; SELECT NEXTVAL('old')")
	ask("CREATE OR REPLACE SEQUENCE old; DROP SEQUENCE old")
	ask("CREATE SEQUENCE in_order ORDER; SELECT NEXTVAL('in_order'); ALTER SEQUENCE in_order NOORDER")
	ask("FLUSH SEQUENCES; SHOW SEQUENCES; SHOW SEQPROXY SEQUENCE SERVERS; CHECK SEQUENCE photos")
	more(ask)
	// The proxy registers itself on a server when it reserves there. Servers are used in turn.
	for deadline := time.Now().Add(patience); ; {
		ask("FLUSH SEQUENCES; SELECT NEXTVAL('photos')")
		entered := 0
		for _, s := range servers {
			var n int
			// the table may not exist yet
			_ = s.DB(t, "").QueryRow("SELECT COUNT(*) FROM seqproxy.sequence_proxy").Scan(&n)
			if n == 1 {
				entered++
			}
		}
		if entered == len(servers) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d registries have the proxy", entered, len(servers))
		}
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	for line := range strings.Lines(p.stderr()) {
		if strings.Contains(line, "denied") {
			t.Errorf("the log has %s", line)
		}
	}

	rightsAreFine("with all tables there")
}

// tableRights are the rights of the account for sequences on each table, and what they are for. A
// right without a table is one on the schema.
var tableRights = []struct{ rights, tables, use string }{
	{"SELECT, UPDATE", "sequence", "giving numbers"},
	{"SELECT", "sequence_options sequence_version sequence_member", "giving numbers"},
	{"INSERT, DELETE", "sequence", "making and dropping sequences; a new term in a group"},
	{"INSERT, UPDATE", "sequence_options", "changing sequences; giving numbers with several servers, a new term"},
	{"INSERT, UPDATE", "sequence_version", "changing sequences, and the set of servers"},
	{"SELECT, INSERT, UPDATE, DELETE", "sequence_proxy", "giving numbers: the proxies' entries"},
	{"SELECT, INSERT, UPDATE, DELETE", "sequence_member sequence_plan sequence_plan_start", "several servers"},
	{"SELECT", "sequence_holder sequence_limit", "giving numbers: whether the server was in a group or a cluster"},
	{"INSERT, UPDATE", "sequence_limit", "the ceilings of several servers, or of a group"},
	{"DELETE", "sequence_limit", "a new term in a group"},
	{"INSERT, UPDATE, DELETE", "sequence_holder", "the holders of a group"},
	{"CREATE", "", "making these tables"},
}

// TestThePageOfSecurityHasTheRights compares docs/security.md with tableRights, or writes them
// with -update.
func TestThePageOfSecurityHasTheRights(t *testing.T) {
	table := "\n| right | on | needed for |\n|---|---|---|\n"
	for _, row := range tableRights {
		on := "the schema"
		if row.tables != "" {
			on = "`" + strings.ReplaceAll(row.tables, " ", "`, `") + "`"
		}
		table += "| " + row.rights + " | " + on + " | " + row.use + " |\n"
	}
	keepTable(t, "security.md", "rights", table+"\n")
}

// TestTheDocumentedRightsOnEachTable has two sequence servers. Their account has exactly the
// rights of tableRights. The test changes sequences and the plan.
func TestTheDocumentedRightsOnEachTable(t *testing.T) {
	var rights [][2]string
	for _, row := range tableRights {
		for table := range strings.FieldsSeq(row.tables) {
			for right := range strings.SplitSeq(row.rights, ", ") {
				if table == "sequence_holder" && right != "SELECT" || table == "sequence_limit" && right == "DELETE" {
					continue // for groups
				}
				rights = append(rights, [2]string{right, table})
			}
		}
	}
	if len(rights) < 20 {
		t.Fatalf("the page names only %d rights", len(rights))
	}
	one, other := mysqltest.StartUnsynced(t), mysqltest.StartUnsynced(t)
	for _, s := range []*mysqltest.Server{one, other} {
		s.Exec(t, documentedGrants(t, s.Flavour(), "The account for sequences")...)
	}
	const account = "user = \"seqproxy\"\npassword = \"change me too\"\n"
	alone := `
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
admin_users = ["admin"]
[[user]]
name = "admin"
password = "hush-hush"
[sequence]
direct_writers = false
[[sequence.server]]
address = "` + one.Addr() + "\"\n" + account
	first := write(t, "first.toml", alone)
	file := write(t, "seqproxy.toml", alone+`
[[sequence.server]]
address = "`+other.Addr()+"\"\n"+account)
	use := func(file string, statements ...string) {
		t.Helper()
		p := begin(t, "-config", file)
		for _, sql := range statements {
			if output, err := client(t, p.address(), "admin", "hush-hush", append(plain(t), "-N", "-e", sql)...); err != nil {
				t.Errorf("%s: %v: %s", sql, err, output)
			}
		}
		p.signal(syscall.SIGTERM)
		p.end(0)
		if strings.Contains(p.stderr(), "denied") {
			t.Errorf("the log has a refusal:\n%s", p.stderr())
		}
	}
	add := "SEQPROXY ADD SEQUENCE SERVER '" + other.Addr() + "'"
	use(first, add) // creates all tables
	use(file, "CREATE SEQUENCE first; SELECT NEXTVAL('first'); FLUSH SEQUENCES; SELECT NEXTVAL('first'); DROP SEQUENCE first")
	for _, s := range []*mysqltest.Server{one, other} {
		s.Exec(t, "REVOKE ALL PRIVILEGES ON seqproxy.* FROM 'seqproxy'@'%'")
		for _, r := range rights {
			s.Exec(t, fmt.Sprintf("GRANT %s ON seqproxy.%s TO 'seqproxy'@'%%'", r[0], r[1]))
		}
	}
	use(file, "CREATE SEQUENCE photos; SELECT NEXTVAL('photos')", "ALTER SEQUENCE photos MAXVALUE 1000000000; SELECT SETVAL('photos', 5000); SELECT NEXTVAL('photos')",
		"CREATE OR REPLACE SEQUENCE photos; DROP SEQUENCE photos; CREATE SEQUENCE photos; SELECT NEXTVAL('photos')", "SEQPROXY REMOVE SEQUENCE SERVER '"+other.Addr()+"'; SELECT NEXTVAL('photos')", add+"; SELECT NEXTVAL('photos')",
		"SHOW SEQUENCES; SHOW SEQPROXY SEQUENCE SERVERS; FLUSH SEQUENCES")
	if r, err := checks(t, file); err != nil || len(r.finds(inspect.Warning, "rights: ")) > 0 {
		t.Errorf("with these rights: got %v:\n%s", err, r.text())
	}
	one.Exec(t, "REVOKE SELECT ON seqproxy.sequence_options FROM 'seqproxy'@'%'")
	r, _ := checks(t, file)
	found := r.finds(inspect.Wrong, "sequence server "+one.Addr(), "rights: ", "SELECT command denied to user 'seqproxy'@", "sequence_options")
	if len(found) != 1 || !slices.Equal(found[0].Mend, []string{"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `seqproxy`.* TO 'seqproxy'@'%'"}) {
		t.Errorf("without SELECT on a table check says %+v:\n%s", found, r.text())
	}
}

func TestThePlaygroundsAccountHasTheDocumentedRightsAndNoOthers(t *testing.T) {
	for _, flavour := range []mysqld.Flavour{mysqld.MariaDB, mysqld.MySQL} {
		documented := documentedGrants(t, flavour, "The account for sequences", "Accounts on the shards")
		for _, statement := range sequenceGrants(flavour)[1:] {
			if !slices.Contains(documented, statement) {
				t.Errorf("%s: %q does not stand in docs/security.md", flavour, statement)
			}
		}
	}
}

// TestTheDocumentedModesAreThose checks the modes of files that the proxy creates.
func TestTheDocumentedModesAreThose(t *testing.T) {
	s := mysqltest.StartUnsynced(t)
	dir := t.TempDir()
	p := begin(t, "-config", write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
[log]
output = "`+dir+`/log"
[[user]]
name = "app"
[sequence]
state_dir = "`+dir+`/state"
[[sequence.server]]
address = "`+s.Addr()+`"
user = "root"
`))
	awaitInFile(t, dir+"/log", "listening")
	for path, want := range map[string]os.FileMode{"/state": 0o700, "/log": 0o640} {
		info, err := os.Stat(dir + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got&^want != 0 {
			t.Errorf("%s: got mode %o, want %o at most", path, got, want)
		}
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}
