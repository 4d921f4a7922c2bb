package conf

import (
	"fmt"
	"time"
)

// Duration is a length of time, never negative, written "15m" or "1h30m".
type Duration time.Duration

// D is the duration as the standard library has it.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String is the form that the file has.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText is the form that the file has.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a number with a unit, or several: "15m", "1h30m", "250ms".
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf(`must be a duration such as "15m", "30s" or "250ms", is %q`, text)
	}
	*d = Duration(parsed)
	return nil
}
