package link

import (
	"errors"
	"strings"
	"testing"
)

// A node that does not answer counts neither for nor against the others.
func TestNumbersNeedAMajorityOfTheClustersNodesThatFlushes(t *testing.T) {
	for _, test := range []struct {
		nodes string // how each flushes; - does not answer, / and then sync_binlog
		want  bool
	}{
		{"1 1 1", true},
		{"1 1 0", true},
		{"0 1 1", true},
		{"1 0 0", false},
		{"1 2 2", false},
		{"1 0 2", false},
		{"0 0 0", false},
		{"3 3 0", true},
		{"1 1", true},
		{"1 0", false},
		{"1 1 0 0", false},
		{"1 1 1 0 0", true},
		{"1 - -", true},
		{"0 - -", false},
		{"1 0 -", false},
		{"1 1 0 -", true},
		{"1/1 1/1 1/0", true},
		{"1/1 1/0 1/0", false},
		{"1/0 2/1 1/1", false},
	} {
		words := strings.Fields(test.nodes)
		nodes := make([]string, len(words))
		for i := range words {
			nodes[i] = string(rune('a'+i)) + ":1"
		}
		for _, relaxed := range []bool{false, true} {
			v := groupOf(t, relaxed, nodes...)
			var all []Standing
			for i, word := range words {
				one := Standing{node: v.Nodes()[i], place: nodes[i], group: "Galera u", cluster: "Galera u, configuration 5 of 3", index: nodes[i]}
				one.flush, one.binlog, one.byBinlog = strings.Cut(word, "/")
				if word == "-" {
					one = Standing{node: v.Nodes()[i], Err: errors.New("it is off")}
				}
				all = append(all, one)
			}
			switch _, err := v.Fitting(all); {
			case (err == nil) != (test.want || relaxed):
				t.Errorf("%s, relaxed %v: %v", test.nodes, relaxed, err)
			case err != nil && !errors.Is(err, ErrUnfit):
				t.Errorf("%s: %v is no UnfitError", test.nodes, err)
			case err != nil:
				for _, want := range []string{"a:1", nodes[len(nodes)-1], "SET GLOBAL", `durability = "relaxed"`} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("got %q, want it to contain %q", err, want)
					}
				}
			}
		}
	}
}

// Outside a replication group no server is refused for its binary log.
func TestTheSettingsThatTakeCommitsBack(t *testing.T) {
	const redo = "innodb_flush_log_at_trx_commit = "
	for _, test := range []struct{ flush, binlog, warned, refused string }{
		{flush: "1"},
		{flush: "1", binlog: "1"},
		{flush: "1", binlog: "0", warned: "sync_binlog = 0"},
		{flush: "1", binlog: "100", warned: "sync_binlog = 100"},
		{flush: "2", warned: redo + "2", refused: redo + "2"},
		{flush: "2", binlog: "1", warned: redo + "2", refused: redo + "2"},
		{flush: "0", binlog: "0", warned: redo + "0, sync_binlog = 0", refused: redo + "0"},
		{flush: "3", binlog: "0"}, // InnoDB flushes the commit as well
	} {
		if got := strings.Join(unflushed(test.flush, test.binlog), ", "); got != test.warned {
			t.Errorf("flush %s, binary log %q: warned of %q, want %q", test.flush, test.binlog, got, test.warned)
		}
		s := Standing{flush: test.flush, binlog: test.binlog}
		if got := strings.Join(s.unflushed(), ", "); got != test.refused {
			t.Errorf("flush %s, binary log %q: %q counts, want %q", test.flush, test.binlog, got, test.refused)
		}
	}
	if got, want := flushStatement(unflushed("2", "0")), "SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_binlog = 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A node that flushes is preferred to one that would refuse a connection, and one that is in step
// to a donor.
func TestTheNodeThatIsWrittenToFlushesIfOneDoes(t *testing.T) {
	v := groupOf(t, false, "a:1", "b:1", "c:1")
	for _, test := range []struct{ flush, donors, want string }{
		{"1 1 1", "", "a:1"},
		{"0 1 1", "", "b:1"},
		{"2 1 1", "", "a:1"},
		{"0 1 1", "b", "c:1"},
		{"0 1 1", "bc", "b:1"},
		{"1 1 0", "ab", "a:1"},
	} {
		var all []Standing
		for i, flush := range strings.Fields(test.flush) {
			name := string(rune('a' + i))
			all = append(all, Standing{node: v.Nodes()[i], place: name, index: name, cluster: "Galera u", flush: flush, donor: strings.Contains(test.donors, name)})
		}
		if now, err := v.Fitting(all); err != nil || now.Addr != test.want {
			t.Errorf("flush %s, donors %q: got %v, %v, want %s", test.flush, test.donors, now, err, test.want)
		}
	}
}
