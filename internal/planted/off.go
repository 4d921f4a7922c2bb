//go:build !seqproxy_faults

package planted

import "time"

// Fault reports whether a check is removed. Without the build tag it never is.
func Fault(Name) bool { return false }

// Now is the time of day.
func Now() time.Time { return time.Now() }
