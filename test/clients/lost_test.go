package clients_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// pools are programs with a pool of connections. One connection waits for a statement when the
// server dies. The programs report what they met, and whether the pool works later.
var pools = []struct {
	name, interpreter, file, module string
	probe                           string // as in probes
}{
	{"SQLAlchemy, PyMySQL", python, "lost/lost.py", "pymysql", "lost/lost.py"},
	{"SQLAlchemy, mysqlclient", python, "lost/lost.py", "mysqldb", "lost/lost.py"},
	{"npm-mysql2", "node", "node/lost.mjs", "mysql2", "node/mysql2.mjs"},
	{"npm-mariadb", "node", "node/lost.mjs", "mariadb", "node/mariadb.mjs"},
	{"MariaDB-Connector-J", "java", "lost/Lost.java", "", "Connector.java"},
}

// TestPoolsThrowALostConnectionAway runs them directly and through the proxy at the same time,
// while the only server dies and comes back.
func TestPoolsThrowALostConnectionAway(t *testing.T) {
	p := start(t)
	const schema = "pools"
	p.server.Exec(t, "CREATE DATABASE "+schema)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()

	type result struct {
		out []byte
		err error
	}
	results := make(map[string]*[2]result)
	var running sync.WaitGroup
	busy := 0
	both := func(name string, run func(addr string) ([]byte, error)) {
		r := new([2]result)
		results[name] = r
		for i, addr := range []string{p.server.Addr(), p.proxy} {
			busy++
			running.Go(func() { r[i].out, r[i].err = run(addr) })
		}
	}
	both("database/sql", func(addr string) ([]byte, error) { return lostByDatabaseSQL(ctx, addr, schema) })
	for _, c := range pools {
		if what := missing(c.name, c.interpreter, c.probe); what != "" {
			t.Run(c.name, func(t *testing.T) { lacking(t, what) })
			continue
		}
		both(c.name, func(addr string) ([]byte, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			command := append([]string{c.interpreter}, interpreterArgs[c.interpreter]...)
			command = append(command, filepath.Join("testdata", c.file))
			if c.module != "" {
				command = append(command, c.module)
			}
			out, errs, err := output(ctx, t, p, target{login: "password"}, "", append(command, host, port, user, password, schema)...)
			if err != nil {
				// Otherwise SQLAlchemy has reported a connection that it checked as gone.
				err = fmt.Errorf("%w: %s", err, tail(string(errs)))
			}
			return out, err
		})
	}
	p.awaitSleeping(t, busy)
	if err := p.server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.server.Restart(); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	for name, r := range results {
		t.Run(name, func(t *testing.T) {
			for i, how := range []string{"direct", "through the proxy"} {
				if text := string(r[i].out); r[i].err != nil || !strings.Contains(text, "again 3\n") {
					t.Errorf("%s: got %q, %v", how, text, r[i].err)
				}
			}
			t.Logf("%s", r[1].out)
			if got, want := string(r[1].out), string(r[0].out); got != want {
				t.Errorf("through the proxy: got %q, want %q", got, want)
			}
		})
	}
}

// awaitSleeping waits until that many statements of the account sleep on the server.
func (p *place) awaitSleeping(t *testing.T, statements int) {
	t.Helper()
	db := p.server.DB(t, "")
	n := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.processlist WHERE user = '" + user + "' AND state = 'User sleep'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == statements {
			return
		}
	}
	t.Fatalf("%d statements run, want %d", n, statements)
}

// lostByDatabaseSQL is such a program.
func lostByDatabaseSQL(ctx context.Context, addr, schema string) ([]byte, error) {
	connector, err := mysql.NewConnector(config(addr, schema))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	db.SetMaxOpenConns(2)
	db.SetMaxIdleConns(2)
	idle, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(idle.PingContext(ctx), idle.Close()); err != nil {
		return nil, err
	}
	_, lost := db.ExecContext(ctx, "SELECT SLEEP(100)")
	out := fmt.Appendf(nil, "busy %v %v\n", lost, errors.Is(lost, mysql.ErrInvalidConn))
	for ctx.Err() == nil {
		if one, err := twoConnections(ctx, db); err == nil {
			return fmt.Appendf(out, "again %d\n", one), nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return out, ctx.Err()
}

// twoConnections runs a statement on each of two connections of a pool.
func twoConnections(ctx context.Context, db *sql.DB) (sum int, err error) {
	for _, sql := range []string{"SELECT 1", "SELECT 2"} {
		c, err := db.Conn(ctx)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		n := 0
		if err := c.QueryRowContext(ctx, sql).Scan(&n); err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
