package proxy

import (
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// expects says what the statement that is about to be sent may leave.
func (b *backends) expects(e state.Effect) {
	e.Expected = true
	b.effect = e
}

// noteRefusal looks at the end of an answer, of which whole says that it is all of it, for
// what the code of an error does not tell.
func (b *backends) noteRefusal(c *backend.Conn, answer []byte, whole bool) {
	if c.Answer.ErrCode == 0 || !b.effect.Expected || !whole || len(answer) < protocol.HeaderSize {
		return
	}
	var refused *protocol.ServerError
	if errors.As(protocol.ParseServerError(answer[protocol.HeaderSize:]), &refused) {
		b.effect.Refused(refused)
	}
}

// noteEffect takes note of what the statement just answered on c has left.
func (b *backends) noteEffect(c *backend.Conn) {
	code := c.Answer.ErrCode
	if c.Answer.Rows || c.Answer.Results > 0 {
		code = 0
	}
	b.state.Left(b.effect, code)
}
