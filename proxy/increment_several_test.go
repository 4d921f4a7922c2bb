package proxy_test

import (
	"database/sql"
	"strconv"
	"sync"
	"testing"

	"seqproxy/test/mysqltest"
)

// optimizer makes ids as those of Hibernate do where allocationSize is more than 1. A number is the
// last of a range of ids for "pooled", and the first for "pooled-lo". With "pooled" the client that
// gets the very first number takes the next one for the end of its range.
type optimizer struct {
	lo         bool
	value, end uint64
}

const allocationSize = 50

func (p *optimizer) id(next func() uint64) uint64 {
	if p.value >= p.end {
		switch n := next(); {
		case p.lo:
			p.value, p.end = n, n+allocationSize
		case p.end == 0 && n == 1:
			p.value, p.end = n, next()+1
		default:
			p.value, p.end = n-allocationSize+1, n+1
		}
	}
	p.value++
	return p.value - 1
}

// Several sequence servers divide a sequence with INCREMENT BY n in blocks, while clients make the
// ids between the numbers themselves, as Hibernate does. The statements are those of its MariaDB
// dialect.
func TestHibernatesOptimizersOverSeveralSequenceServers(t *testing.T) {
	servers := []*mysqltest.Server{mysqltest.Shared(t), mysqltest.SharedSecond(t), mysqltest.StartUnsynced(t)}
	e, schema := newDividedEnv(t, 200, servers...)
	c := e.Conn(t, schema, nil)
	wantError(t, c, 1235, "create sequence odd_seq start with 1 increment by 30 nocache", "200 numbers of a block")
	exec(t, c, "create sequence photos_seq start with 1 increment by 50 nocache", "create sequence cached_seq start with 1 increment by 50")
	for _, test := range []struct {
		name string
		lo   bool
	}{{"photos_seq", true}, {"cached_seq", false}} {
		if !test.lo {
			// Its client relies on the next number being adjacent, as on a single server.
			for range 1000 {
				if mustNumber(t, c, "select nextval("+test.name+")") == 1 {
					break
				}
			}
		}
		var mu sync.Mutex
		made := make(map[uint64]int)
		var wg sync.WaitGroup
		for client := range 4 {
			conn := e.Conn(t, schema, nil)
			wg.Go(func() {
				p, last := optimizer{lo: test.lo}, uint64(0)
				for range 400 {
					id := p.id(func() uint64 { return mustNumber(t, conn, "select nextval("+test.name+")") })
					mu.Lock()
					if other, twice := made[id]; twice {
						t.Errorf("%s: client %d makes %d, which was given before to client %d", test.name, client, id, other)
					}
					made[id] = client
					mu.Unlock()
					if id <= last {
						t.Errorf("%s: client %d: got %d after %d", test.name, client, id, last)
					}
					last = id
				}
			})
		}
		wg.Wait()
	}
	rows := 0
	for i, server := range servers {
		if id := mustNumber(t, one(t, server.DB(t, schema)), "SELECT id FROM sequence WHERE name = 'photos_seq'"); id > 0 {
			rows++
		} else {
			t.Logf("server %d gave nothing", i)
		}
	}
	if rows < 2 {
		t.Errorf("got numbers of %d servers, want several", rows)
	}
}

func mustNumber(t *testing.T, c *sql.Conn, query string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(value(t, c, query), 10, 64)
	if err != nil {
		t.Errorf("%s: %v", query, err)
	}
	return n
}
