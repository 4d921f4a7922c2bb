package members

import (
	"context"

	"seqproxy/sequence/agree"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// FindAll implements [member.Agreement].
func (a *Members) FindAll(ctx context.Context, among *member.Among, name string) (store.Row, error) {
	return agree.Of(among, a.Next).Find(ctx, name)
}

// BeginAgain implements [member.Agreement].
func (a *Members) BeginAgain(ctx context.Context, v *member.Server, name string, need uint64) (remaining uint64, err error) {
	return agree.BeginAgain(ctx, v, name, need)
}

// StaysInForce implements [member.Agreement].
func (a *Members) StaysInForce(ctx context.Context, plan uint64) bool {
	w := a.Now()
	return w.Number == plan && a.Reread(ctx, w) == nil && a.Now() == w
}
