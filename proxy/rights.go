package proxy

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"seqproxy/proxy/plan"
	"seqproxy/statement"
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
// costs nothing. Of a text with calls the plan asks; whatever else takes numbers asks here.
func (s *session) mayUse(name []byte) error {
	if s.user.rights == nil {
		return nil
	}
	may, err := s.hasRight(name)
	if err == nil && !may {
		err = errNoRight(name)
	}
	return err
}

// hasRight is mayUse for a user who may use some sequences alone.
func (s *session) hasRight(name []byte) (bool, error) {
	may, err := s.user.rights.allow(&s.patience, s.set.Sequences, name)
	return may, s.patience.over(err)
}

// mayTake is what a plan asks of the user's rights, for a statement that was planned before: they
// may be others since, and parameters may name the sequences.
func (s *session) mayTake(asks []plan.Slot) error {
	set := false
	for i := range asks {
		if !asks[i].Takes() {
			continue
		}
		if err := s.mayUse(asks[i].Sequence); err != nil {
			return err
		}
		set = set || asks[i].Func == statement.Setval
	}
	if !set || s.user.Admin {
		return nil
	}
	return s.refuseSetval(&asks[slices.IndexFunc(asks, func(a plan.Slot) bool { return a.Func == statement.Setval })])
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
