package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seqproxy/admin/web"
	"seqproxy/test/mysqltest"
)

// httpAddress returns the proxy's HTTP address, from its log.
func (p *process) httpAddress() string {
	p.t.Helper()
	p.address()
	match := regexp.MustCompile(`"http": ?"([^"]+)"`).FindStringSubmatch(p.stderr())
	if match == nil {
		p.t.Fatal("the log does not say where metrics are")
	}
	return match[1]
}

// get sends an HTTP request to the proxy.
func get(t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	return ask(t, http.MethodGet, address, path)
}

func ask(t *testing.T, method, address, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // was read
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// askReady asks /readyz with a query.
func askReady(t *testing.T, address, query string) (status int, answer web.Readiness) {
	t.Helper()
	status, body := get(t, address, "/readyz"+query)
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Reasons == nil || answer.Warnings == nil {
		t.Fatalf("/readyz%s: got %q, %v, want JSON with reasons and warnings", query, body, err)
	}
	if answer.Ready != (status == http.StatusOK) || answer.Ready != (len(answer.Reasons) == 0) {
		t.Fatalf("/readyz%s: got %d with %q", query, status, body)
	}
	return status, answer
}

// awaitReady asks until the status is want.
func awaitReady(t *testing.T, address, query string, want int) (answer web.Readiness) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		status, answer := askReady(t, address, query)
		if status == want {
			return answer
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz%s: got %d %+v for %v, want %d", query, status, answer, patience, want)
		}
	}
}

func TestHealthAndMetricsOverHTTP(t *testing.T) {
	s := mysqltest.Start(t)
	p := begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	sql, address := p.address(), p.httpAddress()

	for path, want := range map[string]string{
		"/":        "/readyz?sequence=photos",
		"/healthz": "ok\n",
		"/metrics": "\nseqproxy_build_info{commit=\"unknown\",goversion=\"go1",
	} {
		if status, body := get(t, address, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s: got %d %q, want %q in it", path, status, body, want)
		}
		if status, body := ask(t, http.MethodHead, address, path); status != http.StatusOK || body != "" {
			t.Errorf("HEAD %s: got %d %q, want 200 and nothing", path, status, body)
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if status, _ := ask(t, method, address, path); status != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: got %d, want 405", method, path, status)
			}
		}
	}
	_, metrics := get(t, address, "/metrics")
	for _, want := range []string{"\ngo_goroutines ", "\nprocess_resident_memory_bytes ", "\nseqproxy_ready 1\n", "\nseqproxy_draining 0\n", "\nseqproxy_config_last_reload_successful 1\n"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics does not have %q", want)
		}
	}
	for path, want := range map[string]int{"/debug/pprof/": 404, "/metricsx": 404, "/readyz?sequence=": 400, "/readyz?sequence=a&sequence=b": 400} {
		if status, _ := get(t, address, path); status != want {
			t.Errorf("GET %s: got %d, want %d", path, status, want)
		}
	}

	if status, answer := askReady(t, address, ""); status != http.StatusOK || len(answer.Warnings) > 0 {
		t.Errorf("ready: got %d %+v, want 200 without warnings", status, answer)
	}
	if status, answer := askReady(t, address, "?sequence=photos"); status != http.StatusNotFound || answer.Reasons[0] != `there is no sequence "photos"` {
		t.Errorf("an unknown sequence: got %d %+v, want 404 naming it", status, answer)
	}
	query(t, sql, "root", "", "CREATE SEQUENCE photos; SELECT NEXTVAL('photos'); CREATE SEQUENCE unused; CREATE SEQUENCE ending MAXVALUE 2; SELECT NEXTVAL('ending'), NEXTVAL('ending')")
	awaitReady(t, address, "?sequence=photos", http.StatusOK)
	awaitReady(t, address, "?sequence=unused", http.StatusOK)
	if answer := awaitReady(t, address, "?sequence=ending", http.StatusServiceUnavailable); answer.Reasons[0] != `sequence "ending": sequence has run out` {
		t.Errorf("a sequence at its end: got %+v", answer)
	}
	if got := query(t, s.Addr(), "root", "", "SELECT id FROM seqproxy.sequence WHERE name = 'unused'"); got != "0" {
		t.Errorf("the row of the sequence that was only asked about: got %s, want 0", got)
	}

	// The only server behind it goes. Keys in memory are still given.
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if answer := awaitReady(t, address, "?sequence=unused", http.StatusServiceUnavailable); !strings.Contains(answer.Reasons[0], `sequence "unused": sequence server `+s.Addr()+" is unavailable") {
		t.Errorf("a sequence without numbers in memory: got %+v", answer)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		// a server is asked every 2 s
		status, answer := askReady(t, address, "?sequence=photos")
		if status == http.StatusOK && len(answer.Warnings) == 1 && strings.Contains(answer.Warnings[0], "shard default: node "+s.Addr()+" cannot be used") {
			break
		}
		if status != http.StatusOK || time.Now().After(deadline) {
			t.Fatalf("with keys in memory alone: got %d %+v, want 200 and a warning that names the shard", status, answer)
		}
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, address, "?sequence=unused", http.StatusOK)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if _, answer := askReady(t, address, ""); len(answer.Warnings) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the shard is not ready again")
		}
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

func TestNotReadyWithoutAnyServerAndWhileStopping(t *testing.T) {
	s := mysqltest.Start(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	p := begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	sql, address := p.address(), p.httpAddress()
	var answer web.Readiness
	for deadline := time.Now().Add(patience); len(answer.Reasons) != 2; time.Sleep(50 * time.Millisecond) {
		// it may not accept clients yet
		if answer = awaitReady(t, address, "", http.StatusServiceUnavailable); time.Now().After(deadline) {
			t.Fatalf("without a server: got %+v, want a reason for the shard and one for the keys", answer)
		}
	}
	if status, _ := get(t, address, "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: got %d, want 200: a restart would not help", status)
	}
	if _, metrics := get(t, address, "/metrics"); !strings.Contains(metrics, "\nseqproxy_ready 0\n") {
		t.Error("seqproxy_ready is not 0")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitReady(t, address, "", http.StatusOK)

	db := s.DB(t, "")
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // every statement was answered
	if _, err := conn.ExecContext(t.Context(), "DO GET_LOCK('held', 60)"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := client(t, sql, "root", "", "-e", "SELECT GET_LOCK('held', 60)")
		answered <- err
	}()
	awaitStatement(t, s.Addr(), "SELECT GET_LOCK")
	p.signal(syscall.SIGTERM)
	p.await("stopping")
	if answer := awaitReady(t, address, "", http.StatusServiceUnavailable); answer.Reasons[0] != "the proxy is stopping" {
		t.Errorf("while it stops: got %+v", answer)
	}
	if _, metrics := get(t, address, "/metrics"); !strings.Contains(metrics, "\nseqproxy_draining 1\n") {
		t.Error("seqproxy_draining is not 1 during the stop")
	}
	if _, err := conn.ExecContext(t.Context(), "DO RELEASE_LOCK('held')"); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the statement that ran: %v", err)
	}
	p.end(0)
}

func TestHTTPPortInUseIsToldAtOnceWithItsKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nobody connected
	want := "seqproxy: http.listen: address " + l.Addr().String() + " is in use: end what listens there, or choose another, or \"\" for no metrics, by http.listen or -http-listen\n"
	runs(t, 1, "", want, "-backend", "127.0.0.1:1", "-user", "u", "-listen", "127.0.0.1:0", "-http-listen", l.Addr().String())
	file := write(t, "seqproxy.toml", fmt.Sprintf("listen = '127.0.0.1:0'\nadmin.listen = ''\nhttp.listen = %q\n[[user]]\nname = 'u'\n[[sequence.server]]\naddress = '127.0.0.1:1'\nuser = 'u'\n", l.Addr()))
	runs(t, 1, "", want, "-config", file)

	p := begin(t, "-config", file, "-http-listen", "")
	p.address()
	if !strings.Contains(p.stderr(), `"http": ""`) {
		t.Error("the log does not say that there are no metrics")
	}
	p.signal(syscall.SIGTERM)
	p.end(0)
}

// Many more clients than there are places connect and stay silent. They reconnect when the proxy
// closes their connection.
func TestHealthIsAnsweredWhateverOthersDo(t *testing.T) {
	s := mysqltest.Shared(t)
	p := begin(t, "-backend", s.Addr(), "-user", "root", "-listen", "127.0.0.1:0")
	address := p.httpAddress()
	var all sync.WaitGroup
	defer all.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var came atomic.Int32
	for range 600 {
		all.Go(func() {
			var d net.Dialer
			for ctx.Err() == nil {
				c, err := d.DialContext(ctx, "tcp", address)
				if err != nil {
					return
				}
				came.Add(1)
				undo := context.AfterFunc(ctx, func() { c.Close() })
				_, _ = c.Read(make([]byte, 1)) // reads up to the end of the connection
				undo()
				c.Close()
			}
		})
	}
	for deadline := time.Now().Add(patience); came.Load() < 600; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got only %d connections", came.Load())
		}
	}
	for range 3 {
		for _, args := range [][]string{{}, {"-ready"}} {
			begin(t, append([]string{"health", "-http", address}, args...)...).end(0)
		}
	}
	if status, body := get(t, address, "/metrics"); status != http.StatusOK || !strings.Contains(body, "\nseqproxy_ready 1\n") {
		t.Errorf("/metrics: got %d and %d bytes", status, len(body))
	}
}
