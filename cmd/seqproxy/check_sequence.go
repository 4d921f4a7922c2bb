package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"seqproxy/conf"
	"seqproxy/internal/inspect"
	"seqproxy/sequence"
)

// askedNode is what the account sees on a node of a sequence server.
type askedNode struct {
	server    *inspect.Server
	cipher    string
	sequences map[string]bool // sequences of [[bind]] that have a row
	err       error
}

// sequenceServers examines the sequence servers.
func (k *connected) sequenceServers(ctx context.Context) (err error) {
	sequences, err := sequencesToExamine(k.cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sequences.Close(context.WithoutCancel(ctx))) }()
	asked := make([][]askedNode, len(k.cfg.Sequence.Servers))
	for i := range asked {
		asked[i] = make([]askedNode, len(k.cfg.Sequence.Servers[i].Addresses()))
	}
	var mu sync.Mutex
	found := sequences.Examine(ctx, func(ctx context.Context, server, node int, ask sequence.Ask) {
		a := k.askSequenceNode(ctx, &k.cfg.Sequence.Servers[server], ask)
		mu.Lock()
		defer mu.Unlock()
		asked[server][node] = a
	})
	exists := make(map[string]bool)
	for i := range found {
		where := make([]string, len(found[i].Nodes))
		for j := range found[i].Nodes {
			where[j] = "sequence server " + found[i].Nodes[j].Addr
			f := k.at(where[j])
			k.sequenceNode(f, i, &found[i].Nodes[j], &asked[i][j])
			for name := range asked[i][j].sequences {
				exists[name] = true
			}
			for _, o := range found[i].Nodes[j].Owners {
				k.bindColumn(o.Schema, o.Table, o.Column.Column, o.Sequence)
			}
		}
		if len(found[i].Nodes) > 1 {
			k.group(&found[i], asked[i])
		}
	}
	k.sequenceServersTogether(found)
	k.boundSequences(exists)
	return nil
}

func (k *connected) askSequenceNode(ctx context.Context, at *conf.SequenceServer, ask sequence.Ask) (a askedNode) {
	if a.server, a.err = inspect.Read(ctx, inspect.Ask(ask)); a.err != nil {
		return a
	}
	if rows, err := ask(ctx, "SHOW SESSION STATUS LIKE 'Ssl_cipher'"); err == nil && len(rows) == 1 {
		a.cipher = rows[0][1]
	}
	a.sequences = make(map[string]bool)
	for _, b := range k.cfg.Binds {
		rows, err := ask(ctx, fmt.Sprintf("SELECT 1 FROM %s WHERE `name` = _utf8mb4 X'%X'", quoteName(at.Database, k.cfg.Sequence.Table), b.Sequence))
		if err == nil && len(rows) > 0 {
			a.sequences[b.Sequence] = true
		}
	}
	return a
}

// sequenceNode reports on one node.
func (k *connected) sequenceNode(f *inspect.Findings, server int, n *sequence.ExaminedNode, a *askedNode) {
	at := &k.cfg.Sequence.Servers[server]
	if n.Err == nil {
		n.Err = a.err
	}
	if n.Err != nil {
		loginFailed(n.Err, at.User, "", fmt.Sprintf("sequence.server #%d", server+1), f.Wrong)
		return
	}
	s := a.server
	k.seen = append(k.seen, seen{s, f.Where})
	over := "without TLS"
	if a.cipher != "" {
		over = "over TLS"
	}
	f.OK("login", "as %s, %s", s.Account, over)
	s.CheckVersion(f, k.now)
	grants := sequence.Grants(at.Database, s.Account.String())
	f.OK("rights", "not checked: it needs %s", grants)
	before := len(f.All)
	for _, finding := range n.Findings {
		reportUnfit(f, finding, grants)
	}
	table := quoteName(at.Database, k.cfg.Sequence.Table)
	if n.Maximum > 0 && n.Maximum < 1<<63-1 {
		f.Warn("table", fmt.Sprintf("the column `id` of %s ends at %d; it is the maximum of every sequence in it", table, n.Maximum), "",
			"ALTER TABLE "+table+" MODIFY `id` BIGINT UNSIGNED NOT NULL DEFAULT 0")
	}
	switch {
	case len(f.All) > before:
	case n.Lacking > 0:
		f.OK("table", "%s or one of those beside it is not there, or the account may not see it; what is missing is made when a proxy first connects", table)
	default:
		f.OK("table", "%s and those beside it are fit", table)
	}
	if n.Flush == "2" || n.Flush == "0" && (k.cfg.Sequence.Durability == conf.DurabilityRelaxed || n.Cluster != "" && len(at.Nodes) > 0) {
		f.Warn("settings", "innodb_flush_log_at_trx_commit is "+n.Flush+": a crash of the machine can take the last reservations back", keepSetting,
			"SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	}
	if s.IsOn("log_bin") && s.Number("sync_binlog") != 1 && n.Flush != "3" {
		f.Warn("settings", fmt.Sprintf("sync_binlog is %s: a crash of the machine can take the last reservations back, and a replica may lack them", s.Variables["sync_binlog"]), keepSetting,
			"SET GLOBAL sync_binlog = 1")
	}
	if timeout := s.Number("wait_timeout"); timeout < leastWaitTimeout {
		f.Warn("settings", fmt.Sprintf("wait_timeout is %d seconds: the server closes the proxy's idle connections, and each is made again", timeout), keepSetting,
			"SET GLOBAL wait_timeout = 28800")
	}
	if n.Source != "" && !n.ReadOnly && len(at.Nodes) == 0 {
		f.Warn("replication", fmt.Sprintf("it can be written to and replicates from %s, whose changes would overwrite the counters", n.Source),
			"configure the source if proxies count there; or stop the replication")
	}
	k.checkClock(f, s)
}

const (
	keepSetting      = "and the same in the server's configuration, or it is lost at its restart"
	leastWaitTimeout = 60 // seconds; the proxy keeps connections for a minute
)

// reportUnfit reports what keeps numbers from being reserved. grants is the statement that gives
// the account its rights.
func reportUnfit(f *inspect.Findings, finding error, grants string) {
	unfit := new(sequence.UnfitError)
	switch {
	case errors.As(finding, &unfit):
	case sequence.IsDenied(finding):
		f.Wrong("rights", finding.Error(), "", grants)
		return
	default:
		f.Wrong("cluster", finding.Error(), "see the server's own log")
		return
	}
	check, text := "settings", unfit.Finding
	if unfit.Table != "" {
		check, text = "table", unfit.Table+": "+text
	}
	if statement := unfit.Statement(); statement != "" {
		hint := unfit.Remedy
		if hint == statement {
			hint = ""
		}
		f.Wrong(check, text, hint, statement)
		return
	}
	f.Wrong(check, text, unfit.Remedy)
}

// statusGrant is the right to see whether a server is a replica.
func statusGrant(s *inspect.Server) string {
	privilege := "REPLICATION CLIENT"
	if s.MariaDB {
		privilege = "SLAVE MONITOR"
	}
	return fmt.Sprintf("GRANT %s ON *.* TO %s", privilege, s.Account)
}

// group reports on the nodes of one sequence server as a whole.
func (k *connected) group(e *sequence.ExaminedServer, asked []askedNode) {
	f := k.at("sequence server " + e.Addr)
	for i := range e.Nodes {
		n := &e.Nodes[i]
		if n.Err != nil {
			continue
		}
		for j := range i {
			other := &e.Nodes[j]
			switch {
			case other.Err != nil:
			case other.Place == n.Place:
				f.Wrong("nodes", fmt.Sprintf("%s and %s are one server", other.Addr, n.Addr), "name each server once in `nodes`")
			case other.Identity == n.Identity && n.Cluster == "":
				f.Wrong("nodes", fmt.Sprintf("%s and %s both call themselves %s, so nobody can tell which gave a number", other.Addr, n.Addr, n.Identity),
					"give each a server_id of its own in its configuration; with MySQL remove auto.cnf from the copied data directory")
			}
		}
		s := asked[i].server
		switch {
		case s == nil || n.Cluster != "":
		case n.SourceErr != nil:
			k.at("sequence server "+n.Addr).Warn("rights", fmt.Sprintf("whether it replicates from another cannot be seen: %v", n.SourceErr), "", statusGrant(s))
		case n.ReadOnly && n.Source == "":
			word := "REPLICA"
			if s.MariaDB {
				word = "SLAVE"
			}
			k.at("sequence server "+n.Addr).Warn("nodes", "it is read only and replicates from nobody at present, so it can confirm no ceiling", "", "START "+word)
		}
	}
	var unfit *sequence.UnfitError
	switch {
	case errors.As(e.Err, &unfit):
		mend := []string{}
		if s := unfit.Statement(); s != "" {
			mend = append(mend, s)
		}
		f.Wrong("nodes", unfit.Finding, unfit.Remedy, mend...)
	case e.Err != nil:
		f.Wrong("nodes", e.Err.Error(), "bring the primary back; promote another node only when the old one is off. If two parts of a cluster are primary, stop one")
	default:
		f.OK("nodes", "one of %d can be written to", len(e.Nodes))
	}
}

// boundSequences reports the sequences of [[bind]] that do not exist.
func (k *connected) boundSequences(exists map[string]bool) {
	if len(k.seen) == 0 || k.cfg.UnknownSequence == conf.UnknownSequenceCreate {
		return
	}
	var f *inspect.Findings
	for _, b := range k.cfg.Binds {
		if exists[b.Sequence] {
			continue
		}
		if f == nil {
			f = k.at("configuration")
		}
		f.Wrong("bind", fmt.Sprintf("bind[%q].sequence names %q, which is no sequence", b.Column, b.Sequence),
			fmt.Sprintf("CREATE SEQUENCE %s START WITH n, with n above all keys of the column on all shards, said to the proxy by one of admin_users", quoteName(b.Sequence)))
	}
}
