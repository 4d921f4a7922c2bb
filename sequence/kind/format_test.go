package kind

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustParse(t testing.TB, text string, o FormatOptions) *Format {
	t.Helper()
	f, err := ParseFormat(text, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKeysOfFormats(t *testing.T) {
	at := time.Date(2026, 11, 25, 20, 30, 5, 0, time.UTC)
	shanghai := FormatOptions{TimeZone: "Asia/Shanghai"}
	for _, c := range []struct {
		format string
		o      FormatOptions
		n      uint64
		want   string
	}{
		{"PO-{yyyyMMdd}-{n:6}", FormatOptions{}, 42, "PO-20261125-000042"},
		{"PO-{yyyyMMdd}-{n:6}", shanghai, 42, "PO-20261126-000042"},
		{"{yy}{MM}/{n}", FormatOptions{}, 7, "2611/7"},
		{"{n:3}", FormatOptions{Widen: true}, 1234, "1234"},
		{"{yyyy}-{MM}-{dd}T{HHmmss}#{n:1}", shanghai, 9, "2026-11-26T043005#9"},
		{"no{{{n:2}}}", FormatOptions{}, 5, "no{05}"},
		{"{n:4}{yyyy}", FormatOptions{}, 1, "00012026"},
		{"{yyyyMM}{n:19}", FormatOptions{}, 9_999_999_999_999_999_999, "2026119999999999999999999"},
		{"{n}", FormatOptions{}, math.MaxUint64, "18446744073709551615"},
	} {
		f := mustParse(t, c.format, c.o)
		got, err := f.Key(c.n, at)
		if err != nil || got != c.want {
			t.Errorf("%s: the key of %d is %q, %v, want %q", c.format, c.n, got, err, c.want)
		}
		if n, _, ok := f.Counter(got); !ok || n != c.n {
			t.Errorf("%s: %q is read as %d, %v", c.format, got, n, ok)
		}
	}
}

// anyFormat draws one with parts in any order.
func anyFormat(t *rapid.T) *Format {
	fields := []string{rapid.SampledFrom([]string{"{n}", "{n:1}", "{n:3}", "{n:6}", "{n:19}"}).Draw(t, "counter")}
	for _, d := range dateParts {
		if rapid.Bool().Draw(t, d.name) {
			fields = append(fields, "{"+d.name+"}")
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "literals") {
		fields = append(fields, rapid.SampledFrom([]string{"-", "PO", "0", "7", "{{", "}}", " "}).Draw(t, "literal"))
	}
	text := strings.TrimSpace(strings.Join(rapid.Permutation(fields).Draw(t, "order"), ""))
	o := FormatOptions{Widen: !strings.Contains(text, "{n}") && rapid.Bool().Draw(t, "widen")}
	f, err := ParseFormat(text, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every key is read back, so no two counters share one, whatever their dates are. Keys are never
// longer than their maximum, and without growth all have one length.
func TestEachKeyOfAFormatIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFormat(t)
		n := rapid.Uint64Range(1, f.MaxCounter()).Draw(t, "counter")
		at := time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "second"), 0)
		key, err := f.Key(n, at)
		if err != nil {
			t.Fatal(err)
		}
		back, _, ok := f.Counter(key)
		if !ok || back != n {
			t.Fatalf("%v: the key %q of %d is read as %d, %v", f, key, n, back, ok)
		}
		length := len(key)
		if length > f.Length() || f.width > 0 && !f.widen && length != f.Length() {
			t.Fatalf("%v: the key %q has %d characters, want %d", f, key, length, f.Length())
		}
	})
}

func TestBadFormatsAreNamed(t *testing.T) {
	for _, c := range []struct {
		format string
		o      FormatOptions
		want   string
	}{
		{"PO-{yyyy}", FormatOptions{}, "no counter"},
		{"{n:6}{n}", FormatOptions{}, "{n} is a second counter"},
		{"{n:0}", FormatOptions{}, "the width is '0', want 1 to 19"},
		{"{n:20}", FormatOptions{}, "the width is '20', want 1 to 19"},
		{"{n:x}", FormatOptions{}, "the width is 'x'"},
		{"{n}", FormatOptions{Widen: true}, "without WIDEN"},
		{"{n:6}{yyyyQQ}", FormatOptions{}, "'QQ' is no part of a date"},
		{"{n:6}{yyyy}{yyyy}", FormatOptions{}, "yyyy stands there twice"},
		{"{n:6}{}", FormatOptions{}, "{} is empty"},
		{"{n:6}{yyyy", FormatOptions{}, "{yyyy is not closed"},
		{"{n:6}}", FormatOptions{}, "} closes nothing"},
		{"{n:6}" + strings.Repeat("x", 59), FormatOptions{}, "65 characters: want at most 64"},
		{"{n:6}" + strings.Repeat("x", 200), FormatOptions{}, "at most 64 characters"},
		{"{n:6}\n", FormatOptions{}, "printable"},
		{"{n:6}号", FormatOptions{}, "printable ASCII"},
		{"{n:6}'", FormatOptions{}, "printable ASCII"},
		{`{n:6}\`, FormatOptions{}, "printable ASCII"},
		{"{n:6} ", FormatOptions{}, "no blank at an end"},
		{"{n:6}", FormatOptions{TimeZone: strings.Repeat("a", 33)}, "TIME ZONE"},
		{"{n:6}", FormatOptions{TimeZone: "Asia/Nowhere"}, "TIME ZONE 'Asia/Nowhere'"},
		{"{n:6}", FormatOptions{TimeZone: "Local"}, "TIME ZONE 'Local'"},
	} {
		if f, err := ParseFormat(c.format, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, %v, want %q", c.format, f, err, c.want)
		}
	}
	f := mustParse(t, "{yyyy}{n:2}", FormatOptions{})
	for n, at := range map[uint64]time.Time{0: {}, 100: time.Unix(0, 0), 1: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if key, err := f.Key(n, at); err == nil {
			t.Errorf("the counter %d in %v has the key %q", n, at, key)
		}
	}
	for _, key := range []string{"", "2026", "202600", "20261", "2026001", "2026+1", "x02601", "202x01"} {
		if n, _, ok := f.Counter(key); ok {
			t.Errorf("%q is read as %d", key, n)
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Add("PO-{yyyyMMdd}-{n:6}", uint64(42), int64(1700000000), true, "PO-20231114-000042")
	f.Add("{n}{{", uint64(1), int64(0), false, "1{")
	f.Fuzz(func(t *testing.T, text string, n uint64, second int64, widen bool, key string) {
		format, err := ParseFormat(text, FormatOptions{Widen: widen})
		if err != nil {
			return
		}
		made, err := format.Key(n, time.Unix(second, 0))
		if err == nil {
			if back, _, ok := format.Counter(made); !ok || back != n {
				t.Fatalf("%q: the key %q of %d is read as %d, %v", text, made, n, back, ok)
			}
		}
		if back, _, ok := format.Counter(key); ok && (back == 0 || back > format.MaxCounter()) {
			t.Fatalf("%q: %q is read as %d", text, key, back)
		}
	})
}

func BenchmarkFormat(b *testing.B) {
	f := mustParse(b, "PO-{yyyyMMdd}-{n:6}", FormatOptions{})
	at := time.Date(2026, 11, 25, 20, 30, 5, 0, time.UTC)
	b.ReportAllocs()
	for n := uint64(0); b.Loop(); n++ {
		if _, err := f.Key(n%999_999+1, at); err != nil {
			b.Fatal(err)
		}
	}
}
