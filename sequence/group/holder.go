package group

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/sequence/define"
	"seqproxy/sequence/limit"
	"seqproxy/sequence/link"
	"seqproxy/sequence/store"
)

// coversAlone is how many covers of ticks of a worker the new primary of a pair gives alone. After
// them the other node has to be there. A second fail-over before that passes over the rest.
const coversAlone = 8

// takeOverChosen is TakeOver of a node that is writable.
func (g *Ceilings) takeOverChosen(ctx context.Context, name string, over limit.Holder) error {
	if err := g.takingOver.Acquire(ctx); err != nil {
		return fmt.Errorf("wait for a take-over: %w", err)
	}
	defer g.takingOver.Release()
	conn, err := g.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	for attempt := 1; ; attempt++ {
		err = g.takeOverOnce(ctx, conn, name, over)
		if !errors.Is(err, limit.ErrOvertaken) || !g.MayRetry(ctx, attempt) {
			return err
		}
	}
}

// takeOverOnce is one attempt of takeOverChosen.
func (g *Ceilings) takeOverOnce(ctx context.Context, conn *sql.Conn, name string, over limit.Holder) error {
	now := g.Current()
	if now == nil {
		return nil // the next attempt goes elsewhere
	}
	if err := g.Writable(ctx, conn); err != nil {
		return err
	}
	made, err := g.Group(conn, now).TakeOver(ctx, name, over)
	stranger := new(limit.NoCopyError)
	switch {
	case errors.As(err, &stranger):
		err = &link.UnfitError{
			Server: now.Addr, Table: g.Table.Sequence, Finding: stranger.Error(),
			Remedy: "make a node that replicated from the old primary the new one, or restore this one from a copy of it",
		}
	case errors.Is(err, limit.ErrOvertaken):
		err = fmt.Errorf("%w: %w", err, store.OutcomeNotHolder)
	}
	if err != nil {
		return fmt.Errorf("have node %s take over: %w", now.Addr, err)
	}
	if made.Term == 0 {
		return nil // another proxy was faster
	}
	fields := []zap.Field{
		logfield.Node(now.Addr), zap.String("holder", now.Holder), zap.Uint64("term", made.Term), zap.Int("sequences", made.Sequences),
		zap.Strings("seen_on", made.SeenOn),
	}
	if made.Before == "" {
		g.Log.Info("sequences held by a node", fields...)
	} else {
		g.Log.Warn("sequences held by another node", append(fields, zap.String("before", made.Before))...)
	}
	g.recorded.Forget()
	return nil
}

// holderStore is the tables of the chosen node, over one connection.
type holderStore struct {
	*Ceilings
	conn *sql.Conn
	now  *link.Choice
}

// Record implements [limit.Store].
func (h holderStore) Record(ctx context.Context, of limit.Scope) (limit.Record, error) {
	return h.Limits.Read(ctx, h.conn, of)
}

// Counter implements [limit.Store].
func (h holderStore) Counter(ctx context.Context, name string, n uint64) (c limit.Counter, err error) {
	stored, err := h.ReadRow(ctx, h.conn, name)
	if err != nil {
		return c, err
	}
	c = limit.Counter{Name: stored.Name, Position: stored.Position(), Max: stored.Max, End: h.Seen.Load().Max, Ticks: define.IsWorker(stored.Name)}
	if n > 0 {
		c.Width, c.Fits = h.Width(name, c.Position, n)
	}
	return c, nil
}

// Want implements [limit.Store].
func (h holderStore) Want(ctx context.Context, holder limit.Holder, name string, end, position uint64) error {
	_, err := h.conn.ExecContext(ctx, "INSERT IGNORE INTO "+h.Table.Limit+" (`name`, `giver`, `term`, `floor`) "+
		"SELECT s.`name`, h.`holder`, h.`term`, ? FROM "+h.Table.Sequence+" AS s JOIN "+h.Table.Holder+" AS h ON h.`holder` = "+h.now.HolderSQL()+
		" AND h.`term` = ? AND h.`complete` = 1 WHERE s.`name` = ? AND CAST(s.`id` AS UNSIGNED) >= CAST(? AS UNSIGNED)", position, holder.Term, name, position)
	if err == nil {
		_, err = h.conn.ExecContext(ctx, "UPDATE "+h.Table.Limit+" SET `wanted` = GREATEST(`wanted`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `giver` = "+h.now.HolderSQL()+
			" AND `term` = ?", end, name, holder.Term)
	}
	return store.WriteError(h.Table.Limit, err)
}

// Grant implements [limit.Store].
func (h holderStore) Grant(ctx context.Context, holder limit.Holder, name string, end uint64) error {
	_, err := h.conn.ExecContext(ctx, "UPDATE "+h.Table.Limit+" SET `granted` = GREATEST(`granted`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `giver` = "+h.now.HolderSQL()+
		" AND `term` = ? AND `wanted` >= CAST(? AS UNSIGNED)", end, name, holder.Term, end)
	return store.WriteError(h.Table.Limit, err)
}

// Transact implements [limit.Store].
func (h holderStore) Transact(ctx context.Context, f func(limit.Tx) error) error {
	return h.Ceilings.Transact(ctx, func(tx *sql.Tx) error {
		if err := h.LeadsTo(ctx, tx, h.now); err != nil {
			return err
		}
		return f(holderTx{h.Ceilings, tx, h.now})
	})
}

// holderTx is a transaction of a takeover.
type holderTx struct {
	*Ceilings
	tx  *sql.Tx
	now *link.Choice
}

// Lock implements [limit.Tx].
func (t holderTx) Lock(ctx context.Context) (limit.Record, error) { return t.Limits.Lock(ctx, t.tx) }

// Claim implements [limit.Tx].
func (t holderTx) Claim(ctx context.Context, h limit.Holder) error {
	complete := 0
	if h.Complete {
		complete = 1
	}
	_, err := t.tx.ExecContext(ctx, "REPLACE INTO "+t.Table.Holder+" (`holder`, `term`, `complete`) VALUES ("+t.now.HolderSQL()+", ?, ?)", h.Term, complete)
	return store.WriteError(t.Table.Holder, err)
}

// Complete implements [limit.Tx].
func (t holderTx) Complete(ctx context.Context, h limit.Holder) error {
	_, err := t.tx.ExecContext(ctx, "UPDATE "+t.Table.Holder+" SET `complete` = 1 WHERE `holder` = "+t.now.HolderSQL()+" AND `term` = ?", h.Term)
	return store.WriteError(t.Table.Holder, err)
}

// Install implements [limit.Tx].
func (t holderTx) Install(ctx context.Context, b *limit.Beginning) (int, error) {
	counters, err := t.lockCounters(ctx)
	if err != nil {
		return 0, err
	}
	windows, lost, err := t.windows(ctx, b.Wanted, counters)
	if err != nil {
		return 0, err
	}
	covers := make(map[string]uint64)
	limits := make([]limit.Limit, 0, len(counters))
	for _, c := range counters {
		if b.Open && c.Ticks {
			c.Alone = coversAlone * t.coverOf(ctx, c.Name, covers)
		}
		l, position, frozen := b.Of(c, windows[c.Name])
		if position != c.Position {
			if _, err := t.tx.ExecContext(ctx, "UPDATE "+t.Table.Sequence+" SET `id` = ? WHERE `name` = ?", position, c.Name); err != nil {
				return 0, fmt.Errorf("raise the row of sequence %q to %d: %w", c.Name, position, err)
			}
		}
		if frozen {
			if err := t.raiseSaved(ctx, c.Name, l.Floor); err != nil {
				return 0, err
			}
		}
		limits = append(limits, l)
	}
	for _, name := range lost {
		if err := t.restore(ctx, name, b.Wanted[name]); err != nil {
			return 0, err
		}
	}
	return len(counters), t.write(ctx, b.Term, limits)
}

// lockCounters reads all counters.
func (t holderTx) lockCounters(ctx context.Context) (all []limit.Counter, err error) {
	found, err := t.tx.QueryContext(ctx, "SELECT `name`, CAST(`id` AS CHAR) FROM "+t.Table.Sequence+" FOR UPDATE")
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", t.Table.Sequence, err)
	}
	defer func() { _ = found.Close() }()
	for found.Next() {
		c := limit.Counter{End: t.Seen.Load().Max}
		var id sql.NullString
		if err := found.Scan(&c.Name, &id); err != nil {
			return nil, err
		}
		c.Ticks = define.IsWorker(c.Name)
		if c.Position, err = strconv.ParseUint(id.String, 10, 64); err != nil {
			continue // the error comes again at the next reservation
		}
		all = append(all, c)
	}
	return all, found.Err()
}

// coverOf returns how many ticks last for the cover of the sequence of a worker, by the name of the
// worker's row; 0: it is not known. by remembers them by sequence. Where this process does not use
// the sequence, its options tell.
func (t holderTx) coverOf(ctx context.Context, name string, by map[string]uint64) uint64 {
	base, _ := define.WorkerOf(define.ShownName(name))
	ticks, ok := by[base]
	if !ok {
		ticks = t.CoverOf(name)
		e := store.NoEntry()
		if ticks == 0 && t.tx.QueryRowContext(ctx, "SELECT "+store.EntryOf+" FROM "+t.Table.Options+" AS o WHERE o.`name` = ?", define.CounterName(base)).Scan(e.Fields()...) == nil &&
			e.Def.Kind.HasClock() {
			ticks = uint64(cmp.Or(define.CoverOf(&e.Def), define.UsualCover) / e.Def.Kind.Layout().Tick)
		}
		by[base] = ticks
	}
	return ticks
}

// raiseSaved makes a sequence that is frozen for a change of plans continue above the windows, too.
func (t holderTx) raiseSaved(ctx context.Context, name string, floor uint64) error {
	_, err := t.tx.ExecContext(ctx, "UPDATE "+t.Table.PlanStart+" SET `saved` = GREATEST(`saved`, CAST(? AS UNSIGNED)) WHERE `name` = ? AND `saved` IS NOT NULL", floor, name)
	if err != nil && !link.HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR) {
		return fmt.Errorf("write table %s: %w", t.Table.PlanStart, err)
	}
	return nil
}

// windows returns those of the counters, which are locked, by the counters' spelling: the server
// decides which names are equal. lost are the names whose numbers may have been given and that have
// no row here: they were dropped, or made so late that this node has not received them.
func (t holderTx) windows(ctx context.Context, all map[string]uint64, counters []limit.Counter) (windows map[string]uint64, lost []string, err error) {
	windows = make(map[string]uint64, len(counters))
	for _, c := range counters {
		windows[c.Name] = all[c.Name]
	}
	for name, wanted := range all {
		if _, ok := windows[name]; ok || wanted == 0 {
			continue
		}
		var stored string
		err := t.tx.QueryRowContext(ctx, "SELECT `name` FROM "+t.Table.Sequence+" WHERE `name` = ? FOR UPDATE", name).Scan(&stored)
		switch {
		case err == nil:
			windows[stored] = max(windows[stored], wanted)
		case errors.Is(err, sql.ErrNoRows), link.IsNoSuchText(err):
			lost = append(lost, name)
		default:
			return nil, nil, fmt.Errorf("look which sequence is named %q: %w", name, err)
		}
	}
	return windows, lost, nil
}

// restore keeps the numbers of a lost sequence from being given again: by its tombstone, or by a
// row where it has none.
func (t holderTx) restore(ctx context.Context, name string, wanted uint64) error {
	id := min(limit.Above(wanted), t.Seen.Load().Max)
	var floor uint64
	err := t.tx.QueryRowContext(ctx, "SELECT `floor` FROM "+t.Table.Options+" WHERE `name` = ? FOR UPDATE", name).Scan(&floor)
	switch {
	case err == nil:
		_, err = t.tx.ExecContext(ctx, "UPDATE "+t.Table.Options+" SET `floor` = GREATEST(`floor`, CAST(? AS UNSIGNED)) WHERE `name` = ?", id, name)
	case errors.Is(err, sql.ErrNoRows), link.HasCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_FIELD_ERROR):
		_, err = t.tx.ExecContext(ctx, "INSERT IGNORE INTO "+t.Table.Sequence+" (`name`, `id`) VALUES (?, ?)", name, id)
	}
	if err != nil {
		return fmt.Errorf("keep the numbers of sequence %q, whose row is lost: %w", name, err)
	}
	return nil
}

// write replaces the holder's limits by those of the new term.
func (t holderTx) write(ctx context.Context, term uint64, limits []limit.Limit) error {
	table := &t.Table
	if _, err := t.tx.ExecContext(ctx, "DELETE FROM "+table.Limit+" WHERE `giver` = "+t.now.HolderSQL()); err != nil {
		return fmt.Errorf("write table %s: %w", table.Limit, err)
	}
	if t.now.Cluster != "" { // each of its configurations was a holder; this one begins above them
		for _, full := range []string{table.Holder, table.Limit} {
			if _, err := t.tx.ExecContext(ctx, "DELETE FROM "+full+" WHERE `term` < ?", term); err != nil {
				return fmt.Errorf("write table %s: %w", full, err)
			}
		}
	}
	row := "(?, " + t.now.HolderSQL() + ", ?, ?, ?, ?)"
	for some := range slices.Chunk(limits, store.FloorBatch) {
		args := make([]any, 0, 5*len(some))
		for _, l := range some {
			args = append(args, l.Name, term, l.Wanted, l.Granted, l.Floor)
		}
		_, err := t.tx.ExecContext(ctx, "INSERT INTO "+table.Limit+" (`name`, `giver`, `term`, `wanted`, `granted`, `floor`) VALUES "+
			row+strings.Repeat(", "+row, len(some)-1), args...)
		if err != nil {
			return fmt.Errorf("write table %s: %w", table.Limit, err)
		}
	}
	return nil
}
