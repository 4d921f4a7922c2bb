package define

import (
	"testing"

	"seqproxy/sequence/kind"
)

// What a statement does not say stays where somebody deleted the row, and its defaults count there
// as they do for a new sequence.
func TestWhatIsNotSaidInPlaceOfADeletedRowIsAsBefore(t *testing.T) {
	column := Column{"app", "photos", "id"}
	full := Definition{
		Name: "", Increment: 10, Min: 5, Max: 5000, Start: 7, Cache: 50, Cycle: true, Comment: "of people", OwnedBy: column, OwnerMax: 1 << 31,
		Order: true, JSONSafe: true, Cover: 60,
	}
	no, none, one := false, uint64(0), uint64(1)
	changed := func(f func(d *Definition)) Definition {
		d := full
		d.Name = "photos"
		f(&d)
		return d
	}
	for name, c := range map[string]struct {
		before Definition
		asked  CreateOptions
		want   Definition
	}{
		"nothing":  {full, CreateOptions{}, changed(func(*Definition) {})},
		"a start":  {full, CreateOptions{Start: 900}, changed(func(d *Definition) { d.Start = 900 })},
		"a bound":  {full, CreateOptions{Min: 300}, changed(func(d *Definition) { d.Min, d.Start = 300, 300 })},
		"a column": {full, CreateOptions{OwnedBy: Column{"app", "albums", "id"}}, changed(func(d *Definition) { d.OwnedBy, d.OwnerMax = Column{"app", "albums", "id"}, 0 })},
		"no column": {
			full,
			CreateOptions{Said: Alteration{OwnedBy: new(Column)}},
			changed(func(d *Definition) { d.OwnedBy, d.OwnerMax = Column{}, 0 }),
		},
		"what is 0": {
			full,
			CreateOptions{Said: Alteration{Max: &none, Cache: &none, Cover: &none, Cycle: &no, Order: &no, JSONSafe: &no, Comment: new(string), Increment: &one}},
			changed(func(d *Definition) {
				d.Max, d.Cache, d.Cover, d.Cycle, d.Order, d.JSONSafe, d.Comment, d.Increment = 0, 0, 0, false, false, false, "", 1
			}),
		},
		"after a tombstone":           {Definition{}.Filled(), CreateOptions{Cache: 3}, Definition{Name: "photos", Increment: 1, Min: 1, Start: 1, Cache: 3}},
		"after the tombstone, bounds": {Definition{}.Filled(), CreateOptions{Min: 300}, Definition{Name: "photos", Increment: 1, Min: 300, Start: 300}},
	} {
		c.asked.Name = "photos"
		if got := c.asked.InPlaceOf(&c.before); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	daily, err := kind.Parse("FORMAT 'PO-{yyyyMMdd}-{n:6}' RESET DAILY")
	if err != nil {
		t.Fatal(err)
	}
	tomb := Definition{Kind: daily}.Filled()
	asked := CreateOptions{Name: "photos", Kind: daily}
	if got := asked.InPlaceOf(&tomb); got != asked.Definition() {
		t.Errorf("after the tombstone of a counter that is reset: got %+v, want %+v", got, asked.Definition())
	}
}
