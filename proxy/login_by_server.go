package proxy

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// relays says whether a user's login is checked by the default shard's server, which
// is so for all that the configuration does not name, if it says so.
func (s *settings) relays(user string) bool {
	if !s.RelayLogins {
		return false
	}
	if _, known := s.users[user]; known {
		return false
	}
	// A name that is too long is cut by the server, and must not be a way around what is
	// demanded of a user that is known here: MySQL cuts at 96 bytes, MariaDB at 128
	// characters.
	const bytesMySQL, charactersMariaDB = 96, 128
	if len(user) > bytesMySQL {
		if _, known := s.users[user[:bytesMySQL]]; known {
			return false
		}
	}
	characters := 0
	for i := range user {
		if characters++; characters > charactersMariaDB {
			_, known := s.users[user[:i]]
			return !known
		}
	}
	return true
}

// unquotedUser takes quotes off a name, as servers do with that of a login.
func unquotedUser(name string) string {
	if len(name) > 1 && name[0] == '\'' && name[len(name)-1] == '\'' {
		return name[1 : len(name)-1]
	}
	return name
}

// identifyByServer lets the default shard's server check who the client is, over the
// connection that then is the session's. A refusal is the server's own word; without
// the server nobody is let in.
//
// The schema is part of the login if it is that shard's, so that the server says what
// is wrong with it.
func (s *session) identifyByServer(attempt *protocol.Attempt) error {
	relay := attempt.Relay()
	s.login, s.user = attempt.Hello, &User{Name: attempt.Hello.User, relayed: true}
	_, err := s.enterFor("") // behind a pause it may have another node
	shards := s.routes
	relay.Keep = shards.Many()
	shard, schema := shards.Default(), attempt.Hello.Database
	if shards.ForSchema(schema) != shard {
		schema = ""
	}
	login := s.backendLogin(schema)
	login.Relay = relay
	if err == nil {
		err = s.boundDialogue(shard)
	}
	var c *backend.Conn
	if err == nil {
		c, err = s.dial(shard, login)
	}
	if err == nil {
		s.login = attempt.Hello
		s.packetNum = s.client.PacketNum()
		if err = s.becomeRelayed(c, relay); err == nil {
			if shards.ForSchema(s.login.Database) == shard {
				s.current(c)
			}
			return nil
		}
	}
	var clients *protocol.RelayError
	if errors.As(err, &clients) { // it has been answered, or is gone
		return err
	}
	s.packetNum = s.client.PacketNum()
	s.refuseLogin(err)
	return s.refusedByServer(&attempt.Hello, err)
}

// boundDialogue gives a client that a server is to check no more time than that server
// has patience: a server that gives up first counts a failed connection of the proxy's
// host.
func (s *session) boundDialogue(shard *backend.Shard) error {
	hello, _ := shard.Hello()
	if hello.LoginPatience == 0 { // as servers come
		hello.LoginPatience = 10 * time.Second
	}
	if patience := hello.LoginPatience * 4 / 5; patience < s.set.LoginTimeout {
		return s.setDeadline(time.Now().Add(patience))
	}
	return nil
}

// becomeRelayed makes the session that of the user that the server has let in.
func (s *session) becomeRelayed(c *backend.Conn, relay *protocol.RelayedLogin) error {
	s.user.Password, s.user.secret = relay.Password()
	s.user.secret = s.user.secret || !s.login.PasswordUsed
	admin, monitor := slices.Contains(s.set.Admins, s.user.Name), slices.Contains(s.set.Monitors, s.user.Name)
	clear := len(s.set.users) == 0 || isClear(s.user.Name)
	if !admin && !monitor && clear {
		return nil
	}
	name, account, err := s.askNames(c)
	var refused *protocol.ServerError
	if errors.As(err, &refused) { // an expired password, which allows nothing
		if clear {
			return nil
		}
		return relay.Refuse(fmt.Sprintf("the server does not say which user it takes for %.100q: %v", s.user.Name, refused))
	}
	if err != nil {
		return fmt.Errorf("ask for the account: %w", err)
	}
	if _, known := s.set.users[name]; known {
		return relay.Refuse(fmt.Sprintf("the server takes %.100q for the user %q, whom the proxy itself checks", s.user.Name, name))
	}
	// A server that has an anonymous account lets anybody in by any name.
	s.user.Admin, s.user.Monitor = admin && account == s.user.Name, monitor && account == s.user.Name
	return nil
}

// isClear says whether a server takes a user's name for that and no other. It converts
// one that is not ASCII from the client's character set, which MySQL ends at a character
// that is broken off.
func isClear(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// askNames asks a server for the name that the session has logged in with, and for that
// of the account that it has become.
func (s *session) askNames(c *backend.Conn) (name, account string, err error) {
	if err := c.SetReadDeadline(time.Now().Add(s.set.LoginTimeout)); err != nil {
		return "", "", err
	}
	rows, err := c.Query("SELECT HEX(USER()), HEX(CURRENT_USER())") // in UTF-8, whatever the client's character set
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

// What servers say when it is who logs in that they refuse.
const (
	erAccessDenied          = 1045
	erAccessDeniedNoMention = 1698 // as the first, without a word about passwords
	erPasswordExpired       = 1862
	erAccountLocked         = 3118
	erAccountBlocked        = 3955 // after failed logins
	erMariaDBAccountLocked  = 4151
	erMariaDBUserBlocked    = 4150 // after failed logins
)

// refusedByServer is the end of a session that the server did not let in; the client
// has been answered.
func (s *session) refusedByServer(hello *protocol.ClientHello, err error) error {
	var told *protocol.ServerError
	if !errors.As(err, &told) {
		return fmt.Errorf("%w by the server: %w", errLogin, err)
	}
	switch told.Code {
	case erAccessDenied, erAccessDeniedNoMention, erPasswordExpired, erAccountLocked, erAccountBlocked, erMariaDBAccountLocked, erMariaDBUserBlocked:
		return &protocol.AuthError{
			User: hello.User, Host: protocol.HostOf(s.client.RemoteAddr()), Plugin: hello.Plugin,
			UsingPassword: hello.PasswordUsed, Reason: told.Error(), ByServer: true, Code: told.Code, State: told.State,
		}
	}
	return fmt.Errorf("%w by the server: %w", errLogin, told)
}

// ownPassword says whether the session has to log in to a shard with its own name and
// password even if the shard names others: a relayed login is who it is wherever its
// password is known.
func (s *session) ownPassword(shard *backend.Shard) (bool, error) {
	switch {
	case !s.user.relayed:
		return false, nil
	case s.user.secret:
		return true, nil
	case shard.HasCredentials():
		return false, nil
	}
	return false, notSupported("shard %s needs the password of %s, which only the server of shard %s has checked: "+
		"give the shard a user and password of its own, or the user a [[user]]", shard.Name(), s.user.Name, s.routes.Default().Name())
}
