package change

import (
	"errors"
	"strings"
	"testing"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
)

// A number that is too low would give keys twice. So it is taken only where nothing else tells how
// far a lost member may have gone.
func TestTheOperatorsNumberIsTakenWhereApplicationsCount(t *testing.T) {
	for _, c := range []struct {
		interleave string
		noWriters  bool
		taken      bool
	}{
		{segment.InBlocks, false, false},
		{segment.InBlocks, true, false},
		{segment.InSteps, true, false},
		{segment.InSteps, false, true},
	} {
		now := &Plan{Number: 3, Interleave: c.interleave, Members: []Member{{ID: "a", Address: "db0:3306"}, {ID: "b", Address: "db1:3306"}}}
		_, err := planFor(now, Change{Remove: "db1:3306", Force: true, Above: 500}, &Config{NoWriters: c.noWriters})
		if c.taken != (err == nil) {
			t.Errorf("%+v: got %v", c, err)
		}
		if err != nil && (!errors.Is(err, define.ErrBadOption) || !strings.Contains(err.Error(), "leave ABOVE out")) {
			t.Errorf("%+v: got %v, want the way out", c, err)
		}
	}
}
