package web_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/admin/web"
)

// patience bounds every wait.
const patience = 30 * time.Second

// serve runs a Server with the given pages. stop ends it and waits.
func serve(t *testing.T, pages http.Handler) (address string, stop func(ctx context.Context)) {
	t.Helper()
	s := web.NewServer(pages, zap.NewNop())
	if err := s.Listen(t.Context(), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	ended := false
	stop = func(ctx context.Context) {
		if ended {
			return
		}
		ended = true
		s.Shutdown(ctx)
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil after Shutdown", err)
		}
	}
	t.Cleanup(func() { stop(context.Background()) })
	return s.Addr().String(), stop
}

// dial connects and sends text.
func dial(t *testing.T, address, text string) net.Conn {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return c
}

func statusLine(t *testing.T, c net.Conn) string {
	t.Helper()
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

func TestShutdownWaitsForAnswersAndThenForNothing(t *testing.T) {
	begun, release := make(chan struct{}, 2), make(chan struct{})
	address, stop := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done(): // the connection has ended
		}
	}))
	c := dial(t, address, request)
	dial(t, address, "GET / HTT") // sends no more
	<-begun
	stopped := make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		stop(ctx)
		close(stopped)
	}()
	for { // until it no longer listens
		if c, err := net.DialTimeout("tcp", address, patience); err != nil {
			break
		} else if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	select {
	case <-stopped:
		t.Error("Shutdown returned while a request was being answered")
	default:
	}
	close(release)
	if got := statusLine(t, c); got != "HTTP/1.1 200 OK" {
		t.Errorf("the request that was being answered: got %q, want 200", got)
	}
	<-stopped
}

func TestShutdownInAHurryCutsAnswers(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	address, stop := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		close(ended)
	}))
	dial(t, address, request)
	<-begun
	hurry, cancel := context.WithCancel(context.Background())
	cancel()
	stop(hurry)
	select {
	case <-ended:
	default:
		t.Error("Shutdown returned before the handler")
	}
}

func TestConnectionsAndHeadersAreBounded(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	address, _ := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			close(begun)
			<-release
		}
	}))
	long := dial(t, address, "GET / HTTP/1.1\r\nHost: x\r\nX: "+strings.Repeat("x", 32<<10)+"\r\n\r\n")
	if got := statusLine(t, long); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("a header of 32 KiB: got %q, want 431", got)
	}
	if err := long.Close(); err != nil {
		t.Fatal(err)
	}

	// Silent connections have all places, and so has one that is being answered. The next
	// connection gets the first place that becomes free, or else that of a silent one.
	const places = 256
	busy := dial(t, address, "GET /busy HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	var silent []net.Conn
	for i := range places - 1 {
		c := dial(t, address, request)
		if got := statusLine(t, c); got != "HTTP/1.1 200 OK" { // it has a place
			t.Fatalf("connection %d: got %q, want 200", i+1, got)
		}
		silent = append(silent, c)
	}
	if err := silent[0].Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if got := statusLine(t, dial(t, address, request)); got != "HTTP/1.1 200 OK" {
			t.Errorf("%d more than there are places: got %q, want 200", i, got)
		}
	}
	// The server notices a silence a moment after the answer. So it may see another order among the
	// first ones.
	closed := false
	for deadline := time.Now().Add(30 * time.Second); !closed && time.Now().Before(deadline); {
		for _, c := range silent[1:10] {
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			_, err := io.Copy(io.Discard, c)
			closed = closed || !errors.Is(err, os.ErrDeadlineExceeded)
		}
	}
	if !closed {
		t.Error("those that were silent for longest keep their places")
	}
	close(release)
	if got := statusLine(t, busy); got != "HTTP/1.1 200 OK" {
		t.Errorf("the one that was being answered: got %q, want 200", got)
	}
}

// There are many more clients than places: silent ones, ones that do not finish a request, and ones
// that do not read answers. A further request is answered.
func TestWhoAsksIsAnsweredWhateverOthersDo(t *testing.T) {
	long := strings.Repeat("x", 8<<20)
	address, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			_, _ = io.WriteString(w, long)
		}
	}))
	for _, text := range []string{"", "GET / HTTP/1.1\r\nHost: x\r\nX: ", "GET /long HTTP/1.1\r\nHost: x\r\n\r\n"} {
		t.Run(fmt.Sprintf("%.10q", text), func(t *testing.T) {
			for range 300 {
				dial(t, address, text)
			}
			if got := statusLine(t, dial(t, address, request)); got != "HTTP/1.1 200 OK" {
				t.Errorf("got %q, want 200", got)
			}
		})
	}
}

func TestReloadsAreCounted(t *testing.T) {
	r := web.NewReloads()
	registry := web.NewRegistry(web.Build{Version: "1", Commit: "c"}, r)
	want := func(text string) {
		t.Helper()
		if got := metrics(t, registry); !strings.Contains(got, "\n"+text+"\n") {
			t.Errorf("got\n%swant %q in it", got, text)
		}
	}
	want("seqproxy_config_last_reload_successful 1")
	want(`seqproxy_config_reloads_total{result="ok"} 0`)
	r.Done(fmt.Errorf("no"))
	r.Done(fmt.Errorf("no"))
	want("seqproxy_config_last_reload_successful 0")
	want(`seqproxy_config_reloads_total{result="error"} 2`)
	r.Done(nil)
	want("seqproxy_config_last_reload_successful 1")
	want(`seqproxy_config_reloads_total{result="ok"} 1`)
}
