package session

import (
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// useSchema makes a schema the current one, as COM_INIT_DB and USE do: the command just parsed goes
// to the shard that owns the schema, with the session's state. p is the prepared USE that is
// executed, nil for others. Another shard than the one that knows p is told by COM_INIT_DB.
func (t *texts) useSchema(schema string, p *prepared) error {
	shard, err := t.at.enterFor(schema)
	if err != nil {
		return err
	}
	if shard == nil { // only keys: there is nothing that could miss it
		t.state.Schema = schema
		t.state.LastAnswer = state.OurOK
		t.relay.reply(protocol.OK{})
		return nil
	}
	c := t.at.cur
	opened := false
	switch {
	case c == nil:
		if c = t.at.conns[shard]; c == nil { // else it is that of a relayed login
			c, err = t.at.open(shard, "")
			opened = true
		}
	case c.Shard() != shard:
		c, err = t.at.connForSchema(schema)
	}
	if err != nil {
		return err
	}
	t.state.LastAnswer = state.ByServer
	if p != nil && p.conn != c {
		if p.mode.Charset != t.state.Mode.Charset && !ascii([]byte(schema)) {
			return protocol.NotSupported("the schema of a prepared USE is on another shard, and the character set was another when its name was prepared: send it as text")
		}
		t.relay.scratch = append(t.relay.scratch[:0], 0, 0, 0, 0, byte(protocol.ComInitDB))
		t.relay.scratch = append(t.relay.scratch, schema...)
		protocol.PutHeader(t.relay.scratch, len(t.relay.scratch)-protocol.HeaderSize, 0)
		err = t.relay.sendScratch(c)
	} else {
		t.relay.enqueue(c, protocol.ShapeResult)
		err = t.relay.settle()
	}
	if err != nil {
		return err
	}
	switch {
	case c.Answer.ErrCode == 0:
		t.at.current(c)
		t.state.Schema, t.state.SchemaUnknown = schema, false
	case opened: // the session stays where it was: nowhere
		t.at.forget(c)
		c.Quit()
	}
	return nil
}

// elsewhere says whether a schema is owned by another shard than the current one.
func (a *attachment) elsewhere(schema string) bool {
	return a.routes.ForSchema(schema) != a.routes.ForSchema(a.state.Schema)
}

// onSchema relays the command just parsed, which creates, alters or drops a schema,
// to the shard that owns it. The session stays where it is.
func (t *texts) onSchema(schema string) error {
	c, err := t.at.connForSchema(schema)
	t.state.LastAnswer = state.ByServer
	if t.at.elsewhere(schema) {
		// What the statement leaves behind is not where the session will look for it.
		t.state.LastAnswer = state.OurOK
	}
	if err != nil {
		return err
	}
	t.relay.enqueue(c, protocol.ShapeResult)
	return t.relay.settle()
}
