package proxy

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// filling is what is done to a text that gives bound columns no numbers.
type filling struct {
	keys    []filledKey // in the order of the text
	splices []statement.Splice
	words   statement.Words
	several bool // statements are in the text
	// columnsCached: the columns of a table were not asked for just now.
	columnsCached bool
	// repeated: the text has failed once.
	repeated bool
	// query is an INSERT ... SELECT, which is another text then; nil if it is none.
	query *filledQuery
	text  []byte // of splices
	// placeholders are written for the numbers, for people to read.
	placeholders bool
}

// filledKey is the bound column of one INSERT or REPLACE.
type filledKey struct {
	binding   *Binding
	statement int      // its index in the text
	explicit  []uint64 // numbers that the statement gives itself
	rows      int      // in all
	filled    []filledRow
	leader    int    // the index in filled of the row whose number becomes LAST_INSERT_ID()
	step      uint64 // between the numbers; 1 or more
	before    bool   // what is read of LAST_INSERT_ID() is read before that
	plain     bool   // the number is written as it is, and made LAST_INSERT_ID() here: see filling.inserted
	params    bool   // some rows tell by a parameter whether they are to be filled
	bulk      bool   // an execution may be of many rows
	listed    bool   // the columns have to be named
	added     bool   // the text does not name the key
	first     uint64 // of the numbers that were taken
	insertion *statement.Insertion
	key       statement.Key
}

// filledRow is a row whose key is given a number.
type filledRow struct {
	row     int // index in Insertion.Rows
	filling statement.Filling
}

// newFilling returns an empty filling for the text just analysed. That of a text that
// is not prepared is used for the next one, too.
func (s *session) newFilling(prepared bool) *filling {
	f := s.spareFill
	switch {
	case prepared:
		f = new(filling)
	case f == nil:
		f = new(filling)
		s.spareFill = f
	}
	*f = filling{keys: f.keys[:0], splices: f.splices[:0], text: f.text[:0], words: s.stmt.Words, several: s.stmt.Kind == statement.Multi}
	return f
}

// addKey appends an empty key, in the memory of an earlier one.
func (f *filling) addKey() *filledKey {
	n := len(f.keys)
	f.keys = slices.Grow(f.keys, 1)[:n+1]
	k := &f.keys[n]
	*k = filledKey{explicit: k.explicit[:0], filled: k.filled[:0], key: statement.Key{Column: k.key.Column[:0]}}
	return k
}

// trim gives up what the last text left in f, and says whether what remains is little.
func (f *filling) trim() bool {
	if cap(f.keys) > 1 || cap(f.splices) > 16 || cap(f.text) > maxKept {
		return false
	}
	clear(f.splices[:cap(f.splices)])
	keys := f.keys[:cap(f.keys)]
	for i := range keys {
		k := &keys[i]
		k.binding, k.insertion, k.key.Columns = nil, nil, nil
		if cap(k.filled) > 16 || cap(k.explicit) > 16 {
			return false
		}
	}
	return true
}

// keyOf returns the key of a statement, nil if it has none. Texts may have very many.
func (f *filling) keyOf(statement int) *filledKey {
	if f == nil {
		return nil
	}
	i := sort.Search(len(f.keys), func(i int) bool { return f.keys[i].statement >= statement })
	if i == len(f.keys) || f.keys[i].statement != statement {
		return nil
	}
	return &f.keys[i]
}

// fills says whether any key is given to the text.
func (f *filling) fills() bool {
	return slices.ContainsFunc(f.keys, func(k filledKey) bool { return len(k.filled) > 0 })
}

// leads says whether a statement's first number is that of its key.
func (f *filling) leads(statement int) bool {
	k := f.keyOf(statement)
	return k != nil && len(k.filled) > 0
}

// disturbs says whether LAST_INSERT_ID() in a statement would be read as its key.
func (f *filling) disturbs(statement int) bool {
	k := f.keyOf(statement)
	return k != nil && len(k.filled) > 0 && !k.before && !k.plain
}

// texts are what is put into the text.
func (f *filling) texts() []statement.Splice {
	if f == nil {
		return nil
	}
	return f.splices
}

// filled handles a text that may have to be filled in.
func (s *session) filled(sql []byte) error {
	f, err := s.planFilling(sql, false)
	switch {
	case err != nil:
		return err
	case f != nil && f.query != nil:
		return s.fillQuery(f.query)
	}
	s.fill = f
	defer func() { s.fill = nil }()
	return s.special(sql)
}

// beginFilling is filled for who looks at the text further himself: fill is set, and to be
// reset by the caller, or the text to go on with is another, of query, and analysed.
func (s *session) beginFilling(sql []byte, prepared bool) (query *filledQuery, text []byte, err error) {
	if len(s.stmt.Tables) == 0 || !s.boundTables() {
		return nil, sql, nil
	}
	f, err := s.planFilling(sql, prepared)
	if err != nil {
		return nil, nil, err
	}
	if f != nil && f.query != nil {
		s.stmt.Analyze(f.query.text, s.state.Mode)
		return f.query, f.query.text, nil
	}
	s.fill = f
	return nil, sql, nil
}

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
func (s *session) planFilling(sql []byte, prepared bool) (*filling, error) {
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
		k := f.addKey()
		k.binding, k.statement = b, t.Statement
		fills, query, err := s.planKey(c, sql, t, k, prepared)
		if err != nil {
			return nil, err
		}
		if query != nil {
			return &filling{query: query}, nil // it is the only statement
		}
		if !fills {
			f.keys = f.keys[:len(f.keys)-1]
		}
	}
	if len(f.keys) == 0 {
		return nil, nil
	}
	f.columnsCached = s.columnsCached
	return f, nil
}

// planLoad refuses LOAD DATA without the bound column: the numbers would be the server's.
// With it the file has them.
func (s *session) planLoad(t *statement.TableRef, b *Binding) error {
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

// planKey reads the INSERT into t and decides what becomes of its key k, or of its query;
// fills is false if that is nothing.
func (s *session) planKey(c *backend.Conn, sql []byte, t *statement.TableRef, k *filledKey, prepared bool) (fills bool, _ *filledQuery, _ error) {
	in, b, key := s.insertion, k.binding, &k.key
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
func (s *session) planRowsOf(c *backend.Conn, sql []byte, t *statement.TableRef, k *filledKey, prepared bool) (fills bool, err error) {
	in, b, key := s.insertion, k.binding, &k.key
	if !in.ReadRows(key.Index) {
		return false, s.unreadable(c, sql, b)
	}
	if in.Returning && s.stmt.Words&statement.ReadsLastInsertID != 0 {
		return false, notSupported("INSERT ... RETURNING with LAST_INSERT_ID() into %s, whose column %s is filled from sequence %s, is not supported: return the column itself",
			b.Table, b.Column, b.Sequence)
	}
	k.step, k.rows, k.bulk = 1, len(in.Rows), prepared && s.login.Capabilities.Has(protocol.BulkOperations)
	k.insertion = in
	if s.stmt.Kind == statement.Multi { // the next one is read into the same memory
		k.insertion = in.Clone()
	}
	if len(key.Columns) > 0 && !in.Complete(len(key.Columns)) {
		k.listed = true // they are not of these columns, which are named so that the server says so for certain
		return true, nil
	}
	if err := s.decideRows(c, k, prepared); err != nil {
		return false, err
	}
	if len(k.filled) == 0 && len(k.explicit) == 0 && !k.params {
		return false, nil
	}
	if (in.Ignore || in.OnDuplicate) && k.rows == 1 && len(k.filled) == 1 && k.filled[0].filling != statement.FillIfEmpty &&
		s.stmt.Kind != statement.Multi && !k.bulk {
		// The row may not be inserted, and of a column with AUTO_INCREMENT the server tells
		// whether it was: then alone the number is to be LAST_INSERT_ID().
		if k.plain, err = s.hasAuto(c, sql, t, b); err != nil {
			return false, err
		}
		k.before = k.before || k.plain
	}
	return true, nil
}

// decideRows decides what becomes of each row of the INSERT just read.
func (s *session) decideRows(c *backend.Conn, k *filledKey, prepared bool) error {
	in, key := k.insertion, &k.key
	if len(in.Rows) > 1 && !prepared || in.MayBeZero() {
		modes, err := s.insertModes(c, s.stmt.Words)
		if err != nil {
			return err
		}
		key.ZeroStays, key.TextIsZero, k.step = modes.ZeroStays, !modes.Strict || in.Ignore, modes.Increment
	}
	k.leader = -1
	expressions := false
	for i := range in.Rows {
		v := &in.Rows[i].Value
		if v.Kind == statement.ValueMissing {
			k.added = true
		}
		filling := in.Filling(i, key)
		switch {
		case v.Kind == statement.ValueOpaque:
			if s.certain(v) {
				continue // a number that the proxy gives itself
			}
			return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported where it may be NULL or 0 and would be evaluated twice: "+
				"give a number, NULL, or leave the column out", k.binding.Table, k.binding.Column, k.binding.Sequence)
		case filling == statement.FillNot:
			if v.Kind == statement.ValueNumber {
				k.explicit = append(k.explicit, v.Number)
			}
			continue
		case filling == statement.FillNumber && k.leader < 0:
			k.leader = len(k.filled)
		case filling == statement.FillParam && !prepared:
			k.params = true
			continue // the server's error, unless the text is inside another
		case filling == statement.FillParam:
			k.params = true
		case filling == statement.FillIfEmpty:
			expressions = true
		}
		k.filled = append(k.filled, filledRow{i, filling})
	}
	if expressions && prepared && (k.bulk || k.params) {
		return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported in a prepared statement: give a number or NULL",
			k.binding.Table, k.binding.Column, k.binding.Sequence)
	}
	k.leader = max(k.leader, 0)
	// A key that is added stands last, and is evaluated last.
	k.before = len(in.Rows) == 1 && (k.added || key.Index == len(in.Columns)-1) && !in.OnDuplicate && !in.Returning
	k.listed = k.added || len(in.Columns) == 0
	return nil
}

// certain says whether an expression is nothing but a NEXTVAL, which is never empty.
func (s *session) certain(v *statement.InsertValue) bool {
	call := s.stmt.CallAt(v.Start, v.End)
	return call != nil && call.Func == statement.Nextval
}
