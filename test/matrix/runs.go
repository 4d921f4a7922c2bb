package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Commands is what a run has shown of the commands on one server.
type Commands struct {
	Server string // as [Server] names it
	Rows   []Row
}

// Row is a command, or one form of it, and what came of it.
type Row struct{ Name, Cell string }

// Client is what a run has shown of one client with one login on one server.
type Client struct {
	Client  string            `json:"client"`
	Version string            `json:"version"` // in the client's words
	Server  string            `json:"server"`
	Login   string            `json:"login"`
	Steps   map[string]string `json:"steps"` // "ok", or what was wrong
}

// Kind is what a run has shown of one client with one kind of keys on one server.
type Kind struct {
	Client string            `json:"client"`
	Server string            `json:"server"`
	Kind   string            `json:"kind"`  // its clause, "" of a plain sequence
	Cells  map[string]string `json:"cells"` // of each form: "yes", or the number of the error
}

func (c Client) ok() bool {
	for _, result := range c.Steps {
		if result != "ok" {
			return false
		}
	}
	return len(c.Steps) > 0
}

// Server is what the page calls a server: "MySQL 9.7" for 9.7.4.
func Server(flavour, version string) string {
	parts := strings.SplitN(version, ".", 3)
	return flavour + " " + strings.Join(parts[:min(2, len(parts))], ".")
}

// Out is the directory for what runs have shown, "" where that is not kept.
func Out() string { return os.Getenv("SEQPROXY_MATRIX_OUT") }

// Write keeps c in a file of its own under dir.
func (c Commands) Write(dir string) error { return write(dir, "command", c, c.Server) }

// Write keeps c in a file of its own under dir.
func (c Client) Write(dir string) error { return write(dir, "client", c, c.Client, c.Login, c.Server) }

// Write keeps k in a file of its own under dir.
func (k Kind) Write(dir string) error { return write(dir, "kind", k, k.Client, k.Kind, k.Server) }

// Unsteady keeps what a test has found once and not again, for the end of the whole run. Without a
// directory it does nothing.
func Unsteady(text string) error {
	if Out() == "" {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(Out(), "unsteady"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("keep what was found once: %w", err)
	}
	_, err = f.WriteString(strings.TrimSpace(text) + "\n")
	return errors.Join(err, f.Close())
}

func write(dir, kind string, what any, names ...string) error {
	text, err := json.MarshalIndent(what, "", "\t")
	if err != nil {
		return fmt.Errorf("keep what a run has shown: %w", err)
	}
	file := strings.ReplaceAll(kind+"-"+strings.Join(names, "-")+".json", " ", "-")
	if err := os.WriteFile(filepath.Join(dir, file), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("keep what a run has shown: %w", err)
	}
	return nil
}

// Runs is everything that runs have left in a directory, in the order of names.
type Runs struct {
	Commands []Commands
	Clients  []Client
	Kinds    []Kind
}

// Read returns what runs have left in a directory.
func Read(dir string) (r Runs, err error) {
	if r.Commands, err = read[Commands](dir, "command"); err != nil {
		return r, err
	}
	if r.Clients, err = read[Client](dir, "client"); err != nil {
		return r, err
	}
	r.Kinds, err = read[Kind](dir, "kind")
	return r, err
}

func read[T any](dir, kind string) (all []T, err error) {
	files, err := filepath.Glob(filepath.Join(dir, kind+"-*.json"))
	if err != nil {
		return nil, fmt.Errorf("runs in %s: %w", dir, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("runs in %s: %w", dir, err)
		}
		var one T
		if err := json.Unmarshal(text, &one); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, one)
	}
	return all, nil
}
