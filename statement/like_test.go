package statement

import "testing"

func TestLikeMatchesAsSHOWDoes(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"photos", "photos", true},
		{"PHOTOS", "photos", true},
		{"ÉTÉ", "été", true},
		{"photos", "photo", false},
		{"photo", "photos", false},
		{"ph%", "photos", true},
		{"ph%", "ph", true},
		{"%", "", true},
		{"%%", "x", true},
		{"", "", true},
		{"", "x", false},
		{"%os", "photos", true},
		{"%o%o%", "photos", true},
		{"%o%o%o%", "photos", false},
		{"%tos%s", "photos", false},
		{"p_otos", "photos", true},
		{"_", "é", true},
		{"_", "", false},
		{"__", "a", false},
		{`a\_b`, "a_b", true},
		{`a\_b`, "axb", false},
		{`a\%`, "a%", true},
		{`a\%`, "ab", false},
		{`%\_b`, "x_y_b", true},
		{`a\\b`, `a\b`, true},
		{`a\`, `a\`, true},
		{"%ab", "aab", true},
	} {
		if got := Like(test.pattern, test.text); got != test.want {
			t.Errorf("%q LIKE %q: got %v, want %v", test.text, test.pattern, got, test.want)
		}
	}
}
