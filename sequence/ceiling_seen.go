package sequence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"seqproxy/sequence/limit"
)

// sighting is a node other than the chosen one, and what it showed.
type sighting struct {
	addr     string
	identity string
	known    limit.Record
	err      error // why it does not count
	unfit    error // of a node of a cluster that answers: why it could show nothing
}

func addrsOf(seen []sighting) []string {
	addrs := make([]string, len(seen))
	for i, s := range seen {
		addrs[i] = s.addr
	}
	return addrs
}

// seenError: what was written is not seen on enough other nodes, or of a cluster on enough nodes.
type seenError struct {
	cluster    bool
	need, seen int
	missing    []sighting
	claim      limit.Holder // of an adoption that another node knows, and this one does not; its term is 0 if there is none
}

func (e *seenError) Error() string {
	var text strings.Builder
	nodes, remedy := "other nodes", "have them replicate from the primary; nodes that are gone for good may be taken out of `nodes` of every proxy, "+
		"but not before the log says that the present primary holds the sequences"
	if e.cluster {
		nodes, remedy = "nodes", "have them be members of the cluster that are in step and flush at commit; nodes that are gone for good may be replaced in "+
			"`nodes` of every proxy by others that have joined it (docs: Galera and group replication)"
	}
	fmt.Fprintf(&text, "it is seen on %d %s of the sequence server, and must be on %d", e.seen, nodes, e.need)
	for i, s := range e.missing {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&text, "%s%s: %v", sep, s.addr, s.err)
	}
	return text.String() + "; to mend it: " + remedy
}

// isLagging reports whether what was written may be seen yet: all nodes answer that lack it, and none of them has another holder.
func isLagging(err error) bool {
	lost := new(seenError)
	return errors.As(err, &lost) && lost.claim.Term == 0 && !slices.ContainsFunc(lost.missing, func(s sighting) bool { return s.err != errNotShown })
}

// awaitSeen waits until need nodes have what was written under the holder own, and returns those
// that were looked at. The chosen node has it. In a cluster it is looked at as the others are: it
// may not flush, and the choice may be another by now than what was written to. awaitSeen reads
// what they have recorded again and again.
func (g *ceilings) awaitSeen(ctx context.Context, now *choice, own limit.Holder, need int, of scope, ok func(limit.Record) bool) (seen []sighting, err error) {
	identities := make(map[string]bool)
	if now.cluster == "" {
		identities[now.identity] = true
		need--
	}
	if need <= 0 {
		return nil, nil
	}
	ctx, stop := context.WithTimeout(ctx, g.timing.shown)
	defer stop()
	var others []*node
	for _, n := range g.nodes.all {
		if n != now.node || now.cluster != "" {
			others = append(others, n)
		}
	}
	found := make(chan sighting)
	for _, n := range others {
		go func() { found <- g.sight(ctx, now, n, of, ok) }() // each is received below
	}
	missing := []sighting{}
	for range others {
		s := <-found
		switch {
		case s.err == nil && identities[s.identity]:
			s.err = errSameServer
			missing = append(missing, s)
		case s.err == nil:
			identities[s.identity] = true
			if seen = append(seen, s); len(seen) == need {
				stop() // the others end soon
			}
		default:
			missing = append(missing, s)
		}
	}
	if len(seen) < need {
		e := &seenError{cluster: now.cluster != "", need: need, seen: len(seen), missing: missing}
		for _, s := range missing {
			if top := s.known.Holder(); top.ID != now.holder && top.Over(own) && top.Over(e.claim) {
				e.claim = top
			}
		}
		return seen, e
	}
	return seen, nil
}

// sight reads what a node has recorded until that is as wanted or ctx ends.
func (g *ceilings) sight(ctx context.Context, now *choice, n *node, of scope, ok func(limit.Record) bool) sighting {
	s := sighting{addr: n.addr, err: errNotAsked}
	writable := false
	for wait := g.timing.firstLook; ; wait = min(2*wait, g.timing.lastLook) {
		if s.identity == "" {
			switch found := n.look(ctx); {
			case found.err != nil:
				s.err = found.err
			case now.cluster != "" && g.noWitness(now, &found) != nil:
				s.err = g.noWitness(now, &found) // it may hear of the configuration in a moment
			case now.cluster == "" && found.flush == "0" && !g.relaxed:
				s.err = errNotKept
				return s
			default:
				s.identity = found.who()
				writable = now.cluster == "" && found.unwritable() == ""
			}
		}
		if s.identity != "" {
			known, err := g.readRecord(ctx, n.pool(), of)
			if err == nil {
				s.known = known
			}
			switch {
			case err == nil && ok(known):
				s.err = nil
				return s
			case err == nil && writable:
				s.err = errStranger
			case err == nil:
				s.err = errNotShown
			case ctx.Err() == nil:
				s.err = err
			}
		}
		if !pause(ctx, wait) {
			return s
		}
	}
}

// noWitness is why what a node of a cluster shows says nothing, nil if it counts.
func (g *ceilings) noWitness(now *choice, found *standing) error {
	switch {
	case found.apart != "":
		return errors.New(found.apart)
	case found.holder() != now.holder:
		return errElsewhere
	case len(found.unflushed()) > 0 && !g.relaxed:
		return fmt.Errorf("%w (%s)", errUnflushed, flushStatement(found.unflushed()))
	}
	return nil
}

// shownOn returns once need nodes have what was committed on this server before the call, the
// chosen one included: a majority of them makes it survive a fail-over, or a crash of all nodes of
// a cluster. Those that answer may lag for so long. Where there is one node, it returns at once.
func (g *ceilings) shownOn(ctx context.Context, lag time.Duration, need int) error {
	if !g.inForce() {
		return nil
	}
	conn, err := g.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	now := g.nodes.current.Load()
	if now == nil {
		return errUnchosen
	}
	if err := g.writable(ctx, conn); err != nil {
		return err
	}
	if ok, err := g.isAdmitted(ctx, conn, now, ""); err != nil {
		return err
	} else if !ok {
		_ = conn.Close() // an adoption takes others: with as many callers as there are connections they would wait for each other
		if err := g.adopt(ctx, "", limit.Holder{}); err != nil {
			return err
		}
		again, err := g.conn(ctx)
		if err != nil {
			return err
		}
		conn = again
		if err := g.leadsTo(ctx, conn, now); err != nil {
			return err
		}
	}
	// Replicas apply changes in the order of their commits, so one that shows this has all before it.
	if _, err := conn.ExecContext(ctx, "UPDATE "+g.table.holder+" SET `mark` = `mark` + 1 WHERE `holder` = "+now.holderSQL()); err != nil {
		return fmt.Errorf("write table %s: %w", g.table.holder, err)
	}
	known, err := g.readRecord(ctx, conn, scope{})
	if err != nil {
		return err
	}
	marked := known.Holder()
	if marked.ID != now.holder {
		return outcomeNotHolder
	}
	_ = conn.Close() // others may need it meanwhile
	for begin, again := time.Now(), true; again; {
		_, failed := g.awaitSeen(ctx, now, marked, need, scope{}, func(known limit.Record) bool {
			top := known.Holder()
			return top.ID == marked.ID && top.Term == marked.Term && top.Mark >= marked.Mark
		})
		if failed == nil || err == nil || ctx.Err() == nil { // an attempt that was cut off says less than the one before
			err = failed
		}
		again = isLagging(err) && time.Since(begin) < lag && ctx.Err() == nil
	}
	if err != nil {
		return fmt.Errorf("a fail-over could lose what was written: %w", err)
	}
	return nil
}
