package sequence

import (
	"context"
	"time"

	"seqproxy/sequence/cache"
	"seqproxy/sequence/store"
)

// cacheOwner is Sequences as its caches see them.
type cacheOwner struct{ s *Sequences }

// Go implements [cache.Owner].
func (o cacheOwner) Go(f func(ctx context.Context)) { o.s.spawn(func() { f(o.s.ctx) }) }

// Sleep implements [cache.Owner].
func (o cacheOwner) Sleep(d time.Duration) { o.s.sleep(d) }

// Patience implements [cache.Owner].
func (o cacheOwner) Patience(ctx context.Context) time.Duration { return o.s.patience(ctx) }

// WhyNot implements [cache.Owner].
func (o cacheOwner) WhyNot(sequence string) (server string, err error) {
	return o.s.members.NameFor(sequence), o.s.shared.whyNot()
}

// Sizing implements [cache.Owner].
func (o cacheOwner) Sizing() cache.Sizing {
	t := o.s.tuning.Load()
	z := cache.Sizing{Least: t.CacheSize, Cover: t.OutageCover}
	if w := o.s.members.Now(); w.Several() {
		z.Share = w.Members[0].Share()
	}
	return z
}

// reservations is the [cache.Reserver] of sequences. After each reservation it notes what was found
// out (takeNote).
type reservations struct{ s *Sequences }

// Reserve implements [cache.Reserver].
func (r reservations) Reserve(ctx context.Context, name string, want, need uint64) (store.Grant, error) {
	g, err := r.s.reserver.Reserve(ctx, name, want, need)
	r.s.takeNote()
	return g, err
}
