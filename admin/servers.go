package admin

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/sequence"
	"seqproxy/statement/ddl"
)

// command runs a statement to the proxy itself.
func (s *Sequences) command(ctx context.Context, c *ddl.ProxyCommand, by proxy.Caller) (*protocol.Table, error) {
	change := sequence.PlanChange{Force: c.Force, Above: c.Above.Value, WritersStopped: c.WritersStopped}
	if v, ok := views[c.Verb]; ok {
		if s.proxy == nil {
			return nil, notSupported("this statement")
		}
		return s.view(ctx, v, c)
	}
	switch c.Verb {
	case ddl.ShowSequenceServers:
		return s.showServers(ctx)
	case ddl.AddSequenceServer, ddl.RemoveSequenceServer:
		address := string(c.Address)
		if strings.Contains(address, ",") {
			return nil, protocol.NotSupported("a group is not supported as one of several sequence servers: name the one address of a single server")
		}
		if host, port, err := net.SplitHostPort(address); err != nil || host == "" || port == "" {
			return nil, protocol.Errorf(mysql.ER_WRONG_ARGUMENTS, "HY000", "seqproxy: sequence server '%s': want 'host:port'", address)
		}
		if change.Add = address; c.Verb == ddl.RemoveSequenceServer {
			change.Add, change.Remove = "", address
		}
		return planned(s.servers.ChangePlan(ctx, change))
	}
	return s.change(ctx, c, by)
}

// commandColumns returns the columns of the answer to a command. There are none if the answer is an
// OK.
func commandColumns(c *ddl.ProxyCommand) []protocol.Column {
	if c.Verb == ddl.ShowSequenceServers {
		return serverColumns
	}
	return views[c.Verb].columns
}

// planned answers with the plan in force after the command.
func planned(p sequence.Plan, err error) (*protocol.Table, error) {
	if err != nil {
		return nil, err
	}
	info := fmt.Sprintf("plan %d is in force, with %d sequence server(s)", p.Number, max(len(p.Members), 1))
	if len(p.Away) > 0 {
		info += "; could not be told, and obeys it once it can be reached: " + strings.Join(p.Away, ", ")
	}
	return &protocol.Table{OK: protocol.OK{Info: info}}, nil
}

var serverColumns = []protocol.Column{
	number("position", 0),
	text("server", 255, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
	text("id", 36, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
	number("plan", mysql.NOT_NULL_FLAG),
	text("state", 16, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG),
	text("interleave", 32, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("change", 512, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("error", 1024, mysql.MYSQL_TYPE_VAR_STRING, 0),
	text("warning", 1024, mysql.MYSQL_TYPE_VAR_STRING, 0),
}

// showServers lists the sequence servers. See docs/statements.md for the columns.
func (s *Sequences) showServers(ctx context.Context) (*protocol.Table, error) {
	all, err := s.servers.SequenceServers(ctx)
	if err != nil && len(all) == 0 {
		return nil, err
	}
	t := &protocol.Table{Columns: serverColumns}
	if err != nil {
		t.Warning = fromMemory("sequence servers", err)
	}
	for i := range all {
		l := &all[i]
		var position, interleave, change, problem, warning any
		if l.Position >= 0 {
			position = uint64(l.Position)
		}
		switch l.Interleave {
		case sequence.InterleaveBlock:
			interleave = fmt.Sprintf("block %d", l.Block)
		case sequence.InterleaveStep:
			interleave = "step"
		}
		if p := l.Change; p != nil {
			change = fmt.Sprintf("%s from %s: plan %d is %s, begun %s UTC", p.UUID, p.Coordinator, p.Number, p.State, p.Begun.Format(time.DateTime))
		}
		if l.Err != nil {
			problem = l.Err.Error()
		}
		if l.Warning != "" {
			warning = l.Warning
		}
		t.Rows = append(t.Rows, []any{position, l.Address, l.ID, l.Plan, l.State, interleave, change, problem, warning})
	}
	return t, nil
}
