package session

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/login"
	"seqproxy/proxy/stats"
)

// Reasons why a session ends although nothing is wrong.
var (
	errQuit     = errors.New("client quit")
	errShutdown = errors.New("proxy is shutting down")
	errKilled   = errors.New("killed by a client's KILL")
)

// errSentBehind ends a session whose client has sent more after a command that did not reach its
// server, without waiting for the answer. A server does not fail BEGIN: to go on would run a
// transaction's statements outside of it.
var errSentBehind = errors.New("client had sent on behind a command that did not come to its server")

// errUnasked ends a session whose server has sent more than the answer.
var errUnasked = errors.New("the server said something that nobody asked for")

// countEnd counts the session's end by its reason.
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
	switch doom.Why() { // a doomed session ends for that reason, whatever err is
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
	case errors.Is(err, errBackendGone), errors.Is(err, errBackendClosed), errors.Is(err, errNotMoved), errors.As(err, &unreachable):
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
		if refused.State == "" { // in place of a greeting
			return stats.EndBackendGone
		}
		return stats.EndAuth
	}
	return stats.EndError
}

// authReasonOf returns why a session ended for which endReason returns stats.EndAuth.
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

// logEnd logs once why the session ended.
func (s *Session) logEnd(err error) {
	if errors.Is(err, errQuit) && !s.shared.Log.Core().Enabled(zap.DebugLevel) {
		return // most sessions end like this, and the rest allocates
	}
	level, event := ending(err, &s.doom)
	if !s.shared.Log.Core().Enabled(level) {
		return
	}
	var auth *protocol.AuthError
	if s.login.Account.Name == "" && errors.As(err, &auth) {
		// The client gave this name and was not let in.
		s.login.Account = login.Unauthenticated(auth.User)
	}
	s.log().Log(level, event, errorFields(err)...)
}

// ending returns the event of a session that ended with err.
func ending(err error, doom *kill.Doom) (level zapcore.Level, event string) {
	var auth *protocol.AuthError
	var handshake *protocol.HandshakeError
	var limited *login.LimitError
	switch {
	case errors.Is(err, protocol.ErrFrameOrder), errors.Is(err, protocol.ErrFrame):
		return zap.InfoLevel, "session ended by a broken compressed stream"
	case errors.Is(err, errQuit), errors.Is(err, errClientGone), errors.Is(err, errShutdown), errors.Is(err, errKilled),
		doom.Is(): // a doomed session ends for that reason, whatever err is
		return zap.DebugLevel, "session closed"
	case errors.Is(err, errIdle):
		return zap.InfoLevel, "session ended as its client was idle"
	case errors.Is(err, errBackendClosed):
		return zap.InfoLevel, "session ended as the server closed its idle connection"
	case errors.As(err, &auth), errors.Is(err, login.ErrOnlyAdmins):
		return zap.InfoLevel, "login refused"
	case errors.As(err, &limited):
		return zap.InfoLevel, "login refused by a limit"
	case errors.As(err, &handshake):
		return zap.InfoLevel, "login malformed"
	case errors.Is(err, errNotMoved):
		return zap.WarnLevel, "session ended as it could not move"
	case errors.Is(err, errBackendGone):
		return zap.WarnLevel, "session ended with its backend connection"
	}
	return zap.InfoLevel, "session ended"
}

// errorFields returns the fields of an error, with the client's code if err wraps one.
func errorFields(err error) []zap.Field {
	fields := []zap.Field{logfield.Err(err)}
	var refused *protocol.ServerError
	var auth *protocol.AuthError
	var handshake *protocol.HandshakeError
	switch {
	case errors.As(err, &auth) && auth.Code != 0:
		fields = append(fields, logfield.Code(auth.Code), logfield.SQLState(auth.State))
	case errors.As(err, &auth):
		fields = append(fields, logfield.Code(mysql.ER_ACCESS_DENIED_ERROR), logfield.SQLState("28000"))
	case errors.Is(err, login.ErrOnlyAdmins):
		fields = append(fields, logfield.Code(mysql.ER_SPECIFIC_ACCESS_DENIED_ERROR), logfield.SQLState("42000"))
	case errors.As(err, &handshake):
		fields = append(fields, logfield.Code(handshake.Code))
		if handshake.State != "" { // old clients get no state
			fields = append(fields, logfield.SQLState(handshake.State))
		}
	case errors.As(err, &refused):
		fields = append(fields, logfield.Code(refused.Code), logfield.SQLState(refused.State))
	}
	return fields
}

// ends reports whether an error ends the session.
func ends(err error) bool {
	return errors.Is(err, errClientGone) || errors.Is(err, errBackendGone) || errors.Is(err, errShutdown) || errors.Is(err, errQuit) ||
		errors.Is(err, errKilled)
}

// lastCommand is how long a session that a shutdown ends waits for a command that crossed it.
const lastCommand = 10 * time.Millisecond

// refuseLateCommand answers a command that crossed the shutdown with an error, since it did not
// run. A client that sent none gets no error, as from servers: its driver sees a stale connection.
func (s *Session) refuseLateCommand() {
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
