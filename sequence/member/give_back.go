package member

import (
	"context"
	"errors"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/stats"
)

// TakeBack undoes a reservation that cannot be recorded, so that its numbers may not be given. If
// it cannot be undone they are a gap.
func (v *Server) TakeBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) {
	was := v.Marks.Lower(name, seg)
	done, err := v.GiveBack(ctx, name, epoch, seg)
	if !done && !errors.Is(err, link.ErrOutcome) {
		// else the row may stand there without having gone back
		v.Marks.UndoLower(name, was)
	}
	v.counters.Lose(name, stats.ReturnedOr(stats.UnusedRefused, done), seg.Remaining())
}

// GiveBack lowers the row to just below seg if nobody has reserved since, and reports whether it
// did. It does not while another proxy is registered, which would take a lowered row for one that
// went back, unless the row counts the ticks of a worker.
func (v *Server) GiveBack(ctx context.Context, name string, epoch uint64, seg segment.Segment) (done bool, err error) {
	h := v.ShareOf(name, segment.Simple)
	if seg.Plan != h.Plan || h.Shared() && !h.Has(seg.Last()) {
		return false, nil
	}
	lowered := seg.Next() - 1
	if h.InSteps() {
		lowered = seg.Next() - h.Count // the row keeps its residue
	}
	// The transaction refuses that too. The early check saves it, and the lock on the list, where
	// several proxies are usual.
	if !define.IsWorker(name) {
		others, err := v.OtherProxies(ctx, v.Pool(), "")
		switch {
		case v.IsMoved(err): // on the next node they are a gap
			return false, nil
		case err != nil || len(others) > 0:
			return false, err
		}
	}
	v.lowest.lower(name)
	defer v.lowest.lower(name)
	done, hit, err := v.Store.GiveBack(ctx, h, name, epoch, seg, lowered)
	if (done || hit && errors.Is(err, link.ErrOutcome)) && v.lowest.of(name, epoch, h.Plan) == seg.Last() {
		// the row may stand there
		v.lowest.set(name, epoch, h.Plan, lowered)
	}
	return done, err
}
