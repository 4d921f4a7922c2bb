package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/limit"
)

// limitBatch is how many limits one statement writes.
const limitBatch = 200

// adoption makes the chosen node the holder. It first writes the claim, a new term: once a node shows it, no window that another
// holder wants counts there any more. When enough nodes show the claim, what they know of wanted windows is all there is, and every
// sequence begins above it. Where the new holder alone is enough both are one transaction, so that whoever knows of the claim knows of
// its windows.
type adoption struct {
	g        *ceilings
	now      *choice
	previous limit.Holder
	local    limit.Holder // the claim that counts on this node, as it was read
	term     uint64
	mine     uint64            // this node's own term so far
	claimed  bool              // an earlier attempt, or another proxy's, has written the claim
	need     int               // nodes that must show the claim, this one included
	first    bool              // nobody was the holder before
	wanted   map[string]uint64 // by each spelling of a name; the highest that any node that was read knows
}

// adopt makes the chosen node the holder of all sequences, unless it is that already as far as name is concerned, and no claim that somebody has seen on another node counts more.
func (g *ceilings) adopt(ctx context.Context, name string, over limit.Holder) error {
	if err := g.adopting.take(ctx); err != nil {
		return fmt.Errorf("wait for an adoption: %w", err)
	}
	defer g.adopting.end()
	conn, err := g.conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for attempt := 1; ; attempt++ {
		err = g.adoptOnce(ctx, conn, name, over)
		if !errors.Is(err, errOvertaken) || !g.mayRetry(ctx, attempt) {
			return err
		}
	}
}

// errOvertaken: what an adoption was prepared from is so no more.
var errOvertaken = fmt.Errorf("another proxy adopts it at the same time: %w", outcomeNotHolder)

// adoptOnce is one attempt of adopt.
func (g *ceilings) adoptOnce(ctx context.Context, conn *sql.Conn, name string, over limit.Holder) (err error) {
	now := g.nodes.current.Load()
	if now == nil {
		return nil // the next attempt goes elsewhere
	}
	if err := g.writable(ctx, conn); err != nil {
		return err
	}
	// The others are read before the node itself, which so has all that they have of it: another proxy may adopt it just now. And what the node knows is read
	// before it is asked whether it may give numbers: what is prepared from then is of a time before any adoption, or there is nothing to do.
	var own limit.Record
	var others []sighting
	for _, sighted := range []bool{false, true} {
		if sighted {
			others = g.sightAll(ctx, now)
		}
		if own, err = g.readRecord(ctx, conn, scope{all: sighted}); err != nil {
			return err
		}
		if ok, err := g.isAdmitted(ctx, conn, now, name); ok && !over.Over(own.Holder()) || err != nil {
			return err // another proxy was faster
		}
	}
	a := &adoption{g: g, now: now, wanted: make(map[string]uint64)}
	if err := a.prepare(own, others, over); err != nil {
		return fmt.Errorf("adopt node %s: %w", now.addr, err)
	}
	if err := a.run(ctx, conn); err != nil {
		return fmt.Errorf("adopt node %s: %w", now.addr, err)
	}
	g.forget()
	return nil
}

// isAdmitted reads whether the node may give numbers of a sequence, its ceiling apart; without a name whether it is the holder at all.
func (g *ceilings) isAdmitted(ctx context.Context, conn *sql.Conn, now *choice, name string) (bool, error) {
	position := uint64(math.MaxUint64)
	if name != "" {
		stored, err := g.readRow(ctx, conn, name)
		if err != nil {
			return false, err
		}
		position = stored.position()
	}
	known, err := g.readRecord(ctx, conn, scope{name: name})
	if err != nil {
		return false, err
	}
	_, ok := known.Admits(now.holder, position)
	return ok, nil
}

// prepare looks at what the nodes know, and decides on the term and on how many nodes must show it. over is a claim that somebody has seen on another node.
func (a *adoption) prepare(own limit.Record, others []sighting, over limit.Holder) error {
	g, n := a.g, len(a.g.nodes.all)
	a.collect(own)
	mine := own.Holder()
	a.previous, a.local = mine, mine
	if mine.ID == a.now.holder {
		a.mine = mine.Term
	}
	elsewhere, at, cluster := limit.Holder{}, "", a.now.cluster != ""
	var away []string
	var missing []sighting
	identities := make(map[string]bool)
	if !cluster {
		identities[a.now.identity] = true
	}
	for _, s := range others {
		if s.err == nil && identities[s.identity] {
			s.err = errSameServer
		}
		if s.err != nil {
			away, missing = append(away, s.addr+": "+s.err.Error()), append(missing, s)
			continue
		}
		a.collect(s.known)
		if top := s.known.Holder(); top.Term != 0 && (a.previous.Term == 0 || top.Over(a.previous)) {
			if a.previous = top; !errors.Is(s.unfit, errElsewhere) {
				elsewhere, at = top, s.addr
			}
		}
		if s.unfit != nil {
			s.err = s.unfit
			missing = append(missing, s)
			continue
		}
		identities[s.identity] = true
	}
	switch {
	case over.Over(a.previous):
		// What this node may still give is below its ceilings. A claim that is not seen would take that away.
		return fmt.Errorf("%s was adopted after it, in term %d, and does not say so any more: %s", over.ID, over.Term, strings.Join(away, "; "))
	case cluster && mine.Term == 0 && elsewhere.Term != 0:
		return fmt.Errorf("%w: what %s has of table %s, it has in a moment, or is no copy", errOvertaken, at, g.table.holder)
	case a.previous.Term == 0 && len(away) > 0 && !cluster:
		return fmt.Errorf("the first time all %d nodes of the sequence server must be there: %s", n, strings.Join(away, "; "))
	case mine.Term == 0 && elsewhere.Term != 0:
		return &UnfitError{
			Server: a.now.addr, Table: g.table.full,
			Finding: fmt.Sprintf("it can be written to and is no copy of the other nodes, where %s holds the sequences", elsewhere.ID),
			Remedy:  "make a node that replicated from the old primary the new one, or restore this one from a copy of it",
		}
	}
	a.first = a.previous.Term == 0
	// In a cluster another holder was another configuration, perhaps of the same nodes.
	a.need = adoptions(n, !cluster && !a.first && a.previous.ID != a.now.holder)
	if cluster && len(identities) < a.need {
		// A claim that too few nodes can show would end the ceilings of the holder before, and
		// begin nothing.
		return &seenError{cluster: true, need: a.need, seen: len(identities), missing: missing}
	}
	a.term = a.previous.Term + 1
	if a.previous == mine && mine.ID == a.now.holder && !mine.Complete {
		a.term, a.claimed = mine.Term, true
	}
	return nil
}

// collect takes note of what a node knows of windows.
func (a *adoption) collect(known limit.Record) {
	for _, l := range known.Limits {
		a.wanted[l.Name] = max(a.wanted[l.Name], l.Wanted)
	}
}

// sightAll reads all that the other nodes have recorded, once each; of a cluster that of all nodes,
// see awaitSeen.
func (g *ceilings) sightAll(ctx context.Context, now *choice) []sighting {
	patience := g.opts.DialTimeout
	if now.cluster != "" {
		patience = min(patience, g.timing.shown) // this node has what they have, or a majority did not have it
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	all := make(chan sighting)
	others := 0
	for _, n := range g.nodes.all {
		if n == now.node && now.cluster == "" {
			continue
		}
		others++
		go func() { // received below
			found := n.look(ctx)
			s := sighting{addr: n.addr, identity: found.who(), err: found.err}
			if now.cluster != "" {
				s.unfit = g.noWitness(now, &found)
			}
			if s.err == nil {
				s.known, s.err = g.readRecord(ctx, n.pool(), scope{all: true})
			}
			all <- s
		}()
	}
	seen := make([]sighting, 0, others)
	for range others {
		seen = append(seen, <-all)
	}
	return seen
}

func (a *adoption) run(ctx context.Context, conn *sql.Conn) error {
	g := a.g
	alone := a.need == 1
	var sequences int
	done := false
	err := g.transact(ctx, func(tx *sql.Tx) (err error) {
		if err := g.leadsTo(ctx, tx, a.now); err != nil {
			return err
		}
		known, err := g.lockRecord(ctx, tx)
		if err != nil {
			return err
		}
		a.collect(known)
		top := known.Holder()
		if top.ID == a.now.holder && top.Complete && (top.Term > a.mine || a.claimed && top.Term == a.term) {
			done = true // another proxy was faster
			return nil
		} else if top.ID != a.local.ID || top.Term != a.local.Term {
			return errOvertaken // it may have been adopted, and another node after it
		} else if a.claimed {
			return nil
		}
		a.term = max(a.term, top.Term+1)
		complete := 0
		if alone {
			complete = 1
		}
		if _, err := tx.ExecContext(ctx, "REPLACE INTO "+g.table.holder+" (`holder`, `term`, `complete`) VALUES ("+a.now.holderSQL()+", ?, ?)", a.term, complete); err != nil {
			return fmt.Errorf("write table %s: %w", g.table.holder, err)
		}
		if alone {
			sequences, err = a.install(ctx, tx)
		}
		return err
	})
	if err != nil || done {
		return err
	}
	seen, err := g.awaitSeen(ctx, a.now, limit.Holder{ID: a.now.holder, Term: a.term}, a.need, scope{all: true}, func(known limit.Record) bool {
		top := known.Holder()
		return top.ID == a.now.holder && top.Term == a.term
	})
	if err != nil {
		return fmt.Errorf("term %d: %w", a.term, err)
	}
	if !alone {
		for _, s := range seen {
			a.collect(s.known)
		}
		err := g.transact(ctx, func(tx *sql.Tx) error {
			if err := g.leadsTo(ctx, tx, a.now); err != nil {
				return err
			}
			known, err := g.lockRecord(ctx, tx)
			if err != nil {
				return err
			}
			if top := known.Holder(); top.ID != a.now.holder || top.Term != a.term {
				return errOvertaken // another proxy began after this one; its term counts
			} else if top.Complete {
				done = true // another proxy was faster
				return nil
			}
			a.collect(known)
			if sequences, err = a.install(ctx, tx); err != nil {
				return err
			}
			_, err = tx.ExecContext(ctx, "UPDATE "+g.table.holder+" SET `complete` = 1 WHERE `holder` = "+a.now.holderSQL()+" AND `term` = ?", a.term)
			return err
		})
		if err != nil || done {
			return err
		}
	}
	a.log(sequences, seen)
	return nil
}

func (a *adoption) log(sequences int, seen []sighting) {
	fields := []zap.Field{
		logfield.Node(a.now.addr), zap.String("holder", a.now.holder), zap.Uint64("term", a.term), zap.Int("sequences", sequences),
		zap.Strings("seen_on", addrsOf(seen)),
	}
	if a.first {
		a.g.log.Info("sequences held by a node", fields...)
		return
	}
	a.g.log.Warn("sequences held by another node",
		append(fields, zap.String("before", a.previous.ID))...)
}

// install writes where each sequence begins under this holder, and returns how many there are.
func (a *adoption) install(ctx context.Context, tx *sql.Tx) (int, error) {
	g := a.g
	counters, err := a.lockCounters(ctx, tx)
	if err != nil {
		return 0, err
	}
	highest := g.seen.Load().max
	windows, lost, err := a.windows(ctx, tx, counters)
	if err != nil {
		return 0, err
	}
	limits := make([]limit.Limit, 0, len(counters))
	for _, c := range counters {
		frozen := c.position == highest // or it has ended
		begin, wanted := c.position, windows[c.name]
		if wanted > 0 {
			begin = max(begin, min(above(wanted), highest))
		}
		if begin != c.position {
			if _, err := tx.ExecContext(ctx, "UPDATE "+g.table.full+" SET `id` = ? WHERE `name` = ?", begin, c.name); err != nil {
				return 0, fmt.Errorf("raise the row of sequence %q to %d: %w", c.name, begin, err)
			}
		}
		l := limit.Limit{Name: c.name, Wanted: max(begin, wanted), Floor: begin}
		if frozen {
			// Where it stands says nothing about what was given, nor about what may be.
			l.Floor = min(above(wanted), highest)
			begin, c.position, l.Wanted = l.Floor, l.Floor, max(l.Floor, wanted)
			if err := a.raiseSaved(ctx, tx, c.name, l.Floor); err != nil {
				return 0, err
			}
		}
		if a.need == 1 {
			// The old window tells how much is used in a while: it was as long as what is left of it, and up to twice that.
			width := (max(wanted, c.position)-c.position)*windowsInHand/windowWidths + 1
			l.Wanted = windowEnd(begin, width, highest)
			l.Granted = l.Wanted
		}
		limits = append(limits, l)
	}
	for _, name := range lost {
		if err := a.restore(ctx, tx, name); err != nil {
			return 0, err
		}
	}
	return len(counters), a.write(ctx, tx, limits)
}

func above(n uint64) uint64 {
	if n == math.MaxUint64 {
		return n
	}
	return n + 1
}

// counter is where the row of a sequence stands.
type counter struct {
	name     string
	position uint64
}

// lockCounters reads all counters. Those that the server finds by the empty name, as somebody may
// have made them by hand, are no sequences.
func (a *adoption) lockCounters(ctx context.Context, tx *sql.Tx) (all []counter, err error) {
	found, err := tx.QueryContext(ctx, "SELECT `name`, CAST(`id` AS CHAR), `name` = '' FROM "+a.g.table.full+" FOR UPDATE")
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", a.g.table.full, err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		var c counter
		var id sql.NullString
		var empty bool
		if err := found.Scan(&c.name, &id, &empty); err != nil {
			return nil, err
		}
		if c.position, err = strconv.ParseUint(id.String, 10, 64); err != nil || empty {
			continue // whoever reserves there is told
		}
		all = append(all, c)
	}
	return all, found.Err()
}

// raiseSaved has a sequence that is frozen, for a change of plans, continue above the windows, too.
func (a *adoption) raiseSaved(ctx context.Context, tx *sql.Tx, name string, floor uint64) error {
	_, err := tx.ExecContext(ctx, "UPDATE "+a.g.table.start+" SET `saved` = GREATEST(`saved`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `saved` IS NOT NULL", floor, name)
	if err != nil && !hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR) {
		return fmt.Errorf("write table %s: %w", a.g.table.start, err)
	}
	return nil
}

// windows are those of the counters, which are locked, by the counters' spelling: the server says which names it takes for one. lost are the names of which
// numbers may have been given and which have no row here: they were dropped, or made so late that this node has not heard of them.
func (a *adoption) windows(ctx context.Context, tx *sql.Tx, counters []counter) (windows map[string]uint64, lost []string, err error) {
	windows = make(map[string]uint64, len(counters))
	for _, c := range counters {
		windows[c.name] = a.wanted[c.name]
	}
	for name, wanted := range a.wanted {
		if _, ok := windows[name]; ok || wanted == 0 {
			continue
		}
		var stored string
		err := tx.QueryRowContext(ctx, "SELECT `name` FROM "+a.g.table.full+" WHERE `name` = ? FOR UPDATE", name).Scan(&stored)
		switch {
		case err == nil:
			windows[stored] = max(windows[stored], wanted)
		case errors.Is(err, sql.ErrNoRows), isNoSuchText(err):
			lost = append(lost, name)
		default:
			return nil, nil, fmt.Errorf("look which sequence is named %q: %w", name, err)
		}
	}
	return windows, lost, nil
}

// restore keeps the numbers of a lost sequence from being given again: by its tombstone, or by a row where it has none.
func (a *adoption) restore(ctx context.Context, tx *sql.Tx, name string) error {
	g, id := a.g, min(above(a.wanted[name]), a.g.seen.Load().max)
	var floor uint64
	err := tx.QueryRowContext(ctx, "SELECT `floor` FROM "+g.table.options+" WHERE `name` = ? FOR UPDATE", name).Scan(&floor)
	switch {
	case err == nil:
		_, err = tx.ExecContext(ctx, "UPDATE "+g.table.options+" SET `floor` = GREATEST(`floor`, CAST(? AS UNSIGNED)) WHERE `name` = ?", id, name)
	case errors.Is(err, sql.ErrNoRows), hasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR):
		_, err = tx.ExecContext(ctx, "INSERT IGNORE INTO "+g.table.full+" (`name`, `id`) VALUES (?, ?)", name, id)
	}
	if err != nil {
		return fmt.Errorf("keep the numbers of sequence %q, whose row is lost: %w", name, err)
	}
	return nil
}

// write replaces the holder's limits by those of the new term.
func (a *adoption) write(ctx context.Context, tx *sql.Tx, limits []limit.Limit) error {
	table := &a.g.table
	if _, err := tx.ExecContext(ctx, "DELETE FROM "+table.limit+" WHERE `giver` = "+a.now.holderSQL()); err != nil {
		return fmt.Errorf("write table %s: %w", table.limit, err)
	}
	if a.now.cluster != "" { // each of its configurations was a holder; this one begins above them
		for _, full := range []string{table.holder, table.limit} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+full+" WHERE `term` < ?", a.term); err != nil {
				return fmt.Errorf("write table %s: %w", full, err)
			}
		}
	}
	for len(limits) > 0 {
		batch := limits[:min(len(limits), limitBatch)]
		limits = limits[len(batch):]
		var text strings.Builder
		text.WriteString("INSERT INTO " + table.limit + " (`name`, `giver`, `term`, `wanted`, `granted`, `floor`) VALUES ")
		args := make([]any, 0, 5*len(batch))
		for i, l := range batch {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString("(?, " + a.now.holderSQL() + ", ?, ?, ?, ?)")
			args = append(args, l.Name, a.term, l.Wanted, l.Granted, l.Floor)
		}
		if _, err := tx.ExecContext(ctx, text.String(), args...); err != nil {
			return fmt.Errorf("write table %s: %w", table.limit, err)
		}
	}
	return nil
}
