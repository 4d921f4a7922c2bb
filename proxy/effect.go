package proxy

import (
	"errors"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// expects says what the statement that is about to be sent may leave.
func (h *handling) expects(e state.Effect) {
	e.Expected = true
	h.effect = e
}

// noteRefusal looks at the end of an answer, of which whole says that it is all of it, for
// what the code of an error does not tell.
func (h *handling) noteRefusal(c *backend.Conn, answer []byte, whole bool) {
	if c.Answer.ErrCode == 0 || !h.effect.Expected || !whole || len(answer) < protocol.HeaderSize {
		return
	}
	var refused *protocol.ServerError
	if errors.As(protocol.ParseServerError(answer[protocol.HeaderSize:]), &refused) {
		h.effect.Refused(refused)
	}
}

// noteEffect takes note of what the statement just answered on c has left.
func (s *session) noteEffect(c *backend.Conn) {
	code := c.Answer.ErrCode
	if c.Answer.Rows || c.Answer.Results > 0 {
		code = 0
	}
	s.state.Left(s.effect, code)
}
