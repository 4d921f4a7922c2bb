package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Columns is what a server says about a table.
type Columns struct {
	Answered Answer   // No: the server did not say
	Now      bool     // the server was asked just now
	Names    [][]byte // the visible columns in order: what an INSERT without a list means
	More     [][]byte // the invisible ones, which a list may name
	Auto     string   // the one with AUTO_INCREMENT, if there is one
	Cached   bool     // the columns come from the cache

	Temporary bool // the session may have made a temporary table, perhaps this one
}

// filling is a text being planned that may give bound columns no numbers.
type filling struct {
	planning
	fill *Filling
	in   *statement.Insertion
}

// Fill plans what has to be filled into a text; nil: nothing. st is its analysis, and s the
// session's state. It changes neither.
func (p *Planner) Fill(st *statement.Statement, sql []byte, s *state.State) (*Filling, Verdict) {
	p.needs, p.asked = p.needs[:0], 0
	if p.insertion == nil {
		p.insertion = new(statement.Insertion)
	}
	t := filling{planning{p, &p.Action, st, sql, s, &p.Facts}, p.newFilling(), p.insertion}
	t.fill.begin(st)
	t.in.ReadInserts(sql, s.Mode)
	for i := range st.Tables {
		v := t.table(i)
		switch {
		case len(t.needs) > 0: // an earlier table may be refused first
			continue
		case v.Kind != Go:
			return nil, v
		case t.fill.Query != nil: // it is the only statement
			return t.fill, v
		}
	}
	switch {
	case len(t.needs) > 0:
		return nil, Verdict{Kind: Asks, Needs: p.needs}
	case len(t.fill.Keys) == 0:
		return nil, Verdict{}
	}
	for i := range st.Tables {
		t.fill.ColumnsCached = t.fill.ColumnsCached || i < len(p.Facts.Tables) && p.Facts.Tables[i].Cached
	}
	return t.fill, Verdict{}
}

// newFilling returns the Filling of the next text. Texts that are not prepared share one.
func (p *Planner) newFilling() *Filling {
	if p.Facts.At == AtPrepare {
		return new(Filling)
	}
	if p.spare == nil {
		p.spare = new(Filling)
	}
	return p.spare
}

// table plans what becomes of the rows of table i of the text.
func (t *filling) table(i int) Verdict {
	table := &t.st.Tables[i]
	b, v := t.bound(table)
	if b == nil || v.Kind != Go {
		return v
	}
	switch table.Kind {
	case statement.Insert, statement.Replace:
	case statement.Load:
		return t.load(i, b)
	default:
		return notSupported("INSERT into %s, whose column %s is filled from sequence %s, as a part of another statement is not supported: send it alone; in place of CREATE TABLE ... SELECT create the table first",
			b.Table, b.Column, b.Sequence)
	}
	k := t.fill.addKey()
	k.Binding, k.Statement, k.Table = b, table.Statement, t.sql[table.Start:table.End]
	fills, v := t.key(i, k)
	if !fills || v.Kind != Go {
		t.fill.Keys = t.fill.Keys[:len(t.fill.Keys)-1]
	}
	return v
}

// Bound returns what is bound in a table of the text that st is the analysis of, or nil.
func (p *Planner) Bound(table *statement.TableRef, st *statement.Statement, s *state.State) (*Binding, Verdict) {
	p.needs, p.asked = p.needs[:0], 0
	t := planning{p, &p.Action, st, nil, s, &p.Facts}
	b, v := t.bound(table)
	if len(p.needs) > 0 {
		return nil, Verdict{Kind: Asks, Needs: p.needs}
	}
	return b, v
}

// bound returns what is bound in a table, or nil.
func (t *planning) bound(table *statement.TableRef) (*Binding, Verdict) {
	if t.f.Bound == nil || table.Kind == statement.Update {
		return nil, Verdict{}
	}
	name, is := t.text(table.Name)
	switch is {
	case Unasked:
		return nil, Verdict{}
	case No:
		// MySQL reads some invalid names as others.
		return nil, refuse(Refusal{Why: Unread})
	}
	list := t.f.Bound.Named(name)
	if len(list) == 0 {
		return nil, Verdict{}
	}
	bySchema := slices.ContainsFunc(list, func(b Binding) bool { return b.Schema != "" })
	schema := t.s.Schema
	switch {
	case table.Schema != nil:
		in, is := t.text(table.Schema)
		if is == No {
			return nil, refuse(Refusal{Why: Unread})
		}
		schema = string(in)
	case bySchema && t.s.SchemaUnknown:
		t.askOnce(Need{What: NeedDatabase})
	case bySchema && table.Statement > 0 && t.st.Schema != nil:
		return nil, notSupported("INSERT into %s behind a USE in one text, with a column that is filled from a sequence in one schema and not in others: "+
			"write the schema in front of the name", name)
	}
	return BindingOf(list, schema, string(name), t.f.Folds), Verdict{}
}

// askOnce is ask for what is the same for all of the text.
func (t *planning) askOnce(n Need) {
	if t.asked&(1<<n.What) == 0 {
		t.asked |= 1 << n.What
		t.ask(n)
	}
}

// same returns a function that reports whether a name in the text is that of a column.
func (t *planning) same(column string) func(name []byte) bool {
	return func(name []byte) bool {
		is := SameColumn(column, name, t.f.Charset)
		if is == Unasked {
			in, text := t.text(name)
			return text == Yes && strings.EqualFold(string(in), column)
		}
		return is == Yes
	}
}

// load refuses a LOAD into table i without the bound column: the numbers would be the server's.
// With it the file has them. Without a list the file has the visible columns.
func (t *filling) load(i int, b *Binding) Verdict {
	same := t.same(b.Column)
	gives := t.in.ReadLoad(&t.st.Tables[i]) && t.in.LoadGives(same)
	if gives && t.in.LoadsAll {
		if v := t.refuseChanged(i, b); v.Kind != Go {
			return v
		}
		of := t.columns(i, NeedColumnsNow) // an account that sees fewer columns may have asked before
		if of == nil {
			return Verdict{}
		}
		gives = !ContainsName(of.More, same)
	}
	if gives {
		return Verdict{}
	}
	return notSupported("LOAD DATA or LOAD XML into %s without values for its column %s, which is filled from sequence %s, is not supported: take as many numbers with SELECT NEXTVAL('%s', n), "+
		"and SET %s from them, or load into another table and INSERT ... SELECT from that", b.Table, b.Column, b.Sequence, b.Sequence, b.Column)
}

// unreadable refuses an INSERT into a bound table that is not understood. The server's own error
// comes first: if there is one, it answers the PREPARE of the text.
func (t *filling) unreadable(b *Binding) Verdict {
	v := notSupported("this form of INSERT into %s, whose column %s is filled from sequence %s, is not supported: write INSERT ... VALUES or SET",
		b.Table, b.Column, b.Sequence)
	v.Refusal.ServerFirst = t.st.Kind != statement.Multi
	return v
}

// key reads the INSERT into table i and decides what becomes of its key k, or of its query. fills
// is false if nothing does.
func (t *filling) key(i int, k *FilledKey) (fills bool, _ Verdict) {
	in, b, key, table := t.in, k.Binding, &k.Key, &t.st.Tables[i]
	if !Writable(b.Column, t.f.Charset) {
		return false, notSupported("the bound column %s in this character set is not supported: SET NAMES utf8mb4", b.Column)
	}
	if !in.Read(table) {
		return false, t.unreadable(b)
	}
	key.Column, key.Index = append(key.Column, b.Column...), in.Column(t.same(b.Column))
	if in.NeedsColumns() {
		if v := t.refuseChanged(i, b); v.Kind != Go {
			return false, v
		}
	}
	if in.Source == statement.InsertQuery {
		return false, t.query(i, b, key)
	}
	if in.NeedsColumns() {
		of := t.columns(i, NeedColumns)
		if of == nil {
			return false, Verdict{}
		}
		if v := t.keyAmong(of, b, key); v.Kind != Go {
			return false, v
		}
		if key.Index < 0 {
			if !of.Now { // an account that sees fewer columns may have asked
				t.ask(Need{What: NeedColumnsNow, At: i})
			}
			return false, Verdict{} // the server's own: it is no column that the text could mean
		}
	}
	return t.rowsOf(i, k)
}

// refuseChanged refuses rows of table i without a list of columns behind a statement that may
// change the columns: the proxy reads them before the text runs.
func (t *filling) refuseChanged(i int, b *Binding) Verdict {
	table := &t.st.Tables[i]
	words := t.st.WordsBefore(table.Statement)
	if words&statement.ChangesTable != 0 || words&statement.UsesSchema != 0 && table.Schema == nil {
		return notSupported("rows for %s, whose column %s is filled from sequence %s, without a list of columns are not supported behind CREATE, ALTER, DROP, RENAME or USE in one text: "+
			"name the columns, or send them alone", b.Table, b.Column, b.Sequence)
	}
	return Verdict{}
}

// columns returns those of table i, or nil if the server has to be asked for them.
func (t *filling) columns(i int, what What) *Columns {
	if i < len(t.f.Tables) {
		if of := &t.f.Tables[i]; of.Now || what != NeedColumnsNow && of.Answered == Yes || what >= NeedAuto && of.Answered == No {
			return of
		}
	}
	t.ask(Need{What: what, At: i})
	return nil
}

// keyAmong completes key with the columns of a table. Index is -1 if the bound one is not among
// them.
func (t *planning) keyAmong(of *Columns, b *Binding, key *statement.Key) Verdict {
	same := t.same(b.Column)
	key.Index = -1
	for i, name := range of.Names {
		if same(name) {
			key.Index = i
		}
		if !ASCII(name) && (!UTF8Charset(t.f.Charset) || !utf8.Valid(name)) {
			return notSupported("INSERT into %s without a list of columns, one of which is not ASCII, is not supported in this character set: name the columns", b.Table)
		}
	}
	if key.Index < 0 && ContainsName(of.More, same) {
		return notSupported("INSERT into %s without a list of columns, whose column %s is invisible and filled from sequence %s, is not supported: name the columns",
			b.Table, b.Column, b.Sequence)
	}
	key.Columns = of.Names
	if key.Index < 0 && of.Now {
		return b.Renamed(of)
	}
	return Verdict{}
}

// rowsOf is key for an INSERT whose rows stand in the text.
func (t *filling) rowsOf(i int, k *FilledKey) (fills bool, _ Verdict) {
	in, b, key := t.in, k.Binding, &k.Key
	take := func(v *statement.InsertValue) bool {
		if v.Kind == statement.ValueNumber && !b.Texts {
			k.Explicit = append(k.Explicit, v.Number)
		}
		return v.Kind == statement.ValueNumber || v.Kind == statement.ValueExplicit || b.Texts && v.Literal
	}
	if !in.ReadRows(key.Index, take) {
		return false, t.unreadable(b)
	}
	if !b.Texts && in.Returning && t.st.Words&statement.ReadsLastInsertID != 0 {
		return false, notSupported("INSERT ... RETURNING with LAST_INSERT_ID() into %s, whose column %s is filled from sequence %s, is not supported: return the column itself",
			b.Table, b.Column, b.Sequence)
	}
	k.Step, k.Rows, k.Bulk, k.Updates = 1, in.Count, t.f.At == AtPrepare && t.f.Bulk, in.OnDuplicate
	k.Insertion = in
	if t.st.Kind == statement.Multi { // the next one is read into the same memory
		k.Insertion = in.Clone()
	}
	if len(key.Columns) > 0 && !in.Complete(len(key.Columns)) {
		// A row has another number of values. With the columns named the server surely refuses it.
		k.Listed, k.Explicit = true, k.Explicit[:0]
		return true, Verdict{}
	}
	if v := t.decideRows(k); v.Kind != Go || len(t.needs) > 0 {
		return false, v
	}
	if len(k.Filled) == 0 && len(k.Explicit) == 0 && !k.Params {
		return false, Verdict{}
	}
	if !k.Binding.Texts && (in.Ignore || in.OnDuplicate) && !in.Returning && k.Rows == 1 && len(k.Filled) == 1 && k.Filled[0].Filling != statement.FillIfEmpty &&
		t.st.Kind != statement.Multi {
		// The row may not be inserted. Only if it is, the number becomes LAST_INSERT_ID(). With
		// AUTO_INCREMENT the server reports that in its OK, which RETURNING has not.
		auto, known := t.numbers(i, NeedAuto, b)
		if !known {
			return false, Verdict{}
		}
		k.Plain = auto
		k.Before = k.Before || k.Plain && !k.Bulk
	}
	if !k.Binding.Texts && k.Rows > 1 && len(k.Filled) > 0 && !in.Returning && t.st.Kind != statement.Multi {
		auto, known := t.numbers(i, NeedAutoOnce, b)
		if !known {
			return false, Verdict{}
		}
		k.Auto = auto
	}
	return true, Verdict{}
}

// numbers reports whether the bound column of table i surely has AUTO_INCREMENT. If that is not
// known, the server has to be asked for what.
func (t *filling) numbers(i int, what What, b *Binding) (auto, known bool) {
	of := t.columns(i, what)
	if of == nil {
		return false, false
	}
	return of.Answered == Yes && strings.EqualFold(of.Auto, b.Column), true
}

// decideRows decides what becomes of each row of the INSERT just read, but for those with keys of
// their own.
func (t *filling) decideRows(k *FilledKey) Verdict {
	in, key, prepared := k.Insertion, &k.Key, t.f.At == AtPrepare
	if k.Binding.Texts { // none of these means that there is no key; only NULL does
		key.ZeroStays = true
	} else if len(in.Rows) > 1 && !prepared || in.MayBeZero() {
		modes, is, v := t.modes()
		if !is {
			return v
		}
		key.ZeroStays, key.TextIsZero, k.Step = modes.ZeroStays, modes.TextIsZero(in.Ignore), modes.Increment
		if modes.EmptyIsNull && slices.ContainsFunc(in.Rows, func(r statement.InsertRow) bool { return r.Value.Kind == statement.ValueText }) {
			return notSupported("%s", MayBeNull(k.Binding))
		}
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
			if t.certain(v) {
				continue // a number that the proxy gives itself
			}
			if k.Binding.Texts {
				expressions = true
				break
			}
			return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported where it may be NULL or 0 and would be evaluated twice: "+
				"give a number, NULL, or leave the column out", k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
		case filling == statement.FillNot:
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
		k.Filled = append(k.Filled, FilledRow{i, filling})
	}
	if !k.Binding.Texts && expressions && prepared && (k.Bulk || k.Params) {
		return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported in a prepared statement: give a number or NULL",
			k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
	}
	if !k.Binding.Texts && (in.MayBeZero() && t.st.WordsBefore(k.Statement)&statement.MaySetMode != 0 || len(k.Filled) > 1 && t.st.WordsBefore(k.Statement)&statement.MaySetStep != 0) {
		return setInText(k.Binding)
	}
	k.Leader = max(k.Leader, 0)
	// A key that is added stands last, and is evaluated last.
	k.Before = k.Rows == 1 && !k.Bulk && (k.Added || key.Index == len(in.Columns)-1) && !in.OnDuplicate && !in.Returning
	k.Listed = k.Added || len(in.Columns) == 0
	return Verdict{}
}

// certain reports whether an expression is nothing but a NEXTVAL, which is never empty. In a list
// of SELECT the name of NEXT VALUE FOR name may have been taken for an alias.
func (t *filling) certain(v *statement.InsertValue) bool {
	call := t.st.CallFrom(v.Start)
	return call != nil && call.Func == statement.Nextval && call.End >= v.End
}

// MayBeNull is why a text as the key is refused where the empty one means NULL.
func MayBeNull(b *Binding) string {
	return fmt.Sprintf("a text that is no number for %s.%s, which is filled from sequence %s, in the sql_mode EMPTY_STRING_IS_NULL is not supported: give NULL or a number",
		b.Table, b.Column, b.Sequence)
}
