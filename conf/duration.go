package conf

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a length of time, never negative, written "15m" or "1h30m".
type Duration time.Duration

// D is the duration as the standard library has it.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String is the form that the file has, without what is zero: "15m", not "15m0s".
func (d Duration) String() string {
	text := time.Duration(d).String()
	if cut, ok := strings.CutSuffix(text, "m0s"); ok {
		text = cut + "m"
	}
	if cut, ok := strings.CutSuffix(text, "h0m"); ok {
		text = cut + "h"
	}
	return text
}

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
