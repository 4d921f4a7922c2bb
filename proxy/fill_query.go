package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// An INSERT ... SELECT that leaves a bound column out, or gives it a literal that is no
// number, is handled as the text that has NEXTVAL there: see counted for what the server
// makes of that.

// planQuery reads the query of the INSERT that s.insertion has begun to read. nil says
// that it gives the key values of its own, or that the table has no such column.
func (s *session) planQuery(c *backend.Conn, sql []byte, t *statement.TableRef, b *plan.Binding, key *statement.Key) (*plan.FilledQuery, error) {
	in := s.insertion
	q := in.ReadSelect()
	missing := key.Index < 0 && !in.NeedsColumns()
	if !missing && q.Refusal != "" && !q.Listed() {
		if q.Values {
			return nil, refusedQuery(b, notSupported("VALUES in parentheses is not supported there: write it without them"))
		}
		return nil, nil
	}
	// What is remembered of the columns is not good enough: a number that the server counts
	// off must stand in the right one.
	of, err := s.askColumns(c, string(sql[t.Start:t.End]))
	if err != nil {
		return nil, err
	}
	var item *statement.InsertValue
	if missing {
		if same := s.sameColumn(b.Column); !containsName(of.names, same) && !containsName(of.more, same) {
			return nil, nil // a table of the same name
		}
	} else {
		columns := len(in.Columns)
		if in.NeedsColumns() {
			if err := s.keyAmong(of, b, key); err != nil {
				return nil, err
			}
			columns = len(key.Columns)
		}
		if key.Index < 0 {
			return nil, nil
		}
		if item, err = s.emptyItem(c, &q, key, columns); err != nil {
			return nil, err
		}
		if item == nil {
			return nil, givesKey(&q, b, key.Index, columns)
		}
	}
	switch {
	case q.Refusal != "":
		if s.stmt.Kind != statement.Multi {
			if err := s.tryPrepare(c, sql); err != nil {
				return nil, err // a mistake of the author's, perhaps
			}
		}
		return nil, refusedQuery(b, notSupported("%s is not supported there", q.Refusal))
	case s.stmt.Kind == statement.Multi:
		return nil, refusedQuery(b, notSupported("send it alone"))
	case !s.writable(b.Sequence):
		return nil, refusedQuery(b, notSupported("its name in this character set is not supported: SET NAMES utf8mb4"))
	}
	for i := range s.stmt.Calls {
		switch s.stmt.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			return nil, refusedQuery(b, notSupported("another NEXTVAL, LASTVAL or SETVAL in it is not supported"))
		}
	}
	return &plan.FilledQuery{Binding: b, Text: in.Spell(sql, &q, item, key, []byte(b.Sequence))}, nil
}

// givesKey refuses a query of no table whose key is no number: it may be NULL, and the server
// would make the key. Of a column of another table the proxy takes it that it is a key.
func givesKey(q *statement.InsertSelect, b *plan.Binding, index, columns int) error {
	item := q.KeyItem(index, columns)
	if item == nil || item.Kind == statement.ValueNumber || q.From {
		return nil
	}
	return refusedQuery(b, notSupported("a key that may be NULL or 0 is not supported there: write INSERT ... VALUES"))
}

// emptyItem returns the item of a query that is the key, if it is a literal in whose
// place a number is put; else nil.
func (s *session) emptyItem(c *backend.Conn, q *statement.InsertSelect, key *statement.Key, columns int) (*statement.InsertValue, error) {
	item := q.KeyItem(key.Index, columns)
	if item == nil {
		return nil, nil
	}
	switch item.Kind {
	case statement.ValueNull:
		return item, nil
	case statement.ValueZero, statement.ValueText:
		modes, err := s.insertModes(c, s.stmt.Words)
		if err != nil {
			return nil, err
		}
		key.ZeroStays, key.TextIsZero = modes.ZeroStays, !modes.Strict || s.insertion.Ignore
		if key.Fills(item.Kind) {
			return item, nil
		}
	}
	return nil, nil
}

// refusedQuery tells of which column an error of the kind "not supported" is.
func refusedQuery(b *plan.Binding, err error) error {
	var told *protocol.ServerError
	if !errors.As(err, &told) || told.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	const prefix = len("seqproxy: ")
	return notSupported("INSERT ... SELECT into %s with numbers of sequence %s for its column %s: %s", b.Table, b.Sequence, b.Column, told.Message[prefix:])
}

// refused is refusedQuery of an error when n is executed.
func (n *counted) refused(err error) error {
	if n.Key == nil || err == nil {
		return err
	}
	return refusedQuery(n.Key, err)
}

// fillQuery handles the text.
func (s *session) fillQuery(q *plan.FilledQuery) error {
	s.stmt.Analyze(q.Text, s.state.Mode)
	a, err := s.planCallsOf(q, q.Text, plan.Now)
	switch {
	case err != nil:
		return err
	case a.Do == plan.Count:
		err = s.countRows(q.Text, a)
	default:
		err = s.rewrite(q.Text, a)
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

// planCallsOf is planCalls for the text in s.stmt, which is that of q if that is not nil.
func (s *session) planCallsOf(q *plan.FilledQuery, sql []byte, at plan.Moment) (*plan.Action, error) {
	f := s.factsFor(at)
	if q != nil {
		f.Key = q.Binding
	}
	a, err := s.plan(sql)
	return a, refusedFor(q, err)
}

// stepKey has the numbers of a key be as far apart as drivers think that they are.
func (s *session) stepKey(c *backend.Conn, n *counted, words statement.Words) error {
	if n.Key == nil {
		return nil
	}
	modes, err := s.insertModes(c, words)
	if err != nil {
		return err
	}
	apart, err := s.set.Sequences.Step(&s.patience, n.Sequence)
	if err = s.patience.over(err); err != nil {
		return err
	}
	if modes.Increment%apart != 0 {
		return errApart(n.Key, apart, modes.Increment)
	}
	n.Count = modes.Increment / apart
	n.Size = min(n.Size, n.Most())
	return nil
}
