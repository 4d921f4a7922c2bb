package proxy_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"seqproxy/protocol"
	"seqproxy/test/mysqltest"
)

// allFraming is every flag that changes what bytes mean and that MariaDB offers.
const allFraming = protocol.LongFlag | protocol.Transactions | protocol.MultiStatements | protocol.MultiResults |
	protocol.PSMultiResults | protocol.SessionTrack | protocol.DeprecateEOF | protocol.LocalFiles

// withoutTracking is allFraming for a login without a schema that needs no server: some servers
// report session state at every login where tracking was agreed on.
const withoutTracking = allFraming &^ protocol.SessionTrack

// wireTimeout bounds every wait of a wire.
const wireTimeout = 20 * time.Second

// wire is a client that sends packets and sees the bytes of the answers.
type wire struct {
	*protocol.Conn
	t      testing.TB
	nc     net.Conn
	hello  *protocol.ServerHello
	answer protocol.Answer
	caps   protocol.Capability
	frames *wireFrames // nil: no compression
}

// wireLogin says how a wire logs in; the zero value is the env's account with
// allFraming, collation utf8mb4_general_ci and no schema.
type wireLogin struct {
	User, Password *string
	Schema         string
	Capabilities   protocol.Capability
	Collation      uint16
	Attrs          protocol.Attrs
	TLS            *tls.Config
	// Packing compresses what follows the login. "" is the value of the environment variable
	// SEQPROXY_TEST_PACKING, which runs all tests under compression.
	Packing mysqltest.Packing
	// Flags are sent in the login only, without regard to what they change.
	Flags     protocol.Capability
	ZstdLevel *byte // nil: 3
}

// notPacked is for tests that compression would change, such as those that write to the socket.
const notPacked mysqltest.Packing = "not"

// Wire logs in at addr: the proxy's or a server's.
func (e *env) Wire(t testing.TB, addr string, l wireLogin) *wire {
	t.Helper()
	w, err := e.tryWire(t, addr, l)
	if err != nil {
		t.Fatalf("log in at %s: %v", addr, err)
	}
	return w
}

func (e *env) tryWire(t testing.TB, addr string, l wireLogin) (*wire, error) {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, wireTimeout)
	if err != nil {
		t.Fatal(err)
	}
	c, err := protocol.NewConn(nc, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	login := protocol.ClientLogin{
		User: e.User, Password: e.Password, Database: l.Schema, Capabilities: l.Capabilities,
		Collation: l.Collation, Attrs: l.Attrs, TLS: l.TLS,
	}
	if l.User != nil {
		login.User = *l.User
	}
	if l.Password != nil {
		login.Password = *l.Password
	}
	if login.Capabilities == 0 {
		login.Capabilities = allFraming
	}
	if login.Collation == 0 {
		login.Collation = 45
	}
	w := &wire{Conn: c, t: t, nc: nc, caps: login.Capabilities}
	if err := c.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		t.Fatal(err)
	}
	compressing := login.Capabilities & protocol.Compressing
	login.Capabilities &^= protocol.Compressing
	switch {
	case addr != e.addr || l.Packing != "" || l.Flags != 0:
		// A server's packets have other numbers in frames.
	case compressing.Has(protocol.Compress):
		l.Packing = mysqltest.Zlib
	case compressing.Has(protocol.CompressZstd):
		l.Packing = mysqltest.Zstd
	default:
		l.Packing = mysqltest.Packing(os.Getenv("SEQPROXY_TEST_PACKING"))
	}
	if l.Packing == notPacked {
		l.Packing = ""
	}
	w.hello, err = login.Run(newPackingLogin(c, l))
	if l.Packing != "" {
		w.frames = &wireFrames{w: w, how: l.Packing}
	}
	return w, err
}

// packet makes one command packet.
func packet(payload []byte) []byte {
	b, _ := protocol.AppendPacket(nil, payload, 0)
	return b
}

// command makes a command's payload.
func command(cmd protocol.Command, argument string) []byte {
	return append([]byte{byte(cmd)}, argument...)
}

// send writes bytes as they are.
func (w *wire) send(b []byte) {
	w.t.Helper()
	if err := w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// receive returns the bytes of the next answer. file is sent if the server asks for one: packets up
// to and including the empty one, which receive numbers.
func (w *wire) receive(shape protocol.Shape, file []byte) []byte {
	w.t.Helper()
	b, err := w.tryReceive(shape, file)
	if err != nil {
		w.t.Fatalf("receive: %v, after %d bytes:\n%s", err, len(b), hex.Dump(b[:min(len(b), 512)]))
	}
	return b
}

func (w *wire) tryReceive(shape protocol.Shape, file []byte) (got []byte, err error) {
	if err := w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		return nil, err
	}
	if shape == protocol.ShapePrepare {
		return w.receivePrepare()
	}
	w.answer.Begin(shape, w.caps)
	for {
		n, ev := w.answer.Walk(w.Buffered())
		got = append(got, w.Buffered()[:n]...)
		w.Discard(n)
		switch ev {
		case protocol.Done:
			return got, nil
		case protocol.NeedMore:
			if err := w.Fill(); err != nil {
				return got, err
			}
		case protocol.WantsFile:
			if _, err := w.Write(numberedFrom(file, w.answer.PacketNum+1)); err != nil {
				return got, err
			}
			w.answer.FileSent()
		default:
			return got, fmt.Errorf("malformed answer: %x", w.Buffered()[:min(len(w.Buffered()), 40)])
		}
	}
}

// numberedFrom returns packets with other numbers.
func numberedFrom(packets []byte, num uint8) []byte {
	b := bytes.Clone(packets)
	for rest := b; len(rest) > 0; num++ {
		rest[3] = num
		rest = rest[protocol.HeaderSize+protocol.PayloadLen(rest):]
	}
	return b
}

// raw reads one packet with its header.
func (w *wire) raw() ([]byte, error) {
	for {
		if b := w.Buffered(); len(b) >= protocol.HeaderSize && len(b) >= protocol.HeaderSize+protocol.PayloadLen(b) {
			n := protocol.HeaderSize + protocol.PayloadLen(b)
			p := bytes.Clone(b[:n])
			w.Discard(n)
			return p, nil
		}
		if err := w.Fill(); err != nil {
			return nil, err
		}
	}
}

func (w *wire) receivePrepare() (got []byte, err error) {
	if got, err = w.raw(); err != nil || got[4] != 0 {
		return got, err
	}
	columns, params := int(binary.LittleEndian.Uint16(got[9:])), int(binary.LittleEndian.Uint16(got[11:]))
	n := columns + params
	if w.caps.Has(protocol.OptionalMetadata) && got[16] == 0 {
		n = 0
	}
	if !w.caps.Has(protocol.DeprecateEOF) {
		n += min(columns, 1) + min(params, 1)
	}
	for range n {
		p, err := w.raw()
		got = append(got, p...)
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// do sends a command and returns its answer's bytes. A ping behind it shows that the answer ended
// where the framing says.
func (w *wire) do(cmd protocol.Command, argument string) []byte {
	w.t.Helper()
	return w.doFile(cmd, argument, nil)
}

func (w *wire) doFile(cmd protocol.Command, argument string, file []byte) []byte {
	w.t.Helper()
	shape := protocol.AnswerTo(command(cmd, argument))
	if shape == protocol.ShapeUnknown {
		shape = protocol.ShapeOne
	}
	if cmd == protocol.ComQuery && w.caps.Has(protocol.QueryAttributes) {
		argument = protocol.NoAttributes + argument
	}
	w.send(packet(command(cmd, argument)))
	got := w.receive(shape, file)
	w.ping(fmt.Sprintf("command %d %.100q", cmd, argument))
	return got
}

func (w *wire) ping(after string) {
	w.t.Helper()
	w.send(packet(command(protocol.ComPing, "")))
	b, err := w.raw()
	if err != nil || b[3] != 1 || b[4] != 0 || len(b) != 11 || len(w.Buffered()) > 0 {
		w.t.Fatalf("ping after %s: got %x, %v and %d bytes more, want one OK", after, b, err, len(w.Buffered()))
	}
}

// query is do for a text.
func (w *wire) query(sql string) []byte {
	w.t.Helper()
	return w.do(protocol.ComQuery, sql)
}

// rows runs a query and returns the values of its first row as text.
func (w *wire) rows(sql string) []string {
	w.t.Helper()
	_, rows := w.result(sql)
	if len(rows) == 0 {
		w.t.Fatalf("%s: no row", sql)
	}
	return rows[0]
}

// result runs a query and decodes its first result set; NULL is "NULL".
func (w *wire) result(sql string) (answer []byte, rows [][]string) {
	w.t.Helper()
	answer = w.query(sql)
	if packets := split(answer); packets[0][0] == 0xff {
		w.t.Fatalf("%s: %v", sql, protocol.ParseServerError(packets[0]))
	}
	return answer, w.decode(answer)
}

// decode returns the rows of an answer's first result set; NULL is "NULL".
func (w *wire) decode(answer []byte) (rows [][]string) {
	w.t.Helper()
	packets := split(answer)
	columns, follow, ok := protocol.ParseColumnCount(packets[0], w.caps.HasAny(protocol.MetadataFlags))
	if !ok {
		return nil
	}
	at := 1
	if follow {
		at += int(columns)
	}
	if !w.caps.Has(protocol.DeprecateEOF) {
		at++
	}
	for _, p := range packets[at:] {
		if p[0] == 0xfe && len(p) < 0xffffff || p[0] == 0xff {
			break
		}
		var row []string
		for len(p) > 0 {
			if p[0] == 0xfb {
				row, p = append(row, "NULL"), p[1:]
				continue
			}
			v, n, ok := protocol.ReadLenEncBytes(p)
			if !ok {
				w.t.Fatalf("malformed row %x", p)
			}
			row, p = append(row, string(v)), p[n:]
		}
		rows = append(rows, row)
	}
	return rows
}

// split returns the payloads of whole packets.
func split(b []byte) (payloads [][]byte) {
	for len(b) >= protocol.HeaderSize {
		n := protocol.HeaderSize + protocol.PayloadLen(b)
		payloads = append(payloads, b[protocol.HeaderSize:n])
		b = b[n:]
	}
	return payloads
}

// serverError decodes an answer that is an ERR.
func serverError(t testing.TB, answer []byte) *protocol.ServerError {
	t.Helper()
	var e *protocol.ServerError
	if len(answer) > protocol.HeaderSize && answer[protocol.HeaderSize] == 0xff {
		if errors.As(protocol.ParseServerError(answer[protocol.HeaderSize:]), &e) {
			return e
		}
	}
	t.Fatalf("got an answer that is no error:\n%s", hex.Dump(answer[:min(len(answer), 256)]))
	return nil
}

// ended waits until the peer has closed, and returns the bytes before.
func (w *wire) ended() []byte {
	w.t.Helper()
	if err := w.SetDeadline(time.Now().Add(wireTimeout)); err != nil {
		w.t.Fatal(err)
	}
	for {
		err := w.Fill()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			w.t.Fatalf("the connection is still open after %s", wireTimeout)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.t.Logf("the connection ended with %v", err)
			}
			return bytes.Clone(w.Buffered())
		}
	}
}

// pair is a connection through the proxy and one to a server, for the same login.
type pair struct {
	t             testing.TB
	Proxy, Direct *wire
}

// Pair logs in twice: through the proxy and at shard i's server.
func (e *env) Pair(t testing.TB, i int, l wireLogin) *pair {
	t.Helper()
	return &pair{t: t, Proxy: e.Wire(t, e.addr, l), Direct: e.Wire(t, e.Servers[i].Addr(), l)}
}

// same sends a command on both and fails if the answers differ in a byte. It
// returns the answer.
func (p *pair) same(cmd protocol.Command, argument string) []byte {
	p.t.Helper()
	want := p.Direct.do(cmd, argument)
	got := p.Proxy.do(cmd, argument)
	compare(p.t, fmt.Sprintf("command %d %.200q", cmd, argument), got, want)
	return got
}

func (p *pair) query(sql string) []byte {
	p.t.Helper()
	return p.same(protocol.ComQuery, sql)
}

// steady is query for a server's statistics, which may change between two queries: MySQL 9.7 plans
// SHOW TABLE STATUS by statistics that InnoDB renews in the background, and its flag
// SERVER_QUERY_NO_INDEX_USED follows. The answer through the proxy counts where two direct ones
// around it agree.
func (p *pair) steady(sql string) {
	p.t.Helper()
	for range 100 {
		before := p.Direct.do(protocol.ComQuery, sql)
		got := p.Proxy.do(protocol.ComQuery, sql)
		if bytes.Equal(before, p.Direct.do(protocol.ComQuery, sql)) {
			compare(p.t, fmt.Sprintf("%.200q", sql), got, before)
			return
		}
	}
	p.t.Errorf("%.200q: the server never gave the same answer twice", sql)
}

func compare(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	from := max(0, at-64)
	t.Errorf("%s: answers differ at byte %d of %d (direct: %d)\nproxy:\n%sdirect:\n%s", what, at, len(got), len(want),
		hex.Dump(got[from:min(len(got), from+256)]), hex.Dump(want[from:min(len(want), from+256)]))
}
