package follow

import (
	"context"
	"slices"
	"time"

	"seqproxy/sequence/member"
	"seqproxy/sequence/members"
	"seqproxy/sequence/store"
)

// refreshFrom asks one member. f.Lock is held.
func (f *Follower) refreshFrom(ctx context.Context, w *members.View, v *member.Server) error {
	if v.FlushDue() {
		f.owner.Go(v.LookAtFlush) // nobody waits for it
	}
	heard, err := f.hear(ctx, v)
	if err != nil {
		return err
	}
	return f.Follow(ctx, w, v, heard)
}

// hear asks a member what has changed, and how it spells the sequences whose numbers are held here.
func (f *Follower) hear(ctx context.Context, v *member.Server) (store.Changes, error) {
	of := f.Of(v)
	heard, err := v.ChangesSince(ctx, of.Seen, !of.Loaded)
	if err != nil || len(heard.Changed) == 0 {
		return heard, err
	}
	// Any change may be of a sequence that was dropped and made again. That its spelling is in memory
	// does not mean that no other is.
	heard.Respelled, err = v.Respelled(ctx, f.caches.Heard())
	return heard, err
}

// Follow obeys what a member has told, and tells it that. f.Lock is held.
func (f *Follower) Follow(ctx context.Context, w *members.View, v *member.Server, heard store.Changes) error {
	of := f.Of(v)
	if heard.Plan != v.Share().Plan {
		err := f.members.Reread(ctx, w)
		if err == nil {
			heard, err = f.hear(ctx, v)
		}
		if err != nil {
			return err
		}
		if f.members.Now() == w && heard.Plan != v.Share().Plan {
			return store.OutcomeOldPlan
		}
	}
	if !of.Loaded || heard.Moment != of.Seen {
		f.obey(v, News{heard, w.Several()})
	}
	if of.reported == of.Seen && time.Since(of.beaten) < f.timing.Beat && !v.Registry.Missing.Swap(false) {
		return nil
	}
	sequences, cached := f.caches.Holds()
	reported, listed, err := v.Beat(ctx, of.Seen, sequences, cached)
	if err != nil {
		return err
	}
	if !listed {
		f.log.Warn("proxy removed from the list")
		f.caches.VoidAll()
	}
	if of.beaten = time.Now(); reported {
		of.reported = of.Seen
	}
	return nil
}

// obey has this process obey the changes that a member tells.
func (f *Follower) obey(v *member.Server, n News) {
	f.obeying.Lock()
	defer f.obeying.Unlock()
	for i := range n.Changed {
		if c := &n.Changed[i]; !c.Gone {
			v.Rules.Set(c.Name, c.Rule())
		}
	}
	if n.Several {
		n.Changed = f.news(n.Changed)
		n.Back = false // several tell of each other's changes
	}
	for i := range n.Changed {
		if c := &n.Changed[i]; !c.Gone {
			f.members.Next.SettleAt(&c.Row)
		}
	}
	f.caches.Obey(n)
	of := f.Of(v)
	of.Loaded, of.Seen = true, n.Moment
}

// news are the changes that no other member has told of. f.obeying is held. One that lacks a row,
// as others have it, does not mean that the sequence was dropped.
func (f *Follower) news(changed []store.Changed) []store.Changed {
	if f.newest == nil {
		f.newest = make(map[string]uint64)
	}
	return slices.DeleteFunc(changed, func(c store.Changed) bool {
		newest, heard := f.newest[c.Option]
		if heard && (c.Version < newest || c.Version == newest && c.Gone) {
			return true
		}
		f.newest[c.Option] = c.Version
		return false
	})
}
