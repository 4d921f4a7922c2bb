package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, at least 0, written as "16MiB".
type Size int64

// The units of a Size.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

// sizeUnits are tried in this order: all names end in "B".
var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", Byte}}

// String returns the form in the file, in the largest unit without a fraction.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s >= unit.size && s%unit.size == 0 {
			return strconv.FormatInt(int64(s/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText returns the form in the file.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a whole number and a unit without a space. There is no "MB": to some people
// it means 10^6 and to others 2^20.
func (s *Size) UnmarshalText(text []byte) error {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(string(text), unit.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/unit.size) {
			break
		}
		*s = Size(n) * unit.size
		return nil
	}
	return fmt.Errorf(`must be a size such as "16MiB" (units B, KiB, MiB, GiB), is %q`, text)
}
