package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"seqproxy/protocol"
)

// Highest is the greatest number in a column of a table on one shard.
type Highest struct {
	Shard string
	Table string // "album0.photos"; "" if Err is not about one table
	Value uint64 // 0 if there are no rows
	// Given is the last number that AUTO_INCREMENT may have given, perhaps to a row that was deleted.
	// It is 0 if that is not above Value.
	Given uint64
	Type  string // of the column, as information_schema writes it
	Limit uint64 // the greatest number that the column's type can store
	Err   error  // why Value could not be read
}

// Expression returns, in SQL, the number to compare for each value of a column, and a condition for
// the rows that count. An empty number means the values themselves, in all rows.
type Expression func(column string) (number, condition string)

// highestTimeout bounds the reading of all tables of one shard. An index that begins with the
// column makes it quick. Without one, or if the number is worked out of each value, all rows are
// read. The server itself ends a statement then, so that none runs on there.
const highestTimeout = 30 * time.Second

// highestAnswer is for the server's answer that it has ended a statement.
const highestAnswer = 5 * time.Second

// The servers' errors for a statement that took too long.
const (
	tookTooLong        = 3024
	tookTooLongMariaDB = 1969
)

// errUnseen is the Err of a table that another account of the proxy sees, and the user does not.
var errUnseen = errors.New("the user may not see this table: GRANT SELECT on it, or name one schema (OWNED BY schema.table.column)")

// Highest reads the greatest number in a column on every shard. Rows that are not committed yet
// count, too. Without a schema, every table of that name counts. A table that the user does not see
// is an error there if an account of Lookers sees it, as it may have greater numbers. If the user
// sees no such column at all, Highest returns nothing. creds returns the credentials for a shard,
// or why there are none. Without of, Highest reads only the columns' types, which may be any.
func (r *Routes) Highest(ctx context.Context, creds func(*Shard) (Credentials, error), schema, table, column string, of Expression) []Highest {
	found := make([][]Highest, len(r.shards))
	var wg sync.WaitGroup
	for i, shard := range r.shards {
		wg.Go(func() {
			login, err := creds(shard)
			if err == nil {
				found[i], err = r.highestOn(ctx, shard, login, Column{schema, table, column}, of, highestTimeout)
			}
			if err != nil {
				found[i] = append(found[i], Highest{Shard: shard.name, Err: err})
			}
		})
	}
	wg.Wait()
	all := slices.Concat(found...)
	if !slices.ContainsFunc(all, func(h Highest) bool { return !errors.Is(h.Err, errUnseen) }) {
		return nil
	}
	return all
}

func (r *Routes) highestOn(ctx context.Context, shard *Shard, login Credentials, column Column, of Expression, limit time.Duration) (all []Highest, err error) {
	seen := make(map[string]bool)
	end := time.Now().Add(limit)
	err = r.lookFor(ctx, shard, login, column, func(c *Conn, name, typ string, row [][]byte) {
		seen[name] = true
		h := Highest{Shard: shard.name, Table: name, Type: typ, Limit: integerLimit(typ)}
		switch {
		case of == nil:
		case h.Limit == 0:
			h.Err = fmt.Errorf("column %s is of the type %s, which is no integer: want a BIGINT", row[2], typ)
		default:
			h.Value, h.Err = greatest(c, row[0], row[1], row[2], of, end)
			if h.Err == nil && isAutoIncrement(row[4]) {
				h.Given, h.Err = given(c, row[0], row[1], h.Value, h.Limit)
			}
		}
		all = append(all, h)
	})
	if err != nil {
		return nil, err
	}
	for _, other := range r.Lookers(shard) {
		if other == login {
			continue
		}
		err := r.lookFor(ctx, shard, other, column, func(_ *Conn, name, _ string, _ [][]byte) {
			if !seen[name] {
				seen[name] = true
				all = append(all, Highest{Shard: shard.name, Table: name, Err: errUnseen})
			}
		})
		if err != nil && !errors.As(err, new(*protocol.ServerError)) {
			return nil, err
		}
	}
	return all, nil
}

// lookFor calls found for each table on a shard that has the column, as an account sees them. name
// is the table's with its schema. row is schema, table, column, the column's type and its
// EXTRA. What found reads on c counts rows that are not committed.
func (r *Routes) lookFor(ctx context.Context, shard *Shard, login Credentials, column Column, found func(c *Conn, name, typ string, row [][]byte)) error {
	c, err := r.DialSecond(ctx, Place{shard: shard, node: shard.primary()}, login)
	if err != nil {
		return err
	}
	defer c.Quit()
	defer context.AfterFunc(ctx, c.Abort)()
	if err := c.SetDeadline(time.Now().Add(highestTimeout + highestAnswer)); err != nil {
		return fmt.Errorf("shard %s: %w", shard.name, err)
	}
	// A running transaction may commit its rows in a moment, so they count.
	if err := c.Command(protocol.ComQuery, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"); err != nil {
		return fmt.Errorf("shard %s: %w", shard.name, err)
	}
	if !c.Hello.MariaDB {
		// MySQL 8 shows an AUTO_INCREMENT of yesterday otherwise. MySQL 5.7 ignores the comment.
		if err := c.Command(protocol.ComQuery, "SET @seqproxy = NULL /*!80000 , SESSION information_schema_stats_expiry = 0 */"); err != nil {
			return fmt.Errorf("shard %s: %w", shard.name, err)
		}
	}
	rows, err := c.Query("SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.EXTRA " + column.tables() + " ORDER BY 1, 2 LIMIT " + strconv.Itoa(maxOwningTables+1))
	if err != nil {
		return fmt.Errorf("shard %s: look for the column: %w", shard.name, err)
	}
	if len(rows) > maxOwningTables {
		return fmt.Errorf("shard %s has more than %d tables %s with a column %s: name the schema", shard.name, maxOwningTables, column.Table, column.Column)
	}
	for _, row := range rows {
		found(c, string(row[0])+"."+string(row[1]), string(row[3]), row)
	}
	return nil
}

// maxOwningTables bounds the tables of one name that are read on one shard.
const maxOwningTables = 1000

// greatest has the server end the statement at end.
func greatest(c *Conn, schema, table, column []byte, of Expression, end time.Time) (uint64, error) {
	what, wayOut := fmt.Sprintf("MAX(%s) FROM %s.%s", quoted(column), quoted(schema), quoted(table)), "the column needs an index that begins with it"
	if number, condition := of(quoted(column)); number != "" {
		what = fmt.Sprintf("MAX(%s) FROM %s.%s WHERE %s", number, quoted(schema), quoted(table), condition)
		wayOut = "each row has to be read for this kind of keys. Read SELECT " + what + " yourself, and say a number above it: START WITH, or ALTER SEQUENCE ... RESTART WITH; " +
			"in place of OWNED BY, [[bind]] names the column without reading it"
	}
	left := max(time.Until(end), time.Millisecond)
	text := fmt.Sprintf("SELECT /*+ MAX_EXECUTION_TIME(%d) */ %s", left.Milliseconds(), what)
	if c.Hello.MariaDB {
		text = fmt.Sprintf("SET STATEMENT max_statement_time = %.3f FOR SELECT %s", left.Seconds(), what)
	}
	rows, err := c.Query(text)
	if said := new(protocol.ServerError); errors.As(err, &said) && (said.Code == tookTooLong || said.Code == tookTooLongMariaDB) {
		return 0, fmt.Errorf("the greatest key was not read in %v, which is for all tables of a shard: %s", highestTimeout, wayOut)
	}
	if err != nil {
		return 0, fmt.Errorf("read the greatest key: %w", err)
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, fmt.Errorf("MAX() gave no row")
	}
	value := string(rows[0][0])
	if value == "" || value[0] == '-' { // NULL, or negative
		return 0, nil
	}
	return strconv.ParseUint(value, 10, 64)
}

// isAutoIncrement reports whether a column's EXTRA has AUTO_INCREMENT.
func isAutoIncrement(extra []byte) bool {
	return strings.Contains(strings.ToLower(string(extra)), "auto_increment")
}

// given returns the last number that the AUTO_INCREMENT of a table may have given, or 0 if it is
// not above the greatest key. A counter at the end of its column does not count, as an odd row was
// there once.
func given(c *Conn, schema, table []byte, greatest, limit uint64) (uint64, error) {
	rows, err := c.Query("SELECT AUTO_INCREMENT, @@auto_increment_increment FROM information_schema.TABLES WHERE TABLE_SCHEMA = " +
		literal(string(schema)) + " AND TABLE_NAME = " + literal(string(table)))
	if err != nil {
		return 0, fmt.Errorf("read AUTO_INCREMENT: %w", err)
	}
	if len(rows) != 1 || len(rows[0]) != 2 || len(rows[0][0]) == 0 {
		return 0, nil
	}
	next, err := strconv.ParseUint(string(rows[0][0]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read AUTO_INCREMENT: %w", err)
	}
	step, err := strconv.ParseUint(string(rows[0][1]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read AUTO_INCREMENT: %w", err)
	}
	if next >= limit || next <= greatest || next-greatest <= step {
		return 0, nil
	}
	return next - 1, nil
}

// integerLimit returns the greatest number of a column type, or 0 if the type is no integer.
func integerLimit(columnType string) uint64 {
	name, attributes, _ := strings.Cut(strings.ToLower(columnType), " ")
	name, _, _ = strings.Cut(name, "(")
	bits, ok := map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[name]
	if !ok {
		return 0
	}
	if strings.Contains(attributes, "unsigned") {
		return 1<<bits - 1
	}
	return 1<<(bits-1) - 1
}

// literal writes a text in a form that means the same in every sql_mode.
func literal(text string) string {
	if text == "" {
		return "''"
	}
	return fmt.Sprintf("_utf8mb4 0x%x", text)
}

func quoted(name []byte) string { return "`" + strings.ReplaceAll(string(name), "`", "``") + "`" }
