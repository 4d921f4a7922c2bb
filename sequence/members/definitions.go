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

// asked is what f returns of the members in use.
func asked[T any](ctx context.Context, a *Members, f func(d agree.Definitions) (T, error)) (got T, err error) {
	err = a.Under(ctx, func(w *View) error {
		got, err = f(a.definitions(w))
		return err
	})
	return got, err
}

// Create is [agree.Definitions.Create].
func (a *Members) Create(ctx context.Context, o agree.New, def define.Definition) (agree.Made, error) {
	return asked(ctx, a, func(d agree.Definitions) (agree.Made, error) { return d.Create(ctx, o, def) })
}

// LimitOfNew is [agree.Definitions.LimitOfNew].
func (a *Members) LimitOfNew(ctx context.Context, def *define.Definition) (uint64, error) {
	return asked(ctx, a, func(d agree.Definitions) (uint64, error) { return d.LimitOfNew(def) })
}

// Drop is [agree.Definitions.Drop].
func (a *Members) Drop(ctx context.Context, name string) (store.Row, error) {
	return asked(ctx, a, func(d agree.Definitions) (store.Row, error) { return d.Drop(ctx, name) })
}

// Alter is [agree.Definitions.Alter].
func (a *Members) Alter(ctx context.Context, name string, of define.Alteration, only uint64) (store.Row, error) {
	return asked(ctx, a, func(d agree.Definitions) (store.Row, error) { return d.Alter(ctx, name, of, only) })
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
