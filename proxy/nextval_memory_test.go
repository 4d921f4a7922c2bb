package proxy_test

import (
	"encoding/binary"
	"math"
	"testing"

	"seqproxy/protocol"
)

// Other goroutines allocate meanwhile, as do the queries of the sequences and a pool that a
// collection has emptied, in some of the tries less than once for a command. The race detector
// empties pools more often.
func TestASelectOfNumbersAllocatesNothing(t *testing.T) {
	o := newOracle(t, setup{Bare: true}, "CREATE TABLE photos (id BIGINT PRIMARY KEY, title VARCHAR(20))")
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Packing: notPacked})
	text := func(sql string) []byte { return packet(command(protocol.ComQuery, sql)) }
	execute := func(sql string) []byte {
		w.send(packet(command(protocol.ComStmtPrepare, sql)))
		b, err := w.receivePrepare()
		if err != nil || b[protocol.HeaderSize] != 0 {
			t.Fatalf("prepare %s: got %x, %v", sql, b, err)
		}
		return packet(execution(binary.LittleEndian.Uint32(b[protocol.HeaderSize+1:]), nil, false))
	}
	ask := func(command []byte) {
		if _, err := w.Write(command); err != nil {
			t.Fatal(err)
		}
		w.answer.Begin(protocol.ShapeResult, w.caps)
		for {
			n, ev := w.answer.Walk(w.Buffered())
			w.Discard(n)
			if ev == protocol.Done {
				break
			}
			if ev != protocol.NeedMore {
				t.Fatalf("%x: malformed answer", command)
			}
			if err := w.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if w.answer.ErrCode != 0 {
			t.Fatalf("%x: got error %d", command, w.answer.ErrCode)
		}
	}
	const tries, runs = 8, 50
	for _, c := range []struct {
		what     string
		kinds    map[string]uint64
		commands [][]byte
	}{
		{"a number", map[string]uint64{"nextval ": 1}, [][]byte{text("SELECT NEXTVAL('photos')")}},
		{"two sequences in turn", map[string]uint64{"nextval ": 2}, [][]byte{text("SELECT NEXTVAL('photos') AS id"), text("SELECT NEXTVAL('other')")}},
		{"a few numbers", map[string]uint64{"nextval ": 1}, [][]byte{text("SELECT NEXTVAL('photos'), NEXTVAL('other') AS o, NEXTVAL('photos')")}},
		{
			"LAST_INSERT_ID()",
			map[string]uint64{"nextval ": 1, "last_insert_id ": 2},
			[][]byte{text("SELECT NEXTVAL('photos')"), text("SELECT LAST_INSERT_ID()"), text("SELECT @@last_insert_id, LAST_INSERT_ID() AS id")},
		},
		{"an execution", map[string]uint64{"nextval ": 1}, [][]byte{execute("SELECT NEXTVAL('photos')")}},
		{
			"executions of several",
			map[string]uint64{"nextval ": 2},
			[][]byte{execute("SELECT NEXTVAL('photos') AS id, CONNECTION_ID()"), execute("SELECT NEXTVAL('other'), NEXTVAL('other')")},
		},
		{"an INSERT", map[string]uint64{"rewrite s0": 1}, [][]byte{text("INSERT INTO photos VALUES (NEXTVAL('photos'), 'sun')")}},
		{"an execution of an INSERT", map[string]uint64{"rewrite s0": 1}, [][]byte{execute("INSERT INTO photos VALUES (NEXTVAL('photos'), 'sun')")}},
	} {
		for kind := range c.kinds {
			c.kinds[kind] *= tries * (runs + 1) // AllocsPerRun runs once before it counts
		}
		before, got := statements(o.env), math.Inf(1)
		for range tries {
			got = min(got, testing.AllocsPerRun(runs, func() {
				for _, command := range c.commands {
					ask(command)
				}
			}))
		}
		if !eventually(t, c.what, func() bool {
			now := statements(o.env)
			for kind, n := range c.kinds {
				if now[kind]-before[kind] != n {
					return false
				}
			}
			return true
		}) {
			t.Errorf("%s: counted %v after %v, want %v more", c.what, statements(o.env), before, c.kinds)
		}
		if got >= float64(len(c.commands)) {
			t.Errorf("%s: got %v allocations for %d commands, want 0", c.what, got, len(c.commands))
		}
	}
}
