package proxy_test

import (
	"fmt"
	"sync"
	"testing"
)

// A driver counts on from the insert id: the rows of one statement have consecutive numbers however
// many connections insert at the same time.
func TestTheRowsOfAStatementHaveConsecutiveNumbersUnderConcurrency(t *testing.T) {
	const connections, statements = 8, 60
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	pool := o.DB(t, o.Schemas[0], nil)
	pool.SetMaxOpenConns(connections)
	var running sync.WaitGroup
	for i := range connections {
		running.Go(func() {
			c, err := pool.Conn(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			for j := range statements {
				who := fmt.Sprint(i, " ", j)
				text, args := "INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), '"+who+"'), (NEXTVAL('photos'), '"+who+"'), (NEXTVAL('photos'), '"+who+"')", []any(nil)
				if j%2 == 0 { // prepared
					text, args = "INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), ?), (NEXTVAL('photos'), ?), (NEXTVAL('photos'), ?)", []any{who, who, who}
				}
				r, err := c.ExecContext(t.Context(), text, args...)
				if err != nil {
					t.Error(err)
					return
				}
				id, err := r.LastInsertId()
				if err != nil {
					t.Error(err)
					return
				}
				var rows, after int64
				if err := c.QueryRowContext(t.Context(), "SELECT COUNT(*), LAST_INSERT_ID() FROM photos WHERE id BETWEEN ? AND ? AND title = ?", id, id+2, who).Scan(&rows, &after); err != nil {
					t.Error(err)
					return
				}
				if rows != 3 || after != id {
					t.Errorf("statement %s with insert id %d: got %d rows with consecutive numbers and LAST_INSERT_ID() %d, want 3 and the same id", who, id, rows, after)
				}
			}
		})
	}
	running.Wait()
	if got, want := value(t, one(t, pool), "SELECT COUNT(*) FROM photos"), fmt.Sprint(3+3*connections*statements); got != want {
		t.Errorf("rows: got %s, want %s", got, want)
	}
}
