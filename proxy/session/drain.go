package session

import (
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy/login"
)

// Drain ends the wait for the next command, from outside. A session that is busy
// sees the shutdown when it has done its work.
func (b *backends) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.busy {
		_ = b.client.SetReadDeadline(time.Unix(1, 0)) // fails only on a closed connection
	}
}

// lastCommand is for how long a session that a shutdown ends looks for a command that
// has come meanwhile.
const lastCommand = 10 * time.Millisecond

// leave tells a client whose command crossed the shutdown that it was not carried out.
// To one that waits for nothing servers say nothing, either, and so its driver takes the
// connection for one that has become stale.
func (s *Session) leave() {
	if s.client.SetReadDeadline(time.Now().Add(lastCommand)) != nil || s.client.Fill() != nil {
		return
	}
	for {
		payload, ok, err := s.batch.next()
		if !ok || err != nil {
			return
		}
		s.client.packetNum = 1
		if len(payload) > 0 {
			switch cmd := protocol.Command(payload[0]); {
			case cmd == protocol.ComQuit:
				return
			case cmd.AnswerShape() == protocol.ShapeNone:
				continue
			}
		}
		s.refuse(login.ErrShutdown)
		_ = s.client.flush() // the session ends either way
		return
	}
}
