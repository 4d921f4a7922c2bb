// Package planted breaks each rule that TestThatEachOfTheseRulesCanBeBroken looks for.
package planted

import (
	"context"
	"sync/atomic"
)

// upper stands above all others.
type upper struct {
	embeds  embeds
	points  *points
	holds   []holds
	reaches map[string]reaches
	deep    atomic.Pointer[deep]
	takes   takes
	asks    asks
	next    *upper
}

func (*upper) a() {}
func (*upper) b() {}
func (*upper) c() {}
func (*upper) d() {}
func (*upper) e() {}
func (*upper) f() {}

type embeds struct{ *upper }

type points struct{ up *upper }

type holds struct{ all map[string][]func() *upper }

type deep struct{ by way }

type way func(*upper)

// large is an interface of more methods than a type below may see.
type large interface {
	a()
	b()
	c()
	d()
	e()
	f()
}

// small is one of as many as it may.
type small interface {
	a()
	b()
	c()
	d()
}

type reaches struct {
	up    large
	later func()
	given func()
}

type takes struct{}

func (takes) it(up *upper) {}

type asks struct{ up small }

// set sets one function late, and gives one up.
func (r *reaches) set() {
	r.later = func() {}
	r.given = nil
}

// makes sets a function of what it makes, which is no finding.
func makes() *reaches {
	r := &reaches{}
	r.given = func() {}
	return r
}

// Facts are what something is decided by.
type Facts struct {
	Ask   func() bool
	Inner inner
	List  []context.Context
}

type inner struct{ Any any }
