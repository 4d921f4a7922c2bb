package proxy_test

import (
	"database/sql"
	"strconv"
	"strings"
	"testing"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

func TestSequenceServersAreChangedBySQL(t *testing.T) {
	link := mysqltest.NewLink(t, mysqltest.Shared(t).Addr())
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) { o.NoDirectWriters = true },
	})
	c := e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos")
	show := func() string {
		t.Helper()
		columns, rows := table(t, c, "SHOW SEQPROXY SEQUENCE SERVERS")
		if got, want := strings.Join(columns, " "), "position server id plan state interleave change error warning"; got != want {
			t.Errorf("columns: got %s, want %s", got, want)
		}
		var all []string
		for _, row := range rows {
			all = append(all, strings.Join([]string{row[0], row[3], row[4], row[5], row[6]}, " "))
		}
		return strings.Join(all, "; ")
	}
	if got, want := show(), "0 0 in force NULL NULL"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, test := range []struct {
		code uint16
		text string
		word string
	}{
		{1064, "SEQPROXY", "there is ADD SEQUENCE SERVER"},
		{1064, "SEQPROXY ADD SERVER 'x:1'", "REMOVE SEQUENCE SERVER"},
		{1064, "SHOW SEQPROXY NOTHING", "there is HELP, VERSION"},
		{1210, "SEQPROXY ADD SEQUENCE SERVER 'nowhere'", "host:port"},
		{1210, "SEQPROXY REMOVE SEQUENCE SERVER 'nowhere:1'", "no member"},
		{1235, "SEQPROXY ADD SEQUENCE SERVER 'a:1, b:1'", "a group"},
		{1105, "SEQPROXY ADD SEQUENCE SERVER '" + mysqltest.SilentListener(t).String() + "'", "cannot be added"},
	} {
		wantError(t, c, test.code, test.text, test.word)
	}
	// The same server at another address has the same schema.
	wantError(t, c, 1105, "SEQPROXY ADD SEQUENCE SERVER '"+link.Addr()+"'", "are the same sequence server")
	if _, err := c.PrepareContext(t.Context(), "SHOW SEQPROXY SEQUENCE SERVERS"); err != nil {
		t.Errorf("prepare: %v", err)
	}
	stmt, err := c.PrepareContext(t.Context(), "SEQPROXY REMOVE SEQUENCE SERVER 'nowhere:1'")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stmt.Exec(); err == nil || !strings.Contains(err.Error(), "no member") {
		t.Errorf("prepared: got %v", err)
	}
	if got, want := show(), "0 0 in force NULL NULL"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// beforeAddition has one sequence, photos, on one sequence server, and another server that can be
// added.
func beforeAddition(t *testing.T, none bool) (c *sql.Conn, second *mysqltest.Server) {
	t.Helper()
	second = mysqltest.Start(t)
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) {
			o.NoDirectWriters, o.CreateTable = none, true
			o.Servers[0].User, o.Servers[0].Password = "root", "" // both servers have root
		},
	})
	c = e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos")
	return c, second
}

// A server is added and removed by SQL, and the list shows each step in its columns.
func TestTheListOfSequenceServersTellsOfThePlan(t *testing.T) {
	c, second := beforeAddition(t, true)
	first := mysqltest.Shared(t).Addr()
	given := make(map[string]bool)
	for _, step := range []struct{ text, want string }{
		{"SEQPROXY ADD SEQUENCE SERVER '" + second.Addr() + "'", "0 " + first + " 1 in force block 10000 NULL NULL; 1 " + second.Addr() + " 1 in force block 10000 NULL NULL"},
		{"SEQPROXY REMOVE SEQUENCE SERVER '" + first + "'", "0 " + second.Addr() + " 2 in force block 10000 NULL NULL"},
		{"SEQPROXY ADD SEQUENCE SERVER '" + first + "'", "0 " + second.Addr() + " 3 in force block 10000 NULL NULL; 1 " + first + " 3 in force block 10000 NULL NULL"},
	} {
		exec(t, c, step.text)
		_, rows := table(t, c, "SHOW SEQPROXY SEQUENCE SERVERS")
		var all []string
		for _, row := range rows {
			if len(row[2]) != 36 {
				t.Errorf("%s: got the id %q", step.text, row[2])
			}
			all = append(all, strings.Join([]string{row[0], row[1], row[3], row[4], row[5], row[6], row[7]}, " "))
		}
		if got := strings.Join(all, "; "); got != step.want {
			t.Errorf("%s: got\n%s, want\n%s", step.text, got, step.want)
		}
		for range 20 {
			number := value(t, c, "SELECT NEXTVAL('photos')")
			if given[number] {
				t.Errorf("%s: %s was given twice", step.text, number)
			}
			given[number] = true
		}
	}
}

// A dead sequence server is removed by the operator's word. The other one knows how far it may go.
func TestADeadSequenceServerIsTakenOutBySQL(t *testing.T) {
	c, second := beforeAddition(t, false)
	add, remove := "SEQPROXY ADD SEQUENCE SERVER '"+second.Addr()+"'", "SEQPROXY REMOVE SEQUENCE SERVER '"+second.Addr()+"'"
	number := func() uint64 {
		t.Helper()
		n, err := strconv.ParseUint(value(t, c, "SELECT NEXTVAL('photos')"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	wantError(t, c, 1105, add, "WITH DIRECT WRITERS STOPPED")
	for range 2 {
		exec(t, c, add+" WITH DIRECT WRITERS STOPPED")
		before := number()
		if err := second.Kill(); err != nil {
			t.Fatal(err)
		}
		wantError(t, c, 1105, remove+" WITH DIRECT WRITERS STOPPED", "FORCE")
		wantError(t, c, 1210, remove+" FORCE ABOVE 5000 WITH DIRECT WRITERS STOPPED", "leave ABOVE out")
		exec(t, c, remove+" FORCE WITH DIRECT WRITERS STOPPED")
		exec(t, c, "FLUSH SEQUENCES photos")       // the old segment is given first
		if next := number(); next < before+1<<35 { // half of the way to a ceiling
			t.Errorf("got %d after %d, want a number above the ceiling of the lost server", next, before)
		}
		if err := second.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	_, rows := table(t, c, "SHOW SEQPROXY SEQUENCE SERVERS")
	if len(rows) != 1 {
		t.Errorf("got the servers %v", rows)
	}
}
