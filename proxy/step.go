package proxy

import (
	"errors"
	"fmt"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// setStep tells a new connection that keys are as far apart as the numbers are where sequence
// servers take turns: drivers tell the keys of further rows by that, and AUTO_INCREMENT goes by it.
func (s *settings) setStep(c *backend.Conn) error {
	turns := s.Sequences.Stride()
	if turns <= 1 {
		return nil
	}
	err := c.Command(protocol.ComQuery, fmt.Sprintf("SET SESSION auto_increment_increment = %d", turns))
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*protocol.ServerError)):
		return fmt.Errorf("shard %s: node %s: set auto_increment_increment: %w", c.Shard().Name(), c.Node(), err)
	}
	return &backend.UnreachableError{Shard: c.Shard().Name(), Node: c.Node(), Err: fmt.Errorf("set auto_increment_increment: %w", err)}
}

// keepStep is setStep after the client has set the session's step to its default, which is that of
// the sequences, too. The client has its answer: what the server refuses now ends the session,
// without another.
func (a *attachment) keepStep(c *backend.Conn) error {
	turns := a.set.Sequences.Stride()
	if lost := a.state.StepLost; !lost || turns <= 1 {
		return nil
	}
	a.state.StepLost = false
	err := a.runCommand(c, protocol.ComQuery, fmt.Sprintf("SET SESSION auto_increment_increment = %d", turns))
	if err == nil || ends(err) {
		return err
	}
	return a.lost(c, fmt.Errorf("set auto_increment_increment: %w", err), true)
}

// defaultStepInside says whether several statements in one text, if all go well, leave the
// session's step at its default; see keepStep.
func (p *planning) defaultStepInside(sql []byte) (lost bool) {
	if p.at.set.Sequences.Stride() <= 1 {
		return false
	}
	for i := range p.stmt.Parts {
		part := &p.stmt.Parts[i]
		if part.Kind != statement.Set {
			continue
		}
		for _, a := range p.stmt.Assignments[part.From:part.To] {
			if a.Target == statement.SessionVariable && string(a.Name) == state.StepVariable {
				lost = state.IsDefault(string(sql[a.Start:a.End]))
			}
		}
	}
	return lost
}
