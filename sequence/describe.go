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
	found, err := s.servers.find(r.ctx, string(name))
	if err != nil {
		return define.Definition{}, State{}, r.failed(string(name), err)
	}
	if define.IsHidden(found.name) {
		return define.Definition{}, State{}, &NameError{Name: string(name), Err: ErrUnknown}
	}
	def := found.def
	def.Name = define.ShownName(found.name)
	if now, err := s.presentRow(r.ctx, &found); err == nil {
		found = now
	} else if !errors.Is(err, ErrUnknown) {
		return define.Definition{}, State{}, r.failed(string(name), err)
	}
	after, ok := found.rule().Next(found.position(), found.max)
	if !ok || def.Kind.HasClock() {
		after = 0
	}
	return def, State{Last: found.position(), After: after, Limit: found.max, Frozen: found.frozen, Info: s.infoOf(&found, s.countProxies(r.ctx), s.steppedBy())}, nil
}
