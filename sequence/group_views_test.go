package sequence_test

import (
	"fmt"
	"testing"
	"time"

	"seqproxy/sequence"
)

// Each node of a group of primaries is killed, without an error for clients, and comes back, which
// makes two more views of the group: the configuration of each is the holder. In the end all are
// killed at once, and one that lags begins again. What only the others had committed was given, and
// is lost.
func TestNodesOfAReplicationGroupAreKilledWhileNumbersAreTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("it kills a group several times")
	}
	t.Parallel()
	for _, single := range []bool{true, false} {
		t.Run(fmt.Sprintf("with one primary %v", single), func(t *testing.T) {
			t.Parallel()
			r := newReplicationGroup(t, single)
			e := &estate{Group: r.group, schema: "app"}
			all := &given{}
			a, b := e.join(t, "a", all, patience(time.Minute)), e.join(t, "b", all, patience(time.Minute))
			for i := range r.nodes {
				a.take(t, "a", "photos", 25)
				b.take(t, "b", "photos", 25)
				r.kill(i)
				a.take(t, "a", "photos", 150)
				b.take(t, "b", "photos", 150)
				r.join(i)
				e.join(t, fmt.Sprintf("one that began after node %d came back", i), all, patience(time.Minute)).take(t, "the new one", "photos", 30)
			}
			e.wantHolder(t, 0, 4) // at the start, and for each node at least once

			row := func(at int) (id uint64) {
				t.Helper()
				if err := r.pools[at].QueryRow("SELECT id FROM app.sequence WHERE name = 'photos'").Scan(&id); err != nil {
					t.Fatal(err)
				}
				return id
			}
			last := 0 // the primary, if there is one
			for single && r.pools[last].QueryRow("SELECT 1 FROM performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid AND MEMBER_ROLE = 'PRIMARY'").Scan(new(int)) != nil {
				last++
			}
			again, other := (last+1)%3, (last+2)%3
			r.holdUp(again, other)
			for row(last) < row(again)+1000 {
				b.take(t, "b", "photos", 500)
			}
			b.take(t, "b", "photos", 1000)
			a.cut(0, 1, 2)
			b.cut(0, 1, 2) // they give nothing any more, and a new process remembers nothing
			ahead := row(last)
			r.killAll()
			r.loseReceived(again)
			r.loseReceived(other)
			r.begin(again)
			if has := row(again); has+1000 > ahead {
				t.Fatalf("node %d is at %d, and node %d was at %d: nothing is lost", again, has, last, ahead)
			}
			alone := e.join(t, "alone", all, patience(3*time.Second), func(o *sequence.Options) {
				o.Servers[0].Nodes, o.Servers[0].Addr = nil, e.Nodes[again].Addr()
			})
			if number, err := alone.Take(t.Context(), []byte("photos"), 1); err == nil {
				t.Errorf("a node that is alone gives %d", number)
			}
			r.join(other)
			e.join(t, "fresh", all, patience(time.Minute)).take(t, "fresh", "photos", 5000)
		})
	}
}
