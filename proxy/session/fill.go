package session

import (
	"errors"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
)

// beginFilling plans what of a text with bound tables is filled in: fill is set, and to be reset by
// the caller, or the text to go on with is another, of query, and analysed.
func (p *planning) beginFilling(sql []byte, prepared bool) (query *plan.FilledQuery, text []byte, err error) {
	f, err := p.planFilling(sql, prepared)
	if err != nil {
		return nil, nil, err
	}
	if f != nil && f.Query != nil {
		p.stmt.Analyze(f.Query.Text, p.state.Mode)
		return f.Query, f.Query.Text, nil
	}
	p.fill = f
	return nil, sql, nil
}

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
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
		if again, err := p.meet(&v, round, sql); !again {
			return f, err
		}
	}
}

// factsOfTables is factsFor where it matters what is bound in tables, on the server that the text
// goes to.
func (p *planning) factsOfTables(at plan.Moment) error {
	if err := p.ownersUnknown(); err != nil {
		return err
	}
	c, err := p.at.Attach()
	if err != nil {
		return err
	}
	f := p.factsFor(at)
	f.Conn, f.Folds, f.Bulk = idOfConn(c), c.Hello().FoldsTables, p.at.login.Capabilities.Has(protocol.BulkOperations)
	if b := p.at.set.bound(); b != nil {
		f.Bound = b.tables
	}
	return nil
}

// refusedQuery names the column in an error of the kind "not supported".
func refusedQuery(b *plan.Binding, err error) error {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) || refused.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	return protocol.NotSupported("%s", plan.RefusedQuery(b, strings.TrimPrefix(refused.Message, "seqproxy: ")))
}
