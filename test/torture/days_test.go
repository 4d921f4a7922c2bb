package torture

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A program that reads the time zone has another day at each change, and at no other moment.
func TestDaysAreShortInTheZoneOfTheRun(t *testing.T) {
	path, from := filepath.Join(t.TempDir(), "zone"), time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	changes := chooseDays(rand.New(rand.NewPCG(1, 2)), from, 3*time.Minute, 2*time.Second, 9*time.Second)
	if err := writeZone(path, changes); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := time.LoadLocationFromTZData("Torture", text)
	if err != nil {
		t.Fatal(err)
	}
	day, back := 0, 0
	for i, c := range changes {
		for at, want := range map[time.Time]int{c.at.Truncate(time.Second).Add(-time.Nanosecond): day, c.at.Truncate(time.Second): c.days} {
			if got := at.In(zone).Format(time.DateOnly); got != from.AddDate(0, 0, want).Format(time.DateOnly) {
				t.Errorf("change %d: at %v it is %s, want %d days later than at the beginning", i, at, got, want)
			}
		}
		if c.days < day {
			back++
		}
		day = c.days
	}
	if len(changes) < 20 || back == 0 || back > len(changes)/2 {
		t.Errorf("%d changes, %d of them back", len(changes), back)
	}
}
