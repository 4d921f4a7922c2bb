package main

import (
	"database/sql"
	"os"
	"strings"
	"syscall"
	"testing"

	"seqproxy/internal/inspect"
	"seqproxy/test/mysqltest"
)

// A column bound in the configuration and one that owns a sequence have AUTO_INCREMENT on two
// shards. The log at the start and after a reload, and check -connect, name both, with the
// statements that end this. They do not name a table that has AUTO_INCREMENT on only one shard.
func TestTheStartAReloadAndCheckNameTheBoundColumnsThatSeveralShardsNumber(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.StartUnsynced(t), mysqltest.StartUnsynced(t)}
	for _, s := range servers {
		s.Exec(t, "CREATE USER app@'%' IDENTIFIED BY 'hush-hush'", "CREATE DATABASE album", "GRANT ALL ON album.* TO app@'%'",
			"CREATE USER seq@'%' IDENTIFIED BY 'hush-hush'", "GRANT "+allRights+" ON seqproxy.* TO seq@'%'",
			"CREATE TABLE album.photos (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT COMMENT 'the key' PRIMARY KEY, a INT)",
			"CREATE TABLE album.albums (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT)")
	}
	servers[0].Exec(t, "CREATE TABLE album.users (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY)")
	servers[1].Exec(t, "CREATE TABLE album.users (id BIGINT NOT NULL PRIMARY KEY)")
	config := `
listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
default_shard = "one"
max_connections = 100
admin_users = ["app"]
[[user]]
name = "app"
password = "hush-hush"
[[sequence.server]]
address = "` + servers[0].Addr() + `"
user = "seq"
password = "hush-hush"
[[bind]]
column = "album.photos.id"
sequence = "photos"
[[bind]]
column = "users.id"
sequence = "photos"
` + shardAt("one", servers[0].Addr())
	second := shardAt("other", servers[1].Addr())
	file := write(t, "seqproxy.toml", config+second)
	p := begin(t, "-config", file)
	db, err := sql.Open("mysql", "app:hush-hush@tcp("+p.address()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, text := range []string{"CREATE SEQUENCE photos", "CREATE SEQUENCE albums OWNED BY album.albums.id"} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	const event = "bound column has AUTO_INCREMENT on several shards"
	p.awaitCount(event, 2) // the column in the configuration
	p.signal(syscall.SIGTERM)
	p.end(0)

	// A reload that brings the second shard makes it so, too.
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p = begin(t, "-config", file)
	p.address()
	if err := os.WriteFile(file, []byte(config+second), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(syscall.SIGHUP)
	p.awaitCount(event, 4)

	const text = "has AUTO_INCREMENT on this shard and on others"
	r, err := checks(t, file)
	found := r.finds(inspect.Warning, "auto_increment: ", text)
	if err != nil || len(found) != 4 {
		t.Fatalf("got %v, %d findings, want 4:\n%s", err, len(found), r.text())
	}
	for i, s := range servers {
		for _, want := range []string{"album.photos.id, which is filled from sequence photos", "album.albums.id, which is filled from sequence albums"} {
			shard := []string{"shard one: ", "shard other: "}[i]
			found := r.finds(inspect.Warning, shard, want, text)
			if len(found) != 1 || len(found[0].Mend) == 0 {
				t.Fatalf("%s%s: got %+v", shard, want, found)
			}
			if !strings.Contains(p.stderr(), found[0].Mend[0]) {
				t.Errorf("the log of the start does not have %q: %s", found[0].Mend[0], p.stderr())
			}
			s.Exec(t, found[0].Mend...)
		}
	}
	if r, err := checks(t, file); err != nil || len(r.finds(inspect.Warning, text)) != 0 {
		t.Errorf("after that: got %v\n%s", err, r.text())
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
	if strings.Contains(p.stderr(), "users.id") {
		t.Errorf("the log names a column that one shard numbers: %s", p.stderr())
	}
}
