package proxy_test

import (
	"flag"
	"os"
	"strings"
	"testing"
)

const insertIDsHead = `<!-- Made by make docs, of proxy/lastid_table_test.go. -->
# What each statement leaves as its last insert id

Tests run each statement directly and through the proxy, as text and prepared. A cell has the insert id of the answer,
which drivers tell, and then LAST_INSERT_ID() after the statement. *n* is the first number that the server generates in
the case, *k* the first that the proxy gives to the statement; *n+1* counts on. *=* is unchanged. A number of four
digits is an error. [Compatibility](compatibility.md#last_insert_id-and-the-insert-id) says what follows from it, and
what texts of several statements leave.

An empty cell is as with AUTO_INCREMENT. A key with NEXTVAL stands where the server would generate one. *Filled in* is a
[bound column](compatibility.md#keys-that-are-filled-in) with AUTO_INCREMENT; *without* it, if that differs.
`

// TestThePageOfInsertIDsIsMadeOfTheCases compares docs/last-insert-id.md with keyRows, or writes it
// with -update.
func TestThePageOfInsertIDsIsMadeOfTheCases(t *testing.T) {
	var page strings.Builder
	page.WriteString(insertIDsHead)
	for _, row := range keyRows {
		page.WriteString("\n**" + row.name + "**\n\n| statement | AUTO_INCREMENT | NEXTVAL | filled in |\n|---|---|---|---|\n")
		for _, s := range row.steps {
			filled := leaves(s.filled)
			if s.bare != "" {
				filled += "; without: " + leaves(s.bare)
			}
			page.WriteString("| `" + keyMark.ReplaceAllStringFunc(s.text, shown) + "` | " + leaves(s.want) + " | " + leaves(s.given) + " | " + strings.TrimPrefix(filled, "; ") + " |\n")
		}
	}
	const path = "../docs/last-insert-id.md"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil { //nolint:gosec // everybody reads it
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(is) != page.String() {
		t.Error("docs/last-insert-id.md is not up to date: run make docs")
	}
	if page.Len() > 20_000 {
		t.Errorf("docs/last-insert-id.md has %d bytes, want 20,000 at most", page.Len())
	}
}

// shown is how the page writes a mark of keyStep.text.
func shown(mark string) string {
	switch m := mark[1 : len(mark)-1]; {
	case m == "last":
		return "LAST_INSERT_ID()"
	case m[0] == '+' || m[0] == '-':
		return "n" + m
	case m == "id," || m == "k," || m == "id=":
		return ""
	default:
		return m
	}
}

// leaves is how the page writes what a statement leaves, such as keyStep.want.
func leaves(want string) string {
	if want == "" {
		return ""
	}
	if want == none {
		return "not run"
	}
	words := strings.Fields(want)
	for i, w := range words {
		switch {
		case w == "#":
			words[i] = "k"
		case w == "+0":
			words[i] = "n"
		case w[0] == '+' || w[0] == '-':
			words[i] = "n" + w
		}
	}
	return strings.Join(words, " ")
}
