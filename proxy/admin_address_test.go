package proxy_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

// watcher may see everything at the admin address, stranger may not.
const watcher, stranger = "watcher", "stranger"

// withWatcher adds both to the users.
func withWatcher(o *proxy.Options) {
	o.Users = append(o.Users,
		proxy.User{Name: watcher, Password: watcher, Monitor: true, Sequences: []string{"album*"}},
		proxy.User{Name: stranger, Password: stranger})
}

// as logs in as one of these users.
func as(user string) func(*mysql.Config) {
	return func(c *mysql.Config) { c.User, c.Passwd = user, user }
}

// asWire is as for a wire.
func asWire(user string) wireLogin { return wireLogin{User: &user, Password: &user} }

func TestAtTheAdminAddressLoginWorksWithEveryServerDown(t *testing.T) {
	const addr = "127.0.0.1:1" // nothing listens there
	e := newEnv(t, setup{
		AdminAddress: true, Proxy: withWatcher,
		Backend:  func(o *backend.Options) { o.Shards[0].Nodes = []string{addr} },
		Sequence: func(o *sequence.Options) { o.Servers[0].Addr, o.AllocateTimeout = addr, time.Second },
	})
	for _, change := range []func(*mysql.Config){nil, as(watcher), func(c *mysql.Config) { c.DBName = "any_schema" }} {
		c := e.AdminConn(t, change)
		if got := value(t, c, "SELECT @@version_comment LIMIT 1"); got != "seqproxy, admin address" {
			t.Errorf("version comment: got %q", got)
		}
		if got := value(t, c, "SELECT VERSION()"); got == "" {
			t.Error("VERSION(): got an empty text, want a version")
		}
	}
	if out := e.CLI(t, e.AdminAddr(), "", "SELECT CONNECTION_ID() AS known;\nSHOW WARNINGS;\n\\s\n"); !strings.Contains(out, "known") || strings.Contains(out, "ERROR") {
		t.Errorf("command-line client:\n%s", out)
	}
}

func TestAtTheAdminAddressOnlyTheProxyIsAsked(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		withWatcher(o)
		o.Tickets = []proxy.TicketTable{{Table: "sequence"}}
		o.LastInsertIDExact = true
	}})
	version := value(t, e.Conn(t, "", nil), "SELECT VERSION()")
	for _, interpolate := range []bool{false, true} {
		c := e.AdminConn(t, func(c *mysql.Config) {
			c.InterpolateParams, c.MaxAllowedPacket = interpolate, 0 // the driver asks the server for max_allowed_packet
			c.Params = map[string]string{"charset": "utf8mb4", "autocommit": "1", "time_zone": "'+00:00'"}
		})
		if got := value(t, c, "SELECT VERSION()"); got != version {
			t.Errorf("version: got %s, want that of the server, %s", got, version)
		}
		exec(t, c, "SET NAMES utf8mb4", "USE anything", "CREATE SEQUENCE IF NOT EXISTS photos", "ALTER SEQUENCE photos CACHE 7", "START TRANSACTION", "COMMIT")
		for _, q := range []struct{ sql, want string }{
			{"SELECT DATABASE()", "anything"},
			{"SELECT @@max_allowed_packet", "16777216"},
			{"SELECT 1", "1"},
			{"SELECT LAST_INSERT_ID()", "0"},
			{"SELECT USER()", e.User + "@127.0.0.1"},
			{"SELECT @@autocommit", "1"},
		} {
			if got := value(t, c, q.sql); got != q.want {
				t.Errorf("%s: got %s, want %s", q.sql, got, q.want)
			}
		}
		if err := c.QueryRowContext(t.Context(), "SHOW WARNINGS").Scan(new(string), new(string)); err != sql.ErrNoRows {
			t.Errorf("SHOW WARNINGS: got %v, want no row", err)
		}
		if got := column(t, c, "SHOW SEQUENCES LIKE ?", interpolate, "pho%"); interpolate && got != "photos" {
			t.Errorf("SHOW SEQUENCES: got %q, want photos", got)
		}
		if got := column(t, c, "SHOW SEQUENCES", true); got != "photos" {
			t.Errorf("SHOW SEQUENCES: got %q, want photos", got)
		}
		for _, sql := range []string{
			"SELECT * FROM t", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (NEXTVAL('photos'))", "SELECT NEXTVAL('photos')", "SELECT LASTVAL('photos')",
			"SELECT SETVAL('photos', 9)", "CREATE TABLE t (a INT)", "SHOW CREATE TABLE t", "CALL p()", "DO 1", "LOCK TABLES t READ", "SELECT 1; SELECT 2",
			"CREATE DATABASE d", "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'", "PREPARE s FROM 'SELECT 1'",
			"SELECT @x", "TABLE t", "KILL 5", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "SET GLOBAL max_connections = 1",
		} {
			wantError(t, c, 1235, sql, "admin address", "SHOW SEQPROXY HELP", e.Addr())
			if strings.HasPrefix(sql, "LOCK") {
				continue // MySQL's drivers do not prepare it
			}
			s, err := c.PrepareContext(t.Context(), sql)
			if err == nil {
				_, err = s.Exec()
			}
			checkError(t, "prepared "+sql, err, 1235)
		}
		exec(t, c, "DROP SEQUENCE photos")
		if err := c.PingContext(t.Context()); err != nil {
			t.Errorf("ping: %v", err)
		}
	}
	w := e.Wire(t, e.AdminAddr(), wireLogin{})
	for _, cmd := range []struct {
		cmd protocol.Command
		arg string
		ok  bool
	}{
		{protocol.ComPing, "", true},
		{protocol.ComInitDB, "x", true},
		{protocol.ComResetConn, "", true},
		{protocol.ComSetOption, "\x00\x00", true},
		{protocol.ComFieldList, "t\x00", false},
		{protocol.ComStatistics, "", true},
		{protocol.ComProcessInfo, "", false},
		{protocol.ComRefresh, "\x01", false},
		{protocol.ComQuery, "", false},
		{protocol.ComCreateDB, "x", false},
		{protocol.ComStmtPrepare, "SELECT NEXTVAL('photos')", false},
		{protocol.ComBinlogDump, strings.Repeat("\x00", 10), false},
		{protocol.ComRegisterSlave, strings.Repeat("\x00", 17), false},
	} {
		got := w.do(cmd.cmd, cmd.arg)
		if ok := got[4] != 0xff; ok != cmd.ok {
			t.Errorf("command %d: got %q, want success %v", cmd.cmd, got[4:], cmd.ok)
		}
	}
	if n := e.Proxy.Sessions(); n < 1 {
		t.Errorf("sessions: got %d", n)
	}
}

// column returns the first column of a query's one row. fits says whether the query can have a
// parameter.
func column(t *testing.T, c *sql.Conn, query string, fits bool, args ...any) string {
	t.Helper()
	rows, err := c.QueryContext(t.Context(), query, args...)
	if err != nil {
		if fits {
			t.Errorf("%s: %v", query, err)
		}
		return ""
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	first, n := "", 0
	into := make([]any, len(names))
	into[0] = &first
	for i := range into[1:] {
		into[i+1] = new(sql.RawBytes)
	}
	for ; rows.Next(); n++ {
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil || n != 1 {
		t.Errorf("%s: got %d rows, %v, want one", query, n, err)
	}
	return first
}

func TestWhoMayLogInAtTheAdminAddress(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		withWatcher(o)
		o.RelayLogins = true
	}})
	e.Servers[0].Exec(t, "CREATE USER byserver@'%' IDENTIFIED BY 'byserver'", "GRANT ALL ON *.* TO byserver@'%'")
	defer e.Servers[0].Exec(t, "DROP USER byserver")
	e.Wire(t, e.Addr(), asWire("byserver")).ping("") // the server checks this login
	for user, want := range map[string]uint16{"byserver": 1045, "nobody": 1045, stranger: 1227} {
		refusal := e.refusal(t, e.AdminAddr(), asWire(user))
		if refusal.Code != want || want == 1227 && (!strings.Contains(refusal.Message, "monitor_users") || refusal.State != "42000") {
			t.Errorf("%s: got %v, want %d", user, refusal, want)
		}
	}
	wrong := "wrong"
	if refusal := e.refusal(t, e.AdminAddr(), wireLogin{Password: &wrong}); refusal.Code != 1045 {
		t.Errorf("wrong password: got %v, want 1045", refusal)
	}
	w := e.Wire(t, e.AdminAddr(), asWire(watcher))
	if got := w.change(e.User, e.Password, "", "mysql_native_password"); got[4] != 0 {
		t.Errorf("change to an admin: got %q", got)
	}
	if err := serverError(t, w.change(stranger, stranger, "", "mysql_native_password")); err.Code != 1227 {
		t.Errorf("change to a user without the right: got %v, want 1227", err)
	}
}

func TestTheAdminAddressHasRoomWhileClientsHaveNone(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		withWatcher(o)
		o.MaxConnections, o.MaxUserConnections, o.MaxLogins = 2, 1, 1
	}})
	var atAdmin []*wire
	for range 3 { // logins at the admin address take no client's place
		atAdmin = append(atAdmin, e.Wire(t, e.AdminAddr(), asWire(watcher)))
	}
	one := e.Wire(t, e.Addr(), asWire(stranger))
	e.Wire(t, e.Addr(), wireLogin{}) // this user is an admin, too
	if refusal := e.refusal(t, e.Addr(), wireLogin{}); refusal.Code != 1040 {
		t.Errorf("a third client: got %v, want 1040", refusal)
	}
	e.Wire(t, e.AdminAddr(), wireLogin{}).ping("")
	atAdmin[0].ping("")
	one.do(protocol.ComPing, "")

	for len(atAdmin) < 99 {
		atAdmin = append(atAdmin, e.Wire(t, e.AdminAddr(), asWire(watcher)))
	}
	if refusal := e.refusal(t, e.AdminAddr(), wireLogin{}); refusal.Code != 1040 {
		t.Errorf("one too many at the admin address: got %v, want 1040", refusal)
	}
	atAdmin[5].Close()
	e.reconnect(t, e.AdminAddr(), wireLogin{})
}

func TestMonitorsSeeEverythingAndChangeNothing(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher})
	exec(t, e.Conn(t, "", nil), "CREATE SEQUENCE photos")
	for port, c := range map[string]*sql.Conn{"data": e.Conn(t, "", func(c *mysql.Config) { as(watcher)(c); c.DBName = "" }), "admin": e.AdminConn(t, as(watcher))} {
		if got := column(t, c, "SHOW SEQUENCES", true); got != "photos" {
			t.Errorf("%s: SHOW SEQUENCES: got %q, want photos, which is not among the user's sequences", port, got)
		}
		if got := column(t, c, "SHOW CREATE SEQUENCE photos", true); got != "photos" {
			t.Errorf("%s: SHOW CREATE SEQUENCE: got %q", port, got)
		}
		column(t, c, "SHOW SEQPROXY SEQUENCE SERVERS", true)
		for _, sql := range []string{
			"CREATE SEQUENCE albums", "ALTER SEQUENCE photos CACHE 5", "DROP SEQUENCE photos", "FLUSH SEQUENCES", "CHECK SEQUENCE photos",
			"REPAIR SEQUENCE photos", "SEQPROXY ADD SEQUENCE SERVER 'db2:3306'",
		} {
			wantError(t, c, 1227, sql, "admin_users")
		}
	}
	other := e.Conn(t, "", as(stranger))
	wantError(t, other, 1227, "SHOW SEQPROXY SEQUENCE SERVERS", "monitor_users")
	wantError(t, other, 1227, "SEQPROXY ADD SEQUENCE SERVER 'db2:3306'", "admin_users")
}

func TestAMonitorMayBeAnAccountOfTheServer(t *testing.T) {
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.RelayLogins, o.Monitors = true, []string{"byserver"} }})
	e.Servers[0].Exec(t, "CREATE USER byserver@'%' IDENTIFIED BY 'byserver'", "GRANT ALL ON *.* TO byserver@'%'")
	defer e.Servers[0].Exec(t, "DROP USER byserver")
	c := e.Conn(t, "", as("byserver"))
	column(t, c, "SHOW SEQPROXY SEQUENCE SERVERS", true)
	wantError(t, c, 1227, "CREATE SEQUENCE photos", "admin_users")
}

func TestStatementsToTheProxyCanBeTurnedOffWhereClientsConnect(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: func(o *proxy.Options) {
		withWatcher(o)
		o.AdminAddressOnly = true
	}})
	c := e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos")
	column(t, c, "SHOW SEQUENCES", true)
	for _, sql := range []string{"SHOW SEQPROXY SEQUENCE SERVERS", "SEQPROXY ADD SEQUENCE SERVER 'db2:3306'", "SEQPROXY NONSENSE", "EXPLAIN FORMAT=ROUTE SELECT 1"} {
		wantError(t, c, 1235, sql, e.AdminAddr(), "admin.data_port")
	}
	for _, sql := range []string{"SHOW SEQPROXY SEQUENCE SERVERS", "EXPLAIN FORMAT=ROUTE SELECT 1"} {
		s, err := c.PrepareContext(t.Context(), sql)
		if err == nil {
			_, err = s.Exec()
		}
		checkError(t, "prepared "+sql, err, 1235, e.AdminAddr())
	}
	other := e.Conn(t, "", as(stranger))
	// The error names the missing right, and not the admin address.
	wantError(t, other, 1227, "SHOW SEQPROXY SEQUENCE SERVERS", "monitor_users")
	wantError(t, other, 1227, "EXPLAIN FORMAT=ROUTE SELECT 1", "admin_users")
	column(t, e.AdminConn(t, nil), "SHOW SEQPROXY SEQUENCE SERVERS", true)
	for _, prepared := range []bool{false, true} {
		if got := explainRoute(t, e.AdminConn(t, nil), "SELECT 1", prepared); got.Kind != "relay" {
			t.Errorf("EXPLAIN FORMAT=ROUTE at the admin address: got %+v", got)
		}
	}
}

func TestKILLAtTheAdminAddressEndsASessionOfAClient(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true, Proxy: withWatcher})
	victim := e.Conn(t, "", nil)
	id := value(t, victim, "SELECT CONNECTION_ID()")
	wantError(t, e.AdminConn(t, as(watcher)), 1095, "KILL "+id)
	exec(t, victim, "DO 1")
	exec(t, e.AdminConn(t, nil), "KILL "+id)
	eventually(t, "the session is gone", func() bool { return victim.PingContext(context.Background()) != nil })
}

func TestTheAdminAddressIsTheLastToEnd(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true})
	admin := e.Wire(t, e.AdminAddr(), wireLogin{})
	client := e.Wire(t, e.Addr(), wireLogin{})
	client.query("BEGIN")
	ctx, cancel := context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- e.Shutdown(ctx) }()
	eventually(t, "no client is accepted", func() bool { return !e.Proxy.Accepting() })
	e.Wire(t, e.AdminAddr(), wireLogin{}).ping("the drain began")
	admin.ping("the drain began")
	client.send(packet(command(protocol.ComQuery, "COMMIT")))
	client.ended()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	admin.ended()
}

func TestNobodyWaitsForAnAdminToLeave(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true})
	admin := e.Wire(t, e.AdminAddr(), wireLogin{})
	e.Proxy.StopAccepting()
	ctx, cancel := context.WithTimeout(context.Background(), wireTimeout)
	defer cancel()
	if err := e.Proxy.Wait(ctx); err != nil {
		t.Errorf("the wait for clients: %v", err)
	}
	admin.ping("the wait")
	past, done := context.WithCancel(context.Background())
	done()
	if err := e.Shutdown(past); err != nil {
		t.Errorf("shutdown at once with an idle session: got %v, want none cut", err)
	}
	admin.ended()
}

// TestWhatGUIsAskWhereClientsConnectIsTheServers: statements of GUIs reach the server, although the
// admin address answers the same texts itself.
func TestWhatGUIsAskWhereClientsConnectIsTheServers(t *testing.T) {
	e := newEnv(t, setup{AdminAddress: true})
	p := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0]})
	p.Direct.query("CREATE TABLE photos (id INT PRIMARY KEY, title VARCHAR(20) COMMENT 'of it')")
	for _, sql := range []string{
		"select @@version_comment limit 1", "SELECT DATABASE(), VERSION(), @@hostname, @@lower_case_table_names", "SHOW VARIABLES LIKE 'lower_case_%'",
		"SHOW SESSION VARIABLES LIKE 'sql_mode'", "SHOW GLOBAL VARIABLES LIKE 'version_comment'", "SHOW SESSION STATUS LIKE 'Ssl_cipher'",
		"SHOW DATABASES", "SHOW SCHEMAS LIKE 'my%'", "SHOW FULL TABLES", "SHOW TABLE STATUS LIKE 'photos'", "SHOW FULL COLUMNS FROM photos", "SHOW KEYS FROM photos",
		"SHOW CREATE TABLE photos", "SHOW ENGINES", "SHOW CHARACTER SET", "SHOW COLLATION LIKE 'utf8mb4%'", "SHOW PLUGINS", "SHOW TRIGGERS", "SHOW EVENTS",
		"SHOW PROCEDURE STATUS WHERE Db = DATABASE()", "SHOW GRANTS", "SHOW WARNINGS", "DESCRIBE photos", "EXPLAIN FORMAT=JSON SELECT 1",
		"SELECT * FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME", "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()",
		"SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()", "SELECT * FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = DATABASE()",
	} {
		p.steady(sql)
	}
	p.same(protocol.ComFieldList, "photos\x00")
}
