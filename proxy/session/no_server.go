package session

import (
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/alone"
	"seqproxy/proxy/login"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/ticket"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// noServer returns the error for a statement that needs a server where there is none.
func (a *attachment) noServer() error {
	if !a.login.AtAdmin {
		return errKeysOnly
	}
	return protocol.NotSupported("this is the admin address, where only SEQPROXY ..., SHOW SEQPROXY ..., EXPLAIN FORMAT=ROUTE and statements about sequences are answered "+
		"(SHOW SEQPROXY HELP lists them), and what drivers ask when they connect: for all else, as for data and to look around with a tool, connect to %s", a.shared.Address)
}

// version returns the server version to show where there is no server.
func (a *attachment) version() string {
	if a.login.AtAdmin {
		if hello, ok := a.set.Routes.Greeting(); ok {
			return hello.TrueVersion()
		}
	}
	return login.NoServerVersion
}

// asksForNumbers reports whether a text asks sequences for numbers.
func asksForNumbers(st *statement.Statement) bool {
	if st.Refusal != "" {
		return true
	}
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			return true
		}
	}
	return false
}

// answerLocal answers the text just analysed where there is no shard. p is the prepared statement,
// or nil. It answers what drivers and command-line clients send when they connect. Anything else
// gets an error.
func (a *answers) answerLocal(sql []byte, p *prepared) error {
	st, mode := &a.planning.stmt, a.state.Mode
	if p != nil {
		mode = p.mode
	}
	switch st.Kind {
	case statement.Empty:
		return protocol.Errorf(mysql.ER_EMPTY_QUERY, "42000", "Query was empty")
	case statement.Set:
		if !alone.Set(a.state, st, sql) {
			return a.at.noServer()
		}
		a.done()
		return nil
	case statement.Begin, statement.Commit, statement.Rollback:
		// No transaction could change anything: numbers are never taken back.
		a.done()
		return nil
	case statement.ShowWarnings:
		return a.warningsWithoutServer(p)
	case statement.Select:
		t, ok := a.alone().Select(sql, mode)
		if !ok {
			return a.at.noServer()
		}
		return a.table(t, p)
	}
	return a.at.noServer()
}

// alone returns the facts of the session without a server.
func (a *answers) alone() *alone.Facts {
	return &alone.Facts{
		// setStep sets the stride on servers.
		State: a.state, Version: a.at.version(), AtAdmin: a.at.login.AtAdmin, Stride: a.at.set.steps.Stride(),
		User: a.at.login.Account.Name, Host: protocol.HostOf(a.client.RemoteAddr()), ID: a.at.id,
	}
}

// prepareWithoutServer prepares a text where there is no shard.
func (x *executor) prepareWithoutServer(sql []byte, t *ticket.Ticket) error {
	st := &x.planning.stmt
	if t != nil {
		return x.prepareTicket(sql, t)
	}
	switch st.Kind {
	case statement.Set, statement.Begin, statement.Commit, statement.Rollback:
		return x.prepareLocal(sql, nil, 0)
	case statement.Select:
		if st.SelfContained {
			return x.prepareLocal(sql, alone.Columns(st, sql, nil, x.at.likeMariaDB()), st.Params)
		}
		table, ok := x.answers.alone().Select(sql, x.state.Mode)
		if !ok {
			return x.at.noServer()
		}
		return x.prepareLocal(sql, table.Columns, 0)
	case statement.ShowWarnings:
		return x.prepareLocal(sql, alone.WarningColumns, 0)
	}
	return x.at.noServer()
}

// executeLocal executes a prepared statement that the proxy answers.
func (x *executor) executeLocal(p *prepared, payload []byte) error {
	st := &x.planning.stmt
	x.planning.read(p.local, p.mode)
	if err := x.planning.resolveNames(st, p.charset); err != nil {
		return err
	}
	f := x.planning.factsFor(plan.AtExecute)
	f.Charset = p.charset
	if p.Params > 0 {
		if err := x.fillCalls(st, p, payload, f); err != nil {
			return err
		}
	}
	if st.AboutSequences() {
		return x.texts.administerHere(st, p)
	}
	switch st.Kind {
	case statement.ExplainRoute:
		return x.texts.explainRoute(p.local, p)
	case statement.Select:
		a, err := x.planning.plan(p.local)
		if err != nil {
			return err
		}
		if a.Do == plan.Reply {
			return x.answers.answerSelect(st, p.local, a, p)
		}
		for i := range a.Slots {
			if slot := &a.Slots[i]; slot.Sequence != nil && !slot.Served() {
				// The sequence was dropped since, and no server has the text.
				return &sequence.NameError{Name: string(slot.Sequence), Err: sequence.ErrUnknown}
			}
		}
	}
	return x.answers.answerLocal(p.local, p)
}

// statistics answers COM_STATISTICS where there is no server. Command-line clients show it as
// status.
func (s *Session) statistics() error {
	all := s.srv.Stats()
	var statements uint64
	for _, c := range all.Statements {
		statements += c.N
	}
	up := time.Since(all.Since).Seconds()
	text := fmt.Sprintf("Uptime: %.0f  Threads: %d  Questions: %d  Queries per second avg: %.3f", up, s.srv.Sessions(), statements, float64(statements)/max(up, 1))
	s.client.out, _ = protocol.AppendPacket(s.client.out, []byte(text), s.client.packetNum)
	return nil
}

// warningsWithoutServer answers SHOW WARNINGS where no server keeps them.
func (a *answers) warningsWithoutServer(p *prepared) error {
	before, last := a.state.LastAnswer, a.state.LastError
	if err := a.table(alone.Warnings(a.state), p); err != nil {
		return err
	}
	a.state.LastAnswer, a.state.LastError = before, last // SHOW WARNINGS keeps them
	return nil
}
