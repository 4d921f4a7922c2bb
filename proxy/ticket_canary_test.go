package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"seqproxy/test/mysqltest"
)

// ticketApplication is an application with a ticket server, of which it knows only the address.
type ticketApplication struct {
	name, counter string // applications with the same counter must never get the same number
	take          func(ctx context.Context, c *sql.Conn) (int64, error)
}

// byInsertID takes the number from the answer; byFunction queries it.
func byInsertID(text string, args ...any) func(context.Context, *sql.Conn) (int64, error) {
	return func(ctx context.Context, c *sql.Conn) (int64, error) {
		r, err := c.ExecContext(ctx, text, args...)
		if err != nil {
			return 0, err
		}
		return r.LastInsertId()
	}
}

func byFunction(text string) func(context.Context, *sql.Conn) (id int64, err error) {
	return func(ctx context.Context, c *sql.Conn) (id int64, err error) {
		if _, err = c.ExecContext(ctx, text); err == nil {
			err = c.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&id)
		}
		return id, err
	}
}

// inOneText sends both statements at once.
func inOneText(text string) func(context.Context, *sql.Conn) (id int64, err error) {
	return func(ctx context.Context, c *sql.Conn) (id int64, err error) {
		rows, err := c.QueryContext(ctx, text+"; SELECT LAST_INSERT_ID()")
		if err != nil {
			return 0, err
		}
		defer func() { _ = rows.Close() }()
		if !rows.Next() && (!rows.NextResultSet() || !rows.Next()) {
			return 0, fmt.Errorf("there is no second result: %w", rows.Err())
		}
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
		return id, rows.Err()
	}
}

func ticketApplications() []ticketApplication {
	const yupoo = "UPDATE `sequence` SET `id` = LAST_INSERT_ID(`id` + 1) WHERE `name` = 'photos'"
	apps := []ticketApplication{
		{"Yupoo", "photos", byFunction(yupoo)},
		{"Yupoo, by the insert id", "photos", byInsertID(yupoo)},
		{"Yupoo, prepared", "photos", byInsertID("UPDATE sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = ?", "photos")},
		{"Yupoo, made at the first use", "fresh", byFunction("INSERT INTO sequence (name, id) VALUES ('fresh', LAST_INSERT_ID(1)) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id + 1)")},
	}
	for _, engine := range ticketEngines {
		apps = append(
			apps,
			ticketApplication{"Flickr", "tickets64" + engine, inOneText("REPLACE INTO tickets64" + engine + " (stub) VALUES ('a')")},
			ticketApplication{"Flickr, another stub", "tickets64" + engine, byInsertID("REPLACE INTO tickets64" + engine + " (stub) VALUES ('b')")},
			ticketApplication{"id_temp", "id_temp" + engine, byFunction("REPLACE INTO id_temp" + engine + " (table_name) value(\"photos\") ;")},
			ticketApplication{"a table of its own", "ids_photos" + engine, byInsertID("INSERT INTO ids_photos" + engine + " VALUES (NULL)")},
		)
	}
	return apps
}

// ticketPhase is a part of a canary: where each application's copies connect.
type ticketPhase struct {
	name    string
	addrs   []string // for one copy each
	proxied []bool   // whether the address is a proxy's, which may be killed
}

// TestACanaryOfATicketApplicationNeverGetsANumberTwice moves unchanged applications to the proxy
// and back: first all connect directly, then a copy of each through a proxy that is killed
// meanwhile, then all copies through two proxies, then all directly again.
func TestACanaryOfATicketApplicationNeverGetsANumberTwice(t *testing.T) {
	server := mysqltest.StartUnsynced(t)
	server.Exec(t, "CREATE DATABASE `keys`", "USE `keys`",
		"CREATE TABLE `sequence` (`name` varchar(50) NOT NULL, `id` bigint(20) unsigned NOT NULL DEFAULT '0', PRIMARY KEY (`name`)) ENGINE=InnoDB",
		"INSERT INTO `sequence` (`name`) VALUES ('users'), ('photos'), ('albums'), ('comments')")
	listed := "[[shard]]\nname = \"main\"\n[[shard.node]]\naddress = \"" + server.Addr() + "\"\n[[ticket]]\ntable = \"keys.sequence\"\n"
	for _, engine := range ticketEngines {
		for i, table := range []string{"tickets64", "id_temp", "ids_photos"} {
			server.Exec(t, "USE `keys`", fmt.Sprintf(ticketSQL[i], engine))
			listed += "[[ticket]]\ntable = \"keys." + table + engine + "\"\n"
		}
	}
	binary := mysqltest.Program(t)
	one := startProxyProcess(t, binary, server, "one", listed)
	two := startProxyProcess(t, binary, server, "two", listed)

	const perCopy = 40
	apps := ticketApplications()
	highest := make(map[string]int64)       // by counter, up to the phase before
	seen := make(map[string]map[int64]bool) // by counter
	for _, phase := range []ticketPhase{
		{"direct", []string{server.Addr(), server.Addr()}, []bool{false, false}},
		{"canary", []string{server.Addr(), one.addr}, []bool{false, true}},
		{"all over", []string{two.addr, one.addr}, []bool{true, true}},
		{"all back", []string{server.Addr(), server.Addr()}, []bool{false, false}},
	} {
		var wg sync.WaitGroup
		var mu sync.Mutex
		given := make(map[string][]int64) // by counter
		var proxied atomic.Int64
		for _, app := range apps {
			for i, addr := range phase.addrs {
				wg.Go(func() {
					numbers, err := app.run(addr, perCopy, phase.proxied[i], &proxied)
					if err != nil {
						t.Errorf("%s: %s at %s: %v", phase.name, app.name, addr, err)
					}
					if !slices.IsSorted(numbers) {
						t.Errorf("%s: %s at %s: numbers do not rise: %v", phase.name, app.name, addr, numbers)
					}
					mu.Lock()
					defer mu.Unlock()
					given[app.counter] = append(given[app.counter], numbers...)
				})
			}
		}
		if phase.name == "canary" {
			for end := time.Now().Add(20 * time.Second); proxied.Load() < int64(len(apps)*perCopy/4) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			one.kill()
			if err := one.start(); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		for counter, numbers := range given {
			if seen[counter] == nil {
				seen[counter] = make(map[int64]bool)
			}
			for _, n := range numbers {
				if n <= 0 || seen[counter][n] {
					t.Errorf("%s: %s gave %d, which is no number or was given before", phase.name, counter, n)
				}
				if phase.name == "all back" && n <= highest[counter] {
					t.Errorf("all back: %s gave %d, below %d of before", counter, n, highest[counter])
				}
				seen[counter][n] = true
			}
			highest[counter] = max(highest[counter], slices.Max(numbers))
		}
	}
	for counter, numbers := range seen {
		if len(numbers) < perCopy*2*4 {
			t.Errorf("%s: got %d numbers, want at least %d", counter, len(numbers), perCopy*2*4)
		}
	}
}

// run takes n numbers at addr. Where the proxy may be killed, run connects again.
func (a *ticketApplication) run(addr string, n int, again bool, proxied *atomic.Int64) (numbers []int64, err error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName, cfg.MultiStatements = "root", "tcp", addr, "keys", true
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	pool := sql.OpenDB(connector)
	defer func() { _ = pool.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for len(numbers) < n {
		err = func() error {
			c, err := pool.Conn(ctx)
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			for len(numbers) < n {
				id, err := a.take(ctx, c)
				if e := new(mysql.MySQLError); errors.As(err, &e) && e.Number == gomysql.ER_LOCK_DEADLOCK {
					continue // InnoDB may deadlock at REPLACE of several stubs
				}
				if err != nil {
					return err
				}
				numbers = append(numbers, id)
				if again {
					proxied.Add(1)
				}
			}
			return nil
		}()
		switch {
		case err == nil:
		case !again || ctx.Err() != nil:
			return numbers, err
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
	return numbers, nil
}
