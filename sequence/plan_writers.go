package sequence

import (
	"context"
	"fmt"
)

// mayHaveWriters is directWriters as of the last connection: it does not ask.
func (v *server) mayHaveWriters() bool {
	switch v.tuning.Load().DirectWriters {
	case DirectWritersYes:
		return true
	case DirectWritersNo:
		return false
	}
	return !v.seen.Load().made
}

// directWriters reports whether applications must be taken to count in the table themselves: where it was there before seqproxy, or the plan in force says so.
func (v *server) directWriters(ctx context.Context) (bool, error) {
	switch v.tuning.Load().DirectWriters {
	case DirectWritersYes:
		return true, nil
	case DirectWritersNo:
		return false, nil
	}
	if v.share().direct {
		return true, nil
	}
	var comment string
	err := v.pool().QueryRowContext(ctx, "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?", v.opts.Database, v.opts.Table).Scan(&comment)
	if err != nil {
		return false, fmt.Errorf("read who made table %s: %w", v.table.full, err)
	}
	return comment != madeHere, nil
}
