package sequence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-sql-driver/mysql"

	"seqproxy/sequence/define"
	"seqproxy/sequence/link"
	"seqproxy/sequence/members"
	"seqproxy/sequence/segment"
	"seqproxy/sequence/store"
)

// This file looks at the sequence servers as a connection of [Sequences] does, for somebody who
// wants to know before it counts. Nothing is changed on any server, and it reports all findings,
// not just the first.

// maxExamined bounds how many nodes are looked at at one time.
const maxExamined = 16

// Ask runs a statement that changes nothing and returns its rows, each value as text and NULL as
// "".
type Ask func(ctx context.Context, text string) ([][]string, error)

// ExaminedNode is what was found at one address of a sequence server.
type ExaminedNode struct {
	Addr string
	Err  error // it could not be reached, logged in to or asked; the rest is empty then
	// Its Findings, with those of the tables, would keep numbers from being reserved there, or could
	// repeat them. Those that are an *UnfitError say what mends them.
	link.Examined

	Missing  bool    // the table of the sequences is not there, or may not be seen
	Lacking  int     // how many tables are not there, that one included
	Maximum  uint64  // of the id column, 0 if it is not known
	NameType string  // of the name column, with character set and collation
	Owners   []Owner // the columns that own sequences

	Membership Membership // ID "": the server is no member of a plan
	Plans      []Plan
	Change     *Plan // one of them that is neither in force nor aborted
}

// ExaminedServer is what was found at a sequence server.
type ExaminedServer struct {
	Addr  string // how errors call it
	Nodes []ExaminedNode
	// Err says why numbers could not be reserved on any of the nodes of a group, or on more than
	// one.
	Err error
}

// Examine looks at all sequence servers of the configuration at the same time. visit, if not nil,
// is called for each node with which that was possible, with a connection of the account, from
// several goroutines. On the first server it looks at the ticket tables that TicketTable was asked
// for, too. It works without anything else of s, which is not asked for numbers.
func (s *Sequences) Examine(ctx context.Context, visit func(ctx context.Context, server, node int, ask Ask)) []ExaminedServer {
	if !s.begin() {
		return nil
	}
	defer s.tasks.Done()
	places := make(chan struct{}, maxExamined)
	all := make([]ExaminedServer, len(s.opts.Servers))
	var tasks sync.WaitGroup
	for i := range all {
		v := s.members.Configured()[i]
		all[i] = ExaminedServer{Addr: v.Name(), Nodes: make([]ExaminedNode, len(v.Nodes()))}
		standings := make([]link.Standing, len(v.Nodes()))
		var nodes sync.WaitGroup
		for j, n := range v.Nodes() {
			nodes.Add(1)
			tasks.Go(func() {
				defer nodes.Done()
				places <- struct{}{}
				defer func() { <-places }()
				all[i].Nodes[j], standings[j] = s.examineNode(ctx, v, n, func(ask Ask) {
					if visit != nil {
						visit(ctx, i, j, ask)
					}
				})
			})
		}
		tasks.Go(func() {
			nodes.Wait()
			if v.Grouped() {
				_, all[i].Err = v.Fitting(standings)
			}
		})
	}
	tasks.Wait()
	s.examineFirstPlan(ctx, all)
	return all
}

func (s *Sequences) examineNode(ctx context.Context, v *server, n *link.Node, visit func(Ask)) (found ExaminedNode, stands link.Standing) {
	stands, err := v.Examine(ctx, n, func(conn *sql.Conn, is *link.Examined) error {
		found = ExaminedNode{Examined: *is}
		return s.examineOver(ctx, v, n, conn, &found, visit)
	})
	if err != nil {
		found = ExaminedNode{Err: err}
	}
	found.Addr = n.Addr
	return found, stands
}

// examineOver looks at the tables.
func (s *Sequences) examineOver(ctx context.Context, v *server, n *link.Node, conn *sql.Conn, found *ExaminedNode, visit func(Ask)) error {
	if err := link.WithRaw(conn, func(c link.Raw) error { return examineTables(ctx, v, c, found) }); err != nil {
		return err
	}
	if err := examineOtherTables(ctx, v, conn, found); err != nil {
		return err
	}
	if v == s.members.Configured()[0] {
		for _, t := range s.tickets.All() {
			if err := t.Examine(ctx, conn); err != nil {
				found.Findings = append(found.Findings, err)
			}
		}
	}
	for _, err := range found.Findings {
		if unfit := new(UnfitError); errors.As(err, &unfit) {
			unfit.Server = n.Addr
		}
	}
	visit(func(ctx context.Context, text string) ([][]string, error) { return link.Texts(ctx, conn, text) })
	return nil
}

// examineTables makes the checks of the tables, and goes on where they would end.
func examineTables(ctx context.Context, v *server, c link.Raw, found *ExaminedNode) error {
	missing, findings, err := v.LookForTables(ctx, c)
	if err != nil {
		return err
	}
	found.Findings = append(found.Findings, findings...)
	found.Lacking, found.Missing = len(missing), slices.Contains(missing, v.Config.Table)
	if found.Missing {
		found.Findings = append(found.Findings, v.EachMissing(missing, store.PlainNameType)...)
		return nil
	}
	layout, findings, err := v.Columns(ctx, c)
	if err != nil {
		return err
	}
	found.Findings = append(found.Findings, findings...)
	if layout != nil {
		found.Maximum, found.NameType = layout.Max, layout.NameType
		found.Findings = append(found.Findings, v.EachMissing(missing, layout.NameType)...)
		v.Seen.Store(layout)
	}
	switch err := v.CheckLoneNode(ctx, c); {
	case errors.Is(err, ErrUnfit):
		found.Findings = append(found.Findings, err)
	case err != nil:
		return err
	}
	return nil
}

// examineOtherTables looks at the tables beside the first one, as far as they are there and may be
// seen.
func examineOtherTables(ctx context.Context, v *server, conn *sql.Conn, found *ExaminedNode) error {
	rows, err := link.Texts(ctx, conn, "SELECT TABLE_NAME, COLUMN_TYPE, IFNULL(CHARACTER_SET_NAME, ''), IFNULL(COLLATION_NAME, '') FROM information_schema.COLUMNS "+
		"WHERE "+v.InTables()+" AND COLUMN_NAME = 'name' ORDER BY 1")
	if err != nil {
		return fmt.Errorf("look for the tables beside %s: %w", v.Table.Sequence, err)
	}
	for _, r := range rows {
		full := define.Quote(v.Config.Database) + "." + define.Quote(r[0])
		nameType := r[1]
		if r[2] != "" {
			nameType += " CHARACTER SET " + r[2] + " COLLATE " + r[3]
		}
		if found.NameType != "" && nameType != found.NameType {
			found.Findings = append(found.Findings, v.Unfit(full, fmt.Sprintf("its column `name` is %s, the one of %s is %s: a name may mean different rows in them",
				nameType, v.Table.Sequence, found.NameType), "ALTER TABLE "+full+" MODIFY `name` "+found.NameType+" NOT NULL"))
		}
	}
	if !found.Missing {
		if found.Owners, err = ownersOn(ctx, v, conn); link.IsDenied(err) {
			found.Findings = append(found.Findings, err)
		}
	}
	m, err := v.Plans.Membership(ctx, conn, "")
	if link.IsDenied(err) && !found.Missing {
		found.Findings = append(found.Findings, err)
	}
	if err == nil && m.ID != "" {
		found.Membership = m
		said := new(mysql.MySQLError)
		if found.Plans, err = v.Plans.All(ctx, conn, ""); link.IsDenied(err) {
			found.Findings = append(found.Findings, err)
		} else if err != nil && !errors.As(err, &said) {
			return err
		}
		for i := range found.Plans {
			if p := &found.Plans[i]; p.Open() && p.Number > m.Plan {
				found.Change = p
			}
		}
	}
	return nil
}

// ownersOn reads the columns that own sequences.
func ownersOn(ctx context.Context, v *server, conn *sql.Conn) (all []Owner, err error) {
	rows, err := link.Texts(ctx, conn, "SELECT o.`name`, o.`owner_schema`, o.`owner_table`, o.`owner_column` FROM "+v.Table.Options+
		" AS o WHERE o.`owner_column` <> '' ORDER BY 1")
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		all = append(all, Owner{Sequence: r[0], Column: define.Column{Schema: r[1], Table: r[2], Column: r[3]}})
	}
	return all, nil
}

// examineFirstPlan looks at what would refuse the first plan, where several servers are configured
// and none is in force.
func (s *Sequences) examineFirstPlan(ctx context.Context, all []ExaminedServer) {
	if len(all) == 1 || s.opts.Interleave != InterleaveStep || slices.ContainsFunc(all, func(e ExaminedServer) bool {
		return slices.ContainsFunc(e.Nodes, func(n ExaminedNode) bool { return n.Err != nil || n.Missing || n.Membership.Plan != 0 })
	}) {
		return
	}
	var tasks sync.WaitGroup
	for i := range all {
		v := s.members.Configured()[i]
		for j := range all[i].Nodes {
			node := &all[i].Nodes[j]
			if len(node.Findings) > 0 || len(all[i].Nodes) > 1 && node.ReadOnly {
				continue
			}
			tasks.Go(func() {
				conn, err := v.Nodes()[j].Pool().Conn(ctx)
				if err == nil {
					defer func() { _ = conn.Close() }()
					err = members.FitsPlan(ctx, v, conn, s.members.Now().Members, segment.Share{Position: uint64(i), Count: uint64(len(all)), Interleave: InterleaveStep}, "")
				}
				if unfit := new(UnfitError); errors.As(err, &unfit) {
					unfit.Server = node.Addr
					node.Findings = append(node.Findings, err)
				}
			})
		}
	}
	tasks.Wait()
}
