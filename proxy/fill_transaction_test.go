package proxy_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// SET TRANSACTION applies to the client's next transaction, and not to the proxy's own queries
// before it.
func TestSetTransactionHoldsForAnInsertThatIsFilledIn(t *testing.T) {
	o := newOracle(t, bound(proxy.Binding{Table: "photos", Column: "id", Sequence: "photos"}), filledTables...)
	o.fresh(t)
	for insert, asks := range map[string]bool{
		"INSERT INTO photos (title) VALUES ('a')":        false,
		"INSERT INTO photos (title) VALUES ('a'), ('b')": false,
		"INSERT IGNORE INTO photos (title) VALUES ('a')": true,
		"INSERT INTO photos (id, title) VALUES (0, 'a')": true,
		"INSERT INTO photos VALUES (NULL, 'a')":          true,
	} {
		for _, fresh := range []bool{true, false} {
			c := o.Conn(t, o.Schemas[0], nil)
			if !fresh {
				exec(t, c, "INSERT INTO photos (title) VALUES ('x'), ('y')")
			}
			exec(t, c, "SET TRANSACTION READ ONLY")
			_, err := c.ExecContext(t.Context(), insert)
			if refused := new(mysql.MySQLError); asks && errors.As(err, &refused) && refused.Number == 1235 {
				exec(t, c, "START TRANSACTION")
				_, err = c.ExecContext(t.Context(), insert)
			}
			checkError(t, insert, err, 1792)
		}
	}
}

func TestAfterSetTransactionNumbersAreGivenOnceItHasBegun(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "INSERT INTO photos (title) VALUES ('a')")
	const change = "UPDATE photos SET id = NEXTVAL('photos')"
	exec(t, c, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
	wantError(t, c, 1235, change, "START TRANSACTION")
	exec(t, c, "START TRANSACTION", change, "COMMIT")
}

// The proxy's own queries take no snapshot: the transaction sees rows that others commit before the
// client's first read. On MySQL SHOW reads in the transaction's snapshot, so this holds only where
// the proxy knows the table already.
func TestWhatIsAskedForAnInsertTakesNoSnapshot(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	direct := o.DirectConn(t, 0, o.Schemas[0], nil)
	exec(t, direct, "CREATE TABLE other (a INT)", "CREATE TABLE source (a INT)")
	changes := []string{
		"INSERT INTO photos (title) VALUES ('a')",
		"INSERT INTO photos (title) VALUES ('a'), ('b')",
		"INSERT INTO photos (id, title) VALUES (0, 'a')",
		"INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), 'a')",
	}
	if o.Servers[0].IsMariaDB() {
		changes = append(changes,
			"INSERT IGNORE INTO photos (title) VALUES ('a')",
			"INSERT INTO photos (title) SELECT a FROM source",
			"INSERT INTO photos (id, title) SELECT NEXTVAL('photos'), a FROM source",
			"UPDATE photos SET id = NEXTVAL('photos') LIMIT 1")
	}
	rows := 0
	for _, change := range changes {
		for _, begin := range []string{"START TRANSACTION", "SET autocommit = 0"} {
			c := o.Conn(t, o.Schemas[0], nil)
			exec(t, c, begin, change)
			exec(t, direct, "INSERT INTO other VALUES (1)")
			rows++
			if got := value(t, c, "SELECT COUNT(*) FROM other"); got != strconv.Itoa(rows) {
				t.Errorf("%s: got %s rows after %s, want %d", begin, got, change, rows)
			}
			exec(t, c, "ROLLBACK")
		}
	}
}
