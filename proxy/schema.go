package proxy

import (
	"seqproxy/protocol"
	"seqproxy/proxy/state"
)

// useSchema makes a schema the current one, as COM_INIT_DB and USE do: the command just parsed goes
// to the shard that owns the schema, with the session's state. p is the prepared USE that is
// executed, nil for others. Another shard than the one that knows p is told by COM_INIT_DB.
func (s *session) useSchema(schema string, p *prepared) error {
	shard, err := s.enterFor(schema)
	if err != nil {
		return err
	}
	if shard == nil { // only keys: there is nothing that could miss it
		s.state.Schema = schema
		s.state.LastAnswer = state.OurOK
		s.reply(protocol.OK{})
		return nil
	}
	c := s.cur
	opened := false
	switch {
	case c == nil:
		if c = s.conns[shard]; c == nil { // else it is that of a relayed login
			c, err = s.open(shard, "")
			opened = true
		}
	case c.Shard() != shard:
		c, err = s.connForSchema(schema)
	}
	if err != nil {
		return err
	}
	s.state.LastAnswer = state.ByServer
	if p != nil && p.conn != c {
		if p.mode.Charset != s.state.Mode.Charset && !ascii([]byte(schema)) {
			return protocol.NotSupported("the schema of a prepared USE is on another shard, and the character set was another when its name was prepared: send it as text")
		}
		s.scratch = append(s.scratch[:0], 0, 0, 0, 0, byte(protocol.ComInitDB))
		s.scratch = append(s.scratch, schema...)
		protocol.PutHeader(s.scratch, len(s.scratch)-protocol.HeaderSize, 0)
		err = s.sendScratch(c)
	} else {
		s.enqueue(c, protocol.ShapeResult)
		err = s.settle()
	}
	if err != nil {
		return err
	}
	switch {
	case c.Answer.ErrCode == 0:
		s.current(c)
		s.state.Schema, s.state.SchemaUnknown = schema, false
	case opened: // the session stays where it was: nowhere
		s.forget(c)
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
func (s *session) onSchema(schema string) error {
	c, err := s.connForSchema(schema)
	s.state.LastAnswer = state.ByServer
	if s.elsewhere(schema) {
		// What the statement leaves behind is not where the session will look for it.
		s.state.LastAnswer = state.OurOK
	}
	if err != nil {
		return err
	}
	s.enqueue(c, protocol.ShapeResult)
	return s.settle()
}
