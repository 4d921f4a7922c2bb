package session

import (
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
)

// A text that is passed on as it is may put a row into a table with a bound column without anybody
// here having seen it: then the server's AUTO_INCREMENT gives the key, and may give it on another
// shard, too. What gives that away is the insert id in the server's OK. Where bound columns are, an
// insert id that the statement does not explain is therefore logged and counted. It is a second
// line: the row is there by then.

// bindsOn says whether any column may be bound on a shard.
func (b *bindings) bindsOn(shard *backend.Shard, routes *backend.Routes) bool {
	if b == nil {
		return false
	}
	for _, list := range b.tables {
		for i := range list {
			if owner := routes.Owner(list[i].Schema); owner == nil || owner == shard {
				return true
			}
		}
	}
	return false
}

// suspects takes note of an insert id in an answer of c that its statement does not explain.
func (r *relay) suspects(c *backend.Conn, e *expected) {
	if !r.at.set.bound().bindsOn(c.Shard(), r.at.routes) {
		return
	}
	r.at.shared.Counters.Suspects.Add(1)
	text := e.text
	if !text.kept {
		text = r.slow.text // it came alone
	}
	r.at.log().Warn("insert id not explained", logfield.Shard(c.Shard().Name()), logfield.Node(c.Node()), zap.Uint64("insert_id", c.Answer.InsertID),
		zap.ByteString(logfield.NameStatement, r.slow.redacted(text)))
}
