package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"seqproxy/conf"
)

// readme returns the first block of a kind in README.md.
func readme(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```"+kind+"\n")
	block, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatalf("README.md has no block of kind %q", kind)
	}
	return block
}

// readmeSession returns the commands of README.md, in order, each with what it prints.
func readmeSession(t *testing.T) (session [][2]string) {
	t.Helper()
	for _, entry := range strings.Split(readme(t, "console"), "$ ")[1:] {
		command, output, _ := strings.Cut(entry, "\n")
		session = append(session, [2]string{command, output})
	}
	if len(session) < 3 {
		t.Fatalf("README.md has %d commands, want more", len(session))
	}
	return session
}

func TestTheConfigurationInTheReadmeIsRight(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"seqproxy.toml": readme(t, "toml"), "app.password": "a", "sequence.password": "s"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := conf.Load(filepath.Join(dir, "seqproxy.toml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings()) > 0 || len(c.Shards) != 2 {
		t.Errorf("got %d shards and warnings %q, want 2 and none", len(c.Shards), c.Warnings())
	}
}
