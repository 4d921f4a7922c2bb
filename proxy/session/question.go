package session

import (
	"bytes"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
	"seqproxy/proxy/shown"
	"seqproxy/statement/idiom"
)

// shown returns the writer that adds the proxy's sequences to questions for a server.
func (p *planning) shown() shown.Writer {
	return shown.Writer{Session: p, Sequences: p.at.set.shown, Patience: &p.numbers.Patience, Schema: p.state.Schema, Table: p.at.set.sequenceSchema}
}

// withSequences returns a question by which programs look for sequences as it goes to the server,
// with the proxy's sequences added. It returns nil if the text is no such question, or goes there
// unchanged. See [shown.Writer].
func (p *planning) withSequences(sql []byte) (text []byte, err error) {
	if p.at.routes.Default == nil {
		return nil, nil
	}
	q, ok := idiom.ReadSequenceQuestion(sql, p.state.Mode)
	if !ok {
		return nil, nil
	}
	c, err := p.at.Attach()
	if err != nil {
		return nil, err
	}
	w := p.shown()
	text, err = w.Write(c, q, sql, p.state.Charset)
	if err != nil || bytes.Equal(text, sql) {
		return nil, err
	}
	return text, nil
}

// passQuestion adds the sequences to the text just analysed and passes it on. handled is false if
// it is no such question.
func (d *delivery) passQuestion(sql []byte) (handled bool, err error) {
	text, err := d.planning.withSequences(sql)
	if text == nil || err != nil {
		return false, err
	}
	c, err := d.attachFor(&d.planning.stmt)
	if err != nil {
		return false, err
	}
	d.relay.begin(protocol.ComQuery)
	d.relay.scratch = append(append(d.relay.scratch, d.attributes...), text...)
	if err := d.relay.frame(); err != nil {
		return false, err
	}
	if err := d.relay.sendScratch(c); err != nil {
		return false, err
	}
	d.noteDone(c, nil, d.planning.stmt.ChangesTables())
	return true, nil
}

// question is a prepared question about sequences.
type question struct {
	asked []byte // the client's text
	text  []byte // the server's text
}

// prepareQuestion returns the text for c to prepare in place of the one just analysed. asks is nil
// if that is no question about sequences.
func (x *executor) prepareQuestion(c *backend.Conn, sql []byte) (asks *question, text []byte, err error) {
	if plan.CourseOf(&x.planning.stmt) != plan.MayLook || x.at.routes.Default == nil {
		return nil, sql, nil
	}
	q, ok := idiom.ReadSequenceQuestion(sql, x.state.Mode)
	if !ok {
		return nil, sql, nil
	}
	w := x.planning.shown()
	text, err = w.Write(c, q, sql, x.state.Charset)
	return &question{bytes.Clone(sql), bytes.Clone(text)}, text, err
}

// executeQuestion executes a question with the present sequences. If they differ from those in the
// server's text, it prepares another text.
func (x *executor) executeQuestion(p *prepared, payload []byte) error {
	if p.LongSent { // the server would lose the data that it already has
		p.toServer(payload[1:])
		return x.passExecution(p, payload)
	}
	e, err := x.cut(p, payload)
	if err != nil {
		return err
	}
	c, err := x.at.connOf(p)
	if err != nil {
		return err
	}
	if refused, err := x.renewQuestion(c, p); refused || err != nil {
		return err
	}
	if err := x.at.prepareConn(c, p); err != nil {
		return err
	}
	if err := x.write(p, &e, &p.numbers, 0); err != nil {
		return err
	}
	if err := x.relay.sendScratch(c); err != nil {
		return err
	}
	x.noteExecuted(c, p)
	return nil
}

// renewQuestion brings the server's text of a question up to date. refused says that the client's
// answer is the server's refusal of the new text.
func (x *executor) renewQuestion(c *backend.Conn, p *prepared) (refused bool, err error) {
	q, ok := idiom.ReadSequenceQuestion(p.question.asked, p.mode)
	if !ok {
		return false, nil
	}
	w := x.planning.shown()
	text, err := w.Write(c, q, p.question.asked, p.charset)
	if err != nil || bytes.Equal(text, p.question.text) {
		return false, err
	}
	fresh := &prepared{}
	a, err := x.relay.askToPrepare(c, fresh, text)
	if err != nil || a.refused {
		return a.refused, err
	}
	x.client.out = x.client.out[:0]
	if err := x.at.closeOn(c, p.backendID); err != nil {
		return false, err
	}
	c.Release()
	p.backendID, p.question.text = fresh.backendID, text
	if x.at.prepared.latest != p { // the server's latest is p now
		x.at.prepared.latest = nil
	}
	return false, nil
}
