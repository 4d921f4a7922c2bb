package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/members"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/snowflake"
)

// workerTicks is Sequences as the sequences see it whose keys have a time.
type workerTicks struct{ s *Sequences }

// Go implements [clockedOwner]: who keeps ticks reserved follows changes.
func (o workerTicks) Go(f func(ctx context.Context)) {
	o.s.spawn(func() {
		o.s.startFollowing()
		f(o.s.ctx)
	})
}

// Sleep implements [clockedOwner].
func (o workerTicks) Sleep(d time.Duration) { o.s.sleep(d) }

// Patience implements [clockedOwner].
func (o workerTicks) Patience(ctx context.Context) time.Duration { return o.s.patience(ctx) }

// Create implements [clockedOwner].
func (o workerTicks) Create(ctx context.Context, of CreateOptions) (Created, error) {
	return o.s.Create(ctx, of)
}

// Take implements [clockedOwner].
func (o workerTicks) Take(ctx context.Context, row string, n uint64) (first uint64, err error) {
	for again := true; ; again = false {
		q, err := o.s.findAny(ctx, []byte(row), o.s.patience(ctx))
		if err != nil {
			return 0, err
		}
		first, _, err := q.numbers.Take(ctx, n, time.Time{})
		switch {
		case err == nil:
			return first, nil
		case isAway(o.s.members, row):
			return 0, fmt.Errorf("%w: %w", snowflake.ErrAway, err)
		case !again || !errors.Is(err, ErrUnknown):
			return 0, err
		}
		o.s.forget([]byte(row), q) // somebody has deleted the row; perhaps there is a new one
	}
}

// isAway reports whether the one of several members that gives the ticks of a worker, by the name
// of its row, is left out, and another one is not.
func isAway(m *members.Members, row string) bool {
	w := m.Now()
	return w.Several() && w.AnyLive() && m.Next.Home(&w.Among, row).Away()
}

// ticksOfCover returns how many ticks last for the cover of the sequence of a worker, by the name
// of the worker's row; 0 if this process does not use the sequence.
func (s *Sequences) ticksOfCover(row string) uint64 {
	name, _ := define.WorkerOf(define.ShownName(row))
	if q := s.names.get([]byte(define.CounterName(name))); q != nil && q.clocked != nil {
		return q.clocked.keys.CoverTicks()
	}
	return 0
}

// regainTicks has the caches of workers hold the ticks again in which this process, whose caches
// have ended, gave no key. The next owner of the worker, as this proxy once it is started again,
// need not wait for those to pass.
func (s *Sequences) regainTicks(all []*sequence) {
	for _, q := range all {
		if q.clocked == nil {
			continue
		}
		for _, unused := range q.clocked.keys.Unused() {
			worker := s.names.get([]byte(q.clocked.rowOf(unused.Worker)))
			if worker == nil || !worker.countsTicks() {
				continue
			}
			seg := segment.New(unused.First, unused.Last)
			seg.Plan = s.members.Home(worker.name).Share().Plan
			worker.numbers.Regain(seg)
		}
	}
}
