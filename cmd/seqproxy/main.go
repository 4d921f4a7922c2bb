// Command seqproxy is a proxy that speaks the MySQL protocol. It answers NEXTVAL('name') with keys
// and relays everything else to the MySQL servers behind it.
//
// Start at program.run, which tells the commands apart. serve.go runs the proxy, and wiring.go
// makes its options of the configuration.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"seqproxy/conf"
)

// The build sets version and commit.
var (
	version = "devel"
	commit  = "unknown"
)

const usage = `seqproxy gives unique keys to applications whose MySQL data is split over several servers.

Usage:
  seqproxy -config FILE                 run with a configuration file
  seqproxy -backend HOST:PORT -user NAME [-password-file FILE] [-listen HOST:PORT]
                                        run in front of one server, without a configuration
  seqproxy check -config FILE [-connect]
                                        say what is wrong with a configuration, and with the servers that it names
  seqproxy decode 'KIND' KEY ...        print the counters that keys of a kind were made of
  seqproxy health [-http HOST:PORT] [-ready]
                                        ask a proxy that runs here whether it lives (or is ready), for containers
  seqproxy example                      print a configuration with every key explained
  seqproxy import -config FILE -from KIND -schema NAME [-dry-run]
                                        make sequences of the counters of other systems: "seqproxy help import-kinds"
  seqproxy playground [flags]           start two private servers and a proxy in front, to try things out
  seqproxy schema [-config FILE]        print the statements that create the tables of a sequence server
  seqproxy version                      print version, commit and Go version
  seqproxy help [COMMAND | TOPIC]       list the topics, or explain one: alarms, errors, restore and others

"seqproxy COMMAND -h" lists the flags of a command. -flag and --flag are the same.
`

// commands are the first words that the program accepts.
const commands = "check, decode, example, health, import, playground, schema, version and help"

func main() {
	w := watchSignals()
	p := &program{out: os.Stdout, err: os.Stderr, hurry: w.hurry, reloads: w.hangups, rotations: w.rotations}
	err := p.run(w.stop, os.Args[1:])
	w.release()
	os.Exit(p.status(err))
}

// program is one run of the command.
type program struct {
	out io.Writer // results
	err io.Writer // errors, warnings and the log
	// hurry is done when the user has asked for the end a second time. Then the program waits for
	// nothing.
	hurry context.Context
	// reloads makes SIGHUP a wish to reload, from then on.
	reloads func() <-chan struct{}
	// rotations are wishes to open the log file again.
	rotations <-chan os.Signal
}

// say prints something for the user. An error does not matter.
func (p *program) say(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

// warn prints an error or a warning after the program's name.
func (p *program) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(p.err, "seqproxy: "+format+"\n", args...)
}

// usageError is a wrong command line. Its exit status is 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }

func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// run is the program without its exit status. It returns when the work is done, or when ctx is
// cancelled and everything has stopped.
func (p *program) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usagef("nothing to do\n\n%s", strings.TrimSuffix(usage, "\n"))
	}
	switch args[0] {
	case "check":
		return p.check(ctx, args[1:])
	case "decode":
		return p.decode(args[1:])
	case "example":
		return p.example(args[1:])
	case "health":
		return p.health(ctx, args[1:])
	case "import":
		return p.importCounters(ctx, args[1:])
	case "playground":
		return p.playground(ctx, args[1:])
	case "schema":
		return p.schema(args[1:])
	case "version", "-version", "--version":
		if err := plainCommand("version", args[1:], p.out); err != nil {
			return err
		}
		p.say("seqproxy %s (commit %s, %s %s/%s)\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return nil
	case "help", "-h", "-help", "--help":
		if len(args) > 1 && isCommand(args[1]) {
			return p.run(ctx, []string{args[1], "-h"})
		}
		if len(args) > 1 {
			text, is := topics()[args[1]]
			if !is {
				return usagef("there is no help on %q. There is some on the commands %s, and on topics.\n\n%s", args[1], commands, listTopics())
			}
			p.say("%s", text)
			return nil
		}
		p.say("%s\n", usage)
		newProxyCommand().help(p.out)
		p.say("\n%s", listTopics())
		return nil
	}
	return p.serve(ctx, args)
}

// isCommand reports whether help explains a word.
func isCommand(word string) bool {
	return !strings.HasPrefix(word, "-") && usageOf("seqproxy "+word) != ""
}

// status prints err, if any, and returns the exit status: 0 for success, 2 for a wrong command
// line, 1 for other errors.
func (p *program) status(err error) int {
	var wrong *usageError
	var file *conf.Error
	switch {
	case errors.Is(err, flag.ErrHelp): // help was printed
		return 0
	case errors.As(err, &file): // a line for each problem; each begins with the file
		p.warn("this configuration cannot be used:\n%v", file)
	case err != nil:
		p.warn("%s", strings.TrimRight(err.Error(), "\n"))
	}
	switch {
	case errors.As(err, &wrong):
		return 2
	case p.hurry.Err() != nil:
		p.warn("ended at once by a second signal")
		return 1
	case err != nil:
		return 1
	}
	return 0
}
