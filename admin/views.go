package admin

import (
	"context"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/prometheus/client_golang/prometheus"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/statement"
	"seqproxy/statement/ddl"
)

// Overview is what SHOW SEQPROXY tells of. What it returns is only read.
type Overview interface {
	// Configuration is the one in force.
	Configuration() Configuration
	// Program is the version and the commit of what runs.
	Program() (version, commit string)
	// Server and Shards are the parts that are asked what they do.
	Server() *proxy.Server
	Shards() *backend.Shards
	// Metrics is what /metrics tells.
	Metrics() prometheus.Gatherer
}

// view is a table that SHOW SEQPROXY shows of the whole proxy.
type view struct {
	columns []protocol.Column
	rows    func(o Overview, p *ddl.ProxyCommand) ([][]any, error)
}

// views are those of each word.
var views = map[ddl.ProxyVerb]view{
	ddl.ShowHelp:       {helpColumns, helpRows},
	ddl.ShowVersion:    {versionColumns, versionRows},
	ddl.ShowStatus:     {statusColumns, statusRows},
	ddl.ShowVariables:  {variableColumns, variableRows},
	ddl.ShowSessions:   {sessionColumns, sessionRows},
	ddl.ShowNodes:      {nodeColumns, nodeRows},
	ddl.ShowPools:      {poolColumns, poolRows},
	ddl.ShowUsers:      {userColumns, userRows},
	ddl.ShowShards:     {shardColumns, shardRows},
	ddl.ShowConfig:     {configColumns, configRows},
	ddl.ShowConfigDiff: {diffColumns, diffRows},
}

// view answers with one of them.
func (s *Sequences) view(ctx context.Context, v view, p *ddl.ProxyCommand) (*protocol.Table, error) {
	rows, err := v.rows(s.proxy, p)
	if err != nil {
		return nil, err
	}
	if p.HasPattern { // of the first column
		pattern, some := string(p.Pattern), rows[:0]
		for _, row := range rows {
			if statement.Like(pattern, row[0].(string)) {
				some = append(some, row)
			}
		}
		rows = some
	}
	return &protocol.Table{Columns: v.columns, Rows: rows}, ctx.Err()
}

// word is a column of short texts.
func word(name string, chars uint32) protocol.Column {
	return text(name, chars, mysql.MYSQL_TYPE_VAR_STRING, mysql.NOT_NULL_FLAG)
}

// maybe is a column of texts that may be NULL.
func maybe(name string, chars uint32) protocol.Column {
	return text(name, chars, mysql.MYSQL_TYPE_VAR_STRING, 0)
}

// unlessEmpty is NULL for the empty text.
func unlessEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// since is the time that has passed, in seconds; NULL where nothing has happened yet.
func since(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return decimal(time.Since(t).Seconds(), 1)
}

// list is several names in one column.
func list(names []string) string { return strings.Join(names, ", ") }
