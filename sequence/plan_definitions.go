package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"seqproxy/sequence/link"
)

// defined is what one member knows of a name: its options, or a tombstone.
type defined struct {
	name string
	live bool   // there is a row
	id   uint64 // of the row; 0 if it is frozen
	entry
}

// all reads all names that a member knows.
func (t optionTable) all(ctx context.Context, on link.Querier) (all []defined, err error) {
	seen, err := t.checked(ctx)
	if err != nil {
		return nil, err
	}
	id := "IF(s.`id` > 0 AND s.`id` < " + strconv.FormatUint(seen.max, 10) + ", s.`id`, 0), "
	ask := []string{
		"SELECT s.`name`, 1, " + id + entryOf + " FROM " + t.table.full + " AS s LEFT JOIN " + t.table.options + " AS o ON o.`name` = s.`name`",
		"SELECT o.`name`, 0, 0, " + entryOf + " FROM " + t.table.options + " AS o LEFT JOIN " + t.table.full + " AS s ON s.`name` = o.`name` " +
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
				d := defined{entry: noEntry()}
				if err := rows.Scan(append([]any{&d.name, &d.live, &d.id}, d.fields()...)...); err != nil {
					return err
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

// newest keeps of each name what was defined last, with the highest id.
func newest(all []defined) []defined {
	at := make(map[string]int, len(all))
	kept := all[:0]
	for _, d := range all {
		i, known := at[d.name]
		switch {
		case !known:
			at[d.name] = len(kept)
			kept = append(kept, d)
			continue
		case d.version > kept[i].version, d.version == kept[i].version && d.live && !kept[i].live:
			d.id = max(d.id, kept[i].id)
			kept[i] = d
		}
		kept[i].id = max(d.id, kept[i].id)
	}
	return kept
}

// copy brings the names of a member in line with what the others know, in the
// transaction that starts it: rows that it lacks are made where they stand there, or at 0 if they
// are frozen, which the start raises above the floors. Somebody may have made one by hand since
// those were read. Versions say what is dropped, but for a member that is added: its tombstones
// come from another set of servers, or from an older one.
func (t optionTable) copy(ctx context.Context, tx *sql.Tx, theirs []defined, added bool) error {
	mine, err := t.all(ctx, tx)
	if err != nil {
		return err
	}
	own := make(map[string]defined, len(mine))
	for _, d := range mine {
		own[d.name] = d
	}
	for i := range theirs {
		d := &theirs[i]
		known, have := own[d.name]
		revived := added && d.live && !known.live
		if have && !revived && (known.version > d.version || known.version == d.version && known.live == d.live) {
			continue
		}
		if d.live && !known.live {
			if _, err := tx.ExecContext(ctx, "INSERT IGNORE INTO "+t.table.full+" (`name`, `id`) VALUES (?, ?)", d.name, d.id); err != nil {
				return fmt.Errorf("make the row of %q on %s: %w", d.name, t.Name(), err)
			}
		}
		if !d.live && known.live {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+t.table.full+" WHERE `name` = ?", d.name); err != nil {
				return fmt.Errorf("delete the row of %q on %s, which was dropped elsewhere: %w", d.name, t.Name(), err)
			}
		}
		if d.version == 0 {
			continue // it has no options
		}
		e := d.entry
		e.floor = max(e.floor, known.floor)
		if err := t.lock(ctx, tx, d.name, new(entry)); err != nil {
			return err
		}
		// The proxies look at this member when its version moves. The entry keeps the one that they
		// may have seen elsewhere.
		if err := t.moveVersion(ctx, tx); err != nil {
			return err
		}
		if err := t.write(ctx, tx, d.name, &e); err != nil {
			return err
		}
	}
	return nil
}
