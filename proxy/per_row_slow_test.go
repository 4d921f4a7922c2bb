package proxy_test

import (
	"strconv"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// The numbers of a long result are reserved piece by piece from a distant server. Each piece has
// the whole timeout: all the waits together are longer.
func TestALongResultHasTheTimeForEachPieceOfItsNumbers(t *testing.T) {
	server := mysqltest.Shared(t)
	link := mysqltest.NewLink(t, server.Addr())
	const patience, delay = 4 * time.Second, 110 * time.Millisecond // in each direction
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Sequence: func(o *sequence.Options) {
		o.Servers[0].Addr, o.AllocateTimeout = link.Addr(), patience
	}})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Order: true}); err != nil {
		t.Fatal(err)
	}
	c := e.Conn(t, e.Schemas[0], nil)
	exec(t, c, "DO NEXTVAL('s')")
	link.Delay(delay)
	const rows = 300 // the proxy passes on few of them at a time, because they are long
	began := time.Now()
	_, got := table(t, c, "SELECT NEXTVAL('s'), REPEAT('x', 2000) FROM "+server.Numbers(rows))
	took := time.Since(began)
	if len(got) != rows || got[rows-1][0] != strconv.Itoa(rows+1) {
		t.Errorf("got %d rows, want %d with numbers one after the other, and no error", len(got), rows)
	} else if took < patience {
		t.Errorf("the result took %v, less than %v: this shows nothing", took, patience)
	}
	link.Mend()
}
