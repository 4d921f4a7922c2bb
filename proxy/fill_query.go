package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// refusedQuery tells of which column an error of the kind "not supported" is.
func refusedQuery(b *plan.Binding, err error) error {
	var told *protocol.ServerError
	if !errors.As(err, &told) || told.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	const prefix = len("seqproxy: ")
	return protocol.NotSupported("%s", plan.RefusedQuery(b, told.Message[prefix:]))
}

// refusedCount is refusedQuery of an error when n is executed.
func refusedCount(n *keys.Block, err error) error {
	if n.Key == nil || err == nil {
		return err
	}
	return refusedQuery(n.Key, err)
}

// fillQuery handles the text.
func (d *delivery) fillQuery(q *plan.FilledQuery) error {
	d.planning.stmt.Analyze(q.Text, d.state.Mode)
	a, err := d.planning.planQuery(q, q.Text, plan.Now)
	switch {
	case err != nil:
		return err
	case a.Do == plan.Count:
		err = d.countRows(q.Text, a)
	default:
		err = d.rewrite(q.Text, a)
	}
	return refusedFor(q, err)
}

// refusedFor is refusedQuery of an error in the text of q, which may be nil.
func refusedFor(q *plan.FilledQuery, err error) error {
	if q == nil || err == nil {
		return err
	}
	return refusedQuery(q.Binding, err)
}

// planQuery is planCalls for the text in s.stmt, which is that of q if that is not nil.
func (p *planning) planQuery(q *plan.FilledQuery, sql []byte, at plan.Moment) (*plan.Action, error) {
	f := p.factsFor(at)
	if q != nil {
		f.Key = q.Binding
	}
	a, err := p.plan(sql)
	return a, refusedFor(q, err)
}

// stepKey has the numbers of a key be as far apart as drivers think that they are.
func (p *planning) stepKey(c *backend.Conn, n *keys.Block, words statement.Words) error {
	if n.Key == nil {
		return nil
	}
	modes, err := p.at.insertModes(c, words)
	if err != nil {
		return err
	}
	return p.numbers.Space(n, modes.Increment)
}
