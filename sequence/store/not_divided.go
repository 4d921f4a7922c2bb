package store

import (
	"fmt"

	"seqproxy/sequence/define"
	"seqproxy/sequence/segment"
)

// NotDivided is the error for numbers that are so far apart that members cannot divide them. It is
// an ErrSeveral.
func NotDivided(h segment.Share, name string, step uint64) error {
	if !h.InBlocks() {
		return define.NeedsOneServer("sequence %q: INCREMENT BY %d", name, step)
	}
	return fmt.Errorf("sequence %q: INCREMENT BY %d: with several servers it has to divide the %d numbers of a block, or the sequence %w", name, step, h.Block, define.ErrSeveral)
}
