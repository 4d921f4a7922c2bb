package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"seqproxy/admin"
	"seqproxy/backend"
	"seqproxy/internal/logs"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// marked is in every password and literal of the test below, and nowhere else. It has no quote and
// nothing that JSON escapes, and is looked for in capitals and in hexadecimal, too.
const marked = "qZ7secretW"

// TestTheLogHoldsNoSecret logs everything, runs logins and statements of all kinds that have
// passwords and literals in them, many of which fail with errors of the server that quote them, and
// searches the log as it is written.
func TestTheLogHoldsNoSecret(t *testing.T) {
	core, seen := observer.New(zapcore.DebugLevel)
	cores := []zapcore.Core{core} // this core leaves nothing out
	files := map[string]string{"json": filepath.Join(t.TempDir(), "json"), "console": filepath.Join(t.TempDir(), "console")}
	var written []*logs.Log
	for format, path := range files {
		l, err := logs.Open(logs.Options{Level: "debug", JSON: format == "json", Output: path})
		if err != nil {
			t.Fatal(err)
		}
		written, cores = append(written, l), append(cores, l.Logger().Core())
	}
	log := zap.New(zapcore.NewTee(cores...))

	server := mysqltest.Start(t) // the test kills it in the end
	serverTLS, clientTLS := testTLS()
	e := newEnv(t, setup{
		Servers: []*mysqltest.Server{server},
		Sequence: func(o *sequence.Options) {
			o.Logger = log
		},
		Backend: func(o *backend.Options) { o.Logger = log },
		Proxy: func(o *proxy.Options) {
			o.Logger, o.SlowStatement, o.TLS, o.RelayLogins, o.MaxStatement = log, time.Nanosecond, serverTLS, true, 20_000
			o.Users = append(o.Users,
				proxy.User{Name: "listed", Password: marked + "1", OldPassword: marked + "2", Admin: true},
				// The server has another password for this user.
				proxy.User{Name: "absent", Password: marked + "3"})
			o.Admin = admin.NewSequences(o.Sequences.(*sequence.Sequences), nil)
		},
	})
	server.Exec(t, "CREATE USER listed@'%' IDENTIFIED BY '"+marked+"1'", "GRANT ALL ON *.* TO listed@'%' WITH GRANT OPTION",
		"CREATE USER absent@'%' IDENTIFIED BY 'another'",
		"CREATE USER relayed@'%' IDENTIFIED BY '"+marked+"4'", "GRANT ALL ON *.* TO relayed@'%'")

	for user, passwords := range map[string][]string{
		"listed": {"1", "2", "wrong", ""}, "absent": {"3", "wrong"}, "relayed": {"4", "wrong"}, "nobody": {"", "5"},
	} {
		for _, password := range passwords {
			password = marked + password
			for _, l := range []wireLogin{
				{}, {TLS: clientTLS}, {Schema: e.Schemas[0]}, {Schema: "no_such_schema"}, {Attrs: protocol.Attrs{}},
			} {
				l.User, l.Password = &user, &password
				w, err := e.tryWire(t, e.Addr(), l)
				if err != nil {
					continue // some of these logins must fail
				}
				for _, other := range [][2]string{{"listed", "1"}, {"listed", "wrong"}} {
					for _, plugin := range []string{"mysql_native_password", "caching_sha2_password"} {
						if next, err := e.tryWire(t, e.Addr(), l); err == nil {
							next.change(other[0], marked+other[1], "", plugin)
							next.nc.Close()
						}
					}
				}
				w.nc.Close()
			}
		}
	}

	pool := e.DB(t, e.Schemas[0], nil)
	c := one(t, pool)
	exec(t, c, "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, a VARCHAR(60) UNIQUE, n INT, CHECK (n <> 13)) ENGINE=InnoDB",
		"CREATE SEQUENCE photos", "SET sql_mode = 'STRICT_ALL_TABLES'", "INSERT INTO t (a) VALUES ('"+marked+"')")
	hash := fmt.Sprintf("%x", marked)
	statements := []string{
		"INSERT INTO t (a) VALUES ('%s')", // a duplicate entry
		"INSERT INTO t (id, a) VALUES (NEXTVAL('photos'), '%s')",
		"INSERT INTO t (id, a) SELECT NEXTVAL('photos'), '%s'",
		"REPLACE INTO t (id, a) VALUES (NEXTVAL('photos'), CONCAT('%[1]s', '%[1]s'))",
		"UPDATE t SET n = '%s'", "UPDATE t SET a = REPEAT('%s', 100)", "UPDATE t SET id = NEXTVAL('photos'), n = '%s'",
		"SELECT * FROM t WHERE a = '%s'", "SELECT NEXTVAL('photos'), '%s'", "SELECT NEXTVAL('photos') FROM t WHERE a = '%s'",
		"SELECT * FROM t WHERE a = \"%s !\" -- %[1]s", "SELECT '%s", "SELECT it's '%[1]s', 'a'", "SELECT /* %s", "SELECT 1 AS `x` '%s' FROM",
		"SELECT EXTRACTVALUE('<a/>', '%s(')", "SELECT JSON_EXTRACT('%s', '$')", "SELECT CAST('%s' AS SIGNED) + (SELECT 1 UNION SELECT 2)",
		"SELECT DATE '%s'", "SELECT x'" + hash + "', 0x" + hash, "CALL no_such_procedure('%s')", "KILL '%s'", "DO GET_LOCK('%s', 0)",
		"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '%s'", "SET @a = '%s'", "SET NAMES '%s'", "SET sql_mode = '%s'", "SET character_set_client = '%s'",
		"PREPARE p FROM 'SELECT ''%s'''", "EXECUTE p", "EXECUTE IMMEDIATE 'SELECT NEXTVAL(''photos''), ''%s'' FROM'", "LOAD DATA LOCAL INFILE '/%s' INTO TABLE t",
		"CREATE USER someone@'%%' IDENTIFIED BY '%s'", "ALTER USER someone@'%%' IDENTIFIED BY '%s'", "SET PASSWORD FOR someone@'%%' = '%s'",
		"SET PASSWORD FOR someone@'%%' = PASSWORD('%s')", "SET PASSWORD = '%s' FROM", "GRANT SELECT ON *.* TO someone@'%%' IDENTIFIED BY '%s'",
		"CREATE USER other@'%%' IDENTIFIED WITH mysql_native_password AS '*%s'", "CREATE USER other@'%%' IDENTIFIED BY %s", "DROP USER someone@'%%'",
		"CHANGE MASTER TO MASTER_PASSWORD = '%s'", "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD = '%s'",
		"CREATE SEQUENCE other COMMENT '%s'", "ALTER SEQUENCE photos COMMENT '%s'", "SHOW SEQUENCES LIKE '%s'", "SELECT SETVAL('photos', '%s')",
		"SHOW SEQPROXY STATUS LIKE '%s'", "SEQPROXY '%s'", "CREATE SEQUENCE third START WITH '%s'",
		"SELECT '" + strings.Repeat("x", 18_000) + "%s'", "SELECT '%[1]s" + strings.Repeat("x", 30_000) + "%[1]s'", "SELECT '%s' FROM no_such_table; SELECT '%[1]s'",
	}
	for _, charset := range []string{"", "latin1", "gbk"} {
		for _, mode := range []string{"STRICT_ALL_TABLES", "STRICT_ALL_TABLES,ANSI_QUOTES", "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES"} {
			w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
			w.query("SET sql_mode = '" + mode + "'")
			if charset != "" {
				w.query("SET NAMES " + charset)
			}
			for _, sql := range statements {
				if strings.Contains(sql, "%") {
					sql = fmt.Sprintf(sql, marked)
				}
				sql, _, _ = strings.Cut(sql, "%!(EXTRA")
				if strings.HasPrefix(sql, "LOAD") {
					w.doFile(protocol.ComQuery, sql, append(packet([]byte("1\t"+marked+"\n")), 0, 0, 0, 0))
					continue
				}
				w.query(sql)
			}
			w.nc.Close()
		}
	}
	ctx := context.Background()
	for _, sql := range statements {
		if strings.Contains(sql, "%") {
			sql, _, _ = strings.Cut(fmt.Sprintf(sql, marked), "%!(EXTRA")
		}
		if p, err := c.PrepareContext(ctx, sql); err == nil && !strings.HasPrefix(sql, "LOAD") {
			if rows, err := p.QueryContext(ctx); err == nil {
				_ = rows.Close()
			}
			_ = p.Close()
		}
	}
	for _, sql := range []string{
		"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (id, a) VALUES (NEXTVAL('photos'), ?)", "UPDATE t SET n = ?", "SELECT NEXTVAL(?)", "SELECT ?", "DO ?",
	} {
		_, _ = c.ExecContext(ctx, sql, marked)
	}

	// A statement whose client goes away, and one whose server dies.
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), '"+marked+"a'")))
	e.awaitStatement(server, "SELECT SLEEP(100), '"+marked+"a'")
	w.nc.Close()
	w = e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	w.send(packet(command(protocol.ComQuery, "SELECT SLEEP(100), '"+marked+"b'")))
	e.awaitStatement(server, "SELECT SLEEP(100), '"+marked+"b'")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session ends", func() bool {
		return seen.FilterMessage("session ended with its backend connection").Len() > 0
	})
	_, _ = c.ExecContext(ctx, "INSERT INTO t (id, a) VALUES (NEXTVAL('photos'), '"+marked+"')")
	_, _ = c.Close(), pool.Close() // both are broken
	e.stop()

	for _, l := range written {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	var all bytes.Buffer
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "event"})
	for _, line := range seen.All() {
		text, err := encoder.EncodeEntry(line.Entry, line.Context)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text.Bytes())
		all.WriteByte('\n')
	}
	texts := map[string]string{"everything": all.String()}
	for format, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[format] = string(text)
	}
	for format, text := range texts {
		lines := 0
		for line := range strings.Lines(text) {
			lines++
			lower := strings.ToLower(line)
			for _, secret := range []string{strings.ToLower(marked), hash, strings.ToLower(e.Password)} {
				if strings.Contains(lower, secret) {
					t.Errorf("%s: the log holds a secret: %.1000s", format, line)
				}
			}
			if format == "json" && !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %s", line)
			}
		}
		if lines < 100 {
			t.Errorf("%s: got %d lines, want more: the test has not seen much", format, lines)
		}
	}
	for _, event := range []string{"slow statement", "login refused", "session closed", "session ended with its backend connection", "audit"} {
		if seen.FilterMessage(event).Len() == 0 {
			t.Errorf("nothing was logged of %q", event)
		}
	}
}
