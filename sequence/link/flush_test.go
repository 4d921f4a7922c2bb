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
				one.flush, one.binlog, _ = strings.Cut(word, "/")
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
