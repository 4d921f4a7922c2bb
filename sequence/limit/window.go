package limit

// The arithmetic of windows. A window is what a sequence may give without asking a second machine.
const (
	leastWindow  = 1 << 16 // of a sequence that is used little
	windowWidths = 64      // the reservations in one window, at least
	// a window is at most this part of the rest of the sequence, since a fail-over skips it
	windowShare   = 256
	windowsInHand = 2 // the next window is opened when less than this part of one is left
)

// windowSize is the size of a window for reservations of width numbers, of a sequence with rest
// numbers.
func windowSize(width, rest uint64) uint64 {
	size := uint64(leastWindow)
	if width > size/windowWidths {
		size = rest
		if width < rest/windowWidths {
			size = width * windowWidths
		}
	}
	return min(max(min(size, rest/windowShare), width), rest)
}

// WindowEnd is the last number of the window that begins after position.
func WindowEnd(position, width, highest uint64) uint64 {
	rest := highest - min(position, highest)
	return min(position, highest) + windowSize(width, rest)
}

// windowEnd is the last number of the window for the next reservation.
func (c *Counter) windowEnd() uint64 {
	if c.Ticks {
		return upwards(c.Position, c.Width, c.Max)
	}
	return WindowEnd(c.Position, c.Width, c.Max)
}

// upwards returns the number that is n above position, or highest.
func upwards(position, n, highest uint64) uint64 {
	position = min(position, highest)
	return position + min(n, highest-position)
}

// WindowLow reports whether it is time for the next window.
func WindowLow(position, width, ceiling, highest uint64) bool {
	if ceiling >= highest {
		return false // it ends here
	}
	return ceiling-min(position, ceiling) < windowSize(width, highest-min(position, highest))/windowsInHand
}

// Confirmations is the number of n nodes that must show a window before its numbers are given, with
// the primary.
func Confirmations(n int) int { return n/2 + 1 }

// takeovers is the number of n nodes that must show a take-over before the new holder gives
// numbers, with itself. Any two of these sets meet, so a later holder sees each one before it. Each
// also meets all nodes that showed a window, so no window of the old holder is missed, or opened
// afterwards. Of two nodes the new holder is enough if the other one was the holder: that one can
// open no window without the new one, and cannot become the holder again without seeing this
// take-over.
func takeovers(n int, afterTheOther bool) int {
	if n == 2 && afterTheOther {
		return 1
	}
	return n/2 + 1
}
