package keys

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Names tells sequences by their names. *sequence.Sequences implements it.
type Names interface {
	// Stored returns the name of a sequence as the table spells it, if there is one.
	Stored(ctx context.Context, name []byte) (stored string, known bool, err error)
	// Same says whether two names are spellings of one sequence.
	Same(ctx context.Context, a, b []byte) (bool, error)
}

// Rights are the sequences that a user may take numbers of. nil: all of them.
type Rights struct {
	names    [][]byte
	prefixes [][]byte // of the names, as the table spells them
}

// NewRights reads the names, and beginnings of names with a star, that a user may use.
func NewRights(sequences []string) *Rights {
	if sequences == nil {
		return nil
	}
	r := &Rights{}
	for _, name := range sequences {
		prefix, open := strings.CutSuffix(name, "*")
		switch {
		case open && prefix == "":
			return nil
		case open:
			r.prefixes = append(r.prefixes, []byte(prefix))
		default:
			r.names = append(r.names, []byte(name))
		}
	}
	return r
}

// Allow says whether a name is among the rights. Names are compared as the sequence
// table compares them; the beginning of one with how the table spells it.
func (r *Rights) Allow(ctx context.Context, known Names, name []byte) (bool, error) {
	for _, n := range r.names {
		if bytes.Equal(n, name) {
			return true, nil
		}
	}
	stored, exists, err := known.Stored(ctx, name)
	if err != nil {
		return false, fmt.Errorf("look for the right to use a sequence: %w", err)
	}
	if !exists {
		stored = string(name) // it may be about to be made
	}
	for _, p := range r.prefixes {
		if strings.HasPrefix(stored, string(p)) {
			return true, nil
		}
	}
	if !exists {
		return false, nil
	}
	for _, n := range r.names {
		same, err := known.Same(ctx, n, name)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}
