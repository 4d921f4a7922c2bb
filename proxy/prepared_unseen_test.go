package proxy_test

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// TestAStatementThatWasPreparedUnseenIsNotExecutedOnceItsTableIsBound prepares INSERTs in ways in
// which the proxy does not see their text. Nothing is bound then, so it does not have to.
func TestAStatementThatWasPreparedUnseenIsNotExecutedOnceItsTableIsBound(t *testing.T) {
	o := newOracle(t, setup{}, filledTables...)
	o.fresh(t)
	c := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	const insert = "INSERT INTO photos (title) VALUES (''unseen'')"
	exec(t, c, "PREPARE several FROM 'SELECT 1'", "PREPARE harmless FROM 'SELECT COUNT(*) FROM photos'",
		"SELECT 1; PREPARE several FROM '"+insert+"'", "SELECT 1; PREPARE fresh FROM '"+insert+"'",
		"SET @q = '"+insert+"'", "PREPARE variable FROM @q",
		"EXECUTE several", "EXECUTE fresh", "EXECUTE variable", "EXECUTE harmless")
	other := o.Conn(t, o.Schemas[0], func(c *mysql.Config) { c.MultiStatements = true })
	exec(t, other, "PREPARE s FROM '"+insert+"'")
	column := sequence.Column{Schema: o.Schemas[0], Table: "photos", Column: "id"}
	if _, err := o.Sequences.Alter(t.Context(), []byte("photos"), sequence.Alteration{OwnedBy: &column}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"several", "fresh", "variable", "harmless"} { // which may have been prepared anew
		wantError(t, c, 1615, "EXECUTE "+name, "OWNED BY")
	}
	wantError(t, other, 1615, "SELECT 1; EXECUTE s", "OWNED BY")
	exec(t, other, "DEALLOCATE PREPARE s", "PREPARE s FROM 'SELECT 1'", "SELECT 1; EXECUTE s")
	if got := value(t, c, "SELECT COUNT(*) FROM photos WHERE title = 'unseen'"); got != "3" {
		t.Errorf("got %s rows, want those from before OWNED BY", got)
	}
	exec(t, c, "PREPARE harmless FROM 'SELECT COUNT(*) FROM photos'", "EXECUTE harmless")
	// whoever has prepared nothing gets the server's error
	wantError(t, o.Conn(t, o.Schemas[0], nil), 1243, "EXECUTE fresh")
}

// TestATextBehindMalformedAttributesBringsNoRowsIn sends an INSERT behind attributes of which the
// proxy cannot say where they end. Servers take some of them.
func TestATextBehindMalformedAttributesBringsNoRowsIn(t *testing.T) {
	s := bound(filledPhotos)
	s.Servers = []*mysqltest.Server{mysqltest.Start(t)}
	e := newEnv(t, s)
	e.offers(t, protocol.QueryAttributes, "query attributes")
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], filledTables[0])
	w := e.Pair(t, 0, wireLogin{Schema: e.Schemas[0], Capabilities: attributeCaps}).Proxy
	direct := e.DirectConn(t, 0, e.Schemas[0], nil)
	for _, attrs := range []string{"", "\x00\x02", "\x01\x01\x00\x01\x0d\x00\x01a\x03xyz", "\x01\x01\x00\x01\xf3\x00\x01a\x01z", "\x01\x01\x00\x01\x06\x00\x01a"} {
		w.send(packet(command(protocol.ComQuery, attrs+"INSERT INTO photos (title) VALUES ('unread')")))
		w.receive(protocol.ShapeResult, nil)
		w.ping(attrs)
		if got := value(t, direct, "SELECT COUNT(*) FROM photos"); got != "0" {
			t.Fatalf("attributes %q: got %s rows with a key of the server", attrs, got)
		}
	}
}
