package conf

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// redacted stands for a secret wherever one is printed.
const redacted = "[redacted]"

// Secret is a password that no log, error or dump shows: every way to print it
// gives "[redacted]". Reveal gives the password.
type Secret struct {
	value string
	set   bool // written in the file, perhaps as ""
}

// NewSecret makes a Secret of a password that was got elsewhere.
func NewSecret(password string) Secret { return Secret{value: password, set: true} }

// Reveal is the password itself, for logging in and for checking logins.
func (s Secret) Reveal() string { return s.value }

// IsEmpty tells whether the password is the empty one.
func (s Secret) IsEmpty() bool { return s.value == "" }

// String does not tell.
func (s Secret) String() string { return redacted }

// GoString does not tell.
func (s Secret) GoString() string { return redacted }

// Format does not tell, whatever the verb: %d and %x would look into the fields.
func (s Secret) Format(f fmt.State, _ rune) {
	io.WriteString(f, redacted) //nolint:errcheck // fmt keeps no errors of its own either
}

// LogValue does not tell.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText does not tell; JSON, TOML and zap's reflection use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalTOML takes a string only: 007 or 1.50 without quotes would come out as
// another password.
func (s *Secret) UnmarshalTOML(value any) error {
	text, ok := value.(string)
	if !ok {
		return errors.New("must be a string in quotes")
	}
	return s.UnmarshalText([]byte(text))
}

// UnmarshalText takes the password as it is.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}
