package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"seqproxy/internal/await"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// CachedError: a sequence is not confirmed as an ORDER sequence, because proxies may still hold
// numbers of it.
type CachedError struct {
	Sequence string
	Table    string // "`app`.`sequence_proxy`"
	Proxies  []Proxy
	Several  bool   // each of several sequence servers has that table
	Order    string // what the sequence is after ALTER ... ORDER, for people
}

func (e *CachedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "sequence %q %s: ORDER is not confirmed, because proxies may hold numbers of it: ", e.Sequence, e.Order)
	e.list(&text)
	return text.String()
}

// list writes which proxies those are.
func (e *CachedError) list(text *strings.Builder) {
	store.ListProxies(text, e.Proxies, e.Table, e.Several, "and has not confirmed that it gave them up (try again)")
}

// errUnlisted: a proxy may be registered with nobody but a sequence server that does not answer.
var errUnlisted = errors.New("not all sequence servers say which proxies may hold numbers: try again when they are there, or take out the one that is not")

// waitForProxies returns when every registered proxy obeys the version. If that takes too long it
// returns a *CachedError without the name.
func (s *Sequences) waitForProxies(ctx context.Context, version uint64) error {
	var late []Proxy
	var unlisted error
	for {
		s.seeChanges(ctx)
		all, err := s.members.Now().Holders(ctx)
		if err != nil && ctx.Err() == nil {
			if !s.members.Now().Several() || link.IsRefused(err) {
				return err
			}
			unlisted = fmt.Errorf("%w: %w", errUnlisted, err) // a member may come back
		}
		if err == nil {
			late, unlisted = late[:0], nil
			stale := 0
			for _, p := range all {
				if p.Version >= version {
					continue
				}
				late = append(late, p)
				if p.Stale() {
					stale++
				}
			}
			if len(late) == 0 {
				return nil
			}
			if stale == len(late) {
				// waiting does not help
				return &CachedError{Proxies: late, Several: s.members.Now().Several()}
			}
		}
		if !await.Pause(ctx, s.timing.confirmPoll) {
			if unlisted != nil {
				return unlisted
			}
			if len(late) > 0 && errors.Is(context.Cause(ctx), await.ErrPatience) {
				return &CachedError{Proxies: late, Several: s.members.Now().Several()}
			}
			return context.Cause(ctx)
		}
	}
}
