package main

import (
	"os"
	"strings"
	"testing"
)

// keepPage compares a page with its template in testdata/pages. {{name}} there stands for a table
// of the program. With -update, as in make docs, it writes the page.
func keepPage(t *testing.T, name string, tables map[string]string) {
	t.Helper()
	page := repositoryFile(t, "cmd/seqproxy/testdata/pages/"+name)
	for table, text := range tables {
		mark := "{{" + table + "}}\n"
		if !strings.Contains(page, mark) {
			t.Errorf("testdata/pages/%s has no %s", name, mark)
		}
		page = strings.ReplaceAll(page, mark, text)
	}
	page = "<!-- Made by make docs, of the program and of cmd/seqproxy/testdata/pages/" + name + ". -->\n" + page
	if strings.Contains(page, "{{") {
		t.Errorf("testdata/pages/%s has a table that the program does not make", name)
	}
	if len(page) > 20_000 {
		t.Errorf("docs/%s has %d bytes, want 20,000 at most", name, len(page))
	}
	if *updatePages && !t.Failed() {
		if err := os.WriteFile("../../docs/"+name, []byte(page), 0o644); err != nil { //nolint:gosec // everybody reads it
			t.Fatal(err)
		}
	}
	if page != repositoryFile(t, "docs/"+name) {
		t.Errorf("docs/%s is not up to date: run make docs", name)
	}
}

// keepTable compares a table that stands between two marks on a page written by hand, or writes it
// there with -update.
func keepTable(t *testing.T, name, table, text string) {
	t.Helper()
	page, begins, ends := repositoryFile(t, "docs/"+name), "<!-- "+table+", made by make docs -->\n", "<!-- end -->\n"
	before, rest, found := strings.Cut(page, begins)
	is, after, closed := strings.Cut(rest, ends)
	if !found || !closed {
		t.Fatalf("docs/%s has no table between %sand %s", name, begins, ends)
	}
	if is == text {
		return
	}
	if !*updatePages {
		t.Fatalf("docs/%s is not up to date: run make docs", name)
	}
	if err := os.WriteFile("../../docs/"+name, []byte(before+begins+text+ends+after), 0o644); err != nil { //nolint:gosec // everybody reads it
		t.Fatal(err)
	}
}

// backQuote writes a list of names for a cell, followed by a space.
func backQuote(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "` "
}
