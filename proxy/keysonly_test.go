package proxy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
)

func TestWithoutAShardKeysAreServedAndAllElseIsAClearError(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	c := e.Conn(t, "any_schema", func(c *mysql.Config) {
		c.Params = map[string]string{"charset": "utf8mb4", "autocommit": "1", "time_zone": "'+00:00'"}
		c.MaxAllowedPacket = 0 // the driver asks the server
	})
	exec(t, c, "CREATE SEQUENCE photos", "SET NAMES utf8mb4", "START TRANSACTION")
	for _, q := range []struct{ sql, want string }{
		{"SELECT NEXTVAL('photos')", "1"},
		{"SELECT LAST_INSERT_ID()", "1"},
		{"SELECT nextval(photos) AS id", "2"},
		{"SELECT @@last_insert_id", "2"},
		{"SELECT DATABASE()", "any_schema"},
		{"SELECT @@max_allowed_packet", "16777216"},
		{"SELECT 1", "1"},
		{"SELECT @@autocommit", "1"},
	} {
		if got := value(t, c, q.sql); got != q.want {
			t.Errorf("%s: got %s, want %s", q.sql, got, q.want)
		}
	}
	exec(t, c, "COMMIT", "SET autocommit = 0", "ROLLBACK", "SET autocommit = 1")
	for _, sql := range []string{"SELECT NEXTVAL('photos')", "SELECT @@max_allowed_packet, 1, DATABASE()", "SELECT VERSION()"} {
		s, err := c.PrepareContext(context.Background(), sql)
		if err != nil {
			t.Errorf("prepare %s: %v", sql, err)
			continue
		}
		rows, err := s.Query()
		if err != nil || !rows.Next() {
			t.Errorf("execute %s: %v", sql, err)
			continue
		}
		rows.Close()
	}
	for _, sql := range []string{
		"SELECT * FROM t", "INSERT INTO t VALUES (NEXTVAL('photos'))", "INSERT INTO t VALUES (1)", "CREATE TABLE t (a INT)",
		"SHOW CREATE DATABASE d", "DROP DATABASE d", "CREATE DATABASE d", "CALL p()", "SELECT NOW() + 1", "DO 1", "LOCK TABLES t READ", "SELECT 1; SELECT 2",
		"SELECT * FROM t WHERE id = LAST_INSERT_ID()",
	} {
		wantError(t, c, 1235, sql, "only keys are served here", "[[shard]]")
	}
	const id = "SELECT @@max_allowed_packet, CONNECTION_ID()"
	if got := explainRoute(t, c, id, false); got.Kind != "own" {
		t.Errorf("%s: got %+v, want it answered here", id, got)
	}
	exec(t, c, id)
	wantError(t, c, 4091, "SELECT NEXTVAL('nothing')", "Unknown SEQUENCE: 'nothing'")
	if err := c.PingContext(context.Background()); err != nil {
		t.Errorf("ping: %v", err)
	}

	w := e.Wire(t, e.Addr(), wireLogin{})
	long := strings.Repeat("x", 257) // no server has such names
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
		{protocol.ComStmtPrepare, "SELECT * FROM t", false},
		{protocol.ComQuery, "", false},
		{protocol.ComCreateDB, "x", false},
		{protocol.ComInitDB, long, false},
		{protocol.ComQuery, "USE " + long, false},
		{protocol.ComQuery, "SET @" + long + " = 1", false},
		{protocol.ComQuery, "SET @@session." + long + " = 1", false},
		{protocol.ComQuery, "SET time_zone = '" + long + "'", true},
		{protocol.ComQuery, "SELECT @@time_zone", false},
	} {
		got := w.do(cmd.cmd, cmd.arg)
		if ok := got[4] != 0xff; ok != cmd.ok {
			t.Errorf("command %d: got %q, want success %v", cmd.cmd, got[4:], cmd.ok)
		}
	}
	if got := w.change(e.User, e.Password, "", "mysql_native_password"); got[4] != 0 {
		t.Errorf("change of user: got %x", got)
	}
	if got := w.rows("SELECT NEXTVAL('photos')")[0]; got == "" {
		t.Error("after a change of user: got no number, want one")
	}
	e.Servers[0].Exec(t, "DO 1") // the sequences' own connections are the only ones
	out := e.CLI(t, e.Addr(), "", "SELECT NEXTVAL('photos') AS n;\nSHOW SEQUENCES;\nSELECT * FROM t;\nSELECT LAST_INSERT_ID() > 2 AS x;\n")
	for _, want := range []string{"| n", "photos", "ERROR 1235 (42000)", "only keys are served here"} {
		if !strings.Contains(out, want) {
			t.Errorf("command-line client: got no %q in:\n%s", want, out)
		}
	}
	status := e.CLI(t, e.Addr(), "", "\\s\n")
	if !strings.Contains(status, "Server version:") || strings.Contains(status, "ERROR") {
		t.Errorf("status of the command-line client:\n%s", status)
	}
}

func TestWhatClientsSendWhenTheyConnectWorksWithoutAShard(t *testing.T) {
	e := newEnv(t, setup{Shards: noShards})
	for client, statements := range map[string][]string{
		"mariadb":  {"select @@version_comment limit 1", "SELECT DATABASE()", "select USER()"},
		"PyMySQL":  {"SET AUTOCOMMIT = 0", "SET NAMES utf8mb4", "SELECT VERSION()", "COMMIT", "ROLLBACK"},
		"PHP PDO":  {"SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'", "SET SESSION sql_mode='STRICT_ALL_TABLES'"},
		"mysql2":   {"SET autocommit=1", "SELECT 1"},
		"Rails":    {"SET  @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'),  @@SESSION.wait_timeout = 2147483", "SELECT VERSION()"},
		"Django":   {"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT VERSION()", "SELECT @@SQL_AUTO_IS_NULL"},
		"SQLAlch":  {"SELECT @@transaction_isolation", "SELECT @@tx_isolation", "SELECT @@sql_mode", "SELECT @@lower_case_table_names", "SELECT DATABASE()"},
		"JDBC":     {"/* mysql-connector-j-8 (Revision: x) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout", "SET character_set_results = NULL", "SET autocommit=1", "SET session transaction read write", "SELECT @@session.tx_read_only"},
		"MariaDBJ": {"set autocommit=1, session_track_schema=1, session_track_system_variables = CONCAT(@@global.session_track_system_variables,',tx_isolation'), sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES')", "SELECT @@max_allowed_packet, @@system_time_zone, @@time_zone, @@auto_increment_increment"},
		"ODBC":     {"SET SQL_AUTO_IS_NULL = 0", "SELECT CONNECTION_ID()"},
	} {
		w := e.Wire(t, e.Addr(), wireLogin{})
		for _, sql := range statements {
			if got := w.query(sql); got[4] == 0xff {
				t.Errorf("%s: %s: %v", client, sql, serverError(t, got))
			}
		}
	}
	w := e.Wire(t, e.Addr(), wireLogin{})
	// A variable reads as it was set, or is an error.
	for _, c := range []struct{ set, read, want string }{
		{"SET autocommit = 0", "@@autocommit", "0"},
		{"SET autocommit = ON", "@@autocommit", "1"},
		{"SET time_zone = '+02:00'", "@@time_zone", "+02:00"},
		{"SET SESSION wait_timeout = 77", "@@wait_timeout", "77"},
		{"SET wait_timeout = DEFAULT", "@@wait_timeout", "28800"},
		{"SET NAMES latin1", "@@character_set_client", "latin1"},
		{"SET NAMES utf8mb4 COLLATE utf8mb4_bin", "@@collation_connection", "utf8mb4_bin"},
		{"SET sql_mode = 'ANSI'", "@@sql_mode", ""},
		{"SET unique_checks = OFF", "@@unique_checks", ""},
		{"SET SESSION TRANSACTION ISOLATION LEVEL read  committed, READ ONLY", "@@tx_isolation", "READ-COMMITTED"},
		{"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "@@transaction_isolation", "SERIALIZABLE"},
		{"SET @nothing = 1", "@@tx_read_only", "1"},
		{"SET tx_isolation = 'READ-UNCOMMITTED'", "@@tx_isolation", "READ-UNCOMMITTED"},
		{"SET tx_read_only = ON", "@@tx_read_only", "1"},
		{"SET SESSION TRANSACTION READ WRITE", "@@session.tx_read_only", "0"},
		{"SET wait_timeout = @@wait_timeout + 1", "@@session.wait_timeout", ""},
		{"SET @nothing = 1", "@@global.wait_timeout", "28800"},
		{"SET transaction_isolation = @nothing", "@@tx_isolation", ""},
		{"SET @nothing = 1", "@@session.transaction_isolation", ""},
		{"SET tx_isolation = DEFAULT", "@@transaction_isolation", "REPEATABLE-READ"},
		{"SET SESSION TRANSACTION READ ONLY", "@@transaction_isolation", "REPEATABLE-READ"},
		{"SET @nothing = 1", "@@transaction_read_only", "1"},
		{"SET CHARACTER SET latin1", "@@character_set_client", ""},
		{"SET NAMES utf8", "@@character_set_results", "utf8"},
	} {
		if got := w.query(c.set); got[4] == 0xff {
			t.Errorf("%s: %v", c.set, serverError(t, got))
			continue
		}
		if c.want == "" {
			if err := serverError(t, w.query("SELECT "+c.read)); err.Code != 1235 {
				t.Errorf("%s: got %v, want 1235", c.set, err)
			}
			continue
		}
		if got := w.rows("SELECT " + c.read)[0]; got != c.want {
			t.Errorf("%s: got %s, want %s", c.set, got, c.want)
		}
	}
}
