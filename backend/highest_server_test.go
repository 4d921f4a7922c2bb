package backend

import (
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// The condition takes long for each row, as do many rows for kinds of keys.
func TestTheServerItselfEndsTheReadingOfAGreatestKeyThatTakesTooLong(t *testing.T) {
	s := mysqltest.Start(t)
	s.Exec(t, "CREATE SCHEMA album", "CREATE TABLE album.photos (id BIGINT PRIMARY KEY)", "INSERT INTO album.photos VALUES (7)",
		"CREATE USER app@'%' IDENTIFIED BY 'p'", "GRANT SELECT ON album.* TO app@'%'")
	shards, err := New(Options{Default: "s", Shards: []ShardOptions{{Name: "s", Nodes: []string{s.Addr()}}}, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer shards.Close()
	r := shards.Routes()
	read := func(limit time.Duration, of Expression) Highest {
		all, err := r.highestOn(t.Context(), r.shards[0], Credentials{User: "app", Password: "p"}, Column{"album", "photos", "id"}, of, limit)
		if err != nil || len(all) != 1 {
			t.Fatalf("got %v and %v, want one table", all, err)
		}
		return all[0]
	}
	plain := func(string) (number, condition string) { return "", "" }
	if h := read(30*time.Second, plain); h.Value != 7 || h.Err != nil {
		t.Errorf("got %d and %v, want 7", h.Value, h.Err)
	}
	const slow = "SLEEP(20 + 0 * `id`) = 0"
	h := read(500*time.Millisecond, func(column string) (number, condition string) { return column, slow })
	want := "the greatest key was not read in 30s, which is for all tables of a shard: each row has to be read for this kind of keys. Read SELECT MAX(`id`) FROM `album`.`photos` WHERE " +
		slow + " yourself, and say a number above it: START WITH, or ALTER SEQUENCE ... RESTART WITH; in place of OWNED BY, [[bind]] names the column without reading it"
	if h.Err == nil || h.Err.Error() != want {
		t.Errorf("got the error %v, want %s", h.Err, want)
	}
	// The server answers before it takes the text from its list. The text would run for 20 seconds.
	running := 1
	for end := time.Now().Add(10 * time.Second); running > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := s.DB(t, "").QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%MAX(%' AND USER = 'app'").Scan(&running); err != nil {
			t.Fatal(err)
		}
	}
	if running != 0 {
		t.Errorf("got %d statements that run on, want none", running)
	}
}
