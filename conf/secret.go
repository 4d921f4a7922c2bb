package conf

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// redacted is printed in place of a secret.
const redacted = "[redacted]"

// Secret is a password that logs, errors and dumps do not show: every way to print it gives
// "[redacted]". Reveal returns the password.
type Secret struct {
	value string
	set   bool // written in the file, even as ""
}

// NewSecret makes a Secret of a password from elsewhere.
func NewSecret(password string) Secret { return Secret{value: password, set: true} }

// Reveal returns the password, to log in or to check a login.
func (s Secret) Reveal() string { return s.value }

// IsEmpty reports whether the password is "".
func (s Secret) IsEmpty() bool { return s.value == "" }

// String hides the password.
func (s Secret) String() string { return redacted }

// GoString hides the password.
func (s Secret) GoString() string { return redacted }

// Format hides the password for every verb: %d and %x would print the fields.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, redacted) //nolint:errcheck // fmt keeps no errors of its own either
}

// LogValue hides the password.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the password from JSON, TOML and zap's reflection.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalTOML accepts a string only: 007 or 1.50 without quotes would become another password.
func (s *Secret) UnmarshalTOML(value any) error {
	text, ok := value.(string)
	if !ok {
		return errors.New("must be a string in quotes")
	}
	return s.UnmarshalText([]byte(text))
}

// UnmarshalText accepts the password as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
