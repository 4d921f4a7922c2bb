package session

import (
	"errors"
	"fmt"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// setStep tells a new connection that keys are as far apart as the numbers are where sequence
// servers take turns: drivers tell the keys of further rows by that, and AUTO_INCREMENT goes by it.
func (s *Settings) setStep(c *backend.Conn) error {
	stride := s.steps.Stride()
	if stride <= 1 {
		return nil
	}
	err := c.Command(protocol.ComQuery, fmt.Sprintf("SET SESSION auto_increment_increment = %d", stride))
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
	stride := a.set.steps.Stride()
	if lost := a.state.StepLost; !lost || stride <= 1 {
		return nil
	}
	a.state.StepLost = false
	err := a.runCommand(c, protocol.ComQuery, fmt.Sprintf("SET SESSION auto_increment_increment = %d", stride))
	if err == nil || ends(err) {
		return err
	}
	return a.lost(c, fmt.Errorf("set auto_increment_increment: %w", err), true)
}
