package proxy

import (
	"slices"

	"seqproxy/proxy/plan"
	"seqproxy/statement"
)

// mayUse is nil if the session's user may take numbers of a sequence, and look at it and
// set it; else it is the error for the client. For a user who may use every sequence it
// costs nothing. Of a text with calls the plan asks; whatever else takes numbers asks here.
func (s *session) mayUse(name []byte) error {
	if s.login.Account.Rights == nil {
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
	may, err := s.login.Account.Rights.Allow(&s.numbers.Patience, s.set.Sequences, name)
	return may, s.numbers.Patience.Over(err)
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
	if !set || s.login.Account.Admin {
		return nil
	}
	return s.refuseSetval(&asks[slices.IndexFunc(asks, func(a plan.Slot) bool { return a.Func == statement.Setval })])
}

// maxNamed bounds the name in such an error.
const maxNamed = 64
