package main

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// pages returns the documents of the repository by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	const root = "../../"
	all := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(path, root)] = string(text)
		}
	}
	if len(all) < 10 {
		t.Fatalf("found %d pages, want more", len(all))
	}
	return all
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// anchors returns the anchors of a page, made from its headings as GitHub does.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		all[name] = true
	}
	return all
}

func TestEveryLinkOfThePagesLeadsSomewhere(t *testing.T) {
	all := pages(t)
	links := 0
	for path, text := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			links++
			to := filepath.Join(filepath.Dir(path), target)
			if target == "" {
				to = path
			}
			if _, err := os.Stat("../../" + to); err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
			} else if page, is := all[to]; is && anchor != "" && !anchors(page)[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", path, m[1], to)
			}
		}
	}
	if links < 100 {
		t.Errorf("found %d links, want more: the test does not see them", links)
	}
}

// TestThePagesWrittenByHandAreShort does not count docs/kinds.md, nor what a program makes.
func TestThePagesWrittenByHandAreShort(t *testing.T) {
	made := regexp.MustCompile(`(?ms)^<!-- [^>]*made by .*?^<!-- end[^>]* -->$`)
	size := 0
	for path, text := range pages(t) {
		if !strings.HasPrefix(path, "docs/") || path == "docs/kinds.md" || path == "docs/config.md" || byProgram.MatchString(text) {
			continue
		}
		size += len(made.ReplaceAllString(text, ""))
	}
	if size > 83_000 || size < 50_000 {
		t.Errorf("the pages of docs written by hand have %d bytes, want 83,000 at most: say it once, or let the program say it", size)
	}
}

// byProgram matches pages with tables that a program makes.
var byProgram = regexp.MustCompile(`^(?:<!-- Made by |# Compatibility, command by command)`)

// TestNoLineOfAPageIsTooLong ignores blocks of code, since output may be long, and tables that a
// program makes.
func TestNoLineOfAPageIsTooLong(t *testing.T) {
	const most = 120
	for path, text := range pages(t) {
		wide := byProgram.MatchString(text)
		for line := range strings.Lines(fenced.ReplaceAllString(text, "")) {
			if wide && strings.HasPrefix(line, "|") {
				continue
			}
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > most {
				t.Errorf("%s has a line of %d characters, want %d at most: %.60s...", path, n, most, line)
			}
		}
	}
}

// TestNoCommentIsTooWide reads all Go files but those of testdata.
func TestNoCommentIsTooWide(t *testing.T) {
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for _, line := range wideComments(string(text)) {
			t.Errorf("%s has a comment of more than %d columns: %.60s...", path, mostColumns, line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 500 {
		t.Errorf("read %d files, want more: the test does not see them", files)
	}
}

const mostColumns = 100

// directive is a line that a program reads, or the name of the tool that a line is for.
var directive = regexp.MustCompile(`^//[a-z]+:`)

// wideComments returns the lines that are nothing but a comment and are too wide, where a tab is
// one column. Directives and addresses cannot be cut.
func wideComments(code string) (lines []string) {
	for line := range strings.Lines(code) {
		line = strings.TrimRight(line, "\r\n")
		comment := strings.TrimLeft(line, "\t ")
		if strings.HasPrefix(comment, "//") && utf8.RuneCountInString(line) > mostColumns && !directive.MatchString(comment) && !strings.Contains(comment, "://") {
			lines = append(lines, comment)
		}
	}
	return lines
}

func TestAWideCommentIsSeen(t *testing.T) {
	fits := "// " + strings.Repeat("x", mostColumns-3)
	for name, c := range map[string]struct {
		line string
		wide bool
	}{
		"as wide as may be":      {fits, false},
		"one more":               {fits + "x", true},
		"behind a tab":           {"\t" + fits, true},
		"of several bytes each":  {"// " + strings.Repeat("漢", mostColumns-3), false},
		"a directive":            {"//nolint:" + fits, false},
		"an address":             {fits + " https://example.org/", false},
		"code with a comment":    {"x := 1 " + fits, false},
		"code without a comment": {strings.Repeat("x", 2*mostColumns), false},
	} {
		if got := wideComments(c.line + "\n"); len(got) > 0 != c.wide {
			t.Errorf("%s: got %q, wide should be %v", name, got, c.wide)
		}
	}
}

// TestACellHoldsAPhrase checks the tables of all pages, in their rendered form.
func TestACellHoldsAPhrase(t *testing.T) {
	longer := map[string]int{
		"docs/config.md":   180, // a key's meaning, values and bounds
		"docs/packages.md": 450, // lists of packages
	}
	cells := 0
	for path, text := range pages(t) {
		most := cmp.Or(longer[path], 125)
		for line := range strings.Lines(withoutLinks(fenced.ReplaceAllString(text, ""))) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			for cell := range strings.SplitSeq(strings.Trim(strings.ReplaceAll(line, `\|`, "/"), "|\n"), "|") {
				cells++
				if n := utf8.RuneCountInString(strings.TrimSpace(cell)); n > most {
					t.Errorf("%s has a cell of %d characters, want %d at most:%s", path, n, most, cell)
				}
			}
		}
	}
	if cells < 2000 {
		t.Errorf("found %d cells, want more: the test does not see them", cells)
	}
}
