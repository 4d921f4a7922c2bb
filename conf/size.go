package conf

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes, never negative, written "16MiB".
type Size int64

// The units that a Size is written in.
const (
	Byte Size = 1
	KiB       = 1024 * Byte
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
)

// sizeUnits are in the order in which they are tried: "B" ends every name.
var sizeUnits = []struct {
	name string
	size Size
}{{"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", Byte}}

// String is the form that the file has, in the largest unit without a fraction.
func (s Size) String() string {
	for _, unit := range sizeUnits {
		if s >= unit.size && s%unit.size == 0 {
			return strconv.FormatInt(int64(s/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText is the form that the file has.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses a whole number and a unit without a space between them.
// There is no "MB": half the world reads it as 10^6 and half as 2^20.
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
