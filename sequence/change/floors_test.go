package change

import "testing"

// Numbers that are a time have no ceiling ahead where a plan begins, as time cannot be skipped.
func TestNoTimeIsSkippedWhereAPlanBegins(t *testing.T) {
	all := []Given{
		{End: 1 << 63, Names: []Gave{{Name: "photos", UpTo: 100, Row: true}, {Name: "Snow#w3#counter", UpTo: 5000, Row: true, Ticks: true}}},
		{End: 1 << 63, Names: []Gave{{Name: "snow#w3#counter", UpTo: 7000, Ticks: true}}},
	}
	for _, f := range floorsOf(all, 0, 1000).Named {
		want := f.Floor
		if f.Name == "photos" {
			want += 1000
		}
		if f.Ceiling != want {
			t.Errorf("%+v: want the ceiling %d", f, want)
		}
	}
}

// A plan begins above what each member gave, what it was recorded to give at most, and the number
// that the operator says. That one never lowers a floor.
func TestTheWordOfTheOperatorLowersNoFloor(t *testing.T) {
	const end = 1 << 63
	all := []Given{{
		End: end,
		Names: []Gave{
			{Name: "photos", UpTo: 100, Row: true},
			{Name: "photos", UpTo: 1 << 36},
			{Name: "flags", UpTo: 10, Row: true},
			{Name: "flags", UpTo: 40},
			{Name: "snow#counter", UpTo: 7000, Row: true, Ticks: true},
			{Name: "snow#w3#counter", UpTo: 8000, Row: true, Ticks: true},
			{Name: "snow#w3#counter", UpTo: 9000, Ticks: true},
		},
		Sequences: []Sequence{{Name: "photos", End: end}, {Name: "flags", End: 255}, {Name: "snow#counter", End: end, Clock: true}},
	}}
	for _, c := range []struct {
		above  uint64
		floors map[string]uint64
	}{
		{0, map[string]uint64{"photos": 1 << 36, "flags": 40, "snow#counter": 7000, "snow#w3#counter": 9000}},
		{50, map[string]uint64{"photos": 1 << 36, "flags": 50, "snow#counter": 7000, "snow#w3#counter": 9000}},
		{1 << 40, map[string]uint64{"photos": 1 << 40, "flags": 1 << 40, "snow#counter": 1 << 40, "snow#w3#counter": 1 << 40}},
	} {
		all := floorsOf(all, c.above, 1000)
		if all.Others != c.above {
			t.Errorf("above %d: other names begin above %d", c.above, all.Others)
		}
		for _, f := range all.Named {
			if f.Floor != c.floors[f.Name] {
				t.Errorf("above %d: %s begins above %d, want %d", c.above, f.Name, f.Floor, c.floors[f.Name])
			}
			if f.Name == "snow#counter" && f.Ceiling != f.Floor {
				t.Errorf("above %d: a column with keys of SNOWFLAKE has the ceiling %d ahead of %d", c.above, f.Ceiling, f.Floor)
			}
		}
	}
}
