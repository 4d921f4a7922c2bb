package main

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"seqproxy/test/mysqltest"
)

// window is a terminal that shows a program's output, as far as `playground --demo` needs it.
type window struct {
	t     *testing.T
	ours  *os.File // the side of the person who looks and types
	ended chan struct{}

	mu             sync.Mutex // guards the rest
	cells          [][]rune
	line, column   int
	full           bool // the cursor is on the last character of a full line
	pending        []byte
	clears, redraw int    // clears of the screen; moves of the cursor to its start
	scrolled       int    // lines scrolled since the last such move
	unknown        string // an escape sequence that window does not know
}

func openWindow(t *testing.T, columns, lines int) (w *window, theirs *os.File) {
	t.Helper()
	ours, theirs := openTerminal(t)
	w = &window{t: t, ours: ours, ended: make(chan struct{})}
	w.resize(columns, lines)
	go func() {
		defer close(w.ended)
		b := make([]byte, 4096)
		for {
			n, err := ours.Read(b)
			w.mu.Lock()
			w.pending = append(w.pending, b[:n]...)
			w.show()
			w.mu.Unlock()
			if err != nil { // the program has ended
				return
			}
		}
	}()
	return w, theirs
}

// resize changes the size. The contents stay where they are.
func (w *window) resize(columns, lines int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	cells := make([][]rune, lines)
	for i := range cells {
		cells[i] = []rune(strings.Repeat(" ", columns))
		if i < len(w.cells) {
			copy(cells[i], w.cells[i])
		}
	}
	w.cells, w.line, w.column, w.full = cells, min(w.line, lines-1), min(w.column, columns-1), false
	if err := unix.IoctlSetWinsize(int(w.ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(lines), Col: uint16(columns)}); err != nil {
		w.t.Fatal(err)
	}
}

// sequences matches the escape sequences that window knows.
var sequences = regexp.MustCompile(`^\x1b\[(2J|J|H|K)`)

// show draws new output.
func (w *window) show() {
	for len(w.pending) > 0 {
		if w.pending[0] == 0x1b {
			m := sequences.FindSubmatch(w.pending)
			if m == nil {
				if len(w.pending) >= 4 {
					w.unknown = string(w.pending[:min(len(w.pending), 12)])
					w.pending = w.pending[1:]
					continue
				}
				return // the rest comes later
			}
			w.pending = w.pending[len(m[0]):]
			w.control(string(m[1]))
			continue
		}
		r, size := utf8.DecodeRune(w.pending)
		if r == utf8.RuneError && !utf8.FullRune(w.pending) {
			return
		}
		w.pending = w.pending[size:]
		w.character(r)
	}
}

func (w *window) control(sequence string) {
	w.full = false
	blank := func(line, from int) {
		for i := from; i < len(w.cells[line]); i++ {
			w.cells[line][i] = ' '
		}
	}
	switch sequence {
	case "H":
		w.line, w.column, w.scrolled = 0, 0, 0
		w.redraw++
	case "K":
		blank(w.line, w.column)
	case "J":
		blank(w.line, w.column)
		for i := w.line + 1; i < len(w.cells); i++ {
			blank(i, 0)
		}
	case "2J":
		for i := range w.cells {
			blank(i, 0)
		}
		w.clears++
	}
}

func (w *window) character(r rune) {
	switch r {
	case '\r':
		w.column, w.full = 0, false
		return
	case '\n':
		w.full = false
		w.down()
		return
	}
	if w.full { // the line continues in the next one
		w.column, w.full = 0, false
		w.down()
	}
	w.cells[w.line][w.column] = r
	if w.column == len(w.cells[w.line])-1 {
		w.full = true
	} else {
		w.column++
	}
}

// down moves to the next line.
func (w *window) down() {
	if w.line < len(w.cells)-1 {
		w.line++
		return
	}
	copy(w.cells, w.cells[1:])
	w.cells[w.line] = []rune(strings.Repeat(" ", len(w.cells[0])))
	w.scrolled++
}

// text returns the visible text.
func (w *window) text() string {
	var b strings.Builder
	for _, line := range w.cells {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}

// awaits waits until the window shows something, and returns the text. p is the writer.
func (w *window) awaits(p *process, what string, shown func(text string) bool) string {
	w.t.Helper()
	ended := false
	for deadline := time.Now().Add(2 * patience); ; time.Sleep(10 * time.Millisecond) {
		w.mu.Lock()
		text := w.text()
		w.mu.Unlock()
		if shown(text) {
			return text
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the screen does not show %s:\n%s", what, text)
		}
		select {
		case <-p.ended: // its last output may be on its way
			if last := time.Now().Add(10 * time.Second); !ended {
				deadline, ended = last, true
			}
		default:
		}
	}
}

// showsPages waits for that many further pages and checks that each replaces the one before.
func (w *window) showsPages(p *process, more int) {
	w.t.Helper()
	w.mu.Lock()
	from := w.redraw
	w.mu.Unlock()
	last := w.awaits(p, "further pages", func(string) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.redraw >= from+more
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.clears != 1 || w.scrolled > 0 || w.unknown != "" {
		w.t.Errorf("the screen was cleared %d times, want once; a page moved it by %d lines; it was sent %q", w.clears, w.scrolled, w.unknown)
	}
	if n := strings.Count(last, "keys/s"); n != 1 || !strings.HasPrefix(last, "seqproxy: keys while servers ") {
		w.t.Errorf("the window has keys/s %d times, want one page from the top on:\n%s", n, last)
	}
}

// beginAt runs the program with a terminal as its output and controlling terminal. The output is
// not in the process's stdout.
func beginAt(t *testing.T, theirs *os.File, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, nil, exe, args...)
	p.cmd.Stdout = theirs
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	p.start()
	return p
}

// shownNumber returns the number after a word of the page.
func shownNumber(text, word string) (n int, there bool) {
	m := regexp.MustCompile(`(?m)^  ` + word + ` +(\d+)(?: |$)`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// TestTheDemoIsOnePageInATerminal looks at `playground --demo` as a person at a terminal does.
func TestTheDemoIsOnePageInATerminal(t *testing.T) {
	summary := regexp.MustCompile(`\n[1-9]\d* keys in \S+, 0 duplicates, \d+ errors; \d+ rows, \d+ more failed while a server was down; servers killed: \d+\n`)
	again := regexp.MustCompile(`(?m)^  \S+ +up +killed +[1-9]\d* times  `)
	for name, test := range map[string]struct {
		args []string
		look func(t *testing.T, w *window, p *process) // before the end
	}{
		"until Ctrl-C, in a narrow and low window that becomes larger": {nil, func(t *testing.T, w *window, p *process) {
			w.resize(34, 8)
			page := w.awaits(p, "keys in a narrow window", func(text string) bool {
				rate, _ := shownNumber(text, "keys/s")
				seconds, _ := shownNumber(text, "seconds left")
				return rate > 0 && seconds > 0
			})
			if twice, there := shownNumber(page, "duplicates"); !there || twice != 0 {
				t.Errorf("duplicates in a narrow window: got %d, %v:\n%s", twice, there, page)
			}
			if _, there := shownNumber(page, "errors"); !there {
				t.Errorf("no errors in a narrow window:\n%s", page)
			}
			w.showsPages(p, 3)

			w.resize(150, 30)
			w.showsPages(p, 2)
			w.awaits(p, "that a server was killed", func(text string) bool { return strings.Contains(text, "KILLED ") })
			page = w.awaits(p, "that the server is back", again.MatchString)
			if twice, there := shownNumber(page, "duplicates"); !there || twice != 0 {
				t.Errorf("duplicates: got %d, %v:\n%s", twice, there, page)
			}
			for _, want := range []string{"sequences, shard photos0\n", "shard photos1\n", " Ctrl-C ends it\n", " rows/s "} {
				if !strings.Contains(page, want) {
					t.Errorf("the page lacks %q:\n%s", want, page)
				}
			}
			w.showsPages(p, 2)
			if _, err := w.ours.Write([]byte{3}); err != nil {
				t.Fatal(err)
			}
		}},
		"until its time ends": {[]string{"--for", "3s"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && test.look != nil {
				t.Skip("CI runs it: the demo until a server was away for ten seconds")
			}
			w, theirs := openWindow(t, 150, 30)
			settings, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{"playground", "--demo", "--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"}, test.args...)
			if server := os.Getenv(mysqltest.ServerEnv); server != "" {
				args = append(args, "--server", server)
			}
			p := beginAt(t, theirs, args...)
			t.Cleanup(func() {
				_ = p.cmd.Process.Kill()
				<-p.ended
				_ = theirs.Close() // so that it is not open elsewhere
				<-w.ended
				_ = w.ours.Close()
			})
			if test.look != nil {
				test.look(t, w, p)
			}
			p.end(0)
			page := w.awaits(p, "the summary", func(text string) bool {
				return summary.MatchString(text) && strings.Contains(text, "Stopped the proxy; stopping its servers.\n")
			})
			if n := strings.Count(page, "keys/s"); n != 1 || !strings.HasPrefix(page, "seqproxy: keys while servers are killed ") {
				t.Errorf("at the end there are %d pages, want the last one from the top on:\n%s", n, page)
			}
			after, err := unix.IoctlGetTermios(int(theirs.Fd()), unix.TCGETS)
			if err != nil || *after != *settings {
				t.Errorf("the terminal's settings: got %+v, %v, want those of before, %+v", after, err, settings)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.unknown != "" { // for example a hidden cursor or another screen
				t.Errorf("the terminal was sent %q", w.unknown)
			}
			if got := p.stderr(); got != "" {
				t.Errorf("stderr: got %q", got)
			}
		})
	}
}
