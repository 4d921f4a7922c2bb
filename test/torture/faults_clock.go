package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"seqproxy/internal/mysqld"
)

// clockJumps is the name of the fault. No client may notice it: what it hurts is the clock, by
// which no failure is explained.
const clockJumps = "the clock of a sequence server jumps, and jumps back"

// chooseClocks decides whether clocks can jump. Those of a cluster do not: when its nodes took each
// other for dead is read in their logs (suspicions).
func (w *world) chooseClocks() {
	if w.opts.keysOnly || w.galera() {
		return
	}
	if w.clocks = mysqld.ClockLibrary(); w.clocks == "" {
		w.remarkOn(fmt.Sprintf("NO CLOCK JUMPS: libfaketime is missing (scripts/deps.sh faketime installs it, %s names it)", mysqld.ClockEnv))
	}
}

func (w *world) clocksJump() bool { return w.clocks != "" }

func (s *server) clockPart() part { return part("clock of " + s.name) }

// clockJumped reports whether a clock was not right at a time from since on, or shortly before:
// what had begun may then look as if it were hours old.
func (n *nemesis) clockJumped(since time.Duration) bool {
	var clocks []part
	for _, s := range n.world.nodes {
		clocks = append(clocks, s.clockPart())
	}
	return n.world.trouble.explains(since, n.world.clock.now(), aftermath, clocks...) != ""
}

// jumpClock sets the clock of a sequence server forward or back by minutes to hours, and right
// again soon. Whatever happens to the server, its proxies and its sequences happens meanwhile, too.
func jumpClock(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	s := n.someSequenceServer(rng)
	heal, err := n.hurt(clockJumps, s.clockPart())
	if err != nil {
		return err
	}
	defer heal()
	ahead := between(rng, time.Minute, 5*time.Hour)
	if rng.IntN(3) == 0 {
		ahead = -ahead
	}
	if err := s.jump(ctx, ahead); err != nil {
		return err
	}
	sleep(ctx, between(rng, 0, 5*time.Second))
	return s.jump(ctx, 0)
}

// jump sets the clock of a server, and makes sure that it tells the time so.
func (s *server) jump(ctx context.Context, ahead time.Duration) error {
	const about = 20 * time.Second // the shortest jump is of a minute
	if err := s.SetClock(ahead); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return eventually(ctx, backWithin, func() error { // it may be dead or stopped
		now, err := s.now(ctx)
		if err != nil {
			return err
		}
		if is := time.Until(now); (is - ahead).Abs() > about {
			return fmt.Errorf("the clock of %s is ahead by %v, though it was set to be by %v", s.name, is.Round(time.Second), ahead)
		}
		return nil
	})
}

// now is the time that a server tells.
func (s *server) now(ctx context.Context) (time.Time, error) {
	var micros int64
	if err := s.db.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&micros); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return time.UnixMicro(micros), nil
}
