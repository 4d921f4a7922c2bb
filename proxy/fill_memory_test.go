package proxy_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"seqproxy/protocol"
)

// The texts differ, so that the proxy has seen none before. Other goroutines, and a pool that a
// collection has emptied, may allocate now and then; the race detector empties pools more often.
func TestAnInsertThatIsFilledInAllocatesNothing(t *testing.T) {
	o := newOracle(t, bare(bound(filledPhotos)), filledTables...)
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Packing: notPacked})
	w.send(packet(command(protocol.ComStmtPrepare, "INSERT INTO photos (title) VALUES ('prepared')")))
	prepared, err := w.receivePrepare()
	if err != nil || prepared[protocol.HeaderSize] != 0 {
		t.Fatalf("prepare: got %x, %v", prepared, err)
	}
	execute := packet(execution(binary.LittleEndian.Uint32(prepared[protocol.HeaderSize+1:]), nil, false))
	send := func(b []byte) {
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		for len(w.Buffered()) <= protocol.HeaderSize || len(w.Buffered()) < protocol.HeaderSize+protocol.PayloadLen(w.Buffered()) {
			if err := w.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if answer := w.Buffered(); answer[protocol.HeaderSize] != 0 {
			t.Fatalf("got %q, want an OK", answer)
		}
		w.Discard(len(w.Buffered()))
	}
	var b []byte
	title := 0
	for what, insert := range map[string]func(){
		"a text": func() {
			title++
			b = append(b[:0], 0, 0, 0, 0, byte(protocol.ComQuery))
			b = append(b, "INSERT INTO photos (title) VALUES ('title "...)
			b = append(strconv.AppendInt(b, int64(title), 10), "')"...)
			protocol.PutHeader(b, len(b)-protocol.HeaderSize, 0)
			send(b)
		},
		"an execution": func() { send(execute) },
	} {
		before := o.nextNumber(t, "photos")
		got := math.Inf(1)
		for range 8 {
			// Queries of the sequences allocate meanwhile, too: on a busy machine more than one in
			// fifty.
			got = min(got, testing.AllocsPerRun(50, insert))
		}
		if after := o.nextNumber(t, "photos"); after < before+400 {
			t.Fatalf("%s: the sequence went from %d to %d: the keys were not filled in", what, before, after)
		}
		if got >= 2 {
			t.Errorf("%s: got %v allocations, want 0", what, got)
		}
	}
}

// The memory for the rows of a long text is released with the text, whatever its outcome.
func TestALongTextThatIsFilledInLeavesNoMemoryBehind(t *testing.T) {
	if testing.Short() {
		t.Skip("CI runs it: texts of 200,000 rows")
	}
	o := newOracle(t, bare(bound(filledPhotos)), filledTables...)
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0], Capabilities: allFraming &^ protocol.QueryAttributes})
	memory := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const rows = 200_000
	for _, text := range []string{
		"DO 1; INSERT INTO photos (id) VALUES (?)" + strings.Repeat(",(?)", rows),
		"DO 1; INSERT INTO photos (id, nothing) VALUES (DEFAULT, 1)" + strings.Repeat(",(DEFAULT, 1)", rows),
		"INSERT INTO photos (nothing) VALUES (1)" + strings.Repeat(",(1)", rows),
		"INSERT INTO photos (id, nothing) VALUES (1, 1)" + strings.Repeat(",(1, 1)", rows),
	} {
		w.query("INSERT INTO photos (title) VALUES ('x')")
		before := memory()
		w.query(text)
		w.query("DO 1")
		if after := memory(); after > before+4<<20 {
			t.Errorf("%.60s...: memory grew by %d bytes, want less", text, after-before)
		}
	}
	runtime.KeepAlive(w)
}

// The next text, perhaps of the same write, uses the memory of the last one that was filled in.
func TestPipelinedTextsThatAreFilledInAreEachTheirOwn(t *testing.T) {
	o := newOracle(t, bare(bound(filledPhotos)), filledTables...)
	o.fresh(t)
	p := o.pairOfSchemas(t, allFraming&^protocol.QueryAttributes)
	rng := rand.New(rand.NewPCG(4, 22))
	unique := 0
	forms := []func() string{
		func() string { return "INSERT INTO photos (title) VALUES ('one')" },
		func() string {
			return "INSERT INTO photos VALUES (NULL, 'all', 1, NULL)" + strings.Repeat(", (0, 'all', 2, NULL)", rng.IntN(40))
		},
		func() string { return "INSERT INTO photos SET n = NULL, title = 'set', id = DEFAULT" },
		func() string { return "INSERT INTO photos (id, title) VALUES (1, 'there')" },
		func() string { return "INSERT INTO photos (title) VALUES ('" },
		func() string {
			return "DO 1; INSERT INTO photos (title) VALUES ('a'), ('b'); INSERT INTO photos (parent, title) VALUES (LAST_INSERT_ID(), 'child')"
		},
		func() string { return "SELECT LAST_INSERT_ID(), COUNT(*) FROM photos" },
		func() string {
			unique++
			return "INSERT INTO photos (n, parent) VALUES (" + strconv.Itoa(unique) + ", LAST_INSERT_ID())"
		},
		func() string {
			return "INSERT INTO photos (title) VALUES ('" + strings.Repeat("long", rng.IntN(25)) + "')"
		},
		func() string {
			return "SELECT CONCAT_WS(0x20, id, title, parent, n) AS photo FROM photos ORDER BY 1 DESC LIMIT 3"
		},
	}
	for i := range 20 {
		o.meets(t, p)
		var commands []sent
		for range 1 + rng.IntN(30) {
			commands = append(commands, sent{protocol.ComQuery, forms[rng.IntN(len(forms))]()})
		}
		// Statements that fail use up a number here.
		p.inOneWrite("in one write", append(commands, sent{protocol.ComQuery, []string{
			"INSERT INTO photos (title, nothing) VALUES ('x', 1)", "INSERT INTO photos (title) VALUES ('too', 'many')",
		}[i%2]})...)
		if t.Failed() {
			return
		}
		p.query("SELECT COUNT(*), SUM(id), SUM(parent), GROUP_CONCAT(DISTINCT title) FROM photos")
	}
}

func bare(s setup) setup {
	s.Bare = true
	return s
}
