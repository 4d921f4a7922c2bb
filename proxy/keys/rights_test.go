package keys

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// away are sequences that only a server knows, which does not answer.
type away struct{ *counters }

var errAway = errors.New("the sequence server does not answer")

func (a away) Stored(context.Context, []byte) (string, bool, error) {
	a.looked++
	return "", false, errAway
}

func TestTheUsableAmongListedNamesAreFoundWithFewLookUps(t *testing.T) {
	list := []string{"albums", "photos", "video_likes", "videos"}
	for _, test := range []struct {
		rights []string
		want   []string
		looked int
		away   bool
	}{
		{nil, list, 0, false},
		{[]string{"*"}, list, 0, false},
		{[]string{}, nil, 0, false},
		{[]string{"video*"}, list[2:], 0, false},
		{[]string{"Video*"}, nil, 0, false},
		{[]string{"photos", "video_*"}, list[1:3], 0, false},
		{[]string{"PHOTOS", "albums"}, list[:2], 1, false},
		{[]string{"missing", "later", "videos"}, list[3:], 2, false},
		{[]string{"PHOTOS", "ALBUMS", "videos"}, list[3:], 1, true}, // one wait is enough
	} {
		_, c := newTaker(t)
		var names Names = c
		if test.away {
			names = away{c}
		}
		own, err := NewRights(test.rights).Among(t.Context(), names, list)
		if errors.Is(err, errAway) != test.away || err != nil && !test.away {
			t.Errorf("%q: got %v", test.rights, err)
		}
		got := slices.DeleteFunc(slices.Clone(list), func(name string) bool { return !own[name] })
		if !slices.Equal(got, test.want) || c.looked != test.looked {
			t.Errorf("%q: got %q with %d look-ups, want %q with %d", test.rights, got, c.looked, test.want, test.looked)
		}
	}
}
