package proxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"
)

// TestManySessionsDoNotDisturbEachOther has clients with state of their own come, go, change
// shards, run transactions and vanish, all at once.
func TestManySessionsDoNotDisturbEachOther(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	createSequence(t, e, "s")
	for i, schema := range e.Schemas {
		e.Servers[i].Exec(t, "USE "+schema, "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, worker INT) ENGINE=InnoDB")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	end := time.Now().Add(1500 * time.Millisecond)
	pool := e.DB(t, "", nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	want := map[int]int{} // committed rows by shard
	for worker := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(worker)))
			for time.Now().Before(end) {
				rows, err := visit(pool, e, rnd, worker)
				mu.Lock()
				for shard, n := range rows {
					want[shard] += n
				}
				mu.Unlock()
				if err != nil {
					t.Errorf("worker %d: %v", worker, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if want[0]+want[1] == 0 {
		t.Error("no row was committed")
	}
	for i, schema := range e.Schemas {
		if got := value(t, e.DirectConn(t, i, schema, nil), "SELECT COUNT(*) FROM t"); got != strconv.Itoa(want[i]) {
			t.Errorf("rows on shard %d: got %s, want %d", i, got, want[i])
		}
	}
}

// visit uses one connection for a while and returns how many rows it has committed on each shard.
func visit(pool *sql.DB, e *env, rnd *rand.Rand, worker int) (rows map[int]int, err error) {
	ctx := context.Background()
	rows = map[int]int{}
	c, err := pool.Conn(ctx)
	if err != nil {
		return rows, err
	}
	defer c.Close()
	shard := rnd.IntN(2)
	if _, err := c.ExecContext(ctx, "USE "+e.Schemas[shard]); err != nil {
		return rows, err
	}
	mark := strconv.Itoa(rnd.IntN(1 << 30))
	if _, err := c.ExecContext(ctx, "SET @mark = "+mark); err != nil {
		return rows, err
	}
	for range rnd.IntN(20) {
		switch rnd.IntN(7) {
		case 0:
			shard = 1 - shard
			_, err = c.ExecContext(ctx, "USE "+e.Schemas[shard])
		case 1:
			if _, err = c.ExecContext(ctx, "INSERT INTO t VALUES (NEXTVAL('s'), ?)", worker); err == nil {
				rows[shard]++
			}
		case 2:
			err = inTransaction(ctx, c, rnd.IntN(2) == 0, worker)
			if err == nil {
				rows[shard] += 2
			} else if err == errRolledBack {
				err = nil
			}
		case 3: // does not read a result to its end
			limited, cancel := context.WithCancel(ctx)
			r, queryErr := c.QueryContext(limited, "SELECT seq, REPEAT('x', 500) FROM "+e.Servers[shard].Numbers(2000))
			if err = queryErr; err == nil {
				r.Next()
				r.Close()
			}
			cancel()
		case 4:
			_, err = c.ExecContext(ctx, "SELECT * FROM no_such_table")
			if err == nil {
				return rows, fmt.Errorf("a table that does not exist was read")
			}
			err = nil
		case 5: // vanishes
			w, dialErr := e.tryWire(e.t, e.addr, wireLogin{Schema: e.Schemas[shard]})
			if err = dialErr; err == nil {
				_, _ = w.Write(packet([]byte("\x03SELECT seq, REPEAT('x', 500) FROM " + e.Servers[shard].Numbers(20000))))
				w.Close()
			}
		default:
			var got, port string
			err = c.QueryRowContext(ctx, "SELECT @mark, @@port").Scan(&got, &port)
			if err == nil && (got != mark || port != e.port(shard)) {
				err = fmt.Errorf("got mark %s on port %s, want %s on %s", got, port, mark, e.port(shard))
			}
		}
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

var errRolledBack = errors.New("rolled back")

// inTransaction inserts two rows and commits or rolls back.
func inTransaction(ctx context.Context, c *sql.Conn, commit bool, worker int) error {
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := tx.Exec("INSERT INTO t VALUES (NEXTVAL('s'), " + strconv.Itoa(worker) + ")"); err != nil {
			return err
		}
	}
	if commit {
		return tx.Commit()
	}
	if err := tx.Rollback(); err != nil {
		return err
	}
	return errRolledBack
}
