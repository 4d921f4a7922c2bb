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
	p.needs = p.needs[:0]
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

// newFilling returns the Filling of the next text. That of a text that is not prepared is used
// for the one behind it, too.
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
		return notSupported("INSERT into %s, whose column %s is filled from sequence %s, as a part of another statement is not supported: send it alone",
			b.Table, b.Column, b.Sequence)
	}
	k := t.fill.addKey()
	k.Binding, k.Statement = b, table.Statement
	fills, v := t.key(i, k)
	if !fills || v.Kind != Go {
		t.fill.Keys = t.fill.Keys[:len(t.fill.Keys)-1]
	}
	return v
}

// Bound returns what is bound in a table of the text that st is the analysis of, or nil.
func (p *Planner) Bound(table *statement.TableRef, st *statement.Statement, s *state.State) (*Binding, Verdict) {
	p.needs = p.needs[:0]
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
		// MySQL takes some names that are no text for others
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
	if !slices.ContainsFunc(t.needs, func(other Need) bool { return other.What == n.What }) {
		t.ask(n)
	}
}

// SameColumn reports whether a name in a text is that of a column.
func SameColumn(column string, name []byte, charset string) Answer {
	if ASCII([]byte(column)) {
		return AnswerOf(len(name) == len(column) && strings.EqualFold(string(name), column))
	}
	in, is := UTF8(name, charset)
	if is == Unasked {
		return Unasked
	}
	return AnswerOf(is == Yes && strings.EqualFold(string(in), column))
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
		"and SET %s from them", b.Table, b.Column, b.Sequence, b.Sequence, b.Column)
}

// unreadable refuses a text into a bound table that is not understood. The server's own error comes
// first if there is one, which it says when it is to prepare the text.
func (t *filling) unreadable(b *Binding) Verdict {
	v := notSupported("this form of INSERT into %s, whose column %s is filled from sequence %s, is not supported: write INSERT ... VALUES or SET",
		b.Table, b.Column, b.Sequence)
	v.Refusal.ServerFirst = t.st.Kind != statement.Multi
	return v
}

// Writable reports whether a name, in UTF-8, can stand in a text of a character set as it is. Where
// that takes a conversion it is false.
func Writable(name, charset string) bool {
	return UTF8Charset(charset) && utf8.ValidString(name) || ASCII([]byte(name))
}

// UTF8Charset reports whether texts in a character set of MySQL's are UTF-8.
func UTF8Charset(name string) bool {
	switch name {
	case "utf8mb4", "utf8mb3", "utf8":
		return true
	}
	return false
}

// key reads the INSERT into table i and decides what becomes of its key k, or of its query. fills is
// false if nothing does.
func (t *filling) key(i int, k *FilledKey) (fills bool, _ Verdict) {
	in, b, key, table := t.in, k.Binding, &k.Key, &t.st.Tables[i]
	if !Writable(b.Column, t.f.Charset) {
		return false, notSupported("the bound column %s in this character set is not supported: SET NAMES utf8mb4", b.Column)
	}
	if !in.Read(table) {
		return false, t.unreadable(b)
	}
	key.Column, key.Index = append(key.Column, b.Column...), in.Column(t.same(b.Column))
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

// columns returns those of table i, or nil if the server has to be asked for them.
func (t *filling) columns(i int, what What) *Columns {
	if i < len(t.f.Tables) {
		if of := &t.f.Tables[i]; of.Now || what != NeedColumnsNow && of.Answered == Yes || what == NeedAuto && of.Answered == No {
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
	return Verdict{}
}

// rowsOf is key for an INSERT whose rows stand in the text.
func (t *filling) rowsOf(i int, k *FilledKey) (fills bool, _ Verdict) {
	in, b, key := t.in, k.Binding, &k.Key
	if !in.ReadRows(key.Index) {
		return false, t.unreadable(b)
	}
	if !b.Texts && in.Returning && t.st.Words&statement.ReadsLastInsertID != 0 {
		return false, notSupported("INSERT ... RETURNING with LAST_INSERT_ID() into %s, whose column %s is filled from sequence %s, is not supported: return the column itself",
			b.Table, b.Column, b.Sequence)
	}
	k.Step, k.Rows, k.Bulk = 1, len(in.Rows), t.f.At == AtPrepare && t.f.Bulk
	k.Insertion = in
	if t.st.Kind == statement.Multi { // the next one is read into the same memory
		k.Insertion = in.Clone()
	}
	if len(key.Columns) > 0 && !in.Complete(len(key.Columns)) {
		// they are not of these columns, which are named so that the server says so for certain
		k.Listed = true
		return true, Verdict{}
	}
	if v := t.decideRows(k); v.Kind != Go || len(t.needs) > 0 {
		return false, v
	}
	if len(k.Filled) == 0 && len(k.Explicit) == 0 && !k.Params {
		return false, Verdict{}
	}
	if !k.Binding.Texts && (in.Ignore || in.OnDuplicate) && k.Rows == 1 && len(k.Filled) == 1 && k.Filled[0].Filling != statement.FillIfEmpty &&
		t.st.Kind != statement.Multi && !k.Bulk {
		// The row may not be inserted. Only if it is, the number becomes LAST_INSERT_ID(). With
		// AUTO_INCREMENT the server reports that.
		of := t.columns(i, NeedAuto)
		if of == nil {
			return false, Verdict{}
		}
		k.Plain = of.Answered == Yes && strings.EqualFold(of.Auto, b.Column)
		k.Before = k.Before || k.Plain
	}
	return true, Verdict{}
}

// Modes returns what the server does with keys in the session. Unasked says that it has to be
// asked, and No that this would change what a statement with these words reads.
func Modes(s *state.State, conn state.ConnID, words statement.Words) (state.InsertModes, Answer) {
	switch {
	case s.Inserts.Conn == conn && s.Inserts.Version == max(s.Sysvars["auto_increment_increment"], s.Sysvars["sql_mode"]):
		return s.Inserts, Yes
	case words&statement.ReadsCounts != 0:
		return s.Inserts, No
	}
	return s.Inserts, Unasked
}

// ReadsLast: to ask the server would change what the statement reads.
const ReadsLast = "an INSERT into a table with a bound column that reads what the last statement left (ROW_COUNT(), FOUND_ROWS(), warnings) " +
	"is not supported: keep that in a variable first"

// modes is Modes for the text; is says that they are known.
func (t *filling) modes() (m state.InsertModes, is bool, _ Verdict) {
	m, answer := Modes(t.s, t.f.Conn, t.st.Words)
	switch answer {
	case Unasked:
		t.askOnce(Need{What: NeedModes})
	case No:
		return m, false, notSupported("%s", ReadsLast)
	}
	return m, answer == Yes, Verdict{}
}

// setBefore reports whether a statement before the one at index may set a variable: the server has
// another value when it runs that than it has now.
func (t *filling) setBefore(index int, name string) bool {
	for _, part := range t.st.Parts[:min(index, len(t.st.Parts))] {
		switch part.Kind {
		case statement.Execute, statement.ExecuteImmediate, statement.Other:
			return true
		}
		for _, a := range t.st.Assignments[part.From:part.To] {
			if a.Target == statement.SessionVariable && string(a.Name) == name || a.Target == statement.TargetUnknown {
				return true
			}
		}
	}
	return false
}

// setInText refuses an INSERT whose key depends on what the same text sets before.
func setInText(b *Binding) Verdict {
	return notSupported("INSERT into %s, whose column %s is filled from sequence %s, with 0 or several rows behind a SET of sql_mode or auto_increment_increment "+
		"in one text is not supported: send the SET alone", b.Table, b.Column, b.Sequence)
}

// decideRows decides what becomes of each row of the INSERT just read.
func (t *filling) decideRows(k *FilledKey) Verdict {
	in, key, prepared := k.Insertion, &k.Key, t.f.At == AtPrepare
	if k.Binding.Texts { // none of these means that there is no key; only NULL does
		key.ZeroStays = true
	} else if len(in.Rows) > 1 && !prepared || in.MayBeZero() {
		modes, is, v := t.modes()
		if !is {
			return v
		}
		key.ZeroStays, key.TextIsZero, k.Step = modes.ZeroStays, !modes.Strict || in.Ignore, modes.Increment
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
		if k.Binding.Texts && v.Literal {
			continue
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
			if v.Kind == statement.ValueNumber && !k.Binding.Texts {
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
		k.Filled = append(k.Filled, FilledRow{i, filling})
	}
	if !k.Binding.Texts && expressions && prepared && (k.Bulk || k.Params) {
		return notSupported("an expression for %s.%s, which is filled from sequence %s, is not supported in a prepared statement: give a number or NULL",
			k.Binding.Table, k.Binding.Column, k.Binding.Sequence)
	}
	if !k.Binding.Texts && (in.MayBeZero() && t.setBefore(k.Statement, "sql_mode") || len(k.Filled) > 1 && t.setBefore(k.Statement, state.StepVariable)) {
		return setInText(k.Binding)
	}
	k.Leader = max(k.Leader, 0)
	// A key that is added stands last, and is evaluated last.
	k.Before = len(in.Rows) == 1 && !k.Bulk && (k.Added || key.Index == len(in.Columns)-1) && !in.OnDuplicate && !in.Returning
	k.Listed = k.Added || len(in.Columns) == 0
	return Verdict{}
}

// certain reports whether an expression is nothing but a NEXTVAL, which is never empty.
func (t *filling) certain(v *statement.InsertValue) bool {
	call := t.st.CallAt(v.Start, v.End)
	return call != nil && call.Func == statement.Nextval
}

// An INSERT ... SELECT that leaves a bound column out, or gives it a literal that is no
// number, is handled as the text that has NEXTVAL there: see Counts for what the server
// makes of that.

// query reads the query of the INSERT that was begun to be read. Nothing is filled in if
// it gives the key values of its own, or the table has no such column.
func (t *filling) query(i int, b *Binding, key *statement.Key) Verdict {
	in := t.in
	q := in.ReadSelect()
	missing := key.Index < 0 && !in.NeedsColumns()
	if !missing && q.Refusal != "" && !q.Listed() {
		if q.Values {
			return refusedQuery(b, "VALUES in parentheses is not supported there: write it without them")
		}
		return Verdict{}
	}
	// What is remembered of the columns is not good enough: a number that the server counts
	// off must stand in the right one.
	of := t.columns(i, NeedColumnsNow)
	if of == nil {
		return Verdict{}
	}
	var item *statement.InsertValue
	if missing {
		if same := t.same(b.Column); !ContainsName(of.Names, same) && !ContainsName(of.More, same) {
			return Verdict{} // a table of the same name
		}
	} else {
		columns := len(in.Columns)
		if in.NeedsColumns() {
			if v := t.keyAmong(of, b, key); v.Kind != Go {
				return v
			}
			columns = len(key.Columns)
		}
		if key.Index < 0 {
			return Verdict{}
		}
		var v Verdict
		if item, v = t.emptyItem(i, &q, b, key, columns); v.Kind != Go || len(t.needs) > 0 {
			return v
		}
		if item == nil {
			return givesKey(&q, b, key.Index, columns)
		}
	}
	switch {
	case b.Texts:
		return refusedQuery(b, "its keys are texts, which the server cannot count off: write NEXTVAL in each row of VALUES")
	case q.Refusal != "":
		v := refusedQuery(b, q.Refusal+" is not supported there")
		v.Refusal.ServerFirst = t.st.Kind != statement.Multi // a mistake of the author's, perhaps
		return v
	case t.st.Kind == statement.Multi:
		return refusedQuery(b, "send it alone")
	case !Writable(b.Sequence, t.f.Charset):
		return refusedQuery(b, "its name in this character set is not supported: SET NAMES utf8mb4")
	}
	for i := range t.st.Calls {
		switch t.st.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			return refusedQuery(b, "another NEXTVAL, LASTVAL or SETVAL in it is not supported")
		}
	}
	t.fill.Query = &FilledQuery{Binding: b, Text: in.Spell(t.sql, &q, item, key, []byte(b.Sequence))}
	return Verdict{}
}

// givesKey refuses a query of no table whose key is no number: it may be NULL, and the server
// would make the key. Of a column of another table the proxy takes it that it is a key.
func givesKey(q *statement.InsertSelect, b *Binding, index, columns int) Verdict {
	item := q.KeyItem(index, columns)
	if item == nil || item.Kind == statement.ValueNumber || q.From {
		return Verdict{}
	}
	return refusedQuery(b, "a key that may be NULL or 0 is not supported there: write INSERT ... VALUES")
}

// emptyItem returns the item of a query that is the key, if it is a literal in whose
// place a number is put; else nil.
func (t *filling) emptyItem(i int, q *statement.InsertSelect, b *Binding, key *statement.Key, columns int) (*statement.InsertValue, Verdict) {
	item := q.KeyItem(key.Index, columns)
	if item == nil {
		return nil, Verdict{}
	}
	switch item.Kind {
	case statement.ValueNull:
		return item, Verdict{}
	case statement.ValueZero, statement.ValueText:
		modes, is, v := t.modes()
		if !is {
			return nil, v
		}
		if t.setBefore(t.st.Tables[i].Statement, "sql_mode") {
			return nil, setInText(b)
		}
		if modes.EmptyIsNull && item.Kind == statement.ValueText {
			return nil, notSupported("%s", MayBeNull(b))
		}
		key.ZeroStays, key.TextIsZero = modes.ZeroStays, !modes.Strict || t.in.Ignore
		if key.Fills(item.Kind) {
			return item, Verdict{}
		}
	}
	return nil, Verdict{}
}

// MayBeNull is why a text as the key is refused where the empty one means NULL.
func MayBeNull(b *Binding) string {
	return fmt.Sprintf("a text that is no number for %s.%s, which is filled from sequence %s, in the sql_mode EMPTY_STRING_IS_NULL is not supported: give NULL or a number",
		b.Table, b.Column, b.Sequence)
}

// refusedQuery refuses an INSERT ... SELECT into a bound column.
func refusedQuery(b *Binding, text string) Verdict {
	return refuse(Refusal{Why: NotSupported, Text: RefusedQuery(b, text)})
}

// RefusedQuery names the column in a refusal of an INSERT ... SELECT.
func RefusedQuery(b *Binding, text string) string {
	return fmt.Sprintf("INSERT ... SELECT into %s with numbers of sequence %s for its column %s: %s", b.Table, b.Sequence, b.Column, text)
}

// ContainsName reports whether one of names is the same as something.
func ContainsName(names [][]byte, same func([]byte) bool) bool {
	return slices.ContainsFunc(names, same)
}
