package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrOvertaken: what a takeover was prepared from is so no more.
var ErrOvertaken = errors.New("another proxy adopts it at the same time")

// NoCopyError: the chosen node does not have what the others have, and can be written to.
type NoCopyError struct{ Holder string }

func (e *NoCopyError) Error() string {
	return fmt.Sprintf("it can be written to and is no copy of the other nodes, where %s holds the sequences", e.Holder)
}

// TakenOver is a takeover that was made; its term is 0 if there was none to make.
type TakenOver struct {
	Term      uint64
	Before    string // the holder before; empty: nobody was it
	Sequences int
	SeenOn    []string
}

// takeover makes the chosen node the holder. It first claims a new term: once a node shows that, no
// window that another holder wants counts there any more. When enough nodes show it, what they know
// of wanted windows is all there is, and every sequence begins above it. Where the new holder alone
// is enough both are one transaction, so that whoever knows of the term knows of its windows.
type takeover struct {
	g        *Group
	previous Holder
	local    Holder // the one that counts on the chosen node, as it was read
	term     uint64
	mine     uint64 // the chosen node's own term so far
	claimed  bool   // an earlier attempt, or another proxy's, has claimed the term
	need     int    // nodes that must show it, the chosen one included
	wanted   map[string]uint64
}

// TakeOver is one attempt to make the chosen node the holder of all sequences, unless it is that
// already as far as name is concerned, and no claim that somebody has seen on another node, over,
// counts more.
func (g *Group) TakeOver(ctx context.Context, name string, over Holder) (made TakenOver, err error) {
	// The others are read before the node itself, which so has all that they have of it: another
	// proxy may take it over just now. And what the node knows is read before it is asked whether
	// it may give numbers: what is prepared from then is of a time before any takeover, or there is
	// nothing to do.
	var own Record
	var others []Look
	for _, sighted := range []bool{false, true} {
		if sighted {
			others = g.Nodes.Sight(ctx)
		}
		if own, err = g.Store.Record(ctx, Scope{All: sighted}); err != nil {
			return made, err
		}
		if ok, err := g.Admitted(ctx, name); ok && !over.Over(own.Holder()) || err != nil {
			return made, err // another proxy was faster
		}
	}
	a := &takeover{g: g, wanted: make(map[string]uint64)}
	if err := a.prepare(own, others, over); err != nil {
		return made, err
	}
	return a.run(ctx)
}

// prepare looks at what the nodes know, and decides on the term and on how many nodes must show it.
func (a *takeover) prepare(own Record, others []Look, over Holder) error {
	g, cluster := a.g, a.g.Chosen.Cluster
	a.collect(own)
	mine := own.Holder()
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
		a.collect(s.Known)
		if top := s.Known.Holder(); top.Term != 0 && (a.previous.Term == 0 || top.Over(a.previous)) {
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
		// What this node may still give is below its ceilings. A claim that is not seen would take
		// that away.
		return fmt.Errorf("%s was adopted after it, in term %d, and does not say so any more: %s", over.ID, over.Term, strings.Join(away, "; "))
	case cluster && mine.Term == 0 && elsewhere.Term != 0:
		return fmt.Errorf("%w: what %s has recorded, it has in a moment, or is no copy", ErrOvertaken, at)
	case a.previous.Term == 0 && len(away) > 0 && !cluster:
		return fmt.Errorf("the first time all %d nodes of the sequence server must be there: %s", g.Count, strings.Join(away, "; "))
	case mine.Term == 0 && elsewhere.Term != 0:
		return &NoCopyError{Holder: elsewhere.ID}
	}
	// In a cluster another holder was another configuration, perhaps of the same nodes.
	a.need = takeovers(g.Count, !cluster && a.previous.Term != 0 && a.previous.ID != g.Chosen.Holder)
	if cluster && len(identities) < a.need {
		// A claim that too few nodes can show would end the ceilings of the holder before, and
		// begin nothing.
		return &SeenError{Cluster: true, Need: a.need, Seen: len(identities), Missing: missing}
	}
	a.term = a.previous.Term + 1
	if a.previous == mine && mine.ID == g.Chosen.Holder && !mine.Complete {
		a.term, a.claimed = mine.Term, true
	}
	return nil
}

// collect takes note of what a node knows of windows.
func (a *takeover) collect(known Record) {
	for _, l := range known.Limits {
		wanted := l.Wanted
		if l.Term == 0 && l.Giver == a.g.Chosen.Holder {
			// The chosen node has moved its row there, and nobody gave numbers by that: the
			// sequence goes on there, and skips none.
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
		known, err := tx.Lock(ctx)
		if err != nil {
			return err
		}
		a.collect(known)
		top := known.Holder()
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
	seen, err := g.Await(ctx, Holder{ID: g.Chosen.Holder, Term: a.term}, a.need, Scope{All: true}, func(known Record) bool {
		top := known.Holder()
		return top.ID == g.Chosen.Holder && top.Term == a.term
	})
	if err != nil {
		return made, fmt.Errorf("term %d: %w", a.term, err)
	}
	if !alone {
		for _, s := range seen {
			a.collect(s.Known)
		}
		err := g.Store.Transact(ctx, func(tx Tx) error {
			known, err := tx.Lock(ctx)
			if err != nil {
				return err
			}
			if top := known.Holder(); top.ID != g.Chosen.Holder || top.Term != a.term {
				return ErrOvertaken // another proxy began after this one; its term counts
			} else if top.Complete {
				done = true // another proxy was faster
				return nil
			}
			a.collect(known)
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

// Beginning is a new term, and what was known of windows before it.
type Beginning struct {
	Holder string
	Term   uint64
	Open   bool // the holder alone is enough: each sequence gets a window at once
	// by each spelling of a name; the highest that any node that was read knows
	Wanted map[string]uint64
}

// Of is the limit of a sequence that any holder before wanted to go up to wanted, and where its row
// is set. A row that stands at the end of its column is frozen for a change of plans, or has ended:
// it stays there, and says nothing about what was given, nor about what may be; what is saved for
// it is to be above the floor.
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
	if b.Open {
		// The old window tells how much is used in a while: it was as long as what is left of it,
		// and up to twice that.
		width := (max(wanted, stood)-stood)*windowsInHand/windowWidths + 1
		l.Wanted = WindowEnd(begin, width, c.End)
		l.Granted = l.Wanted
	}
	return l, position, frozen
}

// Above is the next number, if there is one.
func Above(n uint64) uint64 {
	if n == math.MaxUint64 {
		return n
	}
	return n + 1
}
