package backend

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/tlsfiles"
	"seqproxy/protocol"
)

// Login says how to log in to a server.
type Login struct {
	Credentials
	Schema string
	// Capabilities is the framing agreed on with the client. The connection has exactly these, or
	// Dial fails.
	Capabilities protocol.Capability
	Collation    uint16 // above 255 after a change of user
	// ChangeUser says that the client has changed its user. A server's errors for that differ from
	// those of a login.
	ChangeUser bool
	// Attributes are the client's connection attributes.
	Attributes protocol.Attrs

	// KeepCredentials uses Credentials even if the shard names others.
	KeepCredentials bool
	// Relay, if set, lets the client itself prove to the server that it is User. Dial then ignores
	// Password.
	Relay *protocol.RelayedLogin

	wish   protocol.Capability // flags to ask for as well, if the server has them
	access *access             // of the shard
	probe  bool                // the proxy asks whether the node is well, for no client
}

// Conn is a logged-in connection to a server. It belongs to one session. One goroutine uses it at a
// time.
type Conn struct {
	*protocol.Conn
	Shard *Shard // that it belongs to
	// Hello is what the server said about itself at the login. It is shared: do not change it.
	Hello *Hello
	// Answer finds the end of each answer.
	Answer protocol.Answer
	// Capabilities is the framing of the connection.
	Capabilities protocol.Capability
	// ID is the server's own number of the connection.
	ID uint32
	// Tag is for the owner of the connection. This package does not use it.
	Tag uint32
	// LoginOK is the server's OK to the login if it described the session, else nil.
	LoginOK []byte

	// The session writes down here when it last used the connection.
	LastUse    time.Time // at first the time of opening
	Used       bool      // since the session's last wait for its client
	UsedBefore bool      // before that, and after LastUse

	node   *Node
	closed bool
}

// Node returns the address of the server, for messages.
func (c *Conn) Node() string { return c.node.String() }

// Bounds of an answer to the proxy's own statements: a server in wrong hands may send anything.
const (
	answerLimit = 1 << 20  // bytes of a packet
	rowsLimit   = 32 << 20 // bytes of memory, about, that all rows take
	maxColumns  = 4096     // as servers have
)

var errTooMuch = errors.New("the answer to a statement of the proxy's own is longer than 32 MiB")

// answerAhead bounds the bytes of answers that are read while a write of statements is blocked.
const answerAhead = 1 << 20

// UnreachableError says that the proxy cannot connect or log in to a shard's server.
type UnreachableError struct {
	Shard, Node string
	Err         error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("shard %s: node %s cannot be used: %v", e.Shard, e.Node, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Dial connects to a shard's server and logs in, within the connect timeout or ctx's deadline.
// Cancelling ctx has no other effect. A relayed login has additional time for the client's answers.
//
// The error is a *protocol.ServerError if the server refused the login, as it would have refused
// the client's; a *protocol.RelayError if the client failed in a relayed login; else an
// *UnreachableError.
func (r *Routes) Dial(ctx context.Context, shard *Shard, login Login) (*Conn, error) {
	login.access = shard.access.Load()
	if login.Relay == nil && !login.KeepCredentials {
		login.Credentials = login.access.credentials(login.Credentials)
	}
	return r.dialEither(ctx, shard, shard.primary(), login)
}

// dialEither tries one password and then the other. If the server refuses both, it returns the
// answer to the first.
func (r *Routes) dialEither(ctx context.Context, shard *Shard, node *Node, login Login) (*Conn, error) {
	c, err := r.dialNode(ctx, shard, node, login)
	var refused *protocol.ServerError
	if err == nil || login.OtherPassword == "" || !errors.As(err, &refused) || refused.Code != mysql.ER_ACCESS_DENIED_ERROR {
		return c, err
	}
	login.Password = login.OtherPassword
	c, errOther := r.dialNode(ctx, shard, node, login)
	if errors.As(errOther, &refused) && refused.Code == mysql.ER_ACCESS_DENIED_ERROR {
		return nil, err
	}
	return c, errOther
}

func (r *Routes) dialNode(ctx context.Context, shard *Shard, node *Node, login Login) (*Conn, error) {
	unreachable := func(err error) error { return &UnreachableError{shard.name, node.String(), err} }
	begun := time.Now()
	deadline := r.dialDeadline(ctx, begun)
	node.counts.connecting.Add(1)
	nc, err := node.dial(until{ctx, deadline})
	var c *Conn
	greeted := false
	if err == nil {
		c, err = logInBy(deadline, nc, shard, node, login)
		greeted = !errors.Is(err, protocol.ErrNoGreeting)
	}
	node.counts.connecting.Add(-1)
	if err == nil {
		if login.Relay == nil { // a relayed login also takes the client's time
			node.counts.connects.Add(c.LastUse.Sub(begun))
		}
		node.meet(nil)
		return c, nil
	}
	if login.Relay != nil && login.Relay.IsFault(err) {
		r.makeUp(ctx, target{shard, node, login.access})
	}
	var clients *protocol.RelayError
	if errors.As(err, &clients) { // the node is not at fault
		return nil, clients
	}
	var refused *protocol.ServerError
	if errors.As(err, &refused) {
		node.count(refused)
		node.meet(refused)
		return nil, refused
	}
	late := isTimeout(err)
	if late && !greeted && ctx.Err() == nil { // the server is silent; the caller did not give up
		node.markUnreachable()
	}
	err = explain(err)
	if ctx.Err() == nil && !errors.Is(err, errRecently) {
		node.count(err)
		if !late || !greeted || login.probe { // else it is the account that has to wait
			node.meet(err)
		}
	}
	return nil, unreachable(err)
}

// explain adds to an error of TLS which settings to change.
func explain(err error) error {
	if errors.Is(err, protocol.ErrNoTLS) {
		return fmt.Errorf("%w (%s)", err, tlsfiles.NotOffered)
	}
	return tlsfiles.Explain(err)
}

// dialDeadline is the time by which connecting and logging in must end.
func (r *Routes) dialDeadline(ctx context.Context, now time.Time) time.Time {
	deadline := now.Add(r.connectTimeout)
	if earlier, ok := ctx.Deadline(); ok && earlier.Before(deadline) {
		return earlier
	}
	return deadline
}

// until is a context that ends only at its deadline. A context that can be cancelled costs more,
// and every client costs a dial. Cancelling waits for the deadline, which is near.
type until struct {
	context.Context
	deadline time.Time
}

var never = make(chan struct{})

func (u until) Deadline() (time.Time, bool) { return u.deadline, true }

// Package net ignores the deadline if this is nil.
func (u until) Done() <-chan struct{}        { return never }
func (u until) AfterFunc(func()) func() bool { return func() bool { return true } }

func (u until) Err() error {
	if time.Now().Before(u.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// logInBy logs in over nc. It closes nc if that fails.
func logInBy(deadline time.Time, nc net.Conn, shard *Shard, node *Node, login Login) (*Conn, error) {
	// A write may wait for ever: the server may be waiting for a lock.
	pc, err := protocol.NewConn(nc, 0, answerAhead)
	if err != nil {
		return nil, err
	}
	patience := time.Until(deadline)
	if err = pc.SetReadDeadline(deadline); err == nil {
		var c *Conn
		if c, err = logIn(pc, patience, shard, node, login); err == nil {
			if err = pc.SetReadDeadline(time.Time{}); err == nil {
				node.counts.open.Add(1)
				return c, nil
			}
		}
	}
	pc.Drop()
	pc.Close()
	return nil, err
}

// patient is the connection of a relayed login. The server has the whole time for each of its
// packets, so that the client's time does not count as the server's.
type patient struct {
	*protocol.Conn
	patience time.Duration
}

func (p patient) ReadPacket(limit int) ([]byte, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.patience)); err != nil {
		return nil, err
	}
	return p.Conn.ReadPacket(limit)
}

func logIn(pc *protocol.Conn, patience time.Duration, shard *Shard, node *Node, login Login) (*Conn, error) {
	security := login.access.security[slices.Index(shard.nodes, node)].Security()
	l := protocol.ClientLogin{
		User:         login.User,
		Password:     login.Password,
		Database:     login.Schema,
		Capabilities: login.Capabilities,
		Wish:         login.wish,
		Collation:    login.Collation,
		ChangeUser:   login.ChangeUser && node.describesSession(),
		Attrs:        login.Attributes,
		Relay:        login.Relay,
		TLS:          security.TLS,
		TLSOptional:  security.Optional,
		PublicKey:    security.PublicKey,
	}
	var over protocol.PacketConn = pc
	if login.Relay != nil {
		over = patient{pc, patience}
	}
	h, err := l.Run(over)
	if err != nil {
		return nil, err
	}
	pc.Release()
	hello := node.learn(helloOf(&h.Greeting))
	capabilities := login.Capabilities | login.wish&h.Capabilities
	if login.Schema == "" && capabilities.Has(protocol.SessionTrack) && !l.ChangeUser && l.Collation <= 255 {
		node.learnDescribes(h.OK != nil)
	}
	c := &Conn{Conn: pc, Capabilities: capabilities, ID: h.Greeting.ConnectionID, LoginOK: h.OK, LastUse: time.Now(), Shard: shard, Hello: hello, node: node}
	c.Answer.Status = h.Status
	if login.Relay != nil {
		if c.IsTLS() && len(l.TLS.Certificates) > 0 && !login.Relay.PasswordUsed() {
			return nil, login.Relay.Refuse("the account has no password, and the server may have looked at the proxy's certificate (tls_cert_file)")
		}
		if err := pc.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return nil, err
		}
		if node.network == "unix" && hello.MariaDB {
			if err := c.checkTrust(login.Relay); err != nil {
				return nil, err
			}
		}
		if err := c.setWideCollation(login.Collation); err != nil {
			return nil, err
		}
	}
	if !login.probe && !node.knowsMode() {
		var refused *protocol.ServerError
		if err := c.askMode(false); err != nil && !errors.As(err, &refused) {
			// A server refuses the question while the password is expired.
			return nil, err
		}
	}
	return c, nil
}

func helloOf(g *protocol.Greeting) Hello {
	return Hello{Version: g.Version, Capabilities: g.Capabilities, Collation: g.Collation, MariaDB: g.IsMariaDB()}
}

// askMode learns the session defaults of c's node, and its timeouts for idle sessions. probed means
// that c logged in with latin1: the session then shows whether the server accepts the client's
// character set.
func (c *Conn) askMode(probed bool) error {
	rows, err := c.Query("SELECT @@global.sql_mode, @@global.init_connect, @@character_set_client, @@global.wait_timeout, @@global.interactive_timeout, @@global.connect_timeout, @@lower_case_table_names")
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) != 7 {
		return errors.New("the server does not say what its sessions start with")
	}
	row := rows[0]
	hello := *c.Hello
	hello.SQLMode, hello.InitConnect = string(row[0]), len(row[1]) > 0
	hello.IgnoresCollation = probed && string(row[2]) != "latin1"
	hello.FoldsTables = string(row[6]) != "0"
	for i, timeout := range []*time.Duration{&hello.WaitTimeout, &hello.InteractiveTimeout, &hello.LoginPatience} {
		seconds, err := strconv.ParseUint(string(row[3+i]), 10, 32)
		if err != nil {
			return fmt.Errorf("the server's wait_timeout, interactive_timeout or connect_timeout: %w", err)
		}
		*timeout = time.Duration(seconds) * time.Second
	}
	c.Hello = &hello
	c.node.learnMode(hello)
	return nil
}

// Query runs one of the proxy's own statements and returns the rows as text, nil for NULL. No other
// statement may be in flight. After an error other than a *protocol.ServerError the connection is
// unusable.
func (c *Conn) Query(sql string) (rows [][][]byte, err error) {
	if err := c.send(protocol.ComQuery, sql); err != nil {
		return nil, err
	}
	p, err := c.packetOfAnswer()
	if err != nil {
		return nil, err
	}
	if ok, err := c.ended(p, true); ok || err != nil {
		return nil, err
	}
	columns, definitions, ok := protocol.ParseColumnCount(p, c.Capabilities.HasAny(protocol.MetadataFlags))
	if !ok || columns > maxColumns {
		return nil, protocol.ErrMalformed
	}
	if definitions {
		for range columns {
			if _, err := c.packetOfAnswer(); err != nil {
				return nil, err
			}
		}
	}
	if !c.Capabilities.Has(protocol.DeprecateEOF) {
		if _, err := c.packetOfAnswer(); err != nil {
			return nil, err
		}
	}
	const value = 64 // bytes beside its text
	for left := rowsLimit; ; {
		p, err := c.packetOfAnswer()
		if err != nil {
			return nil, err
		}
		if left -= len(p) + value*int(columns); left < 0 {
			return nil, errTooMuch
		}
		if done, err := c.ended(p, false); done || err != nil {
			return rows, err
		}
		row, err := textRow(p, int(columns))
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}

// Command sends a command that is answered with OK or ERR.
func (c *Conn) Command(cmd protocol.Command, argument string) error {
	if err := c.send(cmd, argument); err != nil {
		return err
	}
	p, err := c.packetOfAnswer()
	if err != nil {
		return err
	}
	_, err = c.ended(p, true)
	return err
}

func (c *Conn) send(cmd protocol.Command, argument string) error {
	c.SetPacketNum(0)
	p := []byte{byte(cmd)}
	if cmd == protocol.ComQuery && c.Capabilities.Has(protocol.QueryAttributes) {
		p = append(p, protocol.NoAttributes...)
	}
	return c.WritePacket(append(p, argument...))
}

// packetOfAnswer reads one packet of an answer to the proxy's own statement.
func (c *Conn) packetOfAnswer() ([]byte, error) {
	for {
		p, err := c.ReadPacket(answerLimit)
		switch {
		case err != nil:
			return nil, err
		case len(p) == 0:
			return nil, protocol.ErrMalformed
		case c.Capabilities.Has(protocol.Progress) && protocol.IsProgress(p):
			continue
		}
		return p, nil
	}
}

// ended reads an OK, EOF or ERR packet, or passes over another one. Only the first packet of an
// answer is an OK if it begins like one: a row may begin with an empty string.
func (c *Conn) ended(p []byte, first bool) (ok bool, err error) {
	const headOK, headEOF, headERR = 0x00, 0xfe, 0xff
	switch {
	case p[0] == headERR:
		err := protocol.ParseServerError(p)
		var refused *protocol.ServerError
		if errors.As(err, &refused) {
			c.CountError(refused.Code)
		}
		return true, err
	case p[0] == headEOF && len(p) < 9 && !c.Capabilities.Has(protocol.DeprecateEOF):
		if len(p) < 5 {
			return true, protocol.ErrMalformed
		}
		c.Answer.Status = protocol.Status(binary.LittleEndian.Uint16(p[3:]))
		return true, nil
	case first && p[0] == headOK && len(p) >= 7, p[0] == headEOF && c.Capabilities.Has(protocol.DeprecateEOF):
		status, _, ok := protocol.ParseOKStatus(p)
		if !ok {
			return true, protocol.ErrMalformed
		}
		c.Answer.Status = status
		return true, nil
	}
	return false, nil
}

func textRow(p []byte, columns int) (row [][]byte, err error) {
	const null = 0xfb
	for range columns {
		if len(p) > 0 && p[0] == null {
			row, p = append(row, nil), p[1:]
			continue
		}
		v, n, ok := protocol.ReadLenEncBytes(p)
		if !ok {
			return nil, protocol.ErrMalformed
		}
		row, p = append(row, append([]byte{}, v...)), p[n:]
	}
	return row, nil
}

// Quit sends COM_QUIT and closes. It does not wait for the server.
func (c *Conn) Quit() {
	c.DontWait()
	c.SetPacketNum(0)
	_ = c.WritePacket([]byte{byte(protocol.ComQuit)}) // the server may be gone
	c.Drop()
	_ = c.Close()
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}
