package change_test

import (
	"strings"
	"testing"

	"seqproxy/sequence/change"
	"seqproxy/sequence/segment"
	"seqproxy/test/simulation"
)

// A plan has the addresses by which all proxies reach the members. One that means another machine
// elsewhere goes with those of the same machine alone.
func TestOneOfTheSameMachineIsNoMemberBesideOthers(t *testing.T) {
	for _, c := range []struct {
		first, added string
		refused      bool
	}{
		{"db0:3306", "db1:3306", false},
		{"10.0.0.1:3306", "[2001:db8::1]:3306", false},
		{"127.0.0.1:3306", "localhost:3307", false},
		{"/run/mysqld.sock", "[::1]:3307", false},
		{"127.0.0.1:3306", "db1:3306", true},
		{"/run/mysqld.sock", "db1:3306", true},
		{"db0:3306", "localhost:3306", true},
		{"db0:3306", "[::1]:3306", true},
	} {
		w := simulation.NewWorld(2, 1, segment.InBlocks)
		w.Members[0].Address, w.Members[1].Address = c.first, c.added
		a := w.Change("coordinator", change.Change{Add: c.added})
		a.Run()
		if refused := a.Err != nil && strings.Contains(a.Err.Error(), "one machine alone"); refused != c.refused || !refused && a.Err != nil {
			t.Errorf("%s is added to %s: %v, want that it is refused: %v", c.added, c.first, a.Err, c.refused)
		}
	}
}
