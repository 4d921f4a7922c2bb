package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/errgroup"

	"seqproxy/internal/mysqld"
)

// exampleSchemas are the schemas of the example shards, one on each server.
var exampleSchemas = [2]string{"album0", "album1"}

// exampleTable exists in each of them.
const exampleTable = "CREATE TABLE IF NOT EXISTS photos (" +
	"id BIGINT UNSIGNED NOT NULL, title VARCHAR(100) NOT NULL, PRIMARY KEY (id)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"

// exampleSequence gives its keys.
const exampleSequence = "photos"

// shardName returns the name of the shard on server i.
func shardName(i int) string { return fmt.Sprintf("photos%d", i) }

// holds says what server i has. The first members servers divide the numbers.
func holds(i, members int) string {
	var all []string
	if i < members {
		all = append(all, "sequences")
	}
	if i < len(exampleSchemas) {
		all = append(all, "shard "+shardName(i))
	}
	return strings.Join(all, ", ")
}

// findServer finds the server program. path may be empty.
func findServer(path string) (mysqld.Binary, error) {
	binary, err := mysqld.Find(path)
	switch {
	case err == nil:
		return binary, nil
	case path != "":
		return binary, fmt.Errorf("-server: %w", err)
	case errors.Is(err, mysqld.ErrNotFound):
		return binary, fmt.Errorf("%w; or name the program with -server PATH", err)
	}
	return binary, fmt.Errorf("%w; choose another program with -server PATH", err)
}

// home is the directory of the servers' data.
type home struct {
	dir  string // absolute
	kept bool   // the user named it, so it is not removed
}

// newHome makes the directory. With an empty dir, close removes it.
func newHome(dir string) (home, error) {
	if dir == "" {
		dir, err := os.MkdirTemp("", "seqproxy-playground-")
		if err != nil {
			return home{}, fmt.Errorf("make a directory for the servers' data: %w; choose one with -dir DIR", err)
		}
		return home{dir: dir}, nil
	}
	abs, err := filepath.Abs(dir)
	if err == nil {
		err = os.MkdirAll(abs, 0o700)
	}
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(abs, ".writable-"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return home{}, fmt.Errorf("the servers' data cannot be kept in %s: %w; choose another with -dir DIR", dir, err)
	}
	return home{dir: abs, kept: true}, nil
}

func (h home) close() error {
	if h.kept {
		return nil
	}
	return os.RemoveAll(h.dir)
}

// startServers starts the servers in parallel, with the example schemas. After an error none runs.
func startServers(ctx context.Context, binary mysqld.Binary, h home, members int) ([]*mysqld.Server, error) {
	servers := make([]*mysqld.Server, max(members, len(exampleSchemas)))
	group, starting := errgroup.WithContext(ctx)
	for i := range servers {
		group.Go(func() (err error) {
			servers[i], err = mysqld.Start(starting, mysqld.Config{Binary: binary, Dir: filepath.Join(h.dir, fmt.Sprintf("server%d", i))})
			if err != nil {
				return err
			}
			if err := prepare(starting, servers[i], sequenceGrants(servers[i].Flavour())...); err != nil {
				return fmt.Errorf("make the account %s on %s: %w", sequenceUser, servers[i].Addr(), err)
			}
			if i >= len(exampleSchemas) {
				return nil // it is a sequence server only
			}
			if err := prepare(starting, servers[i], "CREATE DATABASE IF NOT EXISTS "+exampleSchemas[i], "USE "+exampleSchemas[i], exampleTable); err != nil {
				return fmt.Errorf("create schema %s on %s: %w", exampleSchemas[i], servers[i].Addr(), err)
			}
			return nil
		})
	}
	err := group.Wait()
	if err == nil {
		return servers, nil
	}
	if errors.Is(err, mysqld.ErrDirInUse) {
		err = fmt.Errorf("the directory %s belongs to a playground that is running: end that one, or choose another with -dir DIR", h.dir)
	}
	return nil, errors.Join(err, stopServers(context.Background(), servers))
}

// stopTimeout bounds the servers' orderly shutdown.
const stopTimeout = 30 * time.Second

// stopServers stops the servers in parallel. A nil server was not started. When hurry is done, it
// kills them.
func stopServers(hurry context.Context, servers []*mysqld.Server) error {
	ctx, cancel := context.WithTimeout(hurry, stopTimeout)
	defer cancel()
	errs := make([]error, len(servers))
	var group errgroup.Group
	for i, s := range servers {
		if s == nil {
			continue
		}
		group.Go(func() error {
			errs[i] = s.Stop(ctx)
			return nil
		})
	}
	_ = group.Wait() // errs has all errors
	if hurry.Err() != nil {
		return nil // killed on request
	}
	return errors.Join(errs...)
}

// sequenceUser is the proxy's own account. It has the least rights that docs/security.md names, and
// like root no password.
const sequenceUser = "seqproxy"

// sequenceGrants are the statements that create the account.
func sequenceGrants(flavour mysqld.Flavour) []string {
	kill := "CONNECTION_ADMIN"
	if flavour == mysqld.MariaDB {
		kill = "CONNECTION ADMIN"
	}
	return []string{
		"CREATE USER IF NOT EXISTS 'seqproxy'@'%'",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON seqproxy.* TO 'seqproxy'@'%'",
		"GRANT " + kill + " ON *.* TO 'seqproxy'@'%'",
	}
}

// prepare runs statements on a server, one after the other.
func prepare(ctx context.Context, s *mysqld.Server, statements ...string) (err error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User = "tcp", s.Addr(), "root"
	cfg.Logger = &mysql.NopLogger{} // every error is also returned
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
