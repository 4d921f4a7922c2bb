package members

import (
	"errors"
	"testing"

	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
)

func TestAPlanThatNobodyCanCountByIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		members    int
		interleave string
		block      uint64
		fits       bool
	}{
		"steps":                   {2, segment.InSteps, 0, true},
		"blocks":                  {2, segment.InBlocks, 1, true},
		"the largest of all":      {change.MaxMembers, segment.InBlocks, MaxBlock, true},
		"blocks of nothing":       {2, segment.InBlocks, 0, false},
		"blocks that are too big": {2, segment.InBlocks, MaxBlock + 1, false},
		"too many members":        {change.MaxMembers + 1, segment.InSteps, 0, false},
		"what is not known here":  {2, "hash", 10, false},
		"nothing":                 {0, "", 0, false},
	} {
		err := fits(&change.Plan{Members: make([]change.Member, c.members), Interleave: c.interleave, Block: c.block})
		if (err == nil) != c.fits || err != nil && !errors.Is(err, define.ErrBadOption) {
			t.Errorf("%s: got %v, want that it fits: %v", name, err, c.fits)
		}
	}
}
