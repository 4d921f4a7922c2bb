package proxy

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// rights are the sequences that a user may take numbers of. nil: all of them.
type rights struct {
	names    [][]byte
	prefixes [][]byte // of the names, as the table spells them
}

// newRights reads User.Sequences.
func newRights(sequences []string) *rights {
	if sequences == nil {
		return nil
	}
	r := &rights{}
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

// mayUse is nil if the session's user may take numbers of a sequence, and look at it and
// set it; else it is the error for the client. For a user who may use every sequence it
// costs nothing. It is asked wherever numbers are taken.
func (s *session) mayUse(name []byte) error {
	if s.user.rights == nil {
		return nil
	}
	may, err := s.user.rights.allow(&s.patience, s.set.Sequences, name)
	if err = s.patience.over(err); err != nil {
		return err
	}
	if !may {
		return sqlError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000",
			"Access denied; you need the right to use the sequence '%s' for this operation", strings.ToValidUTF8(limit(string(name), maxNamed), "?"))
	}
	return nil
}

// maxNamed bounds the name in such an error.
const maxNamed = 64

// allow says whether a name is among the rights. Names are compared as the sequence
// table compares them; the beginning of one with how the table spells it.
func (r *rights) allow(ctx context.Context, known sequencer, name []byte) (bool, error) {
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
