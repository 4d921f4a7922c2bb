package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// command is the flags of a command.
type command struct {
	*flag.FlagSet
	name string // "seqproxy playground"
}

// newCommand makes the flag set of a command; "" is the proxy itself.
func newCommand(name string) *command {
	name = strings.TrimSpace("seqproxy " + name)
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are said once, at the top
	return &command{fs, name}
}

// parse reads the flags. The error is a *usageError, or flag.ErrHelp when help was
// asked for and written to out.
func (c *command) parse(args []string, out io.Writer) error {
	err := c.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.help(out)
		return err
	case err != nil:
		return usagef("%w; \"%s -h\" lists the flags", err, c.name)
	}
	return nil
}

// given says whether a flag was typed.
func (c *command) given(name string) (typed bool) {
	c.Visit(func(f *flag.Flag) { typed = typed || f.Name == name })
	return typed
}

// help lists the flags.
func (c *command) help(out io.Writer) {
	_, _ = fmt.Fprintf(out, "Flags of %s:\n", c.name)
	c.SetOutput(out)
	c.PrintDefaults()
}

// noMore refuses arguments that a command does not take.
func noMore(command string, args []string) error {
	if len(args) > 0 {
		return usagef("%q is too much: seqproxy %s takes no further argument", args[0], command)
	}
	return nil
}
