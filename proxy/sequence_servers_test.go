package proxy_test

import (
	"strings"
	"testing"

	"seqproxy/internal/mysqltest"
	"seqproxy/sequence"
)

func TestSequenceServersAreChangedBySQL(t *testing.T) {
	link := mysqltest.NewLink(t, mysqltest.Shared(t).Addr())
	e := newEnv(t, setup{
		Sequence: func(o *sequence.Options) { o.DirectWriters = sequence.DirectWritersNo },
	})
	c := e.Conn(t, "", nil)
	exec(t, c, "CREATE SEQUENCE photos")
	show := func() string {
		t.Helper()
		columns, rows := table(t, c, "SHOW SEQPROXY SEQUENCE SERVERS")
		if got, want := strings.Join(columns, " "), "position server id plan state interleave change error"; got != want {
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
		{1064, "SEQPROXY ADD SERVER 'x:1'", "ABORT PLAN"},
		{1064, "SHOW SEQPROXY NOTHING", "there is HELP, VERSION"},
		{1210, "SEQPROXY ADD SEQUENCE SERVER 'nowhere'", "host:port"},
		{1210, "SEQPROXY REMOVE SEQUENCE SERVER 'nowhere:1'", "no member"},
		{1105, "SEQPROXY RESUME PLAN", "no change"},
		{1105, "SEQPROXY ABORT PLAN", "no change"},
		{1105, "SEQPROXY ADD SEQUENCE SERVER '" + mysqltest.SilentListener(t).String() + "'", "cannot be added"},
	} {
		wantError(t, c, test.code, test.text, test.word)
	}
	// The same server by another address has the same schema.
	wantError(t, c, 1105, "SEQPROXY ADD SEQUENCE SERVER '"+link.Addr()+"'", "are the same sequence server")
	if _, err := c.PrepareContext(t.Context(), "SHOW SEQPROXY SEQUENCE SERVERS"); err != nil {
		t.Errorf("prepare: %v", err)
	}
	stmt, err := c.PrepareContext(t.Context(), "SEQPROXY RESUME PLAN")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stmt.Exec(); err == nil || !strings.Contains(err.Error(), "no change") {
		t.Errorf("prepared: got %v", err)
	}
	if got, want := show(), "0 0 in force NULL NULL"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
