package sequence_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seqproxy/sequence"
	"seqproxy/sequence/store"
	"seqproxy/test/transcript"
)

// recorder writes down what proxies send to sequence servers, step by step. Each proxy has one
// connection to a server for its work, so its statements there have one order.
type recorder struct {
	t     *testing.T
	names transcript.Names
	shown map[string]bool // what new connections ask was written down
	asks  bool            // what new connections ask is written down, once
	out   strings.Builder
	// A proxy may have registered already, or not: that is not written down.
	registered bool

	mu   sync.Mutex
	said []*said          // guarded by mu; in this step
	open map[string]*said // guarded by mu; by connection, what has no answer yet
	live map[string]int   // guarded by mu; connections to a server
	// guarded by mu; connections that are for numbers, not for looking at a node
	checked map[string]bool
	// guarded by mu; by proxy, how often it has asked for changes in this step
	rounds map[string]int
	// guarded by mu; when something other than a periodic question was sent last
	busy    time.Time
	proxies map[string]*sequence.Sequences // by name
}

// said is one command.
type said struct {
	proxy, server, conn, text string
	code                      int // of the error that answered it
}

// What a proxy asks periodically, apart from its other work. Only the transcript "again" has it.
var periodic = regexp.MustCompile("^(SELECT IFNULL\\(MAX\\(c\\.`version`\\), 0\\), |UPDATE \\S+`sequence_proxy` SET `heartbeat`|SELECT s\\.`name`, .* IN \\(|SELECT `uuid`, TIMESTAMPDIFF)")

// asksForChanges is the question that begins each round.
var asksForChanges = regexp.MustCompile("^SELECT IFNULL\\(MAX\\(c\\.`version`\\), 0\\), ")

// What a proxy asks at a random moment of a step, the one that made a change or the one that
// follows: it looks for changes, and registers.
var hears = regexp.MustCompile("^(SELECT o.`name`, s.`name`, |SELECT `name` FROM \\S+ WHERE `name` IN |SELECT COUNT\\(\\*\\) FROM \\S+ WHERE `state` = 'proposed'|SELECT `id`, `plan`, `position`, |SELECT `number`, `uuid`, .* ORDER BY `number`$|" +
	"SELECT `name`, `giver`, .* WHERE `term` = |INSERT INTO \\S+`sequence_proxy` \\(`id`, `host`, `process`, `since`, `heartbeat`, `version`\\) |SELECT `id`, `host`, `process`, )")

var registering = regexp.MustCompile("^(INSERT INTO \\S+`sequence_proxy` |SELECT `id`, `host`, `process`, )")

// What is asked of each new connection. It is shown once.
var connecting = regexp.MustCompile("^(SET NAMES |SELECT @@autocommit, |SELECT .* FROM information_schema\\.|CREATE TABLE IF NOT EXISTS |SELECT `holder`, `complete` FROM |SHOW )")

// inHex is a text that is written in hexadecimal digits. The transcript has the text.
var inHex = regexp.MustCompile("X'[0-9A-F]*'")

func newRecorder(t *testing.T) *recorder {
	r := &recorder{
		t: t, shown: make(map[string]bool), open: make(map[string]*said), live: make(map[string]int), checked: make(map[string]bool),
		rounds: make(map[string]int), proxies: make(map[string]*sequence.Sequences),
	}
	n := &r.names
	n.Know(store.EntryOf, "{options}")
	n.Number("<host>", `'([^']*, process \d+(?:, worker \d+)?)'`)
	n.Number("<process>", `'([0-9a-f-]{36} pid:[^']*)'`)
	n.Number("P", `'([A-Z2-7]{26})'`)
	n.Number("U", `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	n.Number("<time>", `TIMESTAMPADD\(MICROSECOND, (-?\d+), UTC`)
	n.Number("B", `\]', (\d{6,})\)`)
	n.Know("18446744073709551615", "{2^64-1}")
	n.Number("N", `\b\d{15,20}\b`) // versions and stamps
	return r
}

// tap is the way of a proxy to a server.
func (r *recorder) tap(proxy, server, addr string) string {
	tap := transcript.NewTap(r.t, addr, func(p transcript.Packet) {
		r.see(proxy, server, fmt.Sprint(proxy, server, p.Conn), p)
	})
	r.names.Know(tap.Addr(), server)
	r.names.Know(addr, server)
	return tap.Addr()
}

func (r *recorder) see(proxy, server, conn string, p transcript.Packet) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Raw == nil { // its end
		delete(r.open, conn)
		r.live[server]--
		return
	}
	if !p.FromClient && p.Num() == 0 { // the greeting
		r.live[server]++
	}
	payload := p.Payload()
	if !p.FromClient {
		if s := r.open[conn]; s != nil && len(payload) > 3 && payload[0] == 0xff {
			s.code = int(payload[1]) | int(payload[2])<<8
		}
		delete(r.open, conn)
		return
	}
	const quit, query = 1, 3
	if p.Num() != 0 || payload[0] == quit {
		return
	}
	s := &said{proxy: proxy, server: server, conn: conn, text: string(payload[1:])}
	if payload[0] != query {
		s.text = fmt.Sprintf("command %d %q", payload[0], s.text)
	}
	s.text = inHex.ReplaceAllStringFunc(s.text, func(text string) string {
		b, err := hex.DecodeString(text[2 : len(text)-1])
		if err != nil {
			return text
		}
		return "X'" + string(b) + "'"
	})
	r.said, r.open[conn] = append(r.said, s), s
	switch {
	case strings.HasPrefix(s.text, "SELECT @@autocommit, "):
		r.checked[conn] = true
	case asksForChanges.MatchString(s.text):
		r.rounds[proxy]++
	}
	if periodic.MatchString(s.text) {
		return
	}
	r.busy = time.Now()
}

// proxy makes a proxy of a name.
func (r *recorder) proxy(name string, o sequence.Options, change ...func(*sequence.Options)) *sequence.Sequences {
	r.t.Helper()
	for i := range o.Servers {
		server := &o.Servers[i]
		if server.MaxConns = 1; len(server.Nodes) > 0 {
			server.MaxConns = 2 // a takeover uses one and needs another
		}
		if server.Addr != "" {
			server.Addr = r.tap(name, fmt.Sprint("S", i+1), server.Addr)
		}
		for k := range server.Nodes {
			server.Nodes[k].Addr = r.tap(name, fmt.Sprint("S", k+1), server.Nodes[k].Addr)
		}
	}
	o.AllocateTimeout = time.Minute // nothing ends early on a busy machine
	longRounds(&o)
	s := openWith(r.t, o, change...)
	r.proxies[name] = s
	return s
}

// step has f do something, waits for what follows from it, and writes down what was sent meanwhile.
func (r *recorder) step(title string, f func()) {
	r.t.Helper()
	r.mu.Lock()
	r.said = nil
	r.mu.Unlock()
	f()
	r.mu.Lock()
	clear(r.rounds)
	r.mu.Unlock()
	// What has begun in the proxy gets sent during these looks, even on a busy machine.
	looks := 0
	eventually(r.t, title+": all is quiet", func() bool {
		for _, s := range r.proxies {
			if sequence.Inside(s).ReservingAny() {
				return false
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for name, s := range r.proxies {
			if sequence.Inside(s).Open() && sequence.Inside(s).Begun() && r.rounds[name] < 2*max(1, len(sequence.Inside(s).Members())) {
				return false
			}
		}
		if len(r.open) > 0 || time.Since(r.busy) < 200*time.Millisecond {
			looks = 0
			return false
		}
		looks++
		return looks > 5
	})
	r.mu.Lock()
	all := r.said
	r.said = nil
	r.mu.Unlock()
	r.write(title, all)
}

// lost waits until the proxies know that a killed server is gone: else something may be sent there
// yet.
func (r *recorder) lost(server string) {
	r.t.Helper()
	eventually(r.t, "connections to "+server+" have ended", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.live[server] <= 0
	})
}

// write writes a step down.
func (r *recorder) write(title string, all []*said) {
	fmt.Fprintf(&r.out, "== %s\n", title)
	streams, heard := make(map[string][]string), make(map[string][]string)
	for _, s := range all {
		text := r.names.Named(s.text)
		line := text
		if s.code != 0 {
			line += fmt.Sprintf("   -- error %d", s.code)
		}
		from := s.proxy + " to " + s.server
		looks := !r.isForNumbers(s.conn)
		if looks {
			from = s.proxy + " looks at " + s.server
		}
		switch {
		case periodic.MatchString(text) && title != everything:
		case r.registered && registering.MatchString(text):
		case connecting.MatchString(text):
			if (r.asks || looks) && !r.shown[from+line] {
				r.shown[from+line] = true
				streams[from] = append(streams[from], line)
			}
		case hears.MatchString(text):
			line = anyVersion.ReplaceAllString(line, ">= ?")
			if !slices.Contains(heard[from], line) {
				heard[from] = append(heard[from], line)
			}
		case strings.HasPrefix(line, "SELECT ") && len(streams[from]) > 0 && streams[from][len(streams[from])-1] == line,
			(looks || title == everything) && slices.Contains(streams[from], line):
			// it is asked until the answer is there
		default:
			streams[from] = append(streams[from], line)
		}
	}
	froms := slices.AppendSeq(slices.Collect(maps.Keys(streams)), maps.Keys(heard))
	slices.Sort(froms)
	for _, from := range slices.Compact(froms) {
		if title == everything {
			slices.Sort(streams[from])
		}
		fmt.Fprintf(&r.out, "-- %s\n", from)
		for _, line := range streams[from] {
			fmt.Fprintln(&r.out, r.names.Apply(line))
		}
		if len(heard[from]) > 0 {
			fmt.Fprintf(&r.out, "-- %s, at some moment\n", from)
			slices.Sort(heard[from])
			for _, line := range heard[from] {
				fmt.Fprintln(&r.out, r.names.Apply(line))
			}
		}
	}
	r.out.WriteByte('\n')
}

var anyVersion = regexp.MustCompile(`>= \S+`)

func (r *recorder) isForNumbers(conn string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checked[conn]
}
