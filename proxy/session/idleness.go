package session

import (
	"errors"
	"fmt"
	"os"
	"time"

	"seqproxy/backend"
	"seqproxy/protocol"
	"seqproxy/proxy/hangup"
	"seqproxy/proxy/state"
	"seqproxy/proxy/stats"
)

// idleness keeps to wait_timeout (interactive_timeout for an interactive client). A server closes a
// silent connection itself, and the session ends with it: see dropClosed. Two cases remain. The
// proxy closes a session without a connection when the server would have closed it. And it pings a
// server while the client is busy with answers of the proxy's own, such as NEXTVAL, so that the
// server does not close the connection.
//
// Rounds whose commands all go to the server cost nothing here.
type idleness struct {
	at *attachment

	// since is the end of the client's last round that the current shard's server did not see.
	since time.Time
	// woken is set when the last wait brought no command.
	woken bool
}

const (
	// defaultWaitTimeout is the servers' default, in case none can be asked.
	defaultWaitTimeout = 28800 * time.Second
	// maxPingAfter bounds how long a server hears nothing of a busy client. A tenth of wait_timeout
	// bounds it, too.
	maxPingAfter = 30 * time.Second
	// otherPingTimeout bounds the ping of a connection that the session can do without: the client's
	// next command waits for it.
	otherPingTimeout = time.Second
	// minPingAfter is a tenth of the shortest possible wait_timeout.
	minPingAfter = 100 * time.Millisecond
)

// errIdle ends a session whose client has been silent for wait_timeout.
var errIdle = errors.New("client was idle for wait_timeout")

// erClientInteractionTimeout is the last error of MySQL 8.0.24 and later before they close.
const erClientInteractionTimeout = 4031

// beforeWait prepares a wait for the client, which has all its answers.
func (i *idleness) beforeWait(at time.Duration) error {
	if i.woken {
		i.woken = false
		return nil
	}
	if c := i.at.cur; c != nil && len(i.at.conns) == 1 && c.Used {
		c.Used, c.UsedBefore = false, true
		return nil
	}
	now := stats.Epoch.Add(at)
	for _, c := range i.at.conns {
		if err := i.keep(c, now); err != nil {
			return err
		}
	}
	i.since = now
	// An alarm in force is early enough, unless wait_timeout may have become shorter.
	if i.at.cur != nil || !i.at.client.alarm.IsZero() && i.at.state.WaitTimeout == 0 {
		return nil
	}
	due := now.Add(i.clientTimeout())
	if i.at.client.alarm.IsZero() || due.Before(i.at.client.alarm) {
		if err := i.at.client.until(due); err != nil {
			return err
		}
		i.at.client.alarm = due
	}
	return nil
}

// keep pings a connection if its server may have heard nothing for a while. LastUse is a lower
// bound of the last use.
func (i *idleness) keep(c *backend.Conn, now time.Time) error {
	switch {
	case c.Used:
		c.LastUse = now
	case c.UsedBefore && c.LastUse.Before(i.since):
		c.LastUse = i.since
	}
	c.Used, c.UsedBefore = false, false
	if idle := now.Sub(c.LastUse); idle < minPingAfter || idle < i.pingAfter(c) {
		return nil
	}
	if i.at.state.LastAnswer == state.ByServer && i.at.state.LastConn == idOfConn(c) {
		// The client may ask for its last statement's ROW_COUNT(), which a ping would change.
		return nil
	}
	needed := c == i.at.cur || i.at.needs(c)
	patience := askTimeout
	if !needed && i.at.reopens(c) {
		patience = otherPingTimeout
	}
	err := ping(c, patience)
	var lastWords *protocol.ServerError
	switch refused := errors.As(err, &lastWords); {
	case err == nil, refused && !hangup.Seen(c.Conn):
		c.LastUse = now
		return nil
	case !needed:
		c.Close()
		i.at.forget(c)
		return nil
	case refused: // the server's last words
		i.at.client.packetNum = 0
		i.at.client.fail(lastWords)
		_ = i.at.client.flush() // the session ends either way
	}
	return i.at.endWith(c)
}

// ping shows a server that the client of a connection is there.
func ping(c *backend.Conn, patience time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	err := c.Command(protocol.ComPing, "")
	c.Release()
	// A server that refuses the ping is still usable.
	return errors.Join(err, c.SetDeadline(time.Time{}))
}

// pingAfter is how long a connection may be silent while its client is busy.
func (i *idleness) pingAfter(c *backend.Conn) time.Duration {
	timeout := i.at.state.WaitTimeout
	switch timeout {
	case 0:
		timeout = i.timeoutAt(c.Hello)
	case state.UnknownTimeout:
		timeout = time.Second
	}
	return min(timeout/10, maxPingAfter)
}

// clientTimeout is how long the client of a session without a connection may be silent.
func (i *idleness) clientTimeout() time.Duration {
	if i.at.state.WaitTimeout > 0 {
		return i.at.state.WaitTimeout
	}
	if shard := i.at.routes.Default; shard != nil {
		if hello, ok := shard.Hello(); ok {
			return i.timeoutAt(&hello)
		}
	}
	return defaultWaitTimeout
}

// timeoutAt returns the wait_timeout of the client's new sessions at a server.
func (i *idleness) timeoutAt(hello *backend.Hello) time.Duration {
	timeout := hello.WaitTimeout
	if i.at.login.Capabilities.Has(protocol.Interactive) {
		timeout = hello.InteractiveTimeout
	}
	if timeout <= 0 { // no server could be asked
		return defaultWaitTimeout
	}
	return timeout
}

// afterWait returns what the end of the wait for the client means, if the alarm may have ended it:
// err if something else did, errIdle if the time is up.
func (i *idleness) afterWait(err error) error {
	if i.at.client.alarm.IsZero() || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	i.woken = true
	if err := i.at.client.until(time.Time{}); err != nil || i.at.cur != nil {
		return err
	}
	timeout := i.clientTimeout()
	due := i.since.Add(timeout)
	if time.Now().Before(due) {
		err := i.at.client.until(due)
		i.at.client.alarm = due
		return err
	}
	if i.at.login.LikeMySQL {
		i.at.client.packetNum = 0
		i.at.client.fail(protocol.Errorf(erClientInteractionTimeout, "HY000", "The client was disconnected by the server because of inactivity. "+
			"See wait_timeout and interactive_timeout for configuring this behavior."))
		_ = i.at.client.flush() // the session ends either way
	}
	return fmt.Errorf("%w of %s", errIdle, timeout)
}
