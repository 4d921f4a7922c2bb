package sequence_test

import "testing"

// semiSynchronous makes commits of the first node wait for the second one, for a second at most,
// and returns how the first one's status variables begin.
func (e *estate) semiSynchronous(t *testing.T) (status string) {
	t.Helper()
	source, replica := "master", "slave"
	if !e.Nodes[0].IsMariaDB() {
		source, replica = "source", "replica"
		e.Nodes[0].Exec(t, "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
		e.Nodes[1].Exec(t, "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'")
	}
	e.Cut(t, 1)
	e.Nodes[1].Exec(t, "SET GLOBAL rpl_semi_sync_"+replica+"_enabled = 1")
	e.Nodes[0].Exec(t, "SET GLOBAL rpl_semi_sync_"+source+"_enabled = 1", "SET GLOBAL rpl_semi_sync_"+source+"_timeout = 1000")
	e.Mend(t, 1)
	return "Rpl_semi_sync_" + source + "_"
}

// Semi-synchronous replication that has lost its replica goes on without it, by default after some
// seconds. A fail-over then loses what was committed since.
func TestAFailOverAfterSemiSynchronousReplicationHasFallenBackRepeatsNoNumber(t *testing.T) {
	e := startEstate(t, 2, "photos")
	status := e.semiSynchronous(t)
	is := func(name string) (value string) {
		t.Helper()
		if err := e.pools[0].QueryRow("SHOW GLOBAL STATUS LIKE '"+status+name+"'").Scan(&name, &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	eventually(t, "a replica says that it is there", func() bool { return is("clients") == "1" && is("status") == "ON" })
	all := &given{}
	a, b := e.join(t, "a", all, steadySize(15)), e.join(t, "b", all, steadySize(15))
	for range 5 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	eventually(t, "a commit has waited for the replica", func() bool {
		a.take(t, "a", "photos", 15)
		return is("yes_tx") != "0"
	})
	e.CatchUp(t, 1, 0)
	e.Cut(t, 1)
	eventually(t, "the primary goes on without its replica", func() bool {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
		return is("status") == "OFF" && is("no_tx") != "0"
	})
	for range 5 {
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
	e.wantBehind(t, 1, 0)
	if err := e.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	e.Promote(t, 1)
	fresh := e.join(t, "a third", all)
	for range 20 {
		fresh.take(t, "the third", "photos", 40)
		a.take(t, "a", "photos", 15)
		b.take(t, "b", "photos", 15)
	}
}

// wantBehind checks that a node lacks reservations that another one has: a fail-over to it loses
// them.
func (e *estate) wantBehind(t *testing.T, i, of int) {
	t.Helper()
	var here, there uint64
	for node, id := range map[int]*uint64{i: &here, of: &there} {
		if err := e.pools[node].QueryRow("SELECT id FROM sequence WHERE name = 'photos'").Scan(id); err != nil {
			t.Fatal(err)
		}
	}
	if here >= there {
		t.Errorf("the row of photos stands at %d, and at %d on the primary: nothing would be lost, and this shows nothing", here, there)
	}
}
