package proxy

import (
	"encoding/binary"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/plan"
)

// filled handles a text that may have to be filled in.
func (s *session) filled(sql []byte) error {
	f, err := s.planFilling(sql, false)
	switch {
	case err != nil:
		return err
	case f != nil && f.Query != nil:
		return s.fillQuery(f.Query)
	}
	s.fill = f
	defer func() { s.fill = nil }()
	return s.special(sql)
}

// beginFilling is filled for who looks at the text further himself: fill is set, and to be
// reset by the caller, or the text to go on with is another, of query, and analysed.
func (p *planning) beginFilling(sql []byte, prepared bool) (query *plan.FilledQuery, text []byte, err error) {
	if len(p.stmt.Tables) == 0 || !p.boundTables() {
		return nil, sql, nil
	}
	f, err := p.planFilling(sql, prepared)
	if err != nil {
		return nil, nil, err
	}
	if f != nil && f.Query != nil {
		p.stmt.Analyze(f.Query.Text, p.state.Mode)
		return f.Query, f.Query.Text, nil
	}
	p.fill = f
	return nil, sql, nil
}

// planFilling finds out what of the text just analysed has to be filled in; nil is
// nothing. It asks the server what it has to know for that.
func (p *planning) planFilling(sql []byte, prepared bool) (*plan.Filling, error) {
	at := plan.Now
	if prepared {
		at = plan.AtPrepare
	}
	if err := p.factsOfTables(at); err != nil {
		return nil, err
	}
	for round := 0; ; round++ {
		f, v := p.planner.Fill(&p.stmt, sql, p.state)
		if again, err := p.meet(&v, round, sql); !again {
			return f, err
		}
	}
}

// factsOfTables is factsFor where it matters what is bound in tables, on the server that the text
// goes to.
func (p *planning) factsOfTables(at plan.Moment) error {
	if err := p.awaitOwners(); err != nil {
		return err
	}
	c, err := p.at.Attach()
	if err != nil {
		return err
	}
	f := p.factsFor(at)
	f.Conn, f.Folds, f.Bulk = idOfConn(c), c.Hello().FoldsTables, p.at.login.Capabilities.Has(protocol.BulkOperations)
	if b := p.at.set.bound(); b != nil {
		f.Bound = b.tables
	}
	return nil
}

// tryPrepare has the server prepare a text and forget it. An error is why it would not.
func (r *relay) tryPrepare(c *backend.Conn, sql []byte) error {
	if err := r.at.client.flush(); err != nil {
		return err
	}
	return r.at.bounded(c, func() error {
		c.SetPacketNum(0)
		if err := c.WritePacket(append([]byte{byte(protocol.ComStmtPrepare)}, sql...)); err != nil {
			return err
		}
		a := prepareAnswer{client: r.at.client, c: c, p: &prepared{}}
		err := a.relay()
		answer := r.at.client.out
		r.at.client.out = r.at.client.out[:0]
		if err != nil {
			return err
		}
		if a.refused {
			return protocol.ParseServerError(answer[protocol.HeaderSize:])
		}
		c.SetPacketNum(0)
		if err := c.WritePacket(binary.LittleEndian.AppendUint32([]byte{byte(protocol.ComStmtClose)}, a.p.backendID)); err != nil {
			return err
		}
		c.Release()
		return nil
	})
}
