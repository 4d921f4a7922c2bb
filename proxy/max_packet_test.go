package proxy_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// overfill sends bytes, of which the server may not read all, and returns the answer up to the end
// of the connection.
func (w *wire) overfill(b []byte) []byte {
	w.t.Helper()
	if err := w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		w.t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = w.nc.Write(b) // the server may close before
	}()
	answer := w.ended()
	<-sent
	return answer
}

func TestAPacketLongerThanTheServerTakesGetsTheServersError(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=1M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}, Proxy: func(o *proxy.Options) { o.MaxStatement = 4 << 20 }})
	createSequence(t, e, "s")
	text := func(before string, size int, after string) []byte {
		return command(protocol.ComQuery, before+strings.Repeat("x", size-len(before)-len(after)-1)+after)
	}
	const limit = 1 << 20
	for name, payload := range map[string][]byte{
		"a statement that is held":               text("SELECT LENGTH('", 2*limit, "')"),
		"one that the proxy looks at":            text("SET @x = '", 2*limit, "'"),
		"one above max_statement":                text("SELECT LENGTH('", 5*limit, "')"),
		"one of several packets":                 text("SELECT LENGTH('", 17*limit, "')"),
		"a PREPARE":                              append([]byte{byte(protocol.ComStmtPrepare)}, text("SELECT '", 2*limit, "'")[1:]...),
		"the name of a schema, longer than any":  append([]byte{byte(protocol.ComInitDB)}, bytes.Repeat([]byte("x"), 2*limit)...),
		"one byte more than the server can take": text("SELECT LENGTH('", limit+1, "')"),
	} {
		t.Run(name, func(t *testing.T) {
			packets, _ := protocol.AppendPacket(nil, payload, 0)
			var answers [2][]byte
			for i, addr := range []string{e.Addr(), server.Addr()} {
				// A server's error is lost if it closes with bytes unread.
				for range 5 {
					w := e.Wire(t, addr, wireLogin{Schema: e.Schemas[0], Packing: notPacked})
					if answers[i] = w.overfill(packets); len(answers[i]) > 0 {
						break
					}
				}
			}
			if len(answers[1]) == 0 {
				t.Skip("the server's error was lost each time")
			}
			if !bytes.Contains(answers[1], []byte("max_allowed_packet")) {
				t.Fatalf("the server says %q", answers[1])
			}
			if !bytes.Equal(answers[0], answers[1]) {
				t.Errorf("got %q, want %q as direct", answers[0], answers[1])
			}
		})
	}
	// The longest text that the server accepts, which differs by server.
	direct, longest := e.Wire(t, server.Addr(), wireLogin{Packing: notPacked}), limit-32
	takes := func(w *wire, size int) bool {
		b, _ := protocol.AppendPacket(nil, text("DO LENGTH('", size, "')"), 0)
		if err := w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
			t.Fatal(err)
		}
		_, _ = w.nc.Write(b) // the server may close before
		answer, err := w.raw()
		return err == nil && answer[4] == 0
	}
	for takes(direct, longest+1) {
		longest++
	}
	t.Run("at the limit", func(t *testing.T) {
		w := e.Wire(t, e.Addr(), wireLogin{Packing: notPacked})
		if !takes(w, longest) {
			t.Errorf("a statement of %d bytes: got an error, want the answer, as from the server", longest)
		}
		if takes(w, longest+1) {
			t.Errorf("a statement of %d bytes: got an answer, want an error, as from the server", longest+1)
		}
	})
	t.Run("a rewritten statement that grew", func(t *testing.T) {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: notPacked})
		w.query("CREATE TABLE t (id BIGINT PRIMARY KEY, c MEDIUMTEXT)")
		packets, _ := protocol.AppendPacket(nil, text("INSERT INTO t VALUES (NEXTVAL(s), '", longest, "')"), 0)
		if answer := w.overfill(packets); !bytes.Contains(answer, []byte("max_allowed_packet")) {
			t.Errorf("got %q, want the server's error 1153", answer)
		}
	})
	t.Run("long data", func(t *testing.T) {
		var answers [2][]byte
		for i, addr := range []string{e.Addr(), server.Addr()} {
			w := e.Wire(t, addr, wireLogin{Schema: e.Schemas[0], Packing: notPacked})
			w.send(packet(command(protocol.ComStmtPrepare, "SELECT LENGTH(?)")))
			p, err := w.receivePrepare()
			if err != nil {
				t.Fatal(err)
			}
			long := append([]byte{byte(protocol.ComStmtLongData)}, p[5:9]...)
			long = append(long, 0, 0)
			for range 3 {
				w.send(packet(append(long[:7:7], bytes.Repeat([]byte("x"), limit/2)...)))
			}
			execute := append([]byte{byte(protocol.ComStmtExecute)}, p[5:9]...)
			w.send(packet(append(execute, 0, 1, 0, 0, 0, 0, 1, 252, 0)))
			answers[i] = w.receive(protocol.ShapeResult, nil)
		}
		if refusal := serverError(t, answers[1]); !strings.Contains(refusal.Message, "max_allowed_packet") {
			t.Fatalf("the server says %v", refusal)
		}
		compare(t, "an execution with it", answers[0], answers[1])
	})
}
