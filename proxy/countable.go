package proxy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// planCounted looks at what the text alone tells.
func (s *session) planCounted(st *statement.Statement, sql []byte, plan callPlan) (*counted, error) {
	n := &counted{insert: st.Kind != statement.Update, key: plan.key}
	for i := range st.Calls {
		call := &st.Calls[i]
		switch {
		case !plan.served[i]:
			continue
		case call.Func != statement.Nextval:
			return nil, refusedForm("NEXTVAL for each row beside LASTVAL or SETVAL, which are values of the whole statement,")
		case call.Name == nil:
			return nil, refusedForm("NEXTVAL for each row of a sequence that a parameter names, which may be another for each of them,")
		case n.count != 0 && call.Count != n.count:
			return nil, refusedForm("NEXTVAL for each row with two counts, of which the server counts one,")
		case call.Place != statement.PlaceSource && call.Place != statement.PlaceChange:
			return nil, refusedForm("NEXTVAL for each row beside one that is not, which the server would count, too,")
		}
		if n.name == nil {
			n.name, n.count = call.Name, call.Count
		}
		same := bytes.Equal(n.name, call.Name)
		if !same {
			var err error
			same, err = s.set.Sequences.Same(&s.patience, n.name, call.Name)
			if err = s.patience.over(err); err != nil {
				return nil, err
			}
		}
		if !same {
			return nil, refusedForm("NEXTVAL of two sequences for each row of INSERT ... SELECT or UPDATE, of which the server counts one,")
		}
		n.calls++
	}
	text, refusal := st.Counted(sql)
	switch {
	case refusal != "":
		return nil, refusedForm(refusal)
	case s.fill != nil || plan.fill != nil:
		return nil, refusedForm("NEXTVAL for each row of a table with a column that is filled, which the server would count, too,")
	case s.state.BeforeTransaction():
		return nil, notSupported("NEXTVAL for each row between SET TRANSACTION and its transaction is not supported: send START TRANSACTION first")
	}
	if err := s.knownAtPrepare(st, plan); err != nil { // though there may be no row
		return nil, err
	}
	n.size = min(firstBlock, n.most())
	n.routines = text.Routines
	if text.Limit > 0 {
		n.size = min(text.Limit, n.most()/n.calls) * n.calls
	}
	if text.Numbers > 0 {
		n.size = min(text.Numbers, n.most())
	}
	n.updates = text.Updates
	if n.size == 0 {
		return nil, notSupported("NEXTVAL for each row of so many numbers is not supported: one row takes more than %d", lastBlock)
	}
	if n.insert {
		if s.insertion == nil {
			s.insertion = new(statement.Insertion)
		}
		n.given = s.insertion.ReadGiven(st, sql)
	}
	t := st.Table()
	n.table = countedTable{text: string(sql[t.Start:t.End]), schema: string(t.Schema), name: t.Name}
	if n.table.schema != "" && !isASCII(t.Schema) && s.state.Mode.Charset != lex.UTF8 {
		return nil, refusedForm("NEXTVAL for each row of a table whose schema's name is not in UTF-8")
	}
	return n, nil
}

// keepCounted makes n outlive the text, and the schema that is the current one.
func (s *session) keepCounted(n *counted) error {
	n.name, n.table.name = bytes.Clone(n.name), bytes.Clone(n.table.name)
	if n.table.schema == "" && s.state.Schema != "" { // else the server has an error of its own
		if !isASCII([]byte(s.state.Schema)) && s.state.Mode.Charset != lex.UTF8 {
			return refusedForm("NEXTVAL for each row, prepared in a schema whose name is not in UTF-8")
		}
		n.table.schema = s.state.Schema
		n.table.text = quotedName(s.state.Schema) + "." + n.table.text
	}
	return nil
}

// quotedName writes a name so that it is one in each sql_mode.
func quotedName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// countable asks the server whether the statement leaves nothing if it fails, and whether
// its rows are what is replicated.
func (s *session) countable(c *backend.Conn, n *counted) error {
	row, err := s.ownRow(c, "SELECT @@log_bin AND @@sql_log_bin AND @@binlog_format <> 'ROW'", 1, "the binary log's form")
	if err != nil {
		return err
	}
	if string(row[0]) != "0" {
		return notSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE with binlog_format other than ROW is not supported: " +
			"a replica would have other numbers")
	}
	rows, err := s.ownQuery(c, "SHOW CREATE TABLE "+n.table.text)
	var refused *protocol.ServerError
	switch {
	case errors.As(err, &refused) && (refused.Code == mysql.ER_NO_SUCH_TABLE || refused.Code == mysql.ER_BAD_DB_ERROR || refused.Code == mysql.ER_NO_DB_ERROR):
		return err // as the statement itself
	case errors.As(err, &refused):
		return notSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE needs to know what its table is: %v", refused)
	case err != nil:
		return err
	case len(rows) != 1 || len(rows[0]) < 2 || !isInnoDB(rows[0][1]):
		return notSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE is supported in InnoDB's tables alone, not in the view or table %s: "+
			"a statement that fails must leave nothing", n.table.name)
	}
	n.own = n.insert && bytes.Contains(rows[0][1], []byte(" AUTO_INCREMENT")) && !s.givesAuto(n, rows[0][1])
	return s.noTriggers(c, &n.table)
}

// givesAuto says whether the statement has a number for the AUTO_INCREMENT column in each
// row, given the table's SHOW CREATE TABLE.
func (s *session) givesAuto(n *counted, create []byte) bool {
	index := -1 // of the table's columns
	for line := range bytes.Lines(create) {
		name, quoted := bytes.CutPrefix(line, []byte("  `"))
		if !quoted {
			continue
		}
		index++
		name, rest, _ := bytes.Cut(name, []byte("`"))
		rest, _, _ = bytes.Cut(rest, []byte("'")) // a comment, the values of an ENUM
		auto := bytes.Contains(rest, []byte(" AUTO_INCREMENT"))
		switch {
		case n.key != nil && auto:
			return s.sameColumn(n.key.Column)(name)
		case n.key != nil:
			continue
		case bytes.Contains(line, []byte(" INVISIBLE")): // which no * means; or a comment's word
			return false
		case !auto:
			continue
		case n.given.Names == nil:
			return slices.Contains(n.given.Indexes, index)
		}
		return isASCII(name) && slices.ContainsFunc(n.given.Names, func(given []byte) bool { return bytes.EqualFold(given, name) })
	}
	return false
}

// noTriggers is an error if a table has triggers: they may write to tables without
// transactions.
func (s *session) noTriggers(c *backend.Conn, t *countedTable) error {
	show := "SHOW TRIGGERS"
	if t.schema != "" {
		show += " FROM " + quotedName(t.schema)
	}
	rows, err := s.ownQuery(c, show)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if len(row) < 3 || bytes.EqualFold(row[2], t.name) || !isASCII(t.name) && !isASCII(row[2]) {
			return notSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE is not supported in a table with triggers: "+
				"a statement that fails must leave nothing (%s has %s)", t.name, row[0])
		}
	}
	return nil
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// isInnoDB says whether SHOW CREATE TABLE is that of a table of InnoDB. The columns' lines
// begin with spaces, and no line end stands in their comments.
func isInnoDB(create []byte) bool {
	_, options, ok := bytes.Cut(create, []byte("\n) ENGINE="))
	return ok && bytes.HasPrefix(options, []byte("InnoDB"))
}
