package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/internal/inspect"
	"seqproxy/test/mysqltest"
)

// sequenceConfig is a configuration with the given sequence servers, "a", or "a,b" for a group.
// Their account is seq.
func sequenceConfig(t *testing.T, sequence string, servers ...string) string {
	t.Helper()
	var b strings.Builder
	for _, s := range servers {
		key := fmt.Sprintf("address = %q", s)
		if strings.Contains(s, ",") {
			key = `nodes = ["` + strings.ReplaceAll(s, ",", `", "`) + `"]`
		}
		b.WriteString("[[sequence.server]]\n" + key + "\nuser = 'seq'\npassword = 'hush-hush'\n")
	}
	return write(t, "seqproxy.toml", "listen = '127.0.0.1:0'\nhttp.listen = ''\nadmin.listen = ''\nadmin_users = ['app']\n[[user]]\nname = 'app'\npassword = 'app'\n[sequence]\n"+sequence+"\n"+b.String())
}

// sequenceAccount creates the account seq on a server.
func sequenceAccount(t *testing.T, s *mysqltest.Server, global ...string) {
	t.Helper()
	s.Exec(t, "CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "GRANT "+allRights+" ON seqproxy.* TO seq@'%'")
	for _, right := range global {
		s.Exec(t, "GRANT "+right+" ON *.* TO seq@'%'")
	}
}

func TestCheckTellsWhatIsWrongWithAGroup(t *testing.T) {
	g := mysqltest.StartGroup(t, 2)
	status, word := "SLAVE MONITOR", "SLAVE"
	if !g.Nodes[0].IsMariaDB() {
		status, word = "REPLICATION CLIENT", "REPLICA"
	}
	sequenceAccount(t, g.Nodes[0])
	g.CatchUp(t, 1, 0)
	file := sequenceConfig(t, "", strings.Join(g.Addrs(), ","))
	expect := func(level inspect.Level, parts ...string) []inspect.Finding {
		t.Helper()
		r, _ := checks(t, file)
		found := r.finds(level, parts...)
		if len(found) == 0 {
			t.Errorf("no %s of %q:\n%s", level, parts, r.text())
		}
		return found
	}
	gone := func(level inspect.Level, parts ...string) {
		t.Helper()
		r, _ := checks(t, file)
		if len(r.finds(level, parts...)) != 0 {
			t.Errorf("got the finding again after its advice:\n%s", r.text())
		}
	}

	lacks := []string{"rights: ", "whether it replicates from another cannot be seen: "}
	found := expect(inspect.Warning, lacks...)
	if len(found) != 2 {
		t.Errorf("got %d findings, want one for each node", len(found))
	}
	for i, f := range found {
		if want := "sequence server " + g.Nodes[i].Addr(); f.Where != want {
			t.Errorf("got it at %q, want %q", f.Where, want)
		}
	}
	if want := "GRANT " + status + " ON *.* TO 'seq'@'%'"; len(found[0].Mend) != 1 || found[0].Mend[0] != want {
		t.Errorf("got %q, want %s", found[0].Mend, want)
	}
	g.Nodes[0].Exec(t, found[0].Mend...)
	g.CatchUp(t, 1, 0)
	gone(inspect.Warning, lacks...)
	if r, err := checks(t, file, "-strict"); r.Wrong+r.Warnings > 0 && !strings.Contains(r.text(), "sync_binlog") || r.Wrong > 0 {
		t.Errorf("a group as it should be: got %v:\n%s", err, r.text())
	}
	expect(inspect.OK, "nodes: one of 2 can be written to")

	// A stopped replica.
	g.Cut(t, 1)
	stopped := []string{"sequence server " + g.Nodes[1].Addr(), "replicates from nobody"}
	found = expect(inspect.Warning, stopped...)
	if len(found) == 1 {
		if len(found[0].Mend) != 1 || found[0].Mend[0] != "START "+word {
			t.Errorf("got %q, want START %s", found[0].Mend, word)
		}
		g.Nodes[1].Exec(t, found[0].Mend...)
	}
	g.CatchUp(t, 1, 0)
	gone(inspect.Warning, stopped...)

	// Two primaries.
	g.Nodes[1].Exec(t, "STOP "+word, "SET GLOBAL read_only = 0")
	both := []string{"nodes: ", "can both be written to and are no cluster"}
	if found = expect(inspect.Wrong, both...); len(found) == 1 {
		if len(found[0].Mend) != 1 {
			t.Errorf("got %q, want one statement", found[0].Mend)
		}
		g.Nodes[1].Exec(t, found[0].Mend...)
	}
	gone(inspect.Wrong, both...)

	// None.
	g.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	for _, f := range expect(inspect.Wrong, "nodes: none of its nodes can be written to") {
		if len(f.Mend) > 0 || !strings.HasPrefix(f.Hint, "bring the primary back") {
			t.Errorf("got %q and the hint %q, want that the primary is to be brought back", f.Mend, f.Hint)
		}
	}
	g.Nodes[0].Exec(t, "SET GLOBAL read_only = 0")

	// A primary that is a replica of another server.
	g.Nodes[1].Exec(t, "START "+word, "SET GLOBAL read_only = 0")
	g.Nodes[0].Exec(t, "SET GLOBAL read_only = 1")
	replicates := []string{"nodes: it can be written to and replicates from 127.0.0.1"}
	group := file
	file = sequenceConfig(t, "", g.Nodes[1].Addr()) // alone it may be one of a pair
	expect(inspect.Warning, "replication: it can be written to and replicates from 127.0.0.1")
	file = group
	if found = expect(inspect.Wrong, replicates...); len(found) == 1 {
		g.Nodes[1].Exec(t, found[0].Mend...)
	}
	gone(inspect.Wrong, replicates...)
	g.Nodes[0].Exec(t, "SET GLOBAL read_only = 0")

	// One server under two names.
	file = sequenceConfig(t, "", g.Nodes[0].Addr()+",unix:"+g.Nodes[0].Socket())
	expect(inspect.Wrong, "nodes: ", "are one server")
}

func TestCheckComparesThePlanOfSeveralServersWithTheConfiguration(t *testing.T) {
	one, other := mysqltest.StartUnsynced(t), mysqltest.StartUnsynced(t)
	for _, s := range []*mysqltest.Server{one, other} {
		sequenceAccount(t, s)
	}
	expect := func(file string, level inspect.Level, parts ...string) []inspect.Finding {
		t.Helper()
		r, _ := checks(t, file)
		found := r.finds(level, parts...)
		if len(found) == 0 {
			t.Errorf("no %s of %q:\n%s", level, parts, r.text())
		}
		return found
	}
	both := sequenceConfig(t, "block = 1000", one.Addr(), other.Addr())
	expect(both, inspect.Wrong, "plan: none is in force, and 2 sequence servers are configured")
	expect(sequenceConfig(t, "interleave = 'step'", one.Addr(), other.Addr()), inspect.OK, "plan: none is in force; the first start makes one of 2 servers, which count in steps")
	expect(sequenceConfig(t, "", one.Addr(), "unix:"+one.Socket()), inspect.Wrong, "addresses: ", "are one server")

	// Counters that are too high for the first plan.
	one.Exec(t, "CREATE DATABASE seqproxy", strings.ReplaceAll(aTable, "SCHEMA", "seqproxy"), "INSERT INTO seqproxy.sequence VALUES ('photos', 7)")
	other.Exec(t, "CREATE DATABASE seqproxy", strings.ReplaceAll(aTable, "SCHEMA", "seqproxy"), "INSERT INTO seqproxy.sequence VALUES ('photos', 9)")
	expect(sequenceConfig(t, "interleave = 'step'", one.Addr(), other.Addr()), inspect.Wrong, "table: ", "others would give the same ones")
	t.Run("the proxy itself says so at its start", func(t *testing.T) {
		text, err := os.ReadFile(sequenceConfig(t, "interleave = 'step'", one.Addr(), other.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		awaitInFile(t, startSubject(t, string(text)).log, "others would give the same ones")
	})
	one.Exec(t, "DELETE FROM seqproxy.sequence")
	other.Exec(t, "DELETE FROM seqproxy.sequence")

	// Names with different collations.
	other.Exec(t, "ALTER TABLE seqproxy.sequence MODIFY name VARCHAR(50) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL")
	names := []string{"sequence server " + other.Addr(), "names: the column `name` is varchar(50) CHARACTER SET latin1"}
	found := expect(both, inspect.Warning, names...)
	other.Exec(t, found[0].Mend...)
	if r, _ := checks(t, both); len(r.finds(inspect.Warning, names...)) > 0 {
		t.Errorf("after %q: got\n%s", found[0].Mend, r.text())
	}

	// A plan in force.
	p := begin(t, "-config", sequenceConfig(t, "block = 1000", one.Addr()))
	if got := query(t, p.address(), "app", "app", "CREATE SEQUENCE photos; SELECT NEXTVAL('photos'); SEQPROXY ADD SEQUENCE SERVER '"+other.Addr()+"' WITH DIRECT WRITERS STOPPED"); got == "" {
		t.Fatal("no number")
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	if r, err := checks(t, both, "-strict"); err != nil || len(r.finds(inspect.OK, "plan: 1 is in force: 2 servers, interleave block")) != 1 {
		t.Errorf("a plan as configured: got %v\n%s", err, r.text())
	}
	expect(sequenceConfig(t, "block = 500", one.Addr(), other.Addr()), inspect.Warning, "plan: sequence.block is 500, the plan in force has blocks of 1000")
	expect(sequenceConfig(t, "interleave = 'step'", one.Addr(), other.Addr()), inspect.Warning, `plan: sequence.interleave is "step", the plan in force divides by "block"`)
	expect(sequenceConfig(t, "", one.Addr()), inspect.Warning, "plan: the member "+other.Addr()+" of the plan in force is no [[sequence.server]]")
	third := mysqltest.StartUnsynced(t)
	sequenceAccount(t, third)
	expect(sequenceConfig(t, "", one.Addr(), other.Addr(), third.Addr()), inspect.Warning, "plan: "+third.Addr()+" is no member of the plan in force")
	// A restored copy of a member, at another address: the proxy uses the one at the plan's.
	third.Exec(t, "CREATE DATABASE seqproxy")
	for _, name := range []string{"sequence", "sequence_member"} {
		var create string
		if err := other.DB(t, "seqproxy").QueryRowContext(t.Context(), "SHOW CREATE TABLE "+name).Scan(&name, &create); err != nil {
			t.Fatal(err)
		}
		third.Exec(t, "USE seqproxy", create)
	}
	var id string
	if err := other.DB(t, "seqproxy").QueryRowContext(t.Context(), "SELECT id FROM sequence_member").Scan(&id); err != nil {
		t.Fatal(err)
	}
	third.Exec(t, "INSERT INTO seqproxy.sequence_member (id, plan) VALUES ('"+id+"', 1)")
	copied := sequenceConfig(t, "", one.Addr(), third.Addr())
	expect(copied, inspect.Warning, "plan: the member "+other.Addr()+" of the plan in force is no [[sequence.server]]")
	for _, found := range expect(copied, inspect.Warning, "plan: "+third.Addr()+" is no member of the plan in force") {
		if !strings.Contains(found.Hint, "it is a copy of a member") {
			t.Errorf("a copy: the hint is %q", found.Hint)
		}
	}
	// as after the death of a proxy whose proposal no other proxy saw
	other.Exec(t, "UPDATE seqproxy.sequence_plan SET state = 'proposed', interleave = 'step'")
	if r, err := checks(t, both); err != nil || len(r.finds(inspect.OK, "plan: 1 is in force: 2 servers, interleave block")) != 1 {
		t.Errorf("a proposal that has the number of the plan in force: got %v\n%s", err, r.text())
	}
	for _, s := range []*mysqltest.Server{one, other} {
		// as after the death of a proxy in the middle
		s.Exec(t, "INSERT INTO seqproxy.sequence_plan SELECT 2, uuid, 'frozen', coordinator, begun, changed, interleave, block, members, previous, ballot, floor "+
			"FROM seqproxy.sequence_plan WHERE number = 1")
	}
	expect(both, inspect.Wrong, "plan: a change to plan 2 is frozen")
}

// TestCheckEndsWhateverServersDo tries a server that accepts no connection, one that is silent, and
// one that stops in the middle.
func TestCheckEndsWhateverServersDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody was served
	stopped := mysqltest.StartUnsynced(t)
	sequenceAccount(t, stopped)
	defer mysqltest.StandStill(t, stopped.PID())()
	silent := mysqltest.SilentListener(t).String()
	for _, address := range []string{silent, l.Addr().String(), stopped.Addr()} {
		file := write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
[[user]]
name = "app"
[[sequence.server]]
address = "`+address+`"
user = "seq"
[[shard]]
name = "photos"
[[shard.node]]
address = "`+address+`"
`)
		begin := time.Now()
		r, err := checks(t, file, "-timeout", "2s")
		if len(r.finds(inspect.Wrong, "sequence server", "login")) != 1 || len(r.finds(inspect.Wrong, "shard photos", "login")) != 1 || err == nil {
			t.Errorf("%s: got %v:\n%s", address, err, r.text())
		}
		if took := time.Since(begin); took > patience {
			t.Errorf("%s: it took %v with -timeout 2s", address, took)
		}
	}
}

func TestCheckChangesNothing(t *testing.T) {
	s := mysqltest.StartUnsynced(t, "--log-bin=binlog", "--sync-binlog=1", "--server-id=9")
	s.Exec(t, "CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "CREATE USER app@'%' IDENTIFIED BY 'hush-hush'", "CREATE DATABASE seqproxy", "CREATE DATABASE album", "CREATE DATABASE ids",
		"GRANT SELECT ON seqproxy.* TO seq@'%'", "GRANT SELECT ON album.* TO app@'%'", "CREATE TABLE album.photos (id INT PRIMARY KEY)")
	db := s.DB(t, "")
	text := func(query string) (all string) {
		t.Helper()
		rows, err := db.Query(query)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close() //nolint:errcheck // all rows were read
		names, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			all += fmt.Sprintln(values)
		}
		return all
	}
	state := func() string {
		position := "SHOW BINARY LOG STATUS"
		if s.IsMariaDB() {
			position = "SHOW MASTER STATUS"
		}
		variables := "SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid%' AND Variable_name NOT IN ('timestamp', 'pseudo_thread_id', 'last_gtid')"
		return text(position) + text("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ORDER BY 1, 2") + text(variables)
	}
	config := write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
admin_users = ["app"]
[[user]]
name = "app"
password = "hush-hush"
[[sequence.server]]
address = "`+s.Addr()+`"
user = "seq"
password = "hush-hush"
[[ticket]]
table = "ids.tickets64"
[[bind]]
column = "photos.id"
sequence = "photos"
[[shard]]
name = "photos"
[[shard.node]]
address = "`+s.Addr()+`"
`)
	before := state()
	if r, err := checks(t, config); err == nil || len(r.finds(inspect.Wrong, "table: ", "`tickets64`: it does not exist, or the user may not see it")) != 1 {
		t.Errorf("with SELECT alone: got %v\n%s", err, r.text())
	}
	if after := state(); after != before {
		t.Errorf("check changed the server: before\n%safter\n%s", before, after)
	}
	s.Exec(t, "GRANT ALL PRIVILEGES ON *.* TO seq@'%'", "GRANT ALL PRIVILEGES ON *.* TO app@'%'")
	before = state()
	if r, _ := checks(t, config); len(r.finds(inspect.Wrong, "table: ", "`tickets64`: it does not exist")) != 1 {
		t.Errorf("without a table:\n%s", r.text())
	}
	if after := state(); after != before {
		t.Errorf("without a table check changed the server: before\n%safter\n%s", before, after)
	}
	s.Exec(t, strings.ReplaceAll(aTable, "SCHEMA", "seqproxy"),
		"CREATE TABLE ids.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO seqproxy.sequence VALUES ('photos', 4)")
	before = state()
	if r, err := checks(t, config); err != nil {
		t.Errorf("with all rights: got %v\n%s", err, r.text())
	}
	if after := state(); after != before {
		t.Errorf("with all rights check changed the server: before\n%safter\n%s", before, after)
	}
}

func TestCheckWithoutServersIsStillACheckOfTheFile(t *testing.T) {
	file := sequenceConfig(t, "", "127.0.0.1:1")
	p := begin(t, "check", "-config", file, "-connect")
	p.end(1)
	if got := p.stdout(); !strings.HasPrefix(got, file+" is right: ") || !strings.Contains(got, "\nwrong    sequence server 127.0.0.1:1: login: ") {
		t.Errorf("got\n%s", got)
	}
	if got, want := p.stderr(), "seqproxy: one thing is wrong\n"; got != want {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
	runs(t, 2, "", "seqproxy: -timeout must be above 0, is 0s\n", "check", "-config", file, "-connect", "-timeout", "0s")
	if r, err := checks(t, write(t, "bad.toml", "listen = '4'")); err == nil || len(r.finds(inspect.Wrong, "configuration: file: listen: must be host:port")) != 1 {
		t.Errorf("a file that is wrong, as JSON: got %v\n%s", err, r.text())
	}
}

func TestCheckTellsHowTheWayToAServerIsProtected(t *testing.T) {
	ca, stranger := mysqltest.NewCA(t), mysqltest.NewCA(t)
	with := mysqltest.StartUnsynced(t, ca.Server(t, "127.0.0.1").ServerArgs(ca)...)
	without := mysqltest.StartUnsynced(t, mysqltest.WithoutTLS(t)...)
	for _, s := range []*mysqltest.Server{with, without} {
		sequenceAccount(t, s)
	}
	for _, c := range []struct {
		server *mysqltest.Server
		tls    string
		level  inspect.Level
		text   string
	}{
		{with, "tls = 'VERIFY_IDENTITY'\ntls_ca_file = '" + ca.File + "'", inspect.OK, "login: as 'seq'@'%', over TLS"},
		{with, "tls = 'DISABLED'", inspect.OK, "login: as 'seq'@'%', without TLS"},
		{with, "tls = 'VERIFY_CA'\ntls_ca_file = '" + stranger.File + "'", inspect.Wrong, "certificate"},
		{without, "tls = 'REQUIRED'", inspect.Wrong, "TLS"},
	} {
		file := write(t, "seqproxy.toml", "listen = '127.0.0.1:0'\n[[user]]\nname = 'seq'\npassword = 'hush-hush'\n[[sequence.server]]\naddress = '"+c.server.Addr()+
			"'\nuser = 'seq'\npassword = 'hush-hush'\n"+c.tls+"\n[[shard]]\nname = 'photos'\n"+c.tls+"\n[[shard.node]]\naddress = '"+c.server.Addr()+"'\n")
		r, _ := checks(t, file)
		for _, where := range []string{"sequence server ", "shard photos node "} {
			if len(r.finds(c.level, where, "login: ", c.text)) != 1 {
				t.Errorf("%s: no %s of %q:\n%s", c.tls, c.level, c.text, r.text())
			}
		}
	}
}

func TestAnOldServerIsToldOf(t *testing.T) {
	probe := mysqltest.Shared(t)
	probe.OnMariaDB(t, "way to give it another version")
	for version, want := range map[string]struct {
		level inspect.Level
		text  string
	}{
		"10.4.34-MariaDB": {inspect.Warning, "MariaDB 10.4.34: the end of life of MariaDB 10.4 was 2024-06-18"},
		"10.1.48-MariaDB": {inspect.Wrong, "MariaDB 10.1.48 is not supported"},
	} {
		s := mysqltest.StartUnsynced(t, "--version="+version)
		sequenceAccount(t, s)
		r, err := checks(t, sequenceConfig(t, "", s.Addr()))
		if len(r.finds(want.level, "version: "+want.text)) != 1 || (err != nil) != (want.level == inspect.Wrong) {
			t.Errorf("%s: got %v\n%s", version, err, r.text())
		}
	}
}

// TestCheckIsCancelled: the caller's context bounds it, too.
func TestCheckIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := (&program{out: &strings.Builder{}, err: &strings.Builder{}}).run(ctx, []string{"check", "-connect", "-config", sequenceConfig(t, "", mysqltest.SilentListener(t).String())})
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want that something is wrong", err)
	}
}

func TestALoginThatLacksARightOnATableIsNotBlamedOnTheNetwork(t *testing.T) {
	denied := &mysql.MySQLError{Number: 1142, Message: "SELECT command denied to user 'seq'@'%' for table `mysql`.`wsrep_cluster`"}
	loginFailed(fmt.Errorf("read the configuration of its cluster: %w; to mend it: GRANT", denied), "seq", "", "sequence.server #1",
		func(check, text, hint string, mend ...string) {
			if check != "login" || !strings.Contains(text, "GRANT") || hint != "run the GRANT in this text, for 'seq'@'%'" || len(mend) > 0 {
				t.Errorf("got %s: %q, with the hint %q and %q", check, text, hint, mend)
			}
		})
}
