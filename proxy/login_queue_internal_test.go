package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/proxy/session"
)

// Checklist 2.
func TestALoginWhoseTurnDoesNotComeGets1040(t *testing.T) {
	none, err := backend.New(backend.Options{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Shards: none, KeyOptions: KeyOptions{Sequences: unasked{}}, LoginOptions: LoginOptions{MaxConnections: 10, MaxLogins: 1, LoginTimeout: 100 * time.Millisecond}, Logger: zap.NewNop()})
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.shared.Settings.Load().Login.Queue.Enter(netip.Prefix{}, true, 10) // a login that takes longer
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(nc); err != nil || !bytes.Contains(got, []byte("\xff\x10\x04Too many connections")) {
		t.Errorf("got %q and error %v, want error 1040 in place of the greeting", got, err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// unasked are sequences that no test asks for more than their schema.
type unasked struct{ session.Sequencer }

func (unasked) Schema() string { return "" }
