package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// packings are the compressions that an env's server offers.
func (e *env) packings(t testing.TB) []mysqltest.Packing {
	t.Helper()
	offered := e.Wire(t, e.Servers[0].Addr(), wireLogin{}).hello.Greeting.Capabilities
	if !offered.Has(protocol.Compress) {
		t.Fatal("the server offers no compression")
	}
	if offered.Has(protocol.CompressZstd) {
		return []mysqltest.Packing{mysqltest.Zlib, mysqltest.Zstd}
	}
	return []mysqltest.Packing{mysqltest.Zlib}
}

// unnumbered returns packets with all numbers 0. Inside of frames, servers number packets by when
// they flush.
func unnumbered(packets []byte) []byte { return renumbered(packets, func(int) uint8 { return 0 }) }

func renumbered(packets []byte, num func(i int) uint8) []byte {
	b := bytes.Clone(packets)
	for i, rest := 0, b; len(rest) >= protocol.HeaderSize; i++ {
		rest[3] = num(i)
		rest = rest[protocol.HeaderSize+protocol.PayloadLen(rest):]
	}
	return b
}

// The bytes inside of the frames are those of a connection without compression, and but for the
// packet numbers those of a compressed one.
//
// Checklist 10.
func TestWhatIsInTheFramesIsTheServersOwn(t *testing.T) {
	serverTLS, clientTLS := testTLS()
	e := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.TLS = serverTLS }})
	server, schema := e.Servers[0], e.Schemas[0]
	run := func(addr string, l wireLogin) (w *wire, answers [][]byte) {
		server.Exec(t, "DROP DATABASE "+schema, "CREATE DATABASE "+schema)
		l.Schema = schema
		w = e.Wire(t, addr, l)
		for _, sql := range relayedStatements {
			answers = append(answers, w.query(sql))
		}
		w.send(packet(command(protocol.ComQuit, "")))
		return w, answers
	}
	_, want := run(server.Addr(), wireLogin{})
	for _, how := range e.packings(t) {
		_, compressed := run(server.Addr(), wireLogin{Packing: how})
		for name, config := range map[string]*tls.Config{"plain": nil, "TLS": clientTLS} {
			t.Run(string(how)+" "+name, func(t *testing.T) {
				w, got := run(e.Addr(), wireLogin{Packing: how, TLS: config})
				for i, sql := range relayedStatements {
					compare(t, sql, got[i], want[i])
					compare(t, "but for numbers: "+sql, unnumbered(got[i]), unnumbered(compressed[i]))
				}
				if w.frames.packed < 10 {
					t.Errorf("got %d frames, of which %d are compressed, want most", w.frames.seen, w.frames.packed)
				}
			})
		}
	}
}

func TestCompressedCommandsOfEveryKind(t *testing.T) {
	server := mysqltest.Start(t, "--local-infile=1", "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	schema := e.Schemas[0]
	for _, how := range e.packings(t) {
		t.Run(string(how), func(t *testing.T) {
			server.Exec(t, "USE "+schema, "DROP TABLE IF EXISTS t", "CREATE TABLE t (a INT, b LONGTEXT)")
			p := e.Pair(t, 0, wireLogin{Schema: schema})
			p.Proxy = e.Wire(t, e.Addr(), wireLogin{Schema: schema, Packing: how})
			// Commands of several frames, and of more than 255.
			for _, n := range []int{49, 50, 16 << 10, 40_000, 300_000, protocol.MaxFragment} {
				p.query("SELECT LENGTH('" + strings.Repeat("0123456789", n/10+1)[:n-17] + "')")
			}
			// Answers of many frames, and packets of more than 16 MB.
			p.query("SELECT REPEAT('x', 5000000), REPEAT('y', 20000000), 'end'")
			// Prepared statements, long data without an answer, and many commands at once.
			s := p.prepare("SELECT LENGTH(?), MD5(?)")
			for i := range 300 {
				s.same(protocol.ComStmtLongData, "\x00\x00"+strings.Repeat(string(rune('a'+i%26)), 500))
			}
			s.same(protocol.ComStmtLongData, "\x01\x00z")
			s.same(protocol.ComStmtExecute, "\x00\x01\x00\x00\x00"+"\x00"+"\x01"+typeBlob+typeBlob)
			s.same(protocol.ComStmtClose, "")
			// A file takes more frames than there are frame numbers.
			var pieces []string
			for range 600 {
				pieces = append(pieces, strings.Repeat("1\tline\n", 30))
			}
			const load = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"
			for _, f := range [][]byte{file(pieces...), file("2\ta\n"), file()} {
				compare(t, load, p.Proxy.doFile(protocol.ComQuery, load, f), p.Direct.doFile(protocol.ComQuery, load, f))
			}
			if got, want := p.Proxy.rows("SELECT COUNT(*) FROM t")[0], fmt.Sprint(2*(600*30+1)); got != want {
				t.Errorf("got %s rows, want %s", got, want)
			}
			// The dialogue of a change of user is compressed, too.
			w := p.Proxy
			w.query("SET @x = 5")
			if got := w.change(e.User, e.Password, schema, "caching_sha2_password"); got[4] != 0 {
				t.Fatalf("change user: got %x, want OK", got)
			}
			w.ping("a change of user")
			if got := w.rows("SELECT @x, DATABASE()"); got[0] != "NULL" || got[1] != schema {
				t.Errorf("after a change of user: got %v", got)
			}
			w.do(protocol.ComResetConn, "")
			// A pipeline: each command in frames of its own, all in one write.
			var steps []piped
			for i := range 100 {
				steps = append(steps, asText(fmt.Sprintf("SELECT %d, REPEAT('x', %d)", i, i*100)), asText("SELECT nothing"))
			}
			for i, answer := range w.pipeline(steps) {
				if i%2 == 0 && !bytes.Contains(answer, bytes.Repeat([]byte("x"), i*50)) {
					t.Errorf("answer %d differs from the direct one", i)
				}
			}
		})
	}
}

// TestPacketsInsideOfFramesMayBeNumberedAnyhow: under compression servers check only the numbers of
// frames, and Connector/J relies on that.
func TestPacketsInsideOfFramesMayBeNumberedAnyhow(t *testing.T) {
	server := mysqltest.Start(t, "--local-infile=1", "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	schema := e.Schemas[0]
	server.Exec(t, "USE "+schema, "CREATE TABLE t (a INT, b LONGTEXT)")
	// numbered changes the numbers of the packets of one write.
	numbered := func(b []byte) []byte {
		for at, i := 0, byte(7); at < len(b); at, i = at+protocol.HeaderSize+protocol.PayloadLen(b[at:]), i+3 {
			b[at+3] = i
		}
		return b
	}
	w := e.Wire(t, e.Addr(), wireLogin{Schema: schema, Packing: mysqltest.Zlib})
	ask := func(sql string, file []byte) []byte {
		if w.caps.Has(protocol.QueryAttributes) {
			sql = protocol.NoAttributes + sql
		}
		w.send(numbered(packet(command(protocol.ComQuery, sql))))
		got := w.receive(protocol.ComQuery.AnswerShape(), file)
		w.ping(fmt.Sprintf("%.50q", sql))
		return got
	}
	for _, size := range []int{1, 50_000, 300_000, protocol.MaxFragment + 10} {
		// A statement that the proxy keeps whole, a long one, and one of several packets.
		sql := "SELECT LENGTH('" + strings.Repeat("x", size) + "')"
		if got := ask(sql, nil); !bytes.Contains(got, []byte(fmt.Sprint(size))) {
			t.Errorf("a statement with %d bytes: got %.200q", size, got)
		}
	}
	const load = "LOAD DATA LOCAL INFILE 'x' INTO TABLE t"
	for _, rest := range []int{200, 20_000} {
		if got := ask(load, numbered(file("2\ta\n", strings.Repeat("3\tb\n", rest)))); !bytes.Contains(got, fmt.Appendf(nil, "Records: %d ", rest+1)) {
			t.Errorf("%s: got %.200q", load, got)
		}
	}
}

func TestNumbersAreGivenOverACompressedConnection(t *testing.T) {
	e := newEnv(t, setup{})
	createSequence(t, e, "s")
	for _, how := range e.packings(t) {
		w := e.Wire(t, e.Addr(), wireLogin{Schema: e.Schemas[0], Packing: how})
		w.query("DROP TABLE IF EXISTS t")
		w.query("CREATE TABLE t (id BIGINT PRIMARY KEY, a TEXT)")
		first := w.rows("SELECT NEXTVAL('s')")[0]
		if got := w.rows("SELECT LAST_INSERT_ID()")[0]; got != first {
			t.Errorf("LAST_INSERT_ID() is %s, want %s", got, first)
		}
		w.query("INSERT INTO t VALUES (NEXTVAL('s'), '" + strings.Repeat("text ", 100) + "'), (NEXTVAL('s'), 'b')")
		if got, want := w.rows("SELECT COUNT(*), MIN(id) = LAST_INSERT_ID(), MIN(id) > "+first+" FROM t"), "[2 1 1]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
}

func TestCompressionIsOfferedAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	p := e.Pair(t, 0, wireLogin{})
	got, want := p.Proxy.hello.Greeting.Capabilities&protocol.Compressing, p.Direct.hello.Greeting.Capabilities&protocol.Compressing
	if got != want {
		t.Errorf("the proxy offers %x, the server %x", uint64(got), uint64(want))
	}
	if row := p.Proxy.rows("SHOW STATUS LIKE 'Compression'"); row[1] != "OFF" {
		t.Errorf("the connection to the server has compression %s, want OFF", row[1])
	}
	off := newEnv(t, setup{Proxy: func(o *proxy.Options) { o.Compression = false }})
	if got := off.Wire(t, off.Addr(), wireLogin{}).hello.Greeting.Capabilities & protocol.Compressing; got != 0 {
		t.Errorf("compression = false: %x is offered", uint64(got))
	}
	keysOnly := newEnv(t, setup{Shards: noShards})
	if got := keysOnly.Wire(t, keysOnly.Addr(), wireLogin{Packing: mysqltest.Zlib}).hello.Greeting.Capabilities & protocol.Compressing; got != protocol.Compress {
		t.Errorf("without a shard %x is offered, want zlib", uint64(got))
	}
}

// Both flags, and valid and invalid levels of zstd. The outcome is the error of the login, or the
// compression of the first answer.
func TestTheAlgorithmIsChosenAsByTheServer(t *testing.T) {
	e := newEnv(t, setup{})
	outcome := func(addr string, flags protocol.Capability, level byte) string {
		w, err := e.tryWire(t, addr, wireLogin{Flags: flags, ZstdLevel: &level})
		if err != nil {
			return err.Error()
		}
		w.send(mysqltest.AppendRawFrame(nil, 0, 0, packet(command(protocol.ComQuery, "SELECT REPEAT('x', 1000)"))))
		b := make([]byte, 11)
		for n := 0; n < len(b); {
			k, err := byteStream{w.Conn}.Read(b[n:])
			if err != nil {
				return err.Error()
			}
			n += k
		}
		switch {
		case bytes.HasPrefix(b[7:], []byte{0x78}):
			return "zlib"
		case bytes.HasPrefix(b[7:], []byte{0x28, 0xb5, 0x2f, 0xfd}):
			return "zstd"
		}
		return "not compressed"
	}
	for _, flags := range []protocol.Capability{protocol.Compress, protocol.CompressZstd, protocol.Compressing} {
		for _, level := range []byte{0, 1, 9, 22, 23, 255} {
			got, want := outcome(e.Addr(), flags, level), outcome(e.Servers[0].Addr(), flags, level)
			if got != want {
				t.Errorf("flags %x, level %d: got %q, want %q", uint64(flags), level, got, want)
			}
			if flags.Has(protocol.Compress) && got != "zlib" {
				t.Errorf("flags %x, level %d: got %q, want zlib", uint64(flags), level, got)
			}
		}
	}
}

func TestABrokenCompressedStreamEndsTheSessionAndIsLogged(t *testing.T) {
	e := newEnv(t, setup{})
	query := packet(command(protocol.ComQuery, "SELECT REPEAT('x', 1000)"))
	for _, c := range []struct {
		name  string
		frame []byte
		code  uint16 // of the error; 0: the server closes without an answer
	}{
		{"a wrong number", mysqltest.AppendRawFrame(nil, 5, 0, query), 1156},
		{"no zlib", mysqltest.AppendRawFrame(nil, 0, 100, query), 0},
	} {
		answer := func(addr string) []byte {
			w := e.Wire(t, addr, wireLogin{Packing: mysqltest.Zlib})
			if _, err := w.Conn.Write(c.frame); err != nil {
				t.Fatal(err)
			}
			frame, err := mysqltest.ReadFrame(byteStream{w.Conn}, mysqltest.Zlib)
			if err != nil {
				return nil
			}
			w.frames = nil
			w.ended()
			return frame.Plain
		}
		e.Logs.TakeAll()
		got := answer(e.Addr())
		if c.code != 0 {
			if err := serverError(t, got); err.Code != c.code {
				t.Errorf("%s: got %v, want %d", c.name, err, c.code)
			}
			compare(t, c.name, unnumbered(got), unnumbered(answer(e.Servers[0].Addr())))
		} else if got != nil {
			t.Errorf("%s: got %x, want the end of the connection", c.name, got)
		}
		e.awaitSessions(t, 0)
		if n := e.Logs.FilterMessage("session ended by a broken compressed stream").Len(); n != 1 {
			t.Errorf("%s: got %d lines in the log, want 1: %v", c.name, n, e.Logs.All())
		}
	}
}

func TestTheDriverCompresses(t *testing.T) {
	server := mysqltest.Start(t, "--max-allowed-packet=64M")
	e := newEnv(t, setup{Servers: []*mysqltest.Server{server}})
	createSequence(t, e, "s")
	ctx := context.Background()
	var log lines
	compressed := func(m *mysql.Config) {
		bigPackets(m)
		m.Logger = &log
		if err := m.Apply(mysql.EnableCompression(true)); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(*mysql.Config){
		"prepared":     compressed,
		"interpolated": func(m *mysql.Config) { compressed(m); m.InterpolateParams = true },
	} {
		c := e.Conn(t, e.Schemas[0], change)
		exec(t, c, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id BIGINT PRIMARY KEY, b LONGBLOB)")
		for _, n := range []int{0, 1, 1000, 1 << 20} {
			big := bytes.Repeat([]byte("0123456789abcdef!"), n/17+1)[:n]
			r, err := c.ExecContext(ctx, "INSERT INTO t VALUES (NEXTVAL('s'), ?)", big)
			if err != nil {
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
			id, err := r.LastInsertId()
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			if err := c.QueryRowContext(ctx, "SELECT b FROM t WHERE id = ?", id).Scan(&got); err != nil {
				t.Fatalf("%s, %d bytes: %v", name, n, err)
			}
			if !bytes.Equal(got, big) {
				t.Errorf("%s: %d bytes came back as other %d", name, n, len(got))
			}
		}
		if name == "interpolated" {
			continue
		}
		long := strings.Repeat("0123456789", 17<<17) // in several packets
		if got := value(t, c, "SELECT LENGTH(?)", long); got != fmt.Sprint(len(long)) {
			t.Errorf("%s: got length %s, want %d", name, got, len(long))
		}
	}
	if len(log.lines) > 0 {
		t.Errorf("the driver logged: %s", log.lines)
	}
}

// lines keeps what a driver logs.
type lines struct{ lines []string }

func (l *lines) Print(v ...any) { l.lines = append(l.lines, fmt.Sprint(v...)) }

func TestTheCommandLineClientCompresses(t *testing.T) {
	e := newEnv(t, setup{})
	script := "SELECT 1; SELECT REPEAT('x', 100000); SELECT nothing; SHOW WARNINGS; CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT * FROM t;\n"
	run := func(addr string) string { return withoutTimes(e.CLI(t, addr, e.Schemas[0], script, "--compress")) }
	compareTexts(t, run(e.Addr()), run(e.Servers[0].Addr()))
	if !e.Servers[0].IsMariaDB() {
		return // MySQL's client has no status command in a script
	}
	if got := e.CLI(t, e.Addr(), "", "status\n", "--compress"); !strings.Contains(got, "Compressed") {
		t.Errorf("the client did not compress:\n%s", got)
	}
}

// A client that sends much before it reads must not wait for the proxy while the proxy waits for
// it.
func TestACompressedPipelineDoesNotLockUp(t *testing.T) {
	e := newEnv(t, setup{})
	w := e.Wire(t, e.Addr(), wireLogin{Packing: mysqltest.Zlib})
	if err := w.nc.(interface{ SetReadBuffer(int) error }).SetReadBuffer(32 << 10); err != nil {
		t.Fatal(err)
	}
	var steps []piped
	for i := range 600 { // 12 MB that do not compress
		steps = append(steps, asText(fmt.Sprintf("SELECT 'answer %d'%s /* %1000s */", i, strings.Repeat(", RANDOM_BYTES(1024)", 20), "")))
	}
	for i, answer := range w.pipeline(steps) {
		if want := fmt.Sprintf("answer %d", i); len(answer) < 20<<10 || !bytes.Contains(answer, []byte(want)) {
			t.Fatalf("answer %d has %d bytes, want more than 20000 with %q", i, len(answer), want)
		}
	}
}
