package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/zap"

	"seqproxy/backend"
)

// Checklist 2.
func TestALoginWhoseTurnDoesNotComeGets1040(t *testing.T) {
	none, err := backend.New(backend.Options{Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Shards: none, MaxConnections: 10, MaxLogins: 1, LoginTimeout: 100 * time.Millisecond, Logger: zap.NewNop()})
	if err := s.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.settings.Load().logins.enter(netip.Prefix{}, true) // somebody who goes on for longer
	served := make(chan error, 1)
	go func() { served <- s.Serve(context.Background()) }()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(nc); err != nil || !bytes.Contains(got, []byte("\xff\x10\x04Too many connections")) {
		t.Errorf("got %q and error %v, want error 1040 in place of the greeting", got, err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func has(p *loginPlace) bool {
	if p.given == nil {
		return true
	}
	select {
	case <-p.given:
		return true
	default:
		return false
	}
}

func network(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)}), 32)
}

// However many come from one address or from several, others find a place.
func TestEachAddressHasAShareOfTheLogins(t *testing.T) {
	for _, c := range []struct{ addresses, taken int }{{1, 400}, {2, 444}, {10, 488}, {100, 499}} {
		q := newLoginQueue(500)
		var places []*loginPlace
		for range 500 {
			for i := range c.addresses {
				places = append(places, q.enter(network(i), false))
			}
		}
		if q.taken < c.taken-1 || q.taken > c.taken+1 {
			t.Errorf("%d addresses: %d of 500 places are taken, want about %d", c.addresses, q.taken, c.taken)
		}
		if p := q.enter(network(1000), false); !has(p) {
			t.Errorf("%d addresses: another one has to wait", c.addresses)
		}
		for _, p := range places {
			q.leave(p)
		}
		if q.taken != 1 || len(q.sources) != 1 || q.order.Len() != 0 {
			t.Errorf("%d addresses: %d places and %d addresses are left of 1", c.addresses, q.taken, len(q.sources))
		}
	}
}

func TestAFreePlaceGoesToOneAddressAfterTheOther(t *testing.T) {
	q := newLoginQueue(2)
	first, second := q.enter(network(0), true), q.enter(network(0), true)
	var many []*loginPlace
	for range 5 {
		many = append(many, q.enter(network(1), false))
	}
	few := []*loginPlace{q.enter(network(2), false), q.enter(network(2), false)}
	gone := many[1]
	q.leave(gone) // it has not waited for long enough
	if !has(first) || !has(second) || has(many[0]) || has(few[0]) {
		t.Fatal("there are two places, and not for the first two")
	}
	for i, next := range []*loginPlace{many[0], few[0], many[2], few[1], many[3], many[4]} {
		if has(next) {
			t.Errorf("place %d is given too early", i)
		}
		before := []*loginPlace{first, second, many[0], few[0], many[2], few[1]}[i]
		q.leave(before)
		if !has(next) {
			t.Errorf("place %d is not given", i)
		}
	}
	if has(gone) {
		t.Error("who has left got a place")
	}
}

// An address that may have all places is not in the way of others that wait.
func TestAnExemptAddressMayTakeAllPlaces(t *testing.T) {
	q := newLoginQueue(10)
	for range 10 {
		if !has(q.enter(network(0), true)) {
			t.Fatal("a place that is free is not given")
		}
	}
	if has(q.enter(network(0), true)) || has(q.enter(network(1), false)) {
		t.Error("there are more places than there are")
	}
}
