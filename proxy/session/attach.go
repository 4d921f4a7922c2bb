package session

import (
	"sync/atomic"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/keys"
	"seqproxy/proxy/login"
	"seqproxy/proxy/state"
	"seqproxy/statement"
)

// attachment decides on which connection a session's commands run. It attaches the session to a
// shard, makes it wait while that is paused, and moves it to another.
type attachment struct {
	backends
	above    attached
	patience *keys.Patience

	set *Settings // the settings for the command being handled; see renew
	// routes are those of set, or earlier ones that the session has not left yet.
	routes  *backend.Routes
	lastTag uint32 // Tag of the latest connection to a server; see idOfConn
	// waited is set when the session has waited for a paused shard. rejoin clears it.
	waited    bool
	unreached bool // the command being handled did not reach its server; see failed
	// moveAfter is the time before which the session does not try again to move to new routes.
	moveAfter time.Time
	// keptFrom are the routes that the session could not move to when that was last logged.
	keptFrom *backend.Routes

	// engaged are the shards that the session uses, or has used. While it rests only a shard with
	// an open transaction counts. entered are the shards of the command being handled. See enter.
	engaged atomic.Pointer[backend.ShardSet]
	entered *backend.ShardSet
}

// attached is the session, as its attachment sees it.
type attached interface {
	// settle sends the waiting commands and relays the answers. pending reports whether any wait.
	settle() error
	pending() bool
	// readsBehind reports whether the command being handled may read what the one before it has
	// left on the connection.
	readsBehind(mustMove bool) bool
	// dropTallies forgets the counts of shards that the session no longer uses.
	dropTallies()
}

// noRoutes has no shards.
var noRoutes = &backend.Routes{}

// routesFor returns a session's routes to servers. There are none at the admin address.
func (s *Settings) routesFor(atAdmin bool) *backend.Routes {
	if atAdmin {
		return noRoutes
	}
	return s.Routes
}

// Attach returns the connection that the next command of the session runs on: the one to the
// current schema's shard, which it opens when it is first needed. Commands give it back with
// release. The session keeps it until its end.
func (a *attachment) Attach() (*backend.Conn, error) {
	for a.cur != nil {
		if err := a.enter(a.cur.Shard); err != nil || !a.waited {
			return a.cur, err
		}
		if err := a.rejoin(); err != nil { // the current connection may change
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
	a.setCurrent(c)
	return c, nil
}

// enterFor is enter for the shard of a schema, which it returns. The shard is nil if there is none.
func (a *attachment) enterFor(schema string) (*backend.Shard, error) {
	for {
		shard := a.routes.ForSchema(schema)
		if shard == nil {
			return nil, nil
		}
		if err := a.enter(shard); err != nil || !a.waited {
			return shard, err
		}
		if err := a.rejoin(); err != nil {
			return nil, err
		}
	}
}

// open opens the session's connection to a shard, with the client's own framing.
func (a *attachment) open(shard *backend.Shard, schema string) (*backend.Conn, error) {
	account := a.account()
	itself, err := account.UsesUserCredentials(shard, a.routes.Default)
	if err != nil {
		return nil, err
	}
	with := a.login.ToServer(schema)
	with.Password, with.OtherPassword, with.KeepCredentials = account.Password, account.OldPassword, itself
	return a.Dial(shard, with)
}

// reopens reports whether the session could open a connection again. It cannot without a password.
func (a *attachment) reopens(c *backend.Conn) bool {
	_, err := a.login.Account.UsesUserCredentials(c.Shard, a.routes.Default)
	return err == nil
}

// Dial opens a connection that the session then owns.
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
	if a.cur != nil { // the new connection lacks what was set before
		a.state.Synced(idOfConn(c), 0)
	}
	return c, nil
}

// connForSchema returns the session's connection to the shard of a schema: the current one, or one
// like connTo's. After a wait for a paused shard it looks up the schema's shard again.
func (a *attachment) connForSchema(schema string) (*backend.Conn, error) {
	for {
		c, err := a.Attach()
		if err != nil {
			return nil, err
		}
		shard := a.routes.ForSchema(schema)
		if shard == c.Shard {
			return c, nil
		}
		if err := a.ensureStatus(); err != nil {
			return nil, err
		}
		if err := a.mayLeaveFor(shard); err != nil {
			return nil, err
		}
		if err := a.enterBoth(c.Shard, shard); err != nil {
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

// connTo returns the session's connection to a shard other than the current one, with everything
// that the session has set. It fails without a change if something cannot be brought along.
func (a *attachment) connTo(shard *backend.Shard) (*backend.Conn, error) {
	if err := a.mayLeaveFor(shard); err != nil {
		return nil, err
	}
	if err := a.enterBoth(a.cur.Shard, shard); err != nil {
		return nil, err
	}
	return a.connReady(shard)
}

// connReady is connTo once the session may leave and has entered both shards.
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

// mayLeaveFor returns why the session cannot go to another shard, or nil if it can.
func (a *attachment) mayLeaveFor(shard *backend.Shard) error {
	switch {
	case a.state.InTransaction():
		return protocol.NotSupported("the session cannot go to shard %s inside a transaction on shard %s: COMMIT or ROLLBACK first",
			shard.Name(), a.cur.Shard.Name())
	case a.state.NextTransaction:
		return protocol.NotSupported("the session cannot go to shard %s between SET TRANSACTION and its transaction", shard.Name())
	case a.state.Pins != 0:
		return protocol.NotSupported("the session cannot go from shard %s to shard %s and keep its state: %s (use another connection)",
			a.cur.Shard.Name(), shard.Name(), a.state.Pins.Words())
	}
	return nil
}

// attachForUnread attaches a connection for a statement that is too long to be analysed, and so may
// be any statement.
func (a *attachment) attachForUnread(runs statement.Runs) (*backend.Conn, error) {
	c, err := a.Attach()
	if err != nil {
		return nil, err
	}
	if err := a.BringLastID(c, false); err != nil {
		return nil, err
	}
	a.expects(state.Effect{Kind: statement.Other, Words: statement.Opaque, Runs: runs})
	return c, nil
}

// waitOutPause waits while the current shard is paused. What the caller then decides is not changed
// by a pause: where the command goes, and whether keys are filled in. A later pause waits for the
// command.
func (a *attachment) waitOutPause() error {
	_, err := a.enterFor(a.state.Schema)
	return err
}

// elsewhere reports whether another shard than the current one owns a schema.
func (a *attachment) elsewhere(schema string) bool {
	return a.routes.ForSchema(schema) != a.routes.ForSchema(a.state.Schema)
}

// enter makes the command being handled wait while a shard is paused, unless the session has a
// transaction open or the command has already entered the shard. The commands before it may be sent
// and answered meanwhile.
func (a *attachment) enter(shard *backend.Shard) error {
	if engaged := a.engaged.Load(); !engaged.Has(shard) {
		a.engaged.Store(engaged.With(shard))
	}
	if a.entered.Has(shard) {
		return nil
	}
	if shard.Paused() != nil {
		if err := a.above.settle(); err != nil { // they may begin or end a transaction
			return err
		}
		if !a.state.InTransaction() {
			if err := a.awaitResume(shard); err != nil {
				return err
			}
			a.waited = true
		}
	}
	a.entered = a.entered.With(shard)
	return nil
}

// enterBoth is enter for a command that needs two shards at the same time.
func (a *attachment) enterBoth(one, other *backend.Shard) error {
	for {
		if err := a.enter(one); err != nil {
			return err
		}
		if err := a.enter(other); err != nil || a.engaged.Load().Has(one) {
			// A wait for the second drops the first, which may be paused now.
			return err
		}
	}
}

// awaitResume waits until a shard is resumed. KILL QUERY, a shutdown, PauseTimeout and the
// session's end stop the wait with an error.
func (a *attachment) awaitResume(shard *backend.Shard) (err error) {
	if err := a.client.flush(); err != nil { // the waiting answers to earlier commands
		return err
	}
	a.login.Leave() // other logins need not wait for this one
	a.shared.PausedSessions.Add(1)
	defer a.shared.PausedSessions.Add(-1)
	timer := time.NewTimer(a.set.PauseTimeout)
	defer timer.Stop()
	spent := a.patience.Spent
	defer func() {
		err = a.patience.Over(err)
		a.patience.Spent = spent // the time counts only for sequence servers
		a.unreached = err != nil
	}()
	for {
		p := shard.Paused()
		if p == nil {
			return a.prolongLogin()
		}
		a.engaged.Store(nil)
		a.entered = nil
		select {
		case <-p.Resumed():
		case <-a.patience.Done():
			return a.patience.Err()
		case <-a.shared.Stopping:
			return login.ErrShutdown
		case <-timer.C:
			return protocol.Errorf(erShardLost, "HY000", "seqproxy: shard %s is paused since %s by SEQPROXY PAUSE, and was not resumed within %s",
				shard.Name(), p.Since().Format("2006-01-02 15:04:05 MST"), a.set.PauseTimeout)
		}
		a.engaged.Store(a.entered.With(shard)) // before Paused is looked at again
	}
}

// disengage records that the session needs no server now. Nothing is in flight.
func (a *attachment) disengage() {
	if !a.state.InTransaction() {
		a.engaged.Store(nil)
	}
}

// narrowEngaged records, before a wait for a command, that only the current shard can have an open
// transaction.
func (a *attachment) narrowEngaged() {
	var one *backend.ShardSet
	if a.cur != nil {
		one = one.With(a.cur.Shard)
	}
	a.engaged.Store(one)
}

// prolongLogin gives a client that logs in the whole time again, since a pause has used some.
func (a *attachment) prolongLogin() error {
	if a.introduced { // the login is over
		return nil
	}
	return a.client.until(time.Now().Add(a.set.Login.Timeout))
}
