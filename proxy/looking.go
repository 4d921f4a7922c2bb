package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/ddl"
	"seqproxy/statement/idiom"
)

// Programs look for sequences where MariaDB shows them: as tables of the type SEQUENCE, and by
// reading one like a table. Such a question goes to the server with the proxy's sequences written
// into it, in the place of the table that it names. So the server works out the answer, and its own
// sequences are in it.

// mayLookForSequences says whether the text just analysed may be such a question.
func (s *session) mayLookForSequences() bool {
	st := &s.stmt
	return (st.Kind == statement.Select || st.Kind == statement.Show) && st.Words&(statement.SystemSchema|statement.LooksForSequences) != 0 &&
		len(st.Calls) == 0 && st.Refusal == "" && s.routes.Default() != nil
}

// lookForSequences answers the text just analysed if it is such a question.
func (s *session) lookForSequences(sql []byte) (handled bool, err error) {
	if !s.mayLookForSequences() {
		return false, nil
	}
	q, ok := idiom.ReadSequenceQuestion(sql, s.state.Mode)
	if !ok {
		return false, nil
	}
	c, err := s.Attach()
	if err != nil {
		return false, err
	}
	text, err := s.withSequences(c, q, sql, s.state.Charset)
	if err != nil || bytes.Equal(text, sql) {
		return false, err
	}
	if c, err = s.attachFor(&s.stmt); err != nil {
		return false, err
	}
	s.own = append(s.own[:0], 0, 0, 0, 0, byte(protocol.ComQuery))
	s.own = append(append(s.own, s.attributes...), text...)
	if len(s.own)-protocol.HeaderSize >= protocol.MaxFragment {
		return false, errTooLong
	}
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	if err := s.sendOwn(c); err != nil {
		return false, err
	}
	s.noteDone(c, nil)
	return true, nil
}

// withSequences returns the text of a question for the server of c, with the proxy's sequences in
// it. It is the text itself where there is none to be written.
func (s *session) withSequences(c *backend.Conn, q *idiom.SequenceQuestion, sql []byte, charset string) (text []byte, err error) {
	var shown []shownSequence
	if q.Sources[0].Kind != idiom.SourceOne {
		if shown, err = s.shownSequences(); len(shown) == 0 || err != nil {
			return sql, err
		}
	}
	from := 0
	for i := range q.Sources {
		source := &q.Sources[i]
		var instead, behind string
		switch source.Kind {
		case idiom.SourceShow:
			instead, behind, err = s.showFrom(c, source, charset, shown)
		case idiom.SourceOne:
			instead, err = s.sequenceAsTable(c, source, charset)
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

// shownSequences are those that the user may use, in each schema in which their names mean them:
// "photos" is one of the session's schema, whichever that is, and of the schema of the sequence
// table; "album0.photos" is photos in album0.
func (s *session) shownSequences() (all []shownSequence, err error) {
	defs, err := s.set.Sequences.Definitions(&s.numbers.Patience)
	if err = s.numbers.Patience.Over(err); err != nil {
		return nil, err
	}
	schemas := slices.Compact([]string{s.set.Sequences.Schema(), s.state.Schema})
	seen := make(map[[2]string]bool)
	show := func(schema, name string, d *sequence.Definition) {
		if key := [2]string{schema, name}; schema != "" && !seen[key] {
			seen[key] = true
			all = append(all, shownSequence{schema, name, d})
		}
	}
	for i := range defs {
		d := &defs[i]
		if may, err := s.sees([]byte(d.Name)); err != nil {
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

// sees says whether the user may look at a sequence.
func (s *session) sees(name []byte) (bool, error) {
	if s.login.Account.Looks() {
		return true, nil
	}
	may, err := asker{s}.MayUse(&s.numbers.Patience, name)
	return may, s.numbers.Patience.Over(err)
}

// viewColumn is a column of a table of information_schema, and what a sequence has there.
type viewColumn struct {
	name  string
	value func(*shownSequence) string // as SQL
}

func constantly(sql string) func(*shownSequence) string {
	return func(*shownSequence) string { return sql }
}

// tablesColumns are those of TABLES. MySQL has no more than the first 21.
var tablesColumns = []viewColumn{
	{"TABLE_CATALOG", constantly("'def'")},
	{"TABLE_SCHEMA", func(q *shownSequence) string { return quote(q.schema) }},
	{"TABLE_NAME", func(q *shownSequence) string { return quote(q.name) }},
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
	{"TABLE_COMMENT", func(q *shownSequence) string { return quote(q.def.Comment) }},
	{"MAX_INDEX_LENGTH", constantly("0")},
	{"TEMPORARY", constantly("'N'")},
}

const tablesColumnsOfMySQL = 21

// sequencesColumns are those of SEQUENCES, which MariaDB has since 11.5.
var sequencesColumns = []viewColumn{
	{"SEQUENCE_CATALOG", constantly("'def'")},
	{"SEQUENCE_SCHEMA", func(q *shownSequence) string { return quote(q.schema) }},
	{"SEQUENCE_NAME", func(q *shownSequence) string { return quote(q.name) }},
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

// maxShown is the greatest number of a sequence as MariaDB would show it. Without MAXVALUE that is
// what MariaDB makes of it: programs read it as a BIGINT.
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

// viewWith is a table of information_schema with sequences added, as far as the question names its
// columns: of others the server would open every table.
func viewWith(c *backend.Conn, q *idiom.SequenceQuestion, source *idiom.SequenceSource, sql []byte, shown []shownSequence) string {
	columns := sequencesColumns
	if source.Kind == idiom.SourceTables {
		if columns = tablesColumns; !c.Hello().MariaDB {
			columns = columns[:tablesColumnsOfMySQL]
		}
	}
	if !q.All {
		columns = slices.DeleteFunc(slices.Clone(columns), func(v viewColumn) bool { return !slices.Contains(q.Named, v.name) })
	}
	if len(columns) == 0 { // as of SELECT 1, or COUNT(*)
		columns = sequencesColumns[1:3]
	}
	text := view(string(sql[source.Start:source.End]), columns, shown, c.Hello().MariaDB)
	if !source.Aliased {
		text += " AS " + plan.Quoted(string(source.Name))
	}
	return text
}

// view is such a table, as a table of its own. Where the server has a sequence of the same name that
// one is shown alone.
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
				quote(shown[i].schema), quote(shown[i].name))
		}
	}
	b.WriteByte(')')
	return b.String()
}

// showFrom is what stands in front of and behind the condition of SHOW FULL TABLES ... WHERE, whose
// rows are in the order of the names' bytes.
func (s *session) showFrom(c *backend.Conn, source *idiom.SequenceSource, charset string, shown []shownSequence) (before, behind string, err error) {
	schema := s.state.Schema
	if len(source.Schema) > 0 {
		in, err := s.nameInUTF8(source.Schema, charset)
		if err != nil {
			return "", "", err
		}
		schema = string(in)
	}
	if schema == "" {
		return "", "", nil
	}
	// The server says of which schemas it shows something.
	if _, err := s.Ask(c, "SHOW TABLES FROM "+plan.Quoted(schema)+" LIKE ''"); errors.As(err, new(*protocol.ServerError)) {
		return "", "", nil
	} else if err != nil {
		return "", "", err
	}
	name := plan.Quoted("Tables_in_" + schema)
	before = fmt.Sprintf("SELECT * FROM (SELECT TABLE_NAME AS %s, TABLE_TYPE AS `Table_type` FROM %s AS t WHERE TABLE_SCHEMA=%s) AS t WHERE ",
		name, view("information_schema.TABLES", tablesColumns[1:4], shown, c.Hello().MariaDB), quote(schema))
	return before, " ORDER BY CAST(" + name + " AS BINARY)", nil
}

// sequenceAsTable is a sequence of the proxy as MariaDB's can be read, as a table of its own. It is
// empty where another thing is meant: no sequence of the proxy, or a table with such columns.
func (s *session) sequenceAsTable(c *backend.Conn, source *idiom.SequenceSource, charset string) (string, error) {
	name, err := s.nameInUTF8(source.Name, charset)
	if err != nil {
		return "", err
	}
	table := plan.Quoted(string(name))
	names := [][]byte{name}
	if len(source.Schema) > 0 {
		schema, err := s.nameInUTF8(source.Schema, charset)
		if err != nil {
			return "", err
		}
		table = plan.Quoted(string(schema)) + "." + table
		qualified := slices.Concat(schema, []byte("."), name)
		switch string(schema) {
		case s.set.Sequences.Schema():
		case s.state.Schema: // where a list shows it
			names = [][]byte{qualified, name}
		default:
			names = [][]byte{qualified}
		}
	}
	for _, name := range names {
		known, err := s.knows(name)
		if err != nil {
			return "", err
		}
		if !known {
			continue
		}
		if may, err := s.sees(name); !may || err != nil {
			return "", err
		}
		if taken, err := s.hasSuchTable(c, table); taken || err != nil {
			return "", err
		}
		return s.rowOf(source, name)
	}
	return "", nil
}

// listedHere says whether the first name in ddl is no sequence's, but one's with the session's schema
// in front, as a list shows it. It then becomes the sequence's.
func (s *session) listedHere(ddl *ddl.Sequence) (bool, error) {
	if len(ddl.Names) == 0 { // the text has an error
		return false, nil
	}
	full, n := ddl.Names[0], ddl.Schemas[0]
	if n <= 0 || string(full[:n]) != s.state.Schema || s.routes.Default() == nil {
		return false, nil
	}
	name := full[n+1:]
	if known, err := s.knows(full); known || err != nil {
		return false, err
	}
	if known, err := s.knows(name); !known || err != nil {
		return false, err
	}
	c, err := s.Attach()
	if err != nil {
		return false, err
	}
	if taken, err := s.hasSuchTable(c, plan.Quoted(string(full[:n]))+"."+plan.Quoted(string(name))); taken || err != nil {
		return false, err
	}
	ddl.Names[0], ddl.Schemas[0] = name, 0
	return true, nil
}

// hasSuchTable says whether the server has a table with the columns of a sequence, or may have.
func (s *session) hasSuchTable(c *backend.Conn, table string) (bool, error) {
	rows, err := s.Ask(c, "SHOW COLUMNS FROM "+table+" WHERE Field IN ('minimum_value','next_not_cached_value')")
	var refused *protocol.ServerError
	if errors.As(err, &refused) {
		return refused.Code != mysql.ER_NO_SUCH_TABLE && refused.Code != mysql.ER_BAD_DB_ERROR && refused.Code != mysql.ER_NO_DB_ERROR, nil
	}
	return len(rows) > 0, err
}

// rowOf is the row that a sequence is, with MariaDB's columns.
func (s *session) rowOf(source *idiom.SequenceSource, name []byte) (string, error) {
	d, state, err := s.set.Sequences.Describe(&s.numbers.Patience, name)
	if err = s.numbers.Patience.Over(err); err != nil {
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

// bigint is a number as a BIGINT, which it is unsigned only if it has to be.
func bigint(n uint64) string {
	if n > math.MaxInt64 {
		return fmt.Sprintf("CAST(%d AS UNSIGNED)", n)
	}
	return fmt.Sprintf("CAST(%d AS SIGNED)", n)
}

// looking is a question about sequences that is prepared.
type looking struct {
	question []byte // the client's
	text     []byte // what the server has for it
}

// prepareLooking returns the text that c is to prepare for the one just analysed. looks is nil if
// that is no such question.
func (s *session) prepareLooking(c *backend.Conn, sql []byte) (looks *looking, text []byte, err error) {
	if !s.mayLookForSequences() {
		return nil, sql, nil
	}
	q, ok := idiom.ReadSequenceQuestion(sql, s.state.Mode)
	if !ok {
		return nil, sql, nil
	}
	text, err = s.withSequences(c, q, sql, s.state.Charset)
	return &looking{bytes.Clone(sql), bytes.Clone(text)}, text, err
}

// executeLooking executes such a question with the sequences that there are now: where they are
// others than in the text that the server has, it prepares another.
func (s *session) executeLooking(p *prepared, payload []byte) error {
	if p.longSent { // what the server has got of it would be lost
		p.toServer(payload[1:])
		return s.passExecution(p, payload)
	}
	attributes := s.login.Capabilities.Has(protocol.QueryAttributes)
	e, err := s.cutExecution(p, payload, attributes)
	if errors.Is(err, errMalformed) {
		err = s.malformed()
	}
	if err != nil {
		return err
	}
	c, err := s.connOf(p)
	if err != nil {
		return err
	}
	if refused, err := s.renewLooking(c, p); refused || err != nil {
		return err
	}
	if err := s.prepareConn(c, p); err != nil {
		return err
	}
	if p.executionSize(&e, attributes) >= protocol.MaxFragment {
		return errTooLong
	}
	s.own = append(s.own[:0], 0, 0, 0, 0)
	if s.own, err = p.appendExecute(s.own, &e, attributes, nil); err != nil {
		return err
	}
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	if err := s.sendOwn(c); err != nil {
		return err
	}
	s.noteExecuted(c, p)
	return nil
}

// renewLooking brings the text that the server has for a question up to date. If the server refuses
// it, that is the client's answer.
func (s *session) renewLooking(c *backend.Conn, p *prepared) (refused bool, err error) {
	q, ok := idiom.ReadSequenceQuestion(p.looks.question, p.mode)
	if !ok {
		return false, nil
	}
	text, err := s.withSequences(c, q, p.looks.question, p.charset)
	if err != nil || bytes.Equal(text, p.looks.text) {
		return false, err
	}
	fresh := &prepared{}
	a, err := s.askToPrepare(c, fresh, text)
	if err != nil || a.refused {
		return a.refused, err
	}
	s.out = s.out[:0]
	if err := s.closeOn(c, p.backendID); err != nil {
		return false, err
	}
	c.Release()
	p.backendID, p.looks.text = fresh.backendID, text
	if s.prepared.latest != p { // for the server it is p now
		s.prepared.latest = nil
	}
	return false, nil
}
