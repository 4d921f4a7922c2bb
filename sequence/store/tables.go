package store

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
)

// The tables of a sequence server are created together when a proxy first connects, if its account
// and the configuration allow that. Else an operator creates them with [Statements].

// OtherTable is a table named after that of the sequences.
type OtherTable struct {
	Suffix string // of its name, after that of the first table
	// the statement, with places for the table's name and, if it has names of sequences, for their
	// type
	create string
	named  bool
}

// OtherTables are all of them. Their suffixes bound the length of the first table's name.
var OtherTables = []OtherTable{
	{OptionsSuffix, CreateOptions, true},
	{versionSuffix, createVersion, false},
	{proxySuffix, CreateProxies, false},
	{holderSuffix, CreateHolder, false},
	{limitSuffix, createLimit, true},
	{memberSuffix, createMember, false},
	{planSuffix, createPlan, false},
	{PlanStartSuffix, createPlanStart, true},
}

// Statement makes the table. nameType is the type of `name` in the first table, so that names
// compare alike in both.
func (b *OtherTable) Statement(database, first, nameType string) string {
	full := define.Quote(database) + "." + define.Quote(first+b.Suffix)
	if b.named {
		return fmt.Sprintf(b.create, full, nameType)
	}
	return fmt.Sprintf(b.create, full)
}

var columnDefinition = regexp.MustCompile("`([a-z_]+)` [a-z%]")

// Columns returns the names of its columns.
func (b *OtherTable) Columns() (names []string) {
	for _, found := range columnDefinition.FindAllStringSubmatch(b.create, -1) {
		names = append(names, found[1])
	}
	return names
}

// PlainNameType is the type of `name` in a table that seqproxy makes, in the schema's character
// set.
const PlainNameType = "varchar(50)"

// Statements create the schema and all tables of a sequence server, for an account that may not
// create them itself.
func Statements(database, first string) []string {
	all := []string{"CREATE DATABASE IF NOT EXISTS " + define.Quote(database), createFirst(database, first)}
	for i := range OtherTables {
		all = append(all, OtherTables[i].Statement(database, first, PlainNameType))
	}
	return all
}

func createFirst(database, first string) string {
	return fmt.Sprintf(CreateTable, define.Quote(database)+"."+define.Quote(first))
}

// schemaWayOut is the way out when tables are missing.
const schemaWayOut = "have somebody who may create them run what `seqproxy schema` prints, once"

// names returns the names of all tables, that of the sequences first.
func (s *Schema) names() []string {
	all := []string{s.Config.Table}
	for i := range OtherTables {
		all = append(all, s.Config.Table+OtherTables[i].Suffix)
	}
	return all
}

// InTables is the condition on information_schema that selects all tables.
func (s *Schema) InTables() string {
	names := s.names()
	for i, name := range names {
		names[i] = link.Literal(name)
	}
	return fmt.Sprintf("TABLE_SCHEMA = %s AND TABLE_NAME IN (%s)", link.Literal(s.Config.Database), strings.Join(names, ", "))
}

// LookForTables says which tables are missing, and returns the faults of the others that could lose
// a committed number.
func (s *Schema) LookForTables(ctx context.Context, c link.Raw) (missing []string, findings []error, err error) {
	rows, err := c.Query(ctx, "SELECT TABLE_NAME, TABLE_TYPE, IFNULL(ENGINE, '') FROM information_schema.TABLES WHERE "+s.InTables())
	if err != nil {
		return nil, nil, fmt.Errorf("look for table %s and those beside it: %w", s.Table.Sequence, err)
	}
	for _, name := range s.names() {
		full := define.Quote(s.Config.Database) + "." + define.Quote(name)
		at := slices.IndexFunc(rows, func(r []string) bool { return strings.EqualFold(r[0], name) })
		switch {
		case at < 0:
			missing = append(missing, name)
		case rows[at][1] != "BASE TABLE":
			findings = append(findings, s.Unfit(full, "it is a "+rows[at][1]+", not a table", "name the table behind it"))
		case !strings.EqualFold(rows[at][2], "InnoDB"):
			findings = append(findings, s.Unfit(full, "its engine is "+rows[at][2]+", which does not keep what was committed through a crash", "ALTER TABLE "+full+" ENGINE=InnoDB"))
		}
	}
	return missing, findings, nil
}

// lost returns the findings about tables that were there: this process has seen them, or one that
// is made after them is there. Empty ones in their places would give numbers again, or forget what
// was dropped and who may serve.
func (s *Schema) lost(missing []string) (findings []error) {
	names := s.names()
	last := names[len(names)-1]
	seen := s.Seen.Load() != nil
	isThere := func(name string) string {
		if seen {
			return "although it was there before"
		}
		return "while " + name + " is there"
	}
	wayOut, rights := "restore it (docs: Backup and restore); or "+schemaWayOut, "; or "+s.Grants()
	if slices.Contains(missing, names[0]) && (seen || !slices.Contains(missing, names[1])) {
		findings = append(findings, s.Unfit(s.Table.Sequence, "it is gone, or the user may not see it, "+isThere(s.Table.Options)+": an empty table would give its numbers again",
			wayOut+", and CREATE each SEQUENCE above all its keys"+rights))
	}
	if slices.Contains(missing, last) && !seen {
		return findings
	}
	for _, name := range missing {
		if name != names[0] {
			findings = append(findings, s.Unfit(define.Quote(s.Config.Database)+"."+define.Quote(name),
				"it is gone, or the user may not see it, "+isThere(s.Table.PlanStart)+": an empty table would forget what keeps numbers from being given again", wayOut+rights))
		}
	}
	return findings
}

// tablesMissing is the finding about missing tables.
func (s *Schema) tablesMissing(missing []string) error {
	full := make([]string, len(missing))
	for i, name := range missing {
		full[i] = define.Quote(s.Config.Database) + "." + define.Quote(name)
	}
	remedy := schemaWayOut + ", or set create_table = true; or " + s.Grants()
	if s.Config.LookOnly && s.Config.MayCreate() {
		remedy = "run it without -dry-run, which makes it; or " + s.Grants()
	}
	if len(missing) == 1 {
		return s.Unfit(full[0], "it does not exist, or the user may not see it", remedy)
	}
	return s.Unfit(full[0], "it does not exist, or the user may not see it, and so it is with "+strings.Join(full[1:], ", "), remedy)
}

// EachMissing returns a finding for each missing table that a proxy does not make, with the
// statement that makes it.
func (s *Schema) EachMissing(missing []string, nameType string) (findings []error) {
	findings = s.lost(missing)
	if s.Config.MayCreate() {
		return findings
	}
	statements := map[string]string{s.Config.Table: createFirst(s.Config.Database, s.Config.Table)}
	for i := range OtherTables {
		statements[s.Config.Table+OtherTables[i].Suffix] = OtherTables[i].Statement(s.Config.Database, s.Config.Table, nameType)
	}
	for _, name := range missing {
		findings = append(findings, s.Unfit(define.Quote(s.Config.Database)+"."+define.Quote(name), "it does not exist, or the user may not see it",
			statements[name]+", or set create_table = true; `seqproxy schema` prints this for all tables"))
	}
	return findings
}

// soundTables is LookForTables up to the first finding.
func (s *Schema) soundTables(ctx context.Context, c link.Raw) (missing []string, err error) {
	missing, findings, err := s.LookForTables(ctx, c)
	if err == nil && len(findings) > 0 {
		err = findings[0]
	}
	return missing, err
}

// CheckTables implements [link.Tables], and keeps what it has found.
func (s *Schema) CheckTables(ctx context.Context, c link.Raw) error {
	found, err := s.completeTables(ctx, c)
	if err != nil {
		return err
	}
	if err := s.CheckLoneNode(ctx, c); err != nil {
		return err
	}
	s.Seen.Store(found)
	return nil
}

// completeTables creates the missing tables if that is allowed, and checks the columns.
func (s *Schema) completeTables(ctx context.Context, c link.Raw) (*Layout, error) {
	missing, err := s.soundTables(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		switch {
		case !s.Config.MayCreate():
			return nil, s.tablesMissing(missing)
		case s.Config.LookOnly && len(missing) == len(s.names()):
			return nil, define.ErrUnknown
		case s.Config.LookOnly:
			return nil, append(s.lost(missing), s.tablesMissing(missing))[0]
		}
		// Another connection may be making them.
		if err := s.making.Acquire(ctx); err != nil {
			return nil, err
		}
		defer s.making.Release()
		if missing, err = s.soundTables(ctx, c); err != nil {
			return nil, err
		}
	}
	if findings := s.lost(missing); len(findings) > 0 {
		return nil, findings[0]
	}
	made := slices.Contains(missing, s.Config.Table)
	if made {
		if err := s.createOne(ctx, c, s.Config.Table, createFirst(s.Config.Database, s.Config.Table)); err != nil {
			return nil, err
		}
	}
	seen, err := s.checkColumns(ctx, c)
	if err != nil {
		return nil, err
	}
	for i := range OtherTables {
		name := s.Config.Table + OtherTables[i].Suffix
		if !slices.Contains(missing, name) {
			continue
		}
		if err := s.createOne(ctx, c, name, OtherTables[i].Statement(s.Config.Database, s.Config.Table, seen.NameType)); err != nil {
			return nil, err
		}
		made = true
	}
	if made {
		s.Log.Info("sequence tables created", zap.Strings("tables", missing))
		if missing, _, err := s.LookForTables(ctx, c); err != nil || len(missing) > 0 {
			if err == nil {
				err = s.tablesMissing(missing)
			}
			return nil, err
		}
	}
	return seen, nil
}

// createOne creates a table, and the schema if that is missing, too. Where the schema exists,
// rights on it are enough.
func (s *Schema) createOne(ctx context.Context, c link.Raw, name, create string) error {
	err := c.Exec(ctx, create)
	if link.HasCode(err, gomysql.ER_BAD_DB_ERROR) {
		if err = c.Exec(ctx, "CREATE DATABASE IF NOT EXISTS "+define.Quote(s.Config.Database)); err == nil {
			s.Log.Info("schema created", zap.String("schema", s.Config.Database))
			err = c.Exec(ctx, create)
		}
	}
	full := define.Quote(s.Config.Database) + "." + define.Quote(name)
	switch {
	case link.HasCode(err, gomysql.ER_DBACCESS_DENIED_ERROR, gomysql.ER_TABLEACCESS_DENIED_ERROR, gomysql.ER_ACCESS_DENIED_ERROR):
		return s.Unfit(full, fmt.Sprintf("it does not exist, or the user may not see it, and the user may not create it: %v", err),
			fmt.Sprintf("%s; or CREATE DATABASE %s, and %s; or name a schema where it may, by `database` under [sequence] in a configuration file",
				schemaWayOut, define.Quote(s.Config.Database), s.Grants()))
	case err != nil:
		return fmt.Errorf("create table %s: %w", full, err)
	}
	return nil
}

// lacking returns which columns our tables lack, by the columns that information_schema has: such
// tables are not ours.
func (s *Schema) lacking(columns [][]string) (findings []error) {
	has := make(map[string]bool, len(columns))
	there := make(map[string]bool)
	for _, r := range columns {
		has[strings.ToLower(r[0]+"."+r[1])], there[strings.ToLower(r[0])] = true, true
	}
	for i := range OtherTables {
		name := s.Config.Table + OtherTables[i].Suffix
		if !there[strings.ToLower(name)] {
			continue
		}
		lost := slices.DeleteFunc(OtherTables[i].Columns(), func(column string) bool { return has[strings.ToLower(name+"."+column)] })
		if len(lost) > 0 {
			findings = append(findings, s.Unfit(define.Quote(s.Config.Database)+"."+define.Quote(name), "it lacks the columns "+strings.Join(lost, ", ")+", so it is none of seqproxy's",
				"name another `table` under [sequence], or move that one away"))
		}
	}
	return findings
}

// WriteError adds the table's name to an error of writing it.
func WriteError(table string, err error) error {
	if err != nil {
		return fmt.Errorf("write table %s: %w", table, err)
	}
	return nil
}

// FloorBatch bounds the rows in one statement.
const FloorBatch = 500
