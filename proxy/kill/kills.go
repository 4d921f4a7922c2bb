package kill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// Target is a session that may be killed. Other goroutines call its methods.
type Target interface {
	// Places returns the session's connections to servers, and the right by which the account may
	// kill them.
	Places(by Account) ([]Place, Right)
	// Interrupt ends the session's wait in the proxy itself.
	Interrupt()
	// Doomed returns why the session is being ended.
	Doomed() *Doom
	// Cut ends the session: everything that it waits for fails.
	Cut()
}

// Sessions finds the sessions of the proxy.
type Sessions interface {
	// Target returns the session with a connection id. ok is false if it has ended.
	Target(id uint32) (t Target, ok bool)
}

// Session is the session that kills.
type Session interface {
	// KillsAs returns the session's user.
	KillsAs() Account
	// ConnAt returns the session's connection to a shard, or nil.
	ConnAt(shard *backend.Shard) *backend.Conn
	// Attach returns the connection that the next command runs on.
	Attach() (*backend.Conn, error)
	// Audit logs what an admin has done.
	Audit(statement string, err error)
}

// Account is the user of a session that kills.
type Account struct {
	Name  string
	Admin bool
}

// Place is a connection of a session to kill.
type Place struct {
	backend.Place
	User     string // user of the session at this moment
	Creds    backend.Credentials
	HasCreds bool // Creds are valid
	// ViaSession says that the killing session's own connection is better: the proxy lacks the
	// user's password, and Creds are missing or another account's.
	ViaSession bool
}

// Right is why a user may kill a session.
type Right uint8

// The rights.
const (
	Denied Right = iota
	OfSame       // both have the same user
	OfAny        // an admin kills the session of another user
)

// Kills carries out the KILLs of one session. Only the session's goroutine uses it.
type Kills struct {
	session  Session
	sessions Sessions
	killer   *Killer
	ctx      context.Context // the session's
	waiting  []waiting       // in the present text
}

// waiting is a KILL of another session among several statements. The server gets a statement
// without effect in its place. The KILL is carried out when the statements before it have
// succeeded.
type waiting struct {
	results int // results before it, and its own
	id      uint32
	target  Target
	wish    Wish
}

// NewKills returns the Kills of a session.
func NewKills(ctx context.Context, s Session, all Sessions, killer *Killer) Kills {
	return Kills{session: s, sessions: all, killer: killer, ctx: ctx}
}

// Other carries out a KILL of the session id, by the session by.
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

// kill carries out a KILL of another session on its servers. It uses other connections, since the
// session's are busy. It asks each server: a KILL harms none without a running statement.
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
	t.Doomed().Set(Killed) // before a server ends anything
	if err := k.killAll(id, places, w); err != nil {
		// A server that refuses has done nothing. One that could not be asked sees its connection
		// closed.
		if IsServerError(err) && !errors.Is(err, ErrLogin) {
			t.Doomed().Spare()
			return err
		}
	}
	t.Cut()
	return nil
}

// killAll sends the KILL to the servers of all places. The error is a server's
// *protocol.ServerError with the session's id, or ErrLogin if a server could not be asked.
func (k *Kills) killAll(id uint32, places []Place, w Wish) error {
	errs := make([]error, len(places)) // a server that hangs holds no other back
	var asked sync.WaitGroup
	for i, p := range places {
		asked.Go(func() { errs[i] = k.killAt(id, p, w) })
	}
	asked.Wait()
	return cmp.Or(errs...)
}

func (k *Kills) killAt(id uint32, p Place, w Wish) error {
	cmd, argument := w.Command(p.ID())
	var err error
	mine := k.session.ConnAt(p.Shard())
	switch {
	case p.ViaSession && mine != nil && mine.Place().SameServer(p.Place):
		err = mine.Command(cmd, argument) // its server knows this user
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
		return nil // the connection has just ended
	case mysql.ER_KILL_DENIED_ERROR: // the shard's own account may not
		return errors.Join(ErrLogin, notOwner(id))
	}
	e := *refused
	e.Message = strings.ReplaceAll(e.Message, strconv.FormatUint(uint64(p.ID()), 10), strconv.FormatUint(uint64(id), 10))
	return &e
}

// Replace returns a text with replacements for the KILLs of ids that this proxy gave, or nil if
// there are none. It keeps the KILLs for After. A KILL of an unknown id stays: the server answers
// that there is no such thread. KILL HARD and SOFT are MariaDB's alone. by is the session's id.
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

// instead returns what the server gets in place of a KILL. "" keeps the KILL.
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
		if p.ViaSession { // that connection is busy then
			return "", protocol.NotSupported("KILL %s among several statements, of a session whose password only the server knows: send it alone", strconv.FormatUint(t.ID, 10))
		}
	}
	k.waiting = append(k.waiting, waiting{t.Results + 1, id, target, w})
	return "DO 0", nil
}

// Wait reports whether KILLs wait for their place in the text.
func (k *Kills) Wait() bool { return len(k.waiting) > 0 }

// After carries out the KILLs that come after that many results of the text. It ignores errors: a
// server that cannot be asked is most likely gone, with the statement.
func (k *Kills) After(results int) {
	for len(k.waiting) > 0 && k.waiting[0].results <= results {
		w := k.waiting[0]
		k.waiting = k.waiting[1:]
		_ = k.kill(w.id, w.target, w.wish)
	}
}

// Drop removes the waiting KILLs.
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
