package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"

	"seqproxy/admin"
)

// helpTexts are the short forms of docs/operations.md and docs/members.md, for an operator
// without a network. The first line of each is its title.
//
//go:embed help/*.txt
var helpTexts embed.FS

// topics returns the texts of help by topic: the files, and tables of the pages.
func topics() map[string]string {
	all := map[string]string{"errors": helpOnErrors(), "events": helpOnEvents(), "import-kinds": helpOnImportKinds(), "jumped": helpOnGaps(), "questions": helpOnQuestions(), "statements": helpOnStatements()}
	files, err := fs.ReadDir(helpTexts, "help")
	if err != nil {
		panic(err) // the files are embedded in the program
	}
	for _, file := range files {
		text, err := fs.ReadFile(helpTexts, "help/"+file.Name())
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(file.Name(), ".txt")] = string(text)
	}
	all["alarms"] += helpOnAlarms()
	all["lost"] += helpOnLost()
	all["restore"] += helpOnSteps(restoreSteps)
	return all
}

// listTopics lists the topics other than commands.
func listTopics() string {
	var out strings.Builder
	out.WriteString("Topics of \"seqproxy help TOPIC\", for when no page can be reached:\n")
	all := topics()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		about, _, _ := strings.Cut(all[name], "\n")
		_, _ = fmt.Fprintf(&out, "  %-12s %s\n", name, about)
	}
	return out.String()
}

func helpOnAlarms() string {
	var out strings.Builder
	for _, a := range alarmTexts {
		writeEntry(&out, strings.Join(a.alerts, ", "), a.meaning)
		wrap(&out, "      do: ", withoutLinks(a.do))
	}
	return out.String()
}

func helpOnLost() string {
	var out strings.Builder
	for _, l := range lostMembers {
		writeEntry(&out, strings.ReplaceAll(l.lost, "`", ""), l.run)
	}
	out.WriteString(`
The only one: keys come from memory meanwhile, as long as seconds_left says.
With a backup: "seqproxy help restore". Without one:
`)
	return out.String() + helpOnSteps(onlyOneSteps)
}

func helpOnSteps(steps []string) string {
	var out strings.Builder
	for i, step := range steps {
		wrap(&out, fmt.Sprintf("  %d. ", i+1), withoutLinks(step))
	}
	return out.String()
}

func helpOnImportKinds() string {
	var out strings.Builder
	out.WriteString("what import makes a sequence of, where it begins, and its CACHE\n\n")
	for _, i := range importTexts {
		writeEntry(&out, "-from "+i.kind, "each "+i.counter+"; from "+i.begins+"; CACHE "+i.cache)
	}
	return out.String()
}

func helpOnGaps() string {
	var out strings.Builder
	out.WriteString("why keys jump, and how far\n\nKeys are unique, but have gaps. Why they jump, how far, and how to see it:\n\n")
	for _, g := range gapTexts {
		writeEntry(&out, g.cause, g.far+" ("+g.see+")")
	}
	out.WriteString(`
A segment lasts for 15 minutes (outage_cover) at the rate of the last minute.
Smaller gaps: ALTER SEQUENCE name CACHE n, or OUTAGE_COVER seconds. Then keys
last for a shorter time without the sequence server. ORDER keeps none in
memory. How many were lost, by reason:
  SHOW SEQPROXY STATUS LIKE 'sequence_numbers_unused%'
`)
	return out.String()
}

func helpOnQuestions() string {
	var out strings.Builder
	out.WriteString("what a DBA asks, and the command that answers\n\n")
	for _, q := range questionTexts {
		_, _ = fmt.Fprintf(&out, "  %s\n      %s\n", strings.ReplaceAll(q.question, "`", ""), q.ask)
	}
	return out.String()
}

func helpOnStatements() string {
	var out strings.Builder
	out.WriteString("statements to the proxy itself, also with every server down\n\n")
	out.WriteString("At the admin address: mariadb -h 127.0.0.1 -P 4307 -u ADMIN -p\n\n")
	for _, s := range admin.Statements() {
		writeEntry(&out, s[0], s[2])
	}
	return out.String()
}

func helpOnErrors() string {
	var out strings.Builder
	out.WriteString("errors of the proxy, with cause and cure\n")
	for _, s := range errorTexts {
		out.WriteString("\n" + s.section + "\n")
		for _, e := range s.errors {
			writeEntry(&out, fmt.Sprint(e.code), e.cause+": "+e.cure)
		}
	}
	for _, s := range wordTexts {
		out.WriteString("\n" + s.section + "\n")
		for _, e := range s.errors {
			writeEntry(&out, `"`+e.words+`"`, e.cause+": "+e.cure)
		}
	}
	return out.String()
}

func helpOnEvents() string {
	var out strings.Builder
	out.WriteString("events of the log, with what to do\n\n")
	for _, e := range eventTexts {
		writeEntry(&out, strings.Join(e.events, ", "), e.meaning)
	}
	return out.String()
}

// A link in parentheses only leads to more. Any other link has words with a meaning.
var (
	linkToMore   = regexp.MustCompile(`,? \(\[[^]]*\]\([^)]*\)\)`)
	markdownLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// withoutLinks removes the links of a page's text, for a terminal.
func withoutLinks(text string) string {
	return strings.ReplaceAll(markdownLink.ReplaceAllString(linkToMore.ReplaceAllString(text, ""), "$1"), "`", "")
}

// writeEntry writes a name and an indented text. A long name gets lines of its own.
func writeEntry(out io.Writer, name, text string) {
	if len(name) > 4 {
		wrap(out, "  ", name)
		wrap(out, "      ", withoutLinks(text))
		return
	}
	wrap(out, "  "+name+"  ", withoutLinks(text))
}

// wrap writes words in lines of 80 columns.
func wrap(out io.Writer, before, text string) {
	wrapAt(out, 80, before, text)
}

// wrapAt writes words in lines of the given width. before starts the first line, and the others are
// indented by its length.
func wrapAt(out io.Writer, columns int, before, text string) {
	line, rest := before, strings.Repeat(" ", len(before))
	for i, word := range strings.Fields(text) {
		switch {
		case i > 0 && len(line)+1+len(word) > columns:
			_, _ = fmt.Fprintln(out, line)
			line = rest
		case i > 0:
			line += " "
		}
		line += word
	}
	_, _ = fmt.Fprintln(out, line)
}
