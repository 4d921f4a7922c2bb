package admin

import (
	"cmp"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy"
	"seqproxy/statement/ddl"
)

var sessionColumns = []protocol.Column{
	number("id", mysql.NOT_NULL_FLAG),
	maybe("user", 128),
	word("client", 64),
	word("address", 8),
	maybe("shard", 1024),
	maybe("schema", 64),
	word("state", 8),
	fraction("seconds", 1, mysql.NOT_NULL_FLAG),
	fraction("connected_seconds", 1, mysql.NOT_NULL_FLAG),
	number("statements", mysql.NOT_NULL_FLAG),
	maybe("pinned_by", 1024),
	number("received_bytes", mysql.NOT_NULL_FLAG),
	number("sent_bytes", mysql.NOT_NULL_FLAG),
}

// sessionRows lists the connected clients.
func sessionRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	for _, s := range c.Server().SessionList() {
		address := "data"
		if s.AtAdmin {
			address = "admin"
		}
		var pins []string
		for _, p := range s.Pins {
			pins = append(pins, p.String())
		}
		rows = append(rows, []any{
			uint64(s.ID), unlessEmpty(s.User), s.Client, address, unlessEmpty(list(s.Shards)), unlessEmpty(s.Schema), s.State.String(),
			since(s.Since), since(s.Connected), s.Statements, unlessEmpty(list(pins)), s.Received, s.Sent,
		})
	}
	return rows, nil
}

var poolColumns = []protocol.Column{
	word("shard", 64),
	word("user", 128),
	word("mode", 16),
	number("sessions", mysql.NOT_NULL_FLAG),
	number("busy", mysql.NOT_NULL_FLAG),
	number("idle", mysql.NOT_NULL_FLAG),
	number("pinned", mysql.NOT_NULL_FLAG),
}

// poolRows counts the sessions with a connection to a shard's server. Each session has a connection
// of its own.
func poolRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	type key struct{ shard, user string }
	type pool struct{ sessions, busy, pinned uint64 }
	pools := make(map[key]*pool)
	for _, s := range c.Server().SessionList() {
		for _, shard := range s.Shards {
			p := pools[key{shard, s.User}]
			if p == nil {
				p = new(pool)
				pools[key{shard, s.User}] = p
			}
			p.sessions++
			if s.State == proxy.SessionBusy && shard == s.Shards[0] {
				p.busy++
			}
			if len(s.Pins) > 0 {
				p.pinned++
			}
		}
	}
	for k, p := range pools {
		rows = append(rows, []any{k.shard, k.user, "session", p.sessions, p.busy, p.sessions - p.busy, p.pinned})
	}
	slices.SortFunc(rows, func(a, b []any) int {
		return cmp.Or(cmp.Compare(a[0].(string), b[0].(string)), cmp.Compare(a[1].(string), b[1].(string)))
	})
	return rows, nil
}
