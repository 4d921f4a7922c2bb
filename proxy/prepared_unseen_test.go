package proxy_test

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence"
)

// TestAStatementThatWasPreparedUnseenIsNotExecutedOnceItsTableIsBound prepares INSERTs in ways in
// which the proxy does not see their text. Nothing is bound then, so it does not have to.
func TestAStatementThatWasPreparedUnseenIsNotExecutedOnceItsTableIsBound(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	const insert = "INSERT INTO photos (title) VALUES (''unseen'')"
	exec(t, c, "CREATE PROCEDURE prepares() PREPARE routine FROM '"+insert+"'",
		"PREPARE several FROM 'SELECT 1'", "SELECT 1; PREPARE several FROM '"+insert+"'",
		"SET @q = '"+insert+"'", "PREPARE variable FROM @q",
		"CALL prepares()", "PREPARE harmless FROM 'SELECT COUNT(*) FROM photos'",
		"EXECUTE variable", "EXECUTE several", "EXECUTE routine", "EXECUTE harmless")
	column := sequence.Column{Schema: o.Schemas[0], Table: "photos", Column: "id"}
	if _, err := o.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{OwnedBy: &column}); err != nil {
		t.Fatal(err)
	}
	wantError(t, c, 1615, "EXECUTE variable", "OWNED BY")
	wantError(t, c, 1235, "EXECUTE several", "send PREPARE alone")
	wantError(t, c, 1235, "EXECUTE routine", "send PREPARE alone")
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE title = 'unseen'"); got != "3" {
		t.Errorf("got %s rows, want those from before OWNED BY", got)
	}
	exec(t, c, "EXECUTE harmless")
	// whoever has prepared nothing gets the server's error
	wantError(t, o.Conn(t, o.Schemas[0], nil), 1243, "EXECUTE routine")
}
