package backend

import "testing"

// Every statement adds its shard to a set, so that must be cheap.
func TestASetOfOneShardIsNoAllocation(t *testing.T) {
	a, b := newShard(&ShardOptions{Name: "a", Nodes: []string{"127.0.0.1:1"}}, nil), newShard(&ShardOptions{Name: "b", Nodes: []string{"127.0.0.1:1"}}, nil)
	var none *ShardSet
	both := none.With(a).With(b)
	if got := testing.AllocsPerRun(100, func() {
		one := none.With(a)
		if one = one.With(a); !one.Has(a) || one.Has(b) || one.Many() || !one.Meets(both) || one.Meets(none) {
			t.Error("a set of one shard is not that")
		}
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
	changed := newShard(&ShardOptions{Name: "a", Nodes: []string{"127.0.0.1:2"}}, a)
	if !both.Has(a) || !both.Has(b) || !both.Many() || !both.Has(changed) || both.With(changed) != both || none.Has(a) {
		t.Error("a set of two shards is not that, or not of one whose nodes have changed")
	}
}
