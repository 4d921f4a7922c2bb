package backend

import (
	"cmp"
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

// Lookers returns the configured accounts for looking at the tables on a shard's servers. The list
// may be empty.
func (r *Routes) Lookers(shard *Shard) (accounts []Credentials) {
	access := shard.access.Load()
	if access.creds != nil {
		return []Credentials{*access.creds}
	}
	for _, account := range []Credentials{r.probe, access.probe} {
		if account.User != "" && !slices.Contains(accounts, account) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// Column is a column of a table. An empty Schema means every table of that name.
type Column struct{ Schema, Table, Column string }

// tables selects, from COLUMNS as c, the tables that have the column. Views do not count.
func (c Column) tables() string {
	return "FROM information_schema.COLUMNS c " +
		"JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') " +
		"WHERE " + c.named()
}

// named is the condition on COLUMNS as c.
func (c Column) named() string {
	where := "NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')"
	if c.Schema != "" {
		where = "= " + literal(c.Schema)
	}
	return "c.TABLE_NAME = " + literal(c.Table) + " AND c.COLUMN_NAME = " + literal(c.Column) + " AND c.TABLE_SCHEMA " + where
}

// AutoIncrement is a table where the server itself numbers one of the given columns.
type AutoIncrement struct {
	Column        int // the index of the given column
	Shard         string
	Schema, Table string
	// Alter is the statement that takes AUTO_INCREMENT from the column and changes nothing else. It
	// is empty if the account may not see how the column is defined.
	Alter string
	// Referenced reports whether a foreign key refers to the column. MySQL then takes Alter only
	// with foreign_key_checks turned off.
	Referenced bool

	place string // identifies the server among those that run at the same time
}

// Statements returns the statements that take AUTO_INCREMENT from the column. There are none
// without Alter.
func (a *AutoIncrement) Statements() []string {
	switch {
	case a.Alter == "":
		return nil
	case a.Referenced:
		return []string{"SET SESSION foreign_key_checks = 0", a.Alter, "SET SESSION foreign_key_checks = 1"}
	}
	return []string{a.Alter}
}

// Remedy returns Statements as one text, or says what to do without them.
func (a *AutoIncrement) Remedy() string {
	return cmp.Or(strings.Join(a.Statements(), "; "),
		fmt.Sprintf("take AUTO_INCREMENT from the column in %s.%s; the account may not see how it is defined", a.Schema, a.Table))
}

// AutoIncrements returns the tables that have AUTO_INCREMENT in one of the columns on more than one
// shard: these shards give the same numbers. creds returns the accounts to look with on a shard, or
// why there are none. AutoIncrements skips accounts that a server refuses and tables that no
// account may see. The error names the shards that could not be asked.
func (r *Routes) AutoIncrements(ctx context.Context, creds func(*Shard) ([]Credentials, error), columns []Column) ([]AutoIncrement, error) {
	found, errs := make([][]AutoIncrement, len(r.shards)), make([]error, len(r.shards))
	var tasks sync.WaitGroup
	for i, shard := range r.shards {
		tasks.Go(func() {
			accounts, err := creds(shard)
			for _, account := range accounts {
				more, failed := r.autoIncrementsOn(ctx, shard, account, columns)
				if failed != nil && !errors.As(failed, new(*protocol.ServerError)) {
					err = failed
				}
				found[i] = append(found[i], more...)
			}
			errs[i] = err
		})
	}
	tasks.Wait()
	return r.OnSeveralShards(slices.Concat(found...)), errors.Join(errs...)
}

func (r *Routes) autoIncrementsOn(ctx context.Context, shard *Shard, account Credentials, columns []Column) ([]AutoIncrement, error) {
	c, err := r.DialSecond(ctx, Place{shard: shard, node: shard.primary()}, account)
	if err != nil {
		return nil, err
	}
	defer c.Quit()
	defer context.AfterFunc(ctx, c.Abort)()
	if err := c.SetDeadline(time.Now().Add(highestTimeout)); err != nil {
		return nil, fmt.Errorf("shard %s: %w", shard.name, err)
	}
	ask := func(_ context.Context, text string) ([][]string, error) {
		rows, err := c.Query(text)
		all := make([][]string, len(rows))
		for i, row := range rows {
			for _, value := range row {
				all[i] = append(all[i], string(value))
			}
		}
		return all, err
	}
	found, err := FindAutoIncrements(ctx, ask, shard.name, columns)
	if err != nil {
		return nil, fmt.Errorf("shard %s: %w", shard.name, err)
	}
	return found, nil
}

// FindAutoIncrements returns the tables of one shard that have AUTO_INCREMENT in one of the
// columns. ask runs a statement on the shard, in a session whose sql_mode changes.
func FindAutoIncrements(ctx context.Context, ask Ask, shard string, columns []Column) (all []AutoIncrement, err error) {
	// Other modes omit from a definition what only MySQL or only MariaDB has.
	if _, err := ask(ctx, "SET SESSION sql_mode = '', SESSION sql_quote_show_create = 1"); err != nil {
		return nil, err
	}
	variables, err := ask(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('hostname', 'port', 'server_id', 'server_uuid', 'datadir', 'lower_case_table_names', 'version')")
	if err != nil {
		return nil, err
	}
	var place strings.Builder
	folds, mariaDB := false, false
	for _, v := range variables {
		fmt.Fprintf(&place, "%s %s\n", v[0], v[1])
		folds = folds || v[0] == "lower_case_table_names" && v[1] != "0"
		mariaDB = mariaDB || v[0] == "version" && strings.Contains(v[1], "MariaDB")
	}
	for i, column := range columns {
		// A view has no such EXTRA. A look into TABLES, which tells views, would have MariaDB look at
		// all tables of all schemas.
		rows, err := ask(ctx, "SELECT c.TABLE_SCHEMA, c.TABLE_NAME, c.COLUMN_NAME FROM information_schema.COLUMNS c WHERE "+column.named()+
			" AND c.EXTRA LIKE '%auto_increment%' ORDER BY 1, 2 LIMIT "+strconv.Itoa(maxOwningTables))
		if err != nil {
			return nil, fmt.Errorf("look for columns with AUTO_INCREMENT: %w", err)
		}
		for _, row := range rows {
			if !folds && row[1] != column.Table {
				continue // the collation ignores case
			}
			table := quoted([]byte(row[0])) + "." + quoted([]byte(row[1]))
			found := AutoIncrement{Column: i, Shard: shard, Schema: row[0], Table: row[1], place: place.String()}
			shown, err := ask(ctx, "SHOW CREATE TABLE "+table)
			refused := new(protocol.ServerError)
			switch {
			case errors.As(err, &refused): // the account lacks a right
			case err != nil:
				return nil, err
			case len(shown) == 1 && len(shown[0]) > 1:
				definition, ok := withoutAutoIncrement(shown[0][1], row[2])
				if !ok {
					break
				}
				if _, invisible := without(definition, " INVISIBLE"); invisible && mariaDB {
					// MySQL demands a default here. The CHECK forbids its use.
					definition += " DEFAULT 0 CHECK (" + quoted([]byte(row[2])) + " <> 0)"
				}
				found.Alter = "ALTER TABLE " + table + " MODIFY " + definition
				if !mariaDB {
					keys, err := ask(ctx, "SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_SCHEMA = "+literal(row[0])+
						" AND REFERENCED_TABLE_NAME = "+literal(row[1])+" AND REFERENCED_COLUMN_NAME = "+literal(row[2])+" LIMIT 1")
					if err != nil {
						return nil, err
					}
					found.Referenced = len(keys) > 0
				}
			}
			all = append(all, found)
		}
	}
	return all, nil
}

// withoutAutoIncrement finds the definition of a column in the answer to SHOW CREATE TABLE, and
// returns it without AUTO_INCREMENT.
func withoutAutoIncrement(create, column string) (definition string, ok bool) {
	begin := "  " + quoted([]byte(column)) + " "
	for line := range strings.Lines(create) { // SHOW CREATE TABLE escapes line breaks within a text
		if strings.HasPrefix(line, begin) {
			return without(strings.TrimSuffix(strings.TrimSpace(line), ","), " AUTO_INCREMENT")
		}
	}
	return "", false
}

// without removes a word from a column's definition, together with the space in front of it. A word
// inside quotes stays.
func without(definition, word string) (rest string, ok bool) {
	for i := 0; i < len(definition); i++ {
		switch c := definition[i]; c {
		case '\'', '`':
			for i++; i < len(definition) && definition[i] != c; i++ {
				// The first of two doubled quotes ends a text, the second begins another.
				if definition[i] == '\\' && c == '\'' {
					i++
				}
			}
		case word[0]:
			if rest, ok := strings.CutPrefix(definition[i:], word); ok && (rest == "" || rest[0] == ' ') {
				return definition[:i] + rest, true
			}
		}
	}
	return "", false
}

// OnSeveralShards returns the tables of FindAutoIncrements that have AUTO_INCREMENT on more than
// one shard, each table once. Shards that share a server count as one, and so do nodes of one
// shard.
func (r *Routes) OnSeveralShards(all []AutoIncrement) (several []AutoIncrement) {
	type table struct {
		column               int
		place, schema, table string
	}
	rank := func(a *AutoIncrement) (rank int) { // ranks findings of one table
		if owner := r.ForSchema(a.Schema); owner != nil && owner.name == a.Shard {
			rank += 2
		}
		if a.Alter != "" {
			rank++
		}
		return rank
	}
	index := make(map[table]int)
	var tables []AutoIncrement
	for _, a := range all {
		k := table{a.Column, a.place, a.Schema, a.Table}
		switch i, ok := index[k]; {
		case !ok:
			index[k] = len(tables)
			tables = append(tables, a)
		case rank(&a) > rank(&tables[i]):
			tables[i] = a
		}
	}
	shards := make(map[int]map[string]bool) // by column
	once := make(map[AutoIncrement]bool)
	for _, a := range tables {
		if shards[a.Column] == nil {
			shards[a.Column] = make(map[string]bool)
		}
		shards[a.Column][a.Shard] = true
	}
	for _, a := range tables {
		a.place = "" // a node's address does not identify a shard
		if len(shards[a.Column]) > 1 && !once[a] {
			once[a] = true
			several = append(several, a)
		}
	}
	slices.SortStableFunc(several, func(a, b AutoIncrement) int {
		return cmp.Or(cmp.Compare(a.Column, b.Column), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Schema, b.Schema))
	})
	return several
}
