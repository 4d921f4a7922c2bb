package proxy

import (
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// audit logs what an admin has done, or what somebody was refused to do who is none. The
// statement is written anew, without what may be a secret.
func (s *session) audit(statement string, err error) {
	fields := []zap.Field{zap.String("statement", statement)}
	if err == nil {
		s.log().Info("audit", append(fields, zap.String("outcome", "done"))...)
		return
	}
	s.log().Info("audit", append(fields, zap.String("outcome", "failed"), logfield.Code(forClient(err).Code), logfield.Err(err))...)
}
