package torture

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"seqproxy/internal/await"
	"seqproxy/internal/mysqld"
	"seqproxy/internal/planted"
)

// clockJumps is the name of the fault. No client may notice it: it hurts only the clock, which
// excuses no failure.
const clockJumps = "the clock of a sequence server jumps, and jumps back"

// chooseClocks decides whether clocks can jump. Those of a cluster do not, because its logs show
// when its nodes took each other for dead (suspicions).
func (w *world) chooseClocks() {
	w.settable = hasClock(w.opts.Seqproxy)
	if w.opts.keysOnly {
		return
	}
	if !w.settable {
		w.remarkOn("NO CLOCK OF A PROXY JUMPS: to have one that can be set, seqproxy is built with -tags " + planted.Tag)
	}
	if w.galera() {
		return
	}
	if w.clocks = mysqld.ClockLibrary(); w.clocks == "" {
		w.remarkOn(fmt.Sprintf("NO CLOCK JUMPS: libfaketime is missing (scripts/deps.sh faketime installs it, %s names it)", mysqld.ClockEnv))
	}
}

func (w *world) clocksJump() bool      { return w.clocks != "" }
func (w *world) proxyClocksJump() bool { return w.settable }
func (w *world) allClocksJump() bool   { return w.settable && w.clocks != "" && !w.several() }

func (p *proxy) clockPart() part  { return part(fmt.Sprintf("clock of proxy %d", p.number)) }
func (s *server) clockPart() part { return part("clock of " + s.name) }

// clockJumped reports whether a clock was wrong at a time from since on, or shortly before: a
// change under way may then seem hours old.
func (n *nemesis) clockJumped(since time.Duration) bool {
	var clocks []part
	for _, s := range n.world.nodes {
		clocks = append(clocks, s.clockPart())
	}
	return n.world.trouble.explains(since, n.world.clock.now(), aftermath, clocks...) != ""
}

// jumpClock sets the clock of a sequence server forward or back by minutes to hours, and right
// again soon. Other faults of the server, its proxies and its sequences go on meanwhile.
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
	if (ahead - time.Hour).Abs() < 5*time.Minute {
		// A proxy whose clock is an hour ahead would believe the server, and give no key of
		// SNOWFLAKE for an hour after that.
		ahead += 15 * time.Minute
	}
	if err := s.jump(ctx, ahead); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, 5*time.Second))
	return s.jump(ctx, 0)
}

// jump sets the clock of a server, and checks that the server shows it.
func (s *server) jump(ctx context.Context, ahead time.Duration) error {
	const about = 20 * time.Second // the shortest jump is a minute
	if err := s.SetClock(ahead); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return eventually(ctx, backWithin, func() error { // the server may be dead or stopped
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

// now returns the time that a server shows.
func (s *server) now(ctx context.Context) (time.Time, error) {
	var micros int64
	if err := s.db.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&micros); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", s.name, err)
	}
	return time.UnixMicro(micros), nil
}

// proxyClockJumps is the name of the fault.
const proxyClockJumps = "the clock of a proxy jumps, and jumps back"

// jumpProxyClock sets the clock of a proxy by as much as people and time servers do, and right
// again soon. Keys of FORMAT show it. Those of SNOWFLAKE do not follow, unless the step is small; a
// proxy that starts meanwhile does not give any.
func jumpProxyClock(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	heal, err := n.hurt(proxyClockJumps, p.clockPart())
	if err != nil {
		return err
	}
	defer heal()
	steps := []time.Duration{-time.Second, -20 * time.Second, -time.Hour, -24 * time.Hour, time.Second, time.Hour, 24 * time.Hour}
	if err := n.jump(ctx, p, steps[rng.IntN(len(steps))]); err != nil {
		return err
	}
	await.Pause(ctx, between(rng, 0, 5*time.Second))
	return n.setRight(ctx, p)
}

// setClocksBack makes a machine with everything on it go back in time: a proxy, and the sequence
// servers. The proxy then follows, and gives no key of SNOWFLAKE until all is right again.
func setClocksBack(ctx context.Context, n *nemesis, rng *rand.Rand) error {
	p := n.someProxy(rng)
	parts := []part{p.clockPart()}
	for _, s := range n.world.nodes {
		parts = append(parts, s.clockPart())
	}
	heal, err := n.hurt("all clocks are set back", parts...)
	if err != nil {
		return err
	}
	defer heal()
	back := -[]time.Duration{time.Hour, 24 * time.Hour}[rng.IntN(2)]
	for _, ahead := range []time.Duration{back, 0} {
		for _, s := range n.world.nodes {
			if err := s.jump(ctx, ahead); err != nil {
				return err
			}
		}
		if ahead == 0 {
			break
		}
		if err := n.jump(ctx, p, ahead); err != nil {
			return err
		}
		await.Pause(ctx, between(rng, 5*time.Second, 13*time.Second)) // it checks every ten
	}
	return n.setRight(ctx, p)
}

// jump sets the clock of a proxy, and checks that its keys show it.
func (n *nemesis) jump(ctx context.Context, p *proxy, ahead time.Duration) error {
	if err := p.setClock(ahead); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return eventually(ctx, backWithin, func() error { // the proxy may be dead or stopped
		o, err := n.probe(ctx, p, formatted)
		n.world.quiet.took(o)
		if err != nil {
			return err
		}
		return near(o.dated, time.Now().Add(ahead), "FORMAT", p)
	})
}

// setRight sets the clock of a proxy right, and waits until it gives keys of the present time.
func (n *nemesis) setRight(ctx context.Context, p *proxy) error {
	if err := n.jump(ctx, p, 0); err != nil || !slices.Contains(n.world.sequences(), snow) {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	return eventually(ctx, backWithin, func() error {
		o, err := n.probe(ctx, p, snow)
		n.world.quiet.took(o)
		if err != nil {
			return err
		}
		return near(timeOfSnow(o.first), time.Now(), "SNOWFLAKE", p)
	})
}

// near returns an error if the time in a key is not about that of the proxy's clock.
func near(is, want time.Time, what string, p *proxy) error {
	if is.Sub(want).Abs() > 15*time.Second {
		return fmt.Errorf("proxy %d: a key of %s has the time %v, and its clock says %v", p.number, what, is, want)
	}
	return nil
}

// setClock sets how far the clock of a proxy is ahead of the machine's, also for later processes.
func (p *proxy) setClock(ahead time.Duration) error {
	next := p.clock + ".next"
	err := os.WriteFile(next, []byte(ahead.String()), 0o600)
	if err == nil {
		err = os.Rename(next, p.clock)
	}
	if err != nil {
		return fmt.Errorf("set the clock of proxy %d: %w", p.number, err)
	}
	return nil
}

// hasClock reports whether the clock of a program can be set: see package planted.
func hasClock(program string) bool {
	info, err := buildinfo.ReadFile(program)
	return err == nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), planted.Tag)
	})
}
