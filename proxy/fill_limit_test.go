package proxy_test

import (
	"fmt"
	"testing"
)

// sql_select_limit hides columns from SHOW COLUMNS. No row goes past the sequence for that, neither
// of the client who has set it nor of another.
func TestARowLimitHidesNoColumnThatIsFilledIn(t *testing.T) {
	const table = "CREATE TABLE photos (title VARCHAR(20), id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)"
	o := newOracle(t, bound(filledPhotos), table)
	for _, limit := range []int{0, 1, 2, 3} {
		o.fresh(t)
		c, other := o.Conn(t, o.Schemas[0], nil), o.Conn(t, o.Schemas[0], nil)
		exec(t, c, fmt.Sprintf("SET sql_select_limit = %d", limit))
		wantError(t, c, 1235, "INSERT INTO photos VALUES ('a', NULL, 1)", "sql_select_limit")
		exec(t, other, "INSERT INTO photos VALUES ('b', NULL, 2), ('c', 0, 3)")
		exec(t, c, "SET sql_select_limit = 4", "INSERT INTO photos VALUES ('d', NULL, 4)", "SET sql_select_limit = DEFAULT")
		if got := value(t, c, "SELECT CONCAT(COUNT(*), ' ', SUM(id > 1000)) FROM photos"); got != "3 3" {
			t.Errorf("limit %d: rows, and those with a number of the sequence: got %s, want 3 3", limit, got)
		}
		// Without a look at the columns the number is plain, though it may be in no row.
		exec(t, c, "ALTER TABLE photos MODIFY n INT", fmt.Sprintf("SET sql_select_limit = %d", limit), "INSERT IGNORE INTO photos (title) VALUES ('e')", "SET sql_select_limit = DEFAULT")
		if got := value(t, c, "SELECT SUM(id > 1000) FROM photos"); got != "4" {
			t.Errorf("limit %d: IGNORE: got %s rows with a number of the sequence, want 4", limit, got)
		}
	}
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "CREATE TRIGGER aside BEFORE INSERT ON photos FOR EACH ROW SET NEW.n = 5", "CREATE TABLE src (title VARCHAR(20))", "SET sql_select_limit = 1")
	wantError(t, c, 1235, "INSERT INTO photos (title) SELECT title FROM src", "sql_select_limit")
	exec(t, c, "SET sql_select_limit = 2")
	wantError(t, c, 1235, "INSERT INTO photos (title) SELECT title FROM src", "trigger")
}
