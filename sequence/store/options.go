package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"seqproxy/sequence/define"
	"seqproxy/sequence/kind"
	"seqproxy/sequence/link"
	"seqproxy/sequence/segment"
)

// CreateOptions makes the table for what `name` and `id` cannot say. Its name column has the type
// and the collation of the first table's, so that both compare alike.
//
// `cache` is the typed CACHE n, 0 if adaptive. `floor` is the last number given before a DROP.
// `version` is the last change of this sequence.
const CreateOptions = "CREATE TABLE IF NOT EXISTS %s (`name` %s NOT NULL, `cache` bigint unsigned NOT NULL DEFAULT 0, " +
	"`floor` bigint unsigned NOT NULL DEFAULT 0, " +
	"`increment` bigint unsigned NOT NULL DEFAULT 1, " +
	"`minimum` bigint unsigned NOT NULL DEFAULT 1, " +
	"`maximum` bigint unsigned NOT NULL DEFAULT 0, " + // 0: none
	"`start` bigint unsigned NOT NULL DEFAULT 1, " +
	"`cycle` tinyint NOT NULL DEFAULT 0, " +
	"`comment` varchar(2048) CHARACTER SET utf8mb4 NOT NULL DEFAULT '', " +
	"`owner_schema` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '', " +
	"`owner_table` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '', " +
	"`owner_column` varchar(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '', " +
	"`owner_maximum` bigint unsigned NOT NULL DEFAULT 0, " + // 0: not known
	"`json_safe` tinyint NOT NULL DEFAULT 0, " +
	// the numbers are anchor + k * increment; 0: a tombstone
	"`anchor` bigint unsigned NOT NULL DEFAULT 1, " +
	// numbers up to this one are no longer given from memory
	"`past` bigint unsigned NOT NULL DEFAULT 0, " +
	"`epoch` bigint unsigned NOT NULL DEFAULT 0, " + // moves when all numbers in memory become void
	"`version` bigint unsigned NOT NULL DEFAULT 0, " +
	// in seconds; 0: that of the configuration
	"`outage_cover` bigint unsigned NOT NULL DEFAULT 0, " +
	"`ordered` tinyint NOT NULL DEFAULT 0, " +
	// the clause of CREATE SEQUENCE
	"`kind` varchar(160) CHARACTER SET ascii NOT NULL DEFAULT '', " +
	// the member that gives the numbers of an ORDER sequence; '': the only one
	"`home` char(36) CHARACTER SET ascii NOT NULL DEFAULT '', " +
	"PRIMARY KEY (`name`), KEY `version` (`version`)) ENGINE=InnoDB"

// createVersion makes the table whose one row says which change of definitions was the last. Every
// change writes it, and proxies poll it. No reservation reads it, so none waits for a change.
// `stamp` tells a change from one that was lost and had the same version.
const createVersion = "CREATE TABLE IF NOT EXISTS %s (`one` tinyint NOT NULL DEFAULT 1, " +
	"`version` bigint unsigned NOT NULL DEFAULT 0, `stamp` bigint unsigned NOT NULL DEFAULT 0, " +
	"PRIMARY KEY (`one`)) ENGINE=InnoDB"

// Entry is one row of the options table. A sequence without a row has NoEntry.
type Entry struct {
	Def                        define.Definition // its Name is empty
	Floor, Anchor, Past, Epoch uint64
	Version                    uint64
	// The id of the member that gives the numbers of an ORDER sequence. Empty: the first member,
	// which was the only one when the sequence became ORDER.
	Home string
}

func NoEntry() Entry {
	return Entry{Def: define.Definition{}.Filled(), Anchor: 1}
}

// Tombstone is the entry that DROP leaves.
func Tombstone() Entry {
	e := NoEntry()
	e.Anchor = 0
	return e
}

// Dropped reports whether an entry without a row is a tombstone, or says how far a row had come
// that a fail-over lost. Else somebody has deleted the row.
func (e *Entry) Dropped() bool { return e.Anchor == 0 || e.Floor > e.Past }

// Rule returns the rule of the entry. Its anchor is the lowest that gives the same numbers: a rule
// that is out of date for a moment still counts on from a row that a restart or CYCLE has lowered.
func (e *Entry) Rule() segment.Rule {
	r := segment.Rule{Step: max(e.Def.Increment, 1)}
	if end := e.Def.Limit(math.MaxUint64); end != math.MaxUint64 {
		r.Max = end
	}
	if r.Anchor = max(e.Anchor, 1) % r.Step; r.Anchor == 0 {
		r.Anchor = r.Step
	}
	return r
}

// entryColumn is a column of the options table, and the SQL of its value where there is no row.
type entryColumn struct{ name, absent string }

// entryColumns are the columns of an entry, selected from the options table as o.
var entryColumns = [...]entryColumn{
	{"cache", "0"},
	{"floor", "0"},
	{"increment", "1"},
	{"minimum", "1"},
	{"maximum", "0"},
	{"start", "1"},
	{"cycle", "0"},
	{"comment", "''"},
	{"owner_schema", "''"},
	{"owner_table", "''"},
	{"owner_column", "''"},
	{"owner_maximum", "0"},
	{"json_safe", "0"},
	{"anchor", "1"},
	{"past", "0"},
	{"epoch", "0"},
	{"version", "0"},
	{"outage_cover", "0"},
	{"ordered", "0"},
	{"home", "''"},
	{"kind", "''"}, // the last one: see isUnread
}

// EntryOf selects an entry, whether or not it has a row.
var EntryOf = func() string {
	columns := make([]string, len(entryColumns))
	for i, c := range entryColumns {
		columns[i] = fmt.Sprintf("IFNULL(o.`%s`, %s)", c.name, c.absent)
	}
	return strings.Join(columns, ", ")
}()

// Fields returns the destinations of EntryOf's columns.
func (e *Entry) Fields() []any {
	d := &e.Def
	return []any{
		&d.Cache, &e.Floor, &d.Increment, &d.Min, &d.Max, &d.Start, &d.Cycle, &d.Comment, &d.OwnedBy.Schema, &d.OwnedBy.Table,
		&d.OwnedBy.Column, &d.OwnerMax, &d.JSONSafe, &e.Anchor, &e.Past, &e.Epoch, &e.Version, &d.Cover, &d.Order, &e.Home,
		KindColumn{&d.Kind},
	}
}

// OptionTable is the tables of the options of sequences and of their last change.
type OptionTable struct{ *Schema }

// lock locks and reads a sequence's options. A write first locks the row alone, where a read of a
// missing row would lock the names around it.
func (t OptionTable) lock(ctx context.Context, tx *sql.Tx, name string, e *Entry) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+t.Table.Options+" (`name`) VALUES (?) ON DUPLICATE KEY UPDATE `floor` = `floor`", name); err != nil {
		return fmt.Errorf("lock options: %w", err)
	}
	err := tx.QueryRowContext(ctx, "SELECT "+EntryOf+" FROM "+t.Table.Options+" AS o WHERE o.`name` = ? FOR UPDATE", name).Scan(e.Fields()...)
	if err != nil {
		return fmt.Errorf("read options: %w", err)
	}
	return nil
}

// ServerMicros is the server's clock. Versions and epochs are at least that, so they rise even if
// the table is lost.
const ServerMicros = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)"

// MoveVersion makes all proxies look for changes within a second.
func (t OptionTable) MoveVersion(ctx context.Context, on link.Querier) error {
	_, err := on.ExecContext(ctx, "INSERT INTO "+t.Table.Version+" (`one`, `version`, `stamp`) VALUES (1, "+ServerMicros+", ?) "+
		"ON DUPLICATE KEY UPDATE `version` = GREATEST(`version` + 1, VALUES(`version`)), `stamp` = VALUES(`stamp`)", NewStamp())
	if err != nil {
		return fmt.Errorf("raise the version: %w", err)
	}
	return nil
}

// NewStamp returns the stamp of a new change.
func NewStamp() uint64 { return rand.Uint64() }

// Write writes the options of a sequence that has an entry, under the entry's version.
func (t OptionTable) Write(ctx context.Context, tx *sql.Tx, name string, e *Entry) error {
	d := &e.Def
	_, err := tx.ExecContext(ctx, "UPDATE "+t.Table.Options+" SET `name` = ?, `cache` = ?, `floor` = ?, `increment` = ?, `minimum` = ?, `maximum` = ?, "+
		"`start` = ?, `cycle` = ?, `comment` = ?, `owner_schema` = ?, `owner_table` = ?, `owner_column` = ?, `owner_maximum` = ?, `json_safe` = ?, "+
		"`anchor` = ?, `past` = ?, `epoch` = ?, `version` = ?, `outage_cover` = ?, `ordered` = ?, `home` = ?, `kind` = ? WHERE `name` = ?",
		name, d.Cache, e.Floor, d.Increment, d.Min, d.Max, d.Start, d.Cycle, d.Comment, d.OwnedBy.Schema, d.OwnedBy.Table, d.OwnedBy.Column,
		d.OwnerMax, d.JSONSafe, e.Anchor, e.Past, e.Epoch, e.Version, d.Cover, d.Order, e.Home, KindColumn{&d.Kind}, name)
	if err != nil {
		return fmt.Errorf("write options: %w", err)
	}
	return nil
}

// KindColumn scans and writes a kind as the options table has it.
type KindColumn struct{ *kind.Kind }

// Scan reads a clause. An error concerns one sequence alone, which a newer proxy may have made.
func (k KindColumn) Scan(from any) (err error) {
	switch text := from.(type) {
	case []byte:
		*k.Kind, err = kind.Parse(string(text))
	case string:
		*k.Kind, err = kind.Parse(text)
	default:
		err = fmt.Errorf("%v is no kind of key", from)
	}
	if err != nil {
		return &unreadKind{err}
	}
	return nil
}

// unreadKind: this version does not know the kind of a sequence.
type unreadKind struct{ err error }

func (e *unreadKind) Error() string { return "its kind cannot be read: " + e.err.Error() }

func (e *unreadKind) Unwrap() error { return e.err }

// isUnread reports whether only the kind of a scanned entry is missing, which is its last column.
func isUnread(err error) bool { return errors.As(err, new(*unreadKind)) }

// withUnread returns the finding about a sequence whose kind could not be read, and other errors as
// they are.
func (st *Store) withUnread(name string, err error) error {
	unread := new(unreadKind)
	if !errors.As(err, &unread) {
		return err
	}
	return &link.UnfitError{
		Server: st.At(), Table: st.Table.Options, Finding: fmt.Sprintf("sequence %q: %v", define.ShownName(name), unread),
		Remedy: "update this proxy if a newer one has made it, else correct its `kind`", OfSequence: true,
	}
}

// Value is the clause.
func (k KindColumn) Value() (driver.Value, error) { return k.String(), nil }
