package proxy

import (
	"encoding/binary"
	"slices"
	"sort"
	"strconv"

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
	key       *statement.Key
}

// filledRow is a row whose key is given a number.
type filledRow struct {
	row     int // index in Insertion.Rows
	filling statement.Filling
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

// boundTables reports whether the text just analysed has an INSERT or REPLACE into a
// table with a bound column, as far as the name tells, or that is not known yet.
func (s *session) boundTables() bool {
	if s.srv.opts.Shards.Default() == nil {
		return false
	}
	var bound *bindings
	for i := range s.stmt.Tables {
		t := &s.stmt.Tables[i]
		if t.Kind == statement.Update {
			continue
		}
		if bound == nil {
			if s.srv.awaitOwners() != nil {
				return true // planFilling tells the client
			}
			if bound = s.srv.bound(); bound == nil {
				return false
			}
		}
		if len(bound.named(t.Name)) > 0 || !ascii(t.Name) {
			return true
		}
	}
	return false
}

// binding returns what is bound in a table of the current shard, or nil.
func (s *session) binding(c *backend.Conn, t *statement.TableRef) (*Binding, error) {
	b := s.srv.bound()
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
	if t.Schema == nil && t.Statement > 0 && s.stmt.Schema != nil && slices.ContainsFunc(list, func(b Binding) bool { return b.Schema != "" }) {
		return nil, notSupported("INSERT into %s behind a USE in one text, with a column that is filled from a sequence in one schema and not in others: "+
			"write the schema in front of the name", name)
	}
	if t.Schema != nil {
		in, err := s.nameInUTF8(t.Schema, s.state.charset)
		if err != nil {
			return nil, nil
		}
		schema = string(in)
	}
	return bindingOf(list, schema, string(name), c.Hello().FoldsTables), nil
}

// boundLong refuses a text too long to be analysed that begins with an INSERT into a
// table with a bound column. sql is its beginning.
func (s *session) boundLong(sql []byte) error {
	t, ok := statement.BeginsInsert(sql, s.state.mode)
	if !ok || s.srv.opts.Shards.Default() == nil {
		return nil
	}
	if err := s.srv.awaitOwners(); err != nil {
		return err
	}
	bound := s.srv.bound()
	if bound == nil || len(bound.named(t.Name)) == 0 && ascii(t.Name) {
		return nil
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	b, err := s.binding(c, &t)
	if err != nil || b == nil {
		return err
	}
	return notSupported("an INSERT into %s, whose column %s is filled from sequence %s, that is longer than max_statement = %d bytes, or 16 MB: send fewer rows at once",
		b.Table, b.Column, b.Sequence, s.srv.opts.MaxStatement)
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

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
func (s *session) planFilling(sql []byte, prepared bool) (*filling, error) {
	if err := s.srv.awaitOwners(); err != nil {
		return nil, err
	}
	c, err := s.attach()
	if err != nil {
		return nil, err
	}
	st := &s.stmt
	f := &filling{words: st.Words, several: st.Kind == statement.Multi}
	s.columnsCached = false
	if s.insertion == nil {
		s.insertion = new(statement.Insertion)
	}
	in := s.insertion
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
		k, query, err := s.planKey(c, sql, t, b, prepared)
		if err != nil {
			return nil, err
		}
		if query != nil {
			return &filling{query: query}, nil // it is the only statement
		}
		if k != nil {
			f.keys = append(f.keys, *k)
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
	if read && (len(in.Columns) == 0 || in.Column(s.sameColumn(b.Column)) >= 0) {
		return nil
	}
	return notSupported("LOAD DATA into %s without its column %s, which is filled from sequence %s, is not supported: take as many numbers with SELECT NEXTVAL('%s', n), "+
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

// planKey reads one INSERT and decides what becomes of its key, or of its query; nil is
// nothing.
func (s *session) planKey(c *backend.Conn, sql []byte, t *statement.TableRef, b *Binding, prepared bool) (*filledKey, *filledQuery, error) {
	in := s.insertion
	column, ok := s.inCharset(b.Column)
	if !ok {
		return nil, nil, notSupported("the bound column %s in this character set is not supported: SET NAMES utf8mb4", b.Column)
	}
	if !in.Read(t) {
		return nil, nil, s.unreadable(c, sql, b)
	}
	key := statement.Key{Column: column, Index: in.Column(s.sameColumn(b.Column))}
	if in.Source == statement.InsertQuery {
		q, err := s.planQuery(c, sql, t, b, &key)
		return nil, q, err
	}
	if in.NeedsColumns() {
		if err := s.tableColumns(c, sql, t, b, &key); err != nil {
			return nil, nil, err
		}
		if key.Index < 0 {
			return nil, nil, nil // the server's own: it is no column that the text could mean
		}
	}
	k, err := s.planRowsOf(c, sql, t, b, key, prepared)
	return k, nil, err
}

// planRowsOf is planKey for an INSERT whose rows stand in the text.
func (s *session) planRowsOf(c *backend.Conn, sql []byte, t *statement.TableRef, b *Binding, key statement.Key, prepared bool) (*filledKey, error) {
	in := s.insertion
	if !in.ReadRows(key.Index) {
		return nil, s.unreadable(c, sql, b)
	}
	if in.Returning && s.stmt.Words&statement.ReadsLastInsertID != 0 {
		return nil, notSupported("INSERT ... RETURNING with LAST_INSERT_ID() into %s, whose column %s is filled from sequence %s, is not supported: return the column itself",
			b.Table, b.Column, b.Sequence)
	}
	k := &filledKey{binding: b, statement: t.Statement, step: 1, rows: len(in.Rows), bulk: prepared && s.login.Capabilities.Has(protocol.BulkOperations)}
	k.insertion, k.key = in, &key
	if s.stmt.Kind == statement.Multi { // the next one is read into the same memory
		k.insertion = in.Clone()
	}
	if len(key.Columns) > 0 && !in.Complete(len(key.Columns)) {
		k.listed = true // they are not of these columns, which are named so that the server says so for certain
		return k, nil
	}
	err := s.decideRows(c, k, prepared)
	if err != nil {
		return nil, err
	}
	if len(k.filled) == 0 && len(k.explicit) == 0 {
		return nil, nil
	}
	if (in.Ignore || in.OnDuplicate) && k.rows == 1 && len(k.filled) == 1 && k.filled[0].filling != statement.FillIfEmpty &&
		s.stmt.Kind != statement.Multi && !k.bulk {
		// The row may not be inserted, and of a column with AUTO_INCREMENT the server tells
		// whether it was: then alone the number is to be LAST_INSERT_ID().
		if k.plain, err = s.hasAuto(c, sql, t, b); err != nil {
			return nil, err
		}
		k.before = k.before || k.plain
	}
	return k, nil
}

// decideRows decides what becomes of each row of the INSERT just read.
func (s *session) decideRows(c *backend.Conn, k *filledKey, prepared bool) error {
	in, key := k.insertion, k.key
	if len(in.Rows) > 1 && !prepared || in.MayBeZero() {
		modes, err := s.insertModes(c, s.stmt.Words)
		if err != nil {
			return err
		}
		key.ZeroStays, key.TextIsZero, k.step = modes.zeroStays, !modes.strict || in.Ignore, modes.increment
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
			continue // the server's error
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

// appendSplices appends what writes the numbers from first on into the INSERT.
func (k *filledKey) appendSplices(dst []statement.Splice, first uint64) []statement.Splice {
	in, key := k.insertion, k.key
	if k.listed {
		dst = in.AppendList(dst, key)
	}
	dst = slices.Grow(dst, len(k.filled)+2)
	const number, leader = len("18446744073709551615"), len("LAST_INSERT_ID()")
	text := make([]byte, 0, len(k.filled)*number+leader) // of all numbers, in one piece of memory
	for j, r := range k.filled {
		from := len(text)
		switch {
		case r.filling == statement.FillIfEmpty && j == k.leader:
			text = append(text, "CAST("...)
			text = statement.AppendLastInsertID(text, first)
			text = append(text, " AS CHAR)"...)
		case r.filling == statement.FillIfEmpty:
			text = append(text, '\'')
			text = strconv.AppendUint(text, first, 10)
			text = append(text, '\'')
		case j == k.leader && !k.plain:
			text = statement.AppendLastInsertID(text, first)
		default:
			text = strconv.AppendUint(text, first, 10)
		}
		value := text[from:len(text):len(text)]
		if r.filling == statement.FillIfEmpty {
			dst = in.AppendIfEmpty(dst, r.row, key, value)
		} else {
			dst = in.AppendNumber(dst, r.row, key, value)
		}
		first += k.step
	}
	if k.added {
		dst = in.AppendAlias(dst)
	}
	return dst
}

// certain says whether an expression is nothing but a NEXTVAL, which is never empty.
func (s *session) certain(v *statement.InsertValue) bool {
	call := s.stmt.CallAt(v.Start, v.End)
	return call != nil && call.Func == statement.Nextval
}

// takeKeys takes the numbers of a text's keys and writes f.splices.
func (s *session) takeKeys(f *filling) error {
	if f == nil {
		return nil
	}
	f.splices = f.splices[:0]
	for i := range f.keys {
		k := &f.keys[i]
		var err error
		if k.first, err = s.takeKey(k.binding, k.explicit, len(k.filled), k.step); err != nil {
			return err
		}
		f.splices = k.appendSplices(f.splices, k.first)
	}
	return nil
}

// takeKey takes count numbers, step apart, and returns the first; 0 of none. Those that
// the statement gives itself are taken out of what is handed out.
func (s *session) takeKey(b *Binding, explicit []uint64, count int, step uint64) (first uint64, err error) {
	name := []byte(b.Sequence)
	if len(explicit) > 0 {
		if err := s.patience.over(s.srv.opts.Sequences.Avoid(&s.patience, name, explicit)); err != nil {
			return 0, err
		}
	}
	if count == 0 {
		return 0, nil
	}
	if err := s.mayUse(name); err != nil {
		return 0, err
	}
	if count == 1 {
		return s.takeNumbers(name, 1)
	}
	apart, err := s.srv.opts.Sequences.Step(&s.patience, name)
	if err = s.patience.over(err); err != nil {
		return 0, err
	}
	for again := true; ; again = false {
		if step%apart != 0 {
			return 0, errApart(b, apart, step)
		}
		first, got, err := s.takeRun(name, 1+uint64(count-1)*(step/apart))
		switch {
		case err != nil || got == apart:
			return first, err
		case !again:
			return 0, notSupported("an INSERT into %s while the INCREMENT of sequence %s changes, from which its column %s is filled, is not supported: repeat it",
				b.Table, b.Sequence, b.Column)
		}
		apart = got // it was changed meanwhile, perhaps by another proxy; those numbers are a gap
	}
}

// errApart refuses rows whose numbers cannot be step apart.
func errApart(b *Binding, apart, step uint64) error {
	return notSupported("several rows into %s, whose column %s is filled from sequence %s with INCREMENT BY %d, are not supported "+
		"with auto_increment_increment = %d, by which drivers tell the keys of the other rows: set that to a multiple of the INCREMENT",
		b.Table, b.Column, b.Sequence, apart, step)
}
