package cache

import (
	"math"

	"seqproxy/sequence/segment"
)

// counter is what is known of the row that numbers are reserved from. Its owner synchronises.
type counter struct {
	rule  segment.Rule // which numbers follow top
	top   uint64       // the highest number reserved, or where the row was found
	max   uint64       // the highest number that the sequence may give
	cycle bool         // they begin again there
	past  uint64       // numbers up to this one were given up
	// no server gives a number up to this one any more, but to who has it in memory: this proxy has
	// reserved up to it, or moved the counter there
	spent uint64
}

// next is the number that follows the highest one; false at the end.
func (c *counter) next() (n uint64, ok bool) { return c.rule.Next(c.top, c.max) }

// increment is the distance between the numbers.
func (c *counter) increment() uint64 { return max(c.rule.Step, 1) }

// left is how many numbers remain to the maximum.
func (c *counter) left() uint64 {
	if c.max == 0 {
		return math.MaxUint64
	}
	return (c.max - min(c.top, c.max)) / c.increment()
}

// rise is how fast numbers rise of which so many are taken in a second.
func (c *counter) rise(taken float64) float64 { return taken * float64(c.increment()) }

// room is the distance to leave above n, for so many numbers: near the end less.
func (c *counter) room(n, numbers uint64) uint64 {
	step := c.increment()
	return min(numbers, (c.max-min(n, c.max))/segment.CeilingShare/step) * step
}

// moved takes note that the row stands at a number, or stood there and is further now.
func (c *counter) moved(at uint64) { c.top, c.spent = max(c.top, at), max(c.spent, at) }

// pass takes note that numbers up to n are given up, and reports whether that is news.
func (c *counter) pass(n uint64) bool {
	news := n > c.past
	c.past = max(c.past, n)
	return news
}
