package segment

// aheadShare is of what is left of a sequence: a ceiling is at most this part of it ahead.
const aheadShare = 256

// CeilingAbove is how far a member may go that has reached a position of a sequence that ends at
// highest, before a witness records more.
func CeilingAbove(position, highest, ahead uint64) uint64 {
	left := highest - min(position, highest)
	return min(position, highest) + min(ahead, left/aheadShare)
}
