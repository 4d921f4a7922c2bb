package torture

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/google/uuid"
)

// kind is a way to take keys.
type kind struct {
	name     string
	sequence string
	n        uint64 // keys at a time
	shard    int    // shard of the session, -1: it wants keys only
	proxy    int    // -1: any proxy; otherwise only this one
	direct   bool   // an application that connects to a sequence server itself
	stepped  bool   // and counts there in steps of the number of servers
	prepared bool   // parameters travel in prepared statements, not in the text
	admin    string // makes the sequence, once on a proxy
	writers  int
	// take asks once for n keys and returns the first. tag is that of the row that it writes.
	take func(ctx context.Context, c *sql.Conn, tag string) (taken, error)
}

// taken is an answer.
type taken struct {
	first uint64    // for a UUID the first eight bytes, by which those of version 7 rise
	text  string    // for a UUID all of it
	dated time.Time // in a key of FORMAT: its time, or only its day
	kept  bool      // the row with the tag is committed
}

// sharedSequences are those whose numbers several sequence servers give; the first three have no
// options. Tickets, and what sets a row back, are for one server.
var sharedSequences = []string{"photos", "users", "videos", "small", ordered, fives, reversed, rotated, sharded, formatted, numbered, timed, random, snow, days, cachedDays}

// plainSequences have rows like those that people make by hand.
var plainSequences = []string{"photos", "users", "videos", "tickets", "again", "lone"}

// kinds are all ways that are tried. New ones go here.
func kinds() []*kind {
	return []*kind{
		{name: "SELECT NEXTVAL", sequence: "photos", n: 1, shard: -1, proxy: -1, writers: 2, take: value("SELECT NEXTVAL('photos')")},
		{name: "SELECT NEXTVAL, prepared", sequence: "photos", n: 1, shard: -1, proxy: -1, prepared: true, writers: 1, take: value("SELECT NEXTVAL(?)", "photos")},
		{name: "LAST_INSERT_ID()", sequence: "photos", n: 1, shard: -1, proxy: -1, writers: 1, take: lastInsertID},
		{name: "NEXTVAL('s', 7)", sequence: "videos", n: 7, shard: -1, proxy: -1, writers: 2, take: value("SELECT NEXTVAL('videos', 7)")},
		{name: "INSERT", sequence: "photos", n: 1, shard: 0, proxy: -1, writers: 1, take: insert("INSERT INTO photos (id, tag) VALUES (NEXTVAL('photos'), ?)", 1)},
		{name: "INSERT, prepared", sequence: "photos", n: 1, shard: 1, proxy: -1, prepared: true, writers: 1, take: insert("INSERT INTO photos (id, tag) VALUES (NEXTVAL('photos'), ?)", 1)},
		{name: "INSERT, rolled back", sequence: "photos", n: 1, shard: 0, proxy: -1, writers: 1, take: rolledBack},
		{name: "filled keys", sequence: "users", n: 3, shard: 0, proxy: -1, writers: 1, take: insert("INSERT INTO users (tag) VALUES (?), (?), (?)", 3)},
		{name: "filled keys, prepared", sequence: "users", n: 3, shard: 1, proxy: -1, prepared: true, writers: 1, take: insert("INSERT INTO users (tag) VALUES (?), (?), (?)", 3)},
		{name: "ticket", sequence: "tickets", n: 1, shard: -1, proxy: -1, writers: 1, take: ticket("UPDATE seqproxy.sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'tickets'")},
		{name: "ticket, direct", sequence: "tickets", n: 1, shard: -1, proxy: -1, direct: true, writers: 1, take: ticket("UPDATE seqproxy.sequence SET id = LAST_INSERT_ID(id + 1) WHERE name = 'tickets'")},
		{name: "ticket table", sequence: "tickets64", n: 1, shard: -1, proxy: -1, writers: 1, take: ticket("REPLACE INTO seqproxy.tickets64 (stub) VALUES ('a')")},
		{name: "ticket table, direct", sequence: "tickets64", n: 1, shard: -1, proxy: -1, direct: true, writers: 1, take: ticket("REPLACE INTO seqproxy.tickets64 (stub) VALUES ('b')")},
		{name: "id + 3, direct", sequence: "photos", n: 1, shard: -1, proxy: -1, direct: true, stepped: true, writers: 2, take: ticket("UPDATE seqproxy.sequence SET id = LAST_INSERT_ID(id + 3) WHERE name = 'photos'")},
		{name: "CACHE 20", sequence: "small", n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS small CACHE 20", writers: 2, take: value("SELECT NEXTVAL('small')")},
		{name: "INCREMENT BY 5", sequence: fives, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + fives + " INCREMENT BY 5", writers: 2, take: value("SELECT NEXTVAL('" + fives + "')")},
		{name: "ORDER", sequence: ordered, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + ordered + " ORDER", writers: 3, take: value("SELECT NEXTVAL('" + ordered + "')")},
		{name: "BIT_REVERSED", sequence: reversed, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + reversed + " BIT_REVERSED", writers: 2, take: value("SELECT NEXTVAL('" + reversed + "')")},
		{name: "SHARD BITS", sequence: sharded, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + sharded + " SHARD BITS 5", writers: 1, take: value("SELECT NEXTVAL('" + sharded + "')")},
		{name: "ROTATE", sequence: rotated, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + rotated + " ROTATE 2 DIGITS 12", writers: 1, take: key(rotated)},
		{name: "FORMAT", sequence: formatted, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + formatted + " FORMAT 'PO-{yyyyMMddHHmmss}-{n:9}'", writers: 1, take: key(formatted)},
		{name: "FORMAT of digits", sequence: numbered, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + numbered + " FORMAT '{yyyyMMdd}{n:9}'", writers: 1, take: key(numbered)},
		{name: "FORMAT with RESET DAILY", sequence: days, n: 1, shard: -1, proxy: -1, admin: createDays(days), writers: 2, take: key(days)},
		{name: "FORMAT with RESET DAILY CACHE 20", sequence: cachedDays, n: 1, shard: -1, proxy: -1, admin: createDays(cachedDays) + " CACHE 20", writers: 1, take: key(cachedDays)},
		{name: "UUID", sequence: timed, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + timed + " UUID", writers: 1, take: key(timed)},
		{name: "UUID VERSION 4 BINARY", sequence: random, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + random + " UUID VERSION 4 BINARY", writers: 1, take: key(random)},
		{name: "SNOWFLAKE", sequence: snow, n: 1, shard: -1, proxy: -1, admin: "CREATE SEQUENCE IF NOT EXISTS " + snow + " SNOWFLAKE", writers: 2, take: value("SELECT NEXTVAL('" + snow + "')")},
		{name: "restarted", sequence: restarted, n: 1, shard: -1, proxy: -1, writers: 3, take: value("SELECT NEXTVAL('" + restarted + "')")},
		{name: "restored", sequence: restored, n: 1, shard: -1, proxy: 0, writers: 1, take: value("SELECT NEXTVAL('" + restored + "')")},
	}
}

// Sequences with a special role.
const (
	ordered    = "ordered"
	fives      = "fives" // servers that count in steps cannot divide it
	restarted  = "again" // begins again by ALTER SEQUENCE ... RESTART ... FORCE
	reversed   = "reversed"
	rotated    = "rotated"
	sharded    = "sharded"
	formatted  = "formatted"
	numbered   = "numbered" // keys of a format that are numbers
	days       = "days"     // their counters begin again with each day, and days are short
	cachedDays = "cached_days"
	timed      = "timed"  // UUIDs that rise within a process
	random     = "random" // UUIDs in any order
	snow       = "snow"   // its keys have a time; servers that divide in steps cannot give them
	restored   = "lone"   // its row is set back, and only one proxy gives its numbers
)

// createDays makes a sequence whose counter begins again with each short day.
func createDays(name string) string {
	return "CREATE SEQUENCE IF NOT EXISTS " + name + " FORMAT '{yyyyMMdd}-{n:9}' TIME ZONE '" + shortDays + "' RESET DAILY"
}

// beginsDaily reports whether the counter of a sequence begins again each day, so that keys rise
// and are distinct by it only within a day.
func beginsDaily(sequence string) bool { return sequence == days || sequence == cachedDays }

// timeOfSnow returns the time in a key of SNOWFLAKE without options.
func timeOfSnow(key uint64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(key>>22) * time.Millisecond)
}

// counterOf returns the counter of a key, by which the keys of a sequence rise and are distinct:
// each counter has one key, but for the shard.
func counterOf(sequence string, key uint64) uint64 {
	switch sequence {
	case reversed:
		return bits.Reverse64(key) >> 1
	case rotated:
		return key%1e10*100 + key/1e10
	case sharded:
		return key & (1<<58 - 1)
	case numbered:
		return key % 1e9
	}
	return key
}

// hasUUIDs reports a sequence without a counter, for which no number is reserved.
func hasUUIDs(sequence string) bool { return sequence == timed || sequence == random }

// value takes a number as the result of a query.
func value(text string, args ...any) func(context.Context, *sql.Conn, string) (taken, error) {
	return func(ctx context.Context, c *sql.Conn, _ string) (t taken, err error) {
		err = c.QueryRowContext(ctx, text, args...).Scan(&t.first)
		return t, err
	}
}

// key takes one key of a sequence.
func key(sequence string) func(context.Context, *sql.Conn, string) (taken, error) {
	return func(ctx context.Context, c *sql.Conn, _ string) (taken, error) {
		return scan(c.QueryRowContext(ctx, "SELECT NEXTVAL('"+sequence+"')"), sequence)
	}
}

// scan reads the key of a sequence; for a text with a counter it returns the counter.
func scan(row *sql.Row, sequence string) (t taken, err error) {
	switch {
	case sequence == formatted:
		t.dated, t.first, err = scanDated(row, "PO-%14s-%9d", "20060102150405")
	case beginsDaily(sequence):
		t.dated, t.first, err = scanDated(row, "%8s-%9d", "20060102")
	case hasUUIDs(sequence):
		if err = row.Scan(&t.text); err != nil {
			return t, err
		}
		id, errParse := uuid.Parse(t.text)
		if sequence == random {
			id, errParse = uuid.FromBytes([]byte(t.text))
		}
		if t.first = binary.BigEndian.Uint64(id[:]); errParse != nil || t.first == 0 {
			err = fmt.Errorf("%w: %q is no UUID of sequence %s: %w", errWrong, t.text, sequence, errParse)
		}
	default:
		err = row.Scan(&t.first)
	}
	return t, err
}

// scanDated reads a key that has a date before its counter.
func scanDated(row *sql.Row, format, layout string) (at time.Time, counter uint64, err error) {
	var text, date string
	if err = row.Scan(&text); err != nil {
		return at, 0, err
	}
	_, err = fmt.Sscanf(text, format, &date, &counter)
	if err == nil {
		at, err = time.Parse(layout, date)
	}
	if err != nil {
		err = fmt.Errorf("%w: %q is no key of a format: %w", errWrong, text, err)
	}
	return at, counter, err
}

// insert takes the keys that rows were stored with.
func insert(text string, rows int) func(context.Context, *sql.Conn, string) (taken, error) {
	return func(ctx context.Context, c *sql.Conn, tag string) (taken, error) {
		args := make([]any, rows)
		for i := range args {
			args[i] = tag
		}
		id, err := insertID(c.ExecContext(ctx, text, args...))
		return taken{first: id, kept: err == nil}, err
	}
}

// ticket takes the insert id of a statement that stores no row.
func ticket(text string) func(context.Context, *sql.Conn, string) (taken, error) {
	return func(ctx context.Context, c *sql.Conn, _ string) (taken, error) {
		id, err := insertID(c.ExecContext(ctx, text))
		return taken{first: id}, err
	}
}

func insertID(r sql.Result, err error) (uint64, error) {
	if err != nil {
		return 0, err
	}
	id, err := r.LastInsertId() // the packet's 64 bits in an int64
	return uint64(id), err
}

// errWrong is an answer that no server gives.
var errWrong = errors.New("wrong answer")

func lastInsertID(ctx context.Context, c *sql.Conn, _ string) (t taken, err error) {
	if err = c.QueryRowContext(ctx, "SELECT NEXTVAL('photos')").Scan(&t.first); err != nil {
		return t, err
	}
	var last uint64
	if err = c.QueryRowContext(ctx, "SELECT LAST_INSERT_ID()").Scan(&last); err == nil && last != t.first {
		err = fmt.Errorf("%w: LAST_INSERT_ID() is %d after NEXTVAL gave %d", errWrong, last, t.first)
	}
	return t, err
}

// rolledBack takes a key whose row is rolled back. The key must not come again.
func rolledBack(ctx context.Context, c *sql.Conn, tag string) (t taken, err error) {
	if _, err = c.ExecContext(ctx, "BEGIN"); err != nil {
		return t, err
	}
	if t.first, err = insertID(c.ExecContext(ctx, "INSERT INTO photos (id, tag) VALUES (NEXTVAL('photos'), ?)", tag)); err != nil {
		_, errBack := c.ExecContext(ctx, "ROLLBACK")
		return t, errors.Join(err, errBack)
	}
	_, err = c.ExecContext(ctx, "ROLLBACK")
	return t, err
}
