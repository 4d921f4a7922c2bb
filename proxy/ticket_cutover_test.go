package proxy_test

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"seqproxy/internal/mysqltest"
)

// cutOverTables have one table that is cut over, one whose stubs then count each by itself, and one with a row for each number.
const cutOverTables = `
[[ticket]]
table = "keys.tickets64InnoDB"
cut_over = "tickets"
[[ticket]]
table = "keys.id_tempInnoDB"
cut_over = "ids"
per_stub = true
[[ticket]]
table = "keys.ids_photosMyISAM"
cut_over = "photo_ids"
`

// TestTicketTablesAreCutOverUnderTheirApplications: unchanged applications go direct, then also through two proxies that cut the tables
// over, one of which is killed, and at the end through a proxy from whose configuration the cut-over was taken out again.
func TestTicketTablesAreCutOverUnderTheirApplications(t *testing.T) {
	server := mysqltest.StartUnsynced(t)
	server.Exec(t, "CREATE DATABASE `keys`", "USE `keys`")
	for i, engine := range []string{"InnoDB", "InnoDB", "MyISAM"} {
		server.Exec(t, "USE `keys`", fmt.Sprintf(ticketSQL[i], engine))
	}
	apps := []ticketApplication{
		{"Flickr", "tickets64", inOneText("REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")},
		{"Flickr, another stub", "tickets64", byInsertID("REPLACE INTO tickets64InnoDB (stub) VALUES ('b')")},
		{"Flickr, prepared", "tickets64", byInsertID("REPLACE INTO tickets64InnoDB (stub) VALUES (?)", "a")},
		{"id_temp, photos", "photos", byFunction("REPLACE INTO id_tempInnoDB (table_name) VALUE(\"photos\")")},
		{"id_temp, users", "users", byInsertID("REPLACE INTO id_tempInnoDB (table_name) VALUES ('users')")},
		{"a table of its own", "ids_photos", byInsertID("INSERT INTO ids_photosMyISAM VALUES (NULL)")},
	}
	shard := "[[shard]]\nname = \"main\"\n[[shard.node]]\naddress = \"" + server.Addr() + "\"\n"
	binary := mysqltest.Program(t)
	one, two := startProxyProcess(t, binary, server, "one", shard+cutOverTables), startProxyProcess(t, binary, server, "two", shard+cutOverTables)
	back := startProxyProcess(t, binary, server, "back", shard+strings.NewReplacer("cut_over", "#", "per_stub", "#").Replace(cutOverTables))

	const perCopy = 30
	seen := make(map[string]map[int64]bool) // by counter
	take := func(phase string, addrs ...string) map[string][]int64 {
		t.Helper()
		var wg sync.WaitGroup
		var mu sync.Mutex
		var proxied atomic.Int64
		given := make(map[string][]int64) // by counter
		for _, app := range apps {
			for _, addr := range addrs {
				wg.Go(func() {
					numbers, err := app.run(addr, perCopy, addr != server.Addr(), &proxied)
					if err != nil {
						t.Errorf("%s: %s at %s: %v", phase, app.name, addr, err)
					}
					if !slices.IsSorted(numbers) {
						t.Errorf("%s: %s at %s: numbers do not rise: %v", phase, app.name, addr, numbers)
					}
					mu.Lock()
					defer mu.Unlock()
					given[app.counter] = append(given[app.counter], numbers...)
				})
			}
		}
		wg.Wait()
		for counter, numbers := range given {
			if seen[counter] == nil {
				seen[counter] = make(map[int64]bool)
			}
			for _, n := range numbers {
				if n <= 0 || seen[counter][n] {
					t.Errorf("%s: %s gave %d, which is no number or was given before", phase, counter, n)
				}
				seen[counter][n] = true
			}
		}
		return given
	}
	before := take("direct", server.Addr())
	take("cut over", server.Addr(), one.addr, two.addr)
	one.kill()
	if err := one.start(); err != nil {
		t.Fatal(err)
	}
	proxied := take("all over", one.addr, two.addr)
	for counter, numbers := range proxied {
		if slices.Min(numbers) <= slices.Max(before[counter]) {
			t.Errorf("%s: through proxies got %d, direct before %d, want more", counter, slices.Min(numbers), slices.Max(before[counter]))
		}
	}
	for counter, numbers := range take("all back", server.Addr(), back.addr) {
		if slices.Min(numbers) <= slices.Max(proxied[counter]) {
			t.Errorf("%s: all back got %d, through proxies before %d, want more", counter, slices.Min(numbers), slices.Max(proxied[counter]))
		}
	}

	// One cut-over of each table, whoever made it.
	var logs string
	for _, p := range []*proxyProcess{one, two} {
		b, err := os.ReadFile(p.log)
		if err != nil {
			t.Fatal(err)
		}
		logs += string(b)
	}
	if got := strings.Count(logs, "ticket table cut over"); got != 3 {
		t.Errorf("cut-overs in the logs: got %d, want 3", got)
	}

	// What the application sees, and who looks at the sequences. Each stub counts by itself: as many numbers, from the same first.
	c, err := sql.Open("mysql", "root@tcp("+one.addr+")/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, want := range []struct {
		text string
		rows int64
	}{
		{"REPLACE INTO tickets64InnoDB (stub) VALUES ('a')", 2},
		{"REPLACE INTO tickets64InnoDB (stub) VALUES ('z')", 1},
		{"REPLACE INTO id_tempInnoDB (table_name) VALUES ('albums')", 1},
		{"REPLACE INTO id_tempInnoDB (table_name) VALUES ('albums')", 2},
		{"INSERT INTO ids_photosMyISAM VALUES (NULL)", 1},
	} {
		r, err := c.ExecContext(t.Context(), want.text)
		if err != nil {
			t.Fatal(err)
		}
		if rows, _ := r.RowsAffected(); rows != want.rows {
			t.Errorf("%s: affected rows: got %d, want %d", want.text, rows, want.rows)
		}
	}
	rows, err := c.QueryContext(t.Context(), "SELECT s.name, o.start FROM `sequence` s JOIN sequence_options o USING (name) ORDER BY s.name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	starts := make(map[string]uint64)
	for rows.Next() {
		var name string
		var start uint64
		if err := rows.Scan(&name, &start); err != nil {
			t.Fatal(err)
		}
		starts[name] = start
	}
	if rows.Err() != nil || len(starts) != 6 || starts["ids:photos"] != starts["ids"] || starts["ids:users"] != starts["ids"] || starts["ids:albums"] != starts["ids"] {
		t.Errorf("sequences and where they begin: got %v, %v, want tickets, photo_ids, ids, and one for each stub that begins as ids does", starts, rows.Err())
	}

	// FLUSH SEQUENCES means tables that count as well: what was in memory is a gap.
	again, err := sql.Open("mysql", "root@tcp("+back.addr+")/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	last := int64(0)
	for _, flush := range []string{"DO 0", "FLUSH SEQUENCES tickets64InnoDB", "FLUSH SEQUENCES `keys`.tickets64InnoDB", "FLUSH SEQUENCES"} {
		if _, err := again.ExecContext(t.Context(), flush); err != nil {
			t.Fatal(err)
		}
		r, err := again.ExecContext(t.Context(), "REPLACE INTO tickets64InnoDB (stub) VALUES ('a')")
		if err != nil {
			t.Fatal(err)
		}
		id, _ := r.LastInsertId()
		if last != 0 && id < last+100 {
			t.Errorf("after %s got %d, want more than the segment of %d", flush, id, last)
		}
		last = id
	}
}
