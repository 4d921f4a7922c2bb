package main

import (
	"fmt"
	"io"
	"strings"

	"seqproxy/conf"
)

// check loads a configuration and says what is wrong with it: every problem, each
// on a line with file, key and what is allowed. It connects to nothing.
func (p *program) check(args []string) error {
	c := newCommand("check")
	file := c.String("config", "", "configuration `FILE`")
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if err := noMore("check -config FILE", c.Args()); err != nil {
		return err
	}
	if *file == "" {
		return usagef("check needs -config FILE")
	}
	cfg, err := conf.Load(*file)
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings() {
		p.say("warning: %s\n", w)
	}
	shards := "no shard, so keys only"
	switch n := len(cfg.Shards); {
	case n == 1:
		shards = "one shard, " + cfg.DefaultShard
	case n > 1:
		shards = fmt.Sprintf("%d shards, by default %s", n, cfg.DefaultShard)
	}
	users := "one user"
	switch n := len(cfg.Users); {
	case n == 0:
		users = "the users of the server"
	case n > 1:
		users = fmt.Sprintf("%d users", n)
	}
	if len(cfg.Users) > 0 && cfg.UnknownUser == conf.UnknownUserBackend {
		users += " and those of the server"
	}
	p.say("%s is right: listens on %s, %s, %s, sequence table %s.%s on %s\n", *file, cfg.Listen, users, shards,
		cfg.Sequence.Servers[0].Database, cfg.Sequence.Table, holders(&cfg.Sequence))
	return nil
}

// holders says where the sequence table is.
func holders(s *conf.Sequence) string {
	if len(s.Servers) == 1 {
		return joined(s.Servers[0].Addresses())
	}
	var all []conf.Address
	for i := range s.Servers {
		all = append(all, s.Servers[i].Addresses()...)
	}
	return fmt.Sprintf("%d servers (%s)", len(s.Servers), joined(all))
}

// joined writes addresses one after the other.
func joined(addresses []conf.Address) string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = string(a)
	}
	return strings.Join(all, ", ")
}

// example prints the commented sample configuration.
func (p *program) example(args []string) error {
	if err := noMore("example", args); err != nil {
		return err
	}
	_, err := io.WriteString(p.out, strings.TrimLeft(conf.Example, "\n"))
	return err
}
