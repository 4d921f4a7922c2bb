package session

import (
	"errors"

	"go.uber.org/zap"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/params"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
	"seqproxy/statement/lex"
)

// The errors say which side of a session failed. A client that goes away is no event to warn of. A
// backend that goes away is.
var (
	errClientGone  = errors.New("client is gone")
	errBackendGone = errors.New("backend is gone")
)

// relay sends commands to servers, and passes on their answers. It does not look into the commands.
type relay struct {
	at      *attachment
	numbers *keys.Taker
	kills   *kill.Kills // KILLs to carry out between the answers; nil: none

	batch   batch // of commands
	slow    slow
	share   memoryShare // for a large command that is parsed
	scratch []byte      // a command of the proxy's own
	// explained says that an insert id in the answer is expected, see statement.Statement.ExplainsID.
	explained bool

	// scan reads a text as it passes; nil: no need. scanFrom is the number of bytes before more of
	// the text.
	scan     *lex.Scan
	scanFrom int
}

// ground is what the parts of a session share that look into its commands.
type ground struct {
	at      *attachment
	relay   *relay
	client  *client
	state   *state.State
	numbers *keys.Taker
}

// enqueue puts the command just parsed into the batch. The next settle sends it to c.
func (r *relay) enqueue(c *backend.Conn, shape protocol.Shape) {
	r.at.tally.Sends(c, stats.KindRelay)
	e := expected{shape: shape, unexplained: !r.explained}
	if r.at.tally.Kind != stats.NoStatement {
		e.text, e.kind = r.slow.text, r.at.tally.Kind
	}
	r.batch.add(c, e)
}

// relayCommand passes the command just parsed on to the current shard, together with its
// neighbours.
func (r *relay) relayCommand(shape protocol.Shape) error {
	c, err := r.at.Attach()
	if err != nil {
		return err
	}
	if r.batch.elsewhere(c) {
		if err := r.settle(); err != nil {
			return err
		}
	}
	r.enqueue(c, shape)
	return nil
}

// relayAlone is relayCommand for a command that may change how later ones are read: its answer
// comes before the next is looked at.
func (r *relay) relayAlone(shape protocol.Shape) error {
	if err := r.relayCommand(shape); err != nil {
		return err
	}
	return r.settle()
}

// settle writes the batch in one piece and relays all its answers.
func (r *relay) settle() error {
	if r.batch.size == 0 {
		return nil
	}
	if err := r.at.client.flush(); err != nil {
		return err
	}
	c := r.batch.conn
	var writeErr error
	r.scratch, writeErr = r.batch.send(r.scratch)
	if r.share.relayed {
		r.share.give()
	}
	err := r.relayAnswers(c, writeErr, r.batch.answers)
	r.batch.answered()
	return err
}

// begin begins a command of the proxy's own in the scratch buffer.
func (r *relay) begin(cmd protocol.Command) {
	r.scratch = append(r.scratch[:0], 0, 0, 0, 0, byte(cmd))
}

// frame completes the command in the scratch buffer, which replaces the client's.
func (r *relay) frame() error {
	size := len(r.scratch) - protocol.HeaderSize
	if size >= protocol.MaxFragment {
		return params.ErrTooLong
	}
	protocol.PutHeader(r.scratch, size, 0)
	return nil
}

// sendScratch sends the command in the scratch buffer in place of the client's, and relays the
// answer.
func (r *relay) sendScratch(c *backend.Conn) error { return r.sendOnce(c, &keys.Numbers{}) }

// sendOnce is sendScratch for a command with the numbers n. It is never sent again.
func (r *relay) sendOnce(c *backend.Conn, n *keys.Numbers) error {
	r.at.state.LastAnswer = state.ByServer
	r.at.tally.Sends(c, stats.KindRewrite)
	if err := r.at.client.flush(); err != nil {
		return err
	}
	answer := expected{shape: protocol.AnswerTo(r.scratch[protocol.HeaderSize:]), text: r.slow.text, kind: r.at.tally.Kind}
	_, writeErr := c.Write(r.scratch)
	r.batch.drop()
	if r.share.relayed {
		r.scratch = nil
		r.share.give()
	}
	if n.InsertID != 0 && n.Fill == nil && writeErr == nil {
		r.restoreInsertID(c, r.firstPacket(c), n, 0)
		answer.awaited = true
	}
	return r.relayAnswers(c, writeErr, []expected{answer})
}

// relayAnswers passes on what the server sends until it has answered everything in answers. It
// writes each chunk as it was read. writeErr is the error of writing the commands, which it returns
// at the end: a server that closes says why before.
func (r *relay) relayAnswers(c *backend.Conn, writeErr error, answers []expected) error {
	accepted := 0 // bytes of c's buffer that were walked over and not yet passed on
	ready := r.batch.ready
	for i := range answers {
		e := &answers[i]
		if e.ours > 0 { // it follows the bytes before it, in the same write
			r.at.state.LastID.Rows = false // the rows so far came before it
			r.at.client.out = append(r.at.client.out, c.Buffered()[:accepted]...)
			c.Discard(accepted)
			accepted = 0
			r.at.client.out = append(r.at.client.out, ready[:e.ours]...)
			ready = ready[e.ours:]
			continue
		}
		c.Answer.Begin(e.shape, c.Capabilities)
		partly := false // the client has a part of this answer
		awaited, bytes := e.awaited, uint64(0)
		for {
			n, ev := c.Answer.Walk(c.Buffered()[accepted:])
			accepted += n
			bytes += uint64(n)
			if r.kills != nil {
				r.kills.After(c.Answer.Results)
			}
			whole := !partly
			partly = partly || n > 0
			if ev == protocol.Done {
				if r.numbers.Pending != "" || r.at.state.Notice != nil && e.resetsWarnings() {
					r.noteNotice(c, c.Buffered()[accepted-n:accepted], whole)
				}
				r.at.state.Answered(idOfConn(c), c.Answer.Rows)
				if code := c.Answer.ErrCode; code != 0 {
					c.CountError(code)
					r.at.noteRefusal(c.Buffered()[accepted-n:accepted], whole)
				}
				if e.unexplained && c.Answer.InsertID != 0 {
					r.reportUnexplained(c, e)
				}
				r.slow.bytes = bytes
				if awaited && r.at.set.SlowStatement > 0 && r.slow.several(r.batch.more()) {
					r.slow.answered(c, e, bytes)
				}
				break
			}
			if err := r.at.client.pass(c, accepted); err != nil {
				return r.at.abandon(c, err)
			}
			accepted = 0
			switch ev {
			case protocol.NeedMore:
				awaited = true
				if err := r.at.tally.Fill(r.at.client.Conn, c); err != nil {
					return r.at.lost(c, err, partly)
				}
			case protocol.WantsFile:
				if r.batch.parsed > 0 { // the client's next bytes are a command, no file
					return r.at.lost(c, errors.New("the server asks for a file that no statement named"), true)
				}
				if err := r.sendFile(c); err != nil {
					return r.at.abandon(c, err)
				}
				c.Answer.FileSent()
			default:
				return r.at.lost(c, protocol.ErrMalformed, true)
			}
		}
	}
	if err := r.at.client.pass(c, accepted); err != nil {
		return err
	}
	if len(c.Buffered()) > 0 { // they would pass for the answer to the next command
		return r.at.lost(c, errUnasked, true)
	}
	r.at.release(c)
	if writeErr != nil {
		return r.at.lost(c, writeErr, true) // the client has all its answers
	}
	return nil
}

// noteError counts the error that a server has answered with, if any.
func noteError(c *backend.Conn) {
	if code := c.Answer.ErrCode; code != 0 {
		c.CountError(code)
	}
}

// noteNotice adds to a server's answer the warning that a sequence nears its end. b is the last
// part of the answer. An OK that is the whole answer counts the warning, and SHOW WARNINGS has it.
func (r *relay) noteNotice(c *backend.Conn, b []byte, whole bool) {
	w := r.numbers.Notice()
	if c.Answer.ErrCode != 0 {
		w = nil
	}
	r.at.state.Notice = w
	if w != nil && whole && len(b) > protocol.HeaderSize && len(b) == protocol.HeaderSize+protocol.PayloadLen(b) {
		protocol.AddWarning(b[protocol.HeaderSize:])
	}
}

// reply answers the command being handled with OK.
func (r *relay) reply(ok protocol.OK) {
	ok.Status = r.at.state.Status
	r.at.client.out = protocol.AppendOK(r.at.client.out, r.at.client.packetNum, ok)
}

// refuse answers the command being handled with an error.
func (r *relay) refuse(err error) {
	e := r.at.client.fail(err)
	if _, ok := hidden(err); ok {
		r.at.log().Info("client told of no number", logfield.Code(e.Code), logfield.Err(err))
	}
	r.at.state.LastAnswer = state.OurError
	r.at.state.LastError = e
	r.slow.code = e.Code
}

// outOfOrder ends the session as a server does, when a packet should have had number num. Earlier
// commands get their answers first.
func (r *relay) outOfOrder(num uint8) error {
	if err := r.settle(); err != nil {
		return err
	}
	r.at.client.packetNum = num
	r.refuse(errOutOfOrder)
	_ = r.at.client.flush() // the session ends either way
	return errPacketOrder
}

// pending reports whether commands wait to be sent.
func (r *relay) pending() bool { return r.batch.size > 0 }

// reportUnexplained counts and logs an insert id in an answer of c that its statement does not
// explain.
func (r *relay) reportUnexplained(c *backend.Conn, e *expected) {
	if !r.at.shared.Settings.Load().boundSoFar().bindsOn(c.Shard, r.at.routes) {
		return
	}
	r.at.shared.Counters.Suspects.Add(1)
	text := e.text
	if !text.kept {
		text = r.slow.text // the statement was sent alone
	}
	r.at.log().Warn("insert id not explained", logfield.Shard(c.Shard.Name()), logfield.Node(c.Node()), zap.Uint64("insert_id", c.Answer.InsertID),
		zap.ByteString(logfield.NameStatement, r.slow.redacted(text)))
}
