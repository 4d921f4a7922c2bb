package session

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// kill handles a text that is a KILL.
func (t *texts) kill(sql []byte) error {
	st := &t.planning.stmt
	id, err := t.planning.killed(&st.Kill, string(sql[st.Kill.Start:st.Kill.End]))
	if err != nil {
		return err
	}
	if kill.IsProxyID(id) {
		return t.killHere(uint32(id), kill.WishOf(&st.Kill))
	}
	if t.at.routes.Default == nil {
		return t.answers.answerLocal(sql, nil)
	}
	return t.delivery.passOn(sql) // CONNECTION_ID() in an expression means the server's id
}

// processKill handles COM_PROCESS_KILL.
func (s *Session) processKill(payload []byte) error {
	if len(payload) == 5 {
		if id := binary.LittleEndian.Uint32(payload[1:]); kill.IsProxyID(uint64(id)) {
			return s.killHere(id, kill.Wish{})
		}
	}
	s.state.LastAnswer = state.ByServer
	return s.relayAlone(protocol.ComProcessKill.AnswerShape())
}

// killHere carries out and answers a KILL of an id that a proxy gave.
func (t *texts) killHere(id uint32, k kill.Wish) error {
	if id == t.at.id {
		return t.killSelf(k)
	}
	if err := t.kills.Other(t.at.id, id, k); err != nil {
		return err
	}
	t.state.LastAnswer = state.OurOK
	t.relay.reply(protocol.OK{})
	return nil
}

// killSelf kills the session through its own connection, so the server acts and answers.
func (t *texts) killSelf(k kill.Wish) error {
	if t.at.routes.Default == nil {
		if !k.Query {
			t.relay.refuse(keys.ErrInterrupted)
			_ = t.client.flush() // the session ends either way
			return errKilled
		}
		return keys.ErrInterrupted
	}
	c, err := t.at.Attach()
	if err != nil {
		return err
	}
	cmd, argument := k.Command(c.ID)
	t.relay.begin(cmd)
	if cmd == protocol.ComQuery && c.Capabilities.Has(protocol.QueryAttributes) {
		t.relay.scratch = append(t.relay.scratch, protocol.NoAttributes...)
	}
	t.relay.scratch = append(t.relay.scratch, argument...)
	if err := t.relay.frame(); err != nil {
		return err
	}
	if err := t.relay.sendScratch(c); err != nil {
		return err
	}
	if code := c.Answer.ErrCode; !k.Query && (code == mysql.ER_QUERY_INTERRUPTED || code == erConnectionKilled) {
		return errKilled
	}
	return nil
}

// killPrepared is a KILL that was prepared.
type killPrepared struct {
	statement.KillTarget
	variable string
	long     bool // the parameter went to the server by COM_STMT_SEND_LONG_DATA
}

// executeKill executes a prepared KILL of an id that a proxy gave. handled is false for others.
func (x *executor) executeKill(p *prepared, payload []byte) (handled bool, err error) {
	k := p.kill
	id, err := x.planning.killed(&k.KillTarget, k.variable)
	if err != nil {
		return false, err
	}
	if k.Operand == statement.KillParam {
		e, err := p.Cut(payload, x.client.attributed)
		if err != nil {
			return false, err
		}
		id = 0
		if p.Params == 1 && !k.long && !e.Params.IsNull(0) {
			id = kill.ParameterID(p.Types.At(0).Type, e.Values)
		}
		k.long = false
	}
	if !kill.IsProxyID(id) {
		return false, nil
	}
	return true, x.texts.killHere(uint32(id), kill.WishOf(&k.KillTarget))
}

// killsAmong handles a text of several statements with KILLs of numbers among them.
func (t *texts) killsAmong(sql []byte) error {
	text, err := t.kills.Replace(sql, t.planning.stmt.Kills, t.at.id, t.at.likeMariaDB())
	if err != nil {
		return err
	}
	if t.kills.Wait() {
		t.relay.kills = t.kills
	}
	defer func() {
		t.kills.Drop()
		t.relay.kills = nil
		t.delivery.replaced = false
	}()
	if t.delivery.replaced = text != nil; t.delivery.replaced {
		sql = text
		t.at.shared.texts.Analyze(&t.planning.stmt, sql, t.state.Mode)
	}
	bound, err := t.planning.boundTables()
	switch {
	case err != nil:
	case bound:
		err = t.filled(sql)
	default:
		err = t.special(sql)
	}
	if err == nil && t.at.cur != nil {
		t.kills.After(t.at.cur.Answer.Results) // those that relayAnswers has not carried out
	}
	return err
}
