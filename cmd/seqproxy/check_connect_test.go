package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"seqproxy/internal/inspect"
	"seqproxy/test/mysqltest"
)

// checks runs check -connect in this process.
func checks(t *testing.T, file string, flags ...string) (r report, err error) {
	t.Helper()
	var out bytes.Buffer
	p := &program{out: &out, err: &out}
	err = p.run(context.Background(), append([]string{"check", "-config", file, "-connect", "-json"}, flags...))
	if errJSON := json.Unmarshal(out.Bytes(), &r); errJSON != nil {
		t.Fatalf("%v: %v\n%s", errJSON, err, out.String())
	}
	return r, err
}

func (r *report) text() string {
	var b strings.Builder
	r.writeText(&b)
	return b.String()
}

// finds returns the findings of a level whose text contains all parts.
func (r *report) finds(level inspect.Level, parts ...string) (all []inspect.Finding) {
	for _, f := range r.Findings {
		whole := f.Where + ": " + f.Check + ": " + f.Text
		has := f.Level == level
		for _, part := range parts {
			has = has && strings.Contains(whole, part)
		}
		if has {
			all = append(all, f)
		}
	}
	return all
}

// state is a state of a server that check -connect reports. In its statements and configuration,
// SCHEMA is a schema. ACCOUNT is the account of the proxy, with the password hush-hush. APP is the
// account of an application, with the same password.
type state struct {
	name   string
	config string // tables in addition to those of all states
	rights string // of ACCOUNT in SCHEMA
	set    []string
	level  inspect.Level
	parts  []string
	mend   []string // statements that repair it, instead of the finding's
	undo   []string // statements for the states that follow
}

const allRights = "SELECT, INSERT, UPDATE, DELETE, CREATE"

const aTable = "CREATE TABLE SCHEMA.sequence (name VARCHAR(50) NOT NULL PRIMARY KEY, id BIGINT UNSIGNED NOT NULL DEFAULT 0) ENGINE=InnoDB"

// aShard makes the server a shard, too.
const aShard = `
[[shard]]
name = "photos"
[[shard.node]]
address = "ADDRESS"
`

// run brings the server into the state, checks for the finding, follows its advice, and checks
// again.
func (c state) run(t *testing.T, s *mysqltest.Server) {
	schema := s.Schema(t)
	user, app := schema+"p", schema+"a"
	fill := strings.NewReplacer("SCHEMA", schema, "ACCOUNT", user, "APP", app, "ADDRESS", s.Addr(), "SOCKET", s.Socket())
	exec := func(statements ...string) {
		t.Helper()
		for _, text := range statements {
			s.Exec(t, fill.Replace(text))
		}
	}
	exec("CREATE USER `ACCOUNT`@'%' IDENTIFIED BY 'hush-hush'", "CREATE USER `APP`@'%' IDENTIFIED BY 'hush-hush'", "GRANT SELECT ON `SCHEMA`.* TO `APP`@'%'")
	if c.rights == "" {
		c.rights = allRights
	}
	exec("GRANT " + c.rights + " ON SCHEMA.* TO `ACCOUNT`@'%'")
	t.Cleanup(func() { exec("DROP USER IF EXISTS `ACCOUNT`@'%'", "DROP USER IF EXISTS `APP`@'%'") })
	file := write(t, "seqproxy.toml", fill.Replace(`
listen = "127.0.0.1:0"
max_connections = 100
admin_users = ["APP"]
`+before(c.config)+`
[[user]]
name = "APP"
password = "hush-hush"
`+tables(c.config)))
	exec(c.set...)
	r, err := checks(t, file)
	found := r.finds(c.level, c.parts...)
	if len(found) == 0 {
		exec(c.undo...)
		t.Fatalf("got %v and no %s of %q:\n%s", err, c.level, c.parts, r.text())
	}
	if (r.Wrong > 0) != (err != nil) {
		t.Errorf("got %v with\n%s", err, r.text())
	}
	if c.mend != nil {
		exec(c.mend...)
	} else {
		for _, f := range found {
			if len(f.Mend) == 0 {
				t.Errorf("no statement mends it: %+v", f)
			}
			for _, text := range f.Mend {
				s.Exec(t, strings.ReplaceAll(text, "<the password>", "hush-hush"))
			}
		}
	}
	r, _ = checks(t, file)
	if found := r.finds(c.level, c.parts...); len(found) > 0 {
		t.Errorf("after what mends it:\n%s", r.text())
	}
	exec(c.undo...)
}

// before returns the keys of a state's configuration before its first table, and tables returns the
// rest.
func before(config string) string {
	if i := strings.Index("\n"+config, "\n["); i >= 0 {
		return config[:i]
	}
	return config
}

func tables(config string) string {
	rest := config[len(before(config)):]
	if !strings.Contains(rest, "[sequence]") {
		rest = "[sequence]\ndatabase = 'SCHEMA'\n" + rest
	}
	if !strings.Contains(rest, "[[sequence.server]]") {
		rest += "\n[[sequence.server]]\naddress = 'ADDRESS'\nuser = 'ACCOUNT'\npassword = 'hush-hush'\n"
	}
	return rest
}

func TestCheckTellsOfEveryStateOfASequenceServerWithTheStatementThatMendsIt(t *testing.T) {
	s := mysqltest.StartUnsynced(t, "--log-bin=binlog", "--server-id=7", "--sync-binlog=1")
	states := []state{
		{
			name: "no table", config: "[sequence]\ndatabase = 'SCHEMA'\ncreate_table = false", level: inspect.Wrong,
			parts: []string{"table: ", ".`sequence`: it does not exist"},
		},
		{
			name: "an engine that loses what was committed", set: []string{strings.Replace(aTable, "InnoDB", "MyISAM", 1)},
			level: inspect.Wrong, parts: []string{"table: ", "its engine is MyISAM"},
		},
		{
			name: "an id that is no integer", set: []string{strings.Replace(aTable, "BIGINT UNSIGNED", "DECIMAL(30,2)", 1)},
			level: inspect.Wrong, parts: []string{"table: ", "does not count in whole numbers"},
		},
		{
			name: "an id that ends early", set: []string{strings.Replace(aTable, "BIGINT UNSIGNED", "INT UNSIGNED", 1)},
			level: inspect.Warning, parts: []string{"table: ", "ends at 4294967295"},
		},
		{
			name: "two rows of one name", set: []string{strings.Replace(aTable, " PRIMARY KEY", "", 1)},
			level: inspect.Wrong, parts: []string{"table: ", "no unique key is on `name` alone"},
		},
		{
			name: "a table beside it that loses what was committed", set: []string{aTable, "CREATE TABLE SCHEMA.sequence_options LIKE SCHEMA.sequence", "ALTER TABLE SCHEMA.sequence_options ENGINE=MyISAM"},
			level: inspect.Wrong, parts: []string{"table: ", "sequence_options`: its engine is MyISAM"},
		},
		{
			name: "names that compare differently", set: []string{
				aTable, "CREATE TABLE SCHEMA.sequence_options LIKE SCHEMA.sequence",
				"ALTER TABLE SCHEMA.sequence_options MODIFY name VARCHAR(50) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL",
			},
			level: inspect.Wrong, parts: []string{"table: ", "sequence_options`: its column `name` is varchar(50) CHARACTER SET latin1 COLLATE latin1_bin"},
		},
		{
			name: "a log that is flushed once a second", set: []string{aTable, "SET GLOBAL innodb_flush_log_at_trx_commit = 0"},
			level: inspect.Wrong, parts: []string{"settings: innodb_flush_log_at_trx_commit is 0"},
		},
		{
			name: "a log that is flushed to the system", set: []string{aTable, "SET GLOBAL innodb_flush_log_at_trx_commit = 2"},
			level: inspect.Warning, parts: []string{"settings: innodb_flush_log_at_trx_commit is 2"},
		},
		{
			name: "a binary log that is behind", set: []string{aTable, "SET GLOBAL sync_binlog = 0"},
			level: inspect.Warning, parts: []string{"settings: sync_binlog is 0: a crash of the machine can take the last reservations back"},
		},
		{
			name: "read only", set: []string{aTable, "SET GLOBAL read_only = 1"}, undo: []string{"SET GLOBAL read_only = 0"},
			level: inspect.Wrong, parts: []string{"sequence server", "settings: it is read only"}, mend: []string{"SET GLOBAL read_only = 0"},
		},
		{
			name: "connections that are closed soon", set: []string{aTable, "SET GLOBAL wait_timeout = 5"}, undo: []string{"SET GLOBAL wait_timeout = 28800"},
			level: inspect.Warning, parts: []string{"settings: wait_timeout is 5 seconds"},
		},
		{
			name: "a clock that is ahead", set: []string{aTable, "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 100'"},
			level: inspect.Warning, parts: []string{"clock: its clock is ", "ahead of this machine's"}, mend: []string{"SET GLOBAL init_connect = ''"}, undo: []string{"SET GLOBAL init_connect = ''"},
		},
		{
			name: "a clock that is behind", set: []string{aTable, "SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() - 3600'"},
			level: inspect.Warning, parts: []string{"clock: its clock is ", "behind this machine's"}, mend: []string{"SET GLOBAL init_connect = ''"}, undo: []string{"SET GLOBAL init_connect = ''"},
		},
		{
			name: "an account that is not there", set: []string{"DROP USER `ACCOUNT`@'%'"},
			level: inspect.Wrong, parts: []string{"sequence server", "login: as ", "Access denied"},
		},
		{
			name: "another password", set: []string{"ALTER USER `ACCOUNT`@'%' IDENTIFIED BY 'another'"},
			level: inspect.Wrong, parts: []string{"sequence server", "login: as ", "Access denied"},
		},
		{
			name: "no right at all", rights: "SHOW VIEW", set: []string{aTable},
			level: inspect.Wrong, parts: []string{"rights: "},
		},
		{
			name: "rights by a role", rights: "SHOW VIEW", set: []string{aTable, "CREATE ROLE r_SCHEMA", "GRANT " + allRights + " ON SCHEMA.* TO r_SCHEMA", "GRANT r_SCHEMA TO `ACCOUNT`@'%'"},
			level: inspect.Wrong, parts: []string{"rights: "}, mend: []string{defaultRole(s)}, undo: []string{"DROP ROLE r_SCHEMA"},
		},
		{
			name: "no ticket table", config: "[[ticket]]\ntable = 'SCHEMA.tickets64'", set: []string{aTable, "GRANT LOCK TABLES ON SCHEMA.* TO `ACCOUNT`@'%'"},
			level: inspect.Wrong, parts: []string{"table: ", ".`tickets64`: it does not exist"}, mend: []string{"CREATE TABLE SCHEMA.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)"},
		},
		{
			name: "a ticket table whose triggers are hidden", config: "[[ticket]]\ntable = 'SCHEMA.tickets64'", rights: allRights + ", LOCK TABLES",
			set:   []string{aTable, "CREATE TABLE SCHEMA.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)"},
			level: inspect.Wrong, parts: []string{"table: ", ".`tickets64`: the user may not see whether it has a trigger"}, mend: []string{"GRANT TRIGGER ON SCHEMA.* TO `ACCOUNT`@'%'"},
		},
		{
			name: "a ticket table with a trigger", config: "[[ticket]]\ntable = 'SCHEMA.tickets64'", rights: allRights + ", LOCK TABLES, TRIGGER",
			set: []string{
				aTable, "CREATE TABLE SCHEMA.tickets64 (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY)",
				"CREATE TRIGGER SCHEMA.note BEFORE INSERT ON SCHEMA.tickets64 FOR EACH ROW SET @note = 1",
			},
			level: inspect.Wrong, parts: []string{"table: ", ".`tickets64`: it has a trigger"},
		},
	}
	for _, c := range states {
		t.Run(c.name, func(t *testing.T) {
			c.run(t, s)
		})
	}
}

// defaultRole enables the account's role.
func defaultRole(s *mysqltest.Server) string {
	if s.IsMariaDB() {
		return "SET DEFAULT ROLE r_SCHEMA FOR `ACCOUNT`@'%'"
	}
	return "SET DEFAULT ROLE r_SCHEMA TO `ACCOUNT`@'%'"
}
