// Command trip counts the files and functions of this module that run for one command of a client,
// and those of them that one reads who follows it.
// It must be built with counters: scripts/trip.sh does that.
//
// The proxy runs in this process, before a private server. A command is counted from its first byte
// until the proxy waits for the next one. Only what runs in each of many runs of it counts: that
// leaves out what goes on at the same time.
//
// Start at run.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strconv"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"go.uber.org/zap"

	"seqproxy/admin"
	"seqproxy/backend"
	"seqproxy/internal/mysqld"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
)

func main() {
	list := flag.Bool("list", false, "print the names of the functions, too, with a dash behind those that one need not read")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *list); err != nil {
		fmt.Fprintln(os.Stderr, "trip:", err)
		os.Exit(1)
	}
}

// runs is how often each command runs.
const runs = 20

// rest is how long the proxy has to wait for the next command again.
const rest = 10 * time.Millisecond

// trip is a command of a client.
type trip struct {
	name string
	run  func(ctx context.Context) error
}

// run prints a line for each command. list has it print the functions as well.
func run(ctx context.Context, out io.Writer, list bool) (err error) {
	dir, err := os.MkdirTemp("", "seqproxy-trip-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err := mysqld.Find("")
	if err != nil {
		return err
	}
	server, err := mysqld.Start(ctx, mysqld.Config{Binary: binary, Dir: filepath.Join(dir, "server")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(ctx)) }()
	address, stop, err := serve(ctx, server)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	pool, err := sql.Open("mysql", "root@tcp("+address+")/trip")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	trips, err := prepare(ctx, pool)
	if err != nil {
		return err
	}
	calls, err := readCalls(ctx, "./test/trip")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "| command | files read | functions read | files | functions |\n| --- | --- | --- | --- | --- |")
	for i, t := range trips {
		functions, err := t.functions(ctx, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		read, readFiles := calls.reader(functions)
		fmt.Fprintf(out, "| %s | %d | %d | %d | %d |\n", t.name, readFiles, len(read), filesOf(functions), len(functions))
		for _, f := range functions {
			switch {
			case list && read[f]:
				fmt.Fprintln(out, f)
			case list:
				fmt.Fprintln(out, f, "-")
			}
		}
	}
	return nil
}

// serve runs a proxy before a server.
func serve(ctx context.Context, server *mysqld.Server) (address string, stop func() error, err error) {
	db, err := sql.Open("mysql", "root@tcp("+server.Addr()+")/")
	if err != nil {
		return "", nil, err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE trip")
	if err = errors.Join(err, db.Close()); err != nil {
		return "", nil, err
	}
	const patience = 10 * time.Second
	log := zap.NewNop()
	sequences, err := sequence.New(sequence.Options{
		Servers: []sequence.ServerOptions{{Addr: server.Addr(), User: "root", Database: "trip"}}, Tuning: sequence.Tuning{CreateTable: true}, Logger: log,
	})
	if err != nil {
		return "", nil, err
	}
	shards, err := backend.New(backend.Options{
		Default: "main", Shards: []backend.ShardOptions{{Name: "main", Nodes: []string{server.Addr()}}},
		Probe: backend.Credentials{User: "root"}, ConnectTimeout: patience, Logger: log,
	})
	if err != nil {
		return "", nil, err
	}
	p := proxy.New(proxy.Options{
		Shards:           shards,
		KeyOptions:       proxy.KeyOptions{Sequences: sequences, Admin: admin.NewSequences(sequences, nil)},
		AccountOptions:   proxy.AccountOptions{Users: []proxy.User{{Name: "root", Admin: true}}},
		TransportOptions: proxy.TransportOptions{RSA: protocol.NewRSAKeys()},
		LoginOptions:     proxy.LoginOptions{MaxConnections: 20, LoginTimeout: patience},
		StatementOptions: proxy.StatementOptions{WriteTimeout: patience, MaxStatement: 1 << 20},
		Logger:           log,
	})
	if err := p.Listen("127.0.0.1:0"); err != nil {
		return "", nil, err
	}
	shards.Open(ctx)
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx) }()
	return p.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := errors.Join(p.Shutdown(ctx), <-served)
		shards.Close()
		return errors.Join(err, sequences.Close(ctx))
	}, nil
}

// prepare makes what the commands need, on one connection, and returns them.
func prepare(ctx context.Context, pool *sql.DB) ([]trip, error) {
	c, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{"CREATE TABLE photos (id BIGINT PRIMARY KEY, name VARCHAR(20))", "CREATE SEQUENCE photos CACHE 100000"} {
		if _, err := c.ExecContext(ctx, text); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	insert, err := c.PrepareContext(ctx, "INSERT INTO photos VALUES (NEXTVAL('photos'), ?)")
	if err != nil {
		return nil, err
	}
	query := func(text string) func(context.Context) error {
		return func(ctx context.Context) error {
			var n int
			return c.QueryRowContext(ctx, text).Scan(&n)
		}
	}
	return []trip{
		{"`SELECT 1`", query("SELECT 1")},
		{"`SELECT NEXTVAL('photos')`", query("SELECT NEXTVAL('photos')")},
		{"`INSERT INTO photos VALUES (NEXTVAL('photos'), 'sea')`", func(ctx context.Context) error {
			_, err := c.ExecContext(ctx, "INSERT INTO photos VALUES (NEXTVAL('photos'), 'sea')")
			return err
		}},
		{"the same prepared, an execution", func(ctx context.Context) error {
			_, err := insert.ExecContext(ctx, "sea")
			return err
		}},
	}, nil
}

// functions returns what runs for the command each time, as "file:line name", in order.
func (t *trip) functions(ctx context.Context, dir string) ([]string, error) {
	seen := make(map[string]int)
	for range runs / 4 {
		if err := t.run(ctx); err != nil {
			return nil, err
		}
	}
	for i := range runs {
		to := filepath.Join(dir, strconv.Itoa(i))
		if err := os.MkdirAll(to, 0o777); err != nil {
			return nil, err
		}
		if err := t.count(ctx, to); err != nil {
			return nil, err
		}
		run, err := functionsIn(ctx, to)
		if err != nil {
			return nil, err
		}
		for _, f := range run {
			seen[f]++
		}
	}
	var all []string
	for f, times := range seen {
		if times == runs {
			all = append(all, f)
		}
	}
	slices.Sort(all)
	return all, nil
}

// count runs the command once, and writes to a folder what ran meanwhile.
func (t *trip) count(ctx context.Context, to string) error {
	time.Sleep(rest)
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	time.Sleep(rest)
	return errors.Join(coverage.WriteCountersDir(to), coverage.WriteMetaDir(to))
}

// filesOf counts the files of functions, which are in order.
func filesOf(functions []string) (files int) {
	last := ""
	for _, f := range functions {
		if name, _, _ := strings.Cut(f, ":"); name != last {
			files, last = files+1, name
		}
	}
	return files
}

// functionsIn returns the functions that have run, but for those of this program itself.
func functionsIn(ctx context.Context, dir string) (functions []string, err error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i="+dir).Output()
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(out) {
		// file:line: name share%
		f := strings.Fields(string(line))
		if len(f) != 3 || f[0] == "total" || f[2] == "0.0%" || strings.Contains(f[0], "/test/") {
			continue
		}
		functions = append(functions, strings.TrimPrefix(strings.TrimSuffix(f[0], ":"), "seqproxy/")+" "+f[1])
	}
	return functions, nil
}
