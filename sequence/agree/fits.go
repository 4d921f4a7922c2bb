package agree

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"seqproxy/sequence/define"
	"seqproxy/sequence/member"
)

// fits refuses a definition that a member which was reached cannot hold.
func (a Definitions) fits(d *define.Definition) error {
	for _, v := range a.Members {
		if v.Seen.Load() == nil {
			continue
		}
		if err := fits(v, d); err != nil {
			return err
		}
	}
	return nil
}

// fits refuses a name that is too long for the rows of its sequence, and ticks that are too many
// for them.
func fits(v *member.Server, d *define.Definition) error {
	layout := v.Seen.Load()
	if most := layout.Max; d.Kind.HasClock() && d.Kind.MaxCounter() > most {
		return define.BadOption("sequence %q: the ticks of its workers go up to %d, and the id column of table %s holds up to %d: make that a BIGINT UNSIGNED",
			d.Name, d.Kind.MaxCounter(), v.Table.Sequence, most)
	}
	var width int
	if _, err := fmt.Sscanf(strings.ToLower(layout.NameType), "varchar(%d)", &width); err != nil {
		return nil
	}
	name, behind := utf8.RuneCountInString(d.Name), longestBehind(d)
	if name+len(behind) <= width {
		return nil
	}
	why := "column `name` of table " + v.Table.Sequence + " holds no more"
	if behind != "" {
		why = "behind it stands up to " + behind + " in table " + v.Table.Sequence
	}
	return define.BadOption("sequence name %q has %d characters, want at most %d: %s", d.Name, name, width-len(behind), why)
}

// longestBehind is the longest text that stands behind the name of a sequence in one of its rows.
func longestBehind(d *define.Definition) string {
	switch {
	case define.IsPeriod(define.CounterName(d.Name)): // its sequence was asked about
		return define.StoredName("", d.Kind)
	case d.Kind.Resets():
		return define.CounterName(define.PeriodName("", d.Kind, 0))
	case d.Kind.HasClock():
		return define.CounterName(define.WorkerName("", 1<<d.Kind.Layout().WorkerBits-1))
	}
	return define.StoredName("", d.Kind)
}
