// Package transcript lets tests record the packets between programs that speak MySQL's protocol,
// and compare them with a file.
//
// Start at [Tap], which stands between two programs and shows each packet. [Names] removes from the
// text what differs from run to run. [Compare] reads the file, or writes it with -update.
package transcript

import (
	"io"
	"net"
	"sync"
	"testing"

	"seqproxy/protocol"
)

// Packet is a packet that passed a tap.
type Packet struct {
	Conn       int // number of the tap's connection, from 1
	FromClient bool
	Raw        []byte // with its header; nil: the connection has ended
}

// Num returns the packet's number.
func (p Packet) Num() byte { return p.Raw[3] }

// Payload returns the part after the header.
func (p Packet) Payload() []byte { return p.Raw[protocol.HeaderSize:] }

// Tap forwards everything to a server. It shows each packet before it forwards it, so an answer is
// always shown after its question.
type Tap struct {
	to       string
	listener net.Listener
	see      func(Packet)

	mu    sync.Mutex
	conns int                   // guarded by mu
	open  map[net.Conn]struct{} // guarded by mu; nil after the end
	group sync.WaitGroup
}

// NewTap makes a tap that lives until the test ends. Each direction of a connection calls see from
// one goroutine.
func NewTap(t testing.TB, to string, see func(Packet)) *Tap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Tap{to: to, listener: listener, see: see, open: make(map[net.Conn]struct{})}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		p.mu.Lock()
		for c := range p.open {
			_ = c.Close()
		}
		p.open = nil
		p.mu.Unlock()
		p.group.Wait()
	})
	return p
}

// Addr returns the address of the server by way of the tap.
func (p *Tap) Addr() string { return p.listener.Addr().String() }

func (p *Tap) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.group.Go(func() { p.serve(near) })
	}
}

func (p *Tap) serve(near net.Conn) {
	defer near.Close() //nolint:errcheck // both sides have seen the end
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		return // the server is down
	}
	defer far.Close() //nolint:errcheck // as above
	p.mu.Lock()
	if p.open == nil {
		p.mu.Unlock()
		return
	}
	p.conns++
	conn := p.conns
	p.open[near], p.open[far] = struct{}{}, struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, near)
		delete(p.open, far)
	}()
	var ended sync.WaitGroup
	ended.Go(func() { p.pass(near, far, conn, true) })
	p.pass(far, near, conn, false)
	ended.Wait()
	p.see(Packet{Conn: conn})
}

// pass forwards packets from one side to the other until either ends.
func (p *Tap) pass(from, to net.Conn, conn int, fromClient bool) {
	defer from.Close() //nolint:errcheck // ends the other direction
	defer to.Close()   //nolint:errcheck // as above
	for {
		raw := make([]byte, protocol.HeaderSize)
		if _, err := io.ReadFull(from, raw); err != nil {
			return
		}
		raw = append(raw, make([]byte, protocol.PayloadLen(raw))...)
		if _, err := io.ReadFull(from, raw[protocol.HeaderSize:]); err != nil {
			return
		}
		p.see(Packet{conn, fromClient, raw})
		if _, err := to.Write(raw); err != nil {
			return
		}
	}
}
