package proxy_test

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
)

// What SET TRANSACTION says of the next transaction holds for the client's, and not for what
// the proxy asks the server in front of it.
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
	exec(t, c, "INSERT INTO photos (title) VALUES ('a')", "PREPARE s FROM 'INSERT INTO photos (id) VALUES (NEXTVAL(''photos''))'")
	for _, change := range []string{"EXECUTE s", "UPDATE photos SET id = NEXTVAL('photos')"} {
		exec(t, c, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
		wantError(t, c, 1235, change, "START TRANSACTION")
		exec(t, c, "START TRANSACTION", change, "COMMIT")
	}
}
