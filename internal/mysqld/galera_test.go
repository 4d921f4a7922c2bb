package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestANodeOfAClusterThatWasKilledHearsWhatItHasMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("a Galera cluster is for CI")
	}
	b := binary(t)
	library := GaleraLibrary(b)
	if library == "" {
		t.Skipf("%s has no Galera here", b)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	nodes, err := StartGalera(ctx, b, library, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, node := range nodes {
			if err := errors.Join(node.Crashed(), node.Kill()); err != nil {
				t.Error(err)
			}
		}
	})
	open := func(i int) *sql.DB {
		db, err := sql.Open("mysql", "root@tcp("+nodes[i].Addr()+")/")
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxIdleConns(0) // an idle connection would end with its node
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	exec := func(i int, text string) {
		t.Helper()
		var err error
		for ctx.Err() == nil { // until the others have agreed to exclude the node
			if _, err = open(i).ExecContext(ctx, text); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("%s: %v", text, err)
	}
	exec(0, "CREATE DATABASE app")
	exec(0, "CREATE TABLE app.rows (id int PRIMARY KEY) ENGINE=InnoDB")
	for i := range nodes { // the first one, too: it must not begin another cluster
		if err := nodes[i].Kill(); err != nil {
			t.Fatal(err)
		}
		exec((i+1)%3, fmt.Sprintf("INSERT INTO app.rows VALUES (%d)", i))
		if err := nodes[i].Rejoin(ctx); err != nil {
			t.Fatal(err)
		}
		var rows int
		if err := open(i).QueryRowContext(ctx, "SELECT COUNT(*) FROM app.rows").Scan(&rows); err != nil || rows != i+1 {
			t.Errorf("node %d has %d rows (%v) after it came back, want %d", i, rows, err, i+1)
		}
	}
}
