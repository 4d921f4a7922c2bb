package torture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Each node of a Galera cluster writes down all that is committed, whoever began it, under the number that it has in the one order on which the nodes agree. What failed certification is in no log. What
// was certified has reached every node of the primary component before one of them commits it, so that none is alone with it. One that is killed commits when it starts again what it had written down, and
// has the others tell it what it missed: here always from what they have kept of it, never by a copy of their data, which would be a hole in its log. One that is cut off or expelled commits nothing
// until it is back. Where all are gone, the one that has come furthest has what any of them had committed; they have to begin again with that one, and mysqld.BootstrapCluster does. So of a cluster that
// is whole all nodes have written down the same, from the first row to where their rows stand. That is what is demanded of them.

// agreeWithin is how long the nodes of a cluster that is whole may take to have written down the same: a statement that nobody waits for any more may still be on its way.
const agreeWithin = healWithin

// errDiffer: the nodes of the cluster have written down different things.
var errDiffer = errors.New("the nodes differ")

// clusterJournal is what the nodes of the cluster have all written down. What is wrong is how they differ, from each other and from their rows.
func (w *world) clusterJournal(ctx context.Context) (j journal, wrong []string, err error) {
	names, logs := make([]string, len(w.nodes)), make([][]transaction, len(w.nodes))
	err = eventually(ctx, agreeWithin, func() (err error) {
		if err := w.together(ctx); err != nil {
			return err
		}
		for i, s := range w.nodes {
			if names[i] = s.name; err == nil {
				logs[i], err = s.transactions(ctx)
			}
		}
		if err != nil {
			return err
		}
		all, found := agree(names, logs)
		j = journalOf(all)
		for _, s := range w.nodes {
			rows, err := s.rows(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if err := whole(j.changes, rows); err != nil {
				found = append(found, fmt.Sprintf("what was written down is not the way of the rows of %s: %v", s.name, err))
			}
		}
		if wrong = nil; len(found) == 0 {
			return nil
		}
		for _, text := range few(found) {
			wrong = append(wrong, "GAP: "+text)
		}
		return errDiffer
	})
	if errors.Is(err, errDiffer) {
		err = nil
	}
	return j, wrong, err
}

// agree brings together what nodes have written down, in the order of the cluster. What is wrong is what not all of them have, and have alike.
func agree(names []string, logs [][]transaction) (all []transaction, wrong []string) {
	by := make([]map[uint64]*transaction, len(logs))
	numbers := make(map[uint64]bool)
	for i, log := range logs {
		kept, misplaced := keptOf(log)
		for k := range misplaced {
			wrong = append(wrong, fmt.Sprintf("%s has written down out of turn: %v", names[i], &misplaced[k]))
		}
		by[i] = make(map[uint64]*transaction)
		for k := range kept {
			by[i][kept[k].xid] = &kept[k]
			numbers[kept[k].xid] = true
		}
	}
	for _, xid := range slices.Sorted(maps.Keys(numbers)) {
		var first *transaction
		var have, lack []string
		for i, name := range names {
			t := by[i][xid]
			if t == nil {
				lack = append(lack, name)
				continue
			}
			if have = append(have, name); first == nil {
				first = t
			} else if !t.same(first) {
				wrong = append(wrong, fmt.Sprintf("%s has written down %v, and %s %v", have[0], first, name, t))
			}
		}
		if len(lack) > 0 {
			wrong = append(wrong, fmt.Sprintf("only %s has written down %v, and %s has not", strings.Join(have, " and "), first, strings.Join(lack, " and ")))
		}
		all = append(all, *first)
	}
	return all, wrong
}

// keptOf is what a node has written down and not taken back. From the end of a file, where it was killed, it may take back what it had not committed; it is told of that again, and writes it down
// in the next file. Else what it writes down is in the order of the cluster, or misplaced.
func keptOf(log []transaction) (kept, misplaced []transaction) {
	for i := range log {
		t := &log[i]
		at, _ := slices.BinarySearchFunc(kept, t.xid, func(one transaction, xid uint64) int { return cmp.Compare(one.xid, xid) })
		if t.xid == 0 || at < len(kept) && kept[len(kept)-1].file == t.file {
			misplaced = append(misplaced, *t)
			continue
		}
		kept = append(kept[:at], *t)
	}
	return kept, misplaced
}

// same reports whether two nodes have written down the same changes.
func (t *transaction) same(other *transaction) bool {
	return slices.EqualFunc(t.done, other.done, func(a, b rowChange) bool {
		return a.table == b.table && slices.Equal(a.before, b.before) && slices.Equal(a.after, b.after)
	})
}

func (t *transaction) String() string {
	var changes []string
	for i := range t.done {
		r := &t.done[i]
		changes = append(changes, fmt.Sprintf("%s %v to %v", r.table, r.before, r.after))
	}
	return fmt.Sprintf("transaction %d of %s (%s)", t.xid, t.at.Format("15:04:05"), strings.Join(few(changes), ", "))
}
