package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// report is everything that is printed.
type report struct {
	Heading   []string   `json:"heading"` // machine, versions, how it was measured
	Notes     []string   `json:"notes,omitempty"`
	Workloads []workload `json:"-"`
	Results   results    `json:"results"`
}

// column is one column of a table.
type column struct {
	head string
	cell func(r results, w workload, c contender) string
}

// columns returns the columns after the contender's name.
func (w workload) columns() []column {
	hasHAProxy := slices.ContainsFunc(w.contenders, func(c contender) bool { return c.name == haproxy || c.name == literalHAProxy })
	var list []column
	switch w.kind {
	case loadKind:
		list = []column{
			figureColumn("ops/s (min-max)", opsPerSecond, count, true),
			ratioColumn("ops/s vs "+w.base, w.base, opsPerSecond),
			figureColumn("CPU us/op (min-max)", cpuPerOp, decimal, true),
		}
		if hasHAProxy {
			base := haproxy
			if w.base == literalSeqproxy {
				base = literalHAProxy
			}
			list = append(list, ratioColumn("CPU vs haproxy", base, cpuPerOp))
		}
		list = append(list,
			figureColumn("p50 us", p50, count, false),
			figureColumn("p99 us", p99, count, false),
			figureColumn("RSS MB", residentMB, decimal, false))
	case resultKind:
		list = []column{
			figureColumn("MB/s (min-max)", mbPerSecond, count, true),
			ratioColumn("MB/s vs "+w.base, w.base, mbPerSecond),
			figureColumn("CPU ms/MB (min-max)", cpuPerMB, hundredths, true),
		}
		if hasHAProxy {
			list = append(list, ratioColumn("MB/s vs haproxy", haproxy, mbPerSecond), ratioColumn("CPU vs haproxy", haproxy, cpuPerMB))
		}
		list = append(list,
			figureColumn("peak RSS MB", peakMB, decimal, false),
			figureColumn("RSS growth MB (min-max)", growthMB, decimal, true))
	case idleKind:
		list = []column{
			figureColumn("RSS KB/session (min-max)", kbPerSession, decimal, true),
			figureColumn("RSS MB", residentMB, decimal, false),
			figureColumn("files/session", filesPerSession, decimal, false),
			figureColumn("opened/s", openedPerSecond, count, false),
		}
	}
	return list
}

func figureColumn(head string, m metric, format func(float64) string, spread bool) column {
	return column{head, func(r results, w workload, c contender) string {
		s := r.summary(w.name, c.name, m)
		if s.rounds == 0 {
			return "-"
		}
		if !spread {
			return format(s.median)
		}
		return fmt.Sprintf("%s (%s-%s)", format(s.median), format(s.low), format(s.high))
	}}
}

func ratioColumn(head, base string, m metric) column {
	return column{head, func(r results, w workload, c contender) string {
		// Only proxies are compared with HAProxy: the server's own CPU time is no relay's.
		if s := r.ratio(w.name, c.name, base, m); s.rounds > 0 && (c.target != direct || base != haproxy && base != literalHAProxy) {
			return hundredths(s.median)
		}
		return "-"
	}}
}

// writeMarkdown prints the tables of all measured workloads, and the limits.
func (rep report) writeMarkdown(out io.Writer) error {
	var b strings.Builder
	b.WriteString("# seqproxy benchmark\n\n")
	for _, line := range rep.Heading {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	for _, line := range rep.Notes {
		fmt.Fprintf(&b, "- **Note:** %s\n", line)
	}
	for _, w := range rep.Workloads {
		if rep.Results.measured(w.name) {
			rep.writeTable(&b, w)
		}
	}
	rep.writeLimits(&b)
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print the tables: %w", err)
	}
	return nil
}

func (rep report) writeTable(b *strings.Builder, w workload) {
	fmt.Fprintf(b, "\n## %s (`%s`)\n\n", w.title, w.name)
	columns := w.columns()
	b.WriteString("| target |")
	for _, col := range columns {
		fmt.Fprintf(b, " %s |", col.head)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, c := range w.contenders {
		fmt.Fprintf(b, "| %s |", c.name)
		if reason := rep.Results.failed(w.name, c.name); reason != "" {
			fmt.Fprintf(b, " fails: %s |%s\n", oneLine(reason), strings.Repeat(" - |", len(columns)-1))
			continue
		}
		for _, col := range columns {
			fmt.Fprintf(b, " %s |", col.cell(rep.Results, w, c))
		}
		b.WriteByte('\n')
	}
	for _, l := range limitsOf([]workload{w}) {
		s, v := l.judge(rep.Results)
		fmt.Fprintf(b, "\n%s: %s; must %s, aim %s: %s\n", l.figure, figure(s), l.bound(l.must), l.bound(l.aim), v)
	}
}

// writeLimits prints all limits in one table.
func (rep report) writeLimits(b *strings.Builder) {
	list := limitsOf(rep.Workloads)
	if len(list) == 0 {
		return
	}
	b.WriteString("\n## Limits\n\n| workload | figure | seqproxy (min-max) | must | aim | reached | bare Go relay |\n|---|---|---|---|---|---|---|\n")
	for _, l := range list {
		s, v := l.judge(rep.Results)
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", l.workload, l.figure, figure(s), l.bound(l.must), l.bound(l.aim), v, figure(l.of(rep.Results, relay)))
	}
	var failures int
	for _, one := range rep.Results {
		if one.Error != "" {
			failures++
		}
	}
	fmt.Fprintf(b, "| all | measurements given up after an error or a wrong answer, of any target | %d of %d | 0 | 0 | %s | - |\n", failures, len(rep.Results),
		map[bool]verdict{true: aimReached, false: missed}[failures == 0])
}

func (l limit) bound(v float64) string {
	if l.atLeast {
		return ">= " + trimmed(v)
	}
	return "<= " + trimmed(v)
}

func figure(s summary) string {
	if s.rounds == 0 {
		return "-"
	}
	return fmt.Sprintf("%s (%s-%s)", hundredths(s.median), hundredths(s.low), hundredths(s.high))
}

// oneLine makes an error fit into a cell.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.ReplaceAll(s, "|", "\\|")
}

// count formats a figure with four digits.
func count(v float64) string {
	if v >= 10_000 {
		return strconv.FormatFloat(v/1000, 'f', 1, 64) + "k"
	}
	return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
}

func decimal(v float64) string    { return strconv.FormatFloat(v, 'f', 1, 64) }
func hundredths(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
func trimmed(v float64) string    { return strconv.FormatFloat(v, 'g', -1, 64) }

// writeJSON writes the figures of every round to a file.
func (rep report) writeJSON(path string) error {
	text, err := json.MarshalIndent(rep, "", " ")
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
