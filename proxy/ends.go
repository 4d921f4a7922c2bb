package proxy

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
)

// endReason is why a client was disconnected.
type endReason uint8

const (
	endQuit        endReason = iota // the client has said so
	endClientGone                   // the client's connection has ended without a word
	endBackendGone                  // its server, or the connection to it
	endAuth                         // the login was refused: see authReason
	endMalformed                    // it does not speak the protocol, or its TLS handshake failed
	endTimeout                      // too slow with its login, to read an answer, to send a statement, or idle for wait_timeout
	endLimit                        // too many connections, logins, or failed logins
	endDrain                        // the proxy shuts down
	endKilled                       // KILL
	endError                        // anything else
	endReasons
)

var endNames = [endReasons]string{
	endQuit: "quit", endClientGone: "client_gone", endBackendGone: "backend_gone", endAuth: "auth", endMalformed: "malformed",
	endTimeout: "timeout", endLimit: "limit", endDrain: "drain", endKilled: "killed", endError: "error",
}

// authReason is why a login, or a change of user, was refused.
type authReason uint8

const (
	authPassword    authReason = iota // it is not the user's
	authUnknownUser                   // there is none of that name
	authRequirement                   // what the user, or the proxy, demands of connections: TLS, a certificate
	authByServer                      // the server refused it
	authRelay                         // a login that the server is to check, which cannot be relayed safely
	authNotAdmin                      // one at the admin address of a user who is neither admin nor monitor
	authReasons
)

var authNames = [authReasons]string{
	authPassword: "password", authUnknownUser: "unknown_user", authRequirement: "requirement", authByServer: "server", authRelay: "relay",
	authNotAdmin: "not_admin",
}

// countEnd counts the session's end, and why.
func (s *session) countEnd(err error) {
	reason := s.endReason(err)
	s.srv.counters.ends[reason].Add(1)
	if reason == endAuth {
		s.srv.counters.auth[authReasonOf(err)].Add(1)
	}
}

func (s *session) endReason(err error) endReason {
	if errors.Is(err, errQuit) {
		return endQuit
	}
	switch s.doom.Load() { // whatever it met then
	case doomKilled:
		return endKilled
	case doomVanished:
		return endClientGone
	case doomDrained:
		return endDrain
	}
	var limited *loginRefused
	var handshake *protocol.HandshakeError
	var unreachable *backend.UnreachableError
	var refused *protocol.ServerError
	var auth *protocol.AuthError
	switch {
	case errors.Is(err, errSentBehind):
		return endBackendGone
	case errors.Is(err, errShutdown):
		return endDrain
	case errors.Is(err, errKilled):
		return endKilled
	case errors.As(err, &limited):
		return endLimit
	case errors.As(err, &auth), errors.Is(err, errOnlyAdmins):
		return endAuth
	case errors.As(err, &handshake):
		var relayed *protocol.RelayError
		if handshake.Code == protocol.CodeTLSRequired || handshake.Code == mysql.ER_NOT_SUPPORTED_AUTH_MODE && errors.As(err, &relayed) {
			return endAuth
		}
		return endMalformed
	case errors.Is(err, errIdle), errors.Is(err, errSlowClient):
		return endTimeout
	case errors.Is(err, errBackendGone), errors.Is(err, errBackendClosed), errors.As(err, &unreachable):
		return endBackendGone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return endTimeout
	case errors.Is(err, protocol.ErrFrame), errors.Is(err, protocol.ErrFrameOrder), errors.Is(err, protocol.ErrMalformed):
		return endMalformed
	case errors.Is(err, errClientGone), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return endClientGone
	case errors.Is(err, protocol.ErrTLSHandshake):
		return endMalformed
	case errors.Is(err, errLogin) && errors.As(err, &refused):
		if refused.State == "" { // in the place of a greeting
			return endBackendGone
		}
		return endAuth
	}
	return endError
}

// authReasonOf is why a session ended that endReason says endAuth of.
func authReasonOf(err error) authReason {
	var auth *protocol.AuthError
	var relayed *protocol.RelayError
	var handshake *protocol.HandshakeError
	switch {
	case errors.Is(err, errOnlyAdmins):
		return authNotAdmin
	case errors.As(err, &relayed):
		return authRelay
	case errors.As(err, &handshake):
		return authRequirement
	case !errors.As(err, &auth):
		return authByServer
	case auth.ByServer:
		return authByServer
	case auth.Reason != "":
		return authRequirement
	case !auth.KnownUser:
		return authUnknownUser
	}
	return authPassword
}

// countRefused counts a connection that became no session.
func (s *Server) countRefused(atAdmin bool) {
	reason := endLimit
	if s.closedTo(atAdmin) {
		reason = endDrain
	}
	s.counters.ends[reason].Add(1)
}
