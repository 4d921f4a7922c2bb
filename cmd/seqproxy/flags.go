package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// command has the flags of a command.
type command struct {
	*flag.FlagSet
	name string // "seqproxy playground"
}

// newCommand makes the flag set of a command. "" is the proxy itself.
func newCommand(name string) *command {
	name = strings.TrimSpace("seqproxy " + name)
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are printed once, at the top
	return &command{fs, name}
}

// parse reads the flags. The error is a *usageError, or flag.ErrHelp after help was written to out.
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

// given reports whether the user has set a flag.
func (c *command) given(name string) (typed bool) {
	c.Visit(func(f *flag.Flag) { typed = typed || f.Name == name })
	return typed
}

// help describes the command and lists its flags.
func (c *command) help(out io.Writer) {
	if about := usageOf(c.name); about != "" {
		_, _ = fmt.Fprintf(out, "%s\n", about)
	}
	n := 0
	c.VisitAll(func(*flag.Flag) { n++ })
	if n == 0 {
		_, _ = fmt.Fprintf(out, "%s has no flags.\n", c.name)
		return
	}
	_, _ = fmt.Fprintf(out, "Flags of %s:\n", c.name)
	c.SetOutput(out)
	c.PrintDefaults()
}

// usageOf returns the lines of the usage about a command such as "seqproxy check". It returns
// nothing for the proxy itself.
func usageOf(name string) string {
	var about strings.Builder
	in := false
	for line := range strings.Lines(usage) {
		switch {
		case strings.HasPrefix(line, "  seqproxy "):
			in = strings.HasPrefix(line, "  "+name+" ") && name != "seqproxy"
		case strings.TrimSpace(line) == "":
			in = false
		}
		if in {
			about.WriteString(line)
		}
	}
	return about.String()
}

// plainCommand reads the command line of a command without flags and arguments. The error is that
// of parse.
func plainCommand(name string, args []string, out io.Writer) error {
	c := newCommand(name)
	if err := c.parse(args, out); err != nil {
		return err
	}
	return noMore(name, c.Args())
}

// noMore refuses further arguments.
func noMore(command string, args []string) error {
	if len(args) > 0 {
		return usagef("%q is too much: seqproxy %s takes no further argument", args[0], command)
	}
	return nil
}
