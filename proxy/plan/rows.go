package plan

import (
	"bytes"
	"slices"
	"strings"

	"seqproxy/statement"
	"seqproxy/statement/lex"
)

// counts reports whether the server must count the numbers, in a change of rows.
func (t *planning) counts() bool {
	for i := range t.a.Slots {
		if t.a.Slots[i].When == Counted {
			return true
		}
	}
	return false
}

// perRow plans a text with a NEXTVAL that the server would evaluate once per row
// (statement.PlaceRow, PlaceSource, PlaceChange). One number in its place would go to many rows.
func (t *planning) perRow() Verdict {
	t.a.Do = Rewrite
	if t.counts() {
		return t.counted()
	}
	return t.rows()
}

// rows finds the result's columns that are NEXTVALs, in a SELECT ... FROM or in RETURNING.
func (t *planning) rows() Verdict {
	st, slots := t.st, t.a.Slots
	columns, refusal := st.RowColumns(t.sql)
	switch {
	case refusal != "":
		return notSupportedForm(refusal)
	case st.Words&statement.SetsLastInsertID != 0 && st.Kind != statement.Insert && st.Kind != statement.Replace:
		return notSupportedForm("NEXTVAL beside LAST_INSERT_ID(expression) in SELECT ... FROM, where both would set LAST_INSERT_ID(),")
	}
	for i := range slots {
		if slots[i].Served() && slots[i].Func != statement.Nextval {
			return notSupportedForm("NEXTVAL beside LASTVAL or SETVAL in SELECT ... FROM, which have one value for all rows,")
		}
	}
	if set := t.s.Sysvars["character_set_results"]; set > t.s.Names && t.f.Attached {
		// MariaDB converts numbers to character_set_results.
		switch t.f.Digits {
		case Unasked:
			t.ask(Need{What: NeedDigits})
			return Verdict{}
		case No: // UTF-16, UTF-32
			return notSupported("NEXTVAL in SELECT ... FROM is not supported with a character_set_results that writes digits unlike ASCII")
		}
	}
	r := &Rows{Lead: -1, Inserts: st.Kind == statement.Insert || st.Kind == statement.Replace}
	t.a.Rows = r
	if r.Inserts && !slices.ContainsFunc(slots, func(s Slot) bool { return s.Served() && s.When != EachRow }) {
		r.Lead = slices.IndexFunc(slots, func(s Slot) bool { return s.When == EachRow })
	}
	for _, c := range columns {
		slot := slots[c.Call]
		if !slot.Served() {
			continue
		}
		if slot.Sequence == nil {
			return notSupportedForm("NEXTVAL in SELECT ... FROM of a sequence that a parameter names")
		}
		slot.When = Once // for each row
		r.Columns = append(r.Columns, c.Column)
		r.Slots = append(r.Slots, slot)
	}
	return Verdict{}
}

// counted plans a text whose numbers the server counts. It asks nothing about the table.
func (t *planning) counted() Verdict {
	st, f, n := t.st, t.f, &Counts{Insert: t.st.Kind != statement.Update, Key: t.f.Key}
	t.a.Counts = n
	for i := range st.Calls {
		slot := &t.a.Slots[i]
		switch {
		case !slot.Served():
			continue
		case slot.Func != statement.Nextval:
			return notSupportedForm("NEXTVAL for each row beside LASTVAL or SETVAL, which have one value for all rows,")
		case slot.Sequence == nil:
			return notSupportedForm("NEXTVAL for each row with a parameter for the sequence, which may differ between rows,")
		case n.Count != 0 && slot.Count != n.Count:
			return notSupportedForm("NEXTVAL for each row with two counts, where the server can use only one,")
		case slot.When != Counted:
			return notSupportedForm("NEXTVAL for each row beside one for the whole statement, which the server would count, too,")
		}
		if n.Sequence == nil {
			n.Sequence, n.Count = slot.Sequence, slot.Count
		}
		if !bytes.Equal(n.Sequence, slot.Sequence) {
			switch f.name(i).SameAsFirst {
			case Unasked:
				t.ask(Need{What: NeedSame, At: i, Name: n.Sequence, Other: slot.Sequence})
			case No:
				return notSupportedForm("NEXTVAL of two sequences for each row of INSERT ... SELECT or UPDATE, where the server can count only one,")
			}
		}
		n.Calls++
	}
	if len(t.needs) > 0 {
		return Verdict{}
	}
	text, refusal := st.Counted(t.sql)
	switch {
	case refusal != "":
		return notSupportedForm(refusal)
	case f.Fill != nil:
		return notSupportedForm("NEXTVAL for each row of a table with a column that is filled, which the server would count, too,")
	case t.s.BeforeTransaction():
		return notSupported("NEXTVAL for each row between SET TRANSACTION and its transaction is not supported: send START TRANSACTION first")
	}
	if v := t.checkNames(); v.Kind != Go || len(t.needs) > 0 { // even without rows
		return v
	}
	n.Size = min(firstBlock, n.Most())
	n.Routines, n.Updates = text.Routines, text.Updates
	if text.Limit > 0 {
		n.Size = min(text.Limit, n.Most()/n.Calls) * n.Calls
	}
	if text.Numbers > 0 {
		n.Size = min(text.Numbers, n.Most())
	}
	if n.Size == 0 {
		return notSupported("NEXTVAL for each row of so many numbers is not supported: one row takes more than %d", LastBlock)
	}
	if n.Insert {
		if t.insertion == nil {
			t.insertion = new(statement.Insertion)
		}
		n.Given = t.insertion.ReadGiven(st, t.sql)
	}
	return t.countedTable()
}

// countedTable records the table that the text changes. A prepared text means a table in the schema
// that is current now.
func (t *planning) countedTable() Verdict {
	n, table := t.a.Counts, t.st.Table()
	n.Table = CountedTable{Text: string(t.sql[table.Start:table.End]), Schema: string(table.Schema), Name: table.Name}
	if n.Table.Schema != "" && !ASCII(table.Schema) && t.s.Mode.Charset != lex.UTF8 {
		return notSupportedForm("NEXTVAL for each row of a table whose schema's name is not in UTF-8")
	}
	if t.f.At == Now || n.Table.Schema != "" || t.s.Schema == "" {
		// Without a schema the server has an error of its own.
		return Verdict{}
	}
	if !ASCII([]byte(t.s.Schema)) && t.s.Mode.Charset != lex.UTF8 {
		return notSupportedForm("NEXTVAL for each row, prepared in a schema whose name is not in UTF-8")
	}
	n.Table.Schema = t.s.Schema
	n.Table.Text = Quoted(t.s.Schema) + "." + n.Table.Text
	return Verdict{}
}

// Quoted quotes a name for every sql_mode.
func Quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
