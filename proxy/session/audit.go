package session

import (
	"go.uber.org/zap"

	"seqproxy/internal/logfield"
)

// maxAudited bounds the statement in an audit line.
const maxAudited = 1 << 10

// Audit logs what an admin has done, or what somebody was refused to do who is none. The
// statement is written anew, without what may be a secret.
func (b *backends) Audit(statement string, err error) {
	fields := []zap.Field{zap.String(logfield.NameStatement, limit(statement, maxAudited))}
	if err == nil {
		b.log().Info("audit", append(fields, zap.String("outcome", logfield.OutcomeDone))...)
		return
	}
	b.log().Info("audit", append(fields, zap.String("outcome", "failed"), logfield.Code(forClient(err).Code), logfield.Err(err))...)
}
