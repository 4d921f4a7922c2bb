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

// IsSystemServer reports whether s is the system's MariaDB, whose transcripts the files have.
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

// Compare fails the test if got is not what the file testdata/transcripts/NAME.txt has, or writes
// that with -update.
func Compare(t testing.TB, name, got string) {
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
	if string(want) != got {
		t.Errorf("%s differs; if that is meant, run the test with -update and read the difference of the file:\n%s", path, diff(string(want), got))
	}
}

// diff shows the lines that only one of two texts has, each with the last title above it, which is
// a line that begins with "==".
func diff(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	// common[i][j] is how many lines a[i:] and b[j:] share, in order.
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

// Names gives what differs from run to run a name by first sight: a random id becomes P1, the next
// one P2.
type Names struct {
	known  []replacement
	kinds  []kind
	counts map[string]int
	byText map[string]string
}

type replacement struct{ text, name string }

type kind struct {
	prefix string
	what   *regexp.Regexp
}

// Know has a text, such as an address, always be called name.
func (n *Names) Know(text, name string) { n.known = append(n.known, replacement{text, name}) }

// Number has what matches, or its first group, be called prefix and a number, by first sight. A
// prefix such as "<time>" gets none.
func (n *Names) Number(prefix, what string) {
	n.kinds = append(n.kinds, kind{prefix, regexp.MustCompile(what)})
}

// Known takes out of a text what was said to Know.
func (n *Names) Known(text string) string {
	for _, r := range n.known {
		text = strings.ReplaceAll(text, r.text, r.name)
	}
	return text
}

// Apply takes out of a text all that differs. The order of the calls counts.
func (n *Names) Apply(text string) string {
	text = n.Known(text)
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
