package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Why a node does not count as a witness.
var (
	ErrNotShown   = errors.New("it does not show what was written on the primary: replication is behind, stopped, from another server, or leaves the schema out")
	ErrSameServer = errors.New("it is one server with another of the addresses, or has its server_id or server_uuid")
	ErrStranger   = errors.New("it does not show what was written on the primary, and can be written to itself: make it a replica of the primary, and read only")
	ErrNotKept    = errors.New("innodb_flush_log_at_trx_commit is 0 there: its crash would lose what it shows")
	ErrUnflushed  = errors.New("it does not flush at commit: its crash would lose what it shows")
	ErrElsewhere  = errors.New("it is in another configuration of the cluster")
	ErrNotAsked   = errors.New("it was not asked to the end")
)

// Witness is a node that is asked until it shows what was written.
type Witness struct {
	Address string
	Record  Record // what it has shown last
	Err     error  // why it does not count; nil: it shows what was written

	group    *Group
	shows    func(Record) bool
	identity string // empty: not known to count
	writable bool
}

// Looked takes what the node says of itself, or why it does not answer. again is false if it need
// not be asked again.
func (w *Witness) Looked(s *Standing, err error) (again bool) {
	if err == nil {
		err = w.group.noWitness(s)
	}
	if err != nil {
		w.Err = err
	} else {
		w.identity, w.writable = s.Identity, !w.group.Chosen.Cluster && s.Writable
	}
	// A node of a cluster may soon see the configuration.
	return !errors.Is(err, ErrNotKept)
}

// Identified reports whether its record may count.
func (w *Witness) Identified() bool { return w.identity != "" }

// Shown takes the node's record, and reports whether it shows what was written.
func (w *Witness) Shown(record Record) bool {
	w.Record, w.Err = record, ErrNotShown
	switch {
	case w.shows(record):
		w.Err = nil
	case w.writable:
		w.Err = ErrStranger
	}
	return w.Err == nil
}

// noWitness returns why what a node shows does not count; nil if it does.
func (g *Group) noWitness(s *Standing) error {
	switch {
	case !g.Chosen.Cluster && s.Forgets && !g.Relaxed:
		return ErrNotKept
	case !g.Chosen.Cluster:
		return nil
	case s.Apart != "":
		return errors.New(s.Apart)
	case s.Holder != g.Chosen.Holder:
		return ErrElsewhere
	case s.Unflushed != "" && !g.Relaxed:
		return fmt.Errorf("%w (%s)", ErrUnflushed, s.Unflushed)
	}
	return nil
}

// Await waits until need nodes show what the holder h has written, and returns the nodes that were
// looked at. The chosen node counts without a look, unless it belongs to a cluster.
func (g *Group) Await(ctx context.Context, h Holder, need int, of Scope, shows func(Record) bool) (seen []*Witness, err error) {
	identities := make(map[string]bool)
	if !g.Chosen.Cluster {
		identities[g.Chosen.Identity] = true
		need--
	}
	if need <= 0 {
		return nil, nil
	}
	var missing []*Witness
	g.Nodes.Watch(ctx, of, func(address string) *Witness {
		return &Witness{Address: address, Err: ErrNotAsked, group: g, shows: shows}
	}, func(w *Witness) bool {
		if w.Err == nil && identities[w.identity] {
			w.Err = ErrSameServer
		}
		if w.Err != nil {
			missing = append(missing, w)
			return false
		}
		identities[w.identity] = true
		seen = append(seen, w)
		return len(seen) == need
	})
	if len(seen) >= need {
		return seen, nil
	}
	lost := &SeenError{Cluster: g.Chosen.Cluster, Need: need, Seen: len(seen), Missing: missing}
	for _, w := range missing {
		if top := w.Record.Holder(); top.ID != g.Chosen.Holder && top.Over(h) && top.Over(lost.Newer) {
			lost.Newer = top
		}
	}
	return seen, lost
}

func addresses(seen []*Witness) []string {
	all := make([]string, len(seen))
	for i, w := range seen {
		all[i] = w.Address
	}
	return all
}

// SeenError: too few other nodes show what was written, or in a cluster too few nodes.
type SeenError struct {
	Cluster    bool
	Need, Seen int
	Missing    []*Witness
	// the holder on another node that the chosen one lacks; its term is 0 if there is none
	Newer Holder
}

func (e *SeenError) Error() string {
	var text strings.Builder
	nodes, remedy := "other nodes", "have them replicate from the primary; nodes that are gone for good may be taken out of `nodes` of every proxy, "+
		"but not before the log says that the present primary holds the sequences (docs: Groups)"
	if e.Cluster {
		nodes, remedy = "nodes", "have them be members of the cluster that are in step and flush at commit; nodes that are gone for good may be replaced in "+
			"`nodes` of every proxy by others that have joined it (docs: A cluster)"
	}
	fmt.Fprintf(&text, "it is seen on %d %s of the sequence server, and must be on %d", e.Seen, nodes, e.Need)
	for i, w := range e.Missing {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&text, "%s%s: %v", sep, w.Address, w.Err)
	}
	return text.String() + "; to mend it: " + remedy
}

// IsLagging reports whether what was written may still appear: all nodes that lack it answer, and
// none of them has another holder.
func IsLagging(err error) bool {
	lost := new(SeenError)
	return errors.As(err, &lost) && lost.Newer.Term == 0 && !slices.ContainsFunc(lost.Missing, func(w *Witness) bool { return w.Err != ErrNotShown })
}
