package admin

import (
	"context"
)

// Caller is who asks.
type Caller interface {
	// Admin says whether the user may change sequences.
	Admin() bool
	// MayUse says whether the user may use a sequence, and so see it.
	MayUse(ctx context.Context, name []byte) (bool, error)
}
