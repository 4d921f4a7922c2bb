package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// TestMetricsOfAGroup checks the metrics of a sequence server with a primary and a replica: as a
// group, without the replica, and after the replica has become the primary.
func TestMetricsOfAGroup(t *testing.T) {
	group, server := mysqltest.StartGroup(t, 2), mysqltest.Shared(t)
	links := []*mysqltest.Link{mysqltest.NewLink(t, group.Nodes[0].Addr()), mysqltest.NewLink(t, group.Nodes[1].Addr())}
	nodes := fmt.Sprintf("nodes = [%q, %q]", links[0].Addr(), links[1].Addr())
	text := meteredConfig(server, "numbers", "", "", "the group")
	s := startSubject(t, strings.Replace(text, `address = "the group"`, nodes, 1))
	m := meter(t, s)
	c := s.mustConnect(t, "root", "")
	must(t, c, "CREATE SEQUENCE photos CACHE 10", "SELECT NEXTVAL('photos')")
	name := ""
	for series := range m.read().family("sequence_server_up") {
		name = strings.TrimSuffix(strings.TrimPrefix(series, `sequence_server_up{server="`), `"}`)
	}
	for _, link := range links {
		if !strings.Contains(name, link.Addr()) {
			t.Errorf("the group is called %q, want the addresses of its nodes", name)
		}
	}
	on := func(i int) string {
		return fmt.Sprintf(`sequence_server_node_info{node="%s",server="%s"}`, links[i].Addr(), name)
	}
	all := m.awaits("before", series{on(0): 1, `sequence_server_up{server="` + name + `"}`: 1, line("photos", "given"): 1, line("photos", "reservations error"): 0})
	if got := len(all.family("sequence_server_node_info")); got != 1 {
		t.Errorf("got reservations at %d nodes, want one", got)
	}

	// Without the replica no number above the ceiling is given. That is an error, and there is an
	// alert for it.
	links[1].Cut()
	answered := make(chan error, 1)
	go func() {
		_, err := c.ExecContext(context.Background(), "SELECT NEXTVAL('photos', 1000000)")
		answered <- err
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if all = m.read(); all[line("photos", "reservations error")] > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("without the replica reservations ended thus: %v", all.of("photos").family("sequence_reservations_total"))
		}
	}
	links[1].Mend()
	if err := receive(t, "the numbers", answered); err != nil {
		t.Fatal(err)
	}
	m.awaits("with the replica", lines("photos", map[string]float64{"given": 1000001, "failed": 0}))

	// The replica becomes the primary.
	group.CatchUp(t, 1, 0)
	if err := group.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	group.Promote(t, 1)
	must(t, c, "SELECT NEXTVAL('photos', 1000)")
	all = m.awaits("the new primary", series{on(1): 1, line("photos", "given"): 1001001, line("photos", "rewinds"): 0, line("photos", "failed"): 0})
	if got := all.family("sequence_server_node_info"); len(got) != 1 {
		t.Errorf("got reservations at %v, want one node", got)
	}
}
