package admin

import (
	"fmt"
	"strings"

	"seqproxy/statement"
)

// changes says whether a statement is one that changes something.
func changes(st *statement.Statement) bool {
	switch st.Kind {
	case statement.ShowSequences, statement.ShowCreateSequence, statement.CheckSequence:
		return false
	case statement.Seqproxy:
		return !st.Proxy.Show && st.Proxy.Verb != 0
	}
	return st.Sequence.Problem == ""
}

// auditsEach says whether a statement, when it is carried out, is audited name by name: what
// was done to one sequence is done, whatever becomes of the next.
func auditsEach(st *statement.Statement) bool {
	switch st.Kind {
	case statement.DropSequence, statement.FlushSequences, statement.RepairSequence:
		return true
	}
	return false
}

// describeOne is describe for one of the names of a statement; nil: for none.
func describeOne(st *statement.Statement, name []byte) string {
	one, ddl := *st, *st.Sequence
	one.Sequence, ddl.Names = &ddl, nil
	if name != nil {
		ddl.Names = [][]byte{name}
	}
	return describe(&one)
}

// maxDescribed bounds what describe writes of a list of names.
const maxDescribed = 512

// describe writes a statement that changes something, for a log: anew, of what was understood,
// without what a string in it says. Of many names it writes the first.
func describe(st *statement.Statement) string {
	if st.Kind == statement.Seqproxy {
		return st.Proxy.String()
	}
	ddl := st.Sequence
	var b strings.Builder
	switch st.Kind {
	case statement.CreateSequence:
		b.WriteString("CREATE ")
		if ddl.OrReplace {
			b.WriteString("OR REPLACE ")
		}
		b.WriteString("SEQUENCE")
		if ddl.IfExists {
			b.WriteString(" IF NOT EXISTS")
		}
	case statement.AlterSequence, statement.DropSequence:
		b.WriteString("ALTER SEQUENCE")
		if st.Kind == statement.DropSequence {
			b.Reset()
			b.WriteString("DROP SEQUENCE")
		}
		if ddl.IfExists {
			b.WriteString(" IF EXISTS")
		}
	case statement.FlushSequences:
		b.WriteString("FLUSH SEQUENCES")
	case statement.RepairSequence:
		b.WriteString("REPAIR SEQUENCE")
	}
	for i, name := range ddl.Names {
		if b.Len() > maxDescribed {
			fmt.Fprintf(&b, " and %d more", len(ddl.Names)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", quoteName(fmt.Sprintf("%.64s", name)))
	}
	describeOptions(&b, ddl)
	return b.String()
}

// describeOptions writes the options of CREATE and ALTER.
func describeOptions(b *strings.Builder, ddl *statement.SequenceDDL) {
	for _, o := range [...]struct {
		words  string
		number statement.SequenceNumber
	}{
		{"START", ddl.Start}, {"INCREMENT", ddl.Increment}, {"MINVALUE", ddl.Min}, {"MAXVALUE", ddl.Max}, {"CACHE", ddl.Cache}, {"OUTAGE_COVER", ddl.Cover},
	} {
		switch {
		case o.number.Given:
			fmt.Fprintf(b, " %s %d", o.words, o.number.Value)
		case o.number.Default:
			fmt.Fprintf(b, " %s DEFAULT", o.words)
		}
	}
	for _, o := range [...]struct {
		words  string
		toggle statement.Toggle
	}{{"CYCLE", ddl.Cycle}, {"ORDER", ddl.Order}, {"JSON_SAFE", ddl.JSONSafe}} {
		switch o.toggle {
		case statement.Yes:
			b.WriteString(" " + o.words)
		case statement.No:
			b.WriteString(" NO " + o.words)
		}
	}
	switch {
	case ddl.HasOwner && len(ddl.OwnerTable) == 0:
		b.WriteString(" OWNED BY NONE")
	case ddl.HasOwner:
		fmt.Fprintf(b, " OWNED BY %.200s", columnName(ownerOf(ddl)))
	}
	if ddl.Restart {
		b.WriteString(" RESTART")
		if ddl.RestartWith.Given {
			fmt.Fprintf(b, " %d", ddl.RestartWith.Value)
		}
		if ddl.Force {
			b.WriteString(" FORCE")
		}
	}
	if ddl.HasComment {
		b.WriteString(" COMMENT ?")
	}
}
