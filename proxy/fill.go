package proxy

import (
	"encoding/binary"
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// newFilling returns an empty filling for the text just analysed. That of a text that
// is not prepared is used for the next one, too.
func (s *session) newFilling(prepared bool) *plan.Filling {
	f := s.spareFill
	switch {
	case prepared:
		f = new(plan.Filling)
	case f == nil:
		f = new(plan.Filling)
		s.spareFill = f
	}
	f.Begin(&s.stmt)
	return f
}

// filled handles a text that may have to be filled in.
func (s *session) filled(sql []byte) error {
	f, err := s.planFilling(sql, false)
	switch {
	case err != nil:
		return err
	case f != nil && f.Query != nil:
		return s.fillQuery(f.Query)
	}
	s.fill = f
	defer func() { s.fill = nil }()
	return s.special(sql)
}

// beginFilling is filled for who looks at the text further himself: fill is set, and to be
// reset by the caller, or the text to go on with is another, of query, and analysed.
func (s *session) beginFilling(sql []byte, prepared bool) (query *plan.FilledQuery, text []byte, err error) {
	if len(s.stmt.Tables) == 0 || !s.boundTables() {
		return nil, sql, nil
	}
	f, err := s.planFilling(sql, prepared)
	if err != nil {
		return nil, nil, err
	}
	if f != nil && f.Query != nil {
		s.stmt.Analyze(f.Query.Text, s.state.Mode)
		return f.Query, f.Query.Text, nil
	}
	s.fill = f
	return nil, sql, nil
}

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
func (s *session) planFilling(sql []byte, prepared bool) (*plan.Filling, error) {
	if err := s.awaitOwners(); err != nil {
		return nil, err
	}
	c, err := s.attach()
	if err != nil {
		return nil, err
	}
	st := &s.stmt
	f := s.newFilling(prepared)
	s.columnsCached = false
	if s.insertion == nil {
		s.insertion = new(statement.Insertion)
	}
	in := s.insertion
	in.ReadInserts(sql, s.state.Mode)
	for i := range st.Tables {
		t := &st.Tables[i]
		b, err := s.binding(c, t)
		if errors.Is(err, errUnread) {
			return nil, s.unreadRows(sql)
		}
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		switch t.Kind {
		case statement.Insert, statement.Replace:
		case statement.Load:
			if err := s.planLoad(t, b); err != nil {
				return nil, err
			}
			continue
		default:
			return nil, notSupported("INSERT into %s, whose column %s is filled from sequence %s, as a part of another statement is not supported: send it alone",
				b.Table, b.Column, b.Sequence)
		}
		k := f.AddKey()
		k.Binding, k.Statement = b, t.Statement
		fills, query, err := s.planKey(c, sql, t, k, prepared)
		if err != nil {
			return nil, err
		}
		if query != nil {
			return &plan.Filling{Query: query}, nil // it is the only statement
		}
		if !fills {
			f.Keys = f.Keys[:len(f.Keys)-1]
		}
	}
	if len(f.Keys) == 0 {
		return nil, nil
	}
	f.ColumnsCached = s.columnsCached
	return f, nil
}

// planLoad refuses LOAD DATA without the bound column: the numbers would be the server's.
// With it the file has them.
func (s *session) planLoad(t *statement.TableRef, b *plan.Binding) error {
	in := s.insertion
	read := in.ReadLoad(t)
	if read && in.LoadGives(s.sameColumn(b.Column)) {
		return nil
	}
	return notSupported("LOAD DATA or LOAD XML into %s without values for its column %s, which is filled from sequence %s, is not supported: take as many numbers with SELECT NEXTVAL('%s', n), "+
		"and SET %s from them", b.Table, b.Column, b.Sequence, b.Sequence, b.Column)
}

// unreadable is the error for a text into a bound table that is not understood: the
// server's own if there is one, which it says when it is to prepare the text.
func (s *session) unreadable(c *backend.Conn, sql []byte, b *plan.Binding) error {
	if s.stmt.Kind != statement.Multi {
		if err := s.tryPrepare(c, sql); err != nil {
			return err
		}
	}
	return notSupported("this form of INSERT into %s, whose column %s is filled from sequence %s, is not supported: write INSERT ... VALUES or SET",
		b.Table, b.Column, b.Sequence)
}

// tryPrepare has the server prepare a text and forget it. An error is why it would not.
func (s *session) tryPrepare(c *backend.Conn, sql []byte) error {
	if err := s.flush(); err != nil {
		return err
	}
	return s.owned(c, func() error {
		c.SetPacketNum(0)
		if err := c.WritePacket(append([]byte{byte(protocol.ComStmtPrepare)}, sql...)); err != nil {
			return err
		}
		a := prepareAnswer{s: s, c: c, p: &prepared{}}
		err := a.relay()
		answer := s.out
		s.out = s.out[:0]
		if err != nil {
			return err
		}
		if a.refused {
			return protocol.ParseServerError(answer[protocol.HeaderSize:])
		}
		c.SetPacketNum(0)
		if err := c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, a.p.backendID)); err != nil {
			return err
		}
		c.Release()
		return nil
	})
}

// planKey reads the INSERT into t and decides what becomes of its key k, or of its query;
// fills is false if that is nothing.
func (s *session) planKey(c *backend.Conn, sql []byte, t *statement.TableRef, k *plan.FilledKey, prepared bool) (fills bool, _ *plan.FilledQuery, _ error) {
	in, b, key := s.insertion, k.Binding, &k.Key
	if !s.writable(b.Column) {
		return false, nil, notSupported("the bound column %s in this character set is not supported: SET NAMES utf8mb4", b.Column)
	}
	if !in.Read(t) {
		return false, nil, s.unreadable(c, sql, b)
	}
	key.Column, key.Index = append(key.Column, b.Column...), in.Column(s.sameColumn(b.Column))
	if in.Source == statement.InsertQuery {
		q, err := s.planQuery(c, sql, t, b, key)
		return false, q, err
	}
	if in.NeedsColumns() {
		if err := s.tableColumns(c, sql, t, b, key); err != nil {
			return false, nil, err
		}
		if key.Index < 0 {
			return false, nil, nil // the server's own: it is no column that the text could mean
		}
	}
	fills, err := s.planRowsOf(c, sql, t, k, prepared)
	return fills, nil, err
}

// planRowsOf is planKey for an INSERT whose rows stand in the text.
func (s *session) planRowsOf(c *backend.Conn, sql []byte, t *statement.TableRef, k *plan.FilledKey, prepared bool) (fills bool, err error) {
	in, b, key := s.insertion, k.Binding, &k.Key
	if !in.ReadRows(key.Index) {
		return false, s.unreadable(c, sql, b)
	}
	if in.Returning && s.stmt.Words&statement.ReadsLastInsertID != 0 {
		return false, notSupported("INSERT ... RETURNING with LAST_INSERT_ID() into %s, whose column %s is filled from sequence %s, is not supported: return the column itself",
			b.Table, b.Column, b.Sequence)
	}
	k.Step, k.Rows, k.Bulk = 1, len(in.Rows), prepared && s.login.Capabilities.Has(protocol.BulkOperations)
	k.Insertion = in
	if s.stmt.Kind == statement.Multi { // the next one is read into the same memory
		k.Insertion = in.Clone()
	}
	if len(key.Columns) > 0 && !in.Complete(len(key.Columns)) {
		k.Listed = true // they are not of these columns, which are named so that the server says so for certain
		return true, nil
	}
	if err := s.decideRows(c, k, prepared); err != nil {
		return false, err
	}
	if len(k.Filled) == 0 && len(k.Explicit) == 0 && !k.Params {
		return false, nil
	}
	if (in.Ignore || in.OnDuplicate) && k.Rows == 1 && len(k.Filled) == 1 && k.Filled[0].Filling != statement.FillIfEmpty &&
		s.stmt.Kind != statement.Multi && !k.Bulk {
		// The row may not be inserted, and of a column with AUTO_INCREMENT the server tells
		// whether it was: then alone the number is to be LAST_INSERT_ID().
		if k.Plain, err = s.hasAuto(c, sql, t, b); err != nil {
			return false, err
		}
		k.Before = k.Before || k.Plain
	}
	return true, nil
}

// decideRows decides what becomes of each row of the INSERT just read.
func (s *session) decideRows(c *backend.Conn, k *plan.FilledKey, prepared bool) error {
	in, key := k.Insertion, &k.Key
	if len(in.Rows) > 1 && !prepared || in.MayBeZero() {
		modes, err := s.insertModes(c, s.stmt.Words)
		if err != nil {
			return err
		}
		key.ZeroStays, key.TextIsZero, k.Step = modes.ZeroStays, !modes.Strict || in.Ignore, modes.Increment
	}
	k.Leader = -1
	expressions := false
	for i := range in.Rows {
		v := &in.Rows[i].Value
		if v.Kind == statement.ValueMissing {
			k.Added = true
		}
		filling := in.Filling(i, key)
		switch {
		case v.Kind == statement.ValueOpaque:
			if s.certain(v) {
				continue // a number that the proxy gives itself
			}
			return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported where it may be NULL or 0 and would be evaluated twice: "+
				"give a number, NULL, or leave the column out", k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
		case filling == statement.FillNot:
			if v.Kind == statement.ValueNumber {
				k.Explicit = append(k.Explicit, v.Number)
			}
			continue
		case filling == statement.FillNumber && k.Leader < 0:
			k.Leader = len(k.Filled)
		case filling == statement.FillParam && !prepared:
			k.Params = true
			continue // the server's error, unless the text is inside another
		case filling == statement.FillParam:
			k.Params = true
		case filling == statement.FillIfEmpty:
			expressions = true
		}
		k.Filled = append(k.Filled, plan.FilledRow{Row: i, Filling: filling})
	}
	if expressions && prepared && (k.Bulk || k.Params) {
		return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported in a prepared statement: give a number or NULL",
			k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
	}
	k.Leader = max(k.Leader, 0)
	// A key that is added stands last, and is evaluated last.
	k.Before = len(in.Rows) == 1 && (k.Added || key.Index == len(in.Columns)-1) && !in.OnDuplicate && !in.Returning
	k.Listed = k.Added || len(in.Columns) == 0
	return nil
}

// certain says whether an expression is nothing but a NEXTVAL, which is never empty.
func (s *session) certain(v *statement.InsertValue) bool {
	call := s.stmt.CallAt(v.Start, v.End)
	return call != nil && call.Func == statement.Nextval
}
