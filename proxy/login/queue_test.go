package login

import (
	"net/netip"
	"testing"
)

func has(p *place) bool {
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

// However many logins come from one address or from several, other addresses find a place.
func TestEachAddressHasAShareOfTheLogins(t *testing.T) {
	for _, c := range []struct{ addresses, taken int }{{1, 400}, {2, 444}, {10, 488}, {100, 499}} {
		q := NewQueue(500)
		var places []*place
		for range 500 {
			for i := range c.addresses {
				places = append(places, q.Enter(network(i), false, 10_000))
			}
		}
		if q.taken < c.taken-1 || q.taken > c.taken+1 {
			t.Errorf("%d addresses: got %d of 500 places, want about %d", c.addresses, q.taken, c.taken)
		}
		if p := q.Enter(network(1000), false, 10_000); !has(p) {
			t.Errorf("%d addresses: a login of another one waits, want a place at once", c.addresses)
		}
		for _, p := range places {
			q.leave(p)
		}
		if q.taken != 1 || len(q.sources) != 1 || q.order.Len() != 0 {
			t.Errorf("%d addresses: got %d places in use and %d addresses, want 1", c.addresses, q.taken, len(q.sources))
		}
	}
}

func TestAFreePlaceGoesToOneAddressAfterTheOther(t *testing.T) {
	q := NewQueue(2)
	first, second := q.Enter(network(0), true, 10_000), q.Enter(network(0), true, 10_000)
	var many []*place
	for range 5 {
		many = append(many, q.Enter(network(1), false, 10_000))
	}
	few := []*place{q.Enter(network(2), false, 10_000), q.Enter(network(2), false, 10_000)}
	gone := many[1]
	q.leave(gone) // this login gives up before its place comes
	if !has(first) || !has(second) || has(many[0]) || has(few[0]) {
		t.Fatal("the two places are not those of the first two logins")
	}
	for i, next := range []*place{many[0], few[0], many[2], few[1], many[3], many[4]} {
		if has(next) {
			t.Errorf("login %d got its place too early", i)
		}
		before := []*place{first, second, many[0], few[0], many[2], few[1]}[i]
		q.leave(before)
		if !has(next) {
			t.Errorf("login %d got no place", i)
		}
	}
	if has(gone) {
		t.Error("a login that has left got a place")
	}
}

// An address that may have all places does not block others that wait.
func TestAnExemptAddressMayTakeAllPlaces(t *testing.T) {
	q := NewQueue(10)
	for range 10 {
		if !has(q.Enter(network(0), true, 10_000)) {
			t.Fatal("a free place was not given")
		}
	}
	if has(q.Enter(network(0), true, 10_000)) || has(q.Enter(network(1), false, 10_000)) {
		t.Error("more places were given than there are")
	}
}

// Clients that wait leave connections to other addresses, however few there are.
func TestClientsThatWaitLeaveConnectionsToOtherAddresses(t *testing.T) {
	for _, c := range []struct {
		name                string
		connections, others int // others have logged in
		all                 bool
		want                int // clients of one address that log in or wait
	}{
		{"no others", 60, 0, false, 48},
		{"others", 60, 30, false, 24},
		{"full", 60, 60, false, 16}, // it keeps its places
		{"plenty", 10_000, 0, false, 100},
		{"exempt", 60, 30, true, 100},
	} {
		q := NewQueue(20)
		in := 0
		for range 100 {
			if q.Enter(network(0), c.all, c.connections-c.others-in-1) == nil {
				break
			}
			in++
		}
		if in != c.want {
			t.Errorf("%s: %d clients of one address log in or wait, want %d", c.name, in, c.want)
		}
		if p := q.Enter(network(1), c.all, 0); p == nil || !c.all && !has(p) {
			t.Errorf("%s: a client of another address got no place", c.name)
		}
	}
}
