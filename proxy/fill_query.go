package proxy

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/sequence"
	"seqproxy/statement"
)

// An INSERT ... SELECT that leaves a bound column out, or gives it a literal that is no
// number, is handled as the text that has NEXTVAL there: see counted for what the server
// makes of that.

// filledQuery is such an INSERT ... SELECT.
type filledQuery struct {
	binding *Binding
	text    []byte // with NEXTVAL for the column
}

// planQuery reads the query of the INSERT that s.insertion has begun to read. nil says
// that it gives the key values of its own, or that the table has no such column.
func (s *session) planQuery(c *backend.Conn, sql []byte, t *statement.TableRef, b *Binding, key *statement.Key) (*filledQuery, error) {
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
	return &filledQuery{binding: b, text: in.Spell(sql, &q, item, key, []byte(b.Sequence))}, nil
}

// givesKey refuses a query of no table whose key is no number: it may be NULL, and the server
// would make the key. Of a column of another table the proxy takes it that it is a key.
func givesKey(q *statement.InsertSelect, b *Binding, index, columns int) error {
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
func refusedQuery(b *Binding, err error) error {
	var told *protocol.ServerError
	if !errors.As(err, &told) || told.Code != mysql.ER_NOT_SUPPORTED_YET {
		return err
	}
	const prefix = len("seqproxy: ")
	return notSupported("INSERT ... SELECT into %s with numbers of sequence %s for its column %s: %s", b.Table, b.Sequence, b.Column, told.Message[prefix:])
}

// refused is refusedQuery of an error in the text; q may be nil.
func (q *filledQuery) refused(err error) error {
	if q == nil || err == nil {
		return err
	}
	return refusedQuery(q.binding, err)
}

// refused is refusedQuery of an error when n is executed.
func (n *counted) refused(err error) error {
	if n.key == nil || err == nil {
		return err
	}
	return refusedQuery(n.key, err)
}

// fillQuery handles the text.
func (s *session) fillQuery(q *filledQuery) error {
	st := &s.stmt
	st.Analyze(q.text, s.state.Mode)
	if err := s.convertNames(st, s.state.Charset); err != nil {
		return err
	}
	plan, err := s.planCallsOf(q, false)
	if err != nil {
		return err
	}
	if plan.perRow {
		err = s.fillRows(q.text, plan)
	} else {
		err = s.rewrite(q.text, plan)
	}
	return q.refused(err)
}

// planCallsOf is planCalls for the text in s.stmt, which is that of q if that is not nil.
func (s *session) planCallsOf(q *filledQuery, prepared bool) (callPlan, error) {
	plan, err := s.planCalls(&s.stmt, prepared)
	if q == nil {
		return plan, err
	}
	if err != nil {
		return plan, q.refused(err)
	}
	plan.key = q.binding
	for i := range s.stmt.Calls {
		if s.stmt.Calls[i].Func == statement.Nextval && !plan.served[i] { // as if it were the server's
			return plan, &sequence.NameError{Name: q.binding.Sequence, Err: sequence.ErrUnknown}
		}
	}
	return plan, nil
}

// stepKey has the numbers of a key be as far apart as drivers think that they are.
func (s *session) stepKey(c *backend.Conn, n *counted, words statement.Words) error {
	if n.key == nil {
		return nil
	}
	modes, err := s.insertModes(c, words)
	if err != nil {
		return err
	}
	apart, err := s.set.Sequences.Step(&s.patience, n.name)
	if err = s.patience.over(err); err != nil {
		return err
	}
	if modes.Increment%apart != 0 {
		return errApart(n.key, apart, modes.Increment)
	}
	n.count = modes.Increment / apart
	n.size = min(n.size, n.most())
	return nil
}
