package proxy_test

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// Only the first number of a statement is LAST_INSERT_ID(n) on the server. The others have the same
// column as it.
func TestTheColumnOfEveryNumberIsThatOfLastInsertID(t *testing.T) {
	o := newOracle(t, setup{}, photosTables...)
	o.fresh(t)
	p := o.Pair(t, 0, wireLogin{Schema: o.Schemas[0], Capabilities: allFraming})
	for _, item := range []string{
		"%s AS a", "%s + 1 AS a", "%s / 3 AS a", "-%s AS a", "IFNULL(%s, 'x') AS a", "CONCAT(%s) AS a", "HEX(%s) AS a", "(SELECT %s) AS a",
		"CASE WHEN 1 THEN %s END AS a", "GREATEST(%s, 1.5) AS a", "COALESCE(NULL, %s) AS a", "CAST(%s AS CHAR) AS a", "JSON_ARRAY(%s) AS a",
		"1 AS a UNION ALL SELECT 1, %s", "NULL AS a UNION SELECT %s, 'b'", "%s IS NULL AS a", "%s > 5 AS a", "MAX(%s) AS a", "%s AS a GROUP BY 1",
	} {
		const first = "SELECT %s AS f, " + "%s LIMIT 2"
		n := o.nextNumber(t, "photos")
		inOrder := func(calls ...any) string { return fmt.Sprintf(fmt.Sprintf(first, "%s", item), calls...) }
		got := p.Proxy.query(inOrder("NEXTVAL('photos')", "NEXTVAL('photos')"))
		want := p.Direct.query(inOrder(fmt.Sprintf("LAST_INSERT_ID(%d)", n), fmt.Sprintf("LAST_INSERT_ID(%d)", n+1)))
		compare(t, item, got, want)

		// Prepared. The definitions in the answer to PREPARE are compared by type and flags only.
		call, number := "NEXTVAL('photos')", "LAST_INSERT_ID(?)"
		got = p.Proxy.do(protocol.ComStmtPrepare, inOrder(call, call))
		want = p.Direct.do(protocol.ComStmtPrepare, inOrder(number, number))
		id, directID := binary.LittleEndian.Uint32(got[5:]), binary.LittleEndian.Uint32(want[5:])
		n = o.nextNumber(t, "photos")
		p.Proxy.send(packet(execution(id, nil, false)))
		got = p.Proxy.receive(protocol.ShapeResult, nil)
		p.Direct.send(packet(execution(directID, []argument{unsigned(n), unsigned(n + 1)}, true)))
		want = p.Direct.receive(protocol.ShapeResult, nil)
		compare(t, "prepared: "+item, got, want)
	}
	// LAST_INSERT_ID() and its like in the same statement as a number.
	const previous = "SELECT %s AS n, LAST_INSERT_ID(), @@identity AS i, @@session.last_insert_id AS s, LAST_INSERT_ID() + 1 AS p LIMIT 1"
	p.query("SELECT LAST_INSERT_ID(77)")
	n := o.nextNumber(t, "photos")
	got := split(p.Proxy.query(fmt.Sprintf(previous, "NEXTVAL('photos')")))
	want := split(p.Direct.query(fmt.Sprintf(previous, fmt.Sprintf("LAST_INSERT_ID(%d)", n))))
	for i := range want[:6] { // the rows differ, because a server gives the new number
		if string(got[i]) != string(want[i]) {
			t.Errorf("in a text with a number: packet %d of the columns: got\n%x, want\n%x", i, got[i], want[i])
		}
	}
	if _, rows := p.Proxy.result(strings.Replace(previous, "%s", "NEXTVAL('photos')", 1)); fmt.Sprint(rows) != fmt.Sprintf("[[%d %d %d %d %d]]", n+1, n, n, n, n+1) {
		t.Errorf("in a text with a number: got %v, want the number before, %d", rows, n)
	}
	got = split(p.Proxy.do(protocol.ComStmtPrepare, fmt.Sprintf(previous, "NEXTVAL('photos')")))
	// The number is a parameter there.
	want = split(p.Direct.do(protocol.ComStmtPrepare, fmt.Sprintf(previous, "LAST_INSERT_ID(?)")))[1:]
	for i := 2; i < 6; i++ {
		if string(got[i]) != string(want[i]) {
			t.Errorf("prepared with a number: packet %d: got\n%x, want\n%x", i, got[i], want[i])
		}
	}
}
