package login

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// Session is the part of a session that its Login uses.
type Session interface {
	// RefuseLogin answers the login with an error.
	RefuseLogin(err error)
	// SetDeadline bounds the client's time. The zero time removes the bound.
	SetDeadline(t time.Time) error
	// Drains reports whether sessions end when they can.
	Drains() bool
	// EnterDefault waits while the default shard is paused. It returns the present routes, even
	// with an error.
	EnterDefault() (*backend.Routes, error)
	// Dial opens a connection that the session then owns.
	Dial(shard *backend.Shard, with backend.Login) (*backend.Conn, error)
}

// Gate is what the logins of one proxy share.
type Gate struct {
	Failed     *Failures
	AtAdmin    *Failures // at the admin address: what clients fail keeps no admin out
	Counts     Counts
	Clients    atomic.Int64    // the sessions but for those at the admin address
	Attributes protocol.Attrs  // of every connection to a server
	Stopping   <-chan struct{} // closed when the proxy stops
	Log        *zap.Logger
}

// Login is the login of one client, and its user afterwards. A change of user is another login of
// the same client. Only the session's goroutine uses it, except where methods say otherwise.
type Login struct {
	protocol.ClientHello          // as the server that checked it has read it
	Account              *Account // shared; never nil, see NoAccount
	AtAdmin              bool     // the client came to the admin address
	Old                  bool     // the client speaks the protocol before MySQL 4.1
	Changed              bool     // it is a change of user
	LikeMySQL            bool     // the greeting was not MariaDB's

	proof     string   // the text that the OK must have
	entry     Entry    // its place among the logins
	countedAs *Account // account with this session in its count, or nil; guarded by Counts.mu
	session   Session
	client    *protocol.Conn
	gate      *Gate
	policy    *Policy // of the last login
	id        uint32  // the client's connection id
}

// New returns a login that has not begun.
func New(s Session, client *protocol.Conn, gate *Gate, atAdmin bool) Login {
	return Login{Account: NoAccount, AtAdmin: atAdmin, session: s, client: client, gate: gate}
}

// Reasons for the end of a login other than a refusal.
var (
	ErrStopping = errors.New("the proxy stops")
	ErrGone     = errors.New("the client has gone")
	ErrQuit     = errors.New("the client has quit")
)

// ErrRefused is a login, or a change of user, that a server refused.
var ErrRefused = errors.New("login")

// ErrOnlyAdmins refuses another user's login at the admin address.
var ErrOnlyAdmins = errors.New("neither in admin_users nor in monitor_users")

// Receive greets the client and reads its login, under an id and a policy. The caller must call
// End.
func (l *Login) Receive(ctx context.Context, id uint32, policy *Policy) (*protocol.Attempt, error) {
	l.id, l.policy = id, policy
	until := time.Now().Add(policy.Timeout)
	if err := l.session.SetDeadline(until); err != nil {
		return nil, err
	}
	if l.session.Drains() { // Shutdown's deadline may just have been overwritten
		_ = RefuseShutdown(l.client) // the session ends in any case
		return nil, ErrStopping
	}
	if err := l.enter(ctx, until); err != nil {
		if errors.Is(err, errTooMany) {
			// The session ends in any case.
			_ = protocol.RefuseConnection(l.client, errTooMany.answer.Code, errTooMany.answer.Message)
		}
		return nil, err
	}
	var arrived func() error // nil: not behind a balancer
	if !l.AtAdmin && policy.fromBalancer(l.client.RemoteAddr()) {
		arrived = func() error {
			// From now on the client's address counts, not the balancer's.
			l.entry.Leave()
			return l.enter(ctx, until)
		}
	}
	g := l.greeting(arrived)
	l.LikeMySQL = g.Version != NoServerVersion && !strings.Contains(g.Version, "MariaDB")
	attempt, err := g.Receive(l.client)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil, fmt.Errorf("%w: %w", ErrGone, err) // most likely a balancer's check
	}
	if l.session.Drains() && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, ErrStopping
	}
	if err == nil {
		l.Old = attempt.Old()
	}
	return attempt, err
}

// enter waits until the client may log in, or until the given time. After an error it may not, and
// has no answer yet.
func (l *Login) enter(ctx context.Context, until time.Time) error {
	if l.AtAdmin {
		return nil
	}
	addr := l.client.RemoteAddr()
	network, exempt := l.policy.Failures.Source(addr)
	all := exempt || !network.IsValid() || l.policy.fromBalancer(addr)
	room := l.policy.MaxConnections - int(l.gate.Clients.Load())
	err := l.entry.Enter(l.policy.Queue, network, all, room, until, l.gate.Stopping, ctx.Done())
	if err == ErrNoPlace {
		return errTooMany
	}
	return err
}

// errTooMany answers a client that got no place in time, or none to wait.
var errTooMany = &LimitError{protocol.Errorf(mysql.ER_CON_COUNT_ERROR, "08004", "Too many connections (seqproxy: max_logins of them are logging in)")}

// greeting returns the greeting of the client. arrived is ServerLogin.Arrived, not nil behind a
// balancer.
func (l *Login) greeting(arrived func() error) *protocol.ServerLogin {
	if l.AtAdmin {
		return l.policy.adminGreeting(l.id, arrived)
	}
	return l.policy.greeting(l.id, arrived)
}

// ReceiveChange reads a change of user from command, under a policy. The caller must call End.
func (l *Login) ReceiveChange(command []byte, policy *Policy) (*protocol.Attempt, error) {
	l.policy = policy
	return l.greeting(nil).ReceiveChangeUser(l.client, command, &l.ClientHello)
}

// Leave frees the login's place in the queue.
func (l *Login) Leave() { l.entry.Leave() }

// End ends the login, whatever its result. The account stays.
func (l *Login) End() {
	l.entry.Leave()
	l.policy, l.proof = nil, "" // the settings may soon change
}

// Identify makes the client prove its user to the proxy or to the server. It returns the connection
// to that server if the client begins on that shard. charset is the client's.
func (l *Login) Identify(ctx context.Context, attempt *protocol.Attempt, charset string) (*backend.Conn, error) {
	user := unquotedUser(attempt.Hello.User)
	attempt.Hello.User = user
	if err := l.checkCharset(charset); err != nil {
		return nil, err
	}
	if err := l.backOff(ctx, user); err != nil {
		return nil, err
	}
	if !l.AtAdmin && l.policy.relays(user) {
		c, err := l.identifyByServer(attempt)
		l.judged(user, err)
		return c, err
	}
	account, err := l.policy.verify(attempt)
	l.judged(user, err)
	if err != nil {
		return nil, err
	}
	l.ClientHello, l.Account, l.proof = attempt.Hello, account, attempt.Proof
	if l.AtAdmin && !account.MaySee() {
		l.session.RefuseLogin(protocol.Errorf(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR, "42000",
			"Access denied; you need to be one of the proxy's admin_users or monitor_users for this operation"))
		return nil, fmt.Errorf("login at the admin address: %w", ErrOnlyAdmins)
	}
	return nil, nil
}

// checkCharset refuses a login in a character set that no client may have, as every server does. It
// does not ask the server, which would count a fault of the proxy's host.
func (l *Login) checkCharset(name string) error {
	if !state.NoClientCharset(name) {
		return nil
	}
	err := protocol.Errorf(mysql.ER_WRONG_VALUE_FOR_VAR, "42000", "Variable 'character_set_client' can't be set to the value of '%s'", name)
	l.session.RefuseLogin(err)
	return fmt.Errorf("login: %w", err)
}

// Schema returns the schema that the session begins in.
func (l *Login) Schema() string {
	if l.Database == "" {
		return l.Account.Schema
	}
	return l.Database
}

// Proof returns the text that the OK must have; "": none.
func (l *Login) Proof() string { return l.proof }

// ToServer returns the session's login to servers, without a password.
func (l *Login) ToServer(schema string) backend.Login {
	return backend.Login{
		Credentials:  backend.Credentials{User: l.Account.Name},
		Schema:       schema,
		Capabilities: l.Capabilities,
		Collation:    l.Collation,
		ChangeUser:   l.Changed,
		Attributes:   l.connectionAttributes(),
	}
}

// errOldStatement ends a client that cannot read an error.
var errOldStatement = errors.New("the client speaks the protocol of before MySQL 4.1, in which it can log in and nothing else")

// ServeOld answers the login of a client before MySQL 4.1, and waits for it to leave: it is a
// balancer's check, and cannot read any other answer. The error says how the client has ended.
func (l *Login) ServeOld() error {
	if err := l.Count(!l.LikeMySQL); err != nil {
		l.session.RefuseLogin(err)
		return err
	}
	answer, _ := protocol.AppendPacket(nil, protocol.OldOK, l.client.PacketNum())
	if _, err := l.client.Write(answer); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	const longest = 1 << 10 // bound of a refused command
	payload, err := l.client.ReadPacket(longest)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if len(payload) > 0 && protocol.Command(payload[0]) == protocol.ComQuit {
		return ErrQuit
	}
	l.session.RefuseLogin(protocol.Errorf(mysql.ER_NOT_SUPPORTED_AUTH_MODE, "08004",
		"Client does not support authentication protocol requested by server; consider upgrading MySQL client"))
	return errOldStatement
}

// ErrShutdown is the error for a client whose command no longer runs.
var ErrShutdown = protocol.Errorf(mysql.ER_SERVER_SHUTDOWN, "08S01", "Server shutdown in progress")

// RefuseShutdown sends ErrShutdown in place of a greeting.
func RefuseShutdown(client *protocol.Conn) error {
	return protocol.RefuseConnection(client, ErrShutdown.Code, ErrShutdown.Message)
}
