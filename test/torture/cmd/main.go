// Command cmd tortures seqproxy: see package seqproxy/test/torture. It exits with 1 if something is
// wrong. Start at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"seqproxy/internal/mysqld"
	"seqproxy/internal/planted"
	"seqproxy/test/torture"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

// run tortures once and prints the report.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o := torture.Options{Progress: stderr}
	fs := flag.NewFlagSet("torture", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Uint64Var(&o.Seed, "seed", rand.Uint64N(1_000_000), "chooses the faults and their victims")
	fs.DurationVar(&o.Time, "time", 3*time.Minute, "how long faults are made")
	fs.IntVar(&o.Proxies, "proxies", 3, "how many proxies there are")
	fs.StringVar(&o.Estate, "estate", "", "what the sequence servers are: "+strings.Join(torture.Estates(), ", ")+" (default: the seed chooses)")
	fs.DurationVar(&o.Pause, "pause", 20*time.Millisecond, "between two requests of a client")
	fs.StringVar(&o.Seqproxy, "seqproxy", "", "the program (default: build the one of this repository, with a clock that can be set)")
	server := fs.String("server", os.Getenv("SEQPROXY_TEST_SERVER"), "the server program (default: the one that is found)")
	only := fs.String("only", "", "make only the faults whose names match this regular expression")
	logs := fs.String("logs", "", "an existing directory: keep the proxies' logs there")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if o.Only, err = regexp.Compile(*only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if o.Server, err = mysqld.Find(*server); err != nil {
		return err
	}
	if o.Dir, err = os.MkdirTemp("", "seqproxy-torture-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	if o.Seqproxy == "" {
		o.Seqproxy = filepath.Join(o.Dir, "seqproxy")
		if out, err := exec.CommandContext(ctx, "go", "build", "-tags", planted.Tag, "-o", o.Seqproxy, "seqproxy/cmd/seqproxy").CombinedOutput(); err != nil {
			return fmt.Errorf("build seqproxy: %w\n%s", err, out)
		}
	}
	fmt.Fprintf(stderr, "seed %d: repeat with -seed %d -time %v\n", o.Seed, o.Seed, o.Time)
	report, err := torture.Run(ctx, o)
	if *logs != "" {
		err = errors.Join(err, torture.Evidence(o.Dir, *logs))
	}
	if report != nil {
		err = errors.Join(err, report.Write(stdout))
		if len(report.Wrong) > 0 {
			err = errors.Join(err, fmt.Errorf("%d things are wrong, with seed %d", len(report.Wrong), report.Seed))
		}
	}
	return err
}
