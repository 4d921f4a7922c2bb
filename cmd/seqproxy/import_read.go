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

	"seqproxy/conf"
	"seqproxy/internal/tlsfiles"
)

// A reader reads the counters of one kind. tables are those that were named, maybe as
// "table=sequence".
type reader func(ctx context.Context, s *source, schema string, tables []string) ([]counter, error)

var readers = map[string]reader{
	"leaf":   readLeaf,
	"mycat":  readMyCat,
	"table":  readTables,
	"ticket": readTables,
	"vitess": readVitess,
}

// source is the server that holds the counters.
type source struct{ db *sql.DB }

// sourceLogin is the way in.
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
	// Whatever the server gives to new sessions: all rows are read, and names as they are.
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
	db.SetMaxOpenConns(1) // what is set for the session holds for every query
	return &source{db}, nil
}

// openWritable opens the one of several addresses that can be written to: the other nodes
// of a group may lag behind. One alone is opened whatever it is.
func openWritable(ctx context.Context, files *tlsfiles.Store, addresses []conf.Address, login sourceLogin) (*source, conf.Address, error) {
	var failures []error
	for _, address := range addresses {
		s, err := openSource(files, address, login)
		if err != nil || len(addresses) == 1 {
			return s, address, err
		}
		var readOnly string
		_, err = s.one(ctx, []any{&readOnly}, "SELECT @@GLOBAL.read_only")
		if err == nil && (readOnly == "0" || readOnly == "OFF") {
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

func (s *source) close() { _ = s.db.Close() }

// rows reads all rows of a query, whose columns scan to what row returns.
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

// one reads a query's one row; it is false if there is none.
func (s *source) one(ctx context.Context, to []any, query string, args ...any) (bool, error) {
	found := false
	err := s.rows(ctx, func() []any { found = true; return to }, query, args...)
	return found, err
}

// readLeaf reads Meituan Leaf's leaf_alloc: max_id is the first number behind all ranges
// that were handed out.
func readLeaf(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	return s.readRows(ctx, schema, oneTable(tables, "leaf_alloc"), "biz_tag", "max_id", "step", func(max, step uint64) (uint64, bool) { return max, true })
}

// readMyCat reads MYCAT_SEQUENCE. Whether the range that was handed out last begins or
// ends at current_value is the stored function's affair, so it is passed over as well.
func readMyCat(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	return s.readRows(ctx, schema, oneTable(tables, "MYCAT_SEQUENCE"), "name", "current_value", "increment", func(current, step uint64) (uint64, bool) {
		return current + step + 1, current <= math.MaxUint64-step-1 && step < math.MaxUint64
	})
}

// oneTable is the tables that were named, or the kind's own.
func oneTable(tables []string, own string) []string {
	if len(tables) == 0 {
		return []string{own}
	}
	return tables
}

// readRows reads tables with a counter in each row.
func (s *source) readRows(ctx context.Context, schema string, tables []string, name, value, step string, next func(value, step uint64) (uint64, bool)) ([]counter, error) {
	var all []counter
	for _, table := range tables {
		if strings.Contains(table, "=") {
			return nil, usagef("-table %s: its rows name the sequences", table)
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
		}, fmt.Sprintf("SELECT %s, %s, %s FROM %s ORDER BY %[1]s", quoteName(name), quoteName(value), quoteName(step), quoteName(schema, table)))
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

// readVitess reads Vitess's sequence tables, which say so in their comment: next_id is
// the first number of the next range, cache its size.
func readVitess(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	if len(tables) == 0 {
		err := s.rows(ctx, func() []any {
			tables = append(tables, "")
			return []any{&tables[len(tables)-1]}
		}, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND LOWER(TABLE_COMMENT) LIKE '%vitess_sequence%' ORDER BY TABLE_NAME", schema)
		if err != nil {
			return nil, err
		}
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

// readTables reads tables with an AUTO_INCREMENT: the counter, or the greatest key if that
// is above it.
func readTables(ctx context.Context, s *source, schema string, tables []string) ([]counter, error) {
	// MySQL would tell what it knew a day ago; MariaDB knows no such variable.
	if _, err := s.db.ExecContext(ctx, "SET SESSION information_schema_stats_expiry = 0"); err != nil && !isCode(err, gomysql.ER_UNKNOWN_SYSTEM_VARIABLE) {
		return nil, tlsfiles.Explain(err)
	}
	type column struct{ table, name string }
	var columns []*column
	err := s.rows(ctx, func() []any {
		c := &column{}
		columns = append(columns, c)
		return []any{&c.table, &c.name}
	}, "SELECT c.TABLE_NAME, c.COLUMN_NAME FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME) "+
		"WHERE TABLE_SCHEMA = ? AND c.EXTRA LIKE '%auto_increment%' AND t.TABLE_TYPE = 'BASE TABLE' ORDER BY c.TABLE_NAME", schema)
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
		seen[c.table] = true
		n := counter{name: name, from: schema + "." + c.table, schema: schema, table: c.table}
		if _, err := s.one(ctx, []any{&n.next}, "SELECT IFNULL(AUTO_INCREMENT, 1) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", schema, c.table); err != nil {
			return nil, fmt.Errorf("%s: %w", n.from, err)
		}
		var greatest string // which may be below 0
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
		if table, _ := splitTable(given); !seen[table] {
			return nil, fmt.Errorf("%s.%s is no table with an AUTO_INCREMENT, or the user may not see it", schema, table)
		}
	}
	return all, nil
}

// splitTable reads "table=sequence", or "table" for a sequence of that name.
func splitTable(given string) (table, name string) {
	table, name, ok := strings.Cut(given, "=")
	if !ok {
		return table, table
	}
	return table, name
}

// quoteName writes names as identifiers, one in the other.
func quoteName(parts ...string) string {
	quoted := make([]string, len(parts))
	for i, p := range parts {
		quoted[i] = "`" + strings.ReplaceAll(p, "`", "``") + "`"
	}
	return strings.Join(quoted, ".")
}

// explainTable says which table it was, where the server does not.
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
