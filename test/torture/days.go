package torture

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// zonesVariable is the environment variable that names a directory of time zones. A Go program
// looks there first.
const zonesVariable = "ZONEINFO"

// shortDays is a time zone of this run, in which a day lasts for seconds.
const shortDays = "Torture/Short_Days"

// changePart is what the counter of a new day needs, and any change of definitions: that no other
// proxy is stopped during one. A server ends such a change after changeSilence.
const (
	changePart    part = "changes of definitions"
	changeSilence      = 10 * time.Second
)

// dayChange is when the next day begins, and which one it is: the number of days to add to the
// date.
type dayChange struct {
	at   time.Time
	days int
}

// chooseDays returns days from a time on, for so long. One in five times the day before comes
// again.
func chooseDays(rng *rand.Rand, from time.Time, limit, shortest, longest time.Duration) (all []dayChange) {
	const most = 200 // a file has one byte for each
	days := 0
	for at := from; at.Sub(from) < limit && len(all) < most; {
		if days++; rng.IntN(5) == 0 {
			days -= 2
		}
		at = at.Add(between(rng, shortest, longest))
		all = append(all, dayChange{at, days})
	}
	return all
}

// writeZone writes the file of a time zone in version 1 of RFC 9636.
func writeZone(path string, changes []dayChange) error {
	count := func(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
	text := append([]byte("TZif"), make([]byte, 16)...)
	for _, n := range []int{0, 0, 0, len(changes), 1 + len(changes), len("day\x00")} {
		text = append(text, count(n)...)
	}
	for _, c := range changes {
		text = append(text, count(int(c.at.Unix()))...)
	}
	for i := range changes {
		text = append(text, byte(1+i)) // 0 is the time before the first
	}
	text = append(text, make([]byte, 6)...)
	for _, c := range changes {
		text = append(append(text, count(c.days*24*60*60)...), 0, 0)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, append(text, "day\x00"...), 0o600))
}

// makeDays gives the proxies the zone of short days. Ten of them last as long as the faults.
func (w *world) makeDays(rng *rand.Rand) error {
	w.zones = filepath.Join(w.dir, "zones")
	day := min(max(w.opts.Time/10, 3*time.Second), 15*time.Second)
	changes := chooseDays(rng, time.Now(), w.opts.Time+w.opts.Time/10+2*time.Minute, day/2, day*3/2)
	return writeZone(w.zoneFile(), changes)
}

func (w *world) zoneFile() string { return filepath.Join(w.zones, filepath.FromSlash(shortDays)) }
