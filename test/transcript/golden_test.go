package transcript

import "testing"

func TestAQuestionMayStandMoreOftenAndNotLessOften(t *testing.T) {
	const ask, answer, other = "> 0 Query \"SHOW COLUMNS\"", "< 1 \"id\"\n", "> 0 Query \"SELECT 1\"\n< 1 \"1\"\n"
	once := other + ask + "\n" + answer + other
	for _, c := range []struct {
		name, want, got string
		is              bool
	}{
		{"the same", once, once, true},
		{"asked again", once, once + ask + "\n" + answer, true},
		{"asked though it was not", other + other, once, true},
		{"not asked", once, other + other, false},
		{"asked again, and another answer", once, ask + "\n" + answer + once + answer + "> 0 Quit\n", false},
		{"asked again, and not all that follows", once, ask + "\n" + answer + ask + "\n" + answer + other, false},
	} {
		if same(c.want, c.got, []string{ask}) != c.is {
			t.Errorf("%s: the texts are the same: %v, want %v", c.name, !c.is, c.is)
		}
	}
	if same(once, once+ask+"\n"+answer, nil) {
		t.Error("a question that must not stand more often does")
	}
}
