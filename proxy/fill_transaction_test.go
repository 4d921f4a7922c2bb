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
	for _, insert := range []string{
		"INSERT INTO photos (title) VALUES ('a')",
		"INSERT INTO photos (title) VALUES ('a'), ('b')",
		"INSERT IGNORE INTO photos (title) VALUES ('a')",
		"INSERT INTO photos (id, title) VALUES (0, 'a')",
		"INSERT INTO photos VALUES (NULL, 'a')",
	} {
		for _, fresh := range []bool{true, false} {
			c := o.Conn(t, o.Schemas[0], nil)
			if !fresh {
				exec(t, c, "INSERT INTO photos (title) VALUES ('x'), ('y')")
			}
			exec(t, c, "SET TRANSACTION READ ONLY")
			_, err := c.ExecContext(t.Context(), insert)
			if refused := new(mysql.MySQLError); errors.As(err, &refused) && refused.Number == 1235 {
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
	for i, change := range changes {
		c := o.Conn(t, o.Schemas[0], nil)
		exec(t, c, "START TRANSACTION", change)
		exec(t, direct, "INSERT INTO other VALUES (1)")
		if got := value(t, c, "SELECT COUNT(*) FROM other"); got != strconv.Itoa(i+1) {
			t.Errorf("%s: got %s rows afterwards, want %d", change, got, i+1)
		}
		exec(t, c, "ROLLBACK")
	}
}
