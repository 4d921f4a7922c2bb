package kind

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Reset says when the counter of a format starts again: never, or with each day, month or year.
type Reset uint8

// The resets.
const (
	NoReset Reset = iota
	Daily
	Monthly
	Yearly
)

// resets are, by Reset: the word after RESET, and how many of yyyy, MM and dd the format needs.
var resets = [...]struct {
	word  string
	parts int
}{{"", 0}, {"DAILY", 3}, {"MONTHLY", 2}, {"YEARLY", 1}}

// periodParts are the parts of a date that a period is made of.
var periodParts = [...]string{"yyyy", "MM", "dd"}

// ParseReset reads the word after RESET.
func ParseReset(word string) (Reset, error) {
	for i := Daily; i <= Yearly; i++ {
		if strings.EqualFold(word, resets[i].word) {
			return i, nil
		}
	}
	return NoReset, fmt.Errorf("RESET %.40s: want RESET DAILY, MONTHLY or YEARLY", word)
}

// String returns the word after RESET.
func (r Reset) String() string { return resets[r].word }

// digits returns how many digits the name of a period has.
func (r Reset) digits() int {
	if r == NoReset {
		return 0
	}
	return 2 + 2*resets[r].parts
}

// Period is a day, month or year as a number: 20261125, 202611 or 2026.
type Period uint32

// periodOf returns the period of a date.
func (r Reset) periodOf(year, month, day int) Period {
	switch r {
	case Daily:
		return Period(year*10_000 + month*100 + day)
	case Monthly:
		return Period(year*100 + month)
	case Yearly:
		return Period(year)
	}
	return 0
}

// Resets reports whether the counter starts again with each period.
func (k Kind) Resets() bool { return k.name == Formatted && k.format.reset != NoReset }

// Period returns the period of a moment. It uses the same date as the key of that moment, in the
// zone of the format, so the two cannot differ. ok is false if the year has not four digits.
func (k Kind) Period(at time.Time) (p Period, ok bool) {
	year, month, day := at.In(k.format.zone).Date()
	if year < 0 || year > 9999 {
		return 0, false
	}
	return k.format.reset.periodOf(year, int(month), day), true
}

// PeriodName returns a period as 8, 6 or 4 digits.
func (k Kind) PeriodName(p Period) string {
	return fmt.Sprintf("%0*d", k.format.reset.digits(), p)
}

// PeriodOf returns the period in a key, for kinds with Resets.
func (k Kind) PeriodOf(key string) (p Period, ok bool) {
	if !k.IsText() { // a number has lost its leading zeros
		n, err := strconv.ParseUint(key, 10, 64)
		if err != nil {
			return 0, false
		}
		key = fmt.Sprintf("%0*d", k.format.Length(), n)
	}
	if _, _, ok = k.format.Counter(key); !ok {
		return 0, false
	}
	var date [len(periodParts)]int
	at := 0
	for i := range k.format.parts {
		part := &k.format.parts[i]
		size := part.length()
		if part.counter {
			size = len(key) - k.format.fixed
		}
		for j, name := range periodParts {
			if part.date != nil && part.date.name == name {
				date[j], _ = strconv.Atoi(key[at : at+size]) // Counter has checked the digits
			}
		}
		at += size
	}
	return k.format.reset.periodOf(date[0], date[1], date[2]), true
}

// checkReset returns an error if two periods could have one key.
func (f *Format) checkReset() error {
	if f.reset == NoReset {
		return nil
	}
	var missing []string
	for _, name := range periodParts[:resets[f.reset].parts] {
		has := false
		for i := range f.parts {
			has = has || f.parts[i].date != nil && f.parts[i].date.name == name
		}
		if !has {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	why := ""
	for i := range f.parts {
		if f.parts[i].date != nil && f.parts[i].date.name == "yy" && missing[0] == "yyyy" {
			why = " (yy comes again after 100 years)"
		}
	}
	return fmt.Errorf("RESET %v begins the counter again, so the date has to tell keys apart: the format lacks %s%s",
		f.reset, strings.Join(missing, " and "), why)
}
