package backend

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/protocol"
)

// TestUsableAsksRarely counts connections to a listener that accepts and says nothing.
func TestUsableAsksRarely(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked.Add(1)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	for name, account := range map[string]Credentials{"with an account": {User: "probe"}, "without": {}} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Options{
				Default: "s", Shards: []ShardOptions{{Name: "s", Nodes: []string{l.Addr().String()}}},
				Probe: account, ConnectTimeout: time.Minute, Logger: zap.NewNop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			shard := s.Routes().Default
			node := shard.primary()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			usable := func(want bool, connections int32) {
				t.Helper()
				before := asked.Load()
				var unreachable *UnreachableError
				if err := s.Usable(ctx, shard); err == nil != want || err != nil && !errors.As(err, &unreachable) {
					t.Errorf("got %v, want usable = %v", err, want)
				}
				if got := asked.Load() - before; got != connections {
					t.Errorf("got %d connections, want %d", got, connections)
				}
				if err := s.LastUsable(shard); err == nil != want {
					t.Errorf("what is known: got %v, want usable = %v", err, want)
				}
			}
			if s.LastUsable(shard) == nil {
				t.Error("the node is usable before the first check")
			}
			usable(false, 1)
			met := func(ago time.Duration) {
				node.mu.Lock()
				defer node.mu.Unlock()
				node.met.at = time.Now().Add(-ago)
			}
			const moment = -time.Hour // long before, because a test may be slow
			met(moment)
			usable(false, 0)
			met(time.Hour)
			usable(false, 1)
			node.meet(nil) // a client logged in
			met(moment)
			usable(true, 0)
			met(time.Hour)
			if account.User == "" {
				usable(true, 0) // to the server each would be an aborted login
			} else {
				usable(false, 1)
			}
			node.meet(&protocol.ServerError{Code: 1045})
			met(moment)
			usable(true, 0)
			node.meet(&protocol.ServerError{Code: 1040})
			met(moment)
			usable(false, 0)
		})
	}
}
