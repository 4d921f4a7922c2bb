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
)

// helpTexts are the short forms of the pages that an operator needs when the network is down: docs/operations.md
// and docs/sequence-servers.md. The first line of each says what it is about.
//
//go:embed help/*.txt
var helpTexts embed.FS

// topics returns the texts of help by topic: those of the files, and the errors and events that the pages have, too.
func topics() map[string]string {
	all := map[string]string{"errors": helpOnErrors(), "events": helpOnEvents()}
	files, err := fs.ReadDir(helpTexts, "help")
	if err != nil {
		panic(err) // it is a part of the program
	}
	for _, file := range files {
		text, err := fs.ReadFile(helpTexts, "help/"+file.Name())
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(file.Name(), ".txt")] = string(text)
	}
	return all
}

// listTopics returns what help there is beside that on commands.
func listTopics() string {
	var out strings.Builder
	out.WriteString("Topics of \"seqproxy help TOPIC\", for when no page can be reached:\n")
	all := topics()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		about, _, _ := strings.Cut(all[name], "\n")
		_, _ = fmt.Fprintf(&out, "  %-9s %s\n", name, about)
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

// In the pages a link in parentheses leads to more, and any other has words that mean something.
var (
	linkToMore   = regexp.MustCompile(`,? \(\[[^]]*\]\([^)]*\)\)`)
	markdownLink = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
)

// writeEntry writes a name and, set in, a text of the pages without its links, in lines of 80 columns.
func writeEntry(out io.Writer, name, text string) {
	line, width := "  "+name, 80
	text = markdownLink.ReplaceAllString(linkToMore.ReplaceAllString(text, ""), "$1")
	for word := range strings.FieldsSeq(strings.ReplaceAll(text, "`", "")) {
		if len(line)+1+len(word) > width {
			_, _ = fmt.Fprintln(out, line)
			line = "     "
		}
		line += " " + word
	}
	_, _ = fmt.Fprintln(out, line)
}
