package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"
)

// AwaitSynced waits until a node takes part in its cluster, or ctx is done.
func (s *Server) AwaitSynced(ctx context.Context) error {
	return s.awaitGalera(ctx, func() error {
		got, err := s.galeraStatus(ctx)
		if err == nil && !got.synced() {
			err = fmt.Errorf("it is %s", got)
		}
		return err
	})
}

// AwaitCluster waits until all nodes take part in the cluster, agree on that, and see each other's
// commits, or ctx is done. A node that slept may not know yet that it was excluded, and says that
// it takes part.
func AwaitCluster(ctx context.Context, nodes []*Server) error {
	return nodes[0].awaitGalera(ctx, func() error {
		limited, stop := context.WithTimeout(ctx, 5*time.Second)
		defer stop()
		var first galeraStatus
		for i, s := range nodes {
			if err := s.exec(limited, "?wsrep_sync_wait=1", "SELECT COUNT(*) FROM mysql.db"); err != nil {
				return fmt.Errorf("node %d: %w", i+1, err)
			}
			got, err := s.galeraStatus(limited)
			if err != nil {
				return fmt.Errorf("node %d: %w", i+1, err)
			}
			if i == 0 {
				first = got
			}
			if !got.synced() || got.size != strconv.Itoa(len(nodes)) || got.configuration != first.configuration {
				return fmt.Errorf("node 1 is %s, and node %d is %s", first, i+1, got)
			}
		}
		return nil
	})
}

// awaitGalera calls try until it succeeds, ctx is done, or the server ends.
func (s *Server) awaitGalera(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Galera node %s: %w", s.Addr(), errors.Join(context.Cause(ctx), err))
		case <-s.Done():
			return fmt.Errorf("the Galera node %s: %w", s.Addr(), errors.Join(s.Wait(), err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// galeraStatus is the status that a node reports.
type galeraStatus struct{ state, component, configuration, size string }

func (g galeraStatus) synced() bool { return g.state == "Synced" && g.component == "Primary" }

func (g galeraStatus) String() string {
	return fmt.Sprintf("%q in a component %q, configuration %s of %s nodes", g.state, g.component, g.configuration, g.size)
}

func (s *Server) galeraStatus(ctx context.Context) (g galeraStatus, err error) {
	db, err := s.open("")
	if err != nil {
		return g, err
	}
	defer db.Close() //nolint:errcheck // every statement was answered
	rows, err := db.QueryContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_%'")
	if err != nil {
		return g, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return g, err
		}
		switch name {
		case "wsrep_local_state_comment":
			g.state = value
		case "wsrep_cluster_status":
			g.component = value
		case "wsrep_cluster_conf_id":
			g.configuration = value
		case "wsrep_cluster_size":
			g.size = value
		}
	}
	return g, rows.Err()
}

// Component returns whether a running node may commit, and how many nodes it sees, itself included.
func (s *Server) Component(ctx context.Context) (primary bool, size int, err error) {
	got, err := s.galeraStatus(ctx)
	if err != nil {
		return false, 0, err
	}
	size, err = strconv.Atoi(got.size)
	return got.component == "Primary", size, err
}

// SetGalera sets an option of the library in a running node, such as pc.bootstrap or
// gmcast.isolate.
func (s *Server) SetGalera(ctx context.Context, option string, value int) error {
	if err := s.exec(ctx, "", fmt.Sprintf("SET GLOBAL wsrep_provider_options = '%s=%d'", option, value)); err != nil {
		return fmt.Errorf("set %s of the Galera node %s: %w", option, s.Addr(), err)
	}
	return nil
}

// exec runs a statement on a connection of its own. params are the driver's, "?a=b".
func (s *Server) exec(ctx context.Context, params, text string) error {
	db, err := s.open(params)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statement was answered
	_, err = db.ExecContext(ctx, text)
	return err
}

func (s *Server) open(params string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN("root@tcp(" + s.Addr() + ")/" + params)
	if err != nil {
		return nil, err
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}
