package ticket

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// Layout is the shape of a ticket table.
type Layout struct {
	ID      string // the AUTO_INCREMENT column
	Max     uint64 // its highest number
	Stub    string // the other column, which is unique; "" if there is none
	Columns int
	Engine  string
}

// Transactional reports whether the table takes part in transactions, and keeps its counter through
// a crash.
func (l *Layout) Transactional() bool { return strings.EqualFold(l.Engine, "InnoDB") }

// Table is a ticket table on a server. Reservations and imports lock it alike.
type Table struct {
	Database, Name string
	Quoted         string        // "`flickr`.`tickets64`"
	at             func() string // the server's name in errors; "" leaves it out
	patience       time.Duration // for UNLOCK TABLES, even after the caller's time
}

// newTable does no I/O.
func newTable(database, name string, at func() string, patience time.Duration) Table {
	return Table{Database: database, Name: name, Quoted: define.Quote(database) + "." + define.Quote(name), at: at, patience: patience}
}

// FullName is the table's name for people and for counters.
func (t *Table) FullName() string { return t.Database + "." + t.Name }

func (t *Table) unfit(finding, remedy string) error {
	return &link.UnfitError{Server: t.at(), Table: t.Quoted, Finding: finding, Remedy: remedy}
}

// ReadLayout reads the shape of the table. A reason not to serve it is a [*link.UnfitError].
func (t *Table) ReadLayout(ctx context.Context, conn *sql.Conn) (*Layout, error) {
	where := fmt.Sprintf("TABLE_SCHEMA = %s AND TABLE_NAME = %s", link.Literal(t.Database), link.Literal(t.Name))
	tables, err := link.Texts(ctx, conn, "SELECT TABLE_TYPE, IFNULL(ENGINE, '') FROM information_schema.TABLES WHERE "+where)
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", t.Quoted, err)
	}
	switch {
	case len(tables) == 0:
		return nil, t.unfit("it does not exist, or the user may not see it", grantRights)
	case tables[0][0] != "BASE TABLE":
		return nil, t.unfit("it is a "+tables[0][0]+", not a table", "name the table behind it")
	}
	engine := tables[0][1]
	columns, err := link.Texts(ctx, conn, "SELECT COLUMN_NAME, COLUMN_TYPE, LOWER(EXTRA), IS_NULLABLE = 'NO' AND COLUMN_DEFAULT IS NULL "+
		"FROM information_schema.COLUMNS WHERE "+where+" ORDER BY ORDINAL_POSITION")
	if err != nil {
		return nil, fmt.Errorf("read columns of %s: %w", t.Quoted, err)
	}
	unique, err := link.Texts(ctx, conn, "SELECT MAX(COLUMN_NAME) FROM information_schema.STATISTICS WHERE "+where+
		" GROUP BY INDEX_NAME HAVING MAX(NON_UNIQUE) = 0 AND COUNT(*) = 1 AND MAX(IFNULL(SUB_PART, 0)) = 0")
	if err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", t.Quoted, err)
	}
	keys, err := link.Texts(ctx, conn, "SELECT COUNT(DISTINCT INDEX_NAME) FROM information_schema.STATISTICS WHERE "+where+" AND NON_UNIQUE = 0")
	if err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", t.Quoted, err)
	}
	triggers, err := link.Texts(ctx, conn, fmt.Sprintf("SELECT TRIGGER_NAME FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s AND EVENT_OBJECT_TABLE = %s",
		link.Literal(t.Database), link.Literal(t.Name)))
	if err != nil {
		return nil, fmt.Errorf("read triggers of %s: %w", t.Quoted, err)
	}
	if len(triggers) > 0 {
		return nil, t.unfit("it has a trigger, "+triggers[0][0]+", which would not run for numbers out of memory", "DROP TRIGGER "+define.Quote(t.Database)+"."+define.Quote(triggers[0][0])+", or leave the table to the server")
	}
	grants, err := link.Texts(ctx, conn, "SHOW GRANTS")
	if err != nil {
		return nil, fmt.Errorf("read the user's rights: %w", err)
	}
	if !slices.ContainsFunc(grants, func(g []string) bool { return t.showsTriggers(g[0]) }) {
		return nil, t.unfit("the user may not see whether it has a trigger, which would not run for numbers out of memory", "GRANT TRIGGER ON "+define.Quote(t.Database)+".* TO the user")
	}
	l, err := t.read(columns, unique)
	if err != nil {
		return nil, err
	}
	if fmt.Sprint(len(unique)) != keys[0][0] {
		return nil, t.unfit("it has a unique key of several columns, or of a part of one", "drop the key, or leave the table to the server")
	}
	l.Engine = engine
	return l, nil
}

// grantRights mends a lack of rights.
const grantRights = "GRANT SELECT, INSERT, DELETE, TRIGGER, LOCK TABLES on its schema to the user"

// showsTriggers reports whether a line of SHOW GRANTS has the right without which MySQL shows no
// trigger. One for a pattern of schemas does not count: it ends where the schema has one of its
// own.
func (t *Table) showsTriggers(grant string) bool {
	rights, on, _ := strings.Cut(strings.TrimPrefix(grant, "GRANT "), " ON ")
	if rights != "ALL PRIVILEGES" && !slices.Contains(strings.Split(rights, ", "), "TRIGGER") {
		return false
	}
	on, _, _ = strings.Cut(on, " TO ")
	on = strings.NewReplacer("`", "", `\`, "").Replace(on)
	return on == "*.*" || on == t.Database+".*" || on == t.FullName()
}

// read interprets the columns: name, type, extra, and whether a new row must give a value.
func (t *Table) read(columns, unique [][]string) (*Layout, error) {
	isUnique := func(column string) bool {
		return slices.ContainsFunc(unique, func(u []string) bool { return u[0] == column })
	}
	l := &Layout{Columns: len(columns)}
	for _, c := range columns {
		switch name := c[0]; {
		case strings.Contains(c[2], "auto_increment"):
			var ok bool
			if l.Max, ok = define.ColumnMax(c[1]); !ok {
				return nil, t.unfit("its column "+define.Quote(name)+" is "+c[1]+", which does not count in whole numbers", "ALTER TABLE "+t.Quoted+" MODIFY "+define.Quote(name)+" BIGINT UNSIGNED NOT NULL AUTO_INCREMENT")
			}
			if !isUnique(name) {
				return nil, t.unfit("its column "+define.Quote(name)+" is not unique by itself", "make it the PRIMARY KEY")
			}
			l.ID = name
		case isUnique(name) && l.Stub == "":
			l.Stub = name
		case isUnique(name):
			return nil, t.unfit("it has two unique columns beside the counter", "leave the table to the server")
		case c[3] == "1":
			return nil, t.unfit("its column "+define.Quote(name)+" has no default", "give it one, or leave the table to the server")
		}
	}
	if l.ID == "" {
		return nil, t.unfit("it has no AUTO_INCREMENT column", "leave the table to the server")
	}
	return l, nil
}
