package proxy_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"strconv"
	"testing"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/test/mysqltest"
)

// blocked is for how long a stream is held up: much longer than a write may block before the other
// direction is read.
const blocked = 150 * time.Millisecond

// eachTLS runs a test with TLS on neither side, one, and both. Links stand between the client, the
// proxy and the server.
func eachTLS(t *testing.T, test func(t *testing.T, e *env, w *wire, toProxy, toServer *mysqltest.Link)) {
	t.Helper()
	ca := mysqltest.NewCA(t)
	server := mysqltest.Start(t, append(ca.Server(t, "127.0.0.1").ServerArgs(ca), "--max-allowed-packet=64M")...)
	serverTLS, clientTLS := testTLS()
	for name, with := range map[string]struct {
		client *tls.Config
		server tlsfiles.ClientFiles
	}{
		"neither": {nil, tlsfiles.ClientFiles{Mode: tlsfiles.Disabled}},
		"client":  {clientTLS, tlsfiles.ClientFiles{Mode: tlsfiles.Disabled}},
		"server":  {nil, tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File}},
		"both":    {clientTLS, tlsfiles.ClientFiles{Mode: tlsfiles.VerifyIdentity, CA: ca.File}},
	} {
		t.Run(name, func(t *testing.T) {
			toServer := mysqltest.NewLink(t, server.Addr())
			e := newEnv(t, setup{
				Servers: []*mysqltest.Server{server},
				Proxy:   func(o *proxy.Options) { o.TLS = serverTLS },
				Backend: func(o *backend.Options) {
					o.Shards[0].Nodes, o.Shards[0].Security = []string{toServer.Addr()}, secured(t, with.server)
				},
			})
			toProxy := mysqltest.NewLink(t, e.Addr())
			w := e.Wire(t, toProxy.Addr(), wireLogin{Schema: e.Schemas[0], TLS: with.client})
			if got := w.cipher() != ""; got != (with.server.CA != "") {
				t.Fatalf("the connection to the server is encrypted: %v", got)
			}
			test(t, e, w, toProxy, toServer)
		})
	}
}

// summed returns a query for the checksum of a long text, and its value.
func summed(text []byte) (sql, want string) {
	return fmt.Sprintf("SELECT CRC32('%s') AS n", text), strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10)
}

// Checklist 12.
func TestALongStatementMayWaitForItsServer(t *testing.T) {
	mysqltest.MovesMegabytes(t, "statements of many megabytes")
	eachTLS(t, func(t *testing.T, e *env, w *wire, _, toServer *mysqltest.Link) {
		id := w.backendID()
		for _, size := range []int{15 << 20, protocol.MaxFragment, 34 << 20} {
			sql, want := summed(bytes.Repeat([]byte("0123456789abcdef"), size/16))
			toServer.Hold()
			time.AfterFunc(blocked, toServer.Mend)
			if got := w.rows(sql)[0]; got != want {
				t.Errorf("%d bytes: the server has got a text with the sum %s, want %s", size, got, want)
			}
		}
		if got := w.backendID(); got != id {
			t.Errorf("the session has connection %s now, it had %s", got, id)
		}
	})
}

// Checklist 35.
func TestAClientThatReadsLateMaySendMeanwhile(t *testing.T) {
	mysqltest.MovesMegabytes(t, "megabytes that are not read")
	eachTLS(t, func(t *testing.T, e *env, w *wire, toProxy, toServer *mysqltest.Link) {
		const long, size = 12, 4 << 20
		for range 2 { // the end of one wait must not end the next
			toProxy.Hold()
			time.AfterFunc(blocked, toProxy.Mend)
			var steps []piped
			for i := range long {
				steps = append(steps, asText(fmt.Sprintf("SELECT '%d', REPEAT('%d', %d) /* %2000s */", i, i%10, size, "")))
			}
			for i, answer := range w.pipeline(steps) {
				if n := bytes.Count(answer, []byte(strconv.Itoa(i%10))); n < size {
					t.Errorf("answer %d has %d of the %d bytes", i, n, size)
				}
			}
		}
		// A client that reads slowly, with a server that reads late.
		w.send(packet(command(protocol.ComQuery, "SELECT seq, REPEAT('y', 1000) FROM "+e.Servers[0].Numbers(20_000))))
		for range 10 {
			time.Sleep(20 * time.Millisecond)
			if err := w.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		if got := len(split(w.receive(protocol.ShapeResult, nil))); got < 20_000 {
			t.Errorf("got %d packets, want more than 20000", got)
		}
		sql, want := summed(bytes.Repeat([]byte("x"), 20<<20))
		toServer.Hold()
		time.AfterFunc(blocked, toServer.Mend)
		if got := w.rows(sql)[0]; got != want {
			t.Errorf("the server has got a text with the sum %s, want %s", got, want)
		}
	})
}
