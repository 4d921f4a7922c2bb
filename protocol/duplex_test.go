package protocol

import (
	"io"
	"testing"
	"time"

	"seqproxy/test/network"
)

// The stream is passed on in both directions at once. A write that waits must not end the other
// goroutine's read, as reading ahead would.
func TestFullDuplexReadsOnWhileAWriteWaits(t *testing.T) {
	peer, nc := network.Pair(t)
	defer peer.Close()
	c, err := NewConn(nc, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	defer c.Drop()
	c.FullDuplex()

	read := make(chan error, 1)
	go func() { read <- c.Fill() }()
	const size = 16 << 20
	written := make(chan error, 1)
	go func() {
		_, err := c.Write(make([]byte, size))
		written <- err
	}()
	time.Sleep(5 * readAheadDelay)
	select {
	case err := <-written:
		t.Fatalf("the write of %d bytes did not wait (%v): the test shows nothing", size, err)
	case err := <-read:
		t.Fatalf("the read ended: %v", err)
	default:
	}
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil || string(c.Buffered()) != "x" {
		t.Errorf("read %q, %v; want x", c.Buffered(), err)
	}
	c.Discard(1)
	go func() { read <- c.Fill() }()
	if n, err := io.CopyN(io.Discard, peer, size); err != nil {
		t.Errorf("the peer got %d bytes: %v", n, err)
	}
	if err := <-written; err != nil {
		t.Errorf("write: %v", err)
	}
	time.Sleep(readAheadDelay) // a read that the write would have ended has ended by now
	if _, err := peer.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil || string(c.Buffered()) != "y" {
		t.Errorf("after the write: read %q, %v; want y", c.Buffered(), err)
	}
}
