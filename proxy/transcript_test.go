package proxy_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/test/transcript"
)

// shardTaps record what passes between a proxy and its shards.
type shardTaps struct {
	taps []*transcript.Tap

	mu   sync.Mutex
	on   bool          // guarded by mu; between begin and take
	seen []shardPacket // guarded by mu
	// withSchema are connections with a schema in their login, as those of clients have. Guarded by
	// mu.
	withSchema map[[2]int]bool
	open       map[[2]int]bool // guarded by mu; those of withSchema that have not ended
}

type shardPacket struct {
	shard int // a shard, or clientSide
	transcript.Packet
}

const clientSide = -1

// tapShards puts taps before the shards of s, if packets are readable there and the transcripts are
// of such a server.
func tapShards(t *testing.T, s *setup) *shardTaps {
	t.Helper()
	if s.Bare || s.Backend != nil || os.Getenv("SEQPROXY_TEST_PACKING") != "" || !transcript.IsSystemServer(s.Servers[0]) {
		return nil
	}
	r := &shardTaps{withSchema: make(map[[2]int]bool), open: make(map[[2]int]bool)}
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
	case p.FromClient && p.Num() == 1 && !r.withSchema[conn] && bytes.Contains(p.Raw, []byte("t_")):
		// The login has a schema.
		r.withSchema[conn], r.open[conn] = true, true
	}
	if p.Raw != nil && r.on {
		r.seen = append(r.seen, shardPacket{shard, p})
	}
}

// begin starts the record, for new connections.
func (r *shardTaps) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on, r.seen = true, nil
	clear(r.withSchema)
	clear(r.open)
}

// take returns the record since begin, once its sessions have ended.
func (r *shardTaps) take(t testing.TB) []shardPacket {
	t.Helper()
	eventually(t, "the sessions' connections to the shards have ended", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.open) == 0
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on = false
	return slices.DeleteFunc(r.seen, func(p shardPacket) bool { return !r.withSchema[[2]int{p.shard, p.Conn}] })
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
	o.writeShards(&out, shards, got)
	transcript.Compare(t, name, out.String(), `> 0 Query "SHOW COLUMNS FROM photos"`)
}

// writeShards writes down the packets of connections. got are answers that stand above; nil: with
// the logins.
func (o *oracle) writeShards(out *strings.Builder, shards []shardPacket, got map[string]bool) {
	slices.SortStableFunc(shards, func(a, b shardPacket) int { return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.Conn, b.Conn)) })
	conns, last, loggedIn, answer := 0, [2]int{-2, 0}, false, ""
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
			switch {
			case got != nil:
				fmt.Fprintf(out, "== connection %d to shard %d, logged in\n", conns, p.shard)
			case p.shard == clientSide:
				out.WriteString("== client\n")
			default:
				fmt.Fprintf(out, "== connection %d to shard %d\n", conns, p.shard)
			}
		}
		switch payload := p.Payload(); {
		case !loggedIn:
			loggedIn = !p.FromClient && payload[0] == 0
			if got == nil {
				out.WriteString(o.loginLine(p.Packet))
			}
		case !p.FromClient:
			answer += o.lines(p.Raw)
		case p.Num() == 0:
			endAnswer()
			fmt.Fprintf(out, "> 0 %s %s\n", commandName(payload[0]), o.shortened(payload[1:]))
		default:
			endAnswer()
			fmt.Fprintf(out, "> %d %s\n", p.Num(), o.shortened(payload))
		}
	}
	endAnswer()
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

// randomID matches the proxy's id of a session, which begins at random.
var randomID = regexp.MustCompile(`(_proxy_connection_id\\n)\d{10}`)

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

// shortened returns a payload as text, without the random names of the test. A long one is
// shortened to its beginning and a hash.
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

// beginScript makes a script begin at numbers of its own, whatever ran before.
func (o *oracle) beginScript(t testing.TB, i int) {
	t.Helper()
	for name, start := range firstNumbers {
		if _, err := o.Sequences.Raise(t.Context(), []byte(name), start+uint64(i)*10_000-1); err != nil {
			t.Fatal(err)
		}
	}
}

// loginLine returns a packet of a login, without its random parts.
func (o *oracle) loginLine(p transcript.Packet) string {
	payload := p.Payload()
	direction := "<"
	if p.FromClient {
		direction = ">"
	}
	line := ""
	switch at := bytes.Index(payload, []byte(o.Schemas[0])); {
	case !p.FromClient && p.Num() == 0:
		rest := payload[bytes.IndexByte(payload, 0)+13:]
		line = fmt.Sprintf("greeting, protocol %d, capabilities %x, collation %d, status %x, more capabilities %x", payload[0], rest[1:3], rest[3], rest[4:6], rest[6:8])
	case p.FromClient && at > 0:
		line = fmt.Sprintf("login, capabilities %x, most %x, collation %d, more capabilities %x, then %s", payload[:4], payload[4:8], payload[8], payload[28:32], randomID.ReplaceAllString(o.shortened(payload[at:]), `$1<id>`))
	case !p.FromClient && payload[0] == 0:
		line = o.shortened(payload)
	default:
		line = fmt.Sprintf("%d bytes", len(payload))
	}
	return fmt.Sprintf("%s %d %s\n", direction, p.Num(), line)
}

// TestTranscripts compares logins and prepared statements with their transcripts. The scripts are
// texts of clients that are logged in.
func TestTranscripts(t *testing.T) {
	o := newOracle(t, ownServer(t, setup{}), photosTables...)
	if o.taps == nil {
		t.Skip("the transcripts are those of the system's MariaDB, whose connections are not compressed")
	}
	o.fresh(t)
	var mu sync.Mutex
	var client []shardPacket
	tap := transcript.NewTap(t, o.Addr(), func(p transcript.Packet) {
		mu.Lock()
		defer mu.Unlock()
		if p.Raw != nil {
			client = append(client, shardPacket{clientSide, p})
		}
	})
	o.taps.begin()
	w := o.Wire(t, tap.Addr(), wireLogin{Schema: o.Schemas[0], Capabilities: allFraming &^ (protocol.DeprecateEOF | protocol.SessionTrack)})
	for _, text := range []string{
		"INSERT INTO photos (id, title) VALUES (NEXTVAL('photos'), ?)", "SELECT NEXTVAL('photos'), ?", "SELECT title FROM photos WHERE id = ?",
	} {
		prepared := w.do(protocol.ComStmtPrepare, text)
		id := binary.LittleEndian.Uint32(prepared[protocol.HeaderSize+1:])
		for i := range 2 {
			w.send(packet(execution(id, []argument{integer(gomysql.MYSQL_TYPE_LONGLONG, 1001)}, i == 0)))
			w.receive(protocol.ShapeResult, nil)
		}
		w.send(packet(command(protocol.ComStmtClose, string(binary.LittleEndian.AppendUint32(nil, id)))))
	}
	w.do(protocol.ComInitDB, o.Schemas[0])
	w.do(protocol.ComResetConn, "")
	w.query(insertIDs)
	w.quit()
	shards := o.taps.take(t)
	mu.Lock()
	defer mu.Unlock()
	var out strings.Builder
	o.writeShards(&out, client, nil)
	o.writeShards(&out, shards, nil)
	transcript.Compare(t, "login_and_prepared", out.String())
}
