package keys

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

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

// Allow reports whether a name is among the rights. Names are compared as the sequence table
// compares them. The beginning of one is compared with the table's spelling.
func (r *Rights) Allow(ctx context.Context, names Names, name []byte) (bool, error) {
	for _, n := range r.names {
		if bytes.Equal(n, name) {
			return true, nil
		}
	}
	stored, exists, err := names.Stored(ctx, name)
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
		same, err := names.Same(ctx, n, name)
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// MayUse is nil if the session's user may take numbers of a sequence, and look at it and
// set it; else it is the error for the client. For a user who may use every sequence it
// costs nothing. Of a text with calls the plan asks; whatever else takes numbers asks here.
func (t *Taker) MayUse(name []byte) error {
	if t.rights == nil {
		return nil
	}
	may, err := t.HasRight(name)
	if err == nil && !may {
		err = ErrNoRight(name)
	}
	return err
}

// HasRight is MayUse for a user who may use some sequences alone.
func (t *Taker) HasRight(name []byte) (bool, error) {
	may, err := t.rights.Allow(&t.Patience, t.names, name)
	return may, t.Patience.Over(err)
}

// MayTake is what a plan asks of the user's rights, for a statement that was planned before: they
// may be others since, and parameters may name the sequences.
func (t *Taker) MayTake(asks []plan.Slot) error {
	set := false
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		if t.rights != nil {
			if err := t.MayUse(asks[i].Sequence); err != nil {
				return err
			}
		}
		set = set || asks[i].Func == statement.Setval
	}
	if !set || t.admin {
		return nil
	}
	return t.session.RefuseSetval(&asks[slices.IndexFunc(asks, func(a plan.Slot) bool { return a.Func == statement.Setval })])
}

// ErrNoRight is the error for a sequence that the user may not use.
func ErrNoRight(name []byte) error {
	return protocol.Errorf(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need the right to use the sequence '%s' for this operation", strings.ToValidUTF8(Named(name), "?"))
}

// Named is the beginning of a name, as an error or a log may have it.
func Named(name []byte) string {
	const longest = 64
	if len(name) <= longest {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:longest]), "")
}
