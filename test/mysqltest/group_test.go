package mysqltest

import (
	"database/sql"
	"testing"
)

func TestAGroupReplicatesAndIsPromotedWithWhatItHas(t *testing.T) {
	g := StartGroup(t, 2)
	replica := g.Nodes[1].DB(t, "")
	g.Nodes[0].Exec(t, "CREATE DATABASE app", "CREATE TABLE app.t (n int PRIMARY KEY)", "INSERT INTO app.t VALUES (1)")
	g.CatchUp(t, 1, 0)
	g.Cut(t, 1)
	g.Nodes[0].Exec(t, "INSERT INTO app.t VALUES (2)")
	g.Promote(t, 1)
	var n, readOnly int
	if err := replica.QueryRow("SELECT MAX(n), @@global.read_only FROM app.t").Scan(&n, &readOnly); err != nil || n != 1 || readOnly != 0 {
		t.Errorf("the promoted replica has %d, read_only %d (%v); want 1 and 0: the last insert is lost", n, readOnly, err)
	}
}

func TestALinkIsCutAndMendedWhileTheServerLives(t *testing.T) {
	s := Start(t)
	l := NewLink(t, s.Addr())
	db, err := sql.Open("mysql", "root@tcp("+l.Addr()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // every statement was answered
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	l.Cut()
	if err := db.Ping(); err == nil {
		t.Error("a cut link lets a statement through")
	}
	l.Mend()
	if err := db.Ping(); err != nil {
		t.Errorf("a mended link: %v", err)
	}
}
