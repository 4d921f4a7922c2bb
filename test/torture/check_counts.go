package torture

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// process is one process of a proxy.
type process struct{ proxy, life int }

// counts are what a process reports of its numbers.
type counts struct {
	logged uint64 // sum over the lines of its reservations
	end    *ended // nil: the process was killed
}

// ended is the last line of a process that was stopped in order.
type ended struct {
	Reserved uint64 `json:"reserved"`
	Given    uint64 `json:"given"`
	Returned uint64 `json:"given_back"`
	Passed   uint64 `json:"passed_over"`
	Unknown  uint64 `json:"outcome_unknown"`
}

// readCounts reads the counts in a proxy's log. The last line of a killed process may be torn.
func readCounts(path string) (c counts, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var torn error
	for lines.Scan() {
		stopped := strings.Contains(lines.Text(), `"event":"stopped"`)
		if !stopped && !strings.Contains(lines.Text(), `"event":"numbers reserved"`) {
			continue
		}
		if torn != nil {
			return c, torn
		}
		var e struct {
			ended
			Sequence string `json:"sequence"`
		}
		switch err := json.Unmarshal(lines.Bytes(), &e); {
		case err != nil:
			torn = fmt.Errorf("%s: %w", lines.Text(), err)
		case stopped:
			c.end = &e.ended
		case strings.HasPrefix(e.Sequence, snow): // these are ticks, and no keys
		default:
			c.logged += e.Reserved
		}
	}
	return c, lines.Err()
}

// receipts are what clients had of a process: how many keys, how many of these came of no reserved
// number, as those of ticks or UUIDs, and how many they asked for without an answer.
type receipts struct{ numbers, uncounted, unsure uint64 }

// receiptsOf returns the receipts of all processes.
func receiptsOf(ops []op) map[process]receipts {
	got := make(map[process]receipts)
	for i := range ops {
		o := &ops[i]
		if o.proxy < 0 {
			continue
		}
		r := got[process{o.proxy, o.life}]
		if o.first > 0 {
			r.numbers += o.n
			if o.kind.sequence == snow || hasUUIDs(o.kind.sequence) {
				r.uncounted += o.n
			}
		} else {
			r.unsure += o.n
		}
		got[process{o.proxy, o.life}] = r
	}
	return got
}

// wrong returns the counts that do not add up. For a killed process the numbers that no client has
// are unknown.
func (c *counts) wrong(got receipts) (found []string) {
	blame := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if numbers := got.numbers - got.uncounted; numbers > c.logged {
		blame("clients received %d numbers, and it logged reservations of %d", numbers, c.logged)
	}
	e := c.end
	if e == nil {
		return found
	}
	if sum := e.Given + e.Returned + e.Passed + e.Unknown; sum != e.Reserved {
		blame("it reserved %d numbers, and gave %d, gave %d back, passed %d over and does not know of %d: that makes %d", e.Reserved, e.Given, e.Returned, e.Passed, e.Unknown, sum)
	}
	if e.Reserved < c.logged {
		blame("it reserved %d numbers, and logged reservations of %d", e.Reserved, c.logged)
	}
	if e.Given < got.numbers || e.Given > got.numbers+got.unsure {
		blame("it gave %d numbers; clients received %d, and asked for %d without an answer", e.Given, got.numbers, got.unsure)
	}
	return found
}

// sums are what the report says of all processes.
type sums struct {
	processes, killed int
	counted           ended  // of the processes that were stopped in order, together
	rest              uint64 // of the killed processes: numbers that no client has
}

// checkCounts compares the counters of each process with its clients' receipts. All processes have
// to be stopped.
func (w *world) checkCounts(ops []op) (sum sums, wrong []string, err error) {
	got := receiptsOf(ops)
	for _, p := range w.proxies {
		_, lives := p.current()
		for life := 1; life <= lives; life++ {
			c, err := readCounts(filepath.Join(p.dir, logName(p.number, life)))
			if err != nil {
				return sum, nil, fmt.Errorf("proxy %d: %w", p.number, err)
			}
			mine := got[process{p.number, life}]
			for _, found := range c.wrong(mine) {
				wrong = append(wrong, fmt.Sprintf("COUNT: proxy %d, process %d: %s", p.number, life, found))
			}
			sum.add(&c, mine)
		}
	}
	return sum, few(wrong), nil
}

func (s *sums) add(c *counts, got receipts) {
	s.processes++
	if c.end == nil {
		s.killed++
		s.rest += c.logged - min(c.logged, got.numbers)
		return
	}
	s.counted.Reserved += c.end.Reserved
	s.counted.Given += c.end.Given
	s.counted.Returned += c.end.Returned
	s.counted.Passed += c.end.Passed
	s.counted.Unknown += c.end.Unknown
}
