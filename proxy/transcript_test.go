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
	"seqproxy/internal/transcript"
	"seqproxy/protocol"
)

// shardTaps show what passes between a proxy and its shards.
type shardTaps struct {
	taps []*transcript.Tap

	mu   sync.Mutex
	seen []shardPacket   // guarded by mu
	mine map[[2]int]bool // guarded by mu; connections that were logged in to with a schema, as clients' are
	open map[[2]int]bool // guarded by mu; of them, those that have not ended
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

// begin has what comes from now on be seen, on new connections.
func (r *shardTaps) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = nil
	clear(r.mine)
	clear(r.open)
}

// take returns what was seen since begin, when those sessions have ended.
func (r *shardTaps) take(t testing.TB) []shardPacket {
	t.Helper()
	eventually(t, "the sessions' connections to the shards have ended", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.open) == 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen
}

// transcribe writes down what a client sent and got, and what the shards got and sent.
func (o *oracle) transcribe(t testing.TB, name string, steps []scriptStep, shards []shardPacket) {
	t.Helper()
	var out strings.Builder
	out.WriteString("== client\n")
	steps = slices.DeleteFunc(slices.Clone(steps), func(s scriptStep) bool { return s.silent })
	got := make(map[string]bool) // answers
	for i, raw := range o.raw {
		fmt.Fprintf(&out, "> 0 Query %s\n", o.shortened([]byte(steps[i].proxied)))
		answer := o.lines(raw)
		got[answer] = true
		out.WriteString(answer)
	}
	slices.SortStableFunc(shards, func(a, b shardPacket) int { return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.Conn, b.Conn)) })
	conns, last, loggedIn, answer := 0, [2]int{-1, -1}, false, ""
	endAnswer := func() {
		if got[answer] {
			answer = "< an answer that the client got\n"
		}
		out.WriteString(answer)
		answer = ""
	}
	for _, p := range shards {
		if conn := [2]int{p.shard, p.Conn}; conn != last {
			endAnswer()
			conns++
			last, loggedIn = conn, false
			fmt.Fprintf(&out, "== connection %d to shard %d, logged in\n", conns, p.shard)
		}
		switch payload := p.Payload(); {
		case !loggedIn:
			loggedIn = !p.FromClient && payload[0] == 0
		case !p.FromClient:
			answer += o.lines(p.Raw)
		case p.Num() == 0:
			endAnswer()
			fmt.Fprintf(&out, "> 0 %s %s\n", commandName(payload[0]), o.shortened(payload[1:]))
		default:
			endAnswer()
			fmt.Fprintf(&out, "> %d %s\n", p.Num(), o.shortened(payload))
		}
	}
	endAnswer()
	transcript.Compare(t, name, out.String())
}

// lines writes down packets of an answer.
func (o *oracle) lines(raw []byte) string {
	var out strings.Builder
	for len(raw) > 0 {
		payload := raw[protocol.HeaderSize:][:protocol.PayloadLen(raw)]
		fmt.Fprintf(&out, "< %d %s\n", raw[3], o.shortened(payload))
		raw = raw[protocol.HeaderSize+len(payload):]
	}
	return out.String()
}

var notInNames = regexp.MustCompile(`[^A-Za-z0-9]+`)

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

// shortened writes a payload as text, without the random names of the test. Of a long one it has the beginning and a hash.
func (o *oracle) shortened(payload []byte) string {
	payload = bytes.ReplaceAll(payload, []byte(o.Schemas[0]), []byte("t_0000000000000000"))
	payload = bytes.ReplaceAll(payload, []byte(o.User), []byte("u_00000000"))
	const most = 160
	rest := ""
	if len(payload) > most {
		rest = fmt.Sprintf(" ... %d bytes, %x", len(payload), sha256.Sum256(payload))[:60]
		payload = payload[:most/2]
	}
	return fmt.Sprintf("%q", payload) + rest
}

// beginScript has a script begin at numbers of its own, whatever ran before.
func (o *oracle) beginScript(t testing.TB, i int) {
	t.Helper()
	for name, start := range firstNumbers {
		if _, err := o.Sequences.Raise(t.Context(), []byte(name), start+uint64(i)*10_000-1, true); err != nil {
			t.Fatal(err)
		}
	}
}
