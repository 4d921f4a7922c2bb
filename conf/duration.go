package conf

import (
	"fmt"
	"strings"
	"time"
)

// Duration is a duration of at least 0, written as "15m" or "1h30m".
type Duration time.Duration

// D returns the duration for use with the standard library.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns the form in the file, without parts that are zero: "15m", not "15m0s".
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

// MarshalText returns the form in the file.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses numbers with a unit: "15m", "1h30m", "250ms".
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed < 0 {
		return fmt.Errorf(`must be a duration such as "15m", "30s" or "250ms", is %q`, text)
	}
	*d = Duration(parsed)
	return nil
}
