package main

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"seqproxy/statement/ddl"
)

// helpTopics are the texts of help, by topic.
func helpTopics(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	files, err := fs.ReadDir(helpTexts, "help")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".txt")
		all[name] = topic(name)
	}
	for _, name := range []string{"alarms", "errors", "lost", "restore"} {
		if all[name] == "" {
			t.Fatalf("there is no help on %s", name)
		}
	}
	return all
}

func TestHelpPrintsEachTopicAndListsThem(t *testing.T) {
	list := begin(t, "help")
	list.end(0)
	for name, text := range helpTopics(t) {
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

// TestHelpNamesWhatThereIs compares the statements, alerts and errors in the texts of help with those of the program and the pages.
func TestHelpNamesWhatThereIs(t *testing.T) {
	all := helpTopics(t)
	joined := make([]string, 0, len(all))
	for _, text := range all {
		joined = append(joined, text)
	}
	text := strings.Join(joined, "\n")

	words := regexp.MustCompile(`\b(?:SHOW )?SEQPROXY(?: [A-Z]{3,})+`)
	found := 0
	for _, said := range words.FindAllString(text, -1) {
		found++
		said, is := strings.TrimSuffix(said, " LIKE"), false
		for _, p := range ddl.ProxyStatements() {
			is = is || strings.HasPrefix(strings.NewReplacer("[", "", "]", "").Replace(p.Text), said)
		}
		if !is {
			t.Errorf("help has %q, which is no statement", said)
		}
	}
	if found < 15 {
		t.Errorf("found %d statements in help, want more", found)
	}

	rules := repositoryFile(t, "deploy/prometheus/alerts.yml")
	alerts := regexp.MustCompile(`alert: (Seqproxy\w+)`).FindAllStringSubmatch(rules, -1)
	for _, alert := range alerts {
		if !strings.Contains(all["alarms"], alert[1]) {
			t.Errorf("help alarms does not have %s", alert[1])
		}
	}
	for _, name := range regexp.MustCompile(`Seqproxy\w+`).FindAllString(all["alarms"], -1) {
		if !strings.Contains(rules, "alert: "+name+"\n") {
			t.Errorf("help alarms has %s, which is no alert", name)
		}
	}

	page := repositoryFile(t, "docs/errors.md")
	for _, m := range regexp.MustCompile(`(?m)^  (\d{4})  `).FindAllStringSubmatch(all["errors"], -1) {
		if !strings.Contains(page, "\n| "+m[1]+" | ") && !strings.Contains(page, " "+m[1]+" ") {
			t.Errorf("help errors has %s, and docs/errors.md does not", m[1])
		}
	}
}
