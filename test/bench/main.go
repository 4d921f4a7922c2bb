package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"seqproxy/internal/mysqld"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	var err error
	if len(os.Args) == 4 && os.Args[1] == relayCommand {
		err = runRelay(ctx, os.Args[2], os.Args[3])
	} else {
		err = run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	}
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	rounds   int
	timing   timing
	only     *regexp.Regexp
	targets  []string
	sessions int
	seqproxy string
	before   string
	server   string
	binlog   bool
	json     string
	list     bool
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.IntVar(&o.rounds, "rounds", 5, "how often each workload is measured with each target")
	fs.DurationVar(&o.timing.measure, "time", 1500*time.Millisecond, "how long one measurement lasts")
	only := fs.String("only", "", "measure only the workloads whose name matches this regular expression")
	targets := fs.String("targets", "direct,haproxy,seqproxy", "the targets to measure; \"relay\" is a bare relay in Go: what no proxy in Go can do better by much")
	quick := fs.Bool("quick", false, "two short rounds and fewer sessions, for a first look: the figures are not to be judged by")
	fs.StringVar(&o.seqproxy, "seqproxy", "", "the seqproxy binary to measure (default: build the one of this repository)")
	fs.StringVar(&o.before, "before", "", "another seqproxy binary, of before a change, to measure in turn with it")
	fs.StringVar(&o.server, "server", "", "the server binary to measure with (default: the MariaDB that is found); with a MySQL those workloads are left out that need MariaDB's sequences")
	fs.BoolVar(&o.binlog, "binlog", false, "the server writes a binary log and flushes it at each commit, as one with replicas does; durable, but not MariaDB's default")
	fs.StringVar(&o.json, "json", "", "also write the figures of every round to this file")
	fs.BoolVar(&o.list, "list", false, "print the names of the workloads and stop")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	if fs.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	o.sessions = 1000
	if *quick {
		o.rounds, o.timing.measure, o.sessions = 2, 400*time.Millisecond, 200
	}
	if o.rounds < 1 || o.timing.measure < 50*time.Millisecond {
		return o, errors.New("-rounds must be 1 or more and -time 50ms or more")
	}
	o.timing.warm = max(o.timing.measure/5, 100*time.Millisecond)
	o.targets = strings.Split(*targets, ",")
	for _, t := range o.targets {
		if !slices.Contains(allTargets, t) {
			return o, fmt.Errorf("-targets: %q is not one of %s", t, strings.Join(allTargets, ", "))
		}
	}
	if o.before != "" {
		o.targets = append(o.targets, before)
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	return o, nil
}

// run measures, and prints the tables to stdout and progress to stderr. When it returns, everything
// that it started has ended. An interrupted run prints what it has.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	o, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	if err := checkPlatform(); err != nil {
		return err
	}
	rep := report{}
	if slices.Contains(o.targets, haproxy) {
		if _, err := findHAProxy(); err != nil {
			rep.note(stderr, err.Error())
			o.targets = slices.DeleteFunc(o.targets, func(t string) bool { return t == haproxy })
		}
	}
	rep.Workloads = choose(plan(o.sessions), o.only, o.targets)
	if len(rep.Workloads) == 0 {
		return fmt.Errorf("no workload matches -only %q with these targets; -list prints the names", o.only)
	}
	if o.list {
		for _, w := range rep.Workloads {
			fmt.Fprintf(stdout, "%-24s %s\n", w.name, w.title)
		}
		return nil
	}

	dir, err := os.MkdirTemp("", "seqproxy-bench-")
	if err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	f, err := newFleet(ctx, dir, o)
	if err != nil {
		return err
	}
	if f.binary.Flavour != mysqld.MariaDB {
		rep.Workloads = slices.DeleteFunc(rep.Workloads, needsMariaDB)
		if len(rep.Workloads) == 0 {
			return fmt.Errorf("the workloads that match -only %q need MariaDB", o.only)
		}
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	// The client's garbage is collected before each measurement, not during it. The limit applies
	// if a measurement makes more garbage than expected.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))

	fmt.Fprintf(stderr, "%d workloads, %d rounds of %v: about %v (-quick and -only REGEXP make it shorter)\n",
		len(rep.Workloads), o.rounds, o.timing.measure, estimate(rep.Workloads, o.rounds, o.timing).Round(time.Second))
	began, loadBefore := time.Now(), loadAverage()
	b := bench{options: o, fleet: f, report: &rep, stderr: stderr, began: began}
	runErr := b.all(ctx)
	rep.Heading = append(rep.Heading, heading(ctx, o, f, began, loadBefore)...)
	rep.Heading = append(rep.Heading, b.logins...)
	if len(rep.Results) == 0 {
		return runErr
	}
	if runErr != nil {
		rep.note(stderr, "this run is not complete: "+oneLine(runErr.Error()))
	}
	if o.json != "" {
		runErr = errors.Join(runErr, rep.writeJSON(o.json))
	}
	return errors.Join(runErr, rep.writeMarkdown(stdout))
}

// newFleet finds or builds the programs.
func newFleet(ctx context.Context, dir string, o options) (*fleet, error) {
	f := &fleet{dir: dir, wanted: o.targets, seqproxy: o.seqproxy, before: o.before, binlog: o.binlog}
	var err error
	if f.binary, err = mysqld.Find(o.server); err != nil {
		return nil, err
	}
	if f.binary.Flavour != mysqld.MariaDB && o.server == "" {
		return nil, fmt.Errorf("%s found, but the benchmark compares with MariaDB's own sequences: install MariaDB, or choose with -server", f.binary)
	}
	if slices.Contains(o.targets, haproxy) {
		if f.haproxy, err = findHAProxy(); err != nil {
			return nil, err
		}
	}
	if slices.Contains(o.targets, seqproxy) && f.seqproxy == "" {
		if f.seqproxy, err = buildSeqproxy(ctx, dir); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// heading says what was measured and where.
func heading(ctx context.Context, o options, f *fleet, began time.Time, loadBefore string) []string {
	lines := []string{
		fmt.Sprintf("%s, %d rounds of %v each, %v in all", began.UTC().Format("2006-01-02 15:04 UTC"), o.rounds, o.timing.measure, time.Since(began).Round(time.Second)),
		fmt.Sprintf("%d CPUs (%s), load average %s before and %s after", runtime.NumCPU(), machine(), cmp.Or(loadBefore, "?"), cmp.Or(loadAverage(), "?")),
		fmt.Sprintf("%s %s with default durability, %s", f.binary.Flavour, f.binary.Version, runtime.Version()),
	}
	if f.haproxy != "" {
		lines[2] += ", " + haproxyVersion(ctx, f.haproxy)
	}
	return append(lines,
		"medians of the rounds, with the least and the greatest in brackets; a ratio is the median of the rounds' ratios",
		"CPU is user and system time of the target's own process (for direct: the server's) per operation; every answer was checked")
}

// note adds a remark to the report and prints it at once.
func (rep *report) note(stderr io.Writer, text string) {
	rep.Notes = append(rep.Notes, text)
	fmt.Fprintln(stderr, "note:", text)
}

// bench is a running benchmark.
type bench struct {
	options options
	fleet   *fleet
	report  *report
	stderr  io.Writer
	began   time.Time
	logins  []string // how logins work, for the heading
}

// all measures the pinned workloads and then the others. Each part has processes of its own.
func (b *bench) all(ctx context.Context) (err error) {
	for _, pinned := range []bool{true, false} {
		part := slices.DeleteFunc(slices.Clone(b.report.Workloads), func(w workload) bool { return w.pinned != pinned })
		if len(part) == 0 {
			continue
		}
		if err := b.part(ctx, part, pinned); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) part(ctx context.Context, list []workload, pinned bool) (err error) {
	threads := 0
	if pinned {
		threads = 1
		release, err := b.pin()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	defer func() { err = errors.Join(err, b.fleet.stop()) }()
	if err := b.fleet.start(ctx, threads); err != nil {
		return err
	}
	b.describeLogins()
	for _, w := range list {
		if err := b.workload(ctx, w, threads); err != nil {
			return err
		}
	}
	return nil
}

// pin pins this process to one CPU, and everything that it starts before release.
func (b *bench) pin() (release func() error, err error) {
	if runtime.NumCPU() == 1 {
		b.report.note(b.stderr, "this machine has one CPU: the rows with all CPUs are pinned to one, too")
		return func() error { return nil }, nil
	}
	a, err := pinSelf()
	if err != nil {
		b.report.note(b.stderr, fmt.Sprintf("the rows with one CPU are NOT pinned: %v", err))
		return func() error { return nil }, nil
	}
	return a.restore, nil
}

// describeLogins notes the plugin that completes a login to each target: it is part of the cost of
// connecting.
func (b *bench) describeLogins() {
	if len(b.logins) > 0 {
		return
	}
	for _, name := range b.options.targets {
		t := b.fleet.targets[name]
		b.logins = append(b.logins, fmt.Sprintf("login to %s: %s", name, t.plugin))
	}
	if slices.Contains(b.options.targets, seqproxy) && b.fleet.binary.Flavour == mysqld.MariaDB {
		b.logins = append(b.logins, "seqproxy logs in to the server with mysql_native_password, as this MariaDB knows no caching_sha2_password: the connect rows have the latter on seqproxy's client side alone")
	}
}

// workload measures all rounds of one workload.
func (b *bench) workload(ctx context.Context, w workload, threads int) error {
	// The client gets no more threads than it can use: idle ones take time from the targets to look
	// for work.
	procs := min(w.conns, runtime.NumCPU())
	if w.pinned {
		procs = 1
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	failed := map[string]bool{}
	for round := 1; round <= b.options.rounds; round++ {
		fmt.Fprintf(b.stderr, "%6s  %s round %d\n", time.Since(b.began).Round(time.Second), w.name, round)
		if w.fresh {
			if err := b.fleet.restart(ctx, threads); err != nil {
				return err
			}
		}
		for i := range w.contenders {
			c := w.contenders[(i+round-1)%len(w.contenders)] // the first place rotates
			if failed[c.name] {
				continue
			}
			one := result{Workload: w.name, Contender: c.name, Round: round}
			t := b.fleet.targets[c.target]
			fig, err := c.run(ctx, environment{b.fleet, t, b.options.timing})
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err = errors.Join(err, t.ended()); err != nil {
				failed[c.name] = true
				one.Error = err.Error()
				fmt.Fprintf(b.stderr, "        %s fails: %s\n", c.name, oneLine(one.Error))
			} else {
				one.Figures = fig
			}
			b.report.Results = append(b.report.Results, one)
		}
	}
	return nil
}
