package proxy

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// kill handles a text that is a KILL.
func (s *session) kill(sql []byte) error {
	st := &s.stmt
	id, err := s.killed(&st.Kill, string(sql[st.Kill.Start:st.Kill.End]))
	if err != nil {
		return err
	}
	if kill.IsProxyID(id) {
		return s.killHere(uint32(id), kill.WishOf(&st.Kill))
	}
	if s.routes.Default() == nil {
		return s.answerLocal(sql, nil)
	}
	return s.passOn(sql) // CONNECTION_ID() in an expression is then the server's, as it is there
}

// killed returns the id that a KILL names, by the user variable that it may have for it; 0 if that
// is none.
func (a *attachment) killed(k *statement.KillTarget, variable string) (uint64, error) {
	switch k.Operand {
	case statement.KillVariable:
		return a.userVariable(variable)
	case statement.KillSelf:
		return uint64(a.id), nil
	}
	return k.ID, nil
}

// userVariable asks for the value of a user variable, "@x": 0 if it is no id.
func (a *attachment) userVariable(name string) (uint64, error) {
	if a.cur == nil { // nothing was set yet
		return 0, nil
	}
	c, err := a.Attach()
	if err != nil {
		return 0, err
	}
	row, err := a.AskRow(c, "SELECT "+name, 1, "a variable's value")
	if err != nil {
		return 0, err
	}
	return kill.ConnectionID(string(row[0])), nil
}

// processKill handles COM_PROCESS_KILL.
func (s *session) processKill(payload []byte) error {
	if len(payload) == 5 {
		if id := binary.LittleEndian.Uint32(payload[1:]); kill.IsProxyID(uint64(id)) {
			return s.killHere(id, kill.Wish{})
		}
	}
	s.state.LastAnswer = state.ByServer
	return s.relayCommand(protocol.ComProcessKill.AnswerShape(), true)
}

// killHere carries out a KILL of an id that a proxy gave, and answers it.
func (s *session) killHere(id uint32, k kill.Wish) error {
	if id == s.id {
		return s.killSelf(k)
	}
	if err := s.kills.Other(s.id, id, k); err != nil {
		return err
	}
	s.state.LastAnswer = state.OurOK
	s.reply(protocol.OK{})
	return nil
}

// killSelf carries out a KILL of the session by itself: on its own connection, whose
// server then says and does what it does.
func (s *session) killSelf(k kill.Wish) error {
	if s.routes.Default() == nil {
		if !k.Query {
			s.refuse(keys.ErrInterrupted)
			_ = s.client.flush() // the session ends either way
			return errKilled
		}
		return keys.ErrInterrupted
	}
	c, err := s.Attach()
	if err != nil {
		return err
	}
	cmd, argument := k.Command(c.ID)
	s.scratch = append(s.scratch[:0], 0, 0, 0, 0, byte(cmd))
	if cmd == protocol.ComQuery && c.Capabilities.Has(protocol.QueryAttributes) {
		s.scratch = append(s.scratch, protocol.NoAttributes...)
	}
	s.scratch = append(s.scratch, argument...)
	protocol.PutHeader(s.scratch, len(s.scratch)-protocol.HeaderSize, 0)
	if err := s.sendScratch(c); err != nil {
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
	long     bool // the parameter came by COM_STMT_SEND_LONG_DATA, past us
}

// executeKill executes a prepared KILL if it is one of an id that a proxy gave.
func (s *session) executeKill(p *prepared, payload []byte) (handled bool, err error) {
	k := p.kill
	id, err := s.killed(&k.KillTarget, k.variable)
	if err != nil {
		return false, err
	}
	if k.Operand == statement.KillParam {
		e, err := p.Cut(payload, s.login.Capabilities.Has(protocol.QueryAttributes))
		if err != nil {
			return false, err
		}
		if id = 0; p.Params == 1 && !k.long && !e.Params.IsNull(0) {
			id = kill.ParameterID(p.Types[0].Type, e.Values)
		}
		k.long = false
	}
	if !kill.IsProxyID(id) {
		return false, nil
	}
	return true, s.killHere(uint32(id), kill.WishOf(&k.KillTarget))
}

// killsAmong handles a text of several statements with KILLs of numbers among them.
func (s *session) killsAmong(sql []byte) error {
	text, err := s.kills.Replace(sql, s.stmt.Kills, s.id, s.likeMariaDB())
	if err != nil {
		return err
	}
	defer func() {
		s.kills.Drop()
		s.replaced = false
	}()
	if s.replaced = text != nil; s.replaced {
		sql = text
		s.shared.texts.Analyze(&s.stmt, sql, s.state.Mode)
	}
	if len(s.stmt.Tables) > 0 && s.boundTables() {
		err = s.filled(sql)
	} else {
		err = s.special(sql)
	}
	if err == nil && s.cur != nil {
		s.kills.After(s.cur.Answer.Results) // what relayAnswers has not had to do with
	}
	return err
}

// KillsAs is the user.
func (s *session) KillsAs() kill.Account {
	return kill.Account{Name: s.login.Account.Name, Admin: s.login.Account.Admin}
}

// ConnAt returns the connection to a shard, nil if there is none.
func (o *outside) ConnAt(shard *backend.Shard) *backend.Conn { return o.conns[shard] }

// Places returns the session's connections to servers, from outside, and by which
// right somebody may kill them.
func (b *backends) Places(by kill.Account) (places []kill.Place, right kill.Right) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.introduced && b.login.Account.Name == by.Name:
		right = kill.OfSame
	case by.Admin:
		right = kill.OfAny
	}
	if !b.introduced || right == kill.Denied { // it is nobody's yet
		return nil, right
	}
	account := b.login.Account // which changes only while it is not introduced
	for shard, c := range b.conns {
		creds, ok := account.Credentials(shard)
		places = append(places, kill.Place{
			Place: c.Place(), User: account.Name, Creds: creds, HasCreds: ok,
			ViaSession: account.PasswordUnknown() && (account.Name == by.Name || !ok),
		})
	}
	return places, right
}

// Interrupt ends, from outside, what the session waits for in the proxy itself.
func (s *session) Interrupt() { s.numbers.Patience.Interrupt() }

// Doomed is why the session is being ended from outside.
func (s *session) Doomed() *kill.Doom { return &s.doom }

// Target returns the session that an id was given to; ok is false if it has ended.
func (s *Server) Target(id uint32) (t kill.Target, ok bool) {
	sess := s.byConnectionID(id)
	return sess, sess != nil
}
