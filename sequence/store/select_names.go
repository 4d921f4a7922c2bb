package store

import (
	"context"

	"seqproxy/sequence/link"
)

// SelectNames runs a query that selects names.
func SelectNames(ctx context.Context, on link.Querier, text string, args ...any) (names []string, err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

func asArgs(names []string) []any {
	args := make([]any, len(names))
	for i, name := range names {
		args[i] = name
	}
	return args
}
