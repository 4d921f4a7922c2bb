package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

// SHOW SEQPROXY NODES and the metrics have a node that a reload has removed until its last session
// ends.
func TestANodeThatIsLeavingIsShown(t *testing.T) {
	first, second := mysqltest.Shared(t), mysqltest.Start(t)
	t.Cleanup(func() { first.Exec(t, "DROP DATABASE IF EXISTS seqproxy") })
	config := func(node string) string {
		return fmt.Sprintf(`listen = "127.0.0.1:0"
http.listen = ""
admin.listen = ""
admin_users = ["root"]
[[user]]
name = "root"
[[sequence.server]]
address = %q
user = "root"
[[shard]]
name = "s"
[[shard.node]]
address = %q
`, first.Addr(), node)
	}
	s := startSubject(t, config(first.Addr()))
	asker, pinned := s.mustConnect(t, "root", ""), s.mustConnect(t, "root", "")
	for _, sql := range []string{"SET @a = 1", "PREPARE p FROM 'SELECT 1'"} {
		if _, err := pinned.ExecContext(context.Background(), sql); err != nil {
			t.Fatal(err)
		}
	}
	shown := func() (rows []string) {
		all, err := asker.QueryContext(context.Background(), "SHOW SEQPROXY NODES")
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		columns, err := all.Columns()
		if err != nil {
			t.Fatal(err)
		}
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new([]byte)
		}
		at := func(name string) string { return string(*values[slices.Index(columns, name)].(*[]byte)) }
		for all.Next() {
			if err := all.Scan(values...); err != nil {
				t.Fatal(err)
			}
			row := at("shard") + " " + at("node") + " " + at("role")
			if at("role") == "leaving" {
				row += " " + at("connections")
			}
			rows = append(rows, row)
		}
		if err := all.Err(); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	measured := func() (rows []string) {
		families, err := s.Metrics().Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "seqproxy_node_primary" && f.GetName() != "seqproxy_node_up" {
				continue
			}
			for _, m := range f.GetMetric() {
				row := f.GetName() + fmt.Sprintf(" %v", m.GetGauge().GetValue())
				for _, l := range m.GetLabel() {
					row += " " + l.GetValue()
				}
				rows = append(rows, row)
			}
		}
		slices.Sort(rows)
		return rows
	}
	await := func(what string, rows, metrics []string) {
		t.Helper()
		slices.Sort(metrics)
		for end := time.Now().Add(patience); !slices.Equal(shown(), rows) || !slices.Equal(measured(), metrics); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: got %q and %q, want %q and %q", what, shown(), measured(), rows, metrics)
			}
		}
	}
	primary := func(n *mysqltest.Server) (row string, metrics []string) {
		return "s " + n.Addr() + " primary", []string{"seqproxy_node_primary 1 " + n.Addr() + " s", "seqproxy_node_up 1 " + n.Addr() + " s"}
	}
	id := firstValue(pinned, "SELECT CONNECTION_ID()")
	row, metrics := primary(first)
	await("before", []string{row}, metrics)
	s.reload(config(second.Addr()))
	if got := firstValue(asker, "SELECT 'moved'"); got != "moved" {
		t.Fatalf("got %s", got)
	}
	row, metrics = primary(second)
	await("a session stays there", []string{row, "s " + first.Addr() + " leaving 1"},
		append([]string{"seqproxy_node_primary 0 " + first.Addr() + " s"}, metrics...))
	if _, err := asker.ExecContext(context.Background(), "KILL "+id); err != nil {
		t.Fatal(err)
	}
	await("its last session has gone", []string{row}, metrics)
}
