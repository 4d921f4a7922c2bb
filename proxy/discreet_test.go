package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// indiscreet matches what clients must not see: addresses, accounts with their hosts, paths,
// settings.
var indiscreet = regexp.MustCompile(`127\.0\.0\.|localhost|:\d{4,5}\b|@'|/(tmp|var)/|innodb|dial|denied to`)

// The reason of a sequence server's failure is for those who run the proxy: a client gets the name
// of the sequence and what to do, and the log has the rest.
func TestClientsAreToldNothingOfTheSequenceServer(t *testing.T) {
	for name, test := range map[string]struct {
		servers int
		breaks  func(t *testing.T, servers []*mysqltest.Server, account string)
		error   string // of a number
		logged  string
	}{
		"down": {1, func(t *testing.T, s []*mysqltest.Server, _ string) { killAll(t, s) }, "sequence server is unavailable", "refused"},
		"two":  {2, func(t *testing.T, s []*mysqltest.Server, _ string) { killAll(t, s) }, "unavailable", "refused"},
		"unfit": {1, func(t *testing.T, s []*mysqltest.Server, _ string) {
			s[0].Exec(t, "SET GLOBAL innodb_flush_log_at_trx_commit = 0")
		}, "is unfit", "innodb_flush_log_at_trx_commit"},
		"a right": {1, func(t *testing.T, s []*mysqltest.Server, account string) {
			s[0].Exec(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+account)
		}, "is unfit", "the user may not"},
	} {
		t.Run(name, func(t *testing.T) {
			servers := []*mysqltest.Server{mysqltest.Start(t), mysqltest.Start(t)}[:test.servers]
			const account = "numbers@'%'"
			for _, s := range servers {
				s.Exec(t, "CREATE USER "+account+" IDENTIFIED BY 'n'", "GRANT ALL ON *.* TO "+account, "CREATE DATABASE numbers")
			}
			e := newEnv(t, setup{
				Proxy: func(o *proxy.Options) {
					o.Users = append(o.Users,
						proxy.User{Name: "plain", Password: "p"}, proxy.User{Name: "clerk", Password: "p", Sequences: []string{"photos", "b*"}})
				},
				Backend: func(o *backend.Options) {
					credentials := o.Probe
					o.Shards[0].Login = &credentials
				},
				Sequence: func(o *sequence.Options) {
					o.Servers = nil
					for _, s := range servers {
						o.Servers = append(o.Servers, sequence.ServerOptions{Addr: s.Addr(), User: "numbers", Password: "n", Database: "numbers"})
					}
					divide(t, *o)
				},
			})
			c := e.Conn(t, e.Schemas[0], nil)
			eventually(t, "the first sequence", func() bool { return run(t.Context(), c, "text", "CREATE SEQUENCE IF NOT EXISTS never") == nil })
			exec(t, c, "CREATE SEQUENCE photos CACHE 1", "CREATE SEQUENCE in_order ORDER", "CREATE TABLE t (id BIGINT UNSIGNED)", "CREATE TABLE filled (id BIGINT UNSIGNED, n INT)",
				"CREATE SEQUENCE fills OWNED BY filled.id CACHE 1", "SELECT NEXTVAL('photos')", "SELECT NEXTVAL('in_order')", "INSERT INTO filled (n) VALUES (1)")
			test.breaks(t, servers, account)
			e.impatient()
			for _, s := range servers {
				if s.Running() { // open connections keep the rights that they had at the login
					for _, id := range strings.Fields(connectionsOf(t, s, "numbers")) {
						s.Exec(t, "KILL "+id)
					}
				}
			}
			failed := 0
			for _, user := range []string{"", "plain", "clerk"} {
				conn := c
				if user != "" {
					conn = e.Conn(t, e.Schemas[0], func(c *mysql.Config) { c.User, c.Passwd = user, "p" })
				}
				for _, text := range []string{
					"SELECT NEXTVAL('photos', 500)", "SELECT NEXTVAL('photos', 500), NEXTVAL('PHOTOS')", "INSERT INTO t VALUES (NEXTVAL('photos', 500))", "SELECT NEXTVAL('nobody')",
					"SELECT LASTVAL('never')", "SELECT NEXTVAL('in_order')", "INSERT INTO filled (n) VALUES (2), (3), (4)", "INSERT INTO filled VALUES (500, 2)", "SHOW CREATE SEQUENCE nobody",
				} {
					err := run(t.Context(), conn, "text", text)
					if err == nil || user == "" && strings.HasPrefix(text, "SHOW") {
						continue // the proxy answers these itself, and admins see more
					}
					failed++
					if found := indiscreet.FindString(err.Error()); found != "" {
						t.Errorf("%s, by %q: %v has %q", text, user, err, found)
					}
					if strings.Contains(text, "'photos'") && !strings.Contains(strings.ToLower(err.Error()), "photos") {
						t.Errorf("%s, by %q: %v does not name the sequence", text, user, err)
					}
				}
				if user != "" {
					if warned := warnings(t, conn, "SHOW SEQUENCES"); indiscreet.MatchString(warned) {
						t.Errorf("SHOW SEQUENCES as %s: got the warning %s, want none of the server", user, warned)
					}
				}
			}
			if failed < 10 {
				t.Errorf("%d statements failed, want most", failed)
			}
			checkError(t, "a number", run(t.Context(), c, "text", "SELECT NEXTVAL('photos', 5000)"), 1105, `sequence "photos"`, test.error, "log")
			logged := false
			for _, line := range e.Logs.FilterMessage("client told of no number").All() {
				logged = logged || strings.Contains(fmt.Sprint(line.ContextMap()), servers[0].Addr()) && strings.Contains(fmt.Sprint(line.ContextMap()), test.logged)
			}
			if !logged {
				t.Errorf("the log has no reason: %v", e.Logs.FilterMessage("client told of no number").All())
			}
			for _, s := range servers {
				if !s.Running() {
					if err := s.Restart(); err != nil {
						t.Fatal(err)
					}
				}
				s.Exec(t, "GRANT ALL ON *.* TO "+account, "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
			}
			eventually(t, "numbers again", func() bool { return run(t.Context(), c, "text", "SELECT NEXTVAL('photos', 500)") == nil })
		})
	}
}

func killAll(t *testing.T, servers []*mysqltest.Server) {
	t.Helper()
	for _, s := range servers {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// connectionsOf lists the ids of an account's connections to a server.
func connectionsOf(t *testing.T, s *mysqltest.Server, user string) string {
	t.Helper()
	var ids sql.NullString
	if err := s.DB(t, "").QueryRow("SELECT GROUP_CONCAT(id SEPARATOR ' ') FROM information_schema.processlist WHERE user = ?", user).Scan(&ids); err != nil {
		t.Fatal(err)
	}
	return ids.String
}

// warnings runs a query and returns the rows of SHOW WARNINGS, or its error.
func warnings(t *testing.T, c *sql.Conn, query string) (all string) {
	t.Helper()
	if rows, err := c.QueryContext(context.Background(), query); err != nil {
		return err.Error()
	} else {
		for rows.Next() {
		}
		_ = rows.Close()
	}
	_, rows := table(t, c, "SHOW WARNINGS")
	return fmt.Sprint(rows)
}
