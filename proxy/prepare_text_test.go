package proxy_test

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/proxy"
	"seqproxy/sequence"
)

// PREPARE of a text that takes numbers is an error, because drivers prepare those by the protocol.
// Other texts go to the server.
func TestATextPreparedAsTextTakesNoNumbers(t *testing.T) {
	o := newOracle(t, bound(filledPhotos), filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	multi := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	rows := value(t, c, "SELECT COUNT(*) FROM photos")
	next := o.nextNumber(t, "photos")
	other := o.Servers[0].Schema(t)
	exec(t, c, "CREATE TABLE "+other+".photos (title TEXT)", "SET @n = 5")
	maria := o.Servers[0].IsMariaDB()
	for _, refused := range []string{
		"INSERT INTO photos (title) VALUES (1)",
		"INSERT INTO photos VALUES (NULL, 2, 3)",
		"INSERT INTO photos (id, title) VALUES (?, 1)",
		"INSERT INTO photos (title) SELECT 1",
		"/*!999999 x */ REPLACE INTO photos SET title = 3",
		"SELECT NEXTVAL(`photos`)",
		"UPDATE photos SET parent = NEXTVAL(`photos`)",
		"LOAD DATA INFILE 0x78 INTO TABLE photos (title)",
		"SELECT 1 + LASTVAL(photos)",
	} {
		wantError(t, c, 1235, "PREPARE s FROM '"+refused+"'")
		exec(t, c, "SET @q = '"+refused+"'")
		wantError(t, c, 1235, "PREPARE s FROM @q")
		wantError(t, multi, 1235, "SET @q = '"+refused+"'; PREPARE s FROM @q; EXECUTE s")
		if maria {
			wantError(t, c, 1235, "EXECUTE IMMEDIATE '"+refused+"'")
			wantError(t, c, 1235, "EXECUTE IMMEDIATE @q")
			wantError(t, c, 1235, "EXECUTE IMMEDIATE CONCAT(@q, '')")
			wantError(t, c, 1235, "PREPARE s FROM CONCAT('', @q)")
		}
	}
	for _, relayed := range []string{
		"SELECT 1 + ?", "UPDATE photos SET title = ? WHERE id = 0", "SELECT LAST_INSERT_ID(), ?", "DELETE FROM photos WHERE id = 0 AND id = ?",
		"INSERT INTO " + other + ".photos (title) VALUES (?)",
	} {
		exec(t, c, "PREPARE s FROM '"+relayed+"'", "EXECUTE s USING @n", "SET @q = '"+relayed+"'", "PREPARE s FROM @q", "EXECUTE s USING @n", "DEALLOCATE PREPARE s")
		if maria {
			exec(t, c, "EXECUTE IMMEDIATE @q USING @n", "EXECUTE IMMEDIATE '"+relayed+"' USING @n")
		}
	}
	if got := value(t, c, "SELECT COUNT(*) FROM photos"); got != rows {
		t.Errorf("rows: got %s, want %s", got, rows)
	}
	if got := o.nextNumber(t, "photos"); got != next {
		t.Errorf("numbers taken: got %d, want none", got-next)
	}
}

func TestATextPreparedAsTextIsRelayedWhereItsSequencesAreNotServed(t *testing.T) {
	o := newOracle(t, setup{Proxy: func(p *proxy.Options) { p.Unknown = proxy.UnknownRelay }}, photosTables...)
	o.run(t, []script{{"the server's own words", []string{
		"PREPARE s FROM 'DO NEXTVAL(''nobody'')'",
		"PREPARE s FROM 'SELECT NEXTVAL(nobody)'",
		"EXECUTE s",
	}}})
}

// Otherwise the server would go on to make the keys, and a key of the sequence may be among them.
func TestAnInsertPreparedAsTextHasToBePreparedAgainWhenItsTableIsBound(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], nil)
	exec(t, c, "PREPARE s FROM 'INSERT INTO photos (title) VALUES (''prepared'')'", "PREPARE n FROM 'SELECT COUNT(*) FROM photos'", "EXECUTE s")
	column := sequence.Column{Schema: o.Schemas[0], Table: "photos", Column: "id"}
	if _, err := o.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{OwnedBy: &column}); err != nil {
		t.Fatal(err)
	}
	wantError(t, c, 1615, "EXECUTE s", "OWNED BY")
	exec(t, c, "CREATE PROCEDURE nothing() DO 1", "CALL nothing()")
	wantError(t, c, 1615, "EXECUTE s", "OWNED BY")
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE title = 'prepared'"); got != "1" {
		t.Errorf("got %s rows, want the one from before OWNED BY", got)
	}
	exec(t, c, "EXECUTE n")
	wantError(t, c, 1235, "PREPARE s FROM 'INSERT INTO photos (title) VALUES (''prepared'')'")
}
