package link

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
)

// Examined is what one node reports, for a caller that wants to know before numbers are reserved.
type Examined struct {
	Identity string // the server's id for life
	Place    string // differs between servers that run at the same time
	ReadOnly bool
	// The cluster that it commits in, or its replication group; empty: none.
	Cluster string
	Source  string // the host that it replicates from, if replication runs
	// SourceErr says why Source could not be asked for.
	SourceErr error
	Flush     string  // innodb_flush_log_at_trx_commit
	Findings  []error // all reasons not to reserve numbers there, but for its tables
}

// Examine looks at a node as a connection for reservations does, and changes nothing. visit
// continues over the same connection. The Standing is for Fitting, and is valid after an error,
// too.
func (l *Link) Examine(ctx context.Context, n *Node, visit func(conn *sql.Conn, is *Examined) error) (Standing, error) {
	stands := n.look(ctx)
	if stands.Err != nil {
		return stands, stands.Err
	}
	if err := l.examine(ctx, &stands, visit); err != nil {
		return Standing{node: n, Err: err}, err
	}
	return stands, nil
}

func (l *Link) examine(ctx context.Context, s *Standing, visit func(conn *sql.Conn, is *Examined) error) error {
	conn, err := s.node.Pool().Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	is := &Examined{
		Identity: s.identity, Place: s.place, ReadOnly: s.readOnly, Flush: s.flush, Cluster: cmp.Or(s.cluster, s.group),
		Source: s.source, SourceErr: s.sourceErr,
	}
	if s.cluster == "" && s.readOnly {
		is.Source, is.SourceErr = s.replicatesFrom(ctx, conn)
	}
	if s.apart != "" {
		is.Findings = append(is.Findings, errors.New(s.apart))
	}
	err = WithRaw(conn, func(c Raw) error {
		findings, flush, _, err := l.settings(ctx, c)
		if err != nil {
			return err
		}
		if is.Cluster == "" || !l.Grouped() { // else all of its nodes count together
			findings = append(findings, l.unflushed(flush)...)
		}
		for _, finding := range findings {
			if !errors.Is(finding, ErrMoved) { // all nodes of a group but one are read only
				is.Findings = append(is.Findings, finding)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return visit(conn, is)
}
