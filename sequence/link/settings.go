package link

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
	"seqproxy/internal/planted"
)

func isEnd(err error) bool { return errors.Is(err, io.EOF) }

// check checks the server and the tables behind a connection whose session is set up. A fault that
// could make numbers repeat is an *UnfitError.
func (l *Link) check(ctx context.Context, c Raw) error {
	if err := l.checkServer(ctx, c); err != nil {
		return err
	}
	return l.tables.CheckTables(ctx, c)
}

// CheckAgain repeats the checks of a connection.
func (l *Link) CheckAgain(ctx context.Context, conn *sql.Conn) error {
	return WithRaw(conn, func(c Raw) error { return l.check(ctx, c) })
}

// Unfit is a finding about the server, or about a table of it.
func (l *Link) Unfit(table, finding, remedy string) error {
	return &UnfitError{Server: l.At(), Table: table, Finding: finding, Remedy: remedy}
}

// checkServer checks the server without its tables; see settings.
func (l *Link) checkServer(ctx context.Context, c Raw) error {
	findings, flush, binlog, err := l.settings(ctx, c)
	if err != nil {
		return err
	}
	if findings = append(findings, l.unflushed(flush)...); len(findings) > 0 {
		return findings[0]
	}
	if l.clustered() {
		return nil // noteFlush asks all of its nodes
	}
	node, settings := c.raw.(*Conn).Node, unflushed(flush, binlog)
	if now := node.noteUnflushed(settings); now != "" {
		l.log.Warn("reservations not durable", logfield.Node(node.Addr), zap.String("value", now), zap.String("remedy", flushStatement(settings)))
	}
	return nil
}

// settings reads the session's settings back, since a proxy in between may have swallowed them, and
// checks the operator's settings. It returns all findings, and how the server flushes at commit:
// see unflushed.
func (l *Link) settings(ctx context.Context, c Raw) (findings []error, flush, binlog string, err error) {
	rows, err := c.Query(ctx, "SELECT @@autocommit, @@sql_mode, @@global.read_only, @@global.innodb_flush_log_at_trx_commit, "+
		"@@global.innodb_read_only, @@global.innodb_force_recovery, @@version, @@global.log_bin, @@global.sync_binlog")
	if err != nil {
		return nil, "", "", fmt.Errorf("read settings: %w", err)
	}
	if len(rows) != 1 {
		return nil, "", "", fmt.Errorf("read settings: got %d rows, want 1", len(rows))
	}
	autocommit, mode, readOnly := rows[0][0], rows[0][1], rows[0][2]
	if flush = rows[0][3]; !IsOff(rows[0][7]) {
		binlog = rows[0][8]
	}
	if autocommit != "1" && !planted.Fault(planted.Session) {
		findings = append(findings, l.Unfit("", "autocommit stays off although it was switched on: numbers would leave before they are committed",
			"connect to the server itself, not through something that drops SET"))
	}
	if !strings.Contains(mode, "STRICT_ALL_TABLES") && !planted.Fault(planted.Session) {
		findings = append(findings, l.Unfit("", "sql_mode stays lax although it was set: a number above the column's maximum would be given again and again",
			"connect to the server itself, not through something that drops SET"))
	}
	if !IsOff(readOnly) {
		findings = append(findings, l.ReadOnly())
	} else if option := startedReadOnly(rows[0][4], rows[0][5], rows[0][6]); option != "" {
		findings = append(findings, l.startedReadOnly(option))
	}
	return findings, flush, binlog, nil
}

// unflushed is the finding about a server that loses commits when it crashes without its machine;
// nil for others.
func (l *Link) unflushed(flush string) []error {
	if flush != "0" || l.opts.Relaxed {
		return nil
	}
	return []error{l.Unfit("", "innodb_flush_log_at_trx_commit is 0: its crash takes the last second's reservations back, and they would be given again",
		"SET GLOBAL innodb_flush_log_at_trx_commit = 1, or set durability = \"relaxed\" where keys may repeat")}
}

// ReadOnly is the finding about a server that is not the primary, or no longer.
func (l *Link) ReadOnly() error {
	if l.Grouped() {
		return fmt.Errorf("%s: %w", l.At(), ErrMoved) // another node will be the primary
	}
	// No statement: to make a lagging replica writable would give numbers again.
	return l.Unfit("", "it is read only", "name the primary as the sequence server; if this one has become it, first see that it lacks nothing that the old one had "+
		"(docs: Backup and restore), then SET GLOBAL read_only = 0")
}

// startedReadOnly returns the option that made a server read only at its start, whatever read_only
// says; empty: none. MySQL accepts no changes during a forced recovery; MariaDB accepts them, or
// says that innodb_read_only is on.
func startedReadOnly(innodbReadOnly, forceRecovery, version string) string {
	switch {
	case !IsOff(innodbReadOnly):
		return "innodb_read_only"
	case !IsOff(forceRecovery) && !strings.Contains(version, "MariaDB"):
		return "innodb_force_recovery"
	}
	return ""
}

func (l *Link) startedReadOnly(option string) error {
	if l.Grouped() {
		return fmt.Errorf("%s: %w: %s", l.At(), ErrMoved, option)
	}
	return l.Unfit("", "it is read only: it was started with "+option, "start it without, or name the primary as the sequence server")
}

// IsOff reads a variable that is a number on some servers and a word on others.
func IsOff(value string) bool { return value == "0" || value == "OFF" }
