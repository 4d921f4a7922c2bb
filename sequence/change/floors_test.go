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
