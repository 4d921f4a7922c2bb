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

// Overview is the part of the whole proxy that SHOW SEQPROXY shows. Results are read-only.
type Overview interface {
	// Configuration returns the configuration in force.
	Configuration() Configuration
	// Program returns the program's version and commit.
	Program() (version, commit string)
	// Server and Shards return the parts that know what happens now.
	Server() *proxy.Server
	Shards() *backend.Shards
	// Metrics returns the metrics of /metrics.
	Metrics() prometheus.Gatherer
}

// view is a table of SHOW SEQPROXY.
type view struct {
	columns []protocol.Column
	rows    func(o Overview, p *ddl.ProxyCommand) ([][]any, error)
}

// views are the tables by their word.
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

// view answers with a table.
func (s *Sequences) view(ctx context.Context, v view, p *ddl.ProxyCommand) (*protocol.Table, error) {
	rows, err := v.rows(s.proxy, p)
	if err != nil {
		return nil, err
	}
	if p.HasPattern { // for the first column
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

// unlessEmpty returns NULL for the empty text.
func unlessEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// since returns the seconds since t, or NULL if nothing has happened yet.
func since(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return decimal(time.Since(t).Seconds(), 1)
}

// list joins names for one column.
func list(names []string) string { return strings.Join(names, ", ") }
