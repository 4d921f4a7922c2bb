package admin

import (
	"fmt"
	"strings"

	"seqproxy/statement"
	"seqproxy/statement/ddl"
)

// changes reports whether a statement changes something.
func changes(st *statement.Statement) bool {
	switch st.Kind {
	case statement.ShowSequences, statement.ShowCreateSequence, statement.DecodeSequence, statement.CheckSequence:
		return false
	case statement.Seqproxy:
		return !st.Proxy.Show && st.Proxy.Verb != 0
	}
	return st.Sequence.Problem == ""
}

// auditsEach reports whether a statement is audited name by name: the change of one sequence stays,
// even if the next name fails.
func auditsEach(st *statement.Statement) bool {
	switch st.Kind {
	case statement.DropSequence, statement.FlushSequences, statement.RepairSequence:
		return true
	}
	return false
}

// describeOne is describe for one name of a statement. nil means no name.
func describeOne(st *statement.Statement, name []byte) string {
	one, asked := *st, *st.Sequence
	one.Sequence, asked.Names = &asked, nil
	if name != nil {
		asked.Names = [][]byte{name}
	}
	return describe(&one)
}

// maxDescribed bounds a list of names in describe, in bytes.
const maxDescribed = 512

// describe writes a statement for the log: the parts that were understood, without the contents of
// strings, and the first of many names.
func describe(st *statement.Statement) string {
	if st.Kind == statement.Seqproxy {
		return st.Proxy.String()
	}
	asked := st.Sequence
	var b strings.Builder
	switch st.Kind {
	case statement.CreateSequence:
		b.WriteString("CREATE ")
		if asked.OrReplace {
			b.WriteString("OR REPLACE ")
		}
		b.WriteString("SEQUENCE")
		if asked.IfExists {
			b.WriteString(" IF NOT EXISTS")
		}
	case statement.AlterSequence, statement.DropSequence:
		if st.Kind == statement.DropSequence {
			b.WriteString("DROP SEQUENCE")
		} else {
			b.WriteString("ALTER SEQUENCE")
		}
		if asked.IfExists {
			b.WriteString(" IF EXISTS")
		}
	case statement.FlushSequences:
		b.WriteString("FLUSH SEQUENCES")
	case statement.RepairSequence:
		b.WriteString("REPAIR SEQUENCE")
	}
	for i, name := range asked.Names {
		if b.Len() > maxDescribed {
			fmt.Fprintf(&b, " and %d more", len(asked.Names)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %s", quoteName(fmt.Sprintf("%.64s", name)))
	}
	describeOptions(&b, asked)
	return b.String()
}

// describeOptions writes the options of CREATE and ALTER.
func describeOptions(b *strings.Builder, asked *ddl.Sequence) {
	for _, o := range [...]struct {
		words  string
		number ddl.Number
	}{
		{"START", asked.Start}, {"INCREMENT", asked.Increment}, {"MINVALUE", asked.Min}, {"MAXVALUE", asked.Max}, {"CACHE", asked.Cache}, {"OUTAGE_COVER", asked.Cover},
	} {
		switch {
		case o.number.Given:
			fmt.Fprintf(b, " %s %d", o.words, o.number.Value)
		case o.number.Default:
			fmt.Fprintf(b, " %s DEFAULT", o.words)
		}
	}
	if k := asked.Kind; k.Word != "" {
		b.WriteString(" " + k.Word)
		if k.N.Given {
			fmt.Fprintf(b, " %d", k.N.Value)
		}
		if k.Digits.Given {
			fmt.Fprintf(b, " DIGITS %d", k.Digits.Value)
		}
		for _, option := range [...]struct {
			word string
			text []byte
		}{{"EPOCH", k.Epoch}, {"TICK", k.Tick}} {
			if option.text != nil {
				fmt.Fprintf(b, " %s '%s'", option.word, option.text)
			}
		}
		for _, option := range [...]struct {
			words string
			bits  ddl.Number
		}{{"TIME BITS", k.TimeBits}, {"WORKER BITS", k.WorkerBits}, {"COUNTER BITS", k.CounterBits}} {
			if option.bits.Given {
				fmt.Fprintf(b, " %s %d", option.words, option.bits.Value)
			}
		}
		if k.SkipTo.Given {
			fmt.Fprintf(b, " SKIP RANGE %d TO %d", k.SkipFrom.Value, k.SkipTo.Value)
		}
	}
	for _, o := range [...]struct {
		words  string
		toggle ddl.Toggle
	}{{"CYCLE", asked.Cycle}, {"ORDER", asked.Order}, {"JSON_SAFE", asked.JSONSafe}} {
		switch o.toggle {
		case ddl.Yes:
			b.WriteString(" " + o.words)
		case ddl.No:
			b.WriteString(" NO " + o.words)
		}
	}
	switch {
	case asked.HasOwner && len(asked.OwnerTable) == 0:
		b.WriteString(" OWNED BY NONE")
	case asked.HasOwner:
		fmt.Fprintf(b, " OWNED BY %.200s", ownerOf(asked))
	}
	if asked.Restart {
		b.WriteString(" RESTART")
		if asked.RestartWith.Given {
			fmt.Fprintf(b, " %d", asked.RestartWith.Value)
		}
		if asked.Force {
			b.WriteString(" FORCE")
		}
	}
	if asked.HasComment {
		b.WriteString(" COMMENT ?")
	}
}
