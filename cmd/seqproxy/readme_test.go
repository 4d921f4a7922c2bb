package main

import (
	"strings"
	"testing"
)

// readmeSession returns the commands of README.md in order, each with its output.
func readmeSession(t *testing.T) (session [][2]string) {
	t.Helper()
	_, rest, _ := strings.Cut(repositoryFile(t, "README.md"), "\n```console\n")
	block, _, _ := strings.Cut(rest, "```\n")
	for _, entry := range strings.Split(block, "$ ")[1:] {
		command, output, _ := strings.Cut(entry, "\n")
		session = append(session, [2]string{command, output})
	}
	if len(session) < 3 {
		t.Fatalf("README.md has %d commands, want more", len(session))
	}
	return session
}
