package torture

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// maxEvidence bounds how much is printed of one kind of fault.
const maxEvidence = 5

// sequenceOps are the requests that brought keys of one sequence in one epoch.
type sequenceOps struct {
	name string
	ops  []*op
}

// bySequence sorts the requests that brought keys by sequence, and by day where the counter begins
// again each day. A request during which the sequence began again may belong to either epoch, and
// is left out.
func bySequence(ops []op, epochs []epochChange) []sequenceOps {
	all := make(map[string][]*op)
	for i := range ops {
		o := &ops[i]
		if o.first == 0 {
			continue
		}
		name := o.kind.sequence
		if name == restarted {
			epoch, sure := epochOf(o, epochs)
			if !sure {
				continue
			}
			name = fmt.Sprintf("%s, restarted %d times", name, epoch)
		}
		if beginsDaily(name) {
			name += " of " + o.dated.Format(time.DateOnly)
		}
		all[name] = append(all[name], o)
	}
	var sorted []sequenceOps
	for name, list := range all {
		sorted = append(sorted, sequenceOps{name, list})
	}
	slices.SortFunc(sorted, func(a, b sequenceOps) int { return cmp.Compare(a.name, b.name) })
	return sorted
}

// epochOf returns how often the sequence had begun again before o; not sure if it did so meanwhile.
func epochOf(o *op, epochs []epochChange) (epoch int, sure bool) {
	for _, e := range epochs {
		switch {
		case e.undone || o.over() < e.begin:
		case o.begin > e.end && e.done:
			epoch++
		default:
			return 0, false
		}
	}
	return epoch, true
}

// duplicates finds keys that were received twice.
func duplicates(s sequenceOps) (found []string) {
	slices.SortFunc(s.ops, func(a, b *op) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.text, b.text)) })
	var highest *op
	for _, o := range s.ops {
		if highest != nil && o.first <= highest.last() && o.text == highest.text {
			found = append(found, fmt.Sprintf("DUPLICATE: %d%s of %s\n    %s\n    %s", o.first, inHex(o.text), s.name, highest, o))
		}
		if highest == nil || o.last() >= highest.last() {
			highest = o
		}
	}
	return found
}

func inHex(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" (%x)", text)
}

// disorder finds keys that came after a higher one, among the requests of one group. A request that
// begins after another has ended has to get a higher number, which is all that linearizability asks
// of a counter that may skip numbers.
func disorder(s sequenceOps, what string, group func(*op) (key [3]int, ok bool)) (found []string) {
	groups := make(map[[3]int][]*op)
	for _, o := range s.ops {
		if key, ok := group(o); ok {
			groups[key] = append(groups[key], o)
		}
	}
	for _, ops := range groups {
		slices.SortFunc(ops, func(a, b *op) int { return cmp.Compare(a.over(), b.over()) })
		highest := make([]*op, len(ops)) // of the requests up to i
		for i, o := range ops {
			highest[i] = o
			if i > 0 && highest[i-1].last() > o.last() {
				highest[i] = highest[i-1]
			}
		}
		for _, o := range ops {
			before := sort.Search(len(ops), func(i int) bool { return ops[i].over() >= o.begin })
			if before == 0 {
				continue
			}
			if h := highest[before-1]; h.last() >= o.first {
				found = append(found, fmt.Sprintf("ORDER: %d of %s came %s after %d\n    %s\n    %s", o.first, s.name, what, h.last(), h, o))
			}
		}
	}
	return found
}

// over returns when a request was over for certain. A stopped proxy may carry one out after its
// client has given up.
func (o *op) over() time.Duration {
	if o.err != nil {
		return math.MaxInt64
	}
	return o.end
}

// sameSession, sameProxy and anywhere are groups in which keys rise.
func sameSession(o *op) ([3]int, bool) { return [3]int{o.conn}, true }
func sameProxy(o *op) ([3]int, bool)   { return [3]int{o.proxy, o.life}, o.proxy >= 0 }
func anywhere(*op) ([3]int, bool)      { return [3]int{}, true }

// checkKeys checks all numbers that clients received.
func checkKeys(ops []op, epochs []epochChange) (wrong []string) {
	for _, s := range bySequence(ops, epochs) {
		wrong = append(wrong, few(duplicates(s))...)
		if s.name != random {
			wrong = append(wrong, few(disorder(s, "on the same connection", sameSession))...)
			wrong = append(wrong, few(disorder(s, "from the same proxy", sameProxy))...)
		}
		if s.name == ordered {
			wrong = append(wrong, few(disorder(s, "in time", anywhere))...)
		}
	}
	return wrong
}

// few keeps the first findings and counts the others.
func few(found []string) []string {
	if len(found) <= maxEvidence {
		return found
	}
	return append(found[:maxEvidence:maxEvidence], fmt.Sprintf("... and %d more like that", len(found)-maxEvidence))
}

func (o *op) String() string {
	at := "the sequence server itself"
	if o.proxy >= 0 {
		at = fmt.Sprintf("proxy %d, process %d", o.proxy, o.life)
	}
	text := fmt.Sprintf("%s..%s client %d connection %d, %s: %s", seconds(o.begin), seconds(o.end), o.client, o.conn, at, o.kind.name)
	switch {
	case o.err != nil:
		text += fmt.Sprintf(": %v", o.err)
	case o.n > 1:
		text += fmt.Sprintf(" got %d-%d", o.first, o.last())
	default:
		text += fmt.Sprintf(" got %d", o.first)
	}
	return text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
