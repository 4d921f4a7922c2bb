package session

import (
	"strings"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// renew has the session use the server's settings of now, before a command, if it can. An error is
// the end of the session.
func (s *Session) renew(now *Settings) error {
	if s.batch.size > 0 || s.state.InTransaction() || s.state.NextTransaction {
		return nil
	}
	s.set = now
	s.numbers.From(now.numbers, now.right, now.multiRowFirst)
	routes := s.set.routesFor(s.login.AtAdmin)
	if s.routes == routes || s.cur != nil && (paused(s.cur.Shard()) || paused(routes.ForSchema(s.state.Schema))) {
		return nil // the command may need no server; else see rejoin
	}
	return s.follow(routes)
}

func paused(shard *backend.Shard) bool { return shard != nil && shard.Paused() != nil }

// rejoin has a session that waited for a shard which was paused go where the routes of now
// lead: nodes are changed during a pause. Nothing of the command being handled was sent.
func (a *attachment) rejoin() error {
	a.waited = false
	if a.login.AtAdmin {
		return nil // it has routes while it explains a statement
	}
	routes := a.shared.Settings.Load().Routes
	if a.routes == routes || a.above.pending() || a.state.InTransaction() || a.state.NextTransaction {
		return nil
	}
	return a.follow(routes)
}

// moveAgain is how long a session waits that could not move, before it tries again.
const moveAgain = 5 * time.Second

// follow brings the session where routes send it. What keeps it on a connection keeps it on
// all that it has, until that is over or the session ends: half of its statements must not
// go to one server, and half to that which took its place.
func (a *attachment) follow(routes *backend.Routes) error {
	if a.isAt(routes) {
		a.routes = routes
		a.above.dropTallies()
		return nil
	}
	if a.state.Pins != 0 || len(a.prepared.byID) > 0 {
		a.logKept(routes)
		return nil
	}
	if a.above.readsBehind() || time.Now().Before(a.moveAfter) {
		return nil
	}
	before := a.routes
	a.routes = routes
	err := a.move()
	if err == nil {
		a.above.dropTallies()
		return nil
	}
	if ends(err) {
		return err
	}
	a.unreached = false // the command goes where it did
	a.routes, a.moveAfter = before, time.Now().Add(moveAgain)
	a.log().Warn("session not moved", logfield.Err(err))
	return nil
}

// logKept logs, once for the routes, what keeps the session from them.
func (a *attachment) logKept(routes *backend.Routes) {
	if a.keptFrom == routes {
		return
	}
	a.keptFrom = routes
	var names []string
	for _, p := range a.state.Pins.List() {
		names = append(names, p.String())
	}
	if len(a.prepared.byID) > 0 {
		names = append(names, "prepared_statement")
	}
	a.log().Info("session kept where it is", logfield.Pin(strings.Join(names, ", ")))
}

// isAt reports whether routes lead to the connections that the session has.
func (a *attachment) isAt(routes *backend.Routes) bool {
	if a.cur != nil && routes.ForSchema(a.state.Schema) != a.cur.Shard() {
		return false
	}
	for shard := range a.conns {
		if !routes.Has(shard) {
			return false
		}
	}
	return true
}

// readsBehind reports whether the command being handled may look at what the statement before it
// has left on its connection: it has to run there.
func (s *Session) readsBehind() bool {
	if len(s.batch.payload) == 0 {
		return true
	}
	sql, ok := textOf(s.batch.payload, s.login.Capabilities.Has(protocol.QueryAttributes))
	if !ok {
		return true
	}
	var st statement.Statement
	st.Analyze(sql, s.state.Mode)
	return st.MayReadLastStatement()
}

// move opens a connection where the current schema is now, brings along what the session
// has set, and closes those to servers that are not there any more. After an error nothing
// has changed. It may wait for a shard that is paused, and sets waited then.
func (a *attachment) move() error {
	if a.cur != nil {
		shard := a.routes.ForSchema(a.state.Schema)
		if shard == nil {
			return errKeysOnly
		}
		if err := a.enterBoth(a.cur.Shard(), shard); err != nil {
			return err
		}
		c := a.conns[shard]
		opened := c == nil
		if opened {
			var err error
			if c, err = a.open(shard, a.state.Schema); err != nil {
				return err
			}
		} else if a.state.Schema != "" {
			if err := a.runCommand(c, protocol.ComInitDB, a.state.Schema); err != nil {
				return err
			}
		}
		if err := a.bringAll(c); err != nil {
			if opened {
				a.forget(c)
				c.Quit()
			}
			return err
		}
		a.current(c)
	}
	for shard, c := range a.conns {
		if !a.routes.Has(shard) {
			a.forget(c)
			c.Quit()
		}
	}
	return nil
}

// bringAll makes c what the current connection is to the session.
func (a *attachment) bringAll(c *backend.Conn) error {
	if err := a.carryVariables(c); err != nil {
		return err
	}
	if a.state.LastID.Pending { // nowhere yet
		return nil
	}
	return a.BringLastID(c, false)
}
