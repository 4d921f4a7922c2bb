package backend

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"seqproxy/test/mysqltest"
)

func TestDialIPMakesAConnectionLikeAnyOther(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			if host == "::1" {
				continue // no IPv6 on this machine
			}
			t.Fatal(err)
		}
		defer l.Close()
		to := netip.MustParseAddrPort(l.Addr().String())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		c, err := dialIP(ctx, to)
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		defer c.Close()
		peer, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		if got, want := c.RemoteAddr().String(), l.Addr().String(); got != want {
			t.Errorf("remote address: got %s, want %s", got, want)
		}
		if _, err := c.Write([]byte("there")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 5)
		if _, err := io.ReadFull(peer, b); err != nil || string(b) != "there" {
			t.Errorf("%s: the peer read %q, %v", host, b, err)
		}
		if _, err := peer.Write([]byte("back!")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "back!" {
			t.Errorf("%s: read %q, %v", host, b, err)
		}
		if err := c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: a read past its deadline: got %v", host, err)
		}
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}()
		time.Sleep(10 * time.Millisecond)
		c.Close()
		if err := <-ended; err == nil {
			t.Errorf("%s: a read of a closed connection succeeded", host)
		}
	}
}

func TestDialIPSaysThatNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := netip.MustParseAddrPort(l.Addr().String())
	l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = dialIP(ctx, to)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v, want connection refused", err)
	}
	if isTimeout(err) {
		t.Errorf("%v counts as silence", err)
	}
}

func TestDialIPEndsAtItsDeadline(t *testing.T) {
	to := mysqltest.SilentListener(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := dialIP(until{ctx, time.Now().Add(100 * time.Millisecond)}, to)
	if err == nil {
		c.Close()
	}
	if !isTimeout(err) || ctx.Err() != nil {
		t.Errorf("got %v and %v of the context, want a timeout at the deadline", err, ctx.Err())
	}
}

func TestAnAddressWithAZoneIsLeftToTheDialer(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:3306": true, "[::1]:3306": true, "[fe80::1%lo]:3306": false, "db.example:3306": false, "unix:/run/x.sock": false,
	} {
		if got := newNode(address).ip.IsValid(); got != want {
			t.Errorf("%s is dialled without a look-up: got %v, want %v", address, got, want)
		}
	}
}
