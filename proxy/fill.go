package proxy

import (
	"encoding/binary"
	"strconv"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// filling is what is done to a text that gives bound columns no numbers.
type filling struct {
	keys    []filledKey // in the order of the text
	splices []statement.Splice
	// repeated: the text has failed once.
	repeated bool
}

// filledKey is the bound column of one INSERT or REPLACE.
type filledKey struct {
	binding   *Binding
	statement int      // its index in the text
	numbers   int      // that are needed, step apart
	step      uint64   // 1 or more
	explicit  []uint64 // that the statement gives itself
	leads     bool     // the first number becomes LAST_INSERT_ID()
	before    bool     // what is read of LAST_INSERT_ID() is read before that
	rows      int
	added     bool   // the text does not name the column
	first     uint64 // of the numbers that were taken
	// splice writes the numbers, of which first is the first.
	splice func(dst []statement.Splice, first uint64) []statement.Splice
}

// leads says whether a statement's first number is that of its key.
func (f *filling) leads(statement int) bool {
	if f == nil {
		return false
	}
	for i := range f.keys {
		if f.keys[i].statement == statement {
			return f.keys[i].leads
		}
	}
	return false
}

// disturbs says whether LAST_INSERT_ID() in a statement would be read as its key.
func (f *filling) disturbs(statement int) bool {
	if f == nil {
		return false
	}
	for i := range f.keys {
		if f.keys[i].statement == statement {
			return f.keys[i].leads && !f.keys[i].before
		}
	}
	return false
}

// texts are what is put into the text.
func (f *filling) texts() []statement.Splice {
	if f == nil {
		return nil
	}
	return f.splices
}

// boundTables reports whether the text just analysed has an INSERT or REPLACE into a
// table with a bound column, as far as the name tells.
func (s *session) boundTables() bool {
	b := s.srv.bindings.Load()
	if b == nil || s.srv.opts.Shards.Default() == nil {
		return false
	}
	for i := range s.stmt.Tables {
		if t := &s.stmt.Tables[i]; t.Kind != statement.Update && len(b.named(t.Name)) > 0 {
			return true
		}
	}
	return false
}

// binding returns what is bound in a table of the current shard, or nil.
func (s *session) binding(c *backend.Conn, t *statement.TableRef) (*Binding, error) {
	b := s.srv.bindings.Load()
	if b == nil || t.Kind == statement.Update {
		return nil, nil
	}
	name, err := s.nameInUTF8(t.Name, s.state.charset)
	if err != nil {
		return nil, nil // no name that the configuration could have
	}
	list := b.named(name)
	if len(list) == 0 {
		return nil, nil
	}
	schema := s.state.schema
	if t.Schema != nil {
		in, err := s.nameInUTF8(t.Schema, s.state.charset)
		if err != nil {
			return nil, nil
		}
		schema = string(in)
	}
	return bindingOf(list, schema, string(name), c.Hello().FoldsTables), nil
}

// filled handles a text that may have to be filled in.
func (s *session) filled(sql []byte) error {
	var err error
	if s.fill, err = s.planFilling(sql); err != nil {
		return err
	}
	defer func() { s.fill = nil }()
	return s.special(sql)
}

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
func (s *session) planFilling(sql []byte) (*filling, error) {
	c, err := s.attach()
	if err != nil {
		return nil, err
	}
	st := &s.stmt
	f := &filling{}
	s.columnsCached = false
	in := &s.insertion
	in.ReadInserts(sql, s.state.mode)
	for i := range st.Tables {
		t := &st.Tables[i]
		b, err := s.binding(c, t)
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		k, err := s.planKey(c, sql, t, b)
		if err != nil {
			return nil, err
		}
		if k != nil {
			f.keys = append(f.keys, *k)
		}
	}
	if len(f.keys) == 0 {
		return nil, nil
	}
	return f, nil
}

// unreadable is the error for a text into a bound table that is not understood: the
// server's own if there is one, which it says when it is to prepare the text.
func (s *session) unreadable(c *backend.Conn, sql []byte, b *Binding) error {
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

// planKey reads one INSERT and decides what becomes of its key; nil is nothing.
func (s *session) planKey(c *backend.Conn, sql []byte, t *statement.TableRef, b *Binding) (*filledKey, error) {
	in := &s.insertion
	column, ok := s.inCharset(b.Column)
	if !ok {
		return nil, notSupported("the bound column %s in this character set is not supported: SET NAMES utf8mb4", b.Column)
	}
	if !in.Read(t) {
		return nil, s.unreadable(c, sql, b)
	}
	key := statement.Key{Column: column, Index: in.Column(s.sameColumn(b.Column))}
	if in.NeedsColumns() {
		if in.Source == statement.InsertQuery {
			return nil, nil // gives all columns, this among them
		}
		if err := s.tableColumns(c, sql, t, b, &key); err != nil {
			return nil, err
		}
		if key.Index < 0 {
			return nil, nil // the server's own: it is no column that the text could mean
		}
	}
	if in.Source == statement.InsertQuery {
		if key.Index >= 0 {
			return nil, nil
		}
		return nil, notSupported("INSERT ... SELECT into %s without its column %s, which is filled from sequence %s, is not supported: "+
			"name the column and give NEXTVAL('%s') for it", b.Table, b.Column, b.Sequence, b.Sequence)
	}
	if !in.ReadRows(key.Index) {
		return nil, s.unreadable(c, sql, b)
	}
	k := &filledKey{binding: b, statement: t.Statement, step: 1, rows: len(in.Rows)}
	if len(key.Columns) > 0 && !in.Complete(len(key.Columns)) {
		// Not of these columns: they are named so that the server says so for certain.
		list := in.AppendList(nil, &key)
		k.splice = func(dst []statement.Splice, _ uint64) []statement.Splice { return append(dst, list...) }
		return k, nil
	}
	if err := s.decideRows(c, k, &key); err != nil {
		return nil, err
	}
	if k.numbers == 0 && len(k.explicit) == 0 {
		return nil, nil
	}
	return k, nil
}

// decideRows decides what becomes of each row of the INSERT just read, and makes k
// write it.
func (s *session) decideRows(c *backend.Conn, k *filledKey, key *statement.Key) error {
	in := &s.insertion
	if len(in.Rows) > 1 || in.MayBeZero() {
		modes, err := s.insertModes(c)
		if err != nil {
			return err
		}
		key.ZeroStays, key.TextIsZero, k.step = modes.zeroStays, !modes.strict || in.Ignore, modes.increment
	}
	missing, certain := false, -1
	rows := make([]filledRow, 0, min(len(in.Rows), 1<<12))
	for i := range in.Rows {
		v := &in.Rows[i].Value
		filling := in.Filling(i, key)
		missing = missing || v.Kind == statement.ValueMissing
		if v.Kind == statement.ValueOpaque && !s.certain(v) || filling == statement.FillParam {
			return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported where it may be NULL or 0 and be evaluated twice: "+
				"give a number, NULL, or leave the column out", k.binding.Table, k.binding.Column, k.binding.Sequence)
		}
		if v.Kind == statement.ValueOpaque {
			continue // a number that the proxy gives itself
		}
		switch filling {
		case statement.FillNot:
			if v.Kind == statement.ValueNumber {
				k.explicit = append(k.explicit, v.Number)
			}
			continue
		case statement.FillNumber:
			if certain < 0 {
				certain = len(rows)
			}
		}
		rows = append(rows, filledRow{i, filling})
	}
	k.numbers, k.leads = len(rows), len(rows) > 0
	last := len(in.Columns) - 1
	// A key that is added stands last, and is evaluated last.
	k.before = len(in.Rows) == 1 && (missing || key.Index == last) && !in.OnDuplicate && !in.Returning
	k.added = missing
	first := max(certain, 0) // the row whose number becomes LAST_INSERT_ID()
	listed := missing || len(in.Columns) == 0
	if s.stmt.Kind == statement.Multi { // the next one is read into the same memory
		in = in.Clone()
	}
	columns, step := *key, k.step
	k.splice = func(dst []statement.Splice, number uint64) []statement.Splice {
		return spliceKey(dst, in, &columns, rows, first, listed, missing, number, step)
	}
	return nil
}

// filledRow is a row whose key is given a number.
type filledRow struct {
	row     int // index in Insertion.Rows
	filling statement.Filling
}

// spliceKey writes numbers into the rows of an INSERT.
func spliceKey(dst []statement.Splice, in *statement.Insertion, key *statement.Key, rows []filledRow, first int, listed, missing bool,
	number, step uint64,
) []statement.Splice {
	if len(rows) == 0 {
		return dst
	}
	if listed {
		dst = in.AppendList(dst, key)
	}
	var text []byte // of all numbers, in one piece of memory
	for j, r := range rows {
		from := len(text)
		switch {
		case r.filling == statement.FillIfEmpty && j == first:
			text = append(text, "CAST("...)
			text = statement.AppendLastInsertID(text, number)
			text = append(text, " AS CHAR)"...)
		case r.filling == statement.FillIfEmpty:
			text = append(text, '\'')
			text = strconv.AppendUint(text, number, 10)
			text = append(text, '\'')
		case j == first:
			text = statement.AppendLastInsertID(text, number)
		default:
			text = strconv.AppendUint(text, number, 10)
		}
		value := text[from:len(text):len(text)]
		if r.filling == statement.FillIfEmpty {
			dst = in.AppendIfEmpty(dst, r.row, key, value)
		} else {
			dst = in.AppendNumber(dst, r.row, key, value)
		}
		number += step
	}
	if missing {
		dst = in.AppendAlias(dst)
	}
	return dst
}

// certain says whether an expression is nothing but a NEXTVAL, which is never empty.
func (s *session) certain(v *statement.InsertValue) bool {
	for i := range s.stmt.Calls {
		call := &s.stmt.Calls[i]
		if call.Start == v.Start && call.End == v.End && call.Func == statement.Nextval {
			return true
		}
	}
	return false
}

// takeKeys takes the numbers of a text's keys, takes those that it gives itself out of
// what is handed out, and writes f.splices.
func (s *session) takeKeys(f *filling) error {
	if f == nil {
		return nil
	}
	f.splices = f.splices[:0]
	for i := range f.keys {
		k := &f.keys[i]
		name := []byte(k.binding.Sequence)
		if len(k.explicit) > 0 {
			if err := s.patience.over(s.srv.opts.Sequences.Avoid(&s.patience, name, k.explicit)); err != nil {
				return err
			}
		}
		if k.numbers == 0 {
			f.splices = k.splice(f.splices, 0)
			continue
		}
		if err := s.mayUse(name); err != nil {
			return err
		}
		count := uint64(1)
		if k.numbers > 1 {
			apart, err := s.srv.opts.Sequences.Step(&s.patience, name)
			if err = s.patience.over(err); err != nil {
				return err
			}
			if k.step%apart != 0 {
				return notSupported("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
					"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
					k.binding.Table, k.binding.Column, k.binding.Sequence, apart, k.step)
			}
			count += uint64(k.numbers-1) * (k.step / apart)
		}
		first, err := s.takeNumbers(name, count)
		if err != nil {
			return err
		}
		k.first = first
		f.splices = k.splice(f.splices, first)
	}
	return nil
}
