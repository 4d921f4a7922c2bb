package session

import (
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/state"
)

// attachment says on which connection a session's commands run. It attaches the session to a
// shard, holds it back while that is paused, and takes it to another.
type attachment struct {
	backends
	above    attached
	patience *keys.Patience

	set *Settings // those in force for the command being handled; see renew
	// those of set, or of earlier ones that the session is not done with
	routes  *backend.Routes
	lastTag uint32 // of its connections to servers; see idOfConn
	// waited: since it was last looked at, the session has waited for a shard that was paused.
	waited    bool
	unreached bool // the command being handled found no way to its server; see failed
	// moveAfter is when the session may try again to go where new routes send it.
	moveAfter time.Time
	// keptFrom are the routes of which the log says that something keeps the session from them.
	keptFrom *backend.Routes

	// engaged are the shards that the session uses, or has used; while it rests that counts
	// only with a transaction open. entered are those of the command being handled. See enter.
	engaged atomic.Pointer[backend.ShardSet]
	entered *backend.ShardSet
}

// attached is what an attachment needs of the session that it is of.
type attached interface {
	// settle sends what waits to be sent, and relays the answers; pending says whether there is
	// any.
	settle() error
	pending() bool
	// readsBehind says whether the command being handled may look at what the one before it left.
	readsBehind() bool
	// dropTallies forgets the counts of shards that the session has done with.
	dropTallies()
}

// Attach returns the connection that the next command of the session runs on: that
// of the current schema's shard, opened when it is first needed. Commands give it
// back with release. In pool mode "session" the session keeps it until its end.
func (a *attachment) Attach() (*backend.Conn, error) {
	for a.cur != nil {
		if err := a.enter(a.cur.Shard()); err != nil || !a.waited {
			return a.cur, err
		}
		if err := a.rejoin(); err != nil { // there may be another connection now
			return nil, err
		}
	}
	shard, err := a.enterFor(a.state.Schema)
	if err != nil {
		return nil, err
	}
	if shard == nil {
		return nil, a.noServer()
	}
	c, err := a.open(shard, a.state.Schema)
	if err != nil {
		return nil, err
	}
	a.current(c)
	return c, nil
}

// open opens the session's connection to a shard, with the client's own framing.
func (a *attachment) open(shard *backend.Shard, schema string) (*backend.Conn, error) {
	account := a.login.Account
	itself, err := account.UsesUserCredentials(shard, a.routes.Default())
	if err != nil {
		return nil, err
	}
	with := a.login.ToServer(schema)
	with.Password, with.OtherPassword, with.KeepCredentials = account.Password, account.OldPassword, itself
	return a.Dial(shard, with)
}

// Dial opens a connection that is the session's from then on.
func (a *attachment) Dial(shard *backend.Shard, with backend.Login) (*backend.Conn, error) {
	if err := a.enter(shard); err != nil {
		return nil, err
	}
	begun := a.tally.Waits()
	c, err := a.routes.Dial(a.ctx, shard, with)
	a.tally.Waited(begun)
	if err != nil {
		a.unreached = true
		return nil, err
	}
	if err := a.set.setStep(c); err != nil {
		a.unreached = true
		c.Close()
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		c.Close()
		return nil, errShutdown
	}
	if a.conns == nil {
		a.conns = make(map[*backend.Shard]*backend.Conn, 1)
	}
	a.conns[shard] = c
	a.lastTag++
	c.Tag = a.lastTag
	a.watchLocked(c)
	a.state.Synced(idOfConn(c), a.state.Version)
	if a.cur != nil { // what was set before must hold here too
		a.state.Synced(idOfConn(c), 0)
	}
	return c, nil
}

// connForSchema returns the session's connection to the shard that a schema is on: the
// current one, or one as of connTo. If it waits for a shard that is paused, that is where
// the schema is then.
func (a *attachment) connForSchema(schema string) (*backend.Conn, error) {
	for {
		c, err := a.Attach()
		if err != nil {
			return nil, err
		}
		shard := a.routes.ForSchema(schema)
		if shard == c.Shard() {
			return c, nil
		}
		if err := a.mayLeaveFor(shard); err != nil {
			return nil, err
		}
		if err := a.enterBoth(c.Shard(), shard); err != nil {
			return nil, err
		}
		if !a.waited {
			return a.connReady(shard)
		}
		if err := a.rejoin(); err != nil {
			return nil, err
		}
	}
}

// connTo returns the session's connection to a shard other than the current one,
// with everything that the session has set. It is an error, and nothing changes,
// when something cannot be brought along.
func (a *attachment) connTo(shard *backend.Shard) (*backend.Conn, error) {
	if err := a.mayLeaveFor(shard); err != nil {
		return nil, err
	}
	if err := a.enterBoth(a.cur.Shard(), shard); err != nil {
		return nil, err
	}
	return a.connReady(shard)
}

// connReady is connTo once the session may leave, and has entered both shards.
func (a *attachment) connReady(shard *backend.Shard) (*backend.Conn, error) {
	c := a.conns[shard]
	if c == nil {
		var err error
		if c, err = a.open(shard, ""); err != nil {
			return nil, err
		}
	}
	if err := a.carryVariables(c); err != nil {
		return nil, err
	}
	return c, nil
}

// mayLeaveFor says why the session cannot go to another shard than the current one, nil if
// it can.
func (a *attachment) mayLeaveFor(shard *backend.Shard) error {
	switch {
	case a.state.InTransaction():
		return protocol.NotSupported("the session cannot go to shard %s inside a transaction on shard %s: COMMIT or ROLLBACK first",
			shard.Name(), a.cur.Shard().Name())
	case a.state.NextTransaction:
		return protocol.NotSupported("the session cannot go to shard %s between SET TRANSACTION and its transaction", shard.Name())
	case a.state.Pins != 0:
		return protocol.NotSupported("the session cannot go from shard %s to shard %s and keep its state: %s (use another connection)",
			a.cur.Shard().Name(), shard.Name(), a.state.Pins.Words())
	}
	return nil
}

// mayUse says whether the user may use a sequence.
func (f *facts) mayUse(ctx context.Context, name []byte) (bool, error) {
	if f.at.login.Account.Rights == nil {
		return true, nil
	}
	return f.at.login.Account.Rights.Allow(ctx, f.at.set.right, name)
}

// connOf returns the connection of a prepared statement: the one that it was
// prepared on, in the schema of that time, even if another shard is current.
func (a *attachment) connOf(p *prepared) (*backend.Conn, error) {
	if p.conn == a.cur {
		return p.conn, a.enter(a.cur.Shard())
	}
	switch there, here := p.conn.Shard().Name(), a.cur.Shard().Name(); {
	case a.state.InTransaction():
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run inside a transaction on shard %s: COMMIT or ROLLBACK first",
			there, here)
	case !a.state.Status.Has(protocol.Autocommit): // it would begin a transaction there
		return nil, protocol.NotSupported("the statement was prepared on shard %s and cannot run from shard %s with autocommit = 0: USE a schema of shard %s first",
			there, here, there)
	case !p.shape.LeavesNothing():
		return nil, protocol.NotSupported("the statement was prepared on shard %s, where it changes the session, which is on shard %s now: USE a schema of shard %s first, or prepare it again",
			there, here, there)
	}
	return a.connTo(p.conn.Shard())
}

// connFor is connOf for an execution: it makes true there what the statement may
// look at.
func (a *attachment) connFor(p *prepared) (*backend.Conn, error) {
	c, err := a.connOf(p)
	if err != nil {
		return nil, err
	}
	if err := a.prepareConn(c, p); err != nil {
		return nil, err
	}
	return c, nil
}

// prepareConn makes true on c what the statement may look at.
func (a *attachment) prepareConn(c *backend.Conn, p *prepared) error {
	if err := a.bring(c, p.shape); err != nil {
		return err
	}
	a.expects(state.Effect{Kind: p.shape.Kind, Words: p.shape.Words, Runs: p.shape.Runs})
	return nil
}

// dropLongData makes the server forget what came by COM_STMT_SEND_LONG_DATA for an
// execution that failed with err before it was sent: an execution ends the data's
// life, and the next would otherwise append to it.
func (a *attachment) dropLongData(c *backend.Conn, p *prepared, err error) error {
	if !p.LongSent {
		return err
	}
	p.ForgetLong()
	id := binary.LittleEndian.AppendUint32(nil, p.backendID)
	if resetErr := a.runCommand(c, protocol.ComStmtReset, string(id)); resetErr != nil {
		return resetErr
	}
	return err
}
