package members

import (
	"context"

	"seqproxy/sequence/agree"
	"seqproxy/sequence/define"
	"seqproxy/sequence/store"
)

// This file has definitions read and changed by the members of the plan in force.

// definitions is what is defined on members.
func (a *Members) definitions(w *View) agree.Definitions { return agree.Of(&w.Among, a.Next) }

// Create is [agree.Definitions.Create].
func (a *Members) Create(ctx context.Context, o agree.New, def define.Definition) (made agree.Made, err error) {
	err = a.Under(ctx, func(w *View) error {
		made, err = a.definitions(w).Create(ctx, o, def)
		return err
	})
	return made, err
}

// LimitOfNew is [agree.Definitions.LimitOfNew].
func (a *Members) LimitOfNew(ctx context.Context, def *define.Definition) (limit uint64, err error) {
	err = a.Under(ctx, func(w *View) error {
		limit, err = a.definitions(w).LimitOfNew(def)
		return err
	})
	return limit, err
}

// Drop is [agree.Definitions.Drop].
func (a *Members) Drop(ctx context.Context, name string) (stored string, err error) {
	err = a.Under(ctx, func(w *View) error {
		stored, err = a.definitions(w).Drop(ctx, name)
		return err
	})
	return stored, err
}

// Alter is [agree.Definitions.Alter].
func (a *Members) Alter(ctx context.Context, name string, asked define.Alteration, only uint64) (changed store.Row, err error) {
	err = a.Under(ctx, func(w *View) error {
		changed, err = a.definitions(w).Alter(ctx, name, asked, only)
		return err
	})
	return changed, err
}

// Restart is [agree.Definitions.Restart].
func (a *Members) Restart(ctx context.Context, name string, asked define.Alteration, ofPeriod bool, enlisted func() error) (done store.Row, was uint64, err error) {
	err = a.Under(ctx, func(w *View) error {
		done, was, err = a.definitions(w).Restart(ctx, name, asked, ofPeriod, enlisted)
		return err
	})
	return done, was, err
}

// SetValue is [agree.Definitions.SetValue].
func (a *Members) SetValue(ctx context.Context, name string, n uint64, used bool, next uint64) (changed store.Row, ok bool, err error) {
	err = a.Under(ctx, func(w *View) error {
		changed, ok, err = a.definitions(w).SetValue(ctx, name, n, used, next)
		return err
	})
	return changed, ok, err
}

// RaiseAbove is [agree.Definitions.RaiseAbove].
func (a *Members) RaiseAbove(ctx context.Context, name string, floor uint64) (changed store.Row, raised bool, err error) {
	err = a.Under(ctx, func(w *View) error {
		changed, raised, err = a.definitions(w).RaiseAbove(ctx, name, floor)
		return err
	})
	return changed, raised, err
}
