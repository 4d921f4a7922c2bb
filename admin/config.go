package admin

import (
	"errors"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

// Configuration is a configuration as SHOW SEQPROXY shows it. Results are read-only.
type Configuration interface {
	// Variables returns all keys of the file, in order.
	Variables() []Variable
	// Lines returns a file with the same contents.
	Lines() []string
	// Changes reads the file, as a reload would, and returns the differences. The error is
	// ErrNoFile if there is no file.
	Changes() ([]Change, error)
	// Users returns the configured users.
	Users() Users
	// Shards returns the configured shards.
	Shards() []Shard
}

// Variable is a key of the file.
type Variable struct {
	Key     string // `max_connections`, `user["app"].schema`
	Value   string // as written in the file; a password is redacted
	Default string // as written in the file; "" means none
	Counts  string // when a change takes effect
}

// Change is a key whose value in the file differs from the value in force.
type Change struct {
	Key      string
	Old, New string // as written in the file; "" means none
	Counts   string // when the new value takes effect
}

// ErrNoFile says that the proxy was started without a file.
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

// diffRows lists the changes that a reload would make.
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
