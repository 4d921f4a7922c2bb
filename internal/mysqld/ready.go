package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// pollInterval is the time between two questions to a starting server. MariaDB starts in 0.13 s.
const pollInterval = 10 * time.Millisecond

// awaitReady returns once the server answers a query on its socket. The socket is in the server's
// own directory, so no other server can answer. The server opens it after its TCP port.
func awaitReady(ctx context.Context, proc *process, socket string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	db, err := openSocket(socket)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is left to lose

	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var last error
	for {
		if last = answers(ctx, db); last == nil {
			return nil
		}
		select {
		case <-proc.done:
			return fmt.Errorf("ended before it answered: %w", endOf(proc))
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}

func endOf(proc *process) error {
	if proc.err != nil {
		return proc.err
	}
	return errors.New("exit status 0")
}

func openSocket(socket string) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User = "root"
	cfg.Net = "unix"
	cfg.Addr = socket
	cfg.Timeout = 2 * time.Second
	cfg.ReadTimeout = 10 * time.Second
	cfg.Logger = &mysql.NopLogger{} // a starting server refuses connections, which is no event
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// answers returns nil if the server has started. A refused login is an answer: existing data may
// have a root with a password.
func answers(ctx context.Context, db *sql.DB) error {
	var one int
	err := db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	var refused *mysql.MySQLError
	if errors.As(err, &refused) && refused.Number == 1045 {
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return errors.New("it does not listen yet")
	}
	return err
}
