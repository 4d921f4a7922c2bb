package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"seqproxy/conf"
	"seqproxy/internal/inspect"
)

// check loads a configuration and lists all problems, each on a line with file, key and what is
// allowed. With -connect it also examines the servers.
func (p *program) check(ctx context.Context, args []string) error {
	c := newCommand("check")
	file := c.String("config", "", "configuration `FILE`")
	connect := c.Bool("connect", false, "reach every server, and say what is wrong there and what mends it; changes nothing on them")
	strict := c.Bool("strict", false, "exit status 1 for warnings, too")
	asJSON := c.Bool("json", false, "one JSON object instead of lines")
	timeout := c.Duration("timeout", 30*time.Second, "`TIME` for all servers together (with -connect)")
	if err := c.parse(args, p.out); err != nil {
		return err
	}
	if *file == "" && c.NArg() == 1 {
		return usagef("check needs -config FILE, as in seqproxy check -config %s", c.Arg(0))
	}
	if err := noMore("check -config FILE", c.Args()); err != nil {
		return err
	}
	switch {
	case *file == "":
		return usagef("check needs -config FILE")
	case *timeout <= 0:
		return usagef("-timeout must be above 0, is %v", *timeout)
	}
	cfg, err := conf.Load(*file)
	if err != nil {
		return p.badConfig(*file, err, *asJSON)
	}
	var findings []inspect.Finding
	for _, w := range cfg.Warnings() {
		findings = append(findings, inspect.Finding{Level: inspect.Warning, Where: "configuration", Check: "file", Text: w})
		if !*asJSON {
			p.say("warning: %s\n", w)
		}
	}
	if !*asJSON {
		p.say("%s is right: %s\n", *file, summary(cfg))
	}
	printed := len(findings)
	if *connect {
		ctx, stop := context.WithTimeout(ctx, *timeout)
		defer stop()
		found, err := checkServers(ctx, cfg)
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	if *asJSON {
		if err := newReport(*file, findings).writeJSON(p.out); err != nil {
			return err
		}
	} else {
		newReport(*file, findings[printed:]).writeText(p.out)
	}
	return newReport(*file, findings).err(*strict)
}

// badConfig reports a configuration that cannot be used.
func (p *program) badConfig(file string, err error, asJSON bool) error {
	var wrong *conf.Error
	if !asJSON || !errors.As(err, &wrong) {
		return err
	}
	var findings []inspect.Finding
	for _, problem := range wrong.Problems {
		findings = append(findings, inspect.Finding{Level: inspect.Wrong, Where: "configuration", Check: "file", Text: problem})
	}
	if errWrite := newReport(file, findings).writeJSON(p.out); errWrite != nil {
		return errWrite
	}
	return err
}

// summary describes a configuration in one line.
func summary(cfg *conf.Config) string {
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
	return fmt.Sprintf("listens on %s, %s, %s, sequence table %s.%s on %s", cfg.Listen, users, shards,
		cfg.Sequence.Servers[0].Database, cfg.Sequence.Table, tableAt(&cfg.Sequence))
}

// tableAt says where the sequence table is.
func tableAt(s *conf.Sequence) string {
	if len(s.Servers) == 1 {
		return joined(s.Servers[0].Addresses())
	}
	var all []conf.Address
	for i := range s.Servers {
		all = append(all, s.Servers[i].Addresses()...)
	}
	return fmt.Sprintf("%d servers (%s)", len(s.Servers), joined(all))
}

// joined joins addresses for people.
func joined(addresses []conf.Address) string {
	all := make([]string, len(addresses))
	for i, a := range addresses {
		all[i] = string(a)
	}
	return strings.Join(all, ", ")
}

// example prints the commented sample configuration.
func (p *program) example(args []string) error {
	if err := plainCommand("example", args, p.out); err != nil {
		return err
	}
	_, err := io.WriteString(p.out, strings.TrimLeft(conf.Example, "\n"))
	return err
}
