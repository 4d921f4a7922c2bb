package session

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// bring makes c show what a statement may read: LAST_INSERT_ID(), and what the session's last
// statement left (warnings, row counts) if the proxy answered that.
func (a *attachment) bring(c *backend.Conn, t plan.Traits) error {
	b, refusal := plan.Bring(&t, a.state, plan.Server{
		Conn: idOfConn(c), MariaDB: c.Hello().MariaDB, Warned: c.Answer.Warnings > 0 || c.Answer.ErrCode != 0, Exact: a.set.lastInsertIDExact,
	})
	switch {
	case refusal.Why == plan.RanElsewhere:
		return protocol.NotSupported("the last statement was prepared on shard %s and ran there: its row counts and warnings "+
			"cannot be read on shard %s", a.connBy(a.state.LastConn).Shard().Name(), c.Shard().Name())
	case refusal.Why != plan.Granted:
		return protocol.NotSupported("%s", refusal.Text)
	}
	if b.OverRow {
		a.state.LastID.Inserted = false
	}
	if b.ID {
		if err := a.BringLastID(c, b.Keep); err != nil {
			return err
		}
	}
	if !b.Last {
		return nil
	}
	return a.bringLastStatement(c, b.Selected)
}

// BringLastID gives LAST_INSERT_ID() on c the session's value. Callers run it before a statement
// that may read or change it. The value travels in a statement that must succeed before the next is
// sent. It never comes from an OK packet, whose insert id is something else in half the cases. keep
// preserves the row counts and warnings of the last statement on c.
func (a *attachment) BringLastID(c *backend.Conn, keep bool) error {
	l := &a.state.LastID
	value := l.Value
	switch {
	case l.Pending:
	case l.Holder == idOfConn(c):
		return nil
	case l.Holder == 0:
		l.Holder = idOfConn(c)
		return nil
	default:
		holder := a.connBy(l.Holder)
		err := a.enterBoth(c.Shard(), holder.Shard())
		if err == nil {
			value, err = a.askLastID(holder)
		}
		if err != nil {
			return err
		}
	}
	counts := !c.Answer.Rows && c.Answer.ErrCode == 0
	text, then := l.Travel(value, keep, counts, c.Hello().MariaDB)
	if _, err := a.Ask(c, text); err != nil {
		return err
	}
	*l = state.LastInsertID{Holder: idOfConn(c)}
	if then == "" {
		return nil
	}
	_, err := a.Ask(c, then)
	return err
}

// askLastID asks a connection for its LAST_INSERT_ID().
func (b *backends) askLastID(c *backend.Conn) (uint64, error) {
	row, err := b.AskRow(c, "SELECT LAST_INSERT_ID()", 1, "LAST_INSERT_ID()")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(row[0]), 10, 64)
}

// bringLastStatement makes the server show the session's last statement as it was, if the proxy
// answered it. selected says that the SELECT that the answer stands for has just run on c.
func (a *attachment) bringLastStatement(c *backend.Conn, selected bool) error {
	switch a.state.LastAnswer {
	case state.ByServer:
		return nil
	case state.OurRows:
		if selected {
			return nil
		}
	case state.OurError:
		return a.raise(c, a.state.LastError)
	case state.OurTableRows, state.OurTableOK:
		return a.bringWarning(c)
	}
	_, err := a.Ask(c, a.state.StandsFor())
	return err
}

// bringBefore brings LAST_INSERT_ID() to the current connection before a statement that may change
// it.
func (a *attachment) bringBefore() error {
	if a.cur != nil && a.state.LastID.Holder == idOfConn(a.cur) && !a.state.LastID.Pending {
		return nil
	}
	if err := a.above.settle(); err != nil {
		return err
	}
	c, err := a.Attach()
	if err != nil {
		return err
	}
	return a.BringLastID(c, false)
}

// askPrevious returns LAST_INSERT_ID() for a statement that takes numbers as well. The question
// changes what the server says about the last statement.
func (a *attachment) askPrevious(words statement.Words) (uint64, error) {
	if value, ok := a.state.LastID.Get(); ok {
		return value, nil
	}
	if words&statement.ReadsCounts != 0 {
		return 0, protocol.NotSupported("NEXTVAL, LAST_INSERT_ID() and what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
			"in one statement is not supported: keep one of them in a variable first")
	}
	return a.askLastID(a.connBy(a.state.LastID.Holder))
}

// bringWarning gives c the warnings and the ROW_COUNT() of a statement that answers.warn recorded.
func (b *backends) bringWarning(c *backend.Conn) error {
	// A derived table makes both kinds of servers begin the warnings anew.
	sql, rows := "DO (SELECT 1 FROM (SELECT 1) AS seqproxy)", b.state.LastAnswer == state.OurTableRows
	if rows {
		sql = "SELECT 1 FROM (SELECT 1) AS seqproxy LIMIT 1"
	}
	if _, err := b.Ask(c, sql); err != nil || b.state.LastError == nil {
		return err
	}
	if err := b.raise(c, b.state.LastError); err != nil || !rows {
		return err
	}
	_, err := b.Ask(c, "SHOW WARNINGS LIMIT 0") // makes ROW_COUNT() -1 and keeps the rest
	return err
}

// raise makes e the last error on c, as if the client's own statement had caused it. It fails if
// the server raises another.
func (b *backends) raise(c *backend.Conn, e *protocol.ServerError) error {
	_, err := b.Ask(c, fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = %s",
		e.State, e.Code, plan.Literal(limit(strings.ToValidUTF8(e.Message, "?"), maxSignalText))))
	var raised *protocol.ServerError
	switch {
	case err == nil && isWarning(e):
		return nil
	case errors.As(err, &raised) && raised.Code == e.Code:
		return nil
	case errors.As(err, &raised):
		return protocol.NotSupported("the last statement was answered here with error %d, which shard %s cannot be told to tell of: %v",
			e.Code, c.Shard().Name(), raised)
	case err != nil:
		return err
	}
	return protocol.NotSupported("the last statement was answered here with error %d, which shard %s does not take for an error",
		e.Code, c.Shard().Name())
}

// maxSignalText is the longest MESSAGE_TEXT.
const maxSignalText = 128

// limit cuts s to at most n bytes, between characters.
func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// setStep sets on a new connection how far apart keys are, if several sequence servers divide the
// numbers in steps. Drivers compute the keys of further rows from that, and AUTO_INCREMENT uses it.
func (s *Settings) setStep(c *backend.Conn) error {
	stride := s.steps.Stride()
	if stride <= 1 {
		return nil
	}
	err := c.SetDeadline(time.Now().Add(askTimeout))
	if err == nil {
		err = c.Command(protocol.ComQuery, setStepSQL(stride))
	}
	switch {
	case err == nil:
		return c.SetDeadline(time.Time{})
	case errors.As(err, new(*protocol.ServerError)):
		return fmt.Errorf("shard %s: node %s: set auto_increment_increment: %w", c.Shard().Name(), c.Node(), err)
	}
	return &backend.UnreachableError{Shard: c.Shard().Name(), Node: c.Node(), Err: fmt.Errorf("set auto_increment_increment: %w", err)}
}

func setStepSQL(stride uint64) string {
	return fmt.Sprintf("SET SESSION auto_increment_increment = %d", stride)
}

// keepStep is setStep after the client has set the session's step to its default, which must be the
// sequences'. The client already has its answer, so a refusal by the server ends the session.
func (a *attachment) keepStep(c *backend.Conn) error {
	stride := a.set.steps.Stride()
	if !a.state.StepLost || stride <= 1 {
		return nil
	}
	a.state.StepLost = false
	err := a.runCommand(c, protocol.ComQuery, setStepSQL(stride))
	if err == nil || ends(err) {
		return err
	}
	return a.lost(c, fmt.Errorf("set auto_increment_increment: %w", err), true)
}

// variables names the missing values in an error of systemSets and userSets.
const variables = "the session's variables"

// carryVariables sets on c what the session has set since c was last current. It asks the current
// connection for the values of system variables.
func (b *backends) carryVariables(c *backend.Conn) error {
	st := b.state
	since := st.SyncedTo(idOfConn(c))
	if len(st.Option) > 0 {
		if err := b.runCommand(c, protocol.ComSetOption, string(st.Option)); err != nil {
			return err
		}
	}
	if since == st.Version {
		return nil
	}
	sets, err := b.systemSets(c, since)
	if err != nil {
		return err
	}
	user, err := b.userSets(since)
	if err != nil {
		return err
	}
	// The server reads the texts of user variables by the system variables.
	for _, list := range [][]string{sets, user} {
		if len(list) == 0 {
			continue
		}
		if _, err := b.Ask(c, "SET "+strings.Join(list, ", ")); err != nil {
			return err
		}
	}
	st.Synced(idOfConn(c), st.Version)
	return nil
}

// systemSets returns assignments of the system variables that were set after version since, as c's
// server takes them. It keeps SET NAMES, because only that gives results the collation that clients
// expect.
func (b *backends) systemSets(c *backend.Conn, since int) (sets []string, err error) {
	named := b.state.Names > since
	var names []string
	for name, version := range b.state.Sysvars {
		if version > since && !(named && state.SetByNames(name)) {
			names = append(names, isolationName(name, b.cur.Hello()))
		}
	}
	sort.Strings(names)
	system := len(names)
	if named {
		names = append(names, "character_set_client", "collation_connection")
	}
	if len(names) == 0 {
		return nil, nil
	}
	values, err := b.AskRow(b.cur, "SELECT @@session."+strings.Join(names, ", @@session."), len(names), variables)
	if err != nil {
		return nil, err
	}
	for i, value := range values[:system] {
		sets = append(sets, "@@session."+isolationName(names[i], c.Hello())+" = "+literal(value))
	}
	if named {
		sets = append(sets, "NAMES "+literal(values[system])+" COLLATE "+literal(values[system+1]))
	}
	return sets, nil
}

// userSets is systemSets for user variables. It keeps numbers as the client wrote them. The bytes
// of a string depend on the character set and sql_mode at the time of its SET, so it asks the
// current connection for them.
func (b *backends) userSets(since int) (sets []string, err error) {
	var names, ask []string
	for name, v := range b.state.Uservars {
		quoted := "@`" + strings.ReplaceAll(name, "`", "``") + "`"
		switch {
		case v.Version <= since:
		case isNumber(v.Literal):
			sets = append(sets, quoted+" = "+v.Literal)
		default:
			names = append(names, quoted)
			ask = append(ask, "HEX("+quoted+"), CHARSET("+quoted+"), COLLATION("+quoted+")")
		}
	}
	if len(names) == 0 {
		return sets, nil
	}
	values, err := b.AskRow(b.cur, "SELECT "+strings.Join(ask, ", "), 3*len(names), variables)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		hex, charset, collation := values[3*i], values[3*i+1], values[3*i+2]
		if hex == nil {
			sets = append(sets, name+" = NULL")
			continue
		}
		sets = append(sets, fmt.Sprintf("%s = _%s X'%s' COLLATE `%s`", name, charset, hex, collation))
	}
	return sets, nil
}

// isNumber reports whether a literal is a number or a word (TRUE, NULL), which always means the
// same. Others are '...', "...", X'..', 0x.., _charset'..'.
func isNumber(literal string) bool {
	return literal != "" && !strings.ContainsAny(literal, "'\"_xX")
}

// isolationName returns the server's name of a variable of SET TRANSACTION, which MySQL 8 renamed.
func isolationName(name string, h *backend.Hello) string {
	if h.MariaDB {
		return state.HereName(name)
	}
	switch name {
	case "tx_isolation":
		return "transaction_isolation"
	case "tx_read_only":
		return "transaction_read_only"
	}
	return name
}

// literal writes a variable's value for SET. Numbers have no quotes, since numeric variables refuse
// strings.
func literal(value []byte) string {
	if value == nil {
		return "NULL"
	}
	for i, b := range value {
		if (b < '0' || b > '9') && b != '.' && (b != '-' || i > 0) || len(value) > 20 {
			return plan.Literal(string(value))
		}
	}
	if len(value) == 0 {
		return "''"
	}
	return string(value)
}
