package session

import (
	"errors"
	"fmt"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// setStep sets on a new connection how far apart keys are, if several sequence servers divide the
// numbers in steps. Drivers compute the keys of further rows from that, and AUTO_INCREMENT uses it.
func (s *Settings) setStep(c *backend.Conn) error {
	stride := s.steps.Stride()
	if stride <= 1 {
		return nil
	}
	err := c.SetDeadline(time.Now().Add(askTimeout))
	if err == nil {
		err = c.Command(protocol.ComQuery, setStepSQL(stride))
	}
	switch {
	case err == nil:
		return c.SetDeadline(time.Time{})
	case errors.As(err, new(*protocol.ServerError)):
		return fmt.Errorf("shard %s: node %s: set auto_increment_increment: %w", c.Shard.Name(), c.Node(), err)
	}
	return &backend.UnreachableError{Shard: c.Shard.Name(), Node: c.Node(), Err: fmt.Errorf("set auto_increment_increment: %w", err)}
}

func setStepSQL(stride uint64) string {
	return fmt.Sprintf("SET SESSION auto_increment_increment = %d", stride)
}

// keepStep is setStep after the client has set the session's step to its default, which must be the
// sequences'. The client already has its answer, so a refusal by the server ends the session.
func (a *attachment) keepStep(c *backend.Conn) error {
	stride := a.set.steps.Stride()
	if !a.state.StepLost || stride <= 1 {
		return nil
	}
	a.state.StepLost = false
	err := a.runCommand(c, protocol.ComQuery, setStepSQL(stride))
	if err == nil || ends(err) {
		return err
	}
	return a.lost(c, fmt.Errorf("set auto_increment_increment: %w", err), true)
}
