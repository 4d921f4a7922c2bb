package simulation

import (
	"context"

	"seqproxy/sequence/change"
)

// Store is a member's tables as an actor sees them.
type Store struct {
	Actor  *Actor
	Member *Member
}

// Close implements [change.Store].
func (Store) Close() error { return nil }

// Report implements [change.Store].
func (s Store) Report(context.Context) (t change.Report, err error) {
	err = s.Actor.do(s.Member, "report", func() error {
		t = s.Member.report()
		return nil
	})
	return t, err
}

// Look implements [change.Store].
func (s Store) Look(context.Context) (said change.Report, all []change.Sequence, err error) {
	err = s.Actor.do(s.Member, "look", func() error {
		said, all = s.Member.report(), s.Member.sequences()
		return nil
	})
	return said, all, err
}

// Knowledge implements [change.Store].
func (s Store) Knowledge(_ context.Context, p *change.Plan) (brings change.Knowledge, err error) {
	err = s.Actor.do(s.Member, "knowledge", func() error {
		brings = s.Member.knowledge(p)
		if s.faults().KeepsOptions {
			brings.More = knowledge{rows: brings.More.(knowledge).rows}
		}
		return nil
	})
	return brings, err
}

// Promise implements [change.Store].
func (s Store) Promise(_ context.Context, p *change.Plan, base uint64) (was string, err error) {
	err = s.Actor.do(s.Member, "promise", func() (err error) {
		was, err = s.Member.promise(p, base, s.faults())
		return err
	})
	if was != "" && s.faults().ThawsBeforeVote {
		was = change.Frozen
	}
	return was, err
}

// Freeze implements [change.Store].
func (s Store) Freeze(_ context.Context, p *change.Plan, missing string) (given change.Given, err error) {
	if s.faults().ForgetsMissing {
		missing = ""
	}
	err = s.Actor.write(s.Member, "freeze", func() (err error) {
		given, err = s.Member.freeze(p, missing, s.faults())
		return err
	})
	return given, err
}

// Accept implements [change.Store].
func (s Store) Accept(_ context.Context, p *change.Plan, all change.Floors, holders change.Holders) error {
	if s.faults().ForgetsHolders {
		holders = change.Holders{}
	}
	return s.Actor.write(s.Member, "accept", func() error { return s.Member.accept(p, all, holders, s.faults()) })
}

// Obey implements [change.Store].
func (s Store) Obey(_ context.Context, p *change.Plan, floors change.Floors, from []change.Knowledge) error {
	return s.Actor.write(s.Member, "obey", func() error {
		s.Member.obey(p, floors, from)
		return nil
	})
}

// LetGo implements [change.Store].
func (s Store) LetGo(_ context.Context, p *change.Plan, abandoned bool) error {
	return s.Actor.write(s.Member, "let go", func() error {
		s.Member.letGo(p, abandoned)
		return nil
	})
}

// Record writes down how far a member may go with a name under a plan: another member, or with
// granted this one.
func (s Store) Record(_ context.Context, plan uint64, giver, name string, wanted, granted uint64) error {
	return s.Actor.do(s.Member, "record", func() error { return s.Member.record(plan, LimitOf{giver, name}, wanted, granted, s.faults()) })
}

func (s Store) faults() *Faults { return &s.Actor.World.Faults }

// Copy is a store of a world of its own, in which the member has the same contents.
func (s Store) Copy() Store {
	w := NewWorld(1, 1, s.Actor.World.Interleave)
	w.Members[0] = s.Member.Copy()
	return Store{w.Client(s.Actor.Name), w.Members[0]}
}
