package shown

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement/ddl"
	"seqproxy/statement/idiom"
)

// Session is the session that asks.
type Session interface {
	// Exists reports whether a sequence has a name, and Sees whether the user may see it.
	Exists(name []byte) (bool, error)
	Sees(name []byte) (bool, error)
	// InUTF8 converts a name from another character set.
	InUTF8(name []byte, charset string) ([]byte, error)
	// Ask runs a statement of the proxy on a server.
	Ask(c *backend.Conn, sql string) ([][][]byte, error)
}

// Sequences describes the sequences. *sequence.Sequences implements it.
type Sequences interface {
	// Definitions returns the definitions of all sequences. It asks a server.
	Definitions(ctx context.Context) ([]sequence.Definition, error)
	// Describe returns the definition of a sequence and where it stands. It asks a server.
	Describe(ctx context.Context, name []byte) (sequence.Definition, sequence.State, error)
}

// Writer writes sequences into the questions of a session.
type Writer struct {
	Session   Session
	Sequences Sequences
	Patience  *keys.Patience
	Schema    string // the session's current schema
	Table     string // the schema of the sequence table
}

// Write returns the text of a question for the server of c, with the proxy's sequences in it. It
// returns sql itself if there are none to write.
func (w *Writer) Write(c *backend.Conn, q *idiom.SequenceQuestion, sql []byte, charset string) (text []byte, err error) {
	var shown []shownSequence
	if q.Sources[0].Kind != idiom.SourceOne {
		if shown, err = w.all(); len(shown) == 0 || err != nil {
			return sql, err
		}
	}
	from := 0
	for i := range q.Sources {
		source := &q.Sources[i]
		var instead, behind string
		switch source.Kind {
		case idiom.SourceShow:
			instead, behind, err = w.showFrom(c, source, charset, shown)
		case idiom.SourceOne:
			instead, err = w.asTable(c, source, charset)
		default:
			instead = viewWith(c, q, source, sql, shown)
		}
		if err != nil {
			return nil, err
		}
		if instead == "" {
			continue
		}
		text = append(append(text, sql[from:source.Start]...), instead...)
		from = source.End
		if behind != "" {
			text = append(append(text, sql[from:q.End]...), behind...)
			from = q.End
		}
	}
	if from == 0 {
		return sql, nil
	}
	return append(text, sql[from:]...), nil
}

// shownSequence is a sequence in a schema.
type shownSequence struct {
	schema, name string
	def          *sequence.Definition
}

// all returns the sequences that the user may use, in each schema in which their names mean them:
// "photos" is one of the session's present schema, and of the schema of the sequence table;
// "album0.photos" is photos in album0.
func (w *Writer) all() (all []shownSequence, err error) {
	defs, err := w.Sequences.Definitions(w.Patience)
	if err = w.Patience.Over(err); err != nil {
		return nil, err
	}
	schemas := slices.Compact([]string{w.Table, w.Schema})
	seen := make(map[[2]string]bool)
	show := func(schema, name string, d *sequence.Definition) {
		if key := [2]string{schema, name}; schema != "" && !seen[key] {
			seen[key] = true
			all = append(all, shownSequence{schema, name, d})
		}
	}
	for i := range defs {
		d := &defs[i]
		if may, err := w.Session.Sees([]byte(d.Name)); err != nil {
			return nil, err
		} else if !may {
			continue
		}
		if schema, name, ok := strings.Cut(d.Name, "."); ok && schema != "" && name != "" {
			show(schema, name, d)
			continue
		}
		for _, schema := range schemas {
			show(schema, d.Name, d)
		}
	}
	return all, nil
}

// viewColumn is a column of a table of information_schema, with the value of a sequence.
type viewColumn struct {
	name  string
	value func(*shownSequence) string // as SQL
}

func constantly(sql string) func(*shownSequence) string {
	return func(*shownSequence) string { return sql }
}

// tablesColumns are the columns of TABLES. MySQL has only the first 21.
var tablesColumns = []viewColumn{
	{"TABLE_CATALOG", constantly("'def'")},
	{"TABLE_SCHEMA", func(q *shownSequence) string { return plan.Literal(q.schema) }},
	{"TABLE_NAME", func(q *shownSequence) string { return plan.Literal(q.name) }},
	{"TABLE_TYPE", constantly("'SEQUENCE'")},
	{"ENGINE", constantly("'InnoDB'")},
	{"VERSION", constantly("10")},
	{"ROW_FORMAT", constantly("'Fixed'")},
	{"TABLE_ROWS", constantly("1")},
	{"AVG_ROW_LENGTH", constantly("16384")},
	{"DATA_LENGTH", constantly("16384")},
	{"MAX_DATA_LENGTH", constantly("0")},
	{"INDEX_LENGTH", constantly("0")},
	{"DATA_FREE", constantly("0")},
	{"AUTO_INCREMENT", constantly("NULL")},
	{"CREATE_TIME", constantly("NULL")},
	{"UPDATE_TIME", constantly("NULL")},
	{"CHECK_TIME", constantly("NULL")},
	{"TABLE_COLLATION", constantly("'utf8mb4_general_ci'")},
	{"CHECKSUM", constantly("NULL")},
	{"CREATE_OPTIONS", constantly("''")},
	{"TABLE_COMMENT", func(q *shownSequence) string { return plan.Literal(q.def.Comment) }},
	{"MAX_INDEX_LENGTH", constantly("0")},
	{"TEMPORARY", constantly("'N'")},
}

const tablesColumnsOfMySQL = 21

// sequencesColumns are the columns of SEQUENCES, which MariaDB has since 11.5.
var sequencesColumns = []viewColumn{
	{"SEQUENCE_CATALOG", constantly("'def'")},
	{"SEQUENCE_SCHEMA", func(q *shownSequence) string { return plan.Literal(q.schema) }},
	{"SEQUENCE_NAME", func(q *shownSequence) string { return plan.Literal(q.name) }},
	{"DATA_TYPE", constantly("'bigint'")},
	{"NUMERIC_PRECISION", constantly("64")},
	{"NUMERIC_PRECISION_RADIX", constantly("2")},
	{"NUMERIC_SCALE", constantly("0")},
	{"START_VALUE", func(q *shownSequence) string { return digits(q.def.Start) }},
	{"MINIMUM_VALUE", func(q *shownSequence) string { return digits(q.def.Min) }},
	{"MAXIMUM_VALUE", func(q *shownSequence) string { return digits(maxShown(q.def)) }},
	{"INCREMENT", func(q *shownSequence) string { return digits(q.def.Increment) }},
	{"CYCLE_OPTION", func(q *shownSequence) string { return zeroOne(q.def.Cycle) }},
}

func digits(n uint64) string { return strconv.FormatUint(n, 10) }

func zeroOne(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

// maxShown is the greatest number of a sequence as MariaDB shows it. Without MAXVALUE it is
// MariaDB's default: programs read it as a BIGINT.
func maxShown(d *sequence.Definition) uint64 {
	const maxOfMariaDB, maxJSON = math.MaxInt64 - 1, 1<<53 - 1
	switch {
	case d.Max != 0:
		return d.Max
	case d.JSONSafe:
		return maxJSON
	}
	return maxOfMariaDB
}

// viewWith is a table of information_schema with sequences added. It has only the columns that the
// question names: for others the server would open every table.
func viewWith(c *backend.Conn, q *idiom.SequenceQuestion, source *idiom.SequenceSource, sql []byte, shown []shownSequence) string {
	columns := sequencesColumns
	if source.Kind == idiom.SourceTables {
		if columns = tablesColumns; !c.Hello.MariaDB {
			columns = columns[:tablesColumnsOfMySQL]
		}
	}
	if !q.All {
		columns = slices.DeleteFunc(slices.Clone(columns), func(v viewColumn) bool { return !slices.Contains(q.Named, v.name) })
	}
	if len(columns) == 0 { // as in SELECT 1, or COUNT(*)
		columns = sequencesColumns[1:3]
	}
	text := view(string(sql[source.Start:source.End]), columns, shown, c.Hello.MariaDB)
	if !source.Aliased {
		text += " AS " + plan.Quoted(string(source.Name))
	}
	return text
}

// view is that table as a derived table. If the server has a sequence of the same name, only that
// is shown.
func view(table string, columns []viewColumn, shown []shownSequence, mariaDB bool) string {
	var b strings.Builder
	b.WriteString("(SELECT ")
	for i := range columns {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(columns[i].name)
	}
	b.WriteString(" FROM ")
	b.WriteString(table)
	for i := range shown {
		b.WriteString(" UNION ALL SELECT ")
		for j := range columns {
			if j > 0 {
				b.WriteByte(',')
			}
			b.WriteString(columns[j].value(&shown[i]))
		}
		if mariaDB {
			fmt.Fprintf(&b, " FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA=%s AND TABLE_NAME=%s AND TABLE_TYPE='SEQUENCE')",
				plan.Literal(shown[i].schema), plan.Literal(shown[i].name))
		}
	}
	b.WriteByte(')')
	return b.String()
}

// showFrom returns the texts before and after the condition of SHOW FULL TABLES ... WHERE, whose
// rows are in the order of the names' bytes.
func (w *Writer) showFrom(c *backend.Conn, source *idiom.SequenceSource, charset string, shown []shownSequence) (before, behind string, err error) {
	schema := w.Schema
	if len(source.Schema) > 0 {
		in, err := w.Session.InUTF8(source.Schema, charset)
		if err != nil {
			return "", "", err
		}
		schema = string(in)
	}
	if schema == "" {
		return "", "", nil
	}
	// The server decides which schemas it shows.
	if _, err := w.Session.Ask(c, "SHOW TABLES FROM "+plan.Quoted(schema)+" LIKE ''"); errors.As(err, new(*protocol.ServerError)) {
		return "", "", nil
	} else if err != nil {
		return "", "", err
	}
	name := plan.Quoted("Tables_in_" + schema)
	before = fmt.Sprintf("SELECT * FROM (SELECT TABLE_NAME AS %s, TABLE_TYPE AS `Table_type` FROM %s AS t WHERE TABLE_SCHEMA=%s) AS t WHERE ",
		name, view("information_schema.TABLES", tablesColumns[1:4], shown, c.Hello.MariaDB), plan.Literal(schema))
	return before, " ORDER BY CAST(" + name + " AS BINARY)", nil
}

// asTable is a sequence of the proxy as a derived table, readable like MariaDB's. It is empty if
// the source means something else: no sequence of the proxy, or a table with such columns.
func (w *Writer) asTable(c *backend.Conn, source *idiom.SequenceSource, charset string) (string, error) {
	name, err := w.Session.InUTF8(source.Name, charset)
	if err != nil {
		return "", err
	}
	table := plan.Quoted(string(name))
	names := [][]byte{name}
	if len(source.Schema) > 0 {
		schema, err := w.Session.InUTF8(source.Schema, charset)
		if err != nil {
			return "", err
		}
		table = plan.Quoted(string(schema)) + "." + table
		qualified := slices.Concat(schema, []byte("."), name)
		switch string(schema) {
		case w.Table:
		case w.Schema: // lists show it there
			names = [][]byte{qualified, name}
		default:
			names = [][]byte{qualified}
		}
	}
	for _, name := range names {
		exists, err := w.Session.Exists(name)
		if err != nil {
			return "", err
		}
		if !exists {
			continue
		}
		if may, err := w.Session.Sees(name); !may || err != nil {
			return "", err
		}
		if taken, err := w.hasTable(c, table); taken || err != nil {
			return "", err
		}
		return w.rowOf(source, name)
	}
	return "", nil
}

// Listed returns the name of the sequence that lists show under the first name in of, with the
// session's schema in front; nil if there is none. attach gives the connection to ask on.
func (w *Writer) Listed(of *ddl.Sequence, attach func() (*backend.Conn, error)) ([]byte, error) {
	if len(of.Names) == 0 { // the text has an error
		return nil, nil
	}
	full, n := of.Names[0], of.Schemas[0]
	if n <= 0 || string(full[:n]) != w.Schema {
		return nil, nil
	}
	name := full[n+1:]
	if exists, err := w.Session.Exists(full); exists || err != nil {
		return nil, err
	}
	if exists, err := w.Session.Exists(name); !exists || err != nil {
		return nil, err
	}
	c, err := attach()
	if err != nil {
		return nil, err
	}
	if taken, err := w.hasTable(c, plan.Quoted(string(full[:n]))+"."+plan.Quoted(string(name))); taken || err != nil {
		return nil, err
	}
	return name, nil
}

// hasTable reports whether the server has a table with the columns of a sequence, or may have.
func (w *Writer) hasTable(c *backend.Conn, table string) (bool, error) {
	rows, err := w.Session.Ask(c, "SHOW COLUMNS FROM "+table+" WHERE Field IN ('minimum_value','next_not_cached_value')")
	var refused *protocol.ServerError
	if errors.As(err, &refused) {
		return refused.Code != mysql.ER_NO_SUCH_TABLE && refused.Code != mysql.ER_BAD_DB_ERROR && refused.Code != mysql.ER_NO_DB_ERROR, nil
	}
	return len(rows) > 0, err
}

// rowOf is the row of a sequence, with MariaDB's columns.
func (w *Writer) rowOf(source *idiom.SequenceSource, name []byte) (string, error) {
	d, state, err := w.Sequences.Describe(w.Patience, name)
	if err = w.Patience.Over(err); err != nil {
		return "", err
	}
	after, cache := state.After, d.Cache
	if after == 0 {
		after = state.Limit
		if after < math.MaxUint64 {
			after++
		}
	}
	switch cache {
	case 0:
		cache = state.Cache
	case 1: // NOCACHE
		cache = 0
	}
	text := fmt.Sprintf("(SELECT %s AS `next_not_cached_value`, %s AS `minimum_value`, %s AS `maximum_value`, %s AS `start_value`, %s AS `increment`,"+
		" CAST(%d AS UNSIGNED) AS `cache_size`, CAST(%s AS UNSIGNED) AS `cycle_option`, CAST(0 AS SIGNED) AS `cycle_count`)",
		bigint(after), bigint(d.Min), bigint(maxShown(&d)), bigint(d.Start), bigint(d.Increment), cache, zeroOne(d.Cycle))
	if !source.Aliased {
		text += " AS " + plan.Quoted(string(source.Name))
	}
	return text, nil
}

// bigint writes a number as a BIGINT, unsigned only if necessary.
func bigint(n uint64) string {
	if n > math.MaxInt64 {
		return fmt.Sprintf("CAST(%d AS UNSIGNED)", n)
	}
	return fmt.Sprintf("CAST(%d AS SIGNED)", n)
}
