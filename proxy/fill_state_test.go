package proxy_test

import (
	"context"
	"testing"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// While the sequence server is away, the state directory says which columns own sequences: tables
// without such a column accept rows, and no server generates keys of the others.
func TestKeptOwnersCountWhileTheSequenceServerIsAwayAtTheStart(t *testing.T) {
	numbers := mysqltest.Start(t)
	numbers.Exec(t, "CREATE DATABASE numbers")
	dir := t.TempDir()
	change := func(o *sequence.Options) {
		o.Servers[0].Addr, o.Servers[0].User, o.Servers[0].Password, o.Servers[0].Database = numbers.Addr(), "root", "", "numbers"
		o.StateDir, o.CreateTable = dir, true
	}
	o := sequence.Options{Servers: make([]sequence.ServerOptions, 1)}
	change(&o)
	before, err := sequence.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := before.Create(t.Context(), sequence.CreateOptions{Name: "photos", OwnedBy: sequence.Column{Table: "photos", Column: "id"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := before.LoadOwners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := numbers.Kill(); err != nil {
		t.Fatal(err)
	}

	e := newEnv(t, setup{Shards: 2, Sequence: change})
	e.impatient()
	for i := range 2 {
		exec(t, e.DirectConn(t, i, e.Schemas[i], nil), "CREATE TABLE photos (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, title TEXT)", "CREATE TABLE tags (name VARCHAR(20) PRIMARY KEY)")
	}
	for i := range 2 {
		c := e.Conn(t, e.Schemas[i], nil)
		exec(t, c, "INSERT INTO tags VALUES ('sea')")
		wantError(t, c, 1105, "INSERT INTO photos (title) VALUES ('sea')", "sequence \"photos\"", "its sequence server is unavailable")
		if got := value(t, c, "SELECT COUNT(*) FROM photos"); got != "0" {
			t.Errorf("got %s rows, want none: the server generated a key", got)
		}
	}
	if err := numbers.Restart(); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, e.Schemas[1], nil)
	eventually(t, "INSERT once the sequence server has answered", func() bool {
		_, err := c.ExecContext(t.Context(), "INSERT INTO photos (title) VALUES ('sea')")
		return err == nil
	})
	if got := value(t, c, "SELECT id FROM photos"); got != "1" {
		t.Errorf("the key is %s, want 1, of the sequence", got)
	}
}
