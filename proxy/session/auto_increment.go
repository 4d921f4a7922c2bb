package session

import (
	"cmp"
	"context"
	"slices"

	"seqproxy/backend"
)

// Numbered is a table whose bound column the server numbers by AUTO_INCREMENT, too, as the server
// of another shard does. A row that comes in past the proxy gets a key there that may be on the
// other shard as well.
type Numbered struct {
	Binding Binding
	Shard   string
	// Remedy is the statement, for that shard, that has the server give no numbers any more; or
	// what to do where that is not known.
	Remedy string
}

// Name is that of the bound column, as it was bound.
func (n *Numbered) Name() string {
	if n.Binding.Schema == "" {
		return n.Binding.Table + "." + n.Binding.Column
	}
	return n.Binding.Schema + "." + n.Binding.Table + "." + n.Binding.Column
}

// Numbered looks at the columns that are bound now. See [backend.Routes.AutoIncrements].
func (s *Settings) Numbered(ctx context.Context, creds func(*backend.Shard) ([]backend.Credentials, error)) (all []Numbered, err error) {
	if !s.Routes.Many() {
		return nil, nil
	}
	_, _ = s.owners.LoadOwners(ctx) // or those that are known
	bound := s.bound()
	if bound == nil {
		return nil, nil
	}
	var list []Binding
	for _, of := range bound.tables {
		list = append(list, of...)
	}
	slices.SortFunc(list, func(a, b Binding) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Sequence, b.Sequence))
	})
	columns := make([]backend.Column, len(list))
	for i, b := range list {
		columns[i] = backend.Column{Schema: b.Schema, Table: b.Table, Column: b.Column}
	}
	found, err := s.Routes.AutoIncrements(ctx, creds, columns)
	for _, f := range found {
		all = append(all, Numbered{list[f.Column], f.Shard, f.Remedy()})
	}
	return all, err
}

// Numbered looks, as the user, which bound columns have AUTO_INCREMENT on more than one shard.
func (a asker) Numbered(ctx context.Context) ([]Numbered, error) {
	return a.t.at.set.Numbered(ctx, func(shard *backend.Shard) ([]backend.Credentials, error) {
		creds, err := a.t.at.login.Account.UserCredentials(shard)
		return []backend.Credentials{creds}, err
	})
}
