package main

import (
	"regexp"
	"strings"
	"testing"

	"seqproxy/statement/ddl"
)

func TestHelpPrintsEachTopicAndListsThem(t *testing.T) {
	list := begin(t, "help")
	list.end(0)
	for name, text := range topics() {
		runs(t, 0, text, "", "help", name)
		about, _, _ := strings.Cut(text, "\n")
		if !regexp.MustCompile(`(?m)^  ` + name + ` +` + regexp.QuoteMeta(about) + `$`).MatchString(list.stdout()) {
			t.Errorf("help does not list %s: %s", name, about)
		}
		if isCommand(name) {
			t.Errorf("%s is a command, too", name)
		}
		for line := range strings.Lines(text) {
			if len(line) > 81 {
				t.Errorf("help %s has a line of %d columns: %s", name, len(line)-1, line)
			}
		}
	}
}

// TestHelpNamesWhatThereIs compares the statements in the texts of help with the program's.
func TestHelpNamesWhatThereIs(t *testing.T) {
	all := topics()
	joined := make([]string, 0, len(all))
	for _, text := range all {
		joined = append(joined, text)
	}
	text := strings.Join(joined, "\n")

	words := regexp.MustCompile(`\b(?:SHOW )?SEQPROXY(?: [A-Z]{3,})+`)
	found := 0
	for _, phrase := range words.FindAllString(text, -1) {
		found++
		statement, is := strings.TrimSuffix(phrase, " LIKE"), false
		for _, p := range ddl.ProxyStatements() {
			is = is || strings.HasPrefix(strings.NewReplacer("[", "", "]", "").Replace(p.Text), statement)
		}
		if !is {
			t.Errorf("help has %q, which is no statement", statement)
		}
	}
	if found < 15 {
		t.Errorf("found %d statements in help, want more", found)
	}
}

func TestAnUnknownTopicIsAnErrorThatListsTheTopics(t *testing.T) {
	p := begin(t, "help", "nonsense")
	p.end(2)
	if want := "seqproxy: there is no help on \"nonsense\". There is some on the commands " + commands + ", and on topics.\n\n" + listTopics(); p.stderr() != want {
		t.Errorf("got %q, want %q", p.stderr(), want)
	}
	if p.stdout() != "" {
		t.Errorf("stdout: got %q", p.stdout())
	}
}
