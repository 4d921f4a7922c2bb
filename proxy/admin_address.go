package proxy

import (
	"context"
	"net"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/statement"
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
	s.adminListener = l
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
	s.mu.Lock()
	s.adminEnds.Store(true) // under mu: from then on no session is added
	s.mu.Unlock()
	s.adminListener.Close()
	s.eachAt(true, (*session).drain)
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
	s.eachAt(true, func(sess *session) {
		cut++
		sess.doom.Set(kill.Drained)
		sess.Cut()
	})
	<-ended
	return cut
}

// adminEndPatience is for how long sessions at the admin address may end by themselves
// when the time of the others is up.
const adminEndPatience = 200 * time.Millisecond

// noServer is the error for what needs a server where there is none.
func (a *attachment) noServer() error {
	if !a.login.AtAdmin {
		return errKeysOnly
	}
	return protocol.NotSupported("this is the admin address, where only SEQPROXY ..., SHOW SEQPROXY ..., EXPLAIN FORMAT=ROUTE and statements about sequences are answered "+
		"(SHOW SEQPROXY HELP lists them), and what drivers ask when they connect: for all else, as for data and to look around with a tool, connect to %s", a.shared.listener.Addr())
}

// version is what the session says that the server's is where there is none.
func (a *attachment) version() string {
	if a.login.AtAdmin {
		if hello, ok := a.set.routes.Greeting(); ok {
			return hello.TrueVersion()
		}
	}
	return login.NoServerVersion
}

// atAdminAddress handles a text at the admin address.
func (t *texts) atAdminAddress(sql []byte) error {
	if asksForNumbers(&t.planning.stmt) {
		return t.at.noServer()
	}
	return t.special(sql)
}

// asksForNumbers says whether a text is one that sequences give numbers to.
func asksForNumbers(st *statement.Statement) bool {
	if st.Refusal != "" {
		return true
	}
	for i := range st.Calls {
		switch st.Calls[i].Func {
		case statement.Nextval, statement.Lastval, statement.Setval:
			return true
		}
	}
	return false
}

// notHere is the error for a statement to the proxy where clients connect, if it is
// answered at the admin address alone and the user may give it there.
func (a *attachment) notHere(st *statement.Statement) error {
	if st.Kind != statement.Seqproxy && st.Kind != statement.ExplainRoute {
		return nil
	}
	if !a.set.AdminAddressOnly || a.login.AtAdmin || !a.login.Account.Looks() {
		return nil
	}
	where := "the admin address"
	if l := a.shared.adminListener; l != nil {
		where += " " + l.Addr().String()
	}
	return protocol.Errorf(mysql.ER_NOT_SUPPORTED_YET, "42000", "seqproxy: SEQPROXY, SHOW SEQPROXY and EXPLAIN FORMAT=ROUTE are answered at %s (admin.data_port is false)", where)
}
