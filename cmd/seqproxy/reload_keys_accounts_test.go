package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// accountCases change the login to the sequence server.
func (c *changing) accountCases(t *testing.T) []reloadCase {
	const top = "sequence.cache = 1\nsequence.outage_cover = '0s'\nsequence.allocate_timeout = '5s'"
	from := func(s *mysqltest.Server, keys string) part {
		return part{top: top, from: fmt.Sprintf("address = %q\n%s", s.Addr(), keys)}
	}
	file := func(name string) string { return fmt.Sprintf("%q", filepath.Join(c.dir, name)) }
	for _, s := range []*mysqltest.Server{c.first, c.other} {
		for _, name := range []string{"numbers1", "numbers2", "numbers3", "numbers4", "numbers5"} {
			s.Exec(t, "CREATE USER "+name+"@'%' IDENTIFIED BY 'one'", "GRANT ALL ON seqproxy.* TO "+name+"@'%'")
		}
	}
	c.other.Exec(t, "GRANT ALL ON *.* TO certified@'%'")
	t.Cleanup(func() {
		c.first.Exec(t, "DROP USER numbers1@'%', numbers2@'%', numbers3@'%', numbers4@'%', numbers5@'%'")
	})
	// usable reports whether numbers can be reserved.
	usable := func(_ *testing.T, _ *subject, running *sql.Conn) string {
		if valueOf(running, "SELECT IF(NEXTVAL('photos') > 0, 'given', '')") == "given" {
			return "usable"
		}
		return "refused"
	}
	// altered changes an account and ends its connections.
	altered := func(s *mysqltest.Server, user, how string) func() {
		return func() {
			s.Exec(t, "ALTER USER "+user+"@'%' "+how)
			for _, id := range connectionsOf(t, s, user) {
				_, _ = s.DB(t, "").Exec("KILL " + id) // which may have ended
			}
		}
	}
	verify := func(ca, name string) part {
		return from(c.other, fmt.Sprintf("user = 'root'\ntls = 'VERIFY_IDENTITY'\ntls_ca_file = %q\ntls_server_name = %q", ca, name))
	}
	nothing := func() {}
	password := func(user string) func() { return altered(c.first, user, "IDENTIFIED BY 'two'") }
	cases := []reloadCase{
		{
			keys: []string{"sequence.server.user"}, was: "numbers1", is: "numbers2",
			before: from(c.first, "user = 'numbers1'\npassword = 'one'"), after: from(c.first, "user = 'numbers2'\npassword = 'one'"),
			look: func(t *testing.T, _ *subject, running *sql.Conn) string {
				if got := valueOf(running, "SELECT IF(NEXTVAL('photos') > 0, 'given', '')"); got != "given" {
					t.Fatalf("NEXTVAL: %s", got)
				}
				var users []string
				for _, user := range []string{"numbers1", "numbers2"} {
					if len(connectionsOf(t, c.first, user)) > 0 {
						users = append(users, user)
					}
				}
				return strings.Join(users, " ")
			},
		},
		{
			keys: []string{"sequence.server.password"}, then: password("numbers3"),
			before: from(c.first, "user = 'numbers3'\npassword = 'one'"), after: from(c.first, "user = 'numbers3'\npassword = 'two'"),
		},
		{
			keys: []string{"sequence.server.password_file"}, then: password("numbers4"),
			before: from(c.first, "user = 'numbers4'\npassword_file = "+file("p1")), after: from(c.first, "user = 'numbers4'\npassword_file = "+file("p2")),
		},
		{
			keys: []string{"sequence.server.password_env"}, then: password("numbers5"),
			before: from(c.first, "user = 'numbers5'\npassword_env = 'RELOAD_P1'"), after: from(c.first, "user = 'numbers5'\npassword_env = 'RELOAD_P2'"),
		},
		{
			keys: []string{"sequence.server.tls"}, then: altered(c.other, "numbers1", "REQUIRE SSL"),
			before: from(c.other, "user = 'numbers1'\npassword = 'one'\ntls = 'DISABLED'"), after: from(c.other, "user = 'numbers1'\npassword = 'one'\ntls = 'REQUIRED'"),
		},
		{keys: []string{"sequence.server.tls_ca_file"}, then: nothing, before: verify(c.wrongCA.File, "db1.example"), after: verify(c.ca.File, "db1.example")},
		{keys: []string{"sequence.server.tls_server_name"}, then: nothing, before: verify(c.ca.File, "db2.example"), after: verify(c.ca.File, "db1.example")},
		{
			keys: []string{"sequence.server.tls_cert_file", "sequence.server.tls_key_file"}, then: nothing,
			before: from(c.other, "user = 'certified'\ntls = 'REQUIRED'"),
			after:  from(c.other, fmt.Sprintf("user = 'certified'\ntls = 'REQUIRED'\ntls_cert_file = %q\ntls_key_file = %q", c.one.CertFile, c.one.KeyFile)),
		},
	}
	for i := range cases {
		if cases[i].look == nil {
			cases[i].look, cases[i].was, cases[i].is = usable, "refused", "usable"
		}
	}
	c.other.Exec(t, "CREATE DATABASE seqproxy",
		"CREATE TABLE seqproxy.sequence (name VARCHAR(50) NOT NULL PRIMARY KEY, id BIGINT UNSIGNED NOT NULL DEFAULT 0)", "INSERT INTO seqproxy.sequence VALUES ('photos', 0)")
	return cases
}

// connectionsOf returns the ids of a user's connections on a server.
func connectionsOf(t *testing.T, s *mysqltest.Server, user string) (ids []string) {
	t.Helper()
	rows, err := s.DB(t, "").Query("SELECT id FROM information_schema.PROCESSLIST WHERE user = ?", user)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestARotationOfThePasswordOfTheSequenceServer changes the account's password. At first the server
// does not know the new one, and the old account continues.
func TestARotationOfThePasswordOfTheSequenceServer(t *testing.T) {
	c := newChanging(t)
	c.first.Exec(t, "CREATE USER numbers1@'%' IDENTIFIED BY 'one'", "GRANT ALL ON seqproxy.* TO numbers1@'%'", "CREATE USER numbers2@'%' IDENTIFIED BY 'two'",
		"GRANT ALL ON seqproxy.* TO numbers2@'%'", "REVOKE UPDATE ON seqproxy.* FROM numbers2@'%'")
	t.Cleanup(func() { c.first.Exec(t, "DROP USER numbers1@'%', numbers2@'%'") })
	with := func(top, user, password string) string {
		return c.text(part{top: top + "\nsequence.cache = 1\nsequence.outage_cover = '0s'", from: fmt.Sprintf("address = %q\nuser = %q\npassword = %q", c.first.Addr(), user, password)})
	}
	s := startSubject(t, with("", "numbers1", "one"))
	if _, err := s.sequences.Create(context.Background(), sequenceToTry("photos")); err != nil {
		t.Fatal(err)
	}
	running := s.mustConnect(t, "app", "p")
	next := func() {
		t.Helper()
		for range 5 {
			if got := valueOf(running, "SELECT IF(NEXTVAL('photos') > 0, 'given', '')"); got != "given" {
				t.Fatalf("NEXTVAL: %s", got)
			}
		}
	}
	next()
	for _, test := range []struct{ user, password, why string }{
		{"numbers1", "two", "1045"},
		{"nobody", "two", "1045"},
		{"numbers2", "two", "may not reserve numbers"},
	} {
		s.write(with("max_connections = 77", test.user, test.password))
		changed, err := s.Reload(context.Background(), false)
		if err == nil || !strings.Contains(err.Error(), "sequence server "+c.first.Addr()+" cannot be used") || !strings.Contains(err.Error(), test.why) ||
			strings.Contains(err.Error(), test.password+"\"") {
			t.Errorf("%s, %s: got %q, %v, want an error that names the server, and %s", test.user, test.password, changed, err, test.why)
		}
		if s.Config().MaxConnections == 77 || s.Config().Sequence.Servers[0].User != "numbers1" || strings.Contains(s.logged(), "'two'") {
			t.Errorf("%s: half of the configuration is in force, or the password in the log", test.user)
		}
		next()
	}
	c.first.Exec(t, "ALTER USER numbers1@'%' IDENTIFIED BY 'two'")
	next() // over open connections
	s.reload(with("max_connections = 77", "numbers1", "two"))
	for deadline := time.Now().Add(patience); len(connectionsOf(t, c.first, "numbers1")) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no connection with the new password")
		}
	}
	next()
	if got := s.Config().Sequence.Servers[0].Password.Reveal(); got != "two" || s.Config().MaxConnections != 77 {
		t.Errorf("in force: password %q, max_connections %d", got, s.Config().MaxConnections)
	}
}
