package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// babbler is the address of a server that speaks no protocol.
func babbler(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			nc, err := l.Accept()
			if err != nil {
				return // closed
			}
			_, _ = nc.Write([]byte("\x05\x00\x00\x00hello"))
			_ = nc.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

// TestMetricsOfNodes checks a node that works, nodes that are silent or lack TLS, and addresses
// without a server.
func TestMetricsOfNodes(t *testing.T) {
	server := mysqltest.Start(t, mysqltest.WithoutTLS(t)...)
	server.Exec(t, "CREATE DATABASE numbers")
	silent, babbling := mysqltest.SilentListener(t).String(), babbler(t)
	rest := ""
	for name, address := range map[string]string{"far": silent, "odd": babbling} {
		rest += fmt.Sprintf("[[shard]]\nname = %[1]q\nschemas = [%[1]q]\n[[shard.node]]\naddress = %[2]q\n", name, address)
	}
	rest += fmt.Sprintf("[[shard]]\nname = \"bare\"\nschemas = [\"bare\"]\ntls = \"REQUIRED\"\n[[shard.node]]\naddress = %q\n", server.Addr())
	s := startSubject(t, meteredConfig(server, "numbers", "default_shard = \"main\"\nconnect_timeout = \"3s\"", rest, server.Addr()))
	m := meter(t, s)
	of := func(metric, shard, address, more string) string {
		return fmt.Sprintf(`node_%s{%snode="%s",shard="%s"%s}`, metric, "", address, shard, more)
	}
	conns := func(state string) string { return of("connections", "main", server.Addr(), `,state="`+state+`"`) }
	code := func(shard, address string, code int) string {
		return fmt.Sprintf(`node_errors_total{code="%d",node="%s",shard="%s"}`, code, address, shard)
	}
	up := make(series)
	for shard, address := range map[string]string{"main": server.Addr(), "far": silent, "odd": babbling, "bare": server.Addr()} {
		up[of("up", shard, address, "")], up[of("primary", shard, address, "")] = 0, 1
	}
	up[of("up", "main", server.Addr(), "")] = 1
	up[conns("idle")], up[conns("active")], up[conns("connecting")] = 0, 0, 0
	m.awaits("at the start", up)

	c := s.mustConnect(t, "root", "")
	connects := of("connect_duration_seconds_count", "main", server.Addr(), "")
	m.moves("a session that needs its server", []string{"node_connect_duration_seconds_count"}, series{connects: 1}, func() { must(t, c, "DO 1") })
	all := m.awaits("the session is idle", series{conns("idle"): 1, conns("active"): 0})
	if took := all[of("connect_duration_seconds_sum", "main", server.Addr(), "")]; took <= 0 {
		t.Errorf("connecting took %v s", took)
	}

	// A session that is busy.
	lock, err := server.DB(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	must(t, lock, "DO GET_LOCK('metered', 60)")
	answered := make(chan error, 1)
	states := []string{"node_connections", "sessions"}
	busy := series{conns("active"): 1, conns("idle"): -1, `sessions{state="busy"}`: 1, `sessions{state="idle"}`: -1}
	ours := func(all series) series {
		some := all.family("sessions")
		for _, state := range []string{"idle", "active", "connecting"} {
			some[conns(state)] = all[conns(state)]
		}
		return some
	}
	before := ours(m.read().family(states...))
	go func() {
		_, err := c.ExecContext(context.Background(), "DO GET_LOCK('metered', 60)")
		answered <- err
	}()
	want := make(series)
	for line := range before {
		want[line] = before[line] + busy[line]
	}
	m.awaits("a session with a command in hand", want)
	must(t, lock, "DO RELEASE_LOCK('metered')")
	if err := receive(t, "the lock", answered); err != nil {
		t.Fatal(err)
	}
	m.awaits("the session is idle again", before)

	// Answers of servers, and failures to get one.
	other := s.mustConnect(t, "root", "") // moves from shard to shard
	errors := []string{"node_errors_total"}
	for statement, number := range map[string]int{"SELECT * FROM numbers.nothing": 1146, "DO nonsense": 1054, "SELEKT": 1064, "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 7777": 7777} {
		line := code("main", server.Addr(), number)
		was := m.read()[line]
		if _, err := c.ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), fmt.Sprint(number)) {
			t.Errorf("%s: got %v, want error %d", statement, err, number)
		}
		m.awaits(statement, series{line: was + 1})
	}
	for shard, as := range map[string]struct {
		address string
		code    int
	}{"odd": {babbling, 2027}, "bare": {server.Addr(), 2026}, "far": {silent, 2003}} {
		line := code(shard, as.address, as.code)
		was := m.read()[line]
		if _, err := other.ExecContext(t.Context(), "USE "+shard); err == nil || !strings.Contains(err.Error(), "1429") {
			t.Errorf("USE %s: got %v, want error 1429", shard, err)
		}
		for deadline := time.Now().Add(patience); m.read()[line] == was; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: got no error %d, but %v", shard, as.code, m.read().family(errors...))
			}
		}
	}

	// Connections under way: many, so that one is seen.
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = other.ExecContext(context.Background(), "USE far")
			}
		}
	}()
	connecting := of("connections", "far", silent, `,state="connecting"`)
	for deadline := time.Now().Add(patience); m.read()[connecting] == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("got no connection under way in the metrics, want one")
			break
		}
	}
	close(stop)
	<-stopped

	// More codes than are counted apart.
	named := float64(len(m.read().family(errors...).at("main")))
	sum := m.read().family(errors...).at("main").sum()
	const more = 80
	for i := range more {
		_, _ = c.ExecContext(t.Context(), fmt.Sprintf("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %d", 20000+i))
	}
	unnamed := fmt.Sprintf(`node_errors_total{code="other",node="%s",shard="main"}`, server.Addr())
	all = m.awaits("other codes", series{unnamed: more - (64 - named)})
	if got := all.family(errors...).at("main"); got.sum() != sum+more || len(got) != 64+1 {
		t.Errorf("got %v errors of %d codes, want %v and 64 with other", got.sum(), len(got), sum+more)
	}
}

// at returns the series of a shard.
func (all series) at(shard string) series {
	some := make(series)
	for line, value := range all {
		if strings.Contains(line, `shard="`+shard+`"`) {
			some[line] = value
		}
	}
	return some
}
