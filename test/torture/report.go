package torture

import (
	"cmp"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Report is what a run has seen.
type Report struct {
	Seed   uint64
	Time   time.Duration
	Server string
	Estate string   // the sequence servers
	Remark string   // how the run differs from what was asked for; ""
	Caches []string // of the proxies, "50/2s": [sequence] cache and outage_cover
	Wrong  []string // all violations, each with its evidence

	asked    time.Duration  // for how long clients asked for keys, before the calm
	made     map[string]int // faults by name
	possible []string       // the faults that there is time for
	keys     map[string]uint64
	requests map[string]int
	days     int            // days in which keys came whose counter begins again
	failures map[string]int // by the text of the error
	longest  time.Duration
	sums     sums
}

func (r *Report) wrong(found ...string) { r.Wrong = append(r.Wrong, found...) }

// notHealed begins what is said of something that did not work in time.
const notHealed = "NOT HEALED"

// late are findings that may also come from a machine too busy for all these processes: something
// took longer than it should.
var late = []string{"ERROR without a cause", "CONNECTION LOST without a cause", "HANG", notHealed}

// OnlyLate reports whether all findings are that something took too long. Such a run may be
// repeated; a key that came twice, a wrong order or answer, counters that do not add up and a leak
// are never a matter of time.
func (r *Report) OnlyLate() bool {
	return !slices.ContainsFunc(r.Wrong, func(found string) bool {
		return !slices.ContainsFunc(late, func(kind string) bool { return strings.HasPrefix(found, kind) })
	})
}

// Faults returns how many were made.
func (r *Report) Faults() (sum int) {
	for _, n := range r.made {
		sum += n
	}
	return sum
}

// Keys returns how many were received.
func (r *Report) Keys() (sum uint64) {
	for _, n := range r.keys {
		sum += n
	}
	return sum
}

// Requests returns how many brought keys, by the name of each way to ask for them.
func (r *Report) Requests() map[string]int { return r.requests }

func (r *Report) count(ops []op) {
	r.keys, r.requests, r.failures = make(map[string]uint64), make(map[string]int), make(map[string]int)
	days := make(map[time.Time]bool)
	for i := range ops {
		o := &ops[i]
		if o.first != 0 && beginsDaily(o.kind.sequence) {
			days[o.dated] = true
		}
		if o.first != 0 {
			r.keys[o.kind.name] += o.n
			r.requests[o.kind.name]++
		} else {
			r.requests[o.kind.name] += 0
		}
		if o.err != nil {
			r.failures[inShort(o.err)]++
		}
		r.longest = max(r.longest, o.end-o.begin)
	}
	r.days = len(days)
}

// inShort returns the kind of an error.
func inShort(err error) string {
	var said *mysql.MySQLError
	switch {
	case errors.As(err, &said):
		return fmt.Sprintf("error %d", said.Number)
	case strings.Contains(err.Error(), "connection refused"):
		return "connection refused"
	case lost(err) || errors.Is(err, driver.ErrBadConn) || strings.HasPrefix(err.Error(), "connect:"):
		return "connection lost"
	}
	return err.Error()
}

// Write prints one screen: what was done, what was seen, and what is wrong.
func (r *Report) Write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d, %v of faults, %s, %s, proxies with cache/cover %s\n", r.Seed, r.Time, r.Estate, r.Server, strings.Join(r.Caches, " "))
	if r.Remark != "" {
		fmt.Fprintf(&text, "%s\n", r.Remark)
	}
	fmt.Fprintln(&text)
	perMinute := float64(r.Keys()) / max(r.asked.Minutes(), 1e-9)
	fmt.Fprintf(&text, "%d keys received, %.0f a minute, in %d short days; the longest request took %v\n", r.Keys(), perMinute, r.days, r.longest.Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(r.requests)) {
		fmt.Fprintf(&text, "%9d  %s\n", r.keys[name], name)
	}
	fmt.Fprintf(&text, "\n%d faults\n%s", r.Faults(), inColumns(r.made))
	fmt.Fprintf(&text, "\nwhat clients were told instead of a key\n%s", inColumns(r.failures))
	s := &r.sums
	fmt.Fprintf(&text, "\n%d processes of proxies, %d killed; the others reserved %d numbers: %d given, %d given back, %d passed over, %d of unknown outcome; of the killed ones' nobody has %d\n",
		s.processes, s.killed, s.counted.Reserved, s.counted.Given, s.counted.Returned, s.counted.Passed, s.counted.Unknown, s.rest)
	if len(r.Wrong) == 0 {
		fmt.Fprintf(&text, "\nno key twice, order kept, all counters add up, every failure clean, everything healed, nothing leaked\n")
	} else {
		fmt.Fprintf(&text, "\nWRONG (seed %d):\n", r.Seed)
		for _, w := range r.Wrong {
			fmt.Fprintf(&text, "  %s\n", w)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// inColumns prints counts, the greatest first.
func inColumns(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "%9d  %s\n", counts[name], name)
	}
	return text.String()
}
