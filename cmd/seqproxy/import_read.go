package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-sql-driver/mysql"

	"seqproxy/backend"
	"seqproxy/conf"
	"seqproxy/internal/tlsfiles"
)

// A reader reads the counters of one kind. tables are the user's, each as "table" or
// "table=sequence".
type reader func(ctx context.Context, s *source, schema string, tables []string) ([]counter, error)

var readers = map[string]reader{
	"cosid":   readCosId,
	"leaf":    readLeaf,
	"mariadb": readMariaDB,
	"mycat":   readMyCat,
	"table":   readTables,
	"ticket":  readTables,
	"tinyid":  readTinyid,
	"vitess":  readVitess,
}

// source is the server with the counters.
type source struct{ db *sql.DB }

// sourceLogin has the flags of the login.
type sourceLogin struct {
	user     string
	password conf.Secret
	security conf.Security
}

func openSource(files *tlsfiles.Store, address conf.Address, login sourceLogin) (*source, error) {
	security, err := secured(files, "source", login.security, address)
	if err != nil {
		return nil, err
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = address.Split()
	cfg.User, cfg.Passwd = login.user, login.password.Reveal()
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = importTimeout, importTimeout, importTimeout
	cfg.Logger = &mysql.NopLogger{}
	// Whatever the server's defaults are, read all rows, and names unchanged.
	cfg.Params = map[string]string{"sql_select_limit": "18446744073709551615", "sql_big_selects": "1", "sql_mode": "''"}
	if err := cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_general_ci")); err != nil {
		return nil, fmt.Errorf("source %s: %w", address, err)
	}
	if security != nil {
		now := security.To(cfg.Addr).Security()
		cfg.TLS, cfg.AllowFallbackToPlaintext = now.TLS, now.Optional
		if now.PublicKey != nil {
			cfg.ServerPubKey = "seqproxy import"
			mysql.RegisterServerPubKey(cfg.ServerPubKey, now.PublicKey)
		}
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", address, err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1) // settings of the session must hold for every query
	return &source{db}, nil
}

// openWritable opens the one of several addresses that can be written to, since the other nodes of
// a group may lag behind. It opens a single address in any case.
func openWritable(ctx context.Context, files *tlsfiles.Store, addresses []conf.Address, login sourceLogin) (*source, conf.Address, error) {
	var failures []error
	for _, address := range addresses {
		s, err := openSource(files, address, login)
		if err != nil || len(addresses) == 1 {
			return s, address, err
		}
		readOnly, err := s.readOnly(ctx)
		if err == nil && !readOnly {
			return s, address, nil
		}
		s.close()
		if err == nil {
			err = errors.New("it is read only")
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	return nil, "", errors.Join(failures...)
}

func (s *source) readOnly(ctx context.Context) (bool, error) {
	var is string
	_, err := s.one(ctx, []any{&is}, "SELECT @@GLOBAL.read_only")
	return is != "0" && is != "OFF", err
}

func (s *source) close() { _ = s.db.Close() }

// rows reads all rows of a query. row returns the destinations for one row.
func (s *source) rows(ctx context.Context, row func() []any, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, importTimeout)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, query, args...)
	if err != nil {
		return tlsfiles.Explain(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(row()...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// one reads the single row of a query. It returns false if there is none.
func (s *source) one(ctx context.Context, to []any, query string, args ...any) (bool, error) {
	found := false
	err := s.rows(ctx, func() []any { found = true; return to }, query, args...)
	return found, err
}

// has reports whether the server has a schema, and the user may see it.
func (s *source) has(ctx context.Context, schema string) (bool, error) {
	var name string
	return s.one(ctx, []any{&name}, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", schema)
}

// readLeaf reads Meituan Leaf's leaf_alloc: max_id is the first number after all ranges given out.
func readLeaf(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	return s.readRows(ctx, schema, oneTable(tables, "leaf_alloc"), "biz_tag", "max_id", "step", func(max, step uint64) (uint64, bool) { return max, true })
}

// readTinyid reads DiDi's tiny_id_info: max_id is the last number of the segments given out. That
// also holds for several databases that divide the numbers by delta and remainder.
func readTinyid(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	return s.readRows(ctx, schema, oneTable(tables, "tiny_id_info"), "biz_type", "max_id", "step", behind)
}

// readCosId reads the table of CosId's segments, which has no step: last_max_id is the last number
// given out. The names begin with the namespace.
func readCosId(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	return s.readRows(ctx, schema, oneTable(tables, "cosid"), "name", "last_max_id", "", behind)
}

// behind returns the number after the last one given out.
func behind(last, _ uint64) (uint64, bool) { return last + 1, last < math.MaxUint64 }

// readMariaDB reads MariaDB's own sequences: next_not_cached_value is the first number that its
// server does not have in memory.
func readMariaDB(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	tables, err := s.tablesOr(ctx, tables, schema, "TABLE_TYPE = 'SEQUENCE'")
	if err != nil {
		return nil, err
	}
	var all []counter
	for _, given := range tables {
		table, name := splitTable(given)
		n := counter{name: name, from: schema + "." + table}
		var next, limit, increment string // sequences of other types than BIGINT have no common type
		var cycles bool
		if _, err := s.one(ctx, []any{&next, &limit, &increment, &n.cache, &cycles},
			"SELECT next_not_cached_value, maximum_value, increment, cache_size, cycle_option FROM "+quoteName(schema, table)); err != nil {
			return nil, explainTable(err, schema, table)
		}
		if increment == "0" { // it stands for auto_increment_increment
			increment = "1"
		}
		var errs [3]error
		n.next, errs[0] = strconv.ParseUint(next, 10, 64)
		n.max, errs[1] = strconv.ParseUint(limit, 10, 64)
		n.increment, errs[2] = strconv.ParseUint(increment, 10, 64)
		switch {
		case errors.Join(errs[:]...) != nil:
			n.cannot = fmt.Sprintf("its next number is %s, its increment %s and its maximum %s, none of which may be below 0", next, increment, limit)
		case cycles:
			n.cannot = "it has CYCLE, so its numbers come again: ALTER SEQUENCE ... NOCYCLE in MariaDB first"
		case n.next > n.max:
			n.cannot = fmt.Sprintf("it has given all numbers up to its maximum, %s", limit)
		}
		all = append(all, n)
	}
	return all, nil
}

// readMyCat reads MYCAT_SEQUENCE. Only its stored function knows whether the last range begins or
// ends at current_value, so the import skips a whole range more.
func readMyCat(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	return s.readRows(ctx, schema, oneTable(tables, "MYCAT_SEQUENCE"), "name", "current_value", "increment", func(current, step uint64) (uint64, bool) {
		return current + step + 1, current <= math.MaxUint64-step-1 && step < math.MaxUint64
	})
}

// oneTable returns the user's tables, or the kind's usual one.
func oneTable(tables []string, usual string) []string {
	if len(tables) == 0 {
		return []string{usual}
	}
	return tables
}

// tablesOr returns the user's tables, or those of a schema for which a condition holds.
func (s *source) tablesOr(ctx context.Context, tables []string, schema, condition string) ([]string, error) {
	if len(tables) > 0 {
		return tables, nil
	}
	err := s.rows(ctx, func() []any {
		tables = append(tables, "")
		return []any{&tables[len(tables)-1]}
	}, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND "+condition+" ORDER BY TABLE_NAME", schema)
	return tables, err
}

// readRows reads tables that have a counter in each row. step may be "".
func (s *source) readRows(ctx context.Context, schema string, tables []string, name, value, step string, next func(value, step uint64) (uint64, bool)) ([]counter, error) {
	var all []counter
	for _, table := range tables {
		if strings.Contains(table, "=") {
			return nil, usagef("-table %s: its rows name the sequences", table)
		}
		steps := "0"
		if step != "" {
			steps = "IFNULL(" + quoteName(step) + ", 0)" // it may be NULL in tinyid
		}
		var read []struct {
			name        string
			value, step int64
		}
		err := s.rows(ctx, func() []any {
			read = append(read, struct {
				name        string
				value, step int64
			}{})
			r := &read[len(read)-1]
			return []any{&r.name, &r.value, &r.step}
		}, fmt.Sprintf("SELECT %s, %s, %s FROM %s ORDER BY %[1]s", quoteName(name), quoteName(value), steps, quoteName(schema, table)))
		if err != nil {
			return nil, explainTable(err, schema, table)
		}
		for _, r := range read {
			if r.value < 0 || r.step < 0 {
				return nil, fmt.Errorf("%s.%s: %s has %s %d and %s %d, neither of which may be below 0", schema, table, r.name, value, r.value, step, r.step)
			}
			n, ok := next(uint64(r.value), uint64(r.step))
			if !ok {
				return nil, fmt.Errorf("%s.%s: %s is at its end", schema, table, r.name)
			}
			all = append(all, counter{name: r.name, from: schema + "." + table, next: n, cache: uint64(r.step)})
		}
	}
	return all, nil
}

// readVitess reads Vitess's sequence tables, which have a comment that says so. next_id is the
// first number of the next range, and cache is the range's size.
func readVitess(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	tables, err := s.tablesOr(ctx, tables, schema, "LOWER(TABLE_COMMENT) LIKE '%vitess_sequence%'")
	if err != nil {
		return nil, err
	}
	var all []counter
	for _, given := range tables {
		table, name := splitTable(given)
		n := counter{name: name, from: schema + "." + table}
		found, err := s.one(ctx, []any{&n.next, &n.cache}, "SELECT next_id, cache FROM "+quoteName(schema, table)+" WHERE id = 0")
		if err != nil {
			return nil, explainTable(err, schema, table)
		}
		if !found {
			return nil, fmt.Errorf("%s has no row with id = 0, so it is no sequence table that Vitess uses", n.from)
		}
		all = append(all, n)
	}
	return all, nil
}

// readTables reads tables with AUTO_INCREMENT: the counter, or the greatest key if that is higher.
// Without tables it also returns those without AUTO_INCREMENT, as uncounted.
func readTables(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	// MySQL would return values that are a day old. MariaDB does not know the variable.
	if _, err := s.db.ExecContext(ctx, "SET SESSION information_schema_stats_expiry = 0"); err != nil && !isCode(err, gomysql.ER_UNKNOWN_SYSTEM_VARIABLE) {
		return nil, tlsfiles.Explain(err)
	}
	type column struct{ table, name, typ string }
	var columns []*column
	err := s.rows(ctx, func() []any {
		c := &column{}
		columns = append(columns, c)
		return []any{&c.table, &c.name, &c.typ}
	}, "SELECT t.TABLE_NAME, IFNULL(c.COLUMN_NAME, ''), IFNULL(c.COLUMN_TYPE, '') FROM information_schema.TABLES t LEFT JOIN information_schema.COLUMNS c "+
		"ON c.TABLE_SCHEMA = ? AND c.TABLE_NAME = t.TABLE_NAME AND c.EXTRA LIKE '%auto_increment%' "+
		"WHERE t.TABLE_SCHEMA = ? AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY t.TABLE_NAME", schema, schema)
	if err != nil {
		return nil, err
	}
	var all []counter
	seen := make(map[string]bool)
	for _, c := range columns {
		name := c.table
		if len(tables) > 0 {
			wanted := false
			for _, given := range tables {
				if table, as := splitTable(given); table == c.table {
					name, wanted = as, true
				}
			}
			if !wanted {
				continue
			}
		}
		n := counter{name: name, from: schema + "." + c.table, schema: schema, table: c.table, uncounted: c.name == ""}
		if n.uncounted {
			if len(tables) == 0 {
				all = append(all, n)
			}
			continue
		}
		seen[c.table] = true
		n.end = backend.IntegerLimit(c.typ)
		if _, err := s.one(ctx, []any{&n.next}, "SELECT IFNULL(AUTO_INCREMENT, 1) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", schema, c.table); err != nil {
			return nil, fmt.Errorf("%s: %w", n.from, err)
		}
		var greatest string // it may be below 0
		if _, err := s.one(ctx, []any{&greatest}, "SELECT IFNULL(MAX("+quoteName(c.name)+"), 0) FROM "+quoteName(schema, c.table)); err != nil {
			return nil, fmt.Errorf("%s: %w", n.from, err)
		}
		if !strings.HasPrefix(greatest, "-") {
			used, err := strconv.ParseUint(greatest, 10, 64)
			if err != nil || used == math.MaxUint64 {
				return nil, fmt.Errorf("%s: no number follows its greatest key %s", n.from, greatest)
			}
			n.next = max(n.next, used+1)
		}
		all = append(all, n)
	}
	for _, given := range tables {
		if table, name := splitTable(given); !seen[table] {
			return nil, fmt.Errorf("%s.%s is no table with an AUTO_INCREMENT, or the user may not see it: %s", schema, table, makeYourself(name))
		}
	}
	return all, nil
}

// makeYourself is the way out for a table that had an AUTO_INCREMENT.
func makeYourself(sequence string) string {
	return fmt.Sprintf("make the sequence yourself, CREATE SEQUENCE %s START WITH n, or ALTER SEQUENCE %[1]s RESTART WITH n, n above the greatest key of every server", quoteName(sequence))
}

// splitTable splits "table=sequence". A plain "table" is also the sequence's name.
func splitTable(given string) (table, name string) {
	table, name, ok := strings.Cut(given, "=")
	if !ok {
		return table, table
	}
	return table, name
}

// quoteName quotes the parts of a qualified name.
func quoteName(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(quoted, ".")
}

// explainTable adds the table to an error if the server has not named it.
func explainTable(err error, schema, table string) error {
	switch {
	case isCode(err, gomysql.ER_NO_SUCH_TABLE, gomysql.ER_BAD_DB_ERROR):
		return fmt.Errorf("there is no table %s.%s; -table names another", schema, table)
	case isCode(err, gomysql.ER_BAD_FIELD_ERROR):
		return fmt.Errorf("%s.%s has not the columns of its kind: %w", schema, table, err)
	}
	return fmt.Errorf("%s.%s: %w", schema, table, err)
}

func isCode(err error, codes ...uint16) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said) && slices.Contains(codes, said.Number)
}
