package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"seqproxy/sequence/link"
)

// Defined is what one member knows of a name: its options, or a tombstone.
type Defined struct {
	Name string
	Live bool   // the row exists
	id   uint64 // of the row; 0 if it is frozen
	Entry
}

// All reads all names that a member knows.
func (t OptionTable) All(ctx context.Context, on link.Querier) (all []Defined, err error) {
	seen, err := t.checked(ctx)
	if err != nil {
		return nil, err
	}
	id := "IF(s.`id` > 0 AND s.`id` < " + strconv.FormatUint(seen.Max, 10) + ", s.`id`, 0), "
	ask := []string{
		"SELECT s.`name`, 1, " + id + EntryOf + " FROM " + t.Table.Sequence + " AS s LEFT JOIN " + t.Table.Options + " AS o ON o.`name` = s.`name`",
		"SELECT o.`name`, 0, 0, " + EntryOf + " FROM " + t.Table.Options + " AS o LEFT JOIN " + t.Table.Sequence + " AS s ON s.`name` = o.`name` " +
			"WHERE s.`name` IS NULL",
	}
	for _, text := range ask {
		err := func() error {
			rows, err := on.QueryContext(ctx, text)
			if err != nil {
				return err
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				d := Defined{Entry: NoEntry()}
				if err := rows.Scan(append([]any{&d.Name, &d.Live, &d.id}, d.Fields()...)...); err != nil {
					return fmt.Errorf("sequence %q: %w", d.Name, err)
				}
				all = append(all, d)
			}
			return rows.Err()
		}()
		if err != nil {
			return nil, fmt.Errorf("read the sequences of %s: %w", t.Name(), err)
		}
	}
	return all, nil
}

// Newest returns the last definition of each name, with the highest id.
func Newest(all []Defined) []Defined {
	at := make(map[string]int, len(all))
	kept := all[:0]
	for _, d := range all {
		i, known := at[d.Name]
		switch {
		case !known:
			at[d.Name] = len(kept)
			kept = append(kept, d)
			continue
		case d.Version > kept[i].Version, d.Version == kept[i].Version && d.Live && !kept[i].Live:
			d.id = max(d.id, kept[i].id)
			kept[i] = d
		}
		kept[i].id = max(d.id, kept[i].id)
	}
	return kept
}

// Copy brings the names of a member in line with those of the others, in the transaction that
// starts it: it makes missing rows with the ids that they have there, or with 0 if those are
// frozen, and the start raises them above the floors. Somebody may have made a row by hand since.
// Versions show what is dropped, except to a member that is added: its tombstones come from another
// set of servers, or from an older one.
func (t OptionTable) Copy(ctx context.Context, tx *sql.Tx, theirs []Defined, added bool) error {
	mine, err := t.All(ctx, tx)
	if err != nil {
		return err
	}
	byName := make(map[string]Defined, len(mine))
	for _, d := range mine {
		byName[d.Name] = d
	}
	for i := range theirs {
		d := &theirs[i]
		known, have := byName[d.Name]
		revived := added && d.Live && !known.Live
		if have && !revived && (known.Version > d.Version || known.Version == d.Version && known.Live == d.Live) {
			continue
		}
		if d.Live && !known.Live {
			if _, err := tx.ExecContext(ctx, "INSERT IGNORE INTO "+t.Table.Sequence+" (`name`, `id`) VALUES (?, ?)", d.Name, d.id); err != nil {
				return fmt.Errorf("make the row of %q on %s: %w", d.Name, t.Name(), err)
			}
		}
		if !d.Live && known.Live {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+t.Table.Sequence+" WHERE `name` = ?", d.Name); err != nil {
				return fmt.Errorf("delete the row of %q on %s, which was dropped elsewhere: %w", d.Name, t.Name(), err)
			}
		}
		if d.Version == 0 {
			continue // it has no options
		}
		e := d.Entry
		e.Floor = max(e.Floor, known.Floor)
		if err := t.lock(ctx, tx, d.Name, new(Entry)); err != nil {
			return err
		}
		// The proxies look at this member when its version moves. The entry has the version that
		// they may have seen elsewhere.
		if err := t.MoveVersion(ctx, tx); err != nil {
			return err
		}
		if err := t.Write(ctx, tx, d.Name, &e); err != nil {
			return err
		}
	}
	return nil
}
