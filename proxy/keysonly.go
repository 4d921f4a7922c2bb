package proxy

import (
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// withoutServer answers a text when there is no shard: what drivers and tools send
// when they connect works, anything else is an error that says so.
func (s *session) withoutServer(sql []byte) error { return s.ownAnswerTo(sql, nil, nullParam) }

// ownAnswerTo is withoutServer for the text just analysed, p being the prepared statement that is
// executed with it, nil for a text, and param giving the values of its parameters.
func (s *session) ownAnswerTo(sql []byte, p *prepared, param func(i int) (string, bool)) error {
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
	case statement.Show, statement.Select:
		t, _, err := s.questionTable(sql, mode, param)
		if err != nil {
			return err
		}
		return s.table(t, p)
	}
	return s.noServer()
}

// questionTable answers a SELECT or SHOW that needs no server, of whose parameters param
// gives the values, and returns how many these are.
func (s *session) questionTable(sql []byte, mode statement.Mode, param func(i int) (string, bool)) (t *protocol.Table, params int, err error) {
	if parts, all, ok := statement.SimpleUnion(sql, mode); ok {
		t, err := s.simpleUnion(parts, all)
		return t, 0, err
	}
	if t, params, ok, err := s.metadata(sql, mode, param); ok {
		return t, params, err
	}
	return nil, 0, s.noServer()
}

// nullParam is for a text, which has no parameters, and for one whose values are not known yet.
func nullParam(int) (string, bool) { return "", false }

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
			s.state.tell(string(a.Name), value)
		case statement.Names:
			s.state.tellNames(strings.Fields(value))
		case statement.Transaction:
			if a.Scope == statement.ScopeSession {
				s.state.tellTransaction(strings.Join(strings.Fields(strings.ToUpper(string(sql))), " "))
			}
		}
	}
	s.done()
	return nil
}

// tell remembers what a variable was set to, where it is read back as it was typed.
// There is no server that would know the others: they are not told any more.
func (st *state) tell(name, value string) {
	delete(st.told, name)
	_, number := simpleNumbers[name]
	_, err := strconv.ParseUint(value, 10, 64)
	switch {
	case isDefault(value):
		delete(st.sysvars, name)
	case number && err == nil, name == "time_zone" && value != unquote(value):
		st.told = withEntry(st.told, name, unquote(value))
	case name == "tx_isolation", name == "transaction_isolation":
		st.tellTransaction(strings.ReplaceAll(strings.ToUpper(unquote(value)), "-", " "))
	case name == "tx_read_only", name == "transaction_read_only":
		switch strings.ToUpper(unquote(value)) {
		case "ON", "TRUE":
			st.tellTransaction("READ ONLY")
		case "OFF", "FALSE":
			st.tellTransaction("READ WRITE")
		}
	}
}

// tellNames is tell for SET NAMES charset [COLLATE collation].
func (st *state) tellNames(words []string) {
	for _, name := range [...]string{"character_set_client", "character_set_connection", "character_set_results"} {
		delete(st.told, name)
		if len(words) > 0 && statement.CharsetByName(unquote(words[0])) != statement.Unsupported {
			st.told = withEntry(st.told, name, strings.ToLower(unquote(words[0])))
		}
	}
	delete(st.told, "collation_connection")
	if len(words) == 3 {
		st.told = withEntry(st.told, "collation_connection", strings.ToLower(unquote(words[2])))
	}
}

// tellTransaction is tell for SET SESSION TRANSACTION, in capital letters with
// single spaces.
func (st *state) tellTransaction(sql string) {
	for word, value := range map[string]string{"READ ONLY": "1", "READ WRITE": "0"} {
		if strings.Contains(sql, word) {
			st.told = withEntry(st.told, "tx_read_only", value)
			st.told["transaction_read_only"] = value
		}
	}
	for _, level := range [...]string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"} {
		if strings.Contains(sql, level) {
			value := strings.ReplaceAll(level, " ", "-")
			st.told = withEntry(st.told, "tx_isolation", value)
			st.told["transaction_isolation"] = value
		}
	}
}

func withEntry(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = make(map[string]string)
	}
	m[key] = value
	return m
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
	case statement.Show, statement.Select:
		t, params, err := s.questionTable(sql, s.state.mode, nullParam)
		if err != nil {
			return err
		}
		return s.prepareOwn(sql, t.Columns, params)
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
	param := nullParam
	if p.params > 0 {
		values, err := s.fillCalls(st, p, payload)
		if err != nil {
			return err
		}
		param = func(i int) (string, bool) { return values[i].text, !values[i].null }
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
	return s.ownAnswerTo(p.own, p, param)
}
