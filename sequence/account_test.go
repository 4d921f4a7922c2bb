package sequence_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// addAccounts makes accounts with all rights and the password p.
func addAccounts(t *testing.T, s *mysqltest.Server, names ...string) {
	t.Helper()
	for _, name := range names {
		s.Exec(t, "CREATE USER "+name+"@'%' IDENTIFIED BY 'p'", "GRANT ALL ON *.* TO "+name+"@'%'")
	}
}

// loggedIn counts the connections of a user to the schema's server.
func (p place) loggedIn(t *testing.T, user string) (n int) {
	t.Helper()
	if err := p.db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = ?", user).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func accounts(user string, n int) (all []sequence.Account) {
	for range n {
		all = append(all, sequence.Account{User: user, Password: "p"})
	}
	return all
}

// asUser makes a proxy reach its servers with an account of addAccounts.
func asUser(name string) func(*sequence.Options) {
	return func(o *sequence.Options) {
		for i := range o.Servers {
			o.Servers[i].User, o.Servers[i].Password = name, "p"
		}
	}
}

// mustChangeAccounts tries the change and puts it in force.
func mustChangeAccounts(t *testing.T, s *sequence.Sequences, all []sequence.Account) {
	t.Helper()
	c := s.ChangeAccounts(all)
	if err := c.Try(context.Background()); err != nil {
		t.Fatal(err)
	}
	c.Apply()
}

func TestAConnectionInUseEndsWithItsWorkAfterItsAccountIsAnother(t *testing.T) {
	// A prefetch of photos must not wait.
	p := newPlace(t).withTable(t, map[string]uint64{"photos": 0, "locked": 0})
	addAccounts(t, p.server, "acct1", "acct2")
	// Other tests use them, too.
	t.Cleanup(func() { p.server.Exec(t, "DROP USER acct1@'%', acct2@'%'") })
	s := p.open(t, asUser("acct1"), steadySize(5), patience(time.Minute))
	mustTake(t, s, "photos", 5)

	// A statement that waits for a row.
	lock, err := p.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback() }()
	if _, err := lock.Exec("SELECT id FROM sequence WHERE name = 'locked' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	v := sequence.Inside(s).Servers()[0]
	busy, err := v.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	updated := make(chan error, 1)
	go func() {
		_, err := busy.ExecContext(context.Background(), "UPDATE "+v.Table.Sequence+" SET id = id + 100 WHERE name = 'locked'")
		updated <- err
	}()
	eventually(t, "the statement runs", func() bool {
		var n int
		if err := p.db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'acct1' AND INFO LIKE 'UPDATE%id + 100%'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n > 0
	})

	mustChangeAccounts(t, s, accounts("acct2", 1))
	eventually(t, "idle connections of the old account end", func() bool { return p.loggedIn(t, "acct1") <= 1 })
	select {
	case err := <-updated:
		t.Fatalf("the statement ended while the row is locked: %v", err)
	default:
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-updated; err != nil {
		t.Errorf("the statement that ran: %v", err)
	}
	if err := busy.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "the connection that was in use ends", func() bool { return p.loggedIn(t, "acct1") == 0 })
	for range 20 {
		mustTake(t, s, "photos", 1)
	}
	if n := p.loggedIn(t, "acct2"); n == 0 {
		t.Error("nobody has logged in with the new account")
	}
}

func TestAnAccountThatAServerRefusesIsNotTakenOver(t *testing.T) {
	f := newFleet(t, 3)
	for _, p := range f {
		addAccounts(t, p.server, "acct1")
	}
	for _, p := range f[:2] {
		addAccounts(t, p.server, "acct2")
	}
	s := f.open(t, asUser("acct1"), blocks(10), steadySize(5), patience(30*time.Second))
	createOn(t, s, "photos")
	err := s.ChangeAccounts(accounts("acct2", 3)).Try(context.Background())
	if err == nil || !strings.Contains(err.Error(), f[2].server.Addr()) || !strings.Contains(err.Error(), "acct2") || strings.Contains(err.Error(), f[0].server.Addr()) {
		t.Errorf("got %v, want an error that names %s alone", err, f[2].server.Addr())
	}
	for range 60 {
		mustTake(t, s, "photos", 1)
	}

	// A server that is away cannot refuse, and is reached with the new account when it is back.
	f[2].kill(t)
	mustChangeAccounts(t, s, accounts("acct2", 3))
	for range 60 {
		mustTake(t, s, "photos", 1)
	}
	f[2].restart(t)
	addAccounts(t, f[2].server, "acct2")
	for i, p := range f {
		eventually(t, fmt.Sprintf("server %d is reached with the new account alone", i), func() bool {
			mustTake(t, s, "photos", 1)
			return p.loggedIn(t, "acct1") == 0 && p.loggedIn(t, "acct2") > 0
		})
	}

	for _, p := range f {
		p.kill(t)
	}
	if err := s.ChangeAccounts(accounts("acct1", 3)).Try(context.Background()); err == nil {
		t.Error("an account that no server was asked about was taken")
	}
}

// A member that the configuration does not name is reached with the account of the first, also
// after a change.
func TestAMemberThatIsNotConfiguredHasTheAccountOfTheFirst(t *testing.T) {
	f := newFleet(t, 2)
	for _, p := range f {
		addAccounts(t, p.server, "acct1", "acct2")
	}
	s := f[:1].open(t, asUser("acct1"), blocks(10), steadySize(5), patience(30*time.Second), func(o *sequence.Options) { o.CreateTable = true })
	createOn(t, s, "photos")
	if _, err := s.ChangePlan(t.Context(), sequence.PlanChange{Add: f[1].server.Addr(), WritersStopped: true}); err != nil {
		t.Fatal(err)
	}
	for range 60 {
		mustTake(t, s, "photos", 1)
	}
	f[1].server.Exec(t, "DROP USER acct2@'%'")
	err := s.ChangeAccounts(accounts("acct2", 1)).Try(context.Background())
	if err == nil || !strings.Contains(err.Error(), f[1].server.Addr()) {
		t.Errorf("got %v, want an error that names %s", err, f[1].server.Addr())
	}
	addAccounts(t, f[1].server, "acct2")
	mustChangeAccounts(t, s, accounts("acct2", 1))
	for i, p := range f {
		eventually(t, fmt.Sprintf("server %d is reached with the new account alone", i), func() bool {
			mustTake(t, s, "photos", 1)
			return p.loggedIn(t, "acct1") == 0 && p.loggedIn(t, "acct2") > 0
		})
	}
	if _, err := s.SequenceServers(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEveryNodeOfAGroupHasToTakeAnAccount(t *testing.T) {
	e := startEstate(t, 2, "photos")
	addAccounts(t, e.Nodes[0], "acct1", "acct2")
	e.CatchUp(t, 1, 0)
	m := e.join(t, "one", &given{runs: make(map[uint64]string)}, asUser("acct1"), steadySize(5))
	m.take(t, "one", "photos", 10)
	e.Nodes[1].Exec(t, "SET SESSION sql_log_bin = 0", "DROP USER acct2@'%'")
	err := m.ChangeAccounts(accounts("acct2", 1)).Try(context.Background())
	if err == nil || !strings.Contains(err.Error(), m.links[1].Addr()) {
		t.Errorf("got %v, want an error that names node %s", err, m.links[1].Addr())
	}
	m.cut(1) // so it cannot refuse
	mustChangeAccounts(t, m.Sequences, accounts("acct2", 1))
	m.links[1].Mend()
	m.take(t, "one", "photos", 30)
}
