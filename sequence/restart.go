package sequence

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"seqproxy/internal/await"
	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/member"
	"seqproxy/sequence/store"
)

// restart has a sequence continue at a lower number, if no other proxy is registered: one that is
// not gives no numbers.
func (s *Sequences) restart(ctx context.Context, name string, a Alteration) (Altered, error) {
	r, stop := s.requestWithin(ctx, s.timing.confirm)
	defer stop()
	s.startFollowing()

	seen := make(map[*server]member.Tenure)
	for !s.servers.Now().Enlisted(seen, s.timing.tenure) {
		if !await.Pause(r.ctx, s.timing.follow) {
			return Altered{}, r.failed(name, errEnlisting)
		}
	}
	done, was, err := s.servers.Restart(r.ctx, name, a, func() bool { return s.servers.Now().Enlisted(seen, s.timing.tenure) })
	if err != nil {
		if errors.Is(err, link.ErrOutcome) && done.Name != "" {
			s.voidBefore(done.Name, done.Epoch) // it may have begun again
		}
		var others *RegisteredError
		if errors.As(err, &others) {
			return Altered{}, others
		}
		return Altered{}, r.failed(name, err)
	}
	s.voidBefore(done.Name, done.Epoch)
	s.log.Info("sequence restarted", logfield.Sequence(done.Name), zap.Uint64("at", done.Anchor), zap.Uint64("was", was))
	s.seeChanges(r.ctx)
	return Altered{Next: done.Anchor, Cycle: done.Def.Cycle}, nil
}

// Restart lowers the row of a single server in one transaction, in which no other proxy is
// registered. The row comes first: who reserves waits for it, or has reserved before, and so was
// registered before. tenured reports whether all proxies have had the time to register with the
// node in use. Where the outcome is unknown it returns the row as it may be, too.
func (a *servers) Restart(ctx context.Context, name string, change Alteration, tenured func() bool) (done store.Row, was uint64, err error) {
	err = a.Under(ctx, func(w *view) error {
		if w.Several() {
			return define.NeedsOneServer("sequence %q: RESTART ... FORCE", name)
		}
		if err := w.Members[0].Proxies.RemoveDead(ctx); err != nil {
			return err
		}
		err := w.amend(ctx, name, func(g *agreed) error {
			done = store.Row{}
			if define.IsHidden(g.name) && !change.period || g.merged().Def.Kind.HasClock() { // by the name of its row
				return &NameError{Name: name, Err: ErrUnknown}
			}
			if err := g.best.v.RefuseOthers(ctx, g.best.Tx, g.name); err != nil {
				return err
			}
			if !tenured() { // another node has taken over meanwhile
				return errEnlisting
			}
			g.best.Floor, g.best.Past = 0, 0 // those who held numbers are gone
			r := g.merged()
			if err := g.redefine(w, &r, &change); err != nil {
				return err
			}
			first, err := restartAt(&r, *change.Restart)
			if err != nil {
				return err
			}
			was = r.ID
			r.ID, r.Anchor = first-1, first
			r.Version, r.Epoch = g.version, g.version // a new epoch begins
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
