package keys

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
)

// Countable asks the server of c whether the statement leaves nothing if it fails, and whether the
// binary log gets its rows. It makes c the connection that counts. l is the session's
// LAST_INSERT_ID(). same reports whether a name is the key's column.
func (n *Block) Countable(ask Asker, c *backend.Conn, l *state.LastInsertID, same func(name []byte) bool) error {
	n.ask, n.conn, n.lastID = ask, c, l
	row, err := ask.AskRow(c, "SELECT @@log_bin AND @@sql_log_bin AND @@binlog_format <> 'ROW'", 1, "the binary log's form")
	if err != nil {
		return err
	}
	if string(row[0]) != "0" {
		return protocol.NotSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE with binlog_format other than ROW is not supported, " +
			"as a replica would have other numbers: set binlog_format = ROW, take the numbers first, or write INSERT ... VALUES")
	}
	rows, err := ask.Ask(c, "SHOW CREATE TABLE "+n.Table.Text)
	var refused *protocol.ServerError
	switch {
	case errors.As(err, &refused) && (refused.Code == mysql.ER_NO_SUCH_TABLE || refused.Code == mysql.ER_BAD_DB_ERROR || refused.Code == mysql.ER_NO_DB_ERROR):
		return err // the statement itself would get this error
	case errors.As(err, &refused):
		return protocol.NotSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE needs to know what its table is: %v", refused)
	case err != nil:
		return err
	case len(rows) != 1 || len(rows[0]) < 2 || !isInnoDB(rows[0][1]):
		return protocol.NotSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE is supported in InnoDB's tables alone, not in the view or table %s, "+
			"as a statement that fails must leave nothing: ALTER TABLE ... ENGINE = InnoDB, take the numbers first, or write INSERT ... VALUES", n.Table.Name)
	}
	n.generates = n.Insert && bytes.Contains(rows[0][1], []byte(" AUTO_INCREMENT")) && !n.givesAuto(rows[0][1], same)
	return n.noTriggers(ask, c)
}

// givesAuto reports whether the statement gives the AUTO_INCREMENT column a number in each row, by
// the table's SHOW CREATE TABLE.
func (n *Block) givesAuto(create []byte, same func(name []byte) bool) bool {
	index := -1 // index of the table's column
	for line := range bytes.Lines(create) {
		name, quoted := bytes.CutPrefix(line, []byte("  `"))
		if !quoted {
			continue
		}
		index++
		name, rest, _ := bytes.Cut(name, []byte("`"))
		rest, _, _ = bytes.Cut(rest, []byte("'")) // drop a comment, or the values of an ENUM
		auto := bytes.Contains(rest, []byte(" AUTO_INCREMENT"))
		switch {
		case n.Key != nil && auto:
			return same(name)
		case n.Key != nil:
			continue
		case bytes.Contains(line, []byte(" INVISIBLE")): // or this word in a comment
			return false
		case !auto:
			continue
		case n.Given.Names == nil:
			return slices.Contains(n.Given.Indexes, index)
		}
		return plan.ASCII(name) && slices.ContainsFunc(n.Given.Names, func(given []byte) bool { return bytes.EqualFold(given, name) })
	}
	return false
}

// noTriggers refuses a table with triggers: they may write to tables without transactions.
func (n *Block) noTriggers(ask Asker, c *backend.Conn) error {
	t := &n.Table
	show := "SHOW TRIGGERS"
	if t.Schema != "" {
		show += " FROM " + plan.Quoted(t.Schema)
	}
	rows, err := ask.AskAll(c, show)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if len(row) < 3 || bytes.EqualFold(row[2], t.Name) || !plan.ASCII(t.Name) && !plan.ASCII(row[2]) {
			return protocol.NotSupported("NEXTVAL for each row of INSERT ... SELECT or UPDATE is not supported where table %s has the trigger %s, "+
				"as a statement that fails must leave nothing, and a trigger may write elsewhere: take the numbers first, or write INSERT ... VALUES", t.Name, row[0])
		}
	}
	return nil
}

// isInnoDB reports whether a SHOW CREATE TABLE is of an InnoDB table. The lines of columns begin
// with spaces, and their comments have no line end.
func isInnoDB(create []byte) bool {
	_, options, ok := bytes.Cut(create, []byte("\n) ENGINE="))
	return ok && bytes.HasPrefix(options, []byte("InnoDB"))
}
