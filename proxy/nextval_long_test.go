package proxy_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/test/mysqltest"
)

// A statement that its number would make longer than a packet takes no number.
func TestAStatementThatItsNumberMakesTooLongTakesNone(t *testing.T) {
	e := newEnv(t, setup{Servers: []*mysqltest.Server{mysqltest.Start(t, "--max-allowed-packet=64M")}})
	if _, err := e.Sequences.Create(t.Context(), sequence.CreateOptions{Name: "s", Start: 1}); err != nil {
		t.Fatal(err)
	}
	e.Servers[0].Exec(t, "USE "+e.Schemas[0], "CREATE TABLE t (id BIGINT UNSIGNED, a LONGTEXT)")
	w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0]})
	const head, tail = "INSERT INTO t VALUES (NEXTVAL('s'), '", "')"
	text := func(length int) string { return head + strings.Repeat("x", length-len(head)-len(tail)-1) + tail }
	prepared := w.do(protocol.ComStmtPrepare, "INSERT INTO t VALUES (NEXTVAL('s'), ?)")
	execute := func(length int) []byte {
		a := textArg(0xfc, "")
		a.value = protocol.AppendLenEncBytes(nil, strings.Repeat("x", length-len(execution(0, []argument{a}, true))-8))
		return execution(binary.LittleEndian.Uint32(prepared[5:]), []argument{a}, true)
	}
	for _, test := range []struct {
		what    string
		command func(length int) []byte
		fits    int // a length that still fits with the number
	}{
		{"text", func(length int) []byte { return command(protocol.ComQuery, text(length)) }, protocol.MaxFragment - 200},
		{"execution", execute, protocol.MaxFragment - 100},
	} {
		before := e.nextNumber(t, "s")
		sent := test.command(protocol.MaxFragment - 2)
		if len(sent) >= protocol.MaxFragment || len(sent) < protocol.MaxFragment-20 {
			t.Fatalf("%s: %d bytes, want just below %d", test.what, len(sent), protocol.MaxFragment)
		}
		w.send(packet(sent))
		if err := serverError(t, w.receive(protocol.ShapeResult, nil)); err.Code != 1153 {
			t.Errorf("%s: got %v, want 1153", test.what, err)
		}
		if got := e.nextNumber(t, "s"); got != before {
			t.Errorf("%s: %d numbers were taken, want none", test.what, got-before)
		}
		w.send(packet(test.command(test.fits)))
		if answer := w.receive(protocol.ShapeResult, nil); answer[4] != 0 {
			t.Errorf("%s that is a little shorter: got %v", test.what, serverError(t, answer))
		}
		if got := e.nextNumber(t, "s"); got != before+1 {
			t.Errorf("%s that is a little shorter: %d numbers were taken, want 1", test.what, got-before)
		}
	}
}
