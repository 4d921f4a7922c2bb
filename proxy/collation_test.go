package proxy_test

import (
	"errors"
	"testing"

	"seqproxy/protocol"
)

// charsetVariables reads all variables that a collation decides.
const charsetVariables = "SHOW VARIABLES WHERE Variable_name LIKE 'c%' AND Variable_name NOT LIKE 'caching%'"

// serverCollations are the ids that the server knows.
func serverCollations(t *testing.T, e *env) map[uint16]bool {
	t.Helper()
	table := "COLLATIONS"
	if e.Servers[0].IsMariaDB() { // MariaDB has no ids there for collations of several character sets
		table = "COLLATION_CHARACTER_SET_APPLICABILITY"
	}
	rows, err := e.Servers[0].DB(t, "").Query("SELECT ID FROM information_schema." + table + " WHERE ID IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	ids := make(map[uint16]bool)
	for rows.Next() {
		var id uint16
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// Checklist 5.
func TestALoginByAnyCollationIsThatOfADirectConnection(t *testing.T) {
	e := newEnv(t, setup{})
	ids := serverCollations(t, e)
	for id := 1; id < 256; id++ {
		l := wireLogin{Collation: uint16(id)}
		if id%2 == 0 {
			l.Schema = e.Schemas[0]
		}
		direct, errDirect := e.tryWire(t, e.Servers[0].Addr(), l)
		through, err := e.tryWire(t, e.Addr(), l)
		if errDirect != nil || err != nil {
			var got, want *protocol.ServerError
			if !errors.As(err, &got) || !errors.As(errDirect, &want) || *got != *want {
				t.Errorf("collation %d: got %v, want %v", id, err, errDirect)
			}
			continue
		}
		p := &pair{t: t, Proxy: through, Direct: direct}
		p.query(charsetVariables)
		p.same(protocol.ComResetConn, "")
		if ids[uint16(id)] { // MariaDB takes an unknown id for leftover memory of another session
			p.query(charsetVariables)
		}
		direct.Close()
		through.Close()
	}
}

// Checklist 5.
func TestAChangeOfUserToACollationAbove255IsThatOfADirectConnection(t *testing.T) {
	e := newEnv(t, setup{})
	for _, id := range []uint16{
		28, 255, 256, 300, 305, 309, 323, 511, 560, 576, 608, 1052, 1057, 1069, 1248, 2048, 2049, 2215, 2304, 2309, 2503, 4000, 65535,
	} {
		for _, schema := range []string{"", e.Schemas[0]} {
			p := e.Pair(t, 0, wireLogin{})
			want := p.Direct.changeTo(e.User, e.Password, schema, p.Direct.hello.Plugin, id)
			got := p.Proxy.changeTo(e.User, e.Password, schema, p.Direct.hello.Plugin, id)
			if want[4] != 0 {
				t.Fatalf("collation %d: %v", id, serverError(t, want))
			}
			compare(t, "the change's OK", got[4:], want[4:])
			p.query(charsetVariables)
			p.query("SELECT USER() LIKE 'u%', DATABASE(), 'ä' = _utf8mb4'ä'")
			for _, w := range []*wire{p.Proxy, p.Direct} {
				w.Close()
			}
		}
	}
}

// MySQL gives a session that is reset the character set of the server, not that of its login.
func TestAResetSessionHasOneCharacterSetOnAllShards(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	l := wireLogin{Schema: e.Schemas[0], Collation: 8} // latin1_swedish_ci
	p := &pair{t: t, Proxy: e.Wire(t, e.Addr(), l), Direct: e.Wire(t, e.Servers[0].Addr(), l)}
	p.query(charsetVariables)
	p.same(protocol.ComResetConn, "")
	p.query(charsetVariables)
	p.Proxy.query("USE " + e.Schemas[1])
	p.query(charsetVariables)
	p.query("SELECT 'ä', COLLATION('a')")
}
