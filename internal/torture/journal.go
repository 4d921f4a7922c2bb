package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seqproxy/internal/mysqld"
)

// journalArgs have a server write down every change of a row, in what it has for replicas. id differs in each node of a group, and not in those of a cluster.
func journalArgs(b mysqld.Binary, id int) []string {
	args := []string{"--log-bin=journal", "--binlog-format=ROW", "--binlog-row-image=FULL", "--sync-binlog=0", fmt.Sprintf("--server-id=%d", id)}
	if b.Flavour == mysqld.MySQL {
		args = append(args, "--binlog-rows-query-log-events=ON")
	}
	return args
}

// change is one of a counter's row, by one transaction.
type change struct {
	at            time.Time // in whole seconds, by the clock of the server, which may jump
	sequence      string
	made, deleted bool
	before, after uint64
	split         split  // whose numbers the server had then
	text          string // the statement
}

func (c *change) String() string {
	return fmt.Sprintf("%s (the server's clock) from %d to %d, by %.200s", c.at.Format("15:04:05"), c.before, c.after, strings.Join(strings.Fields(c.text), " "))
}

// journal is the way of all rows of one sequence server.
type journal struct {
	changes []change
	tickets []uint64 // the numbers that rows of the ticket table had, in the order in which they were written
}

// transaction is what one did to rows.
type transaction struct {
	at   time.Time // in whole seconds
	xid  uint64    // what the server calls it; the nodes of a cluster call it the same
	file int       // of its log, from 0; it begins another when it starts
	done []rowChange
}

// transactions reads what a server wrote down, since it was made. It has to be running. Where nodes replicate from each other each is asked for what it changed itself, since rows may
// have gone apart; the nodes of a cluster have one id and are asked for all.
func (s *server) transactions(ctx context.Context) (all []transaction, err error) {
	var base string
	var r binlog
	if err := s.db.QueryRowContext(ctx, "SELECT IFNULL(@@log_bin_basename, ''), @@server_id").Scan(&base, &r.origin); err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	if base == "" {
		return nil, fmt.Errorf("%s writes no binary log", s.name)
	}
	files, err := filepath.Glob(base + ".[0-9]*[0-9]") // beside them MariaDB 11.8 has indexes of GTIDs, .idx
	if err != nil || len(files) == 0 {
		return nil, errors.Join(fmt.Errorf("%s: there is no %s.*", s.name, base), err)
	}
	slices.Sort(files)
	r.tables = func(schema, table string) bool {
		return schema == schemaOfSequences && (table == "sequence" || table == "sequence_member" || table == ticketTable)
	}
	var file int
	r.commit = func(at uint32, xid uint64, done []rowChange) {
		all = append(all, transaction{time.Unix(int64(at), 0), xid, file, done})
	}
	var path string
	for file, path = range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		r.open = nil
		if err := r.read(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

// journal is the way of all rows by what a server wrote down itself.
func (s *server) journal(ctx context.Context) (journal, error) {
	all, err := s.transactions(ctx)
	return journalOf(all), err
}

func journalOf(all []transaction) (j journal) {
	now := split{count: 1}
	for i := range all {
		now = j.add(all[i].at, all[i].done, now)
	}
	return j
}

// add takes in a transaction of a server that has the numbers of a split, and returns which it has afterwards. Of each row only where it stood before and behind it counts.
func (j *journal) add(at time.Time, done []rowChange, now split) split {
	next := now
	var names []string
	whole := make(map[string]*change)
	for _, r := range done {
		row := r.after
		if row == nil {
			row = r.before
		}
		switch r.table {
		case "sequence_member": // one, id, plan, position, count, interleave, block
			if r.after == nil || r.after[4].(uint64) == 0 {
				next = split{count: 1}
				continue
			}
			next = split{position: row[3].(uint64), count: row[4].(uint64)}
			if row[5] != "step" {
				next.block = row[6].(uint64)
			}
		case "sequence": // name, id
			name := row[0].(string)
			c := whole[name]
			if c == nil {
				c = &change{at: at, sequence: name, made: r.before == nil, split: now}
				if r.before != nil {
					c.before = r.before[1].(uint64)
				}
				whole[name] = c
				names = append(names, name)
			}
			if c.deleted = r.after == nil; !c.deleted {
				c.after = r.after[1].(uint64)
			} else {
				c.after = 0
			}
			c.text = r.text
		default:
			if r.after != nil {
				j.tickets = append(j.tickets, r.after[0].(uint64))
			}
		}
	}
	for _, name := range names {
		if c := whole[name]; c.before != c.after || c.made != c.deleted {
			j.changes = append(j.changes, *c)
		}
	}
	return next
}

// journals are those of all members. What is wrong is what nodes of a cluster tell that does not go together.
func (w *world) journals(ctx context.Context) (all []journal, wrong []string, err error) {
	if w.galera() {
		one, wrong, err := w.clusterJournal(ctx)
		return []journal{one}, wrong, err
	}
	for _, m := range w.members {
		nodes := []*server{m}
		if len(w.nodes) > len(w.members) { // a group
			nodes = w.nodes
		}
		var whole journal
		for _, s := range nodes {
			var one journal
			err := eventually(ctx, backWithin, func() (err error) {
				one, err = s.journal(ctx)
				return err
			})
			if err != nil {
				return nil, nil, err
			}
			one.changes = append(slices.Clone(s.before), one.changes...)
			whole.changes, whole.tickets = append(whole.changes, one.changes...), append(whole.tickets, one.tickets...)
		}
		all = append(all, whole)
	}
	return all, nil, nil
}
