package backend

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/test/network"
)

// answered returns what Query makes of a server's answer.
func answered(t *testing.T, answer func(server *protocol.Conn) error) ([][][]byte, error) {
	t.Helper()
	near, far := network.Pair(t)
	pc, err := protocol.NewConn(near, 0, answerAhead)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	server, err := protocol.NewConn(far, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		defer server.Close()
		if _, err := server.ReadPacket(1 << 10); err == nil {
			_ = answer(server) // the proxy may have had enough
		}
	}()
	defer func() { <-wrote }()
	defer pc.Abort()
	if err := pc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return (&Conn{Conn: pc, Capabilities: protocol.Protocol41 | protocol.DeprecateEOF}).Query("SHOW WARNINGS")
}

// A shard in wrong hands may answer what it likes.
func TestAnAnswerToTheProxyItselfIsBounded(t *testing.T) {
	eof := append([]byte{0xfe, 0, 0, 2, 0, 0}, 0)
	rowsOf := func(row []byte, n int) func(*protocol.Conn) error {
		return func(server *protocol.Conn) error {
			for _, p := range [][]byte{{1}, {3, 'd', 'e', 'f'}} {
				if err := server.QueuePacket(p); err != nil {
					return err
				}
			}
			for range n {
				if err := server.QueuePacket(row); err != nil {
					return err
				}
			}
			return server.WritePacket(eof)
		}
	}
	long := protocol.AppendLenEncBytes(nil, bytes.Repeat([]byte("x"), answerLimit-10))
	for name, c := range map[string]struct {
		answer func(*protocol.Conn) error
		rows   int
		err    error
	}{
		"as many warnings as a server keeps": {rowsOf(protocol.AppendLenEncBytes(nil, make([]byte, 200)), 65535), 65535, nil},
		"some long rows":                     {rowsOf(long, 8), 8, nil},
		"many long rows":                     {rowsOf(long, 40), 0, errTooMuch},
		"very many short rows":               {rowsOf([]byte{0}, 1<<20), 0, errTooMuch},
		"more columns than servers have": {func(server *protocol.Conn) error {
			return server.WritePacket(protocol.AppendLenEncInt(nil, maxColumns+1))
		}, 0, protocol.ErrMalformed},
	} {
		rows, err := answered(t, c.answer)
		if len(rows) != c.rows || !errors.Is(err, c.err) {
			t.Errorf("%s: got %d rows, %v, want %d, %v", name, len(rows), err, c.rows, c.err)
		}
	}
}
