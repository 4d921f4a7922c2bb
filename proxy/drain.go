package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
)

// A proxy stops in steps, each of which whoever runs it may prolong: Announce,
// StopAccepting, Wait for clients to leave by themselves, and Shutdown. The admin address
// is the last to end, so that one can look on.

// Announce has Draining tell that the server is about to stop. Clients are served as
// before.
func (s *Server) Announce() { s.announced.Store(true) }

// Draining says whether the server is about to stop or stops: nobody new should be sent
// to it. It stays so.
func (s *Server) Draining() bool { return s.announced.Load() }

// StopAccepting refuses every further client but at the admin address. The sessions go on.
func (s *Server) StopAccepting() {
	s.Announce()
	s.mu.Lock()
	s.closed.Store(true) // under mu: from then on no session is added
	s.mu.Unlock()
	s.listener.Close()
}

// Wait waits until every session of a client has ended, by itself, or ctx is done, whose
// error it returns then. Those at the admin address are not waited for. StopAccepting must
// have been called.
func (s *Server) Wait(ctx context.Context) error {
	s.awaitEnd.Do(func() {
		go func() {
			s.clients.Wait()
			close(s.ended)
		}()
	})
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown stops accepting and ends every session: those that wait for a command at
// once, the others when what they run has ended and no transaction is open. What is left
// when ctx is done is cut. It returns when every session has ended; the error says how
// many had to be cut.
func (s *Server) Shutdown(ctx context.Context) error {
	s.StopAccepting()
	if s.draining.Swap(true) {
		return errors.New("shutdown was asked for already")
	}
	defer s.stopWatching(ctx)
	close(s.stopping)
	s.eachAt(false, (*session).drain)
	cut := 0
	if s.Wait(ctx) != nil {
		s.eachAt(false, func(sess *session) {
			cut++
			sess.doom.Set(kill.Drained)
			sess.Cut()
		})
		<-s.ended
	}
	cut += s.endAdminAddress(ctx)
	s.wg.Wait() // of the goroutines that served
	if cut > 0 {
		return fmt.Errorf("%d sessions were still busy and had to be closed", cut)
	}
	return nil
}

// closedTo says whether nobody is accepted any more.
func (s *Server) closedTo(atAdmin bool) bool {
	if atAdmin {
		return s.adminEnds.Load()
	}
	return s.closed.Load()
}

// drain ends the wait for the next command, from outside. A session that is busy
// sees the shutdown when it has done its work.
func (b *backends) drain() {
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
func (s *session) leave() {
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
