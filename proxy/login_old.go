package proxy

import (
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
)

var errOldStatement = errors.New("the client speaks the protocol of before MySQL 4.1, in which it can log in and nothing else")

// serveOld answers the login of a client of before MySQL 4.1, and lets it leave: it is a
// balancer's check. Nothing else can be answered in the form that it reads.
func (s *session) serveOld() error {
	if err := s.srv.countUser(s); err != nil {
		s.refuseLogin(err)
		return err
	}
	s.out, _ = protocol.AppendPacket(s.out, protocol.OldOK, s.packetNum)
	if err := s.flush(); err != nil {
		return err
	}
	const longest = 1 << 10 // of what is refused
	payload, err := s.client.ReadPacket(longest)
	if err != nil {
		return fmt.Errorf("%w: %w", errClientGone, err)
	}
	if len(payload) > 0 && protocol.Command(payload[0]) == protocol.ComQuit {
		return errQuit
	}
	s.packetNum = s.client.PacketNum()
	s.refuseLogin(sqlError(mysql.ER_NOT_SUPPORTED_AUTH_MODE, "08004",
		"Client does not support authentication protocol requested by server; consider upgrading MySQL client"))
	return errOldStatement
}
