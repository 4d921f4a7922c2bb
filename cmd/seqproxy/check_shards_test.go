package main

import (
	"testing"
	"time"

	"seqproxy/internal/inspect"
	"seqproxy/test/mysqltest"
)

// aBind binds a column of the shard to a sequence.
const aBind = aShard + "[[bind]]\ncolumn = 'SCHEMA.photos.id'\nsequence = 'photos'\n"

const aRow = "INSERT INTO SCHEMA.sequence VALUES ('photos', 5)"

func TestCheckTellsOfEveryStateOfAShardWithTheStatementThatMendsIt(t *testing.T) {
	s := mysqltest.StartUnsynced(t)
	states := []state{
		{
			name: "a user who is not there", config: aShard, set: []string{"DROP USER `APP`@'%'"},
			level: inspect.Wrong, parts: []string{"shard photos node ", "login: as ", "Access denied"},
		},
		{
			name: "a user with another password", config: aShard, set: []string{"ALTER USER `APP`@'%' IDENTIFIED BY 'another'"},
			level: inspect.Wrong, parts: []string{"shard photos node ", "login: as ", "Access denied"},
		},
		{
			name: "a shard's own account that is not there", config: "[[shard]]\nname = 'photos'\nuser = 'nobody_here'\npassword = 'hush-hush'\n[[shard.node]]\naddress = 'ADDRESS'\n", set: []string{aTable},
			level: inspect.Wrong, parts: []string{"shard photos node ", "login: as ", "nobody_here"}, undo: []string{"DROP USER nobody_here@'%'"},
		},
		{
			name: "a user whose schema is not there", config: "[[user]]\nname = 'ACCOUNT'\npassword = 'hush-hush'\nschema = 'SCHEMA_2'\n" + aShard, set: []string{"GRANT SELECT ON SCHEMA_2.* TO `ACCOUNT`@'%'"},
			level: inspect.Wrong, parts: []string{"login: as ", "Unknown database"}, undo: []string{"DROP DATABASE SCHEMA_2"},
		},
		{
			name: "a user who may not use his schema", config: "[[user]]\nname = 'ACCOUNT'\npassword = 'hush-hush'\nschema = 'SCHEMA_2'\n" + aShard, set: []string{"CREATE DATABASE SCHEMA_2"},
			level: inspect.Wrong, parts: []string{"login: as ", "denied"}, undo: []string{"DROP DATABASE SCHEMA_2"},
		},
		{
			name: "a node that is read only", config: aShard, set: []string{"SET GLOBAL read_only = 1"}, undo: []string{"SET GLOBAL read_only = 0"},
			level: inspect.Wrong, parts: []string{"shard photos node ", "settings: it is read only"},
		},
		{
			name: "a lax sql_mode", config: aShard, set: []string{"SET GLOBAL sql_mode = ''"},
			level: inspect.Warning, parts: []string{"settings: sql_mode is not strict"},
		},
		{
			name: "few connections", config: aShard, set: []string{"SET GLOBAL max_connections = 50"},
			level: inspect.Warning, parts: []string{"settings: max_connections is 50 there, and the proxy lets 100 clients in"},
		},
		{
			name: "no sequence for a column", config: aBind, set: []string{aTable, "CREATE TABLE SCHEMA.photos (id BIGINT UNSIGNED NOT NULL PRIMARY KEY)"},
			level: inspect.Wrong, parts: []string{"configuration: bind: ", `names "photos", which is no sequence`}, mend: []string{aRow},
		},
		{
			name: "no table", config: aBind, set: []string{aTable, aRow},
			level: inspect.Wrong, parts: []string{"configuration: bind: ", "no account sees such a table"}, mend: []string{"CREATE TABLE SCHEMA.photos (id BIGINT UNSIGNED NOT NULL PRIMARY KEY)"},
		},
		{
			name: "no column", config: aBind, set: []string{aTable, aRow, "CREATE TABLE SCHEMA.photos (title VARCHAR(20))"},
			level: inspect.Wrong, parts: []string{"configuration: bind: ", "has no such column"},
		},
		{
			name: "a small column", config: aBind, set: []string{aTable, aRow, "CREATE TABLE SCHEMA.photos (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)"},
			level: inspect.Warning, parts: []string{"configuration: bind: ", "ends at 4294967295"},
		},
		{
			name: "a column of text", config: aBind, set: []string{aTable, aRow, "CREATE TABLE SCHEMA.photos (id VARCHAR(30) NOT NULL PRIMARY KEY)"},
			level: inspect.Warning, parts: []string{"configuration: bind: ", "is varchar(30), which is no integer"},
		},
	}
	for _, c := range states {
		t.Run(c.name, func(t *testing.T) { c.run(t, s) })
	}
}

func TestCheckTellsHowShardsDiffer(t *testing.T) {
	one, other := mysqltest.StartUnsynced(t), mysqltest.StartUnsynced(t)
	servers := map[string]*mysqltest.Server{"shard one node " + one.Addr(): one, "shard other node " + other.Addr(): other}
	for _, s := range servers {
		s.Exec(t, "CREATE USER app@'%' IDENTIFIED BY 'hush-hush'", "CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "GRANT "+allRights+" ON seqproxy.* TO seq@'%'")
	}
	config := func(address string) string {
		return write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
max_connections = 100
default_shard = "one"
monitor_users = ["app", "mon"]
[[user]]
name = "app"
password = "hush-hush"
[[user]]
name = "mon"
password = "mon-mon"
[[sequence.server]]
address = "`+one.Addr()+`"
user = "seq"
password = "hush-hush"
[[shard]]
name = "one"
[[shard.node]]
address = "`+one.Addr()+`"
[[shard]]
name = "other"
[[shard.node]]
address = "`+address+`"
`)
	}
	file := config(other.Addr())
	if r, err := checks(t, file, "-strict"); err != nil || len(r.finds(inspect.OK, "all shards: ")) != 1 {
		t.Fatalf("servers that are alike: got %v:\n%s", err, r.text())
	}
	if r, _ := checks(t, file); len(r.finds(inspect.OK, "login: no account \"mon\"")) != 2 {
		t.Errorf("a user that only monitors, without an account on the server:\n%s", r.text())
	}
	for _, test := range []struct {
		name  string
		set   string // for the other server
		parts []string
		found int
		undo  string // "": use the findings' statements
	}{
		{"sql_mode", "SET GLOBAL sql_mode = 'ANSI_QUOTES,STRICT_TRANS_TABLES'", []string{"shard other node ", "settings: sql_mode is "}, 1, ""},
		{"wait_timeout", "SET GLOBAL wait_timeout = 600", []string{"shard other node ", "settings: wait_timeout is "}, 1, ""},
		{"clock", "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP(NOW(6)) + 100'", []string{"shard other node ", "clock: "}, 1, "SET GLOBAL init_connect = ''"},
		{"auto_increment", "SET GLOBAL auto_increment_increment = 2", []string{"auto_increment: "}, 1, ""},
		{"auto_increment by more", "SET GLOBAL auto_increment_increment = 3", []string{"auto_increment: "}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			other.Exec(t, test.set)
			r, err := checks(t, file)
			found := r.finds(inspect.Warning, test.parts...)
			if len(found) != test.found || err != nil {
				t.Fatalf("got %v, %d warnings of %q:\n%s", err, len(found), test.parts, r.text())
			}
			if _, err := checks(t, file, "-strict"); err == nil {
				t.Error("with -strict a warning is no error")
			}
			if test.undo != "" {
				other.Exec(t, test.undo)
			} else {
				for _, f := range found {
					servers[f.Where].Exec(t, f.Mend...)
				}
			}
			if r, _ := checks(t, file); len(r.finds(inspect.Warning, test.parts...)) != 0 {
				t.Errorf("after %q:\n%s", found[0].Mend, r.text())
			}
		})
	}
	t.Run("clocks", func(t *testing.T) { // each clock is within a second of this machine's
		one.Exec(t, "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP(NOW(6)) + 0.95'")
		other.Exec(t, "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP(NOW(6)) - 0.95'")
		for deadline := time.Now().Add(patience); ; { // after a slow answer a clock is not known well enough
			r, err := checks(t, file)
			if found := r.finds(inspect.Warning, "all servers: clock: the clock of ", " ahead of the clock of shard other node "+other.Addr()); len(found) == 1 && err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("got %v\n%s", err, r.text())
			}
		}
		one.Exec(t, "SET GLOBAL init_connect = ''")
		other.Exec(t, "SET GLOBAL init_connect = ''")
		if r, err := checks(t, file); err != nil || len(r.finds(inspect.Warning, "clock: ")) != 0 {
			t.Errorf("clocks that agree: got %v\n%s", err, r.text())
		}
	})
	t.Run("one server twice", func(t *testing.T) {
		if r, err := checks(t, config("unix:"+one.Socket())); err != nil || len(r.finds(inspect.Warning, "all shards: addresses: ", "are one server")) != 1 {
			t.Errorf("got %v:\n%s", err, r.text())
		}
	})
	t.Run("framing", func(t *testing.T) {
		behind := begin(t, "-config", write(t, "behind.toml", `
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
compression = false
[[user]]
name = "app"
password = "hush-hush"
[[sequence.server]]
address = "`+one.Addr()+`"
user = "seq"
password = "hush-hush"
[[shard]]
name = "other"
[[shard.node]]
address = "`+other.Addr()+`"
`))
		if r, err := checks(t, config(behind.address())); err != nil || len(r.finds(inspect.Warning, "all shards: framing: clients cannot use COMPRESS, which shard other node ")) != 1 {
			t.Errorf("got %v:\n%s", err, r.text())
		}
	})
}

// No client can write to a shard that was started so, whatever read_only says.
func TestCheckTellsOfAShardThatWasStartedReadOnly(t *testing.T) {
	one, other := mysqltest.StartUnsynced(t), mysqltest.StartUnsynced(t)
	for _, s := range []*mysqltest.Server{one, other} {
		s.Exec(t, "CREATE USER app@'%' IDENTIFIED BY 'hush-hush'", "CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "GRANT "+allRights+" ON seqproxy.* TO seq@'%'")
	}
	file := write(t, "seqproxy.toml", `
listen = "127.0.0.1:0"
max_connections = 100
[[user]]
name = "app"
password = "hush-hush"
[[sequence.server]]
address = "`+one.Addr()+`"
user = "seq"
password = "hush-hush"
[[shard]]
name = "other"
[[shard.node]]
address = "`+other.Addr()+`"
`)
	parts := []string{"shard other node " + other.Addr(), "settings: it was started with "}
	starts := map[string]string{"--innodb-read-only": "innodb_read_only", "--innodb-force-recovery=1": "innodb_force_recovery"}
	if one.IsMariaDB() {
		starts = map[string]string{"--innodb-read-only": "innodb_read_only", "--innodb-force-recovery=6": "innodb_read_only"}
	}
	for option, name := range starts {
		if err := other.RestartWith(option); err != nil {
			t.Fatal(err)
		}
		if r, err := checks(t, file); err == nil || len(r.finds(inspect.Wrong, append(parts, name)...)) != 1 {
			t.Errorf("%s: got %v:\n%s", option, err, r.text())
		}
		if err := other.RestartWith(); err != nil {
			t.Fatal(err)
		}
		if r, err := checks(t, file); err != nil || len(r.finds(inspect.Wrong, parts...)) != 0 {
			t.Errorf("after %s: got %v:\n%s", option, err, r.text())
		}
	}
}
