//go:build seqproxy_faults

package planted

import (
	"os"
	"strings"
	"time"
)

var (
	chosen = Name(os.Getenv(Variable))
	lead   = os.Getenv(ClockVariable)
)

// Fault reports whether a check is removed in this process.
func Fault(n Name) bool { return n == chosen }

// Now is the time of day, ahead of the machine's by the contents of the file that the environment
// names. The file is replaced as a whole.
func Now() time.Time {
	if lead == "" {
		return time.Now()
	}
	text, err := os.ReadFile(lead)
	if err != nil {
		panic(err) // a test has forgotten it
	}
	ahead, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		panic(err)
	}
	return time.Now().Add(ahead)
}
