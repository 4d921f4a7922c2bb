package proxy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// withoutServer answers a text when there is no shard: what drivers and command-line clients send when
// they connect works, anything else is an error that says so.
func (s *session) withoutServer(sql []byte) error { return s.ownAnswerTo(sql, nil) }

// ownAnswerTo is withoutServer for the text just analysed, p being the prepared statement that is
// executed with it, nil for a text.
func (s *session) ownAnswerTo(sql []byte, p *prepared) error {
	st, mode := &s.stmt, s.state.mode
	if p != nil {
		mode = p.mode
	}
	switch st.Kind {
	case statement.Empty:
		return sqlError(mysql.ER_EMPTY_QUERY, "42000", "Query was empty")
	case statement.Set:
		return s.setWithoutServer(st, sql)
	case statement.Begin, statement.Commit, statement.Rollback:
		// There is nothing that a transaction could change: numbers are never taken back.
		s.done()
		return nil
	case statement.ShowWarnings:
		return s.warningsWithoutServer(p)
	case statement.Select:
		t, err := s.simpleTable(sql, mode)
		if err != nil {
			return err
		}
		return s.table(t, p)
	}
	return s.noServer()
}

// done answers OK for a statement of which the proxy is the whole truth.
func (s *session) done() {
	s.state.lastOwn = ownAnswer
	s.reply(protocol.OK{})
}

// table answers with a result of the proxy's own, p being the prepared statement that
// is executed, nil for a text.
func (s *session) table(t *protocol.Table, p *prepared) error {
	form, err := s.form(p != nil)
	if err != nil {
		return err
	}
	if p != nil {
		p.defines(&form, t.Columns)
	}
	s.state.lastOwn = ownAnswer
	if len(t.Columns) > 0 {
		s.state.lastOwn = ownRows
	}
	s.warn(&form, t.Warning)
	s.out = t.Append(s.out, s.packetNum, form)
	return nil
}

func (s *session) setWithoutServer(st *statement.Statement, sql []byte) error {
	for i := range st.Assignments {
		a := &st.Assignments[i]
		switch a.Target {
		case statement.SessionVariable:
			if string(a.Name) == "autocommit" {
				s.setAutocommit(string(sql[a.Start:a.End]))
			}
		case statement.Names, statement.CharacterSet, statement.Transaction, statement.UserVariable:
		default:
			return s.noServer()
		}
	}
	s.state.setVariables(st, sql)
	for i := range st.Assignments {
		a := &st.Assignments[i]
		value := string(sql[a.Start:a.End])
		switch a.Target {
		case statement.SessionVariable:
			s.state.setHere(string(a.Name), value)
		case statement.Names:
			s.state.setNamesHere(strings.Fields(value))
		case statement.CharacterSet:
			s.state.setNamesHere(nil)
		case statement.Transaction:
			if a.Scope == statement.ScopeSession {
				s.state.setTransactionHere(strings.Join(strings.Fields(strings.ToUpper(string(sql))), " "))
			}
		}
	}
	s.done()
	return nil
}

// hereName is the name of a system variable in state.here: that which all servers had first.
func hereName(name string) string {
	switch name {
	case "transaction_isolation":
		return "tx_isolation"
	case "transaction_read_only":
		return "tx_read_only"
	}
	return name
}

// otherName is the other name of what hereName names, if it has one.
func otherName(name string) string { return strings.Replace(name, "tx_", "transaction_", 1) }

// setHere takes note of what a SET gives a system variable, where it is read back as it was typed.
func (st *state) setHere(name, value string) {
	name = hereName(name)
	if isDefault(value) {
		delete(st.here, name)
		delete(st.sysvars, name)
		delete(st.sysvars, otherName(name))
		return
	}
	usual, asked := askedVariables[name]
	if !asked {
		return
	}
	st.keepHere(name, nil)
	word := strings.ToUpper(unquote(value))
	_, number := usual.(uint64)
	n, err := strconv.ParseUint(value, 10, 64)
	switch {
	case number && err == nil:
		st.keepHere(name, n)
	case name == "tx_read_only" && (word == "ON" || word == "TRUE"):
		st.keepHere(name, uint64(1))
	case name == "tx_read_only" && (word == "OFF" || word == "FALSE"):
		st.keepHere(name, uint64(0))
	case name == "tx_isolation" && slices.Contains(isolationLevels, strings.ReplaceAll(word, "-", " ")):
		st.keepHere(name, word)
	case name == "time_zone" && value != unquote(value):
		st.keepHere(name, unquote(value))
	}
}

// keepHere keeps the value of a variable; nil is one that only a server would know.
func (st *state) keepHere(name string, value any) {
	if st.here == nil {
		st.here = make(map[string]any)
	}
	st.here[name] = value
}

// setNamesHere is setHere for SET NAMES charset [COLLATE collation], and without words for another SET
// of these variables.
func (st *state) setNamesHere(words []string) {
	var charset, collation any
	if len(words) > 0 && lex.CharsetByName(unquote(words[0])) != lex.Unsupported {
		charset = strings.ToLower(unquote(words[0]))
	}
	if len(words) == 3 {
		collation = strings.ToLower(unquote(words[2]))
	}
	for _, name := range [...]string{"character_set_client", "character_set_connection", "character_set_results"} {
		st.keepHere(name, charset)
	}
	st.keepHere("collation_connection", collation)
}

// variableHere is what a variable is where there is no server, by hereName: what the session has set it to,
// or the usual value, if that is known.
func (st *state) variableHere(name string, usual any, known bool) (value any, ok bool) {
	if set, is := st.here[name]; is {
		return set, set != nil
	}
	return usual, known && st.sysvars[name] == 0 && st.sysvars[otherName(name)] == 0 // else it was set while there was a server
}

var isolationLevels = []string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}

// setTransactionHere is setHere for SET SESSION TRANSACTION, in capital letters with single spaces. What
// it does not name stays.
func (st *state) setTransactionHere(sql string) {
	for _, name := range [...]string{"tx_isolation", "tx_read_only"} {
		if _, is := st.here[name]; !is {
			st.keepHere(name, askedVariables[name])
		}
	}
	for word, value := range map[string]uint64{"READ ONLY": 1, "READ WRITE": 0} {
		if strings.Contains(sql, word) {
			st.keepHere("tx_read_only", value)
		}
	}
	for _, level := range isolationLevels {
		if strings.Contains(sql, level) {
			st.keepHere("tx_isolation", strings.ReplaceAll(level, " ", "-"))
		}
	}
}

func (s *session) setAutocommit(value string) {
	switch unquote(value) {
	case "0", "OFF", "off", "Off", "FALSE", "false", "False":
		s.state.status &^= protocol.Autocommit
	default:
		s.state.status |= protocol.Autocommit
	}
}

// prepareWithoutServer prepares a text when there is no shard.
func (s *session) prepareWithoutServer(sql []byte, ticket *tableTicket) error {
	st := &s.stmt
	if ticket != nil {
		return s.prepareTicket(sql, ticket)
	}
	if st.Kind == statement.Select {
		if st.SelfContained {
			return s.prepareOwn(sql, s.columnsOf(st, sql, atPrepare, nil), st.Params)
		}
	}
	switch st.Kind {
	case statement.Set, statement.Begin, statement.Commit, statement.Rollback:
		return s.prepareOwn(sql, nil, 0)
	case statement.Select:
		t, err := s.simpleTable(sql, s.state.mode)
		if err != nil {
			return err
		}
		return s.prepareOwn(sql, t.Columns, 0)
	case statement.ShowWarnings:
		return s.prepareOwn(sql, warningColumns, 0)
	}
	return s.noServer()
}

// executeOwn executes a prepared statement that the proxy answers itself.
func (s *session) executeOwn(p *prepared, payload []byte) error {
	st := &s.stmt
	st.Analyze(p.own, p.mode)
	if err := s.convertNames(st, p.charset); err != nil {
		return err
	}
	if p.params > 0 {
		if err := s.fillCalls(st, p, payload); err != nil {
			return err
		}
	}
	if st.AboutSequences() {
		return s.administerHere(st, p)
	}
	switch st.Kind {
	case statement.ExplainRoute:
		return s.explainRoute(p.own, p)
	case statement.Select:
		plan, err := s.planCalls(st, true)
		if err != nil {
			return err
		}
		if plan.own {
			return s.answerSelect(st, p.own, plan.served, p)
		}
		for i, call := range st.Calls {
			if call.Name != nil && !plan.served[i] { // dropped since, and no server has the text
				return &sequence.NameError{Name: string(call.Name), Err: sequence.ErrUnknown}
			}
		}
	}
	return s.ownAnswerTo(p.own, p)
}

// statistics answers COM_STATISTICS, which the status of command-line clients shows, where there is no server.
func (s *session) statistics() error {
	stats := s.srv.Stats()
	var statements uint64
	for _, c := range stats.Statements {
		statements += c.N
	}
	up := time.Since(stats.Since).Seconds()
	text := fmt.Sprintf("Uptime: %.0f  Threads: %d  Questions: %d  Queries per second avg: %.3f", up, s.srv.Sessions(), statements, float64(statements)/max(up, 1))
	s.out, _ = protocol.AppendPacket(s.out, []byte(text), s.packetNum)
	return nil
}
