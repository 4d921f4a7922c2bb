package transcript

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seqproxy/test/mysqltest"
)

var update = flag.Bool("update", false, "write the transcripts anew instead of comparing them")

// IsSystemServer reports whether s is the system's MariaDB. The files have its transcripts.
func IsSystemServer(s *mysqltest.Server) bool {
	return s.IsMariaDB() && os.Getenv(mysqltest.ServerEnv) == ""
}

// SystemServer skips a test on any other server.
func SystemServer(t *testing.T, s *mysqltest.Server) {
	t.Helper()
	if !IsSystemServer(s) {
		t.Skip("the transcripts are those of the system's MariaDB: other servers are asked for some things in other words")
	}
}

// Compare fails the test if got differs from testdata/transcripts/NAME.txt. With -update it writes
// the file. again are the lines of questions whose answers are remembered for a time, so that a
// slow machine asks them more often.
func Compare(t testing.TB, name, got string, again ...string) {
	t.Helper()
	path := filepath.Join("testdata", "transcripts", name+".txt")
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if !same(string(want), got, again) {
		t.Errorf("%s differs; if that is meant, run the test with -update and read the difference of the file:\n%s", path, diff(string(want), got))
	}
}

// same reports whether two texts are the same, but for questions that got has more often.
func same(want, got string, again []string) bool {
	for _, question := range again {
		wantRest, asked := without(want, question)
		gotRest, more := without(got, question)
		if more > asked {
			want, got = wantRest, gotRest
		}
	}
	return want == got
}

// without returns a text without a question and its answers, and how often that stood in it.
func without(text, question string) (rest string, times int) {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		if inside = line == question+"\n" || inside && strings.HasPrefix(line, "< "); inside {
			if !strings.HasPrefix(line, "< ") {
				times++
			}
			continue
		}
		out.WriteString(line)
	}
	return out.String(), times
}

// diff shows the lines that only one of two texts has, each with the last title before it. A title
// is a line that begins with "==".
func diff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	// common[i][j] is the length of the longest common subsequence of lines of a[i:] and b[j:].
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out strings.Builder
	title, said := "", ""
	line := func(sign, text string) {
		if title != said {
			fmt.Fprintln(&out, title)
			said = title
		}
		fmt.Fprintln(&out, sign, text)
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			if strings.HasPrefix(a[i], "==") {
				title = a[i]
			}
			i++
			j++
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			line("-", a[i])
			i++
		default:
			line("+", b[j])
			j++
		}
	}
	return out.String()
}

// Names replaces values that differ from run to run by names in order of appearance: the first
// random id is P1, the next one P2.
type Names struct {
	replacements []replacement
	kinds        []kind
	counts       map[string]int
	byText       map[string]string
}

type replacement struct{ text, name string }

type kind struct {
	prefix string
	what   *regexp.Regexp
}

// Know replaces a text, such as an address, by a fixed name.
func (n *Names) Know(text, name string) {
	n.replacements = append(n.replacements, replacement{text, name})
}

// Number replaces what a pattern matches, or its first group, by prefix and a number in order of
// appearance. A prefix such as "<time>" gets no number.
func (n *Names) Number(prefix, what string) {
	n.kinds = append(n.kinds, kind{prefix, regexp.MustCompile(what)})
}

// Named applies the replacements of Know to a text.
func (n *Names) Named(text string) string {
	for _, r := range n.replacements {
		text = strings.ReplaceAll(text, r.text, r.name)
	}
	return text
}

// Apply applies all replacements to a text. The order of calls matters.
func (n *Names) Apply(text string) string {
	text = n.Named(text)
	for _, k := range n.kinds {
		text = k.what.ReplaceAllStringFunc(text, func(all string) string {
			part := all
			if m := k.what.FindStringSubmatch(all); len(m) > 1 {
				part = m[1]
			}
			return strings.Replace(all, part, n.name(k.prefix, part), 1)
		})
	}
	return text
}

func (n *Names) name(prefix, part string) string {
	if strings.HasPrefix(prefix, "<") {
		return prefix
	}
	if n.byText == nil {
		n.byText, n.counts = make(map[string]string), make(map[string]int)
	}
	name, ok := n.byText[prefix+part]
	if !ok {
		n.counts[prefix]++
		name = fmt.Sprint(prefix, n.counts[prefix])
		n.byText[prefix+part] = name
	}
	return name
}
