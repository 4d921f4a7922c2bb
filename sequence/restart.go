package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// RegisteredError: a sequence is not restarted and continues where it was, because other proxies
// are registered and may hold numbers of it.
type RegisteredError struct {
	Sequence string
	Table    string  // "`app`.`sequence_proxy`"
	Proxies  []Proxy // the others
}

func (e *RegisteredError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "sequence %q is not restarted and continues where it was, because other proxies are registered and may hold numbers of it: ", e.Sequence)
	listProxies(&text, e.Proxies, e.Table, false, "(stop it first: it leaves the list when it ends)")
	return text.String()
}

// restart has a sequence continue at a lower number, if no other proxy is registered: one that is
// not gives no numbers.
func (s *Sequences) restart(ctx context.Context, name string, a Alteration) (Altered, error) {
	r, stop := s.requestWithin(ctx, s.timing.confirm)
	defer stop()
	s.startFollowing()

	seen := make(map[*server]tenure)
	for !s.servers.enlisted(seen) {
		if !await.Pause(r.ctx, s.timing.follow) {
			return Altered{}, r.failed(name, errEnlisting)
		}
	}
	done, was, err := s.servers.restart(r.ctx, name, a, func() bool { return s.servers.enlisted(seen) })
	if err != nil {
		if errors.Is(err, link.ErrOutcome) && done.name != "" {
			s.voidBefore(done.name, done.epoch) // it may have begun again
		}
		var others *RegisteredError
		if errors.As(err, &others) {
			return Altered{}, others
		}
		return Altered{}, r.failed(name, err)
	}
	s.voidBefore(done.name, done.epoch)
	s.log.Info("sequence restarted", logfield.Sequence(done.name), zap.Uint64("at", done.anchor), zap.Uint64("was", was))
	s.seeChanges(r.ctx)
	return Altered{Next: done.anchor, Cycle: done.def.Cycle}, nil
}

// restart lowers the row of a single server in one transaction, in which no other proxy is
// registered. The row comes first: who reserves waits for it, or has reserved before, and so was
// registered before. tenured reports whether all proxies have had the time to register with the
// node in use. Where the outcome is unknown it returns the row as it may be, too.
func (a *servers) restart(ctx context.Context, name string, change Alteration, tenured func() bool) (done row, was uint64, err error) {
	err = a.under(ctx, func(w *view) error {
		if w.several() {
			return needsOneServer("sequence %q: RESTART ... FORCE", name)
		}
		if err := w.members[0].proxies.removeDead(ctx); err != nil {
			return err
		}
		err := w.amend(ctx, name, func(g *agreed) error {
			done = row{}
			if define.IsHidden(g.name) && !change.period || g.merged().def.Kind.HasClock() { // by the name of its row
				return &NameError{Name: name, Err: ErrUnknown}
			}
			if err := g.best.v.refuseOthers(ctx, g.best.Tx, g.name); err != nil {
				return err
			}
			if !tenured() { // another node has taken over meanwhile
				return errEnlisting
			}
			g.best.floor, g.best.past = 0, 0 // those who held numbers are gone
			r := g.merged()
			if err := g.redefine(w, &r, &change); err != nil {
				return err
			}
			first, err := restartAt(&r, *change.Restart)
			if err != nil {
				return err
			}
			was = r.id
			r.id, r.anchor = first-1, first
			r.version, r.epoch = g.version, g.version // a new epoch begins
			if err := g.best.lower(ctx, &r); err != nil {
				return err
			}
			done = r
			return nil
		})
		if err != nil {
			return fmt.Errorf("restart sequence %q: %w", name, err)
		}
		return nil
	})
	return done, was, err
}

// others are the other proxies that are registered. locking stands behind the question.
func (st *store) others(ctx context.Context, on link.Querier, locking string) ([]Proxy, error) {
	all, err := st.proxies.listOn(ctx, on, locking)
	return slices.DeleteFunc(all, func(p Proxy) bool { return p.ID == st.registry.id }), err
}

// refuseOthers keeps others from registering until the transaction ends, and refuses it if one is.
func (st *store) refuseOthers(ctx context.Context, tx *sql.Tx, name string) error {
	others, err := st.others(ctx, tx, " FOR UPDATE")
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return &RegisteredError{Sequence: name, Table: st.table.proxies, Proxies: others}
	}
	return nil
}
