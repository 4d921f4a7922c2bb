package kind

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// zones have summer time that begins or ends at midnight, half hours, a skipped day, and a date
// line.
var zones = []string{
	"", "Asia/Shanghai", "America/Sao_Paulo", "America/Havana", "America/St_Johns", "Asia/Beirut", "Pacific/Apia", "Pacific/Kiritimati", "Asia/Kolkata", "Europe/Berlin",
}

// instant draws one that is often near the end of a day, a month or a year.
func instant(t *rapid.T, zone *time.Location) time.Time {
	day := time.Date(rapid.IntRange(1970, 2100).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), rapid.IntRange(1, 31).Draw(t, "day"), 0, 0, 0, 0, zone)
	return day.Add(time.Duration(rapid.Int64Range(-int64(3*time.Hour), int64(3*time.Hour)).Draw(t, "from midnight")))
}

// The period is that of the date in the key, whatever the zone does, and no two keys of different
// periods or counters are equal.
func TestThePeriodIsThatOfThePrintedDate(t *testing.T) {
	layouts := map[Reset]string{Daily: "20060102", Monthly: "200601", Yearly: "2006"}
	formats := []string{"PO-{yyyyMMdd}-{n:6}", "{dd}.{MM}.{yyyy}/{n}", "{n:9}{yyyy}x{MM}{dd}", "{MMdd}{n:4}{yyyy}", "{yyyyMMdd}{n:8}"}
	rapid.Check(t, func(t *rapid.T) {
		reset := rapid.SampledFrom([]Reset{Daily, Monthly, Yearly}).Draw(t, "reset")
		o := FormatOptions{Reset: reset, TimeZone: rapid.SampledFrom(zones).Draw(t, "zone")}
		text := rapid.SampledFrom(formats).Draw(t, "format")
		o.Widen = !strings.Contains(text, "{n}") && rapid.Bool().Draw(t, "widen")
		k, err := NewFormatted(text, o)
		if err != nil {
			t.Fatal(err)
		}
		type given struct {
			key    string
			n      uint64
			period Period
		}
		var all [2]given
		for i := range all {
			at := instant(t, k.format.zone)
			n := rapid.Uint64Range(1, min(k.MaxCounter(), 99_999)).Draw(t, "counter")
			key, err := k.Text(n, at)
			if err != nil {
				t.Fatal(err)
			}
			p, ok := k.Period(at)
			if want := at.In(k.format.zone).Format(layouts[reset]); !ok || k.PeriodName(p) != want || len(want) != k.format.reset.digits() {
				t.Fatalf("the period of %v is %s, want %s", at, k.PeriodName(p), want)
			}
			if !k.IsText() {
				key = strings.TrimLeft(key, "0")
			}
			if of, ok := k.PeriodOf(key); !ok || of != p {
				t.Fatalf("the key %s of %s is of period %v, %v", key, k.PeriodName(p), of, ok)
			}
			all[i] = given{key, n, p}
		}
		if (all[0].key == all[1].key) && (all[0].n != all[1].n || all[0].period != all[1].period) {
			t.Fatalf("one key for two: %+v", all)
		}
	})
}

// Periods follow each other without a gap, and a step of an hour never passes over one that is as
// long as a day.
func TestPeriodsFollowEachOther(t *testing.T) {
	for _, zone := range zones {
		k, err := NewFormatted("{yyyyMMdd}-{n}", FormatOptions{Reset: Daily, TimeZone: zone})
		if err != nil {
			t.Fatal(err)
		}
		at := time.Date(2009, 1, 1, 12, 0, 0, 0, k.format.zone)
		last, _ := k.Period(at)
		changes := 0
		for end := at.AddDate(4, 0, 0); at.Before(end); at = at.Add(time.Minute) {
			p, ok := k.Period(at)
			if !ok || p < last && zone != "America/St_Johns" { // there the clock went back at one minute past midnight
				t.Fatalf("%s: behind %d comes %d at %v", zone, last, p, at)
			}
			if p != last {
				changes++
			}
			last = p
		}
		want := 4*365 + 1
		switch zone {
		case "Pacific/Apia":
			want-- // the 30th of December 2011 did not exist there
		case "America/St_Johns":
			want += 2 * 2 // in November 2009 and 2010 a day began twice
		}
		if changes != want {
			t.Errorf("%s: %d days have begun in four years, want %d", zone, changes, want)
		}
	}
}

func TestBadResetsAreNamed(t *testing.T) {
	for clause, want := range map[string]string{
		"FORMAT '{yyyyMM}{n:6}' RESET DAILY":                 "RESET DAILY begins the counter again, so the date has to tell keys apart: the format lacks dd",
		"FORMAT 'x{n:6}' RESET DAILY":                        "the format lacks yyyy and MM and dd",
		"FORMAT '{yyyydd}{n:6}' RESET MONTHLY":               "the format lacks MM",
		"FORMAT '{yyMMdd}{n:6}' RESET DAILY":                 "the format lacks yyyy (yy comes again after 100 years)",
		"FORMAT '{MMdd}{n:6}' RESET YEARLY":                  "the format lacks yyyy",
		"FORMAT '{yyyy}{n:6}' RESET HOURLY":                  "RESET HOURLY: want RESET DAILY, MONTHLY or YEARLY",
		"FORMAT '{yyyy}{n:6}' RESET":                         "is no kind of key",
		"FORMAT '{yyyy}{n:6}' RESET YEARLY RESET YEARLY":     "is no kind of key",
		"FORMAT '{yyyy}{n:6}' RESET YEARLY TIME ZONE ''":     "is no kind of key",
		"FORMAT '{yyyy}{n:6}' TIME ZONE 'UTC' WIDEN WIDEN":   "is no kind of key",
		"FORMAT '{yyyy}{n:6}' TIME ZONE 'UTC' TIME ZONE 'x'": "is no kind of key",
		"RESET DAILY": "is no kind of key",
	} {
		if k, err := Parse(clause); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", clause, k, err, want)
		}
	}
	k := parsed(t, "FORMAT '{yyyyMMdd}{n:2}' RESET DAILY")
	for _, at := range []time.Time{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if p, ok := k.Period(at); ok {
			t.Errorf("%v is in period %d", at, p)
		}
	}
	for _, key := range []string{"", "x", "2026112700", "202611270100"} {
		if p, ok := k.PeriodOf(key); ok {
			t.Errorf("%q is of period %d", key, p)
		}
	}
	if p, ok := parsed(t, "FORMAT '{yyyyMM}-{n:2}' RESET MONTHLY").PeriodOf("202611-07"); !ok || p != 202611 {
		t.Errorf("the period is %d, %v", p, ok)
	}
}
