package segment

import "testing"

func TestWhereACeilingIsSet(t *testing.T) {
	const far = 1 << 36
	for _, c := range []struct{ position, highest, ahead, want uint64 }{
		{0, 1<<64 - 1, far, far},
		{1000, 1<<64 - 1, far, 1000 + far},
		{0, 1<<32 - 1, far, 1<<24 - 1},
		{1<<32 - 1, 1<<32 - 1, far, 1<<32 - 1},
		{1 << 40, 1<<32 - 1, far, 1<<32 - 1},
		{1<<64 - 1, 1<<64 - 1, far, 1<<64 - 1},
	} {
		if got := CeilingAbove(c.position, c.highest, c.ahead); got != c.want {
			t.Errorf("above %d, up to %d: got %d, want %d", c.position, c.highest, got, c.want)
		}
	}
}
