package sequence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"seqproxy/internal/await"
	"seqproxy/sequence/store"
)

// unheardError: after a fail-over proxies may go on to give numbers that a sequence was moved past.
type unheardError struct {
	row    *store.Row
	nodes  error // why a fail-over could lose that
	silent error // why it is not known that all proxies obey already
}

func (e *unheardError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "sequence %q goes on above %d, but a fail-over could hide from other proxies that lower numbers which they hold are void: %v; "+
		"and not all proxies have confirmed that they gave those up: ", e.row.Name, e.row.Past, e.nodes)
	var cached *CachedError
	if errors.As(e.silent, &cached) {
		cached.list(&text)
	} else {
		text.WriteString(e.silent.Error())
	}
	return text.String()
}

// passedForGood makes sure that no proxy gives numbers up to r.past from memory any more once it
// can ask a sequence server again, whatever fails over: r is a row as it was just written. The
// counter itself is above, see KeepAbove of package group, so nothing but `past` tells a proxy that
// has not asked yet that what it holds was used by somebody else. If all nodes have it, whoever is
// promoted tells that. If all proxies obey it already, it does not matter who does. Where neither
// is known a majority of the nodes has to have it, as of all else that must survive a fail-over.
func (s *Sequences) passedForGood(ctx context.Context, r *store.Row) error {
	v := s.members.First() // a group is the only member
	onAll, lost := func() (bool, error) {
		// A replica that does not answer may take all the time, which what comes next needs, too.
		asking, stop := await.Half(ctx)
		defer stop()
		return v.Ceilings.OnNodes(asking)
	}()
	if !onAll || lost != nil {
		wait := ctx
		if lost == nil { // there is something to be asked after that
			var stop context.CancelFunc
			wait, stop = await.Half(ctx)
			defer stop()
		}
		if silent := s.waitForProxies(wait, r.Version); silent != nil && lost != nil {
			var cached *CachedError
			if errors.As(silent, &cached) {
				cached.Table = s.members.First().Table.Proxies
			}
			return &unheardError{row: r, nodes: lost, silent: silent}
		}
	}
	// Another node may have taken over since it was written, and have been asked instead.
	return v.Ceilings.KeepsPast(ctx, r)
}
