package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"seqproxy/backend"
	"seqproxy/internal/logfield"
	"seqproxy/protocol"
	"seqproxy/statement"
)

// renew makes the session use the server's present settings, before a command, if it can. An error
// ends the session; see failed.
func (s *Session) renew(now *Settings) error {
	if s.batch.size > 0 || s.state.InTransaction() || s.state.NextTransaction {
		return nil
	}
	s.use(now)
	routes := s.set.routesFor(s.login.AtAdmin)
	if s.routes == routes || s.cur != nil && (paused(s.cur.Shard) || paused(routes.ForSchema(s.state.Schema))) {
		return nil // the command may need no server; else see rejoin
	}
	return s.follow(routes)
}

func paused(shard *backend.Shard) bool { return shard != nil && shard.Paused() != nil }

// rejoin makes a session that has waited for a paused shard use the present routes: a pause is the
// time to change nodes. Nothing of the command being handled was sent.
func (a *attachment) rejoin() error {
	a.waited = false
	if a.login.AtAdmin {
		return nil // the session has routes of its own while it explains a statement
	}
	routes := a.shared.Settings.Load().Routes
	if a.routes == routes || a.above.pending() || a.state.InTransaction() || a.state.NextTransaction {
		return nil
	}
	return a.follow(routes)
}

// errNotMoved ends a session that cannot move after a pause, with an error for the client. A pause
// is for a switch of the primary: the old one must get no more writes. A direct connection would
// end, too.
var errNotMoved = errors.New("session not moved")

// moveAgain is how long a session that failed to move waits before it tries again.
const moveAgain = 5 * time.Second

// follow moves the session to new routes. A pin on one connection keeps the session on all its
// connections until the pin ends: no half of its statements may go to one server and the other half
// to its successor. A session that cannot move stays, and tries again later; if a reload was in a
// pause, it ends.
func (a *attachment) follow(routes *backend.Routes) error {
	for shard, c := range a.conns {
		if c != a.cur && !routes.Has(shard) && !a.needs(c) {
			a.forget(c)
			c.Quit()
		}
	}
	if a.isAt(routes) {
		a.routes = routes
		a.above.dropTallies()
		return nil
	}
	if a.state.Pins != 0 || a.prepared.onServer() {
		a.logKept(routes)
		return nil
	}
	before := a.routes
	mustMove := routes.PausedSince(before)
	if a.above.readsBehind(mustMove) || !mustMove && time.Now().Before(a.moveAfter) {
		return nil
	}
	a.routes = routes
	err := a.move()
	if err == nil {
		a.above.dropTallies()
		return nil
	}
	if ends(err) {
		return err
	}
	if mustMove {
		refused := protocol.Errorf(erShardLost, "08S01", "seqproxy: connect again: shard %s has changed in a pause, and the session cannot follow: %s",
			a.cur.Shard.Name(), strings.TrimPrefix(forClient(err).Message, "seqproxy: "))
		a.closeBackends() // nothing more goes there, whoever handles the error
		return fmt.Errorf("%w: %w", errNotMoved, refused)
	}
	a.unreached = false // the command reaches its present server
	a.routes, a.moveAfter = before, time.Now().Add(moveAgain)
	a.log().Warn("session not moved", logfield.Err(err))
	return nil
}

// logKept logs, once for each routes, what keeps the session from them.
func (a *attachment) logKept(routes *backend.Routes) {
	if a.keptFrom == routes {
		return
	}
	a.keptFrom = routes
	var names []string
	for _, p := range a.state.Pins.List() {
		names = append(names, p.String())
	}
	if a.prepared.onServer() {
		names = append(names, "prepared_statement")
	}
	a.log().Info("session kept where it is", logfield.Pin(strings.Join(names, ", ")))
}

// isAt reports whether routes lead to the session's connections.
func (a *attachment) isAt(routes *backend.Routes) bool {
	if a.cur != nil && routes.ForSchema(a.state.Schema) != a.cur.Shard {
		return false
	}
	for shard := range a.conns {
		if !routes.Has(shard) {
			return false
		}
	}
	return true
}

// readsBehind reports whether the command being handled may read what the statement before it has
// left on its connection, and so has to run there. If the session must move, only a text that names
// ROW_COUNT() or the like does: others may write, as may what cannot be read.
func (s *Session) readsBehind(mustMove bool) bool {
	if len(s.batch.payload) == 0 {
		return !mustMove
	}
	sql, ok := s.client.textOf(s.batch.payload)
	if !ok {
		return !mustMove
	}
	var st statement.Statement
	st.Analyze(sql, s.state.Mode)
	if mustMove {
		return st.ReadsOfLast() != 0
	}
	return st.MayReadLastStatement()
}

// move opens a connection to the current schema's shard, brings along what the session has set, and
// closes the connections to servers that the routes lack. After an error nothing has changed. A
// wait for a paused shard sets waited.
func (a *attachment) move() error {
	if a.cur != nil {
		shard := a.routes.ForSchema(a.state.Schema)
		if shard == nil {
			return errKeysOnly
		}
		if err := a.enterBoth(a.cur.Shard, shard); err != nil {
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
		a.setCurrent(c)
	}
	for shard, c := range a.conns {
		if !a.routes.Has(shard) {
			a.forget(c)
			c.Quit()
		}
	}
	return nil
}

// bringAll brings everything that the session has on the current connection to c.
func (a *attachment) bringAll(c *backend.Conn) error {
	if err := a.carryVariables(c); err != nil {
		return err
	}
	if a.state.LastID.Pending { // it is on no connection yet
		return nil
	}
	return a.BringLastID(c, false)
}
