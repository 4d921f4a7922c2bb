package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// helpTexts are the short forms of the pages that an operator needs when the network is down: docs/operations.md,
// docs/sequence-servers.md and docs/errors.md. The first line of each says what it is about.
//
//go:embed help/*.txt
var helpTexts embed.FS

// topic returns the text of help on a topic; "" if there is none.
func topic(name string) string {
	text, err := fs.ReadFile(helpTexts, "help/"+name+".txt")
	if err != nil { // no name of a file is no topic either
		return ""
	}
	return string(text)
}

// listTopics writes what help there is beside that on commands.
func listTopics(out io.Writer) {
	files, err := fs.ReadDir(helpTexts, "help")
	if err != nil {
		panic(err) // it is a part of the program
	}
	_, _ = fmt.Fprint(out, "\nTopics of \"seqproxy help TOPIC\", for when no page can be reached:\n")
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".txt")
		about, _, _ := strings.Cut(topic(name), "\n")
		_, _ = fmt.Fprintf(out, "  %-9s %s\n", name, about)
	}
}
