package network

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = 30 * time.Second
	moment   = 100 * time.Millisecond // for what must not happen
)

// far is a server. It answers each piece with "ok" and the piece, or with answer.
type far struct {
	net.Listener
	answer []byte
	echo   atomic.Bool // it answers with the piece only; set before use
	heard  chan string // the pieces
	ends   chan error  // how connections ended
	group  sync.WaitGroup

	answering sync.Mutex // locked while it answers
}

// newFar makes a server and a link to it.
func newFar(t *testing.T, answer []byte) (*far, *Link) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &far{Listener: listener, answer: answer, heard: make(chan string, 1000), ends: make(chan error, 1000)}
	f.group.Go(func() {
		for {
			c, err := f.Accept()
			if err != nil {
				return
			}
			f.group.Go(func() { f.ends <- f.serve(c) })
		}
	})
	l, err := NewLink(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		_ = f.Close()
		f.group.Wait()
	})
	return f, l
}

func (f *far) serve(c net.Conn) error {
	defer c.Close() //nolint:errcheck // of the test
	if f.echo.Load() {
		_, err := io.Copy(c, c)
		return err
	}
	buf := make([]byte, 1000)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		f.heard <- string(buf[:n])
		answer := f.answer
		if answer == nil {
			answer = slices.Concat([]byte("ok"), buf[:n])
		}
		f.answering.Lock()
		_, err = c.Write(answer)
		f.answering.Unlock()
		if err != nil {
			return err
		}
	}
}

func (f *far) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-f.heard:
		if got != want {
			t.Errorf("the server got %q, want %q", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("the server did not get %q", want)
	}
}

func (f *far) hearsNothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-f.heard:
		t.Errorf("the server got %q, want nothing", got)
	case err := <-f.ends:
		t.Errorf("the server got %v, want nothing", err)
	case <-time.After(moment):
	}
}

func dial(t *testing.T, l *Link) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// gets reads n bytes.
func gets(t *testing.T, c net.Conn, n int) []byte {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, n)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatalf("got %v, want %d bytes", err, n)
	}
	return got
}

// asks sends a text and expects its answer.
func asks(t *testing.T, c net.Conn, text string) {
	t.Helper()
	send(t, c, text)
	if got := string(gets(t, c, len("ok"+text))); got != "ok"+text {
		t.Errorf("got %q, want %q", got, "ok"+text)
	}
}

func getsNothing(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(moment)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 100)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %d bytes and %v, want nothing", n, err)
	}
}

// getsEnd reads up to the end of the stream.
func getsEnd(t *testing.T, c net.Conn, want error) []byte {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err == nil {
		err = io.EOF
	}
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	return got
}

func (f *far) ended(t *testing.T, want error) {
	t.Helper()
	select {
	case err := <-f.ends:
		if !errors.Is(err, want) {
			t.Errorf("the server got %v, want %v", err, want)
		}
	case <-time.After(patience):
		t.Fatalf("the server did not hear of the end")
	}
}

func TestInFairWeatherAllPassesAndEachEndOfItsKind(t *testing.T) {
	f, l := newFar(t, nil)
	c := dial(t, l)
	asks(t, c, "one")
	f.hears(t, "one")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil { //nolint:forcetypeassert // it is one
		t.Fatal(err)
	}
	f.ended(t, io.EOF)
	getsEnd(t, c, io.EOF)

	d := dial(t, l)
	asks(t, d, "two")
	if err := d.(*net.TCPConn).SetLinger(0); err != nil { //nolint:forcetypeassert // it is one
		t.Fatal(err)
	}
	_ = d.Close()
	f.ended(t, syscall.ECONNRESET)
}

func TestACutResetsBothSidesNow(t *testing.T) {
	f, l := newFar(t, nil)
	c := dial(t, l)
	asks(t, c, "one")
	l.Cut()
	getsEnd(t, c, syscall.ECONNRESET)
	f.ended(t, syscall.ECONNRESET)
	asks(t, dial(t, l), "new ones are as before")
}

func TestSilenceHoldsEverythingBackInBothDirections(t *testing.T) {
	f, l := newFar(t, nil)
	c, ending := dial(t, l), dial(t, l)
	asks(t, c, "one")
	f.hears(t, "one")
	asks(t, ending, "two")
	f.hears(t, "two")
	l.Set(Silent)
	send(t, c, "three")
	_ = ending.Close() // half-open: the server does not know
	fresh := dial(t, l)
	send(t, fresh, "four")
	f.hearsNothing(t)
	getsNothing(t, c)
	l.Set(Fair)
	heard := []string{<-f.heard, <-f.heard}
	if slices.Sort(heard); !slices.Equal(heard, []string{"four", "three"}) {
		t.Errorf("the server got %q, want the delayed bytes", heard)
	}
	f.ended(t, io.EOF)
	if got := string(gets(t, c, 7)); got != "okthree" {
		t.Errorf("got %q, want the answer to what was held back", got)
	}
	asks(t, c, "five")
	gets(t, fresh, len("okfour"))
	asks(t, fresh, "six")
}

func TestSilenceHoldsAnswersBack(t *testing.T) {
	f, l := newFar(t, nil)
	c := dial(t, l)
	f.answering.Lock()
	send(t, c, "one")
	f.hears(t, "one")
	l.Set(Silent)
	f.answering.Unlock()
	getsNothing(t, c)
	l.Set(Fair)
	gets(t, c, len("okone"))
	asks(t, c, "two")
}

func TestWhatIsCutInSilenceNeverArrives(t *testing.T) {
	f, l := newFar(t, nil)
	c := dial(t, l)
	asks(t, c, "one")
	f.hears(t, "one")
	l.Set(Silent)
	send(t, c, "lost")
	f.hearsNothing(t)
	l.Cut()
	getsEnd(t, c, syscall.ECONNRESET)
	f.ended(t, syscall.ECONNRESET)
	l.Set(Fair)
	f.hearsNothing(t)

	d := dial(t, l)
	asks(t, d, "two")
	f.hears(t, "two")
	l.Set(Silent)
	send(t, d, "lost")
	l.CutOff()
	f.ended(t, syscall.ECONNRESET)
	f.hearsNothing(t)
	getsEnd(t, dial(t, l), io.EOF)
}

func TestSwallowedAnswersEndTheirConnectionAlone(t *testing.T) {
	f, l := newFar(t, nil)
	c, idle := dial(t, l), dial(t, l)
	asks(t, c, "one")
	f.hears(t, "one")
	asks(t, idle, "two")
	f.hears(t, "two")
	l.Set(Swallow)
	send(t, c, "three")
	f.hears(t, "three")
	fresh := dial(t, l)
	send(t, fresh, "four")
	f.hears(t, "four")
	getsNothing(t, c)
	getsNothing(t, fresh)
	l.Set(Fair)
	getsEnd(t, c, syscall.ECONNRESET)
	getsEnd(t, fresh, syscall.ECONNRESET)
	asks(t, idle, "five")
}

func TestRefusedAreNewConnectionsAlone(t *testing.T) {
	_, l := newFar(t, nil)
	c := dial(t, l)
	asks(t, c, "one")
	l.Set(Refuse)
	getsEnd(t, dial(t, l), io.EOF)
	asks(t, c, "two")
	l.Set(Fair)
	asks(t, dial(t, l), "three")
}

func TestHeldAreNewConnectionsAlone(t *testing.T) {
	f, l := newFar(t, nil)
	c := dial(t, l)
	asks(t, c, "one")
	f.hears(t, "one")
	l.Set(Hold)
	d := dial(t, l)
	for end := time.Now().Add(patience); l.Waiting() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d connections that are held, want 1", l.Waiting())
		}
	}
	send(t, d, "nobody hears that")
	f.hearsNothing(t)
	asks(t, c, "two")
	l.Set(Fair)
	getsNothing(t, d)
	_ = d.Close()
	for end := time.Now().Add(patience); l.Waiting() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d connections that are held, want none", l.Waiting())
		}
	}
	l.Set(Hold)
	e := dial(t, l)
	for end := time.Now().Add(patience); l.Waiting() != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d connections that are held, want 1", l.Waiting())
		}
	}
	l.Cut()
	getsEnd(t, e, syscall.ECONNRESET)
}

func TestSlowIsLateInBothDirectionsAndLosesNothing(t *testing.T) {
	f, l := newFar(t, nil)
	c := dial(t, l)
	asks(t, c, "one")
	f.hears(t, "one")
	l.Set(Slow(20 * time.Millisecond))
	begin := time.Now()
	asks(t, c, "two")
	if took := time.Since(begin); took < 40*time.Millisecond {
		t.Errorf("took %v, want twice 20 ms or more", took)
	}
	l.Set(Slow(time.Hour))
	f.hears(t, "two")
	send(t, c, "three")
	f.hearsNothing(t)
	l.Set(Fair) // late data come at once
	f.hears(t, "three")
	gets(t, c, len("okthree"))
	asks(t, c, "four")
}

func TestNarrowAndSlicedPassEverythingInOrder(t *testing.T) {
	answer := make([]byte, 10_000)
	for i := range answer {
		answer[i] = byte(i % 251)
	}
	for name, w := range map[string]Weather{"narrow": Narrow(100), "sliced": Sliced(7, 0), "sliced with pauses": Sliced(100, 100*time.Microsecond)} {
		t.Run(name, func(t *testing.T) {
			_, l := newFar(t, answer)
			old := dial(t, l)
			send(t, old, "one")
			gets(t, old, len(answer))
			l.Set(w)
			for _, c := range []net.Conn{old, dial(t, l)} {
				send(t, c, "x")
				if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
					t.Fatal(err)
				}
				first := make([]byte, len(answer))
				n, err := c.Read(first)
				if err != nil {
					t.Fatal(err)
				}
				if name == "sliced with pauses" && n == len(answer) {
					t.Error("the answer came in one piece")
				}
				if got := slices.Concat(first[:n], gets(t, c, len(answer)-n)); !bytes.Equal(got, answer) {
					t.Error("the answer is another one")
				}
				send(t, c, "x")
				gets(t, c, 1) // in the middle of the answer
				l.Set(Fair)
				if got := gets(t, c, len(answer)-1); !bytes.Equal(got, answer[1:]) {
					t.Error("the rest of the answer is another one")
				}
				l.Set(w)
			}
		})
	}
}

func TestCutShortEndsAConnectionInTheMiddleOfAnAnswer(t *testing.T) {
	f, l := newFar(t, nil)
	old := dial(t, l)
	asks(t, old, "one")
	f.hears(t, "one")
	l.Set(CutShort(4))
	for _, c := range []net.Conn{old, dial(t, l)} { // counted from now
		send(t, c, "two")
		f.hears(t, "two")
		got := make([]byte, 4)
		n, err := io.ReadFull(c, got)
		if string(got[:n]) != "oktw"[:n] {
			t.Errorf("got %q, want the beginning of the answer", got[:n])
		}
		if err == nil { // a reset may overtake earlier data
			getsEnd(t, c, syscall.ECONNRESET)
		}
		f.ended(t, syscall.ECONNRESET)
	}
	if got := l.Broken(); got != 2 {
		t.Errorf("got %d connections that were broken, want 2", got)
	}
	l.Set(CutShort(0))
	c := dial(t, l)
	f.hearsNothing(t)
	send(t, c, "three")
	f.hears(t, "three")
	if got := getsEnd(t, c, syscall.ECONNRESET); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
	l.Set(Fair)
	asks(t, dial(t, l), "four")
}

// Connections end on one side in the middle of much data, while the weather changes. Every
// goroutine must end (TestMain checks).
func TestNothingIsLeftOfConnectionsThatEndUnderWay(t *testing.T) {
	weathers := []Weather{Fair, Silent, Slow(5 * time.Millisecond), Swallow, Narrow(200), Sliced(50, 0), CutShort(100_000), Refuse, Hold}
	for _, cut := range []bool{false, true} {
		_, l := newFar(t, make([]byte, 2<<20))
		var clients sync.WaitGroup
		for i := range 32 {
			clients.Go(func() {
				for range 4 {
					c, err := net.Dial("tcp", l.Addr())
					if err != nil { // it was cut before its client knew of it
						if !errors.Is(err, syscall.ECONNRESET) {
							t.Error(err)
						}
						continue
					}
					_, _ = c.Write([]byte("much"))
					_ = c.SetReadDeadline(time.Now().Add(time.Duration(i) * time.Millisecond))
					_, _ = io.CopyN(io.Discard, c, int64(i)*10_000)
					if i%2 == 0 {
						_ = c.(*net.TCPConn).SetLinger(0) //nolint:forcetypeassert // it is one
					}
					_ = c.Close()
				}
			})
		}
		for range 3 {
			for _, w := range weathers {
				l.Set(w)
				time.Sleep(3 * time.Millisecond)
				if cut {
					l.Cut()
				}
			}
		}
		clients.Wait()
		l.Set(Silent)
		l.Close() // waits for everything
		l.mu.Lock()
		if n := len(l.pairs); n > 0 {
			t.Errorf("%d connections remain", n)
		}
		l.mu.Unlock()
	}
}

// echoes sends a text and expects it back.
func echoes(t *testing.T, c net.Conn, text string) bool {
	t.Helper()
	_, err := c.Write([]byte(text))
	_ = c.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(text))
	if err == nil {
		_, err = io.ReadFull(c, got)
	}
	if err != nil || string(got) != text {
		t.Errorf("got %q and %v, want %q", got, err, text)
		return false
	}
	return true
}

// Weathers without loss come and go while connections are in use. Each connection continues, and
// none hangs afterwards.
func TestConnectionsOutliveAllWeathersThatLoseNothing(t *testing.T) {
	f, l := newFar(t, nil)
	f.echo.Store(true)
	weathers := []Weather{
		Silent, Slow(time.Millisecond), Silent, Narrow(50), Sliced(2, 0), Refuse, Hold, Sliced(3, 50*time.Microsecond), Slow(3 * time.Millisecond), CutShort(1 << 30), Narrow(500),
	}
	over := make(chan struct{})
	var clients sync.WaitGroup
	var idle []net.Conn
	for i := range 8 {
		busy, quiet := dial(t, l), dial(t, l)
		echoes(t, quiet, "one")
		idle = append(idle, quiet)
		clients.Go(func() {
			for n := 0; ; n++ {
				if !echoes(t, busy, fmt.Sprintf("%d/%d ", i, n)) {
					return
				}
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	for range 20 {
		for _, w := range weathers {
			l.Set(w)
			time.Sleep(time.Millisecond)
		}
		l.Set(Fair)
	}
	close(over)
	clients.Wait()
	for _, c := range idle {
		echoes(t, c, "two")
	}
}

func TestALinkToNowhereEndsConnections(t *testing.T) {
	l, err := NewLink("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	getsEnd(t, dial(t, l), io.EOF)
	l.Close()
}
