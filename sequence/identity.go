package sequence

import "context"

// Identity tells sequences apart: two names have the same one if they are spellings of one
// sequence. One that was dropped and made again has another, where that was done by this proxy, or
// it was asked for in between. It is comparable; the zero value is no sequence's.
type Identity struct {
	seq      *sequence
	replaced uint64
}

func (q *sequence) identity() Identity { return Identity{q, q.replaced.Load()} }

// Identify returns the identity of the sequence that name means. A name that is known here costs no
// I/O. name is not kept. Errors: ErrUnknown, and those of Exists.
func (s *Sequences) Identify(ctx context.Context, name []byte) (Identity, error) {
	q, err := s.find(ctx, name, s.patience(ctx))
	if err != nil {
		return Identity{}, err
	}
	return q.identity(), nil
}

// Schema is the schema that holds the sequence table.
func (s *Sequences) Schema() string { return s.opts.Servers[0].Database }
