//go:build !seqproxy_faults

package planted

// Fault says whether a check is removed. Without the build tag it never is.
func Fault(Name) bool { return false }
