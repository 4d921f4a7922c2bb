package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// screen shows the progress.
type screen struct {
	out    io.Writer
	size   func() (columns, lines int) // nil if out is no terminal
	begun  time.Time
	cached func() uint64
	load   *load
	killer *killer

	last struct { // at the last update
		at         time.Time
		keys, rows uint64
	}
	rate, rowRate smooth // per second
}

// smooth is a rate that changes slowly, so that people can read it.
type smooth struct {
	value float64
	begun bool
}

func (s *smooth) add(x float64) {
	if s.begun {
		x = s.value + (x-s.value)/3
	}
	s.value, s.begun = x, true
}

// run updates the screen until ctx is done.
func (s *screen) run(ctx context.Context) {
	every := linesEvery
	if s.size != nil {
		every = screenEvery
		s.write("\x1b[2J") // clear the screen
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	s.last.at = s.begun
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			v := s.look(now)
			if s.size == nil {
				s.write(v.line())
				continue
			}
			columns, lines := s.size()
			s.write(redraw(v.page(s.killer.servers), columns, lines))
		}
	}
}

// redraw writes a page over the one before. It leaves out what does not fit into the window: a
// wrapped line, or a page that scrolls, would leave parts of the old page on the screen.
func redraw(page string, columns, lines int) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	n := 0
	for line := range strings.Lines(page) {
		if n++; lines > 0 && n >= lines { // the cursor is in the last line
			break
		}
		line = strings.TrimSuffix(line, "\n")
		if r := []rune(line); columns > 0 && len(r) > columns {
			line = string(r[:columns])
		}
		// Clear first: after a full line the cursor is still on its last character.
		b.WriteString("\x1b[K" + line + "\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// write ignores errors: a closed output does not end the demo.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }

// view is the state at one moment.
type view struct {
	since                time.Duration // since the start
	now                  time.Time
	rate, rowRate        float64
	keys, twice, rows    uint64
	keyErrors, rowErrors uint64
	whileDown            uint64 // rows that failed
	cached               uint64
	slowest, slowestEver time.Duration
	failure              error
	servers              []serverState
}

func (s *screen) look(now time.Time) view {
	v := view{now: now, since: now.Sub(s.begun), rows: s.load.rows.Load(), cached: s.cached(), servers: s.killer.look()}
	v.keys, v.twice = s.load.keys.counts()
	v.keyErrors, v.rowErrors, v.whileDown = s.load.failed.keys.Load(), s.load.failed.rows.Load(), s.load.failed.whileDown.Load()
	v.slowest, v.slowestEver, v.failure = s.load.look()
	if took := now.Sub(s.last.at).Seconds(); took > 0 {
		s.rate.add(float64(v.keys-s.last.keys) / took)
		s.rowRate.add(float64(v.rows-s.last.rows) / took)
	}
	v.rate, v.rowRate = s.rate.value, s.rowRate.value
	s.last.at, s.last.keys, s.last.rows = now, v.keys, v.rows
	return v
}

// cacheLasts says how long the numbers in memory last at the present rate.
func (v *view) cacheLasts() string {
	if v.rate < 1 {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(v.cached)/v.rate)
}

// page returns the whole screen.
func (v *view) page(servers []Server) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seqproxy: keys while servers are killed       %s       Ctrl-C ends it\n\n", v.since.Round(time.Second))
	fmt.Fprintf(&b, "  keys/s        %12.0f     keys      %12d     slowest %s (ever %s)\n", v.rate, v.keys, milliseconds(v.slowest), milliseconds(v.slowestEver))
	fmt.Fprintf(&b, "  duplicates    %12d\n", v.twice)
	fmt.Fprintf(&b, "  errors        %12d\n", v.keyErrors+v.rowErrors)
	fmt.Fprintf(&b, "  seconds left  %12s     numbers   %12d     in the proxy's memory, should no server come back\n", v.cacheLasts(), v.cached)
	fmt.Fprintf(&b, "  rows/s        %12.0f     rows      %12d     %d failed while a server was down\n\n", v.rowRate, v.rows, v.whileDown)
	for i, s := range servers {
		state := &v.servers[i]
		word := "up"
		if !state.since.IsZero() {
			word = fmt.Sprintf("KILLED %s ago", v.now.Sub(state.since).Round(time.Second))
		}
		fmt.Fprintf(&b, "  %-21s %-15s killed %2d times   %s\n", s.Addr(), word, state.kills, s.Holds)
	}
	if v.failure != nil {
		fmt.Fprintf(&b, "\n  last error: %.200s\n", v.failure)
	}
	return b.String()
}

// line returns the same as one line, without a terminal.
func (v *view) line() string {
	down := ""
	for _, s := range v.servers {
		if !s.since.IsZero() {
			down = ", a server is down"
		}
	}
	return fmt.Sprintf("%4.0fs  %.0f keys/s  %d keys  %d duplicates  %d errors  %s seconds left  %d rows (%d failed while a server was down)%s\n",
		v.since.Seconds(), v.rate, v.keys, v.twice, v.keyErrors+v.rowErrors, v.cacheLasts(), v.rows, v.whileDown, down)
}

// summary writes the result.
func (s *screen) summary() {
	v := s.look(time.Now())
	kills := 0
	for _, state := range v.servers {
		kills += state.kills
	}
	s.write(fmt.Sprintf("\n%d keys in %s, %d duplicates, %d errors; %d rows, %d more failed while a server was down; servers killed: %d\n",
		v.keys, v.since.Round(time.Second), v.twice, v.keyErrors+v.rowErrors, v.rows, v.whileDown, kills))
	if v.failure != nil {
		s.write(fmt.Sprintf("The last error: %.200s\n", v.failure))
	}
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
