package link

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// A commit of a cluster is in the memory of a majority of its nodes. The settings of each node say
// when it reaches that node's disk. If all nodes crash, and too few have written what they
// committed, the cluster starts again without the last reservations, and gives them again. So
// numbers are reserved only while more than half of the nodes that answer flush at commit. A node
// that does not answer does not count.

const flushSetting, binlogSetting = "innodb_flush_log_at_trx_commit", "sync_binlog"

// unflushed returns the settings, with their values, that let a crash of the machine take commits
// back. binlog is empty without a binary log. With one, a server recovers by it, and InnoDB does
// not flush the commit itself, unless innodb_flush_log_at_trx_commit is 3 (MariaDB).
func unflushed(flush, binlog string) (settings []string) {
	if flush == "0" || flush == "2" {
		settings = append(settings, flushSetting+" = "+flush)
	}
	if binlog != "" && binlog != "1" && flush != "3" {
		settings = append(settings, binlogSetting+" = "+binlog)
	}
	return settings
}

// unflushed returns what keeps the node out of the majority that flushes. sync_binlog counts only
// on a member of a replication group.
func (s *Standing) unflushed() []string {
	if !s.byBinlog {
		return unflushed(s.flush, "")
	}
	return unflushed(s.flush, s.binlog)
}

// flushStatement makes a node with these settings flush at commit.
func flushStatement(settings []string) string {
	names := make([]string, len(settings))
	for i, setting := range settings {
		name, _, _ := strings.Cut(setting, " ")
		names[i] = "GLOBAL " + name + " = 1"
	}
	return "SET " + strings.Join(names, ", ")
}

// flushes returns nil if the nodes of a cluster say that it keeps what it commits, and an
// UnfitError if too few of them flush at commit.
func (l *Link) flushes(all []Standing) error {
	var said, wrong []string
	answered, flushing := 0, 0
	for i := range all {
		s := &all[i]
		if s.Err != nil {
			said = append(said, s.node.Addr+" does not answer")
			continue
		}
		answered++
		settings := s.unflushed()
		if len(settings) == 0 {
			flushing++
			said = append(said, fmt.Sprintf("%s has %s = %s", s.node.Addr, flushSetting, s.flush))
			continue
		}
		said = append(said, s.node.Addr+" has "+strings.Join(settings, " and "))
		for _, setting := range settings {
			if name, _, _ := strings.Cut(setting, " "); !slices.Contains(wrong, name) {
				wrong = append(wrong, name)
			}
		}
	}
	if l.opts.Relaxed || 2*flushing > answered || answered == 0 {
		return nil
	}
	return &UnfitError{
		Server: l.Name(),
		Finding: fmt.Sprintf("%d nodes of the cluster flush at commit, no majority (%s): a crash of all of them takes the last reservations back, "+
			"and they would be given again", flushing, strings.Join(said, ", ")),
		Remedy: flushStatement(wrong) + " there, or set durability = \"relaxed\" where keys may repeat",
	}
}

// noteUnflushed remembers the settings that keep a node from flushing at commit. anew is their text
// if they are others than before, and empty if there are none: each value is logged once.
func (n *Node) noteUnflushed(settings []string) (anew string) {
	now := strings.Join(settings, ", ")
	if before := n.unflushed.Swap(&now); before != nil && *before == now {
		return ""
	}
	return now
}

// noteFlush remembers what nodes say, and logs each node that does not flush at commit.
func (l *Link) noteFlush(all []Standing) {
	for i := range all {
		s := &all[i]
		if s.Err != nil {
			continue
		}
		settings := unflushed(s.flush, s.binlog)
		if now := s.node.noteUnflushed(settings); now != "" {
			l.log.Warn("node of the cluster does not flush at commit", logfield.Node(s.node.Addr), zap.String("value", now), zap.String("remedy", flushStatement(settings)))
		}
	}
}

// FlushWarning is the text of SHOW about nodes that do not flush at commit; empty: all do.
func (l *Link) FlushWarning() string {
	if !l.clustered() {
		return ""
	}
	var all []string
	for _, n := range l.nodes.all {
		if settings := n.unflushed.Load(); settings != nil && *settings != "" {
			all = append(all, fmt.Sprintf("%s does not flush at commit (%s): %s", n.Addr, *settings, flushStatement(strings.Split(*settings, ", "))))
		}
	}
	return strings.Join(all, "; ")
}

// FlushDue reports whether the nodes of a cluster must be looked at again, to one caller at a time.
func (l *Link) FlushDue() bool {
	if !l.clustered() || time.Since(l.flushed) < l.timing.Flush {
		return false
	}
	l.flushed = time.Now()
	return true
}

// LookAtFlush looks at the nodes of a cluster. If the cluster does not keep commits, it discards
// the choice, so that the next reservation looks again.
func (l *Link) LookAtFlush(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, l.timing.Flush) // one at a time
	defer stop()
	all := l.Survey(ctx)
	l.noteFlush(all)
	if l.flushes(all) != nil {
		l.Moved()
	}
}
