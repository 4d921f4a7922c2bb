package plan

import (
	"fmt"
	"strings"

	"seqproxy/statement"
)

// An INSERT ... SELECT that omits a bound column, or gives it a literal that is no number, becomes
// the text that has NEXTVAL there. The server counts its numbers: see Counts.

// query plans the INSERT ... SELECT into table i, whose beginning t.in has read. Nothing is filled
// in if the query gives keys of its own, or the table has no such column.
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
	// Columns from the cache are not good enough: the server's numbers must stand in the right one.
	of := t.columns(i, NeedColumnsNow)
	if of == nil {
		return Verdict{}
	}
	var item *statement.InsertValue
	if missing {
		if same := t.same(b.Column); !ContainsName(of.Names, same) && !ContainsName(of.More, same) {
			return b.Renamed(of)
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
			return t.givesKey(&q, b, key.Index, columns)
		}
	}
	switch {
	case b.Texts:
		return refusedQuery(b, "its keys are texts, which the server cannot count off: write NEXTVAL in each row of VALUES")
	case q.Refusal != "":
		v := refusedQuery(b, q.Refusal+" is not supported there: "+outOfQuery)
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

// givesKey refuses a query without a table whose key is no number: it may be NULL, and then the
// server would make the key. A column of another table is taken to hold keys.
func (t *filling) givesKey(q *statement.InsertSelect, b *Binding, index, columns int) Verdict {
	item := q.KeyItem(index, columns)
	if item == nil || item.Kind == statement.ValueNumber || q.From || q.Refusal == "" && t.certain(item) || b.Texts && item.Literal {
		return Verdict{}
	}
	return refusedQuery(b, "a key that may be NULL or 0 is not supported there: write INSERT ... VALUES")
}

// emptyItem returns the item of a query that is the key, if it is a literal that a number replaces;
// else nil.
func (t *filling) emptyItem(i int, q *statement.InsertSelect, b *Binding, key *statement.Key, columns int) (*statement.InsertValue, Verdict) {
	item := q.KeyItem(key.Index, columns)
	if item == nil {
		return nil, Verdict{}
	}
	switch item.Kind {
	case statement.ValueNull:
		return item, Verdict{}
	case statement.ValueZero, statement.ValueText:
		if b.Texts { // only NULL means that there is no key
			return nil, Verdict{}
		}
		modes, is, v := t.modes()
		if !is {
			return nil, v
		}
		if t.st.WordsBefore(t.st.Tables[i].Statement)&statement.MaySetMode != 0 {
			return nil, setInText(b)
		}
		if modes.EmptyIsNull && item.Kind == statement.ValueText {
			return nil, notSupported("%s", MayBeNull(b))
		}
		key.ZeroStays, key.TextIsZero = modes.ZeroStays, modes.TextIsZero(t.in.Ignore)
		if key.Fills(item.Kind) {
			return item, Verdict{}
		}
	}
	return nil, Verdict{}
}

// refusedQuery refuses an INSERT ... SELECT into a bound column.
func refusedQuery(b *Binding, text string) Verdict {
	return refuse(Refusal{Why: NotSupported, Text: RefusedQuery(b, text)})
}

// RefusedQuery names the column in a refusal of an INSERT ... SELECT, which may be that of a form
// of NEXTVAL.
func RefusedQuery(b *Binding, text string) string {
	text = strings.Replace(text, outOfForm, outOfQuery, 1)
	return fmt.Sprintf("INSERT ... SELECT into %s with numbers of sequence %s for its column %s: %s", b.Table, b.Sequence, b.Column, text)
}
