package main

import (
	"encoding/json"
	"fmt"
	"io"

	"seqproxy/internal/inspect"
)

// report is the result of check.
type report struct {
	File     string            `json:"file"`
	Findings []inspect.Finding `json:"findings"`
	Wrong    int               `json:"wrong"`
	Warnings int               `json:"warnings"`
}

func newReport(file string, findings []inspect.Finding) *report {
	r := &report{File: file, Findings: findings}
	if findings == nil {
		r.Findings = []inspect.Finding{}
	}
	for _, f := range findings {
		switch f.Level {
		case inspect.Wrong:
			r.Wrong++
		case inspect.Warning:
			r.Warnings++
		case inspect.OK:
		}
	}
	return r
}

// writeText writes a line for each finding, followed by lines that say what to do.
func (r *report) writeText(w io.Writer) {
	for _, f := range r.Findings {
		_, _ = fmt.Fprintf(w, "%-7s  %s: %s: %s\n", f.Level, f.Where, f.Check, f.Text)
		for _, statement := range f.Mend {
			_, _ = fmt.Fprintf(w, "         mend: %s;\n", statement)
		}
		if f.Hint != "" {
			_, _ = fmt.Fprintf(w, "         hint: %s\n", f.Hint)
		}
	}
}

// writeJSON writes the report as one object.
func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// err decides the exit status. It is not nil if something is wrong or, with strict, if there is a
// warning.
func (r *report) err(strict bool) error {
	count := func(n int, one, many string) string {
		if n == 1 {
			return "one " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	switch {
	case r.Wrong > 0 && r.Warnings > 0:
		return fmt.Errorf("%s wrong, %s", count(r.Wrong, "thing is", "things are"), count(r.Warnings, "warning", "warnings"))
	case r.Wrong > 0:
		return fmt.Errorf("%s wrong", count(r.Wrong, "thing is", "things are"))
	case strict && r.Warnings > 0:
		return fmt.Errorf("%s, and -strict", count(r.Warnings, "warning", "warnings"))
	}
	return nil
}
