package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// Bounds of a restart that goes down.
const (
	restartPatience = 15 * time.Second // for the proxies; a caller's context may be shorter
	restartPoll     = 50 * time.Millisecond
	thawTimeout     = 3 * time.Second
	// thawAfter is when a frozen sequence continues although nobody ended its restart: whoever began it must have died.
	thawAfter = time.Minute
)

// HeldError: a sequence was not restarted and continues where it was, or is not confirmed as an ORDER sequence, because proxies may
// still hold numbers of it.
type HeldError struct {
	Sequence string
	Table    string // "`app`.`sequence_proxy`"
	Proxies  []Proxy
	Several  bool   // each of several sequence servers has that table
	Order    string // what a sequence is after ALTER ... ORDER, for people; empty: it was to be restarted
}

func (e *HeldError) Error() string {
	var text strings.Builder
	what := "is not restarted and continues where it was"
	if e.Order != "" {
		what = e.Order + ": ORDER is not confirmed"
	}
	fmt.Fprintf(&text, "sequence %q %s, because proxies may hold numbers of it: ", e.Sequence, what)
	e.list(&text)
	return text.String()
}

// list writes which proxies those are.
func (e *HeldError) list(text *strings.Builder) {
	for i, p := range e.Proxies {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(text, "%s, registered since %s UTC, ", p.Host, p.Since.Format(time.DateTime))
		remove := fmt.Sprintf("if it is gone for good: DELETE FROM %s WHERE id = '%s'", e.Table, p.ID)
		if e.Several {
			remove += ", on each sequence server"
		}
		switch {
		case p.early():
			fmt.Fprintf(text, "whose last sign of life is %v in the future: the sequence server's clock went back since, and nobody can tell for how long it has been silent "+
				"(set that clock right, and try again; %s)", -p.Silent.Round(100*time.Millisecond), remove)
		case p.Stale():
			fmt.Fprintf(text, "silent for %v (%s)", p.Silent.Round(100*time.Millisecond), remove)
		default:
			fmt.Fprintf(text, "which lives, or did %v ago, and has not confirmed that it gave them up (try again)", max(p.Silent, 0).Round(100*time.Millisecond))
		}
	}
}

// restart has a sequence continue at a lower number.
func (s *Sequences) restart(ctx context.Context, name string, a Alteration) (Altered, error) {
	r, stop := s.requestWithin(ctx, restartPatience)
	defer stop()
	ctx = r.ctx
	s.startFollowing()

	frozen, err := s.servers.freeze(ctx, name, a)
	if err != nil && frozen.name == "" {
		return Altered{}, r.failed(name, err)
	}
	waited := err // of a commit whose outcome is unknown
	if err == nil {
		waited = s.waitForAll(ctx, frozen.version)
	}
	if waited == nil {
		var done row
		if done, waited = s.servers.lower(ctx, frozen, a); waited == nil {
			s.log.Info("sequence restarted", logfield.Sequence(done.name), zap.Uint64("at", done.anchor), zap.Uint64("was", frozen.saved))
			s.seeChanges(ctx)
			return Altered{Next: done.anchor, Cycle: done.def.Cycle}, nil
		}
	}
	// The caller's patience may be over; the sequence must not stay frozen for that.
	after, stopAfter := context.WithTimeoutCause(context.WithoutCancel(ctx), thawTimeout, errPatience)
	defer stopAfter()
	if err := s.servers.thaw(after, frozen.name, frozen.epoch); err != nil {
		s.log.Warn("sequence stays frozen", logfield.Sequence(frozen.name), logfield.Err(err))
	}
	var held *HeldError
	if errors.As(waited, &held) {
		held.Sequence, held.Table = frozen.name, s.servers.first().table.proxies
		return Altered{}, held
	}
	return Altered{}, r.failed(name, waited)
}

// freeze stops everybody who reserves numbers of a sequence, and makes those void that are in memory anywhere. If it fails and returns the row all the same, the outcome of its commit is unknown. The highest id stops
// also those who count in the row themselves: id + n is an error then.
func (v *server) freeze(ctx context.Context, name string, a Alteration) (frozen row, err error) {
	if err := v.needOptions(ctx); err != nil {
		return row{}, err
	}
	err = v.transact(ctx, func(tx *sql.Tx) error {
		frozen = row{}
		r, err := v.lockSequence(ctx, tx, name)
		if err != nil {
			return err
		}
		redefined := r
		if err := v.redefine(&redefined, &a); err != nil {
			return err
		}
		if _, err := restartAt(&redefined, *a.Restart); err != nil {
			return err
		}
		if r.frozen == 0 {
			r.saved, r.frozen = r.id, 1
		}
		r.id = v.seen.Load().max
		if err := v.setID(ctx, tx, &r); err != nil {
			return err
		}
		if err := v.saveAnew(ctx, tx, r.name, &r.entry); err != nil {
			return err
		}
		frozen = r
		return nil
	})
	if err != nil {
		return frozen, fmt.Errorf("freeze sequence %q: %w", name, err)
	}
	return frozen, nil
}

// errUnlisted: a proxy may be registered with nobody but a sequence server that does not answer.
var errUnlisted = errors.New("not all sequence servers say which proxies may hold numbers: try again when they are there, or take out the one that is not")

// waitForProxies returns when every registered proxy obeys the version. If that takes too long it returns a *HeldError without the name.
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
				if p.Stale() {
					stale++
				}
			}
			if len(late) == 0 {
				return nil
			}
			if stale == len(late) {
				return &HeldError{Proxies: late, Several: s.servers.view.Load().several()} // waiting does not help
			}
		}
		if !pause(ctx, restartPoll) {
			if unlisted != nil {
				return unlisted
			}
			if len(late) > 0 && errors.Is(context.Cause(ctx), errPatience) {
				return &HeldError{Proxies: late, Several: s.servers.view.Load().several()}
			}
			return context.Cause(ctx)
		}
	}
}

// errThawed: another restart came in between, or a minute has passed.
var errThawed = errors.New("somebody else ended the restart meanwhile")

// lower lets a frozen sequence go on at the lower number.
func (v *server) lower(ctx context.Context, frozen row, a Alteration) (done row, err error) {
	err = v.transact(ctx, func(tx *sql.Tx) error {
		r, err := v.lockSequence(ctx, tx, frozen.name)
		if err != nil {
			return err
		}
		if r.frozen == 0 || r.epoch != frozen.epoch {
			return errThawed
		}
		if err := v.redefine(&r, &a); err != nil {
			return err
		}
		first, err := restartAt(&r, *a.Restart)
		if err != nil {
			return err
		}
		r.id, r.anchor, r.floor, r.past, r.saved, r.frozen = first-1, first, 0, 0, 0, 0
		if err := v.setID(ctx, tx, &r); err != nil {
			return err
		}
		done = r
		return v.saveEntry(ctx, tx, r.name, &r.entry)
	})
	if err != nil {
		return row{}, fmt.Errorf("restart sequence %q: %w", frozen.name, err)
	}
	return done, nil
}

// thaw lets a sequence that was frozen in the given epoch continue where it was.
func (v *server) thaw(ctx context.Context, name string, epoch uint64) error {
	err := v.transact(ctx, func(tx *sql.Tx) error {
		r, err := v.lockSequence(ctx, tx, name)
		if errors.Is(err, ErrUnknown) {
			return nil // dropped meanwhile
		}
		if err != nil {
			return err
		}
		if r.frozen == 0 || r.epoch != epoch {
			return nil
		}
		r.id, r.saved, r.frozen = r.saved, 0, 0
		if err := v.setID(ctx, tx, &r); err != nil {
			return err
		}
		return v.saveEntry(ctx, tx, r.name, &r.entry)
	})
	if err != nil {
		return fmt.Errorf("let sequence %q continue: %w", name, err)
	}
	return nil
}

// frozen says why a frozen sequence gives nothing, and ends that if it has lasted too long.
func (v *server) frozen(ctx context.Context, r *row) error {
	if r.changing {
		return errPlanChanging
	}
	if time.Duration(r.frozen)*time.Second < thawAfter {
		return errFrozen
	}
	if err := v.thaw(ctx, r.name, r.epoch); err != nil {
		return err
	}
	v.log.Warn("frozen sequence continues", logfield.Sequence(r.name), zap.Uint64("above", r.saved))
	return errRuleChanged // tried again at once
}

// thawLeft does that for sequences of which no proxy takes numbers: applications may count in their rows.
func (s *Sequences) thawLeft(ctx context.Context) {
	ctx, stop := context.WithTimeoutCause(ctx, followTimeout, errPatience) // which Close may wait for
	defer stop()
	w := s.servers.view.Load()
	if w.several() {
		return
	}
	if err := w.members[0].thawAll(ctx); err != nil {
		s.log.Debug("frozen sequences not looked for", logfield.Err(err)) // most have no such table
	}
}

// thawAll lets sequences continue that have been frozen for too long.
func (v *server) thawAll(ctx context.Context) error {
	rows, err := v.pool().QueryContext(ctx, "SELECT o.`name`, "+selectEntry(shapeFull)+" FROM "+v.table.options+" AS o WHERE o.`frozen_at` IS NOT NULL AND o.`name` <> ''")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var left []row
	for rows.Next() {
		r := row{entry: noEntry()}
		if err := rows.Scan(append([]any{&r.name}, r.fields()...)...); err != nil {
			return err
		}
		left = append(left, r)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for i := range left {
		if err := v.frozen(ctx, &left[i]); !errors.Is(err, errFrozen) && !errors.Is(err, errRuleChanged) {
			return err
		}
	}
	return nil
}
