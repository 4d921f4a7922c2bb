package proxy

import (
	"fmt"
	"slices"
	"testing"
)

// Numbers are in order as numbers, texts without their case, and NULL is the least.
func TestValuesOfAColumnAreInTheOrderOfItsKind(t *testing.T) {
	for _, want := range [][]any{
		{nil, int64(-3), int64(9), int64(10), int64(200)},
		{nil, "", "Anna", "berta", "Carl", "carlo", "é"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortStableFunc(got, compareValues)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if c := compareValues("Anna", "aNNA"); c != 0 {
		t.Errorf("Anna and aNNA: got %d, want 0", c)
	}
	if c := compareValues(nil, nil); c != 0 {
		t.Errorf("NULL and NULL: got %d, want 0", c)
	}
}
