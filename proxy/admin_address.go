package proxy

import (
	"context"
	"net"
	"time"

	"seqproxy/proxy/kill"
	"seqproxy/proxy/session"
)

// The admin address is a second one that the Server listens on. Its sessions have no
// server behind them, so that they work with every server down, and are not counted among
// the clients, so that they work while there is no room for any more of these. Only admins
// and monitors log in there, whom the proxy itself checks, and only statements to the
// proxy and about sequences are answered, with what clients ask when they connect.

// maxAtAdmin bounds the sessions at the admin address at the same time.
const maxAtAdmin = 100

// ListenAdmin opens the admin address, "host:port". It may be called once, before Serve.
func (s *Server) ListenAdmin(address string) error {
	config := listenConfig()
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	s.adminListener, s.shared.AdminAddress = l, l.Addr()
	return nil
}

// AdminAddr returns the admin address, nil if there is none.
func (s *Server) AdminAddr() net.Addr {
	if s.adminListener == nil {
		return nil
	}
	return s.adminListener.Addr()
}

// endAdminAddress ends the sessions at the admin address, and returns how many had to be
// cut, as Shutdown does with the others.
func (s *Server) endAdminAddress(ctx context.Context) (cut int) {
	if s.adminListener == nil {
		return 0
	}
	s.shared.Mu.Lock()
	s.shared.AdminEnds.Store(true) // under mu: from then on no session is added
	s.shared.Mu.Unlock()
	s.adminListener.Close()
	s.eachAt(true, (*session.Session).Drain)
	ended := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return 0
	case <-ctx.Done():
	}
	select {
	case <-ended: // of what the drain has just ended
		return 0
	case <-time.After(adminEndPatience):
	}
	s.eachAt(true, func(sess *session.Session) {
		cut++
		sess.Doomed().Set(kill.Drained)
		sess.Cut()
	})
	<-ended
	return cut
}

// adminEndPatience is for how long sessions at the admin address may end by themselves
// when the time of the others is up.
const adminEndPatience = 200 * time.Millisecond
