package backend

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/protocol"
)

// greeter is a server that lets in everybody but "late", whose logins it does not answer. Without
// greets it accepts connections and says nothing.
func greeter(t *testing.T, greets bool) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	serve := func(nc net.Conn) {
		defer nc.Close()
		defer func() { _, _ = io.Copy(io.Discard, nc) }() // until the proxy goes
		pc, err := protocol.NewConn(nc, 0, 0)
		if err != nil || !greets {
			return
		}
		login := protocol.ServerLogin{Version: "8.4.3", Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth, Collation: 45}
		attempt, err := login.Receive(pc)
		if err == nil && attempt.Hello.User != "late" && attempt.Verify(protocol.Account{}, true) == nil {
			_ = pc.WritePacket(protocol.AppendOK(nil, 0, protocol.OK{})[protocol.HeaderSize:])
			if _, err := pc.ReadPacket(1 << 10); err == nil { // what the first session asks
				pc.SetPacketNum(1)
				_ = pc.WritePacket(protocol.AppendERR(nil, 1, 1227, "42000", "denied")[protocol.HeaderSize:])
			}
		}
	}
	running.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { serve(nc) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		running.Wait()
	})
	return l.Addr().String()
}

// A server may have greeted, and not judge a login in time: MySQL's connection_control delays
// accounts that have failed. Then that account waits, and no other.
func TestALateVerdictConcernsItsAccountAlone(t *testing.T) {
	for name, c := range map[string]struct {
		greets, probes bool
		down, shut     bool // LastUsable's answer, and that of others' dials
	}{
		"of a client":    {greets: true},
		"of the probe":   {greets: true, probes: true, down: true},
		"of a dead node": {down: true, shut: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := New(Options{
				Default: "s", Shards: []ShardOptions{{Name: "s", Nodes: []string{greeter(t, c.greets)}}},
				Probe: Credentials{User: "late"}, ConnectTimeout: 4 * time.Second, Logger: zap.NewNop(),
			})
			if err != nil {
				t.Fatal(err)
			}
			r := s.Routes()
			shard := r.Default
			login := func(user string) error {
				t.Helper()
				conn, err := r.Dial(t.Context(), shard, Login{
					Credentials: Credentials{User: user}, Capabilities: protocol.Protocol41 | protocol.SecureConnection | protocol.PluginAuth, Collation: 45,
				})
				if err == nil {
					conn.Quit()
				}
				return err
			}
			if c.greets {
				if err := login("app"); err != nil {
					t.Fatal(err)
				}
			}
			if c.probes {
				err = r.probeNode(t.Context(), target{shard, shard.primary(), shard.access.Load()})
			} else {
				err = login("late")
			}
			var unreachable *UnreachableError
			if !errors.As(err, &unreachable) || !isTimeout(err) {
				t.Fatalf("a login that is not answered: got %v, want a timeout", err)
			}
			if err := s.LastUsable(shard); (err != nil) != c.down {
				t.Errorf("the node's health: got %v, want an error: %v", err, c.down)
			}
			err = login("app")
			if c.shut && !errors.Is(err, errRecently) { // on a busy machine the time of that may be over
				err = login("app")
			}
			if errors.Is(err, errRecently) != c.shut || err != nil && !c.shut {
				t.Errorf("another account: got %v, want it refused at once: %v", err, c.shut)
			}
		})
	}
}
