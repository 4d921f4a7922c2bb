package kind

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// formats has all parsed formats by their clauses, so that kinds with one clause are equal. Only
// admins make sequences, so it stays small.
var formats sync.Map

// NewFormatted returns FORMAT 'text' with its options: the counter, padded, between literals and
// parts of the date.
func NewFormatted(text string, o FormatOptions) (Kind, error) {
	f, err := ParseFormat(text, o)
	if err != nil {
		return Kind{}, err
	}
	one, _ := formats.LoadOrStore(f.clause(), f)
	return Kind{name: Formatted, format: one.(*Format)}, nil
}

// TimeLayout shows the time of a key, which is UTC.
const TimeLayout = "2006-01-02 15:04:05.000"

// NewUUID returns UUID VERSION version, in 36 characters, or with binary in 16 bytes.
//
// It takes no numbers of the counter, and needs none for unique keys. A key of version 4 has 122
// random bits. One of version 7 has 62 below the time, and the library gives each a later time than
// the last, whatever the clock does, so keys of one proxy differ and rise. Two proxies give one key
// only if both have the same time to a quarter of a microsecond and draw the same 62 bits.
func NewUUID(version uint64, binary bool) (Kind, error) {
	if version != 4 && version != 7 {
		return Kind{}, fmt.Errorf("UUID VERSION %d: want 7, whose keys rise, or 4", version)
	}
	return Kind{name: UUID, version: uint8(version), binary: binary}, nil
}

// Length returns how many characters, or bytes, a text has at most.
func (k Kind) Length() int {
	switch {
	case k.name == Formatted:
		return k.format.Length()
	case k.binary:
		return 16
	}
	return 36
}

// Text returns the key of a counter at a moment, for kinds whose keys are texts. It fails if the
// format has no such key, or the machine has no random numbers.
func (k Kind) Text(counter uint64, at time.Time) (string, error) {
	if k.name == Formatted {
		return k.format.Key(counter, at)
	}
	next := uuid.NewV7
	if k.version == 4 {
		next = uuid.NewRandom
	}
	id, err := next()
	switch {
	case err != nil:
		return "", fmt.Errorf("make a UUID: %w", err)
	case k.binary:
		return string(id[:]), nil
	}
	return id.String(), nil
}

// Number returns the key of a counter at a moment, for formats whose keys are numbers.
func (k Kind) Number(counter uint64, at time.Time) (uint64, error) {
	text, err := k.format.Key(counter, at)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(text, 10, 64)
}

// Origin returns what a text was made of: the counter and the parts of the date, or the time of a
// UUID of version 7. ok is false for other texts.
func (k Kind) Origin(key string) (counter uint64, date string, ok bool) {
	if k.name == Formatted {
		return k.format.Counter(key)
	}
	id, err := uuid.FromBytes([]byte(key))
	if !k.binary || err != nil { // a binary one may be written in digits, too
		id, err = uuid.Parse(key)
	}
	if k.name != UUID || err != nil || len(key) != 36 && len(key) != 16 || id.Version() != uuid.Version(k.version) || id.Variant() != uuid.RFC4122 {
		return 0, "", false
	}
	if k.version == 7 {
		milli := int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])
		date = time.UnixMilli(milli).UTC().Format(TimeLayout)
	}
	return 0, date, true
}

// Fits returns an error if a column of a type, as information_schema writes it, cannot hold all
// keys unchanged, for kinds whose keys are texts.
func (k Kind) Fits(columnType string) error {
	name, rest, _ := strings.Cut(strings.ToLower(columnType), "(")
	digits, _, _ := strings.Cut(rest, ")")
	size, _ := strconv.Atoi(digits)
	length := k.Length()
	ok, want := false, fmt.Sprintf("CHAR(%d) or VARCHAR(%[1]d)", length)
	if k.binary {
		ok, want = name == "binary" && size == length || name == "varbinary" && size >= length, "BINARY(16)"
	} else {
		ok = (name == "char" || name == "varchar" || name == "varbinary") && size >= length || name == "binary" && size == length && k.fixed()
	}
	if k.name == UUID {
		ok, want = ok || name == "uuid", want+", or MariaDB's UUID"
	}
	if ok {
		return nil
	}
	return fmt.Errorf("this column is of the type %s, which does not hold keys of kind %v as they are: want %s", columnType, k, want)
}

// fixed reports whether all keys have the same length.
func (k Kind) fixed() bool { return k.name == UUID || k.format.width > 0 && !k.format.widen }

// parseFormatted reads FORMAT '...' and its options, in any order.
func parseFormatted(clause string) (Kind, error) {
	parts := strings.Split(strings.TrimSpace(clause), "'")
	wrong := func() (Kind, error) {
		return Kind{}, fmt.Errorf("%q is no kind of key: want FORMAT '...', and behind it WIDEN, TIME ZONE '...' and RESET DAILY | MONTHLY | YEARLY or not", clause)
	}
	if len(parts) != 3 && len(parts) != 5 || strings.ToUpper(strings.TrimSpace(parts[0])) != "FORMAT" {
		return wrong()
	}
	var o FormatOptions
	words := strings.Fields(strings.ToUpper(parts[2]))
	if len(parts) == 5 {
		n := len(words) - 2
		if n < 0 || words[n] != "TIME" || words[n+1] != "ZONE" || parts[3] == "" {
			return wrong()
		}
		o.TimeZone, words = parts[3], append(words[:n], strings.Fields(strings.ToUpper(parts[4]))...)
	}
	for len(words) > 0 {
		switch {
		case words[0] == "WIDEN" && !o.Widen:
			o.Widen, words = true, words[1:]
		case words[0] == "RESET" && len(words) > 1 && o.Reset == NoReset:
			var err error
			if o.Reset, err = ParseReset(words[1]); err != nil {
				return Kind{}, err
			}
			words = words[2:]
		default:
			return wrong()
		}
	}
	return NewFormatted(parts[1], o)
}
