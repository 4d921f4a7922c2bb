package protocol

import (
	"fmt"
	"iter"
)

// MaxAttrs bounds the attributes of a login, in bytes: MySQL refuses a login with more
// (https://dev.mysql.com/doc/refman/8.4/en/performance-schema-connection-attribute-tables.html).
const MaxAttrs = 64<<10 - 1

// Attrs are a client's connection attributes (program name, driver, host ...) as they travel:
// length-encoded keys and values, each key before its value, without the total length. The zero
// value has none.
type Attrs []byte

// ParseAttrs checks that b is a list of connection attributes. The result shares b's memory.
func ParseAttrs(b []byte) (Attrs, error) {
	if len(b) > MaxAttrs {
		return nil, fmt.Errorf("connection attributes: %w: %d bytes, at most %d are allowed", ErrMalformed, len(b), MaxAttrs)
	}
	for rest := b; len(rest) > 0; {
		for range 2 {
			_, n, ok := ReadLenEncBytes(rest)
			if !ok {
				return nil, fmt.Errorf("connection attributes: %w at byte %d", ErrMalformed, len(b)-len(rest))
			}
			rest = rest[n:]
		}
	}
	return Attrs(b), nil
}

// With returns the attributes with another one at the end, in new memory. It omits the new one if
// the result would exceed MaxAttrs: a login is worth more than a label.
func (a Attrs) With(key, value string) Attrs {
	b := append(make(Attrs, 0, len(a)+len(key)+len(value)+18), a...)
	b = AppendLenEncBytes(AppendLenEncBytes(b, key), value)
	if len(b) > MaxAttrs {
		return a
	}
	return b
}

// All yields keys and values in order. It stops at a malformed one.
func (a Attrs) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := []byte(a); len(rest) > 0; {
			key, n, ok := ReadLenEncBytes(rest)
			if !ok {
				return
			}
			value, m, ok := ReadLenEncBytes(rest[n:])
			if !ok || !yield(string(key), string(value)) {
				return
			}
			rest = rest[n+m:]
		}
	}
}

// Get returns the value of the first attribute with that key.
func (a Attrs) Get(key string) (string, bool) {
	for k, v := range a.All() {
		if k == key {
			return v, true
		}
	}
	return "", false
}
