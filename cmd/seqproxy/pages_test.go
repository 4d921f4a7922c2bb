package main

import (
	"cmp"
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
	if size > 79_000 || size < 50_000 {
		t.Errorf("the pages of docs written by hand have %d bytes, want 77,000 at most: say it once, or let the program say it", size)
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
