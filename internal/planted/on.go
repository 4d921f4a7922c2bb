//go:build seqproxy_faults

package planted

import "os"

var chosen = Name(os.Getenv(Variable))

// Fault says whether a check is taken out in this process.
func Fault(n Name) bool { return n == chosen }
