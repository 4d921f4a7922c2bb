package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"seqproxy/internal/rawio"
)

// ioTimeout bounds every wait for a target: a target that hangs must end its cell, not the run.
const ioTimeout = 15 * time.Second

// account is what the load client logs in with.
type account struct {
	user, password, schema string
}

// client is one connection to a target, for one goroutine. After the login its methods allocate
// nothing. After an error only close may be called.
type client struct {
	net     net.Conn
	forget  func() bool // ends the watch over dial's context
	buf     []byte      // received bytes are buf[r:w]
	r, w    int
	next    byte // number of the next packet
	version string
	plugin  string // the plugin that completed the login
}

// dial opens a connection and logs in. bufferSize bounds the packets that can be received. When ctx
// ends, every read and write of the client fails. The client takes its CPU from the target, so its
// sockets do not tell Go's scheduler about system calls.
func dial(ctx context.Context, addr string, who account, bufferSize int) (*client, error) {
	nc, err := rawio.Dial(ctx, &net.Dialer{Timeout: ioTimeout}, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c := &client{net: nc, buf: make([]byte, bufferSize)}
	if err := c.extend(ioTimeout); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	// fails only when it is closed
	c.forget = context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	if err := c.login(who); err != nil {
		return nil, errors.Join(fmt.Errorf("log in: %w", err), c.close())
	}
	return c, nil
}

// extend allows the connection to be used for another d. It is called once for a whole measurement:
// a deadline for each operation would cost the client time.
func (c *client) extend(d time.Duration) error {
	if err := c.net.SetDeadline(time.Now().Add(d)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	return nil
}

// close closes the connection without COM_QUIT.
func (c *client) close() error {
	c.forget()
	return c.net.Close()
}

// quit sends COM_QUIT as drivers do, and closes the connection.
func (c *client) quit() error {
	_, err := c.net.Write(quitPacket)
	if err = errors.Join(err, c.close()); err != nil {
		return fmt.Errorf("quit: %w", err)
	}
	return nil
}

var quitPacket = command(mysql.COM_QUIT, "")

func (c *client) login(who account) error {
	p, err := c.readPacket()
	if err != nil {
		return err
	}
	g, err := parseGreeting(p)
	if err != nil {
		return err
	}
	c.version, c.plugin = g.version, g.plugin
	auth, err := scramble(g.plugin, who.password, g.salt)
	if err != nil {
		return err
	}
	if err := c.reply(handshakeResponse(who.user, who.schema, g.plugin, auth)); err != nil {
		return err
	}
	for {
		p, err := c.readPacket()
		if err != nil {
			return err
		}
		switch {
		case len(p) == 2 && p[0] == 1 && p[1] == mysql.CACHE_SHA2_FAST_AUTH:
			continue // OK follows
		case len(p) == 2 && p[0] == 1 && p[1] == mysql.CACHE_SHA2_FULL_AUTH:
			return errors.New("caching_sha2_password asks for the full exchange, want the fast path")
		case len(p) > 1 && p[0] == mysql.EOF_HEADER:
			plugin, salt, found := cutString(p[1:])
			if !found || len(salt) < 20 {
				return fmt.Errorf("auth switch: %w", errShort)
			}
			c.plugin = plugin
			auth, err := scramble(plugin, who.password, salt[:20])
			if err != nil {
				return err
			}
			if err := c.reply(auth); err != nil {
				return err
			}
		default:
			_, err := parseOK(p)
			return err
		}
	}
}

// cutString splits p after its first NUL.
func cutString(p []byte) (before string, after []byte, found bool) {
	for i, b := range p {
		if b == 0 {
			return string(p[:i]), p[i+1:], true
		}
	}
	return "", nil, false
}

// reply sends a payload as the next packet of the same exchange.
func (c *client) reply(payload []byte) error {
	if _, err := c.net.Write(packet(c.next, payload)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	c.next++
	return nil
}

// send writes whole packets; the last one starts a command. Bytes that the target sent without
// being asked are an error.
func (c *client) send(packets []byte) error {
	if c.r != c.w {
		return fmt.Errorf("%d bytes were sent behind the end of the last answer", c.w-c.r)
	}
	c.next = 1
	if _, err := c.net.Write(packets); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// readPacket returns the payload of the next packet and checks its number. The payload is valid
// until the next call.
func (c *client) readPacket() ([]byte, error) {
	if err := c.fill(headerSize); err != nil {
		return nil, err
	}
	h := c.buf[c.r:]
	n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
	if h[3] != c.next {
		return nil, fmt.Errorf("got packet number %d, want %d", h[3], c.next)
	}
	if n+headerSize > len(c.buf) {
		return nil, fmt.Errorf("packet of %d bytes is larger than anything that was asked for", n)
	}
	if err := c.fill(headerSize + n); err != nil {
		return nil, err
	}
	p := c.buf[c.r+headerSize : c.r+headerSize+n]
	c.r += headerSize + n
	c.next++
	return p, nil
}

// fill reads until n bytes are in the buffer.
func (c *client) fill(n int) error {
	if c.w-c.r >= n {
		return nil
	}
	if c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	for c.w < n {
		m, err := c.net.Read(c.buf[c.w:])
		c.w += m
		if err != nil && c.w < n {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("read: %w", err)
		}
	}
	return nil
}

// readColumns reads the head of a result set that must have exactly one column.
func (c *client) readColumns() error {
	p, err := c.readPacket()
	if err != nil {
		return err
	}
	if len(p) > 0 && p[0] == mysql.ERR_HEADER {
		return parseError(p)
	}
	if len(p) != 1 || p[0] != 1 {
		return fmt.Errorf("answer starts with %#x, want a result of one column", p[:min(len(p), 8)])
	}
	return c.skipDefinitions(1)
}

// skipDefinitions reads n column definitions and the EOF packet behind them.
func (c *client) skipDefinitions(n int) error {
	for range n {
		p, err := c.readPacket()
		if err != nil {
			return err
		}
		if len(p) < 20 || string(p[:4]) != "\x03def" {
			return fmt.Errorf("got a packet of %d bytes, want a column definition", len(p))
		}
	}
	p, err := c.readPacket()
	if err != nil {
		return err
	}
	return checkEOF(p)
}

// readRow reads a result of one row and one column. The row's payload is valid until the next read.
func (c *client) readRow() ([]byte, error) {
	if err := c.readColumns(); err != nil {
		return nil, err
	}
	row, err := c.readPacket()
	if err != nil {
		return nil, err
	}
	if isEOF(row) {
		return nil, errors.New("result is empty, want one row")
	}
	if len(row) > 0 && row[0] == mysql.ERR_HEADER {
		return nil, parseError(row)
	}
	// The row must survive the read of the EOF packet behind it, which may move the buffer.
	if c.w-c.r < headerSize+5 {
		size := len(row)
		c.r -= size
		c.next--
		if err := c.fill(size + headerSize + 5); err != nil {
			return nil, err
		}
		row = c.buf[c.r : c.r+size]
		c.r += size
		c.next++
	}
	p, err := c.readPacket()
	if err != nil {
		return nil, err
	}
	return row, checkEOF(p)
}

// readOK reads an OK packet without warnings.
func (c *client) readOK() (okPacket, error) {
	p, err := c.readPacket()
	if err != nil {
		return okPacket{}, err
	}
	ok, err := parseOK(p)
	if err == nil && ok.warnings != 0 {
		err = fmt.Errorf("%d warnings", ok.warnings)
	}
	return ok, err
}

// selectOne runs SELECT 1 and checks its answer.
func (c *client) selectOne() error {
	if err := c.send(selectOnePacket); err != nil {
		return err
	}
	return c.expectText("1")
}

var selectOnePacket = command(mysql.COM_QUERY, "SELECT 1")

// expectText reads a result of one text value, which must be want.
func (c *client) expectText(want string) error {
	row, err := c.readRow()
	if err != nil {
		return err
	}
	got, err := textValue(row)
	if err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("got value %q, want %q", got, want)
	}
	return nil
}

// prepare prepares a statement and returns its id. The statement must have that many parameters and
// columns.
func (c *client) prepare(query string, params, columns byte) (uint32, error) {
	if err := c.send(command(mysql.COM_STMT_PREPARE, query)); err != nil {
		return 0, err
	}
	p, err := c.readPacket()
	if err != nil {
		return 0, err
	}
	if len(p) > 0 && p[0] == mysql.ERR_HEADER {
		return 0, parseError(p)
	}
	if len(p) < 12 || p[0] != mysql.OK_HEADER || p[5] != columns || p[6] != 0 || p[7] != params || p[8] != 0 {
		return 0, fmt.Errorf("prepare answers %#x, want %d columns and %d parameters", p[:min(len(p), 12)], columns, params)
	}
	id := uint32(p[1]) | uint32(p[2])<<8 | uint32(p[3])<<16 | uint32(p[4])<<24
	for _, n := range []byte{params, columns} {
		if n == 0 {
			continue
		}
		if err := c.skipDefinitions(int(n)); err != nil {
			return 0, err
		}
	}
	return id, nil
}
