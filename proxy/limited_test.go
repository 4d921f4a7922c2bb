package proxy_test

import "testing"

// Drivers of MariaDB write a query timeout and a number of rows in front of the statement.
func TestAStatementThatADriverLimitsIsReadAsWithoutTheLimit(t *testing.T) {
	o := newOracle(t, ownServer(t, bound(filledPhotos)),
		"CREATE TABLE photos (title VARCHAR(100) NOT NULL DEFAULT '', id BIGINT UNSIGNED NOT NULL PRIMARY KEY, parent BIGINT UNSIGNED)")
	if !o.Servers[0].IsMariaDB() {
		t.Skip("MySQL has no SET STATEMENT")
	}
	const limit, rows = "SET STATEMENT max_statement_time=30 FOR ", "SET STATEMENT SQL_SELECT_LIMIT=2 FOR "
	o.run(t, []script{
		{"text", []string{
			limit + "SELECT «NEXTVAL('photos')» AS n", insertIDs,
			limit + "INSERT INTO photos (id, title) VALUES («NEXTVAL('photos')», 'a')", insertIDs,
			limit + "INSERT INTO photos (title) VALUES ('b') => " + limit + "INSERT INTO photos (title, id) VALUES ('b', LAST_INSERT_ID({p1}))", insertIDs,
			limit + "INSERT INTO photos VALUES ('c', NULL, 7), ('d', 0, 8) => " + limit + "INSERT INTO photos VALUES ('c', LAST_INSERT_ID({p1}), 7), ('d', {p2}, 8)", insertIDs,
			limit + "REPLACE photos SET title = 'e' => " + limit + "REPLACE photos SET title = 'e', id = LAST_INSERT_ID({p1})", insertIDs,
			limit + "UPDATE photos SET parent = LAST_INSERT_ID() WHERE title = 'a'",
			limit + "INSERT INTO photos (id, title) VALUES (5000, 'f')",
			limit + "DELETE FROM photos WHERE id = 5000",
			rows + "SELECT «NEXTVAL('photos')» AS n FROM DUAL", insertIDs,
			rows + "SELECT title FROM photos ORDER BY id",
			"SET STATEMENT max_statement_time=0.01 FOR SELECT SLEEP(9), «NEXTVAL('photos')» AS n FROM DUAL",
			"SELECT @@max_statement_time, @@sql_select_limit",
			"SELECT * FROM photos ORDER BY id",
		}},
	})
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	for _, text := range []string{limit + "SELECT 1", limit + "SELECT NEXTVAL('photos')", rows + "SELECT title FROM photos"} {
		w.query(text)
		if pins := o.pinsOf(w); pins != "" {
			t.Errorf("%s: pinned by %s", text, pins)
		}
	}
}
