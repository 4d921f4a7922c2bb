package proxy_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"seqproxy/backend"
	"seqproxy/internal/mysqltest"
	"seqproxy/internal/transcript"
	"seqproxy/protocol"
)

// shardTaps show what passes between a proxy and its shards.
type shardTaps struct {
	taps []*transcript.Tap

	mu   sync.Mutex
	seen []shardPacket     // guarded by mu
	mine map[[2]int]bool   // guarded by mu; connections that were logged in to with a schema, as clients' are
	open map[[2]int]bool   // guarded by mu; of them, those that have not ended
	id   map[[2]int]string // guarded by mu; the greeting's number of a connection
}

type shardPacket struct {
	shard int
	transcript.Packet
}

// tapShards puts taps before the shards of s, if packets can be told apart there and the transcripts are of such a server.
func tapShards(t *testing.T, s *setup) *shardTaps {
	t.Helper()
	if s.Backend != nil || os.Getenv("SEQPROXY_TEST_PACKING") != "" || !transcript.IsSystemServer(s.Servers[0]) {
		return nil
	}
	r := &shardTaps{mine: make(map[[2]int]bool), open: make(map[[2]int]bool)}
	for i, server := range s.Servers {
		r.taps = append(r.taps, transcript.NewTap(t, server.Addr(), func(p transcript.Packet) { r.see(i, p) }))
	}
	s.Backend = func(o *backend.Options) {
		for i := range o.Shards {
			o.Shards[i].Nodes = []string{r.taps[i].Addr()}
		}
	}
	return r
}

func (r *shardTaps) see(shard int, p transcript.Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	conn := [2]int{shard, p.Conn}
	switch {
	case p.Raw == nil:
		delete(r.open, conn)
	case p.FromClient && p.Num() == 1 && !r.mine[conn] && bytes.Contains(p.Raw, []byte("t_")): // its login, with a schema
		r.mine[conn], r.open[conn] = true, true
	}
	if p.Raw != nil && r.mine[conn] {
		r.seen = append(r.seen, shardPacket{shard, p})
	}
}

// take returns what was seen, when all sessions have ended.
func (r *shardTaps) take(t testing.TB) []shardPacket {
	t.Helper()
	eventually(t, "the sessions' connections to the shards have ended", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.open) == 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// transcribe writes down what a client sent and got, and what the shards got and sent.
func (o *oracle) transcribe(t testing.TB, name string, steps []scriptStep, answers []string, shards []shardPacket) {
	t.Helper()
	var out strings.Builder
	out.WriteString("== client\n")
	for _, s := range steps {
		if !s.silent && len(answers) > 0 {
			fmt.Fprintf(&out, "> 0 Query %s\n", o.shortened([]byte(s.proxied)))
			for raw := answers[0]; len(raw) >= protocol.HeaderSize; {
				n := protocol.HeaderSize + protocol.PayloadLen([]byte(raw))
				fmt.Fprintf(&out, "< %d %s\n", raw[3], o.shortened([]byte(raw[protocol.HeaderSize:n])))
				raw = raw[n:]
			}
			answers = answers[1:]
		}
	}
	slices.SortStableFunc(shards, func(a, b shardPacket) int { return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.Conn, b.Conn)) })
	conns, last := 0, [2]int{-1, -1}
	loggedIn := false
	for _, p := range shards {
		if conn := [2]int{p.shard, p.Conn}; conn != last {
			conns++
			last, loggedIn = conn, false
			fmt.Fprintf(&out, "== connection %d to shard %d, logged in\n", conns, p.shard)
		}
		switch payload := p.Payload(); {
		case !loggedIn:
			loggedIn = !p.FromClient && payload[0] == 0
		case p.FromClient && p.Num() == 0:
			fmt.Fprintf(&out, "> 0 %s %s\n", commandName(payload[0]), o.shortened(payload[1:]))
		case p.FromClient:
			fmt.Fprintf(&out, "> %d %s\n", p.Num(), o.shortened(payload))
		default:
			fmt.Fprintf(&out, "< %d %s\n", p.Num(), o.shortened(payload))
		}
	}
	transcript.Compare(t, name, out.String())
}

var (
	notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)
	plainText  = regexp.MustCompile(`^[ -~\n\t]+$`)
)

func fileName(parts ...string) string {
	for i, part := range parts {
		parts[i] = notInNames.ReplaceAllString(part, "_")
	}
	return strings.Join(parts, "/")
}

func commandName(c byte) string {
	names := map[protocol.Command]string{
		protocol.ComQuit: "Quit", protocol.ComInitDB: "InitDB", protocol.ComQuery: "Query", protocol.ComPing: "Ping", protocol.ComStmtPrepare: "StmtPrepare",
		protocol.ComStmtExecute: "StmtExecute", protocol.ComStmtClose: "StmtClose", protocol.ComSetOption: "SetOption", protocol.ComResetConn: "ResetConnection",
	}
	return cmp.Or(names[protocol.Command(c)], fmt.Sprint("command ", c))
}

// shortened writes a payload as text or in hex, without the random names of the test. Of a long one it has the beginning and a hash.
func (o *oracle) shortened(payload []byte) string {
	payload = bytes.ReplaceAll(payload, []byte(o.Schemas[0]), []byte("t_0000000000000000"))
	payload = bytes.ReplaceAll(payload, []byte(o.User), []byte("u_00000000"))
	const most = 160
	rest := ""
	if len(payload) > most {
		rest = fmt.Sprintf(" ... %d bytes, %x", len(payload), sha256.Sum256(payload))[:60]
		payload = payload[:most/2]
	}
	if plainText.Match(payload) {
		return fmt.Sprintf("%q", payload) + rest
	}
	return fmt.Sprintf("%x %q", payload, payload) + rest
}

var _ = mysqltest.ServerEnv
