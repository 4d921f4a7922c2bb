package proxy

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"seqproxy/backend"
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
	until time.Time
}

func (cc *columnCache) get(k columnsKey) ([][]byte, bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	of, ok := cc.tables[k]
	if !ok || time.Now().After(of.until) {
		return nil, false
	}
	return of.names, true
}

func (cc *columnCache) put(k columnsKey, names [][]byte, asked time.Time) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if cc.tables == nil || len(cc.tables) >= maxColumns {
		cc.tables = make(map[columnsKey]columnsOf)
	}
	cc.tables[k] = columnsOf{names, asked.Add(columnsFor)}
}

// forget drops everything, when a statement may have changed a table.
func (cc *columnCache) forget() {
	cc.mu.Lock()
	clear(cc.tables)
	cc.mu.Unlock()
}

// tableColumns completes key with the columns of a table, of which a text names none.
// Index is -1 if the bound one is not among them.
func (s *session) tableColumns(c *backend.Conn, sql []byte, t *statement.TableRef, b *Binding, key *statement.Key) error {
	at := columnsKey{c.Shard(), s.state.schema, string(sql[t.Start:t.End])}
	if t.Schema != nil {
		at.schema = ""
	}
	names, ok := s.srv.columns.get(at)
	// A temporary table is this session's own.
	temporary := s.state.pinned(pinTemporaryTable) || s.state.pinned(pinOpaque)
	if ok && !temporary {
		s.columnsCached = true
	} else {
		var err error
		asked := time.Now()
		if names, err = s.askColumns(c, at.table); err != nil {
			return err
		}
		if !temporary {
			s.srv.columns.put(at, names, asked)
		}
	}
	same := s.sameColumn(b.Column)
	key.Index = -1
	for i, name := range names {
		if same(name) {
			key.Index = i
		}
		if !ascii(name) && (!utf8Charset(s.state.charset) || !utf8.Valid(name)) {
			return notSupported("INSERT into %s without a list of columns, one of which is not ASCII, is not supported in this character set: name the columns", b.Table)
		}
	}
	key.Columns = names
	return nil
}

// askColumns asks for the columns that an INSERT means which names none.
func (s *session) askColumns(c *backend.Conn, table string) ([][]byte, error) {
	if s.stmt.Words&(statement.ReadsRowCount|statement.ReadsFoundRows|statement.ReadsWarnings) != 0 {
		return nil, errReadsLeft
	}
	rows, err := s.ownQuery(c, "SHOW COLUMNS FROM "+table)
	if err != nil {
		return nil, err
	}
	names := make([][]byte, 0, len(rows))
	for _, row := range rows {
		if len(row) < 6 || row[0] == nil {
			return nil, fmt.Errorf("shard %s does not tell the columns of %s", c.Shard().Name(), table)
		}
		if !bytes.Contains(bytes.ToUpper(row[5]), []byte("INVISIBLE")) {
			names = append(names, bytes.Clone(row[0]))
		}
	}
	return names, nil
}

// errReadsLeft: to ask the server would change what the statement reads.
var errReadsLeft = notSupported("an INSERT into a table with a bound column that reads what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
	"is not supported: keep that in a variable first")

// sameColumn returns what tells whether a name in a text is that of a column.
func (s *session) sameColumn(column string) func(name []byte) bool {
	plain := ascii([]byte(column))
	return func(name []byte) bool {
		if plain {
			return len(name) == len(column) && strings.EqualFold(string(name), column)
		}
		in, err := s.nameInUTF8(name, s.state.charset)
		return err == nil && strings.EqualFold(string(in), column)
	}
}

// insertModes is what a session has set for INSERTs.
type insertModes struct {
	conn              *backend.Conn // that was asked; nil: not yet, or something may have changed it since
	version           int           // of the session's variables
	increment         uint64
	zeroStays, strict bool
}

// insertModes returns what the server does with keys in this session.
func (s *session) insertModes(c *backend.Conn, words statement.Words) (insertModes, error) {
	m := &s.state.inserts
	version := max(s.state.sysvars["auto_increment_increment"], s.state.sysvars["sql_mode"])
	if m.conn == c && m.version == version {
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
	*m = insertModes{conn: c, version: version, increment: increment}
	for mode := range strings.SplitSeq(string(row[1]), ",") {
		switch mode {
		case "NO_AUTO_VALUE_ON_ZERO":
			m.zeroStays = true
		case "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES":
			m.strict = true
		}
	}
	return *m, nil
}
