package members

import (
	"errors"
	"testing"

	"seqproxy/sequence/change"
	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
)

func TestAShareThatNobodyCanCountByIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		share segment.Share
		fits  bool
	}{
		"steps":                   {segment.Share{Count: 2, Interleave: segment.InSteps}, true},
		"blocks":                  {segment.Share{Count: 2, Interleave: segment.InBlocks, Block: 1}, true},
		"the largest of all":      {segment.Share{Count: change.MaxMembers, Interleave: segment.InBlocks, Block: MaxBlock}, true},
		"blocks of nothing":       {segment.Share{Count: 2, Interleave: segment.InBlocks}, false},
		"blocks that are too big": {segment.Share{Count: 2, Interleave: segment.InBlocks, Block: MaxBlock + 1}, false},
		"too many members":        {segment.Share{Count: change.MaxMembers + 1, Interleave: segment.InSteps}, false},
		"what is not known here":  {segment.Share{Count: 2, Interleave: "hash"}, false},
		"nothing":                 {segment.Share{}, false},
	} {
		if err := checkShare(&c.share); (err == nil) != c.fits || err != nil && !errors.Is(err, define.ErrBadOption) {
			t.Errorf("%s: got %v, want that it fits: %v", name, err, c.fits)
		}
	}
}
