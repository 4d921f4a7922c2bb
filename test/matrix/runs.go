package matrix

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Commands is the result of a run of all commands on one server.
type Commands struct {
	Server string // as [Server] names it
	Rows   []Row
}

// Row is a command, or a form of it, and its result.
type Row struct{ Name, Cell string }

// Client is the result of a run of one client with one login on one server.
type Client struct {
	Client  string            `json:"client"`
	Version string            `json:"version"` // in the client's words
	Server  string            `json:"server"`
	Login   string            `json:"login"`
	Steps   map[string]string `json:"steps"` // "ok", or what was wrong
}

// Kind is the result of a run of one client with one kind of keys on one server.
type Kind struct {
	Client string            `json:"client"`
	Server string            `json:"server"`
	Kind   string            `json:"kind"`  // its clause, "" of a plain sequence
	Cells  map[string]string `json:"cells"` // of each form: "yes", "none" or the number of the error
}

func (c Client) ok() bool {
	for _, result := range c.Steps {
		if result != "ok" {
			return false
		}
	}
	return len(c.Steps) > 0
}

// Server returns the page's name of a server: "MySQL 9.7" for 9.7.4.
func Server(flavour, version string) string {
	parts := strings.SplitN(version, ".", 3)
	return flavour + " " + strings.Join(parts[:min(2, len(parts))], ".")
}

// Out returns the directory for results, or "" if they are not kept.
func Out() string { return os.Getenv("SEQPROXY_MATRIX_OUT") }

// Write writes c to its own file in dir.
func (c Commands) Write(dir string) error { return write(dir, "command", c, c.Server) }

// Write writes c to its own file in dir.
func (c Client) Write(dir string) error { return write(dir, "client", c, c.Client, c.Login, c.Server) }

// Write writes k to its own file in dir.
func (k Kind) Write(dir string) error { return write(dir, "kind", k, k.Client, k.Kind, k.Server) }

// Unsteady records a failure that did not occur again, for the end of the whole run. Without a
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

// Runs are all results in a directory, ordered by name.
type Runs struct {
	Commands []Commands
	Clients  []Client
	Kinds    []Kind
}

// Read reads the results in a directory.
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
