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

// Rights are the sequences that a user may take numbers of. nil means all.
type Rights struct {
	names    [][]byte
	prefixes [][]byte // of names, in the table's spelling
}

// NewRights makes the rights to names, and to beginnings of names with a star at the end.
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

// Allow reports whether a name is among the rights. It compares names like the sequence table, and
// beginnings with the table's spelling.
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
		stored = string(name) // the statement may create it
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

// Among returns which of stored, names as the table spells them, are among the rights. It looks up
// no more than the names of the rights. With an error come those that are known without the
// sequence server.
func (r *Rights) Among(ctx context.Context, names Names, stored []string) (own map[string]bool, err error) {
	own = make(map[string]bool)
	for _, name := range stored {
		own[name] = r == nil || slices.ContainsFunc(r.prefixes, func(p []byte) bool { return strings.HasPrefix(name, string(p)) })
	}
	if r == nil {
		return own, nil
	}
	for _, name := range r.names {
		is := string(name)
		if _, listed := own[is]; !listed {
			if err != nil {
				continue
			}
			if is, _, err = names.Stored(ctx, name); err != nil {
				err = fmt.Errorf("look for the right to use a sequence: %w", err)
				continue
			}
		}
		own[is] = true
	}
	return own, err
}

// MayUse returns nil if the session's user may take numbers of a sequence, look at it and set it,
// else the error for the client. It costs nothing for a user with all rights. Whatever takes
// numbers without a plan must call it.
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

// HasRight is MayUse for a user with limited rights.
func (t *Taker) HasRight(name []byte) (bool, error) {
	may, err := t.rights.Allow(&t.Patience, t.names, name)
	return may, t.Patience.Over(err)
}

// MayTake checks the user's rights for a statement that was planned earlier: rights may have
// changed since, and parameters may name the sequences.
func (t *Taker) MayTake(asks []plan.Slot) error {
	set := false
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		if err := t.MayUse(asks[i].Sequence); err != nil {
			return err
		}
		set = set || asks[i].Func == statement.Setval
	}
	if !set || t.admin {
		return nil
	}
	return t.session.RefuseSetval(&asks[slices.IndexFunc(asks, func(a plan.Slot) bool { return a.Func == statement.Setval })])
}

// ErrNoRight returns the error for a sequence that the user may not use.
func ErrNoRight(name []byte) error {
	return protocol.Errorf(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000", "Access denied; you need the right to use the sequence '%s' for this operation", strings.ToValidUTF8(Named(name), "?"))
}

// Named returns the beginning of a name, for an error or a log.
func Named(name []byte) string {
	const longest = 64
	if len(name) <= longest {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:longest]), "")
}
