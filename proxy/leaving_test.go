package proxy_test

import (
	"fmt"
	"testing"

	"seqproxy/backend"
	"seqproxy/proxy"
)

// nodes lists the nodes that SHOW shows, "shard address", with what is special about them.
func (e *env) nodes() (all []string) {
	for _, n := range e.Shards.Stats() {
		text := fmt.Sprintf("%s %s", n.Shard, n.Node)
		if n.Leaving {
			text += fmt.Sprintf(" leaving, %d open", n.Open)
		}
		if n.Primary {
			text += " primary"
		}
		all = append(all, text)
	}
	return all
}

func (e *env) awaitNodes(t *testing.T, want ...string) {
	t.Helper()
	if !eventually(t, "the nodes", func() bool { return fmt.Sprint(e.nodes()) == fmt.Sprint(want) }) {
		t.Fatalf("got %q, want %q", e.nodes(), want)
	}
}

func TestANodeThatWasTakenAwayIsToldOfUntilItsLastSessionHasGone(t *testing.T) {
	e, move := moved(t)
	old, now := "s0 "+e.Servers[0].Addr(), "s0 "+e.Servers[1].Addr()
	e.awaitNodes(t, old+" primary")
	pinned, other := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked}), e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	pinned.query("CREATE TEMPORARY TABLE tmp (a INT)")
	move()
	e.awaitNodes(t, now+" primary", old+" leaving, 2 open")
	other.query("DO 0") // so the session moves
	e.awaitNodes(t, now+" primary", old+" leaving, 1 open")
	// A node that comes back is as before: it is paused together with those that never left.
	e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards[0].Nodes = []string{e.Servers[0].Addr()} })
	e.awaitNodes(t, old+" primary", now+" leaving, 1 open")
	if got := pinned.rows("SELECT COUNT(*) FROM tmp")[0]; got != "0" {
		t.Errorf("got %s rows, want none", got)
	}
	move()
	e.awaitNodes(t, now+" primary", old+" leaving, 1 open")
	pinned.quit()
	e.awaitNodes(t, now+" primary")
}

// A node stays when others join its shard or leave it: the list has it once, with the sessions that
// are still there by the old shard.
func TestANodeThatStaysIsToldOfOnce(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	a, b := e.Servers[0].Addr(), e.Servers[1].Addr()
	nodes := func(all ...string) {
		e.Reload(t, func(o *backend.Options, _ *proxy.Options) {
			o.Shards, o.Shards[0].Nodes = o.Shards[:1], all
		})
	}
	pinned := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	pinned.query("CREATE TEMPORARY TABLE tmp (a INT)")
	nodes(a, b)
	pinned.query("DO 0")
	e.awaitNodes(t, "s0 "+a+" primary", "s0 "+b)
	if got := e.Shards.Stats()[0].Open; got != 1 {
		t.Errorf("with a second node: got %d connections, want that of the session that stayed", got)
	}
	nodes(b)
	e.awaitNodes(t, "s0 "+b+" primary", "s0 "+a+" leaving, 1 open")
	pinned.quit()
	e.awaitNodes(t, "s0 "+b+" primary")
}

// Sessions may stay with a shard that a reload took away. A pause of a new shard of that name
// pauses them, too, whatever its nodes.
func TestAShardThatComesBackIsPausedWithTheSessionsThatStayed(t *testing.T) {
	e := newEnv(t, setup{Shards: 2})
	for _, node := range []int{1, 0} {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[1], Packing: notPacked})
		w.query("CREATE TEMPORARY TABLE tmp (a INT)")
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) { b.Shards = b.Shards[:1] })
		w.query("DO 0")
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
			b.Shards = append(b.Shards, backend.ShardOptions{Name: "s1", Nodes: []string{e.Servers[node].Addr()}, Schemas: []string{e.Schemas[1]}})
		})
		w.query("DO 0")
		e.pause(t, "s1")
		w.sendText("SELECT COUNT(*) FROM tmp")
		e.awaitPausedSessions(t, 1)
		e.resume(t, "s1")
		w.answerOK("a statement of a session that stayed")
		w.quit()
	}
}

// A session remembers only the shards that exist, however many come and go.
func TestASessionForgetsTheShardsThatAreGone(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
	relayed := func() (n uint64) {
		for _, s := range e.Proxy.Stats().Statements {
			if s.Kind == proxy.KindRelay {
				n += s.N
			}
		}
		return n
	}
	before := relayed()
	const rounds = 20
	for i := range rounds {
		e.Reload(t, func(b *backend.Options, _ *proxy.Options) {
			b.Shards[0].Name, b.Default = fmt.Sprint("r", i), fmt.Sprint("r", i)
		})
		w.sendText("SELECT 1")
		w.answerOK("a statement")
		if n := e.Proxy.CountedShards(w.hello.Greeting.ConnectionID); n > 2 {
			t.Fatalf("after %d reloads a session has counts of %d shards, want 2 at most", i+1, n)
		}
	}
	if !eventually(t, "all statements are counted", func() bool { return relayed()-before == rounds }) {
		t.Errorf("counted %d statements, want %d", relayed()-before, rounds)
	}
	w.quit()
	e.awaitNodes(t, fmt.Sprintf("r%d %s primary", rounds-1, e.Servers[0].Addr()))
}
