package inspect

import "fmt"

// Level says how much a finding counts.
type Level string

// The levels.
const (
	OK      Level = "ok"      // as it should be
	Warning Level = "warning" // it works, and somebody should know
	Wrong   Level = "wrong"   // something does not work, or keys could repeat
)

// Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level"`
	Where string `json:"where"` // "sequence server 10.0.0.5:3306"
	Check string `json:"check"` // one word: what was looked at
	Text  string `json:"text"`
	// Mend are the SQL statements that mend it, to be run there by somebody who may.
	Mend []string `json:"mend,omitempty"`
	// Hint says what else mends it: a key of the configuration, or something outside of SQL.
	Hint string `json:"hint,omitempty"`
}

// Findings are those of one place, in the order in which they were made.
type Findings struct {
	Where string
	All   []Finding
}

// OK adds what is as it should be.
func (f *Findings) OK(check, format string, args ...any) {
	f.add(Finding{Level: OK, Check: check, Text: fmt.Sprintf(format, args...)})
}

// Warn adds what somebody should know.
func (f *Findings) Warn(check, text, hint string, mend ...string) {
	f.add(Finding{Level: Warning, Check: check, Text: text, Hint: hint, Mend: mend})
}

// Wrong adds what does not work.
func (f *Findings) Wrong(check, text, hint string, mend ...string) {
	f.add(Finding{Level: Wrong, Check: check, Text: text, Hint: hint, Mend: mend})
}

func (f *Findings) add(one Finding) {
	one.Where = f.Where
	f.All = append(f.All, one)
}
