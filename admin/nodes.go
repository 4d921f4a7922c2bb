package admin

import (
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/statement/ddl"
)

var nodeColumns = []protocol.Column{
	word("shard", 64),
	word("node", 255),
	word("role", 16),
	maybe("up", 3),
	fraction("seconds", 1, 0),
	maybe("version", 128),
	number("connections", mysql.NOT_NULL_FLAG),
	number("connecting", mysql.NOT_NULL_FLAG),
	number("connects", mysql.NOT_NULL_FLAG),
	number("errors", mysql.NOT_NULL_FLAG),
	maybe("last_error", 1024),
	fraction("last_error_seconds", 1, 0),
}

// nodeRows lists the nodes of the shards.
func nodeRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	for _, n := range c.Shards().Stats() {
		role := "replica"
		switch {
		case n.Leaving:
			role = "leaving"
		case n.Primary:
			role = "primary"
		}
		var up any
		if !n.Since.IsZero() { // otherwise there was no connection yet
			up = yes(n.Up)
		}
		errors := uint64(0)
		for _, e := range n.Errors {
			errors += e.N
		}
		rows = append(rows, []any{
			n.Shard, n.Node, role, up, since(n.Since), unlessEmpty(n.Version), uint64(n.Open), uint64(n.Connecting), n.Connects.Count(),
			errors, unlessEmpty(n.LastError), since(n.LastErrorAt),
		})
	}
	return rows, nil
}

var shardColumns = []protocol.Column{
	word("shard", 64),
	word("is_default", 3),
	maybe("schemas", 1024),
	word("nodes", 1024),
	maybe("user", 128),
	fraction("paused_seconds", 1, 0),
	number("sessions", mysql.NOT_NULL_FLAG),
	number("received_bytes", mysql.NOT_NULL_FLAG),
	number("sent_bytes", mysql.NOT_NULL_FLAG),
}

// Shard is a configured shard.
type Shard struct {
	Name    string
	Default bool
	Schemas []string
	Nodes   []string // node addresses
	User    string   // the account that the proxy uses for every client; "" means the client's own
}

// shardRows lists the configured shards.
func shardRows(c Overview, _ *ddl.ProxyCommand) (rows [][]any, _ error) {
	server := c.Server()
	sessions := make(map[string]uint64)
	for _, s := range server.SessionList() {
		for _, shard := range s.Shards {
			sessions[shard]++
		}
	}
	received, sent := make(map[string]uint64), make(map[string]uint64)
	for _, t := range server.Stats().Shards {
		received[t.Shard], sent[t.Shard] = t.Received, t.Sent
	}
	paused := make(map[string]time.Time)
	for _, s := range c.Shards().Routes().Named("") {
		if p := s.Paused(); p != nil {
			paused[s.Name()] = p.Since()
		}
	}
	for _, s := range c.Configuration().Shards() {
		rows = append(rows, []any{
			s.Name, yes(s.Default), unlessEmpty(list(s.Schemas)), list(s.Nodes), unlessEmpty(s.User),
			since(paused[s.Name]), sessions[s.Name], received[s.Name], sent[s.Name],
		})
	}
	return rows, nil
}
