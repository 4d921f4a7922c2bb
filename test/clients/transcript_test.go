package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// transcript has a client's results, step by step. Values are strings, nil and lists of these.
type transcript []struct {
	Step  string `json:"step"`
	Value any    `json:"value"`
}

// parse reads the lines of a transcript. Anything else is an error.
func parse(text []byte) (transcript, error) {
	var all transcript
	for line := range bytes.Lines(text) {
		var one transcript
		if err := json.Unmarshal(slices.Concat([]byte("["), line, []byte("]")), &one); err != nil {
			return nil, fmt.Errorf("%w in %.500q", err, line)
		}
		all = append(all, one...)
	}
	return all, nil
}

// value is that of the step, nil if there is none.
func (tr transcript) value(step string) any {
	for _, s := range tr {
		if s.Step == step {
			return s.Value
		}
	}
	return nil
}

func (tr transcript) steps() []string {
	var names []string
	for _, s := range tr {
		names = append(names, s.Step)
	}
	return names
}

// text formats a value to print or compare it.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// required are the steps of every transcript. A client may have more.
var required = []string{
	"client", "connect", "session", "types", "text", "prepared", "insert id", "transaction", "big", "error",
	"after", "results", "refused",
}

// faults are the problems of a transcript, by step.
type faults map[string]string

func (f faults) add(step, format string, args ...any) {
	if f[step] == "" {
		f[step] = fmt.Sprintf(format, args...)
	}
}

// check compares values that every client must report with known ones. So the direct connection is
// not the only reference.
func (tr transcript) check(f faults, to target) {
	names := tr.steps()
	for _, step := range required {
		if !slices.Contains(names, step) {
			f.add(step, "missing; the steps are %q", names)
		}
	}
	want := map[string]string{
		"insert id":   `["1","2","3"]`,
		"transaction": `["5","5","6"]`,
		"big":         fmt.Sprintf(`["%d","%s","%d","%s"]`, to.big, bigSum(to.big), to.big, bigSum(to.big)),
		"after":       `[["1"]]`,
	}
	for step, want := range want {
		if got := text(tr.value(step)); got != want {
			f.add(step, "got %.1000s, want %s", got, want)
		}
	}
	errs, _ := tr.value("error").([]any)
	for i, code := range []string{"1062", "1146", "1064"} {
		if i >= len(errs) || !strings.HasPrefix(text(errs[i]), `["`+code+`",`) {
			f.add("error", "got %s, want %s in place %d", text(errs), code, i)
		}
	}
	if got := text(tr.value("refused")); !strings.HasPrefix(got, `["1045",`) {
		f.add("refused", "got %s, want 1045", got)
	}
}

// checkNumbers checks the steps "nextval" and "nextval prepared": insert id, LAST_INSERT_ID() and
// the row's key are the same.
func (tr transcript) checkNumbers(f faults) {
	if tr.value("nextval") == nil {
		f.add("nextval", "missing; the steps are %q", tr.steps())
	}
	for _, s := range tr {
		if !strings.HasPrefix(s.Step, "nextval") {
			continue
		}
		v, _ := s.Value.([]any)
		if len(v) != 3 || v[0] != v[1] || v[1] != v[2] {
			f.add(s.Step, "got %s, want one number three times", text(s.Value))
			continue
		}
		if n, err := strconv.ParseUint(fmt.Sprint(v[0]), 10, 64); err != nil || n == 0 {
			f.add(s.Step, "got %s, want a number above 0", text(s.Value))
		}
	}
}

// compare finds differences from the transcript of the direct connection. It leaves out steps that
// only the proxy has, the account's name, and the big value, which has another size. check has
// looked at that one.
func (tr transcript) compare(f faults, direct transcript, name string) {
	values := make(map[string]bool)
	for _, s := range direct {
		values[s.Step] = true
		if s.Step == "big" {
			continue
		}
		got, want := strings.ReplaceAll(text(tr.value(s.Step)), name, user), text(s.Value)
		if got != want {
			f.add(s.Step, "%s", difference(got, want))
		}
	}
	for _, step := range tr.steps() {
		if !values[step] && !strings.HasPrefix(step, "nextval") {
			f.add(step, "the direct connection has no such step")
		}
	}
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	from := max(0, n-60)
	return fmt.Sprintf("byte %d\ngot    ...%.400s\ndirect ...%.400s", n, got[from:], want[from:])
}
