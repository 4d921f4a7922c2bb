package limit

import (
	"context"
	"fmt"
)

// Window is a window that was opened, or found open.
type Window struct {
	Granted uint64 // how far the sequence may go; 0: unknown
	First   uint64 // where it stood
	Exact   bool   // the window is for one reservation, as near the end of the sequence
	Found   bool   // another proxy had opened it
	SeenOn  []string
}

// Open raises how far a sequence that reserves n numbers at a time may go, unless another proxy
// did. With closed, a sequence with fewer numbers left gets a window that ends where it stands, so
// that no later holder begins below. With an error, the window says what was granted before.
func (g *Group) Open(ctx context.Context, name string, n uint64, closed bool) (w Window, err error) {
	counter, err := g.Store.Counter(ctx, name, n)
	if err != nil {
		return w, err
	}
	record, err := g.Store.Record(ctx, Scope{Name: name})
	if err != nil {
		return w, err
	}
	position := counter.Position
	l, ok := record.Admits(g.Chosen.Holder, position, counter.End)
	if !ok {
		return w, ErrNotHolder
	}
	w = Window{Granted: l.Granted, First: position}
	width := counter.Width
	end := counter.windowEnd()
	if !counter.Ticks && l.Wanted > l.Granted && l.Wanted >= position+width {
		end = min(l.Wanted, counter.Max) // asked for before: nodes that lag may show it by now
	}
	if !counter.Fits || end-min(position, end) < width {
		if !closed {
			return w, ErrNoRoom
		}
		width, end = 0, position
	}
	if l.Granted >= position+width && (counter.Ticks || !WindowLow(position, width, l.Granted, counter.Max)) {
		w.Found = true
		return w, nil
	}
	holder := record.Holder()
	if err := g.Store.Want(ctx, holder, name, end, position); err != nil {
		return w, err
	}
	seen, err := g.Await(ctx, holder, Confirmations(g.Count), Scope{Name: name}, func(record Record) bool {
		top := record.Holder()
		shown, _ := record.Of(holder.ID)
		return top.ID == holder.ID && top.Term == holder.Term && shown.Term == holder.Term && shown.Wanted >= end
	})
	if err != nil {
		return w, fmt.Errorf("raise the ceiling of sequence %q, which is %d: %w", name, l.Granted, err)
	}
	if err := g.Store.Grant(ctx, holder, name, end); err != nil {
		return w, err
	}
	if record, err = g.Store.Record(ctx, Scope{Name: name}); err != nil {
		return w, err
	}
	if l, ok = record.Admits(g.Chosen.Holder, position, counter.End); !ok || l.Granted < end {
		return w, ErrNotHolder
	}
	w.Granted, w.Exact, w.SeenOn = l.Granted, end-position == width, addresses(seen)
	return w, nil
}
