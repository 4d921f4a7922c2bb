package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	keykind "seqproxy/sequence/kind"
)

// kindClauses are the kinds of keys that are measured. Each has a sequence, and a line in the
// table.
var kindClauses = []string{"", "BIT_REVERSED", "ROTATE 1 DIGITS 18", "SHARD BITS 5", "SNOWFLAKE", "FORMAT 'P-{n:12}'", "FORMAT '{yyyyMMdd}-{n:10}' RESET DAILY", "UUID"}

// plainKind is the line that the others are compared with.
const plainKind = "plain"

func kindLine(clause string) string { return cmp.Or(clause, plainKind) }

func kindSequence(i int) string { return fmt.Sprintf("kind%d", i) }

// createKinds makes a sequence of each kind, whose counters begin with first.
func createKinds(ctx context.Context, db *sql.DB, first int) error {
	for i, clause := range kindClauses {
		create := "CREATE SEQUENCE IF NOT EXISTS " + kindSequence(i) + " " + clause
		if k, err := keykind.Parse(clause); err == nil && k.Counts() {
			create += fmt.Sprintf(" START WITH %d", first)
			if k.Resets() {
				create += " CACHE 1000" // it has NOCACHE else
			}
		}
		if _, err := db.ExecContext(ctx, create); err != nil {
			return fmt.Errorf("a sequence of kind %q: %w", clause, err)
		}
	}
	return nil
}

// kinds compares NEXTVAL of a plain sequence with that of each kind.
func kinds(conns int, pinned bool, given *counters) workload {
	w := load("kinds", "Keys of each kind", conns, pinned)
	w.base = plainKind
	if given.kinds == nil {
		given.kinds = make([]numberSet, len(kindClauses))
	}
	for i, clause := range kindClauses {
		send := text("SELECT NEXTVAL('" + kindSequence(i) + "')")
		w.contenders = append(w.contenders, contender{kindLine(clause), seqproxy, loadNumbers(conns, send, &given.kinds[i], counterOf(clause))})
	}
	return w
}

// counterOf takes the counter of a key out of a result: keys of two counters differ, and counters
// are dense.
func counterOf(clause string) func(c *client) (uint64, error) {
	k, err := keykind.Parse(clause)
	var others atomic.Uint64 // keys whose counters are not dense, or that have none, are only counted
	return func(c *client) (uint64, error) {
		if err != nil {
			return 0, err
		}
		if k.IsText() {
			row, err := c.readRow()
			if err != nil {
				return 0, err
			}
			value, err := textValue(row)
			if err != nil {
				return 0, err
			}
			counter, _, ok := k.Origin(string(value))
			switch {
			case !ok:
				return 0, fmt.Errorf("%q is no key of kind %q", value, clause)
			case !k.Counts(), k.Resets(): // midnight may pass
				return others.Add(1), nil
			}
			return counter, nil
		}
		key, err := numberFromRow(c)
		if err != nil {
			return 0, err
		}
		if k.HasClock() {
			return others.Add(1), nil
		}
		counter, _, ok := k.Counter(key)
		if !ok {
			return 0, fmt.Errorf("%d is no key of kind %q", key, clause)
		}
		return counter, nil
	}
}
