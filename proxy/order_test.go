package proxy_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/test/history"
	"seqproxy/test/mysqltest"
)

// Two proxies give numbers of an ORDER sequence, in every way there is, to many connections, and
// their server is killed. A client that asks after another was answered has the higher number.
func TestOrderedNumbersRiseInTheOrderOfTimeOverAllProxies(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.Start(t)}
	var schema string
	tickets := func(o *proxy.Options) { o.Tickets = []proxy.TicketTable{{Schema: schema, Table: "sequence"}} }
	a := newEnv(t, setup{Servers: servers, Proxy: tickets, Sequence: func(o *sequence.Options) { schema = o.Servers[0].Database }})
	b := newEnv(t, setup{Servers: servers, Proxy: tickets, Sequence: func(o *sequence.Options) { o.Servers[0].Database = schema }})
	admin := a.Conn(t, schema, nil)
	exec(t, admin, "CREATE TABLE photos (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, n INT)", "CREATE SEQUENCE photos OWNED BY photos.id")
	for _, e := range []*env{a, b} { // both have cached numbers
		value(t, e.Conn(t, schema, nil), "SELECT NEXTVAL('photos')")
	}
	exec(t, admin, "ALTER SEQUENCE photos ORDER")

	inserted := func(db *sql.DB, n uint64, text string, args ...any) (first, last uint64, err error) {
		result, err := db.Exec(text, args...)
		if err != nil {
			return 0, 0, err
		}
		id, err := result.LastInsertId()
		return uint64(id), uint64(id) + n - 1, err
	}
	selected := func(db *sql.DB, n uint64, text string, args ...any) (first, last uint64, err error) {
		err = db.QueryRow(text, args...).Scan(&first)
		return first, first + n - 1, err
	}
	ways := map[string]func(db *sql.DB) (first, last uint64, err error){
		"SELECT":          func(db *sql.DB) (uint64, uint64, error) { return selected(db, 1, "SELECT NEXTVAL('photos')") },
		"SELECT of a run": func(db *sql.DB) (uint64, uint64, error) { return selected(db, 3, "SELECT NEXTVAL('photos', 3)") },
		"prepared SELECT": func(db *sql.DB) (uint64, uint64, error) { return selected(db, 1, "SELECT NEXTVAL(?)", "photos") },
		"INSERT": func(db *sql.DB) (uint64, uint64, error) {
			return inserted(db, 1, "INSERT INTO photos VALUES (NEXTVAL('photos'), 1)")
		},
		"prepared INSERT": func(db *sql.DB) (uint64, uint64, error) {
			return inserted(db, 1, "INSERT INTO photos VALUES (NEXTVAL('photos'), ?)", 2)
		},
		"filled INSERT": func(db *sql.DB) (uint64, uint64, error) {
			return inserted(db, 3, "INSERT INTO photos (n) VALUES (3), (4), (5)")
		},
		"ticket": func(db *sql.DB) (uint64, uint64, error) {
			return inserted(db, 1, "UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'photos'")
		},
		"tickets": func(db *sql.DB) (uint64, uint64, error) {
			_, last, err := inserted(db, 1, "UPDATE sequence SET id = LAST_INSERT_ID(id + 5) WHERE name = 'photos'")
			return last - 4, last, err
		},
	}
	var h history.History
	var wg sync.WaitGroup
	given := make(map[string]int)
	var mu sync.Mutex
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	allGive := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			for name := range ways {
				if given[name] < n {
					return false
				}
			}
			return true
		}
	}
	for name, take := range ways {
		for i, e := range []*env{a, b} {
			db := e.DB(t, schema, nil)
			for range 2 {
				wg.Go(func() {
					for ctx.Err() == nil {
						if err := h.Record(fmt.Sprintf("%s by proxy %d", name, i), func() (uint64, uint64, error) { return take(db) }); err != nil {
							time.Sleep(5 * time.Millisecond)
							continue
						}
						mu.Lock()
						given[name]++
						mu.Unlock()
					}
				})
			}
		}
	}
	eventually(t, "numbers are given", allGive(30))
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := servers[0].Restart(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	clear(given)
	mu.Unlock()
	eventually(t, "numbers are given after the restart", allGive(60))
	stop()
	wg.Wait()
	_, failed := h.Count()
	t.Logf("given: %v; %d calls failed", given, failed)
	if failed == 0 {
		t.Error("no call failed, so the server's death shows nothing")
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}
