package sequence

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"
)

// This file is which tables a sequence server has. They are created together, when a proxy first connects, where its account may and the configuration lets it. Else somebody creates
// them by hand, as [Schema] has them.

// besideTable is a table beside that of the sequences.
type besideTable struct {
	suffix string // of its name, behind that of the first table
	create string // the statement, without the table's name and, if it has names of sequences, the type of those
	named  bool
}

// besides are all of them. Suffixes count for how long the first table's name may be.
var besides = []besideTable{
	{optionsSuffix, createOptions, true},
	{proxySuffix, createProxies, false},
	{guardSuffix, createGuard, true},
	{memberSuffix, createMember, false},
	{planSuffix, createPlan, false},
	{planStartSuffix, createPlanStart, true},
}

// statement makes the table. nameType is that of the column `name` of the first table, so that names compare alike in both.
func (b *besideTable) statement(database, first, nameType string) string {
	full := quote(database) + "." + quote(first+b.suffix)
	if b.named {
		return fmt.Sprintf(b.create, full, nameType)
	}
	return fmt.Sprintf(b.create, full)
}

var columnDefinition = regexp.MustCompile("`([a-z_]+)` [a-z%]")

// columns are the names of its columns.
func (b *besideTable) columns() (names []string) {
	for _, found := range columnDefinition.FindAllStringSubmatch(b.create, -1) {
		names = append(names, found[1])
	}
	return names
}

// plainNameType is that of a table that seqproxy makes. It has the schema's character set.
const plainNameType = "varchar(50)"

// Schema are the statements that create the schema and all tables of a sequence server, for an account that may not create them itself.
func Schema(database, first string) []string {
	all := []string{"CREATE DATABASE IF NOT EXISTS " + quote(database), createFirst(database, first)}
	for i := range besides {
		all = append(all, besides[i].statement(database, first, plainNameType))
	}
	return all
}

func createFirst(database, first string) string {
	return fmt.Sprintf(createTable, quote(database)+"."+quote(first))
}

// schemaWayOut is what mends that tables are missing.
const schemaWayOut = "have somebody who may create them run what `seqproxy schema` prints, once"

// tables looks at the tables of a server.
type tables struct {
	missing []string // names
}

// names are those of all tables; the first one is that of the sequences.
func (v *server) names() []string {
	all := []string{v.opts.Table}
	for i := range besides {
		all = append(all, v.opts.Table+besides[i].suffix)
	}
	return all
}

// inTables is the condition on information_schema for all tables.
func (v *server) inTables() string {
	names := v.names()
	for i, name := range names {
		names[i] = literal(name)
	}
	return fmt.Sprintf("TABLE_SCHEMA = %s AND TABLE_NAME IN (%s)", literal(v.opts.Database), strings.Join(names, ", "))
}

// lookForTables says which tables are missing, and returns all that is wrong with those that are there: what does not keep a committed number.
func (v *server) lookForTables(ctx context.Context, c rawConn) (found tables, findings []error, err error) {
	rows, err := c.query(ctx, "SELECT TABLE_NAME, TABLE_TYPE, IFNULL(ENGINE, '') FROM information_schema.TABLES WHERE "+v.inTables())
	if err != nil {
		return found, nil, fmt.Errorf("look for table %s and those beside it: %w", v.table.full, err)
	}
	for _, name := range v.names() {
		full := quote(v.opts.Database) + "." + quote(name)
		at := slices.IndexFunc(rows, func(r []string) bool { return strings.EqualFold(r[0], name) })
		switch {
		case at < 0:
			found.missing = append(found.missing, name)
		case rows[at][1] != "BASE TABLE":
			findings = append(findings, v.unfit(full, "it is a "+rows[at][1]+", not a table", "name the table behind it"))
		case !strings.EqualFold(rows[at][2], "InnoDB"):
			findings = append(findings, v.unfit(full, "its engine is "+rows[at][2]+", which does not keep what was committed through a crash", "ALTER TABLE "+full+" ENGINE=InnoDB"))
		}
	}
	return found, findings, nil
}

// lacksFirst reports whether the first table is missing.
func (t *tables) lacksFirst(v *server) bool { return slices.Contains(t.missing, v.opts.Table) }

// tablesMissing is the finding about tables that are not there.
func (v *server) tablesMissing(missing []string) error {
	full := make([]string, len(missing))
	for i, name := range missing {
		full[i] = quote(v.opts.Database) + "." + quote(name)
	}
	remedy := schemaWayOut + ", or set create_table = true; or " + v.grants()
	if len(missing) == 1 {
		return v.unfit(full[0], "it does not exist, or the user may not see it", remedy)
	}
	return v.unfit(full[0], "it does not exist, or the user may not see it, and so it is with "+strings.Join(full[1:], ", "), remedy)
}

// eachMissing are the findings about tables that are not there and that a proxy does not make, with the statement that makes each.
func (v *server) eachMissing(missing []string, nameType string) (findings []error) {
	if v.tuning.Load().CreateTable {
		return nil
	}
	statements := map[string]string{v.opts.Table: createFirst(v.opts.Database, v.opts.Table)}
	for i := range besides {
		statements[v.opts.Table+besides[i].suffix] = besides[i].statement(v.opts.Database, v.opts.Table, nameType)
	}
	for _, name := range missing {
		findings = append(findings, v.unfit(quote(v.opts.Database)+"."+quote(name), "it does not exist, or the user may not see it",
			statements[name]+", or set create_table = true; `seqproxy schema` prints this for all tables"))
	}
	return findings
}

// soundTables is lookForTables that ends with the first finding.
func (v *server) soundTables(ctx context.Context, c rawConn) (tables, error) {
	found, findings, err := v.lookForTables(ctx, c)
	if err == nil && len(findings) > 0 {
		err = findings[0]
	}
	return found, err
}

// checkTables creates the tables that are missing if that is allowed, and looks at their columns.
func (v *server) checkTables(ctx context.Context, c rawConn) (*layout, error) {
	found, err := v.soundTables(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(found.missing) > 0 {
		if !v.tuning.Load().CreateTable {
			return nil, v.tablesMissing(found.missing)
		}
		// Another connection may make them.
		if err := v.making.take(ctx); err != nil {
			return nil, err
		}
		defer v.making.end()
		if found, err = v.soundTables(ctx, c); err != nil {
			return nil, err
		}
	}
	if found.lacksFirst(v) {
		if err := v.createOne(ctx, c, v.opts.Table, createFirst(v.opts.Database, v.opts.Table)); err != nil {
			return nil, err
		}
	}
	seen, err := v.checkColumns(ctx, c)
	if err != nil {
		return nil, err
	}
	made := found.lacksFirst(v)
	for i := range besides {
		name := v.opts.Table + besides[i].suffix
		if !slices.Contains(found.missing, name) {
			continue
		}
		if err := v.createOne(ctx, c, name, besides[i].statement(v.opts.Database, v.opts.Table, seen.nameType)); err != nil {
			return nil, err
		}
		made = true
	}
	if made {
		v.log.Info("sequence tables created", zap.Strings("tables", found.missing))
		if found, _, err := v.lookForTables(ctx, c); err != nil || len(found.missing) > 0 {
			if err == nil {
				err = v.tablesMissing(found.missing)
			}
			return nil, err
		}
	}
	return seen, nil
}

// createOne creates a table, and the schema if that is missing too. Rights on the schema alone are enough where the schema is there.
func (v *server) createOne(ctx context.Context, c rawConn, name, create string) error {
	err := c.exec(ctx, create)
	if hasCode(err, gomysql.ER_BAD_DB_ERROR) {
		if err = c.exec(ctx, "CREATE DATABASE IF NOT EXISTS "+quote(v.opts.Database)); err == nil {
			v.log.Info("schema created", zap.String("schema", v.opts.Database))
			err = c.exec(ctx, create)
		}
	}
	full := quote(v.opts.Database) + "." + quote(name)
	switch {
	case hasCode(err, gomysql.ER_DBACCESS_DENIED_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_ACCESS_DENIED_ERROR):
		return v.unfit(full, fmt.Sprintf("it does not exist, or the user may not see it, and the user may not create it: %v", err),
			fmt.Sprintf("%s; or CREATE DATABASE %s, and %s; or name a schema where it may as `database` under [sequence] in a configuration file",
				schemaWayOut, quote(v.opts.Database), v.grants()))
	case err != nil:
		return fmt.Errorf("create table %s: %w", full, err)
	}
	return nil
}

// lacking returns what tables beside the first one, as information_schema has their columns, lack. They are not ours.
func (v *server) lacking(columns [][]string) (findings []error) {
	has := make(map[string]bool, len(columns))
	there := make(map[string]bool)
	for _, r := range columns {
		has[strings.ToLower(r[0]+"."+r[1])], there[strings.ToLower(r[0])] = true, true
	}
	for i := range besides {
		name := v.opts.Table + besides[i].suffix
		if !there[strings.ToLower(name)] {
			continue
		}
		lost := slices.DeleteFunc(besides[i].columns(), func(column string) bool { return has[strings.ToLower(name+"."+column)] })
		if len(lost) > 0 {
			findings = append(findings, v.unfit(quote(v.opts.Database)+"."+quote(name), "it lacks the columns "+strings.Join(lost, ", ")+", so it is none of seqproxy's",
				"name another `table` under [sequence], or move that one away"))
		}
	}
	return findings
}
