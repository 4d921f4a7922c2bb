package admin

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

// Configuration is what SHOW SEQPROXY shows of a configuration. Nobody writes to what it returns.
type Configuration interface {
	// Variables are all keys of the file, in its order.
	Variables() []Variable
	// Lines are the file that says the same.
	Lines() []string
	// Changes reads the file, as a reload would, and returns what differs there. The error is
	// ErrNoFile where there is none.
	Changes() ([]Change, error)
	// Users are those that it names.
	Users() Users
	// Shards are those that it names.
	Shards() []Shard
}

// Variable is a key of the file.
type Variable struct {
	Key     string // `max_connections`, `user["app"].schema`
	Value   string // as the file would have it; a password is redacted
	Default string // likewise; "" is none
	Counts  string // from when on a change counts
}

// Change is a key whose value in the file is not the one in force.
type Change struct {
	Key      string
	Old, New string // as the file would have them; "" is none
	Counts   string // from when on the new one counts
}

// ErrNoFile is the error of a proxy that was started without a file.
var ErrNoFile = errors.New("no file")

var variableColumns = []protocol.Column{
	word("name", 160),
	word("value", 1024),
	maybe("default", 128),
	word("change_counts", 16),
}

func variableRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	for _, v := range c.Configuration().Variables() {
		rows = append(rows, []any{v.Key, v.Value, unlessEmpty(v.Default), v.Counts})
	}
	return rows, nil
}

var configColumns = []protocol.Column{word("config", 1024)}

func configRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	for _, line := range c.Configuration().Lines() {
		rows = append(rows, []any{line})
	}
	return rows, nil
}

var diffColumns = []protocol.Column{
	word("name", 160),
	maybe("in_force", 1024),
	maybe("in_file", 1024),
	word("change_counts", 16),
}

// diffRows tells what a reload would find changed in the file.
func diffRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	changes, err := c.Configuration().Changes()
	switch {
	case errors.Is(err, ErrNoFile):
		return nil, protocol.NotSupported("SHOW SEQPROXY CONFIG DIFF needs a file, and this proxy was started without one")
	case err != nil:
		return nil, protocol.Errorf(mysql.ER_UNKNOWN_ERROR, "HY000", "seqproxy: the file cannot be used as it is: %v", err)
	}
	for _, d := range changes {
		rows = append(rows, []any{d.Key, unlessEmpty(d.Old), unlessEmpty(d.New), d.Counts})
	}
	return rows, nil
}
