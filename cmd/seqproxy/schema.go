package main

import (
	"strings"

	"seqproxy/conf"
	"seqproxy/internal/inspect"
	"seqproxy/sequence"
)

// schema prints the statements that create the tables of a sequence server, for accounts without
// CREATE.
func (p *program) schema(args []string) error {
	c := newCommand("schema")
	file := c.String("config", "", "configuration `FILE` with schema, table and account; without it, those of -backend")
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if err := noMore("schema [-config FILE]", c.Args()); err != nil {
		return err
	}
	cfg := conf.Default()
	servers, table := []conf.SequenceServer{{Database: cfg.Sequence.Database, User: "seqproxy"}}, cfg.Sequence.Table
	if *file != "" {
		loaded, err := conf.Load(*file)
		if err != nil {
			return err
		}
		servers, table = loaded.Sequence.Servers, loaded.Sequence.Table
	}
	said := make(map[string]bool)
	for i := range servers {
		at := &servers[i]
		account := inspect.Account{User: at.User, Host: "%"}.String()
		text := strings.Join(append(sequence.Schema(at.Database, table), sequence.GrantsOnTables(at.Database, account)), ";\n") + ";\n"
		if !said[text] { // most servers have the same
			said[text] = true
			p.say("%s", text)
		}
	}
	return nil
}
