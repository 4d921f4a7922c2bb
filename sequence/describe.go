package sequence

import (
	"context"
	"errors"

	"seqproxy/sequence/define"
)

// State is where a sequence stands.
type State struct {
	Last   uint64 // the last number that anybody reserved
	After  uint64 // the first that nobody has reserved; 0 if none is left
	Limit  uint64 // the highest number that it may give: MAXVALUE, or the end of the id column
	Frozen bool   // the set of sequence servers is being changed
	Info          // as List has it
}

// Describe returns the definition of a sequence and where it stands. It asks the server. Errors:
// ErrUnknown, ErrUnfit, ErrClosed, ctx's cause, *UnavailableError.
func (s *Sequences) Describe(ctx context.Context, name []byte) (define.Definition, State, error) {
	if !s.begin() {
		return define.Definition{}, State{}, ErrClosed
	}
	defer s.tasks.Done()
	r, stop := s.request(ctx)
	defer stop()
	found, err := s.members.Find(r.ctx, string(name))
	if err != nil {
		return define.Definition{}, State{}, r.failed(string(name), err)
	}
	if define.IsHidden(found.Name) {
		return define.Definition{}, State{}, &NameError{Name: string(name), Err: ErrUnknown}
	}
	def := found.Def
	def.Name = define.ShownName(found.Name)
	if now, err := s.presentRow(r.ctx, &found); err == nil {
		found = now
	} else if !errors.Is(err, ErrUnknown) {
		return define.Definition{}, State{}, r.failed(string(name), err)
	}
	after, ok := found.Rule().Next(found.Position(), found.Max)
	if !ok || def.Kind.HasClock() {
		after = 0
	}
	return def, State{Last: found.Position(), After: after, Limit: found.Max, Frozen: found.Frozen, Info: s.infoOf(&found, s.countProxies(r.ctx))}, nil
}
