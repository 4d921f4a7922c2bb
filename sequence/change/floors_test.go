package change

import "testing"

// Numbers that are a time have no ceiling ahead where a plan begins, as time cannot be skipped.
func TestNoTimeIsSkippedWhereAPlanBegins(t *testing.T) {
	all := []Given{
		{End: 1 << 63, Names: []Gave{{Name: "photos", UpTo: 100, Row: true}, {Name: "Snow#w3#counter", UpTo: 5000, Row: true, Ticks: true}}},
		{End: 1 << 63, Names: []Gave{{Name: "snow#w3#counter", UpTo: 7000, Ticks: true}}},
	}
	for _, f := range floorsOf(all, word{}, 1000).Named {
		want := f.Floor
		if f.Name == "photos" {
			want += 1000
		}
		if f.Ceiling != want {
			t.Errorf("%+v: want the ceiling %d", f, want)
		}
	}
}

// The operator says above which number counters go on. Ticks of workers, and sequences that end
// below that number, go on above the ceilings that others have recorded for the lost member.
func TestTheWordOfTheOperatorIsAboutCounters(t *testing.T) {
	const end = 1 << 63
	all := []Given{{
		End: end,
		Names: []Gave{
			{Name: "photos", UpTo: 100, Row: true},
			{Name: "photos", UpTo: 1 << 36, Recorded: true},
			{Name: "flags", UpTo: 10, Row: true},
			{Name: "flags", UpTo: 40, Recorded: true},
			{Name: "snow#counter", UpTo: 7000, Row: true, Ticks: true},
			{Name: "snow#w3#counter", UpTo: 8000, Row: true, Ticks: true},
			{Name: "snow#w3#counter", UpTo: 9000, Ticks: true, Recorded: true},
		},
		Sequences: []Sequence{{Name: "photos", End: end}, {Name: "flags", End: 255}, {Name: "snow#counter", End: end, Clock: true}},
	}}
	for _, c := range []struct {
		name   string
		said   word
		floors map[string]uint64
	}{
		{"nothing", word{}, map[string]uint64{"photos": 1 << 36, "flags": 40, "snow#counter": 7000, "snow#w3#counter": 9000}},
		{"a number", word{above: 5000, recorded: true}, map[string]uint64{"photos": 5000, "flags": 40, "snow#counter": 7000, "snow#w3#counter": 9000}},
		{"a high number", word{above: 1 << 40, recorded: true}, map[string]uint64{"photos": 1 << 40, "flags": 40, "snow#counter": 7000, "snow#w3#counter": 9000}},
		// Nobody knows how far they have counted: that one has ended.
		{"a number, and applications count", word{above: 5000}, map[string]uint64{"photos": 5000, "flags": 5000, "snow#counter": 7000, "snow#w3#counter": 9000}},
	} {
		for _, f := range floorsOf(all, c.said, 1000).Named {
			if f.Floor != c.floors[f.Name] {
				t.Errorf("%s: %s begins above %d, want %d", c.name, f.Name, f.Floor, c.floors[f.Name])
			}
			if f.Name == "snow#counter" && f.Ceiling != f.Floor {
				t.Errorf("%s: a column with keys of SNOWFLAKE has the ceiling %d ahead of %d", c.name, f.Ceiling, f.Floor)
			}
		}
	}
}
