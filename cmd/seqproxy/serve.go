package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"seqproxy/conf"
)

// serve runs the proxy until ctx is cancelled.
func (p *program) serve(ctx context.Context, args []string) (err error) {
	cfg, err := p.configure(args)
	if err != nil {
		return err
	}
	log, err := openLog(cfg.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, w := range cfg.Warnings() {
		log.Logger().Warn("configuration", zap.String("remark", w))
	}
	// Take SIGHUP as a wish to reload from here on: one that comes right after the line "listening"
	// must not end the proxy.
	reloads := p.reloads()
	r, err := start(ctx, cfg, func() (*conf.Config, error) { return p.configure(args) }, log)
	if err != nil {
		return err
	}
	r.notifyReady()
	return r.wait(ctx, p.hurry, reloads, p.rotations)
}

// proxyCommand has the flags of the proxy itself.
type proxyCommand struct {
	*command
	file, backend, user, passwordFile, listen, admin, http string
}

func newProxyCommand() *proxyCommand {
	c := &proxyCommand{command: newCommand("")}
	c.StringVar(&c.file, "config", "", "configuration `FILE`")
	c.StringVar(&c.backend, "backend", "", "`HOST:PORT` or unix:/PATH of the one server to stand in front of, instead of a configuration")
	c.StringVar(&c.user, "user", "", "`NAME` that clients log in with and the proxy uses at the server (with -backend)")
	c.StringVar(&c.passwordFile, "password-file", "", "`FILE` with the user's password; without it the password is empty (with -backend)")
	c.StringVar(&c.listen, "listen", "", "`HOST:PORT` to listen on; overrides the configuration (default 127.0.0.1:4306)")
	c.StringVar(&c.admin, "admin-listen", "", "`HOST:PORT` where admins ask the proxy itself, \"\" for none; overrides admin.listen (default 127.0.0.1:4307)")
	c.StringVar(&c.http, "http-listen", "", "`HOST:PORT` of metrics and health, \"\" for none; overrides http.listen (default 127.0.0.1:4308)")
	return c
}

// configure reads the configuration named by the arguments.
func (p *program) configure(args []string) (*conf.Config, error) {
	c := newProxyCommand()
	if err := c.parse(args, p.out); err != nil {
		return nil, err
	}
	given := make(map[string]bool)
	c.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if err := c.check(given); err != nil {
		return nil, err
	}
	if given["config"] {
		return fileConfig(c.file, c.overrides(given))
	}
	var password conf.Secret
	if given["password-file"] {
		read, warning, err := conf.ReadPasswordFile(c.passwordFile)
		if err != nil {
			return nil, fmt.Errorf("-password-file: %w", err)
		}
		if warning != "" {
			p.warn("-password-file: %s", warning)
		}
		password = read
	}
	cfg := conf.ForBackend(c.backend, c.user, password, c.listen)
	cfg.Admin.Listen, cfg.HTTP.Listen = secondAddress(cfg.Listen, cfg.Admin.Listen), secondAddress(cfg.Listen, cfg.HTTP.Listen)
	for _, override := range c.overrides(given) {
		override(cfg)
	}
	if err := cfg.Validate(); err != nil {
		return nil, inFlags(err)
	}
	return cfg, nil
}

// check refuses arguments that say nothing, or contradict each other.
func (c *proxyCommand) check(given map[string]bool) error {
	switch {
	case c.NArg() > 0 && len(given) > 0:
		return usagef("%q is too much: what is given to seqproxy itself are flags", c.Arg(0))
	case c.NArg() > 0:
		return usagef("%q is no command; the commands are %s; a configuration is run by -config FILE", c.Arg(0), commands)
	case given["config"] && given["backend"]:
		return usagef("-config and -backend exclude each other: with -config the servers stand in the file")
	case !given["config"] && !given["backend"]:
		return usagef("give -config FILE, or -backend HOST:PORT and -user NAME; \"seqproxy help\" shows all")
	case given["config"] && (given["user"] || given["password-file"]):
		return usagef("-user and -password-file go with -backend; with -config the users stand in the file")
	case given["backend"] && c.user == "":
		return usagef("-backend needs -user NAME: the account that clients log in with")
	}
	return nil
}

// overrides returns the changes that flags make to a configuration.
func (c *proxyCommand) overrides(given map[string]bool) (all []func(*conf.Config)) {
	if c.listen != "" {
		all = append(all, func(cfg *conf.Config) { cfg.Listen = c.listen })
	}
	if given["admin-listen"] {
		all = append(all, func(cfg *conf.Config) { cfg.Admin.Listen = c.admin })
	}
	if given["http-listen"] {
		all = append(all, func(cfg *conf.Config) { cfg.HTTP.Listen = c.http })
	}
	return all
}

// fileConfig loads a file and applies the flags.
func fileConfig(file string, overrides []func(*conf.Config)) (*conf.Config, error) {
	cfg, err := conf.Load(file)
	if err != nil || len(overrides) == 0 {
		return cfg, err
	}
	for _, override := range overrides {
		override(cfg)
	}
	if err := cfg.Validate(); err != nil { // the file alone was right
		return nil, inFlags(err)
	}
	return cfg, nil
}

// inFlags describes a problem with a configuration made from flags. It names the flag in place of
// the key, once.
func inFlags(err error) error {
	var wrong *conf.Error
	if !errors.As(err, &wrong) {
		return err
	}
	flagOf := map[string]string{"listen": "-listen", "admin.listen": "-admin-listen", "http.listen": "-http-listen", "user": "-user"}
	said := make(map[string]bool)
	var lines []string
	for _, problem := range wrong.Problems {
		key, text, ok := strings.Cut(problem, ": ")
		if ok {
			name := flagOf[key]
			switch {
			case strings.HasSuffix(key, ".address"):
				name = "-backend"
			case strings.HasSuffix(key, ".name"):
				name = "-user"
			}
			if name != "" {
				problem = name + " " + text
			}
		}
		if !said[problem] {
			said[problem] = true
			lines = append(lines, problem)
		}
	}
	return &usageError{errors.New(strings.Join(lines, "\n"))}
}
