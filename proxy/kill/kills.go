package kill

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// Target is a session that may be killed. All of it is called from outside.
type Target interface {
	// Places returns the session's connections to servers, and by which right somebody may kill
	// them.
	Places(by Account) ([]Place, Right)
	// Interrupt ends what the session waits for in the proxy itself.
	Interrupt()
	// Doomed is why the session is being ended.
	Doomed() *Doom
	// Cut ends the session: everything that it may wait for fails.
	Cut()
}

// Sessions are those of the proxy.
type Sessions interface {
	// Target returns the session that an id was given to; ok is false if it has ended.
	Target(id uint32) (t Target, ok bool)
}

// Session is who kills.
type Session interface {
	// KillsAs is the user.
	KillsAs() Account
	// ConnAt returns the session's connection to a shard, nil if it has none.
	ConnAt(shard *backend.Shard) *backend.Conn
	// Attach returns the connection that the next command runs on.
	Attach() (*backend.Conn, error)
	// Audit logs what an admin has done.
	Audit(statement string, err error)
}

// Account is a user who kills.
type Account struct {
	Name  string
	Admin bool
}

// Place is a connection of a session to be killed.
type Place struct {
	backend.Place
	User     string // of the session, which may change its own meanwhile
	Creds    backend.Credentials
	HasCreds bool // Creds are there
	// ViaSession: who kills does it better on the connection of its session, because the
	// user's password is not known here and Creds are none or another account's.
	ViaSession bool
}

// Right is by which right somebody may kill a session.
type Right uint8

// The rights.
const (
	Denied Right = iota
	OfSame       // it is the same user's
	OfAny        // by an admin, of somebody else's
)

// Kills carries out the KILLs of one session. Only its goroutine uses it.
type Kills struct {
	session  Session
	sessions Sessions
	killer   *Killer
	ctx      context.Context // the session's
	waiting  []waiting       // of the text being handled
}

// waiting is a KILL of another session that stands among several statements. The server
// gets a statement without effect in its place; the KILL is carried out when the statements
// in front of it have succeeded.
type waiting struct {
	results int // that have come before it, its own included
	id      uint32
	target  Target
	wish    Wish
}

// By makes the kills of a session.
func By(ctx context.Context, s Session, all Sessions, killer *Killer) Kills {
	return Kills{session: s, sessions: all, killer: killer, ctx: ctx}
}

// Other carries out a KILL, by a session whose id is by, of another one with an id that a proxy
// gave.
func (k *Kills) Other(by, id uint32, w Wish) error {
	if !sameProxy(id, by) {
		return otherProxysThread(id)
	}
	t, ok := k.sessions.Target(id)
	if !ok {
		return noSuchThread(id)
	}
	return k.kill(id, t, w)
}

// kill carries out a KILL of another session: on its servers, over connections
// beside its own, which are busy. Only the statement that runs can be ended, so asking
// each server for it ends no other.
func (k *Kills) kill(id uint32, t Target, w Wish) (err error) {
	places, right := t.Places(k.session.KillsAs())
	if right != OfSame {
		defer func() { k.session.Audit(w.Text(id), err) }()
	}
	if right == Denied {
		return notOwner(id)
	}
	if w.Query {
		t.Interrupt()
		return k.killAll(id, places, w)
	}
	t.Doomed().Set(Killed) // before its server says anything to it
	if err := k.killAll(id, places, w); err != nil {
		// A server that does not take the words has done nothing. One that could not be told
		// finds its connection closed.
		if IsServerError(err) && !errors.Is(err, ErrLogin) {
			t.Doomed().Lift(Killed)
			return err
		}
	}
	t.Cut()
	return nil
}

// killAll tells the servers of all places. The error is a server's *protocol.ServerError
// in terms of the session's id, or says why one could not be told, and is ErrLogin.
func (k *Kills) killAll(id uint32, places []Place, w Wish) error {
	var first error
	for _, p := range places {
		if err := k.killAt(id, p, w); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (k *Kills) killAt(id uint32, p Place, w Wish) error {
	cmd, argument := w.Command(p.ID())
	var err error
	mine := k.session.ConnAt(p.Shard())
	switch {
	case p.ViaSession && mine != nil && mine.Place().SameServer(p.Place):
		err = mine.Command(cmd, argument) // whose server knows who we are
	case p.HasCreds:
		err = k.killer.Run(k.ctx, p.Place, p.Creds, cmd, argument)
	default:
		return errors.Join(ErrLogin, protocol.NotSupported("shard %s cannot be told to end a statement of %s, whose password only the server knows: "+
			"give the shard a user and password of its own, or end the connection", p.Shard().Name(), p.User))
	}
	var refused *protocol.ServerError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrLogin):
		return err
	case !errors.As(err, &refused):
		return errors.Join(ErrLogin, protocol.Errorf(mysql.ER_CONNECT_TO_FOREIGN_DATA_SOURCE, "HY000", "seqproxy: shard %s, node %s, does not answer a KILL: %v",
			p.Shard().Name(), p.Node(), err))
	}
	switch refused.Code {
	case mysql.ER_NO_SUCH_THREAD:
		return nil // it has just ended
	case mysql.ER_KILL_DENIED_ERROR: // the shard's own account may not
		return errors.Join(ErrLogin, notOwner(id))
	}
	e := *refused
	e.Message = strings.ReplaceAll(e.Message, strconv.FormatUint(uint64(p.ID()), 10), strconv.FormatUint(uint64(id), 10))
	return &e
}

// Replace returns a text with those KILLs replaced that name an id which this proxy gave, nil if
// none does, and takes note of those that are to be carried out. A KILL of an id that is nobody's
// stays: the server says that it knows no such thread. KILL HARD and SOFT are MariaDB's alone. by
// is the session's id.
func (k *Kills) Replace(sql []byte, all []statement.KillTarget, by uint32, mariaDB bool) (text []byte, err error) {
	k.waiting = nil
	from := 0
	for i := range all {
		t := &all[i]
		if !IsProxyID(t.ID) || (t.Hard || t.Soft) && !mariaDB {
			continue
		}
		instead, err := k.instead(t, by)
		if err != nil {
			return nil, err
		}
		if instead != "" {
			text = append(append(text, sql[from:t.Begin]...), instead...)
			from = t.End
		}
	}
	if text == nil {
		return nil, nil
	}
	return append(text, sql[from:]...), nil
}

// instead is what the server gets in the place of a KILL; "" leaves that.
func (k *Kills) instead(t *statement.KillTarget, by uint32) (string, error) {
	id, w := uint32(t.ID), WishOf(t)
	if id == by {
		c, err := k.session.Attach()
		if err != nil {
			return "", err
		}
		return w.Text(c.ID), nil
	}
	target, ok := k.sessions.Target(id)
	if !ok {
		return "", nil
	}
	places, right := target.Places(k.session.KillsAs())
	if right == Denied {
		e := notOwner(id)
		return fmt.Sprintf("SIGNAL SQLSTATE '%s' SET MYSQL_ERRNO = %d, MESSAGE_TEXT = '%s'", e.State, e.Code, e.Message), nil
	}
	if t.Results < 0 {
		return "", protocol.NotSupported("KILL %s behind CALL, EXECUTE or something not understood in the same text: send it alone", strconv.FormatUint(t.ID, 10))
	}
	for _, p := range places {
		if p.ViaSession { // while that connection is busy
			return "", protocol.NotSupported("KILL %s among several statements, of a session whose password only the server knows: send it alone", strconv.FormatUint(t.ID, 10))
		}
	}
	k.waiting = append(k.waiting, waiting{t.Results + 1, id, target, w})
	return "DO 0", nil
}

// Wait says whether KILLs among several statements are still to be carried out.
func (k *Kills) Wait() bool { return len(k.waiting) > 0 }

// After carries out the KILLs whose time has come, after so many results of the text.
// A server that cannot be told to end a statement is most likely gone with the statement.
func (k *Kills) After(results int) {
	for len(k.waiting) > 0 && k.waiting[0].results <= results {
		w := k.waiting[0]
		k.waiting = k.waiting[1:]
		_ = k.kill(w.id, w.target, w.wish)
	}
}

// Drop forgets those that are still to be carried out.
func (k *Kills) Drop() { k.waiting = nil }

// Errors of a KILL, in the servers' words.
func noSuchThread(id uint32) error {
	return protocol.Errorf(mysql.ER_NO_SUCH_THREAD, "HY000", "Unknown thread id: %d", id)
}

func otherProxysThread(id uint32) error {
	return protocol.Errorf(mysql.ER_NO_SUCH_THREAD, "HY000",
		"Unknown thread id: %d (seqproxy: another proxy gave that id: send the KILL to the proxy that the connection is to)", id)
}

func notOwner(id uint32) *protocol.ServerError {
	return protocol.Errorf(mysql.ER_KILL_DENIED_ERROR, "HY000", "You are not owner of thread %d", id)
}
