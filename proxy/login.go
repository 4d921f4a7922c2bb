package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// errLogin is a login, or a change of user, that a server has not let in.
var errLogin = errors.New("login")

// logIn checks the client's login and answers it.
func (s *session) logIn() error {
	s.state.Reset()
	until := time.Now().Add(s.set.LoginTimeout)
	if err := s.setDeadline(until); err != nil {
		return err
	}
	if s.drains() { // Shutdown's deadline may just have been overwritten
		_ = refuseShutdown(s.client) // the session ends either way
		return errShutdown
	}
	if err := s.enterLogin(until); err != nil {
		if errors.Is(err, errTooManyLogins) {
			_ = protocol.RefuseConnection(s.client, errTooManyLogins.told.Code, errTooManyLogins.told.Message) // the session ends either way
		}
		return err
	}
	defer s.entry.Leave()
	l := s.greeting()
	s.greetedMySQL = l.Version != noServerVersion && !strings.Contains(l.Version, "MariaDB")
	l.ProxyHeader = !s.atAdmin && s.set.fromBalancer(s.client.RemoteAddr())
	l.Arrived = func() error { // from now on it counts for the client's address, not for the balancer's
		s.entry.Leave()
		return s.enterLogin(until)
	}
	attempt, err := l.Receive(s.client)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", errClientGone, err) // a balancer's check, most likely
	}
	if s.drains() && errors.Is(err, os.ErrDeadlineExceeded) {
		return errShutdown
	}
	if err != nil {
		return err
	}
	s.oldClient = attempt.Old()
	if err := s.identify(attempt); err != nil {
		return err
	}
	if s.oldClient {
		return s.serveOld()
	}
	if err := s.begin(s.login.Database); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.client.StartCompression(s.login.Compression); err != nil {
		return err
	}
	return s.setDeadline(time.Time{}) // if that was Shutdown's, the session sees before it waits that it has to leave
}

// identify makes the session that of the user that the client proves to be, to us or
// to the server.
func (s *session) identify(attempt *protocol.Attempt) error {
	attempt.Hello.User = unquotedUser(attempt.Hello.User)
	if err := s.checkCharset(attempt.Hello.Collation); err != nil {
		return err
	}
	if err := s.backOff(); err != nil {
		return err
	}
	if !s.atAdmin && s.set.relays(attempt.Hello.User) {
		err := s.identifyByServer(attempt)
		s.judged(err)
		return err
	}
	user, err := s.set.verify(attempt)
	s.judged(err)
	if err != nil {
		return err
	}
	s.login, s.user, s.proof = attempt.Hello, user, attempt.Proof
	s.packetNum = s.client.PacketNum()
	if s.atAdmin && !user.looks() {
		s.refuseLogin(sqlError(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000",
			"Access denied; you need to be one of the proxy's admin_users or monitor_users for this operation"))
		return fmt.Errorf("login at the admin address: %w", errOnlyAdmins)
	}
	return nil
}

// checkCharset refuses a login in a character set that no client may have, as every server
// does. A server is not told of it: it counts that as a fault of the proxy's host.
func (s *session) checkCharset(collation uint16) error {
	s.state.SetCollation(collation)
	name := s.state.Charset
	if !state.NoClientCharset(name) {
		return nil
	}
	s.packetNum = s.client.PacketNum()
	err := sqlError(mysql.ER_WRONG_VALUE_FOR_VAR, "42000", "Variable 'character_set_client' can't be set to the value of '%s'", name)
	s.refuseLogin(err)
	return fmt.Errorf("login: %w", err)
}

// introduce says that user is known, for others to read, or that it changes.
func (s *session) introduce(known bool) {
	s.mu.Lock()
	s.introduced = known
	s.mu.Unlock()
}

// setDeadline bounds, or with the zero time no longer bounds, the client's login.
func (s *session) setDeadline(t time.Time) error {
	s.idle.alarm = time.Time{}
	if err := s.client.SetReadDeadline(t); err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	return nil
}

// prolongLogin gives a client that is logging in the whole time again, of which a pause has
// used some.
func (s *session) prolongLogin() error {
	if s.introduced { // nothing more is expected of it
		return nil
	}
	return s.setDeadline(time.Now().Add(s.set.LoginTimeout))
}

// begin starts a session of a user that has proved who it is, in the schema it
// named, and answers the login. A schema must exist, which only the server knows;
// if that cannot be reached, keys are given all the same.
func (s *session) begin(schema string) error {
	if err := s.srv.countUser(s); err != nil {
		s.refuseLogin(err)
		return err
	}
	s.introduce(true)
	s.state.Schema = schema
	if schema == "" {
		s.state.Schema = s.user.Schema
	}
	s.state.SetCollation(s.login.Collation)
	if s.state.Charset != "" && s.toldAtLogin() {
		_, _ = s.attach() // what is wrong is told when a statement needs the server
	} else if (s.state.Schema != "" || s.state.Charset == "") && s.routes.Default() != nil {
		_, err := s.attach()
		var unreachable *backend.UnreachableError
		switch {
		case errors.As(err, &unreachable):
			s.log().Warn("login without its shard", logfield.Err(err))
		case err != nil:
			s.refuseLogin(err)
			return fmt.Errorf("%w: %w", errLogin, err)
		}
	}
	if c := s.cur; c != nil && c.LoginOK != nil { // the server tells what it has made of the session
		ok := c.LoginOK
		if s.proof != "" {
			ok = protocol.WithText(ok, s.proof)
		}
		s.out, _ = protocol.AppendPacket(s.out, ok, s.packetNum)
		c.LoginOK = nil
	} else {
		s.reply(protocol.OK{Info: s.proof})
	}
	s.proof = ""
	return nil
}

// toldAtLogin says whether the client expects of the login's OK what only the server
// knows, though it names no schema.
func (s *session) toldAtLogin() bool {
	if s.state.Schema != "" || !s.login.Capabilities.Has(protocol.SessionTrack) {
		return false
	}
	shard := s.routes.Default()
	if shard == nil {
		return false
	}
	hello, _ := shard.Hello()
	return hello.TellsSession
}

// greeting is what the session's client is greeted with.
func (s *session) greeting() *protocol.ServerLogin {
	if s.atAdmin {
		return s.set.greetAtAdmin(s.id)
	}
	return s.set.greet(s.id)
}

// ownGreeting is what a client is greeted with while no server can be asked.
func (s *settings) ownGreeting(id uint32) *protocol.ServerLogin {
	l := &protocol.ServerLogin{
		Version: noServerVersion, ConnectionID: id, Capabilities: protocol.Common, Collation: noServerCollation,
		Status: protocol.Autocommit, TLS: s.TLS, RequireTLS: s.RequireTLS, RSA: s.RSA, OldPasswords: s.oldPasswords,
	}
	if !s.Compression {
		l.Capabilities &^= protocol.Compressing
	}
	return l
}

// greet is what a client is greeted with: the default shard's own version and collation,
// and what all servers can keep.
func (s *settings) greet(id uint32) *protocol.ServerLogin {
	l := s.ownGreeting(id)
	if hello, ok := s.routes.Greeting(); ok {
		l.Version, l.Collation, l.Old = hello.Version, hello.Collation, hello.MariaDB
		l.Capabilities = (protocol.Relayable | protocol.Compressing) & hello.Capabilities
		l.Prove = s.TLS != nil && hello.ProvesCertificates()
		if s.RelayLogins {
			l.Capabilities |= protocol.MultiFactor & hello.Capabilities
		}
	} else if s.routes.Default() != nil {
		l.Capabilities &^= protocol.SessionTrack // it can be spared
	}
	if !s.Compression {
		l.Capabilities &^= protocol.Compressing
	}
	return l
}

// fromBalancer says whether connections from addr begin with a PROXY header.
func (s *settings) fromBalancer(addr net.Addr) bool {
	if len(s.ProxyProtocolFrom) == 0 {
		return false
	}
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("") // a prefix has none
	return slices.ContainsFunc(s.ProxyProtocolFrom, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// What a client is greeted with while no server can be asked.
const (
	noServerVersion   = "8.0.11-seqproxy"
	noServerCollation = 45 // utf8mb4_general_ci
)

// verify lets a client prove that it is one of our users. Its Password is then the
// one that the client gave, for the servers.
func (s *settings) verify(attempt *protocol.Attempt) (*User, error) {
	u, known := s.users[attempt.Hello.User]
	if !known {
		u = nobody
	}
	err := attempt.Verify(protocol.Account{Password: u.Password, OldPassword: u.OldPassword, Require: u.Require}, known)
	if attempt.UsedOld {
		other := *u
		other.Password, other.OldPassword = u.OldPassword, u.Password
		u = &other
	}
	return u, err
}

// refuseLogin answers the login with an error, and the session ends. What a server says
// in place of its greeting (1040, 1129, 1130) has no SQLSTATE and goes on without one:
// clients then make of it what they make of it direct. Nor has any error to an old client.
func (s *session) refuseLogin(err error) {
	var told *protocol.ServerError
	switch {
	case s.oldClient:
		e := forClient(err)
		s.out = protocol.AppendERR(s.out, s.packetNum, e.Code, "", e.Message)
	case errors.As(err, &told) && told.State == "":
		s.out = protocol.AppendERR(s.out, s.packetNum, told.Code, "", told.Message)
	default:
		s.refuse(err)
	}
	_ = s.flush() // the session ends either way
}
