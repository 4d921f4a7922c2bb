package session

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

const (
	// columnsFor is how long the columns of a table stay in the cache: others may change them
	// without this proxy.
	columnsFor = time.Second
	maxTables  = 8192 // in the cache
	// longestSpelling is enough for every name of a table with its schema. There may be comments
	// between them.
	longestSpelling = 600
)

// columnCache keeps the columns of tables with a bound column. It is safe for concurrent use.
type columnCache struct {
	mu     sync.Mutex
	tables map[columnsKey]columnsOf // guarded by mu
}

type columnsKey struct {
	shard         *backend.Shard
	schema, table string // as in the text
}

type columnsOf struct {
	plan.Columns
	until time.Time
}

func (cc *columnCache) get(k columnsKey, old bool) (columnsOf, bool) {
	cc.mu.Lock()
	defer cc.mu.Unlock()
	of, ok := cc.tables[k]
	return of, ok && (old || time.Now().Before(of.until))
}

func (cc *columnCache) put(k columnsKey, of columnsOf) {
	if len(k.table) > longestSpelling {
		return
	}
	cc.mu.Lock()
	defer cc.mu.Unlock()
	if len(cc.tables) >= maxTables {
		now := time.Now()
		maps.DeleteFunc(cc.tables, func(_ columnsKey, of columnsOf) bool { return now.After(of.until) })
	}
	if cc.tables == nil || len(cc.tables) >= maxTables {
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

// fetchColumns gets what a plan needs of a table in the text.
func (p *planning) fetchColumns(of *plan.Columns, what plan.What, t *statement.TableRef, sql []byte) (err error) {
	if what == plan.NeedColumnsNow {
		*of, err = p.askColumns(p.at.cur, string(sql[t.Start:t.End]), p.stmt.ReadsOfLast())
		return err
	}
	*of, err = p.columnsOfTable(p.at.cur, sql, t, p.stmt.ReadsOfLast(), what == plan.NeedAutoOnce)
	if refused := new(protocol.ServerError); what >= plan.NeedAuto && errors.As(err, &refused) {
		of.Answered = plan.No
		return nil
	}
	return err
}

// columnsOfTable returns a table's columns from the cache, or asks for them. A session that has
// called a routine, or executed any text, does not trust the cache until it is reset. old says that
// the age of the answer does not matter.
func (f *facts) columnsOfTable(c *backend.Conn, sql []byte, t *statement.TableRef, words statement.Words, old bool) (plan.Columns, error) {
	at := columnsKey{c.Shard, f.state.Schema, string(sql[t.Start:t.End])}
	if t.Schema != nil {
		at.schema = ""
	}
	// A temporary table belongs to this session alone.
	temporary := f.mayBeTemporary()
	if of, ok := f.at.shared.columns.get(at, old); ok && (old || !temporary) {
		of.Cached, of.Now = !old, false // whoever takes an old one needs no second try
		return of.Columns, nil
	} else if old && (temporary || f.snapshots(c)) {
		of, err := f.askAuto(c, at.table, words)
		if err == nil && of.Answered == plan.Yes && !temporary {
			f.at.shared.columns.put(at, columnsOf{Columns: of}) // good for the same question alone
		}
		return of, err
	}
	begun := time.Now()
	of, err := f.askColumns(c, at.table, words)
	if err == nil && !temporary {
		f.at.shared.columns.put(at, columnsOf{of, begun.Add(columnsFor)})
	}
	return of, err
}

// mayBeTemporary reports whether the session may have made temporary tables.
func (f *facts) mayBeTemporary() bool {
	return f.state.Pinned(state.PinTemporaryTable) || f.state.Pinned(state.PinOpaque)
}

// snapshots reports whether a question about a table would take the snapshot of a transaction on c.
// MySQL reads its own tables in it.
func (f *facts) snapshots(c *backend.Conn) bool {
	return !c.Hello.MariaDB && (f.state.InTransaction() || !f.state.Status.Has(protocol.Autocommit))
}

// askAuto asks only for the column with AUTO_INCREMENT. It prepares a query and does not run it, so
// no transaction takes its snapshot.
func (f *facts) askAuto(c *backend.Conn, table string, words statement.Words) (of plan.Columns, err error) {
	if words&statement.ReadsCounts != 0 || f.state.BeforeTransaction() {
		return plan.Columns{Answered: plan.No}, nil
	}
	of.Answered = plan.Yes
	err = f.relay.tryPrepare(c, []byte("SELECT * FROM "+table), func(definition []byte) error {
		name, auto, ok := protocol.DefinesAutoIncrement(definition, c.Capabilities)
		if !ok {
			return protocol.ErrMalformed
		}
		if auto {
			of.Auto = string(name)
		}
		return nil
	})
	return of, err
}

// askColumns asks for the columns of an INSERT without a list. words are those of the text, which
// may forbid a question.
func (f *facts) askColumns(c *backend.Conn, table string, words statement.Words) (plan.Columns, error) {
	of := plan.Columns{Answered: plan.Yes, Now: true, Temporary: f.mayBeTemporary()}
	if words&statement.ReadsCounts != 0 {
		return of, errReadsLast
	}
	if f.state.BeforeTransaction() && !c.Hello.MariaDB {
		// On MySQL the question would be that transaction.
		return of, errBeforeTransaction
	}
	rows, err := f.at.AskAll(c, "SHOW COLUMNS FROM "+table)
	if err != nil {
		return of, err
	}
	for _, row := range rows {
		if len(row) < 6 || row[0] == nil {
			return of, fmt.Errorf("shard %s does not tell the columns of %s", c.Shard.Name(), table)
		}
		if bytes.IndexByte(row[0], 0) >= 0 { // in UTF-16 and its like; no name has this character
			return of, errWideNames
		}
		extra := bytes.ToUpper(row[5])
		if bytes.Contains(extra, []byte("AUTO_INCREMENT")) {
			of.Auto = string(row[0])
		}
		if !bytes.Contains(extra, []byte("INVISIBLE")) {
			of.Names = append(of.Names, bytes.Clone(row[0]))
		} else {
			of.More = append(of.More, bytes.Clone(row[0]))
		}
	}
	return of, nil
}

var errWideNames = protocol.NotSupported("an INSERT that needs the columns of a table with a bound column is not supported with this character_set_results: SET NAMES utf8mb4")

// errReadsLast says that a question would change what the statement reads.
var errReadsLast = protocol.NotSupported("%s", plan.ReadsLast)

var errBeforeTransaction = protocol.NotSupported("an INSERT without a list of columns, or with IGNORE or ON DUPLICATE KEY UPDATE, into a table with a bound column " +
	"between SET TRANSACTION and its transaction is not supported: send START TRANSACTION first")

// sameColumn returns a function that reports whether a name in a text is that of a column.
func (f *facts) sameColumn(column string) func(name []byte) bool {
	return func(name []byte) bool {
		is := plan.SameColumn(column, name, f.state.Charset)
		if is == plan.Unasked {
			in, err := f.InUTF8(name, f.state.Charset)
			return err == nil && strings.EqualFold(string(in), column)
		}
		return is == plan.Yes
	}
}

// insertModes returns how the server treats keys in this session.
func (b *backends) insertModes(c *backend.Conn, words statement.Words) (state.InsertModes, error) {
	switch m, is := plan.Modes(b.state, idOfConn(c), words); is {
	case plan.Yes:
		return m, nil
	case plan.No:
		return m, errReadsLast
	}
	m := &b.state.Inserts
	row, err := b.AskRow(c, "SELECT @@auto_increment_increment, @@sql_mode", 2, "@@auto_increment_increment")
	if err != nil {
		return *m, err
	}
	var increment uint64
	if _, err := fmt.Sscan(string(row[0]), &increment); err != nil || increment == 0 {
		return *m, fmt.Errorf("shard %s: auto_increment_increment is %q", c.Shard.Name(), row[0])
	}
	*m = state.InsertModes{Conn: idOfConn(c), Version: max(b.state.Sysvars["auto_increment_increment"], b.state.Sysvars["sql_mode"]), Increment: increment}
	for mode := range strings.SplitSeq(string(row[1]), ",") {
		switch mode {
		case "NO_AUTO_VALUE_ON_ZERO":
			m.ZeroStays = true
		case "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES":
			m.Strict = true
		case "EMPTY_STRING_IS_NULL":
			m.EmptyIsNull = true
		}
	}
	return *m, nil
}
