package session

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/stats"
)

// countEnd counts the session's end, and why.
func (s *Session) countEnd(err error) {
	reason := endReason(err, &s.doom)
	s.shared.Counters.Ends[reason].Add(1)
	if reason == stats.EndAuth {
		s.shared.Counters.Auth[authReasonOf(err)].Add(1)
	}
}

func endReason(err error, doom *kill.Doom) stats.End {
	if errors.Is(err, errQuit) {
		return stats.EndQuit
	}
	switch doom.Why() { // whatever it met then
	case kill.Killed:
		return stats.EndKilled
	case kill.Vanished:
		return stats.EndClientGone
	case kill.Drained:
		return stats.EndDrain
	}
	var limited *login.LimitError
	var handshake *protocol.HandshakeError
	var unreachable *backend.UnreachableError
	var refused *protocol.ServerError
	var auth *protocol.AuthError
	switch {
	case errors.Is(err, errSentBehind):
		return stats.EndBackendGone
	case errors.Is(err, errShutdown):
		return stats.EndDrain
	case errors.Is(err, errKilled):
		return stats.EndKilled
	case errors.As(err, &limited):
		return stats.EndLimit
	case errors.As(err, &auth), errors.Is(err, login.ErrOnlyAdmins):
		return stats.EndAuth
	case errors.As(err, &handshake):
		var relayed *protocol.RelayError
		if handshake.Code == protocol.CodeTLSRequired || handshake.Code == mysql.ER_NOT_SUPPORTED_AUTH_MODE && errors.As(err, &relayed) {
			return stats.EndAuth
		}
		return stats.EndMalformed
	case errors.Is(err, errIdle), errors.Is(err, errSlowClient):
		return stats.EndTimeout
	case errors.Is(err, errBackendGone), errors.Is(err, errBackendClosed), errors.As(err, &unreachable):
		return stats.EndBackendGone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return stats.EndTimeout
	case errors.Is(err, protocol.ErrFrame), errors.Is(err, protocol.ErrFrameOrder), errors.Is(err, protocol.ErrMalformed):
		return stats.EndMalformed
	case errors.Is(err, errClientGone), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return stats.EndClientGone
	case errors.Is(err, protocol.ErrTLSHandshake):
		return stats.EndMalformed
	case errors.Is(err, login.ErrRefused) && errors.As(err, &refused):
		if refused.State == "" { // in the place of a greeting
			return stats.EndBackendGone
		}
		return stats.EndAuth
	}
	return stats.EndError
}

// authReasonOf is why a session ended that endReason says endAuth of.
func authReasonOf(err error) stats.Refusal {
	var auth *protocol.AuthError
	var relayed *protocol.RelayError
	var handshake *protocol.HandshakeError
	switch {
	case errors.Is(err, login.ErrOnlyAdmins):
		return stats.AuthNotAdmin
	case errors.As(err, &relayed):
		return stats.AuthRelay
	case errors.As(err, &handshake):
		return stats.AuthRequirement
	case !errors.As(err, &auth):
		return stats.AuthByServer
	case auth.ByServer:
		return stats.AuthByServer
	case auth.Reason != "":
		return stats.AuthRequirement
	case !auth.UserExists:
		return stats.AuthUnknownUser
	}
	return stats.AuthPassword
}
