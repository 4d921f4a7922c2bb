package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"seqproxy/internal/await"
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
	listProxies(text, e.Proxies, e.Table, e.Several, "and has not confirmed that it gave them up (try again)")
}

// listProxies writes which proxies are in the way, and the way out of each. lives is what is said
// of one that lives.
func listProxies(text *strings.Builder, proxies []Proxy, table string, several bool, lives string) {
	for i, p := range proxies {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(text, "%s, registered since %s UTC, ", p.Host, p.Since.Format(time.DateTime))
		remove := fmt.Sprintf("if it is gone for good: DELETE FROM %s WHERE id = '%s'", table, p.ID)
		if several {
			remove += ", on each sequence server"
		}
		switch {
		case p.early():
			fmt.Fprintf(text, "whose last sign of life is %v in the future: the sequence server's clock went back since, and nobody can tell for how long it has been silent "+
				"(set that clock right, and try again; %s)", -p.Silent.Round(100*time.Millisecond), remove)
		case p.stale():
			fmt.Fprintf(text, "silent for %v (%s)", p.Silent.Round(100*time.Millisecond), remove)
		default:
			fmt.Fprintf(text, "which lives, or did %v ago, %s", max(p.Silent, 0).Round(100*time.Millisecond), lives)
		}
	}
}

// errUnlisted: a proxy may be registered with nobody but a sequence server that does not answer.
var errUnlisted = errors.New("not all sequence servers say which proxies may hold numbers: try again when they are there, or take out the one that is not")

// waitForProxies returns when every registered proxy obeys the version. If that takes too long it
// returns a *HeldError without the name.
func (s *Sequences) waitForProxies(ctx context.Context, version uint64) error {
	var late []Proxy
	var unlisted error
	for {
		s.seeChanges(ctx)
		all, err := s.servers.holders(ctx)
		if err != nil && ctx.Err() == nil {
			if !s.servers.view.Load().several() || isRefused(err) {
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
				if p.stale() {
					stale++
				}
			}
			if len(late) == 0 {
				return nil
			}
			if stale == len(late) {
				// waiting does not help
				return &CachedError{Proxies: late, Several: s.servers.view.Load().several()}
			}
		}
		if !await.Pause(ctx, s.timing.confirmPoll) {
			if unlisted != nil {
				return unlisted
			}
			if len(late) > 0 && errors.Is(context.Cause(ctx), await.ErrPatience) {
				return &CachedError{Proxies: late, Several: s.servers.view.Load().several()}
			}
			return context.Cause(ctx)
		}
	}
}
