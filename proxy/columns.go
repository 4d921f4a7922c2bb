package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

const (
	// columnsFor is how long a table's columns are taken to be what they were: they may
	// be changed by somebody who does not come through this proxy.
	columnsFor = time.Second
	maxColumns = 1024 // tables of which they are remembered
)

// columnCache remembers the columns of tables with a bound column. It is safe for
// concurrent use.
type columnCache struct {
	mu     sync.Mutex
	tables map[columnsKey]columnsOf // guarded by mu
}

type columnsKey struct {
	shard         *backend.Shard
	schema, table string // as in the text
}

type columnsOf struct {
	names [][]byte // in order, without those that INSERT does not mean
	more  [][]byte // those: they may be named
	auto  string   // the one with AUTO_INCREMENT, if there is one
	until time.Time
}

func (cc *columnCache) get(k columnsKey) (columnsOf, bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	of, ok := cc.tables[k]
	return of, ok && time.Now().Before(of.until)
}

func (cc *columnCache) put(k columnsKey, of columnsOf) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.tables == nil || len(cc.tables) >= maxColumns {
		cc.tables = make(map[columnsKey]columnsOf)
	}
	cc.tables[k] = of
}

// forget drops everything, when a statement may have changed a table.
func (cc *columnCache) forget() {
	cc.mu.Lock()
	clear(cc.tables)
	cc.mu.Unlock()
}

// tableColumns completes key with the columns of a table, of which a text names none.
// Index is -1 if the bound one is not among them.
func (s *session) tableColumns(c *backend.Conn, sql []byte, t *statement.TableRef, b *plan.Binding, key *statement.Key) error {
	of, err := s.columnsOfTable(c, sql, t)
	if err != nil {
		return err
	}
	return s.keyAmong(of, b, key)
}

// keyAmong completes key with the columns of a table.
func (s *session) keyAmong(of columnsOf, b *plan.Binding, key *statement.Key) error {
	same := s.sameColumn(b.Column)
	key.Index = -1
	for i, name := range of.names {
		if same(name) {
			key.Index = i
		}
		if !ascii(name) && (!utf8Charset(s.state.Charset) || !utf8.Valid(name)) {
			return notSupported("INSERT into %s without a list of columns, one of which is not ASCII, is not supported in this character set: name the columns", b.Table)
		}
	}
	key.Columns = of.names
	return nil
}

// hasAuto says whether the bound column has AUTO_INCREMENT; no if that cannot be asked.
func (s *session) hasAuto(c *backend.Conn, sql []byte, t *statement.TableRef, b *plan.Binding) (bool, error) {
	of, err := s.columnsOfTable(c, sql, t)
	var refused *protocol.ServerError
	if err != nil && !errors.Is(err, errReadsLeft) && !errors.As(err, &refused) {
		return false, err
	}
	return err == nil && strings.EqualFold(of.auto, b.Column), nil
}

// columnsOfTable returns what is known of a table's columns, and asks for it if need be.
func (s *session) columnsOfTable(c *backend.Conn, sql []byte, t *statement.TableRef) (columnsOf, error) {
	at := columnsKey{c.Shard(), s.state.Schema, string(sql[t.Start:t.End])}
	if t.Schema != nil {
		at.schema = ""
	}
	// A temporary table is this session's own.
	temporary := s.state.Pinned(state.PinTemporaryTable) || s.state.Pinned(state.PinOpaque)
	if of, ok := s.srv.columns.get(at); ok && !temporary {
		s.columnsCached = true
		return of, nil
	}
	of, err := s.askColumns(c, at.table)
	if err == nil && !temporary {
		s.srv.columns.put(at, of)
	}
	return of, err
}

// askColumns asks for the columns that an INSERT means which names none.
func (s *session) askColumns(c *backend.Conn, table string) (columnsOf, error) {
	of := columnsOf{until: time.Now().Add(columnsFor)}
	if s.stmt.Words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return of, errReadsLeft
	}
	if s.state.BeforeTransaction() && !c.Hello().MariaDB { // on MySQL the question would be that transaction
		return of, errBeforeTransaction
	}
	rows, err := s.ownQuery(c, "SHOW COLUMNS FROM "+table)
	if err != nil {
		return of, err
	}
	for _, row := range rows {
		if len(row) < 6 || row[0] == nil {
			return of, fmt.Errorf("shard %s does not tell the columns of %s", c.Shard().Name(), table)
		}
		extra := bytes.ToUpper(row[5])
		if bytes.Contains(extra, []byte("AUTO_INCREMENT")) {
			of.auto = string(row[0])
		}
		if !bytes.Contains(extra, []byte("INVISIBLE")) {
			of.names = append(of.names, bytes.Clone(row[0]))
		} else {
			of.more = append(of.more, bytes.Clone(row[0]))
		}
	}
	return of, nil
}

// errReadsLeft: to ask the server would change what the statement reads.
var errReadsLeft = notSupported("an INSERT into a table with a bound column that reads what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
	"is not supported: keep that in a variable first")

var errBeforeTransaction = notSupported("an INSERT without a list of columns, or with IGNORE or ON DUPLICATE KEY UPDATE, into a table with a bound column " +
	"between SET TRANSACTION and its transaction is not supported: send START TRANSACTION first")

// sameColumn returns what tells whether a name in a text is that of a column.
func (s *session) sameColumn(column string) func(name []byte) bool {
	plain := ascii([]byte(column))
	return func(name []byte) bool {
		if plain {
			return len(name) == len(column) && strings.EqualFold(string(name), column)
		}
		in, err := s.nameInUTF8(name, s.state.Charset)
		return err == nil && strings.EqualFold(string(in), column)
	}
}

// insertModes returns what the server does with keys in this session.
func (s *session) insertModes(c *backend.Conn, words statement.Words) (state.InsertModes, error) {
	m := &s.state.Inserts
	version := max(s.state.Sysvars["auto_increment_increment"], s.state.Sysvars["sql_mode"])
	if m.Conn == idOfConn(c) && m.Version == version {
		return *m, nil
	}
	if words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return *m, errReadsLeft
	}
	row, err := s.ownRow(c, "SELECT @@auto_increment_increment, @@sql_mode", 2, "@@auto_increment_increment")
	if err != nil {
		return *m, err
	}
	var increment uint64
	if _, err := fmt.Sscan(string(row[0]), &increment); err != nil || increment == 0 {
		return *m, fmt.Errorf("shard %s: auto_increment_increment is %q", c.Shard().Name(), row[0])
	}
	*m = state.InsertModes{Conn: idOfConn(c), Version: version, Increment: increment}
	for mode := range strings.SplitSeq(string(row[1]), ",") {
		switch mode {
		case "NO_AUTO_VALUE_ON_ZERO":
			m.ZeroStays = true
		case "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES":
			m.Strict = true
		}
	}
	return *m, nil
}
