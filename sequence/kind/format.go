package kind

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without zones, as small containers are
)

// Format is FORMAT '...': a text with parts of a date and the counter. All parts but the counter
// have a fixed width, so every key can be read back, and no two counters have one key, whatever the
// date. It is immutable, and safe for concurrent use.
type Format struct {
	text  string
	parts []part
	at    int // the counter's place in parts
	width int // digits that the counter is padded to; 0: no padding
	fixed int // characters without the counter
	widen bool
	zone  *time.Location
	named string // the zone, "" for UTC
	reset Reset

	number bool // keys are numbers: digits only, and always as many
}

// part is one part of a format: a literal, a part of the date, or the counter.
type part struct {
	literal string
	date    *datePart
	counter bool
}

// FormatOptions follow a format.
type FormatOptions struct {
	TimeZone string // of the date, by its IANA name; "" is UTC
	Widen    bool   // a counter with more digits than its width makes the key longer
	Reset    Reset  // when the counter starts again
}

// datePart is a part of a date.
type datePart struct {
	name, layout string // here, and in time.Format
	width        int    // characters
}

var dateParts = [...]datePart{
	{"yyyy", "2006", 4}, {"yy", "06", 2}, {"MM", "01", 2}, {"dd", "02", 2}, {"HH", "15", 2}, {"mm", "04", 2}, {"ss", "05", 2},
}

// Bounds of a format.
const (
	maxFormat   = 64 // characters
	maxZone     = 32 // of its name; the longest there is has 32
	maxLength   = 64 // characters of a key
	maxWidth    = 19 // digits of a counter, or of a key that is a number: a BIGINT UNSIGNED holds them all
	growsTo     = 20 // digits of the greatest uint64
	digits      = "0123456789"
	dateAllowed = "yyyy, yy, MM, dd, HH, mm and ss"
)

// ParseFormat reads a format such as PO-{yyyyMMdd}-{n:6}. {n} alone grows; {{ and }} are braces.
// Errors name the part, and what is allowed.
func ParseFormat(text string, o FormatOptions) (*Format, error) {
	f := &Format{text: text, at: -1, widen: o.Widen, named: o.TimeZone, reset: o.Reset}
	if len(text) > maxFormat || strings.ContainsFunc(text, notWritable) {
		return nil, fmt.Errorf("FORMAT %.40q: want at most %d characters, which are printable ASCII without ' and \\", text, maxFormat)
	}
	if strings.TrimSpace(text) != text {
		return nil, fmt.Errorf("FORMAT '%s': want no blank at an end, which a column of type CHAR cuts off", text)
	}
	err := f.read(text)
	switch {
	case err != nil:
	case f.at < 0:
		err = fmt.Errorf("it has no counter: want {n:6} or {n} in it")
	case f.widen && f.width == 0:
		err = fmt.Errorf("{n} grows without WIDEN: leave that out, or give a width as in {n:6}")
	case f.Length() > maxLength:
		err = fmt.Errorf("its keys have up to %d characters: want at most %d", f.Length(), maxLength)
	default:
		err = f.checkReset()
	}
	if err != nil {
		return nil, fmt.Errorf("FORMAT '%s': %w", text, err)
	}
	if strings.EqualFold(o.TimeZone, "local") || len(o.TimeZone) > maxZone {
		return nil, fmt.Errorf("TIME ZONE '%s': want one of the IANA data base, as 'Asia/Shanghai', for all proxies the same", o.TimeZone)
	}
	if f.zone, err = time.LoadLocation(o.TimeZone); err != nil {
		return nil, fmt.Errorf("TIME ZONE '%s': want one of the IANA data base, as 'Asia/Shanghai': %w", o.TimeZone, err)
	}
	f.number = f.hasDigitsAlone() && f.width > 0 && !f.widen && f.Length() <= maxWidth
	return f, nil
}

// notWritable reports whether a character differs between character sets of clients, or must be
// escaped in a literal.
func notWritable(r rune) bool { return r < ' ' || r > '~' || r == '\'' || r == '\\' }

// read splits a text into parts.
func (f *Format) read(text string) error {
	for text != "" {
		next := strings.IndexAny(text, "{}")
		switch {
		case next < 0:
			f.literal(text)
			return nil
		case next > 0:
			f.literal(text[:next])
			text = text[next:]
		case strings.HasPrefix(text, "{{"), strings.HasPrefix(text, "}}"):
			f.literal(text[:1])
			text = text[2:]
		case text[0] == '}':
			return fmt.Errorf("a } closes nothing: a brace is written }}")
		default:
			field, rest, closed := strings.Cut(text[1:], "}")
			if !closed {
				return fmt.Errorf("{%s is not closed: want }, and {{ for a brace", field)
			}
			if err := f.field(field); err != nil {
				return err
			}
			text = rest
		}
	}
	return nil
}

func (f *Format) literal(text string) {
	f.fixed += len(text)
	if n := len(f.parts); n > 0 && f.parts[n-1].literal != "" {
		f.parts[n-1].literal += text
		return
	}
	f.parts = append(f.parts, part{literal: text})
}

// field reads the text between two braces.
func (f *Format) field(text string) error {
	if name, width, sized := strings.Cut(text, ":"); name == "n" {
		if f.at >= 0 {
			return fmt.Errorf("{%s} is a second counter: want one", text)
		}
		if sized {
			n, err := strconv.ParseUint(width, 10, 8)
			if err != nil || n < 1 || n > maxWidth {
				return fmt.Errorf("{%s}: the width is '%s', want 1 to %d", text, width, maxWidth)
			}
			f.width = int(n)
		}
		f.at = len(f.parts)
		f.parts = append(f.parts, part{counter: true})
		return nil
	}
	if text == "" {
		return fmt.Errorf("{} is empty: want {n:6}, or %s of the date", dateAllowed)
	}
next:
	for rest := text; rest != ""; {
		for i := range dateParts {
			d := &dateParts[i]
			if strings.HasPrefix(rest, d.name) {
				if slices.Contains(f.parts, part{date: d}) {
					return fmt.Errorf("{%s}: %s stands there twice", text, d.name)
				}
				f.parts = append(f.parts, part{date: d})
				f.fixed += d.width
				rest = rest[len(d.name):]
				continue next
			}
		}
		return fmt.Errorf("{%s}: '%s' is no part of a date: want {n:6}, or %s", text, rest, dateAllowed)
	}
	return nil
}

// String is the format as it was written.
func (f *Format) String() string { return f.text }

// MaxCounter returns the highest counter that has a key.
func (f *Format) MaxCounter() uint64 {
	if f.width == 0 || f.widen {
		return math.MaxUint64
	}
	return powers[f.width] - 1
}

// Length returns how many characters the longest key has.
func (f *Format) Length() int {
	n := f.width
	if f.width == 0 || f.widen {
		n = growsTo
	}
	return n + f.fixed
}

// length returns how many characters a part has; 0 for the counter.
func (p *part) length() int {
	if p.date != nil {
		return p.date.width
	}
	return len(p.literal)
}

// hasDigitsAlone reports whether keys consist of digits.
func (f *Format) hasDigitsAlone() bool {
	return !slices.ContainsFunc(f.parts, func(p part) bool { return strings.Trim(p.literal, digits) != "" })
}

// behind returns how many characters follow the counter.
func (f *Format) behind() (n int) {
	for _, p := range f.parts[f.at+1:] {
		n += p.length()
	}
	return n
}

// clause returns the clause of CREATE SEQUENCE for f.
func (f *Format) clause() string {
	text := "FORMAT '" + f.text + "'"
	if f.widen {
		text += " WIDEN"
	}
	if f.named != "" {
		text += " TIME ZONE '" + f.named + "'"
	}
	if f.reset != NoReset {
		text += " RESET " + f.reset.String()
	}
	return text
}

// Key returns the key of a counter at a moment. It fails if the counter has too many digits, or the
// year has not four.
func (f *Format) Key(counter uint64, at time.Time) (string, error) {
	if counter == 0 || counter > f.MaxCounter() {
		return "", fmt.Errorf("FORMAT '%s' has keys for the counters 1 to %d, and not for %d", f.text, f.MaxCounter(), counter)
	}
	at = at.In(f.zone)
	if year := at.Year(); year < 0 || year > 9999 {
		return "", fmt.Errorf("FORMAT '%s' has keys for the years 0 to 9999, and not for %d", f.text, year)
	}
	key := make([]byte, 0, maxLength)
	for _, p := range f.parts {
		switch {
		case p.counter:
			digits := strconv.FormatUint(counter, 10)
			for n := len(digits); n < f.width; n++ {
				key = append(key, '0')
			}
			key = append(key, digits...)
		case p.date != nil:
			key = at.AppendFormat(key, p.date.layout)
		default:
			key = append(key, p.literal...)
		}
	}
	return string(key), nil
}

// Counter returns the counter of a key, and the parts of its date joined in the order of the
// format. ok is false for other texts.
func (f *Format) Counter(key string) (counter uint64, date string, ok bool) {
	count := len(key) - f.fixed // of the counter's digits
	switch {
	case count < 1, count > growsTo, count < f.width, f.width > 0 && count > f.width && !f.widen:
		return 0, "", false
	}
	for _, p := range f.parts {
		size := p.length()
		if p.counter {
			size = count
		}
		if size > len(key) {
			return 0, "", false
		}
		text := key[:size]
		key = key[size:]
		switch {
		case p.counter:
			var err error
			if counter, err = strconv.ParseUint(text, 10, 64); err != nil || text[0] == '+' || count > max(f.width, 1) && text[0] == '0' {
				return 0, "", false
			}
		case p.date != nil:
			if strings.Trim(text, digits) != "" {
				return 0, "", false
			}
			date += text
		case text != p.literal:
			return 0, "", false
		}
	}
	return counter, date, counter != 0
}
