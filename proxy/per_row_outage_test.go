package proxy_test

import (
	"strings"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// The sequence server dies while rows pass: the rows that numbers are cached for arrive, then an
// error. When the server is back, the session goes on with numbers of its own.
func TestRowsGoOnAfterTheSequenceServerHasDiedAmongThem(t *testing.T) {
	rows, numbers := mysqltest.Shared(t), mysqltest.Start(t)
	o := newOracle(t, setup{Servers: []*mysqltest.Server{rows, numbers}, Sequence: func(opts *sequence.Options) {
		opts.Servers[0].Addr = numbers.Addr()
		opts.Servers[0].Database = numbers.Schema(t)
	}}, countedTables(rows)...)
	create(t, o.env, sequence.CreateOptions{Name: "few", Start: 1, Cache: 3000})
	o.fresh(t)
	w := o.Wire(t, o.Addr(), wireLogin{Schema: o.Schemas[0]})
	seen := map[string]bool{}
	all := func(answer []byte) (n int) {
		for _, row := range w.decode(answer) {
			if seen[row[0]] {
				t.Fatalf("the number %s came twice", row[0])
			}
			seen[row[0]] = true
			n++
		}
		return n
	}
	const text = "SELECT NEXTVAL('few'), x.a FROM src x, src y WHERE y.id <= 5"
	if got := all(w.query(text)); got != 6000 {
		t.Fatalf("got %d rows, want 6000", got)
	}
	if err := numbers.Kill(); err != nil {
		t.Fatal(err)
	}
	o.Sequences.Tune(sequence.Tuning{AllocateTimeout: 500 * time.Millisecond})
	ranOut := false
	for range 50 { // these numbers are cached
		answer := w.query(text)
		packets := split(answer)
		got := all(answer)
		if last := packets[len(packets)-1]; last[0] == 0xff {
			ranOut = true
			break
		}
		if got != 6000 {
			t.Fatalf("without the server: got %d rows and no error", got)
		}
	}
	if !ranOut {
		t.Fatal("got a number for each row without the server, want an error")
	}
	if e := serverError(t, w.query("INSERT INTO dst (id, a) SELECT NEXTVAL('few'), a FROM src")); e.Code == 1690 {
		t.Errorf("a block without the server: got %v", e)
	}
	if got := w.rows("SELECT COUNT(*) FROM dst")[0]; got != "0" {
		t.Errorf("a block without the server: got %s rows, want none", got)
	}
	o.Sequences.Tune(sequence.Tuning{})
	if err := numbers.Restart(); err != nil {
		t.Fatal(err)
	}
	if !eventually(t, "numbers again", func() bool { return w.query("DO NEXTVAL('few')")[4] == 0 }) {
		return
	}
	if !eventually(t, "a number for every row again", func() bool { return all(w.query(text)) == 6000 }) {
		return
	}
	eventually(t, "a block again", func() bool { return w.query("INSERT INTO dst (id, a) SELECT NEXTVAL('few'), a FROM src")[4] == 0 })
	if got := strings.Join(w.rows("SELECT COUNT(*), COUNT(DISTINCT id) FROM dst"), " "); got != "1200 1200" {
		t.Errorf("with the server again: got %s rows and numbers, want 1200 1200", got)
	}
	_, dst := w.result("SELECT id FROM dst")
	for _, row := range dst {
		if seen[row[0]] {
			t.Fatalf("the number %s came twice", row[0])
		}
	}
}
