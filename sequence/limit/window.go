package limit

// The arithmetic of groups. A window is what a sequence may give without asking a second machine.
const (
	leastWindow  = 1 << 16 // of a sequence that is used little
	windowWidths = 64      // how many reservations fit in one window, at least
	// a window is at most this part of what is left of the sequence: a fail-over skips the rest of
	// it
	windowShare   = 256
	windowsInHand = 2 // the next window is opened when less than this part of one is left
)

// windowSize is how many numbers the window of a sequence holds that reserves width numbers at a
// time and has left before its end.
func windowSize(width, left uint64) uint64 {
	size := uint64(leastWindow)
	if width > size/windowWidths {
		size = left
		if width < left/windowWidths {
			size = width * windowWidths
		}
	}
	return min(max(min(size, left/windowShare), width), left)
}

// WindowEnd is the last number of the window that begins behind position.
func WindowEnd(position, width, highest uint64) uint64 {
	left := highest - min(position, highest)
	return min(position, highest) + windowSize(width, left)
}

// WindowLow reports whether it is time for the next window.
func WindowLow(position, width, ceiling, highest uint64) bool {
	if ceiling >= highest {
		return false // it goes no further
	}
	return ceiling-min(position, ceiling) < windowSize(width, highest-min(position, highest))/windowsInHand
}

// Confirmations is on how many of n nodes a window must have been seen before its numbers are
// given, the primary included.
func Confirmations(n int) int { return n/2 + 1 }

// takeovers is on how many of n nodes a takeover must have been seen before the new holder gives
// numbers, itself included. Any two of these sets meet, so a later holder knows of each one before
// it; and each meets all that a window was seen on, so no window of the old holder is opened after
// it or missed. Of two nodes the new holder is enough where the other one was the holder: it can
// open no window without the new one, and cannot become the holder again without having seen this
// takeover.
func takeovers(n int, afterTheOther bool) int {
	if n == 2 && afterTheOther {
		return 1
	}
	return n/2 + 1
}
