package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrOvertaken: the basis of a take-over has changed.
var ErrOvertaken = errors.New("another proxy has it take over at the same time")

// NoCopyError: the chosen node lacks what the others have, and is writable.
type NoCopyError struct{ Holder string }

func (e *NoCopyError) Error() string {
	return fmt.Sprintf("it can be written to and is no copy of the other nodes, where %s holds the sequences", e.Holder)
}

// TakenOver is a take-over; its term is 0 if none was needed.
type TakenOver struct {
	Term      uint64
	Before    string // the previous holder; empty: none
	Sequences int
	SeenOn    []string
}

// takeover makes the chosen node the holder. It first claims a new term: once a node shows that
// term, no window of another holder counts there any more. The windows that enough nodes show then
// are all there are, and every sequence begins above them. If the new holder alone is enough, both
// steps are one transaction, so the term is never seen without its windows.
type takeover struct {
	g        *Group
	previous Holder
	local    Holder // the holder that counts on the chosen node, as it was read
	term     uint64
	mine     uint64 // the chosen node's term so far
	claimed  bool   // an earlier attempt, or another proxy, has claimed the term
	need     int    // nodes that must show it, with the chosen one
	wanted   map[string]uint64
}

// TakeOver is one attempt to make the chosen node the holder of all sequences. It does nothing if
// the node is the holder already, as far as name is concerned, and over, a claim seen on another
// node, does not take precedence.
func (g *Group) TakeOver(ctx context.Context, name string, over Holder) (made TakenOver, err error) {
	// The others are read before the node itself, so the node has all that they have of it: another
	// proxy may be taking it over. The node's record is read before the check whether it may give
	// numbers. So what is prepared is from before any take-over, or there is nothing to do.
	var chosen Record
	var others []Look
	for _, sighted := range []bool{false, true} {
		if sighted {
			others = g.Nodes.Sight(ctx)
		}
		if chosen, err = g.Store.Record(ctx, Scope{All: sighted}); err != nil {
			return made, err
		}
		if ok, err := g.Admitted(ctx, name); ok && !over.Over(chosen.Holder()) || err != nil {
			return made, err // another proxy was faster
		}
	}
	a := &takeover{g: g, wanted: make(map[string]uint64)}
	if err := a.prepare(chosen, others, over); err != nil {
		return made, err
	}
	return a.run(ctx)
}

// prepare decides on the term, and on how many nodes must show it.
func (a *takeover) prepare(chosen Record, others []Look, over Holder) error {
	g, cluster := a.g, a.g.Chosen.Cluster
	a.collect(chosen)
	mine := chosen.Holder()
	a.previous, a.local = mine, mine
	if mine.ID == g.Chosen.Holder {
		a.mine = mine.Term
	}
	elsewhere, at := Holder{}, ""
	var away []string
	var missing []*Witness
	identities := make(map[string]bool)
	if !cluster {
		identities[g.Chosen.Identity] = true
	}
	for i := range others {
		s := &others[i]
		err := s.Err
		if err == nil && identities[s.Identity] {
			err = ErrSameServer
		}
		if err != nil {
			away, missing = append(away, s.Address+": "+err.Error()), append(missing, &Witness{Address: s.Address, Err: err})
			continue
		}
		var unfit error
		if cluster {
			unfit = g.noWitness(&s.Standing)
		}
		a.collect(s.Record)
		if top := s.Record.Holder(); top.Term != 0 && (a.previous.Term == 0 || top.Over(a.previous)) {
			if a.previous = top; !errors.Is(unfit, ErrElsewhere) {
				elsewhere, at = top, s.Address
			}
		}
		if unfit != nil {
			missing = append(missing, &Witness{Address: s.Address, Err: unfit})
			continue
		}
		identities[s.Identity] = true
	}
	switch {
	case over.Over(a.previous):
		// The node may still give numbers below its ceilings. A claim that is not seen would end
		// that.
		return fmt.Errorf("%s took over after it, in term %d, and does not say so any more: %s", over.ID, over.Term, strings.Join(away, "; "))
	case cluster && mine.Term == 0 && elsewhere.Term != 0:
		return fmt.Errorf("%w: what %s has recorded, it has in a moment, or is no copy", ErrOvertaken, at)
	case a.previous.Term == 0 && len(away) > 0 && !cluster:
		return fmt.Errorf("the first time all %d nodes of the sequence server must be there, or be left out of `nodes`: %s", g.Count, strings.Join(away, "; "))
	case mine.Term == 0 && elsewhere.Term != 0:
		return &NoCopyError{Holder: elsewhere.ID}
	}
	// In a cluster another holder is another configuration, perhaps of the same nodes.
	a.need = takeovers(g.Count, !cluster && a.previous.Term != 0 && a.previous.ID != g.Chosen.Holder)
	if cluster && len(identities) < a.need {
		// A claim that too few nodes can show would end the ceilings of the previous holder, and
		// begin nothing.
		return &SeenError{Cluster: true, Need: a.need, Seen: len(identities), Missing: missing}
	}
	a.term = a.previous.Term + 1
	if a.previous == mine && mine.ID == g.Chosen.Holder && !mine.Complete {
		a.term, a.claimed = mine.Term, true
	}
	return nil
}

// collect notes which windows a node shows.
func (a *takeover) collect(record Record) {
	for _, l := range record.Limits {
		wanted := l.Wanted
		if l.Term == 0 && l.Giver == a.g.Chosen.Holder {
			// The chosen node has moved its row there, and gave no numbers by that: the sequence
			// continues there without a gap.
			wanted -= min(wanted, 1)
		}
		a.wanted[l.Name] = max(a.wanted[l.Name], wanted)
	}
}

func (a *takeover) run(ctx context.Context) (made TakenOver, err error) {
	g := a.g
	alone := a.need == 1
	var sequences int
	done := false
	err = g.Store.Transact(ctx, func(tx Tx) error {
		record, err := tx.Lock(ctx)
		if err != nil {
			return err
		}
		a.collect(record)
		top := record.Holder()
		if top.ID == g.Chosen.Holder && top.Complete && (top.Term > a.mine || a.claimed && top.Term == a.term) {
			done = true // another proxy was faster
			return nil
		} else if top.ID != a.local.ID || top.Term != a.local.Term {
			return ErrOvertaken // it may have been taken over, and another node after it
		} else if a.claimed {
			return nil
		}
		a.term = max(a.term, top.Term+1)
		if err := tx.Claim(ctx, Holder{ID: g.Chosen.Holder, Term: a.term, Complete: alone}); err != nil {
			return err
		}
		if alone {
			sequences, err = tx.Install(ctx, a.beginning())
		}
		return err
	})
	if err != nil || done {
		return made, err
	}
	seen, err := g.Await(ctx, Holder{ID: g.Chosen.Holder, Term: a.term}, a.need, Scope{All: true}, func(record Record) bool {
		top := record.Holder()
		return top.ID == g.Chosen.Holder && top.Term == a.term
	})
	if err != nil {
		return made, fmt.Errorf("term %d: %w", a.term, err)
	}
	if !alone {
		for _, s := range seen {
			a.collect(s.Record)
		}
		err := g.Store.Transact(ctx, func(tx Tx) error {
			record, err := tx.Lock(ctx)
			if err != nil {
				return err
			}
			if top := record.Holder(); top.ID != g.Chosen.Holder || top.Term != a.term {
				return ErrOvertaken // another proxy began after this one; its term counts
			} else if top.Complete {
				done = true // another proxy was faster
				return nil
			}
			a.collect(record)
			if sequences, err = tx.Install(ctx, a.beginning()); err != nil {
				return err
			}
			return tx.Complete(ctx, Holder{ID: g.Chosen.Holder, Term: a.term})
		})
		if err != nil || done {
			return made, err
		}
	}
	return TakenOver{Term: a.term, Before: a.previous.ID, Sequences: sequences, SeenOn: addresses(seen)}, nil
}

func (a *takeover) beginning() *Beginning {
	return &Beginning{Holder: a.g.Chosen.Holder, Term: a.term, Open: a.need == 1, Wanted: a.wanted}
}

// Beginning is a new term, and the windows before it.
type Beginning struct {
	Holder string
	Term   uint64
	Open   bool // the holder alone is enough: each sequence gets a window at once
	// by each spelling of a name: the highest on any node that was read
	Wanted map[string]uint64
}

// Of returns the limit of a sequence that earlier holders wanted to take up to wanted, and the new
// position of its row. A row at the end of its column is frozen by a change of members, or has
// ended. It stays there, and says nothing about the numbers given so far or allowed. What is saved
// for it must be above the floor.
func (b *Beginning) Of(c Counter, wanted uint64) (l Limit, position uint64, frozen bool) {
	frozen = c.Position == c.End
	position = c.Position
	if wanted > 0 {
		position = max(position, min(Above(wanted), c.End))
	}
	l = Limit{Name: c.Name, Giver: b.Holder, Term: b.Term, Wanted: max(position, wanted), Floor: position}
	begin, stood := position, c.Position
	if frozen {
		l.Floor = min(Above(wanted), c.End)
		begin, stood, l.Wanted = l.Floor, l.Floor, max(l.Floor, wanted)
	}
	switch {
	case b.Open && c.Ticks:
		l.Wanted = upwards(begin, c.Alone, c.End)
		l.Granted = l.Wanted
	case b.Open:
		// The old window tells how much is used in a while. At least half of it is left. One that is
		// as long as what is left does not grow where fail-overs come one after the other.
		width := (max(wanted, stood)-stood)/windowWidths + 1
		l.Wanted = WindowEnd(begin, width, c.End)
		l.Granted = l.Wanted
	}
	return l, position, frozen
}

// Above returns the next number, if there is one.
func Above(n uint64) uint64 {
	if n == math.MaxUint64 {
		return n
	}
	return n + 1
}
