package inspect

import "fmt"

// Level is the severity of a finding.
type Level string

// The levels.
const (
	OK      Level = "ok"      // as it should be
	Warning Level = "warning" // it works, but the operator should know
	Wrong   Level = "wrong"   // something does not work, or keys could repeat
)

// Finding is the result of one check.
type Finding struct {
	Level Level  `json:"level"`
	Where string `json:"where"` // "sequence server 10.0.0.5:3306"
	Check string `json:"check"` // one word for the check
	Text  string `json:"text"`
	// Mend are the SQL statements that repair it. An account with the rights runs them on that
	// server.
	Mend []string `json:"mend,omitempty"`
	// Hint says what else repairs it: a key of the configuration, or something outside of SQL.
	Hint string `json:"hint,omitempty"`
}

// Findings are the findings for one place, in the order of the checks.
type Findings struct {
	Where string
	All   []Finding
}

// OK adds a check that found nothing wrong.
func (f *Findings) OK(check, format string, args ...any) {
	f.add(Finding{Level: OK, Check: check, Text: fmt.Sprintf(format, args...)})
}

// Warn adds a warning.
func (f *Findings) Warn(check, text, hint string, mend ...string) {
	f.add(Finding{Level: Warning, Check: check, Text: text, Hint: hint, Mend: mend})
}

// Wrong adds something that does not work.
func (f *Findings) Wrong(check, text, hint string, mend ...string) {
	f.add(Finding{Level: Wrong, Check: check, Text: text, Hint: hint, Mend: mend})
}

func (f *Findings) add(one Finding) {
	one.Where = f.Where
	f.All = append(f.All, one)
}
