// Command trip counts the files and functions of this module that run for one command of a client.
// It must be built with counters: scripts/trip.sh does that.
//
// The proxy runs in this process, before a private server. A command is counted from its first byte
// until the proxy waits for the next one. Only what runs in each of many runs of it counts: that
// leaves out what goes on beside it.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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
	list := flag.Bool("list", false, "print the names of the functions, too")
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
	fmt.Fprintf(out, "| command | files | functions | of %d lines or more |\n| --- | --- | --- | --- |\n", longer)
	for i, t := range trips {
		functions, err := t.functions(ctx, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		files, long, err := measure(functions)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d |\n", t.name, files, len(functions), long)
		if list {
			fmt.Fprintln(out, strings.Join(functions, "\n"))
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
		Servers: []sequence.ServerOptions{{Addr: server.Addr(), User: "root", Database: "trip"}}, CreateTable: true, Logger: log,
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

// longer is from how many lines on a function is no mere accessor.
const longer = 6

// measure counts the files of functions, and those of them that are longer.
func measure(functions []string) (files, long int, err error) {
	lengths := make(map[string]int) // by "file:line"
	last := ""
	for _, f := range functions {
		at, _, _ := strings.Cut(f, " ")
		name, _, _ := strings.Cut(at, ":")
		if name != last {
			files, last = files+1, name
			if err := readLengths(lengths, name); err != nil {
				return 0, 0, err
			}
		}
		if lengths[at] >= longer {
			long++
		}
	}
	return files, long, nil
}

// readLengths adds the lines of each function in a file.
func readLengths(lengths map[string]int, name string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			from, to := set.Position(f.Pos()).Line, set.Position(f.End()).Line
			lengths[name+":"+strconv.Itoa(from)] = to - from + 1
		}
	}
	return nil
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
