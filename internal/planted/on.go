//go:build seqproxy_faults

package planted

import "os"

var chosen = Name(os.Getenv(Variable))

// Fault says whether a check is removed in this process.
func Fault(n Name) bool { return n == chosen }
