package proxy

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/kill"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// Errors of a KILL, in the servers' words.
func noSuchThread(id uint32) error {
	return sqlError(mysql.ER_NO_SUCH_THREAD, "HY000", "Unknown thread id: %d", id)
}

func otherProxysThread(id uint32) error {
	return sqlError(mysql.ER_NO_SUCH_THREAD, "HY000",
		"Unknown thread id: %d (seqproxy: another proxy gave that id: send the KILL to the proxy that the connection is to)", id)
}

func notOwner(id uint32) error {
	return sqlError(mysql.ER_KILL_DENIED_ERROR, "HY000", "You are not owner of thread %d", id)
}

// isOwnID says whether a connection id was given by a proxy. A smaller one is a
// server's, and so is a larger one than a greeting can tell.
func isOwnID(id uint64) bool { return id >= ownIDBit && id <= math.MaxUint32 }

// kill handles a text that is a KILL.
func (s *session) kill(sql []byte) error {
	st := &s.stmt
	if st.Refusal != "" { // there is a NEXTVAL in it
		return s.single(sql)
	}
	id := st.Kill.ID
	switch st.Kill.Operand {
	case statement.KillVariable:
		var err error
		if id, err = s.userVariable(string(sql[st.Kill.Start:st.Kill.End])); err != nil {
			return err
		}
	case statement.KillSelf:
		id = uint64(s.id)
	}
	if isOwnID(id) {
		return s.killOwn(uint32(id), kill.WishOf(&st.Kill))
	}
	if s.routes.Default() == nil {
		return s.withoutServer(sql)
	}
	return s.passOn(sql) // CONNECTION_ID() in an expression is then the server's, as it is there
}

// userVariable asks for the value of a user variable, "@x": 0 if it is no id.
func (s *session) userVariable(name string) (uint64, error) {
	if s.cur == nil { // nothing was set yet
		return 0, nil
	}
	c, err := s.attach()
	if err != nil {
		return 0, err
	}
	row, err := s.ownRow(c, "SELECT "+name, 1, "a variable's value")
	if err != nil {
		return 0, err
	}
	return kill.ConnectionID(string(row[0])), nil
}

// processKill handles COM_PROCESS_KILL.
func (s *session) processKill(payload []byte) error {
	if len(payload) == 5 {
		if id := binary.LittleEndian.Uint32(payload[1:]); isOwnID(uint64(id)) {
			return s.killOwn(id, kill.Wish{})
		}
	}
	s.state.LastOwn = state.OwnNothing
	return s.relay(protocol.ComProcessKill.AnswerShape(), true)
}

// killOwn carries out a KILL of an id that a proxy gave, and answers it.
func (s *session) killOwn(id uint32, k kill.Wish) error {
	if id == s.id {
		return s.killSelf(k)
	}
	if id>>counterBits != s.id>>counterBits {
		return otherProxysThread(id)
	}
	target := s.srv.byConnectionID(id)
	if target == nil {
		return noSuchThread(id)
	}
	if err := s.killOther(target, k); err != nil {
		return err
	}
	s.state.LastOwn = state.OwnAnswer
	s.reply(protocol.OK{})
	return nil
}

// killSelf carries out a KILL of the session by itself: on its own connection, whose
// server then says and does what it does.
func (s *session) killSelf(k kill.Wish) error {
	if s.routes.Default() == nil {
		if !k.Query {
			s.refuse(keys.ErrInterrupted)
			_ = s.flush() // the session ends either way
			return errKilled
		}
		return keys.ErrInterrupted
	}
	c, err := s.attach()
	if err != nil {
		return err
	}
	cmd, argument := k.Command(c.ID)
	s.own = append(s.own[:0], 0, 0, 0, 0, byte(cmd))
	if cmd == protocol.ComQuery && c.Capabilities.Has(protocol.QueryAttributes) {
		s.own = append(s.own, protocol.NoAttributes...)
	}
	s.own = append(s.own, argument...)
	protocol.PutHeader(s.own, len(s.own)-protocol.HeaderSize, 0)
	if err := s.sendOwn(c); err != nil {
		return err
	}
	if code := c.Answer.ErrCode; !k.Query && (code == mysql.ER_QUERY_INTERRUPTED || code == erConnectionKilled) {
		return errKilled
	}
	return nil
}

// killPlace is a connection of the session to be killed.
type killPlace struct {
	backend.Place
	user  string // of the session, which may change its own meanwhile
	creds backend.Credentials
	known bool // creds are
	// viaOwn: who kills does it better on its own connection to the server, because the
	// user's password is not known here and creds are none or another account's.
	viaOwn bool
}

// killOther carries out a KILL of another session: on its servers, over connections
// beside its own, which are busy. Only the statement that runs can be ended, so asking
// each server for it ends no other.
func (s *session) killOther(t *session, k kill.Wish) (err error) {
	places, right := t.killPlaces(s)
	if right != killOfOwn {
		defer func() { s.audit(k.Text(t.id), err) }()
	}
	if right == killDenied {
		return notOwner(t.id)
	}
	if k.Query {
		t.numbers.Patience.Interrupt()
		return s.killOn(t, places, k)
	}
	t.doom.CompareAndSwap(notDoomed, doomKilled) // before its server says anything to it
	if err := s.killOn(t, places, k); err != nil {
		// A server that does not take the words has done nothing. One that could not be told
		// finds its connection closed.
		if kill.IsServerError(err) && !errors.Is(err, kill.ErrLogin) {
			t.doom.CompareAndSwap(doomKilled, notDoomed)
			return err
		}
	}
	t.cut()
	return nil
}

// killRight is by which right somebody may kill a session.
type killRight uint8

const (
	killDenied killRight = iota
	killOfOwn            // it is the same user's
	killOfAny            // by an admin, of somebody else's
)

// killPlaces returns the session's connections to servers, from outside, and by which
// right by may kill them.
func (s *session) killPlaces(by *session) (places []killPlace, right killRight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.introduced && s.login.Account.Name == by.login.Account.Name:
		right = killOfOwn
	case by.login.Account.Admin:
		right = killOfAny
	}
	if !s.introduced || right == killDenied { // it is nobody's yet
		return nil, right
	}
	for shard, c := range s.conns {
		creds, known := s.login.Account.Beside(shard)
		places = append(places, killPlace{c.Place(), s.login.Account.Name, creds, known, s.login.Account.PasswordUnknown() && (s.login.Account.Name == by.login.Account.Name || !known)})
	}
	return places, right
}

// killOn tells the servers of all places. The error is a server's *protocol.ServerError
// in terms of the session's id, or says why one could not be told, and is kill.ErrLogin.
func (s *session) killOn(t *session, places []killPlace, k kill.Wish) error {
	var first error
	for _, p := range places {
		if err := s.killAt(t, p, k); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (s *session) killAt(t *session, p killPlace, k kill.Wish) error {
	cmd, argument := k.Command(p.ID())
	var err error
	own := s.conns[p.Shard()]
	switch {
	case p.viaOwn && own != nil && own.Place().SameServer(p.Place):
		err = own.Command(cmd, argument) // whose server knows who we are
	case p.known:
		err = s.srv.killer.Run(s.ctx, p.Place, p.creds, cmd, argument)
	default:
		return errors.Join(kill.ErrLogin, notSupported("shard %s cannot be told to end a statement of %s, whose password only the server knows: "+
			"give the shard a user and password of its own, or end the connection", p.Shard().Name(), p.user))
	}
	var refused *protocol.ServerError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kill.ErrLogin):
		return err
	case !errors.As(err, &refused):
		return errors.Join(kill.ErrLogin, sqlError(erShardLost, "HY000", "seqproxy: shard %s, node %s, does not answer a KILL: %v", p.Shard().Name(), p.Node(), err))
	}
	switch refused.Code {
	case mysql.ER_NO_SUCH_THREAD:
		return nil // it has just ended
	case mysql.ER_KILL_DENIED_ERROR: // the shard's own account may not
		return errors.Join(kill.ErrLogin, notOwner(t.id))
	}
	told := *refused
	told.Message = strings.ReplaceAll(told.Message, strconv.FormatUint(uint64(p.ID()), 10), strconv.FormatUint(uint64(t.id), 10))
	return &told
}

// killPrepared is a KILL that was prepared.
type killPrepared struct {
	statement.KillTarget
	variable string
	long     bool // the parameter came by COM_STMT_SEND_LONG_DATA, past us
}

// executeKill executes a prepared KILL if it is one of an id that a proxy gave.
func (s *session) executeKill(p *prepared, payload []byte) (handled bool, err error) {
	k, id := p.kill, p.kill.ID
	switch k.Operand {
	case statement.KillVariable:
		if id, err = s.userVariable(k.variable); err != nil {
			return false, err
		}
	case statement.KillSelf:
		id = uint64(s.id)
	case statement.KillParam:
		e, err := p.cut(payload, s.login.Capabilities.Has(protocol.QueryAttributes))
		if err != nil {
			return false, err
		}
		if id = 0; p.params == 1 && !k.long && !e.params.IsNull(0) {
			id = kill.ParameterID(p.types[0].Type, e.values)
		}
		k.long = false
	}
	if !isOwnID(id) {
		return false, nil
	}
	return true, s.killOwn(uint32(id), kill.WishOf(&k.KillTarget))
}
