package main

import (
	"context"
	"fmt"
	"slices"

	"seqproxy/backend"
	"seqproxy/proxy"
)

// bindColumn remembers a column that is bound by the configuration or by the owner of a sequence.
func (k *connected) bindColumn(schema, table, column, sequence string) {
	b := proxy.Binding{Schema: schema, Table: table, Column: column, Sequence: sequence}
	if !slices.Contains(k.bound, b) {
		k.bound = append(k.bound, b)
	}
}

// askNumbering finds bound columns with AUTO_INCREMENT on a node. It comes last, since it changes
// the session.
func (k *connected) askNumbering(ctx context.Context, l *loggedIn, ask backend.Ask) []backend.AutoIncrement {
	if l.Err != nil || len(k.bound) == 0 || len(k.cfg.Shards) < 2 {
		return nil
	}
	columns := make([]backend.Column, len(k.bound))
	for i, b := range k.bound {
		columns[i] = backend.Column{Schema: b.Schema, Table: b.Table, Column: b.Column}
	}
	found, err := backend.FindAutoIncrements(ctx, ask, l.Shard, columns)
	if err != nil {
		l.Err = err
	}
	return found
}

// reportNumbering reports bound columns that several shards' servers also number.
func (k *connected) reportNumbering(routes *backend.Routes) {
	for _, a := range routes.OnSeveralShards(k.numbering) {
		n := proxy.Numbered{Binding: k.bound[a.Column]}
		text := fmt.Sprintf("%s, which is filled from sequence %s, has AUTO_INCREMENT on this shard and on others: a row past the proxy, as from a trigger or a routine, "+
			"gets a key that another shard gives, too", n.Name(), n.Binding.Sequence)
		f := k.at("shard " + a.Shard)
		statements, hint := a.Statements(), ""
		if len(statements) == 0 {
			hint = a.Remedy()
		}
		f.Warn("auto_increment", text, hint, statements...)
	}
}
