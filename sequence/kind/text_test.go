package kind

import (
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func parsed(t testing.TB, clause string) Kind {
	t.Helper()
	k, err := Parse(clause)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestATextKindIsReadAsItIsWritten(t *testing.T) {
	for clause, want := range map[string]string{
		"uuid":                    "UUID VERSION 7",
		"UUID version 4 binary":   "UUID VERSION 4 BINARY",
		" uuid  BINARY":           "UUID VERSION 7 BINARY",
		"format 'po-{n:6}'":       "FORMAT 'po-{n:6}'",
		"FORMAT 'A {n:6}' widen ": "FORMAT 'A {n:6}' WIDEN",
		"format '{yyyy}{n:6}' widen  time zone 'Asia/Shanghai'": "FORMAT '{yyyy}{n:6}' WIDEN TIME ZONE 'Asia/Shanghai'",
		"format '{yyyy}{n:6}' reset  yearly widen":              "FORMAT '{yyyy}{n:6}' WIDEN RESET YEARLY",
		"FORMAT '{yyyyMM}{n:6}' TIME ZONE 'UTC' RESET monthly":  "FORMAT '{yyyyMM}{n:6}' TIME ZONE 'UTC' RESET MONTHLY",
	} {
		k := parsed(t, clause)
		if k.String() != want || parsed(t, want) != k {
			t.Errorf("%s is read as %v, want %s", clause, k, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := anyFormat(t)
		o := FormatOptions{Widen: f.widen}
		for _, o.Reset = range rapid.Permutation([]Reset{NoReset, Daily, Monthly, Yearly}).Draw(t, "reset") {
			if _, err := NewFormatted(f.text, o); err == nil {
				break
			}
		}
		k, err := NewFormatted(f.text, FormatOptions{Widen: o.Widen, Reset: o.Reset, TimeZone: rapid.SampledFrom([]string{"", "Asia/Shanghai", "UTC"}).Draw(t, "zone")})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(k.String()); err != nil || again != k || len(k.String()) > MaxClause {
			t.Fatalf("%v is read as %v, %v", k, again, err)
		}
	})
	for clause, want := range map[string]string{
		"UUID VERSION 5":                  "UUID VERSION 5: want 7, whose keys rise, or 4",
		"UUID VERSION x":                  "UUID VERSION 0: want 7",
		"UUID 7":                          "is no kind of key",
		"UUID JSON_SAFE":                  "is no kind of key",
		"FORMAT":                          "want FORMAT '...'",
		"FORMAT '{n:6}' JSON_SAFE":        "want FORMAT '...'",
		"FORMAT '{n:6}' TIME ZONE ''":     "want FORMAT '...'",
		"FORMAT '{n:6}' TIME 'UTC'":       "want FORMAT '...'",
		"FORMAT '{n:6}' TIME ZONE 'UTC'x": "want FORMAT '...'",
		"FORMAT 'x'":                      "no counter",
	} {
		if k, err := Parse(clause); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v, want %q", clause, k, err, want)
		}
	}
}

// A format of digits with a fixed length is a number, and is compared as one.
func TestAFormatOfDigitsIsANumber(t *testing.T) {
	at := time.Date(2026, 11, 25, 20, 30, 5, 0, time.UTC)
	k := parsed(t, "FORMAT '{yyMMdd}{n:6}7'")
	key, err := k.Number(42, at)
	if err != nil || k.IsText() || key != 2611250000427 || k.MaxKey() != 9_999_999_999_999 || k.MaxCounter() != 999_999 {
		t.Errorf("the key of 42 is %d, %v, of at most %d", key, err, k.MaxKey())
	}
	if n, _, ok := k.Counter(key); !ok || n != 42 {
		t.Errorf("%d is read as %d, %v", key, n, ok)
	}
	if counter, where := k.CounterSQL("c"); counter != "c DIV 10 MOD 1000000" || where != "c BETWEEN 1 AND 9999999999999" {
		t.Errorf("in SQL the counter is %q where %q", counter, where)
	}
	if _, err := k.Number(1_000_000, at); err == nil {
		t.Error("a counter that is too wide has a key")
	}
	for clause, text := range map[string]bool{
		"FORMAT '{n:19}'": false, "FORMAT '1{n:18}'": false, "FORMAT '1{n:19}'": true, "FORMAT '{n}'": true,
		"FORMAT '{n:6}' WIDEN": true, "FORMAT 'a{n:6}'": true, "UUID": true, "BIT_REVERSED": false,
	} {
		if k := parsed(t, clause); k.IsText() != text {
			t.Errorf("%s: keys are texts: %v, want %v", clause, k.IsText(), text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := anyFormat(t)
		k, err := NewFormatted(f.text, FormatOptions{Widen: f.widen})
		if err != nil {
			t.Fatal(err)
		}
		if k.IsText() {
			return
		}
		n := rapid.Uint64Range(1, k.MaxCounter()).Draw(t, "counter")
		key, err := k.Number(n, time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "second"), 0))
		if back, _, ok := k.Counter(key); err != nil || !ok || back != n || key == 0 || key > k.MaxKey() {
			t.Fatalf("%v: the key %d of %d is read as %d, %v, %v", k, key, n, back, ok, err)
		}
	})
}

// Keys of version 7 rise within a process: a caller who asks after another one got a key gets a
// greater one.
func TestUUIDsDifferAndRise(t *testing.T) {
	const goroutines, each = 8, 2000
	for clause, rises := range map[string]bool{"UUID": true, "UUID BINARY": true, "UUID VERSION 4": false, "UUID VERSION 4 BINARY": false} {
		k := parsed(t, clause)
		all := make([][]string, goroutines)
		var wg sync.WaitGroup
		for g := range all {
			wg.Go(func() {
				for range each {
					key, err := k.Text(0, time.Time{})
					if err != nil || len(key) != k.Length() {
						t.Errorf("%v: %q, %v", k, key, err)
					}
					if _, _, ok := k.Origin(key); !ok {
						t.Errorf("%v: %q is no key of it", k, key)
					}
					all[g] = append(all[g], key)
				}
			})
		}
		wg.Wait()
		seen := make(map[string]bool)
		for _, keys := range all {
			if rises && !slices.IsSorted(keys) {
				t.Errorf("%v: keys do not rise", k)
			}
			for _, key := range keys {
				seen[key] = true
			}
		}
		if len(seen) != goroutines*each {
			t.Errorf("%v: %d of %d keys differ", k, len(seen), goroutines*each)
		}
	}
}

func TestOriginsOfTexts(t *testing.T) {
	for _, c := range []struct {
		clause, key, date string
		counter           uint64
		ok                bool
	}{
		{"UUID", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "2022-02-22 19:22:22.000", 0, true}, // RFC 9562, A.6
		{"UUID BINARY", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "2022-02-22 19:22:22.000", 0, true},
		{"UUID VERSION 4", "919108f7-52d1-4320-9bac-f847db4148a8", "", 0, true}, // A.3
		{"UUID VERSION 4", "017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "", 0, false},
		{"UUID", "017f22e2-79b0-7cc3-d8c4-dc0c0c07398f", "", 0, false}, // another variant
		{"UUID", "urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "", 0, false},
		{"UUID", "", "", 0, false},
		{"FORMAT 'PO-{yyyyMMdd}-{n:6}'", "PO-20261125-000042", "20261125", 42, true},
		{"FORMAT 'PO-{yyyyMMdd}-{n:6}'", "PO-20261125-42", "", 0, false},
	} {
		counter, date, ok := parsed(t, c.clause).Origin(c.key)
		if counter != c.counter || date != c.date || ok != c.ok {
			t.Errorf("%s: %q is of %d, %q, %v, want %d, %q, %v", c.clause, c.key, counter, date, ok, c.counter, c.date, c.ok)
		}
	}
	if k := parsed(t, "UUID"); k.Counts() || k.MaxCounter() != math.MaxUint64 || !parsed(t, "FORMAT '{n}'").Counts() {
		t.Error("a UUID is of no counter")
	}
}

func TestColumnsThatHoldTexts(t *testing.T) {
	for clause, types := range map[string]map[string]bool{
		"UUID": {
			"char(36)": true, "varchar(36)": true, "varchar(64)": true, "CHAR(36)": true, "uuid": true, "binary(36)": true, "varbinary(40)": true,
			"binary(16)": false, "char(35)": false, "binary(40)": false, "bigint": false, "text": false, "int(36)": false,
		},
		"UUID BINARY":          {"binary(16)": true, "varbinary(16)": true, "uuid": true, "char(16)": false, "char(36)": false, "binary(17)": false, "blob": false},
		"FORMAT 'PO-{n:6}'":    {"char(9)": true, "varchar(9)": true, "binary(9)": true, "varchar(8)": false, "uuid": false, "bigint": false},
		"FORMAT 'PO-{n}'":      {"varchar(23)": true, "varchar(22)": false, "binary(23)": false},
		"FORMAT '{n:6}' WIDEN": {"varchar(20)": true, "varchar(19)": false},
	} {
		k := parsed(t, clause)
		for typ, fits := range types {
			if err := k.Fits(typ); (err == nil) != fits {
				t.Errorf("%s in %s: got %v, fits: %v", clause, typ, err, fits)
			}
		}
	}
}

func BenchmarkText(b *testing.B) {
	at := time.Date(2026, 11, 25, 20, 30, 5, 0, time.UTC)
	for _, clause := range []string{"UUID", "UUID BINARY", "UUID VERSION 4", "FORMAT 'PO-{yyyyMMdd}-{n:6}'"} {
		k := parsed(b, clause)
		b.Run(clause, func(b *testing.B) {
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				if _, err := k.Text(n%999_999+1, at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
