package cache

import (
	"math"

	"seqproxy/sequence/segment"
)

// counter is the row that numbers are reserved from, as far as it is known. Its owner synchronises.
type counter struct {
	rule  segment.Rule // the rule for the numbers after top
	top   uint64       // the highest number reserved, or where the row was found
	max   uint64       // the highest number that the sequence may give
	cycle bool         // they then begin again
	past  uint64       // numbers up to this one were discarded
	// spent: no server gives a number up to this one any more, except those in its memory. This
	// proxy has reserved up to it, or moved the counter there.
	spent uint64
}

// next returns the number after the highest one; false at the end.
func (c *counter) next() (n uint64, ok bool) { return c.after(c.top) }

// after returns the first number above n; false if there is none.
func (c *counter) after(n uint64) (next uint64, ok bool) { return c.rule.Next(n, c.max) }

// increment returns the distance between the numbers.
func (c *counter) increment() uint64 { return max(c.rule.Step, 1) }

// remaining returns how many numbers remain to the maximum.
func (c *counter) remaining() uint64 {
	if c.max == 0 {
		return math.MaxUint64
	}
	return (c.max - min(c.top, c.max)) / c.increment()
}

// rise returns how fast numbers rise if so many are taken in a second.
func (c *counter) rise(taken float64) float64 { return taken * float64(c.increment()) }

// room returns the distance to keep above n, for so many numbers: less near the end.
func (c *counter) room(n, numbers uint64) uint64 {
	step := c.increment()
	return min(numbers, (c.max-min(n, c.max))/segment.CeilingShare/step) * step
}

// moved records that the row stands at a number, or stood there and is further now.
func (c *counter) moved(at uint64) { c.top, c.spent = max(c.top, at), max(c.spent, at) }

// pass discards numbers up to n, and reports whether that is news.
func (c *counter) pass(n uint64) bool {
	news := n > c.past
	c.past = max(c.past, n)
	return news
}
