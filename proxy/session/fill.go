package session

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// beginFilling plans the keys to fill into a text with bound tables. It sets p.fill, which the
// caller resets, or it returns a query: then the statement to handle is another text, already
// analysed.
func (p *planning) beginFilling(sql []byte, prepared bool) (query *plan.FilledQuery, text []byte, err error) {
	f, err := p.planFilling(sql, prepared)
	if err != nil {
		return nil, nil, err
	}
	if f != nil && f.Query != nil {
		p.read(f.Query.Text, p.state.Mode)
		return f.Query, f.Query.Text, nil
	}
	p.fill = f
	return nil, sql, nil
}

// planFilling plans what to fill into the text just analysed, or returns nil for nothing. It may
// ask the server.
func (p *planning) planFilling(sql []byte, prepared bool) (*plan.Filling, error) {
	at := plan.Now
	if prepared {
		at = plan.AtPrepare
	}
	if err := p.factsOfTables(at); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		f, v := p.planner.Fill(&p.stmt, sql, p.state)
		if again, err := p.fetch(&v, round, sql); !again {
			return f, err
		}
	}
}

// factsOfTables is factsFor with what is bound in the text's tables, on its server. It asks the
// server for the character set if a SET has lost that.
func (p *planning) factsOfTables(at plan.Moment) error {
	bound, err := p.bound()
	if err != nil {
		return err
	}
	c, err := p.at.Attach()
	if err != nil {
		return err
	}
	if p.state.ModeUnknown && p.state.Charset == "" && p.stmt.ReadsOfLast() == 0 {
		// Names of columns may not be ASCII, even if the text is.
		if err := p.at.askMode(c); err != nil {
			return err
		}
		if p.state.Mode.Charset == lex.Unsupported {
			p.state.AskMode() // the text is read as it was
		}
	}
	f := p.factsFor(at)
	f.Conn, f.Folds, f.Bulk = idOfConn(c), c.Hello.FoldsTables, p.at.login.Capabilities.Has(protocol.BulkOperations)
	if bound != nil {
		f.Bound = bound.tables
	}
	return nil
}

// refusedQuery adds the column to an error of the kind "not supported".
func refusedQuery(b *plan.Binding, err error) error {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) || refused.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	return protocol.NotSupported("%s", plan.RefusedQuery(b, strings.TrimPrefix(refused.Message, "seqproxy: ")))
}

// boundTables reports whether the text just analysed has an INSERT or REPLACE into a table with a
// bound column, judged by the table's name. It fails if the bindings are unknown.
func (p *planning) boundTables() (bool, error) {
	for i := range p.stmt.Tables {
		t := &p.stmt.Tables[i]
		if t.Kind == statement.Update {
			continue
		}
		bound, err := p.bound()
		if bound == nil {
			return false, err
		}
		if len(bound.tables.Named(t.Name)) > 0 || !ascii(t.Name) {
			return true, nil
		}
	}
	return false, nil
}

// binding returns the binding of a table of the current shard, or nil.
func (p *planning) binding(t *statement.TableRef) (*plan.Binding, error) {
	if err := p.factsOfTables(plan.Now); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		b, v := p.planner.Bound(t, &p.stmt, p.state)
		if v.Refusal.Why == plan.Unread {
			return nil, errUnread // a long text is not in memory, so the server cannot see it first
		}
		if again, err := p.fetch(&v, round, nil); !again {
			return b, err
		}
	}
}

// unreadRows refuses a text that could insert rows and is not understood to its end, on a shard
// with bound columns: the server would make the keys itself. The error is the server's own if that
// rejects the text.
func (p *planning) unreadRows(sql []byte) error {
	if !p.severalIn(sql) {
		c, err := p.at.Attach()
		if err != nil {
			return err
		}
		var refused *protocol.ServerError
		if err := p.relay.tryPrepare(c, sql, nil); err != nil && !(errors.As(err, &refused) && refused.Code == mysql.ER_UNSUPPORTED_PS) {
			return err
		}
	}
	return errUnread
}

var errUnread = protocol.NotSupported("a text that may insert rows and cannot be read to its end (it is a compound statement, has PREPARE among other statements, has control characters, " +
	"is not in utf8mb4, has very many short statements, or goes on behind SET sql_mode, SET NAMES or CALL) is not supported where columns are filled from sequences (OWNED BY or [[bind]]): " +
	"send INSERT, REPLACE, LOAD DATA or PREPARE as a statement of its own, without control characters and in utf8mb4")

// severalIn reports whether a server may read a text as more than one statement.
func (f *facts) severalIn(sql []byte) bool {
	return f.severalAgreed() && bytes.IndexByte(bytes.TrimRight(sql, "; \t\n\v\f\r\x00"), ';') >= 0
}

// mayHideInsert reports whether the text just analysed is not understood to its end, and could
// insert rows into a table with a bound column. It fails if the bindings are unknown.
func (p *planning) mayHideInsert(sql []byte) (bool, error) {
	st := &p.stmt
	if st.Words&statement.MayBringRows == 0 || st.Kind == statement.CreateStored && !p.severalIn(sql) {
		return false, nil
	}
	return p.boundHere()
}
