package login

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// unquotedUser removes quotes from a user's name, as servers do at a login.
func unquotedUser(name string) string {
	if len(name) > 1 && name[0] == '\'' && name[len(name)-1] == '\'' {
		return name[1 : len(name)-1]
	}
	return name
}

// identifyByServer lets the default shard's server check the client, over a connection that then
// becomes the session's. A refusal is in the server's words. Without the server the client is
// refused.
//
// The schema is part of the login if that shard has it: the server then reports what is wrong with
// it. The connection is returned if the session begins on that shard.
func (l *Login) identifyByServer(attempt *protocol.Attempt) (*backend.Conn, error) {
	relay := attempt.Relay()
	l.ClientHello, l.Account = attempt.Hello, &Account{User: User{Name: attempt.Hello.User}, relayed: true}
	shards, err := l.session.EnterDefault() // after a pause the shard may have another node
	relay.Keep = shards.Many()
	shard, schema := shards.Default, attempt.Hello.Database
	if shards.ForSchema(schema) != shard {
		schema = ""
	}
	with := l.ToServer(schema)
	with.Relay = relay
	if err == nil {
		err = l.boundDialogue(shard)
	}
	var c *backend.Conn
	if err == nil {
		c, err = l.session.Dial(shard, with)
	}
	if err == nil {
		l.ClientHello = attempt.Hello
		if err = l.becomeRelayed(c, relay); err == nil {
			if shards.ForSchema(l.Database) != shard {
				c = nil
			}
			return c, nil
		}
	}
	var clients *protocol.RelayError
	if errors.As(err, &clients) { // the client has its answer, or is gone
		return nil, err
	}
	refusal := err
	if !errors.As(err, new(*protocol.ServerError)) {
		refusal = errNoJudge
	}
	l.session.RefuseLogin(refusal)
	return nil, l.refusedByServer(&attempt.Hello, err)
}

// errNoJudge answers a client that no server could check. It has proved nothing, and learns no
// address of a server.
var errNoJudge = protocol.Errorf(mysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "HY000",
	"seqproxy: the server that checks this account cannot be used now; the proxy's log says why")

// boundDialogue gives a client no more time than the server that checks it: a server that gives up
// first counts a failed connection of the proxy's host.
func (l *Login) boundDialogue(shard *backend.Shard) error {
	hello, _ := shard.Hello()
	if hello.LoginPatience == 0 { // the default of servers
		hello.LoginPatience = 10 * time.Second
	}
	if patience := hello.LoginPatience * 4 / 5; patience < l.policy.Timeout {
		return l.session.SetDeadline(time.Now().Add(patience))
	}
	return nil
}

// becomeRelayed gives the session the user that the server has accepted.
func (l *Login) becomeRelayed(c *backend.Conn, relay *protocol.RelayedLogin) error {
	l.Account.Password, l.Account.secret = relay.Password()
	l.Account.secret = l.Account.secret || !l.PasswordUsed
	admin, monitor := slices.Contains(l.policy.Admins, l.Account.Name), slices.Contains(l.policy.Monitors, l.Account.Name)
	clear := len(l.policy.Users) == 0 || isUnambiguous(l.Account.Name)
	if !admin && !monitor && clear {
		return nil
	}
	name, account, err := l.askNames(c)
	var refused *protocol.ServerError
	if errors.As(err, &refused) { // an expired password, which allows nothing
		if clear {
			return nil
		}
		return relay.Refuse(fmt.Sprintf("the server does not say which user it takes for %.100q: %v", l.Account.Name, refused))
	}
	if err != nil {
		return fmt.Errorf("ask for the account: %w", err)
	}
	if _, exists := l.policy.Users[name]; exists {
		return relay.Refuse(fmt.Sprintf("the server takes %.100q for the user %q, whom the proxy itself checks", l.Account.Name, name))
	}
	// A server with an anonymous account accepts any name.
	l.Account.Admin, l.Account.Monitor = admin && account == l.Account.Name, monitor && account == l.Account.Name
	return nil
}

// isUnambiguous reports whether a server surely reads a user's name as this name. It converts one
// that is not ASCII from the client's character set, which MySQL cuts at an incomplete character.
func isUnambiguous(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// askNames asks a server for the session's login name and for its account.
func (l *Login) askNames(c *backend.Conn) (name, account string, err error) {
	if err := c.SetReadDeadline(time.Now().Add(l.policy.Timeout)); err != nil {
		return "", "", err
	}
	// in UTF-8, whatever the client's character set
	rows, err := c.Query("SELECT HEX(USER()), HEX(CURRENT_USER())")
	var refused *protocol.ServerError
	if err == nil || errors.As(err, &refused) {
		err = errors.Join(err, c.SetReadDeadline(time.Time{}))
	}
	if err != nil {
		return "", "", err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return "", "", protocol.ErrMalformed
	}
	for i, to := range []*string{&name, &account} {
		at, err := hex.DecodeString(string(rows[0][i]))
		if err != nil {
			return "", "", fmt.Errorf("%w: %w", protocol.ErrMalformed, err)
		}
		*to = string(at[:max(0, bytes.LastIndexByte(at, '@'))])
	}
	return name, account, nil
}

// Errors of servers that concern the client itself.
const (
	erAccessDenied          = 1045
	erAccessDeniedNoMention = 1698 // as the first, without mention of a password
	erPasswordExpired       = 1862
	erAccountLocked         = 3118
	erAccountBlocked        = 3955 // after failed logins
	erMariaDBAccountLocked  = 4151
	erMariaDBUserBlocked    = 4150 // after failed logins
)

// refusedByServer ends a session that the server did not accept. The client has its answer.
func (l *Login) refusedByServer(hello *protocol.ClientHello, err error) error {
	var refused *protocol.ServerError
	if !errors.As(err, &refused) {
		return fmt.Errorf("%w by the server: %w", ErrRefused, err)
	}
	switch refused.Code {
	case erAccessDenied, erAccessDeniedNoMention, erPasswordExpired, erAccountLocked, erAccountBlocked, erMariaDBAccountLocked, erMariaDBUserBlocked:
		return &protocol.AuthError{
			User: hello.User, Host: protocol.HostOf(l.client.RemoteAddr()), Plugin: hello.Plugin,
			UsingPassword: hello.PasswordUsed, Reason: refused.Error(), ByServer: true, Code: refused.Code, State: refused.State,
		}
	}
	return fmt.Errorf("%w by the server: %w", ErrRefused, refused)
}
