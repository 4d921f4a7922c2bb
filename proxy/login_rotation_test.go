package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

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
