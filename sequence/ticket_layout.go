package sequence

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"seqproxy/sequence/link"
)

// ticketLayout is what a look at a ticket table found.
type ticketLayout struct {
	id      string // the AUTO_INCREMENT column
	max     uint64 // its highest number
	stub    string // the other column, which is unique; "" if there is none
	columns int
	engine  string
}

// transactional says whether the table takes part in transactions, and keeps what it has counted
// through a crash.
func (l *ticketLayout) transactional() bool { return strings.EqualFold(l.engine, "InnoDB") }

// ticketRef is a ticket table on a server. Whoever reserves numbers of it, or imports it, looks at
// it and locks it alike.
type ticketRef struct {
	database, name string
	full           string        // "`flickr`.`tickets64`"
	at             func() string // how errors call the server; "" is not at all
	patience       time.Duration // for UNLOCK TABLES, whatever ended before
}

func newTicketRef(database, name string, at func() string, patience time.Duration) ticketRef {
	return ticketRef{database: database, name: name, full: quote(database) + "." + quote(name), at: at, patience: patience}
}

func (t *ticketRef) unfit(finding, remedy string) error {
	return &UnfitError{Server: t.at(), Table: t.full, Finding: finding, Remedy: remedy}
}

// inspect looks at the table. What keeps it from being served is an *UnfitError.
func (t *TicketTable) inspect(ctx context.Context) (*ticketLayout, error) {
	conn, err := t.s.servers.tickets.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	return t.inspectOn(ctx, conn)
}

func (t *TicketTable) inspectOn(ctx context.Context, conn *sql.Conn) (*ticketLayout, error) {
	l, err := t.readLayout(ctx, conn)
	if err != nil {
		return nil, err
	}
	if !l.transactional() && t.layout.Load() == nil {
		t.s.log.Warn("ticket table not durable", zap.String("table", t.full), zap.String("engine", l.engine),
			zap.String("remedy", "ALTER TABLE "+t.full+" ENGINE=InnoDB"))
	}
	t.layout.Store(l)
	return l, nil
}

// readLayout looks at the table. What keeps it from being served is an *UnfitError.
func (t *ticketRef) readLayout(ctx context.Context, conn *sql.Conn) (*ticketLayout, error) {
	where := fmt.Sprintf("TABLE_SCHEMA = %s AND TABLE_NAME = %s", link.Literal(t.database), link.Literal(t.name))
	tables, err := texts(ctx, conn, "SELECT TABLE_TYPE, IFNULL(ENGINE, '') FROM information_schema.TABLES WHERE "+where)
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", t.full, err)
	}
	switch {
	case len(tables) == 0:
		return nil, t.unfit("it does not exist, or the user may not see it", "GRANT SELECT, INSERT, DELETE, LOCK TABLES on its schema to the user")
	case tables[0][0] != "BASE TABLE":
		return nil, t.unfit("it is a "+tables[0][0]+", not a table", "name the table behind it")
	}
	engine := tables[0][1]
	columns, err := texts(ctx, conn, "SELECT COLUMN_NAME, COLUMN_TYPE, LOWER(EXTRA), IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL "+
		"FROM information_schema.COLUMNS WHERE "+where+" ORDER BY ORDINAL_POSITION")
	if err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", t.full, err)
	}
	unique, err := texts(ctx, conn, "SELECT MAX(COLUMN_NAME) FROM information_schema.STATISTICS WHERE "+where+
		" GROUP BY INDEX_NAME HAVING MAX(NON_UNIQUE) = 0 AND COUNT(*) = 1 AND MAX(IFNULL(SUB_PART, 0)) = 0")
	if err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", t.full, err)
	}
	keys, err := texts(ctx, conn, "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE "+where+" AND NON_UNIQUE = 0")
	if err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", t.full, err)
	}
	triggers, err := texts(ctx, conn, fmt.Sprintf("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s",
		link.Literal(t.database), link.Literal(t.name)))
	if err != nil {
		return nil, fmt.Errorf("read triggers of %s: %w", t.full, err)
	}
	if len(triggers) > 0 {
		return nil, t.unfit("it has a trigger, "+triggers[0][0]+", which would not run for numbers out of memory", "DROP TRIGGER "+quote(t.database)+"."+quote(triggers[0][0])+", or leave the table to the server")
	}
	l, err := t.read(columns, unique)
	if err != nil {
		return nil, err
	}
	if fmt.Sprint(len(unique)) != keys[0][0] {
		return nil, t.unfit("it has a unique key of several columns, or of a part of one", "drop the key, or leave the table to the server")
	}
	l.engine = engine
	return l, nil
}

// read understands the columns: name, type, extra, and whether a new row must give a value.
func (t *ticketRef) read(columns, unique [][]string) (*ticketLayout, error) {
	isUnique := func(column string) bool {
		return slices.ContainsFunc(unique, func(u []string) bool { return u[0] == column })
	}
	l := &ticketLayout{columns: len(columns)}
	for _, c := range columns {
		switch name := c[0]; {
		case strings.Contains(c[2], "auto_increment"):
			var ok bool
			if l.max, ok = columnMax(c[1]); !ok {
				return nil, t.unfit("its column "+quote(name)+" is "+c[1]+", which does not count in whole numbers", "ALTER TABLE "+t.full+" MODIFY "+quote(name)+" BIGINT UNSIGNED NOT NULL AUTO_INCREMENT")
			}
			if !isUnique(name) {
				return nil, t.unfit("its column "+quote(name)+" is not unique by itself", "make it the PRIMARY KEY")
			}
			l.id = name
		case isUnique(name) && l.stub == "":
			l.stub = name
		case isUnique(name):
			return nil, t.unfit("it has two unique columns beside the counter", "leave the table to the server")
		case c[3] == "1":
			return nil, t.unfit("its column "+quote(name)+" has no default", "give it one, or leave the table to the server")
		}
	}
	if l.id == "" {
		return nil, t.unfit("it has no AUTO_INCREMENT column", "leave the table to the server")
	}
	return l, nil
}

// texts returns all rows of a query, each value as text.
func texts(ctx context.Context, conn *sql.Conn, query string) ([][]string, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all [][]string
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		line := make([]string, len(names))
		for i := range values {
			line[i] = values[i].String
		}
		all = append(all, line)
	}
	return all, rows.Err()
}
