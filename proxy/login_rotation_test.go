package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// A client's password and the server's may change one after the other, in either order.
func TestEitherPasswordLetsInWhicheverTheServerKnows(t *testing.T) {
	const user = "rotating"
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Start(t)}, Proxy: func(o *proxy.Options) {
		o.Users = append(o.Users, proxy.User{Name: user, Password: "the new one", OldPassword: "the old one"})
	}})
	server := e.Servers[0]
	server.Exec(t, fmt.Sprintf("CREATE USER %s@'%%' IDENTIFIED BY 'x'", user))
	t.Cleanup(func() { server.Exec(t, fmt.Sprintf("DROP USER %s@'%%'", user)) })
	db := server.DB(t, "")
	refused := func() (n int) {
		var name string
		if err := db.QueryRowContext(context.Background(), "SHOW GLOBAL STATUS LIKE 'Aborted_connects'").Scan(&name, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The server counts a refusal after it has sent it.
	wantRefused := func(what string, before, want int) {
		t.Helper()
		n := refused() - before
		for end := time.Now().Add(wireTimeout); n < want && time.Now().Before(end); n = refused() - before {
			time.Sleep(5 * time.Millisecond)
		}
		if n != want {
			t.Errorf("%s: the server refused %d logins, want %d", what, n, want)
		}
	}
	logIn := func(password string) error {
		return e.tryLogin(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = user, password })
	}
	use := func(password string) (string, error) {
		conn := e.open(t, e.Addr(), "", func(m *mysql.Config) { m.User, m.Passwd = user, password })
		var who sql.NullString
		err := conn.QueryRowContext(context.Background(), "SELECT SUBSTRING_INDEX(USER(), '@', 1)").Scan(&who)
		return who.String, err
	}
	for _, password := range []string{"the old one", "the new one"} {
		server.Exec(t, fmt.Sprintf("ALTER USER %s@'%%' IDENTIFIED BY '%s'", user, password))
		for _, given := range []string{"the old one", "the new one"} {
			before := refused()
			if who, err := use(given); err != nil || who != user {
				t.Errorf("the client gives %s, the server knows %s: got %s, %v", given, password, who, err)
			}
			want := 0
			if given != password {
				want = 1
			}
			wantRefused("the client gives "+given+", the server knows "+password, before, want)
		}
	}
	for _, password := range []string{"", "another", "the old one "} {
		checkError(t, "login with "+password, logIn(password), 1045, "Access denied for user '"+user+"'")
	}
	// A server that accepts neither password refuses by itself.
	server.Exec(t, fmt.Sprintf("ALTER USER %s@'%%' IDENTIFIED BY 'neither'", user))
	before := refused()
	_, err := use("the new one")
	checkError(t, "a server with another password", err, 1045, "Access denied for user '"+user+"'")
	wantRefused("a server with another password", before, 2)
	for _, entry := range e.Logs.All() {
		if text := fmt.Sprint(entry.Message, entry.ContextMap()); strings.Contains(text, "the old one") || strings.Contains(text, "the new one") {
			t.Errorf("a password was logged: %s", text)
		}
	}
}

// A session that is open uses the passwords of a reload: on its way to a shard, when its statement
// is ended, and when it reads a column of its own account.
func TestASessionUsesThePasswordsOfAReload(t *testing.T) {
	const statement = "SELECT GET_LOCK('held', 60)"
	type passwords struct{ now, old string }
	for what, test := range map[string]struct {
		then   []passwords // of the configuration, one reload after the other
		server string      // the password on the servers; "": the one until now
	}{
		"before the server's change":              {then: []passwords{{"two", "one"}}},
		"before it, without the old one":          {then: []passwords{{"two", ""}}},
		"after it":                                {then: []passwords{{"two", "one"}}, server: "two"},
		"the end of the change":                   {then: []passwords{{"two", "one"}, {"two", ""}}, server: "two"},
		"another change, before the server's":     {then: []passwords{{"two", "one"}, {"three", "two"}}, server: "two"},
		"a change that is taken back in the file": {then: []passwords{{"one", "two"}}, server: "two"},
	} {
		t.Run(what, func(t *testing.T) {
			user := "rotating"
			set := func(o *proxy.Options, p passwords) {
				o.Users = append(o.Users[:1:1], proxy.User{Name: user, Password: p.now, OldPassword: p.old, Admin: true})
			}
			e := newEnv(t, setup{Shards: 2, Proxy: func(o *proxy.Options) { set(o, passwords{now: "one"}) }})
			for _, s := range e.Servers {
				account(t, s, user+"@'%'", "IDENTIFIED BY 'one'")
			}
			e.Servers[0].Exec(t, "CREATE TABLE `"+e.Schemas[0]+"`.photos (id BIGINT UNSIGNED PRIMARY KEY)")
			e.Servers[1].Exec(t, "CREATE DATABASE `"+e.Schemas[0]+"`")
			t.Cleanup(func() { e.Servers[1].Exec(t, "DROP DATABASE `"+e.Schemas[0]+"`") })
			e.hold(t, 0)
			db := e.Servers[0].DB(t, "")
			running := func() (n int) {
				if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE info = ?", statement).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			}
			password := "one"
			login := wireLogin{User: &user, Password: &password, Schema: e.Schemas[0], Packing: notPacked}
			var all []*wire
			for range 4 {
				w := e.Wire(t, e.Addr(), login)
				w.query("DO 1")
				all = append(all, w)
			}
			w, killed, vanishing, moving := all[0], all[1], all[2], all[3]
			for _, p := range test.then {
				e.Reload(t, func(_ *backend.Options, o *proxy.Options) { set(o, p) })
			}
			if test.server != "" {
				for _, s := range e.Servers {
					s.Exec(t, fmt.Sprintf("ALTER USER %s@'%%' IDENTIFIED BY '%s'", user, test.server))
				}
			}
			for _, sql := range []string{"USE " + e.Schemas[1], "CREATE SEQUENCE photos OWNED BY `" + e.Schemas[0] + "`.photos.id"} {
				w.sendText(sql)
				w.answerOK(sql)
			}
			for _, end := range []struct {
				what string
				of   *wire
				by   func()
			}{
				{"KILL QUERY", killed, func() {
					w.sendText("KILL QUERY " + killed.id())
					w.answerOK("KILL QUERY")
				}},
				{"the end of the client", vanishing, func() { vanishing.nc.Close() }},
			} {
				end.of.sendText(statement)
				eventually(t, "the statement runs", func() bool { return running() == 1 })
				end.by()
				if !eventually(t, end.what+" ends the statement", func() bool { return running() == 0 }) {
					return
				}
			}
			e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[0].Nodes = []string{e.Servers[1].Addr()} })
			if got := moving.rows("SELECT @@port")[0]; got != e.port(1) {
				t.Errorf("after a change of the node: got port %s, want %s", got, e.port(1))
			}
		})
	}
}
