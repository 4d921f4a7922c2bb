package main

import (
	"context"
	"net"
	"os"
	"os/exec"
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

// TestTheSessionInTheReadmeIsWhatComesOut runs it in a new playground, on another port.
func TestTheSessionInTheReadmeIsWhatComesOut(t *testing.T) {
	if _, err := exec.LookPath("mariadb"); err != nil {
		t.Skip("the session is one with MariaDB's client:", err)
	}
	tmp := t.TempDir()
	p := beginIn(t, []string{"TMPDIR=" + tmp}, "playground", "--listen", "127.0.0.1:0")
	p.await(ready)
	_, port, err := net.SplitHostPort(playgroundAddress(t, p))
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(readme(t, "console"), "$ ")[1:]
	if len(commands) < 3 {
		t.Fatalf("found %d commands, want more", len(commands))
	}
	for _, entry := range commands {
		command, want, _ := strings.Cut(entry, "\n")
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		cmd := exec.CommandContext(ctx, "sh", "-c", strings.Replace(command, "-P 4306 ", "-P "+port+" ", 1))
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp}
		got, err := cmd.CombinedOutput()
		cancel()
		if err != nil || string(got) != want {
			t.Errorf("%s\ngot (%v)\n%s\nwant\n%s", command, err, got, want)
		}
	}
	p.signal(os.Interrupt)
	p.end(0)
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
