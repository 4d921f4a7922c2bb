package login

import (
	"container/list"
	"net/netip"
	"sync"
)

// Queue bounds how many clients log in at the same time. The others wait for their greeting. So
// neither their TLS handshakes nor the checks of their passwords take the processor from earlier
// logins and running sessions. A nil Queue has no bound.
//
// Each address has a share of the places: it gets no further one while it has share times as many
// as are free. So silent clients do not keep other addresses out, and a single address may use
// nearly all. A free place goes to one address after the other, and within each to the first
// client. Those that wait are bounded in the same way: see Enter.
type Queue struct {
	size int

	mu      sync.Mutex // guards the fields below
	taken   int
	sources map[netip.Prefix]*origin // addresses with places or waiting clients
	order   list.List                // *origin, those with waiting clients; the next one first
}

// With a share of 4, a single address gets four fifths of the places, or of the connections.
const share = 4

// origin is the address of clients, or their network of IPv6.
type origin struct {
	network netip.Prefix
	all     bool // it may take all places
	taken   int
	waiting list.List     // *place
	in      *list.Element // of Queue.order; nil without waiting clients
}

// place is the place of one login, or its wait for one.
type place struct {
	source *origin
	given  chan struct{} // closed when the place is free; nil if it was free at once
	in     *list.Element // of origin.waiting; nil once it has the place
}

func NewQueue(size int) *Queue {
	if size <= 0 {
		return nil
	}
	return &Queue{size: size, sources: make(map[netip.Prefix]*origin)}
}

// Enter takes a place. If place.given is not nil, the login must wait until that is closed. room is
// how many more clients may connect. An address that already has share times as many here gets no
// place to wait, and Enter returns nil: its silent clients would take the connections of others.
func (q *Queue) Enter(network netip.Prefix, all bool, room int) *place {
	q.mu.Lock()
	defer q.mu.Unlock()
	source := q.sources[network]
	if source == nil {
		source = &origin{network: network}
		q.sources[network] = source
	}
	source.all = all
	p := &place{source: source}
	if source.in == nil && q.may(source) {
		q.take(source)
		return p
	}
	if !all && source.taken+source.waiting.Len() >= share*max(room, 1) {
		return nil
	}
	p.given = make(chan struct{})
	p.in = source.waiting.PushBack(p)
	if source.in == nil {
		source.in = q.order.PushBack(source)
	}
	return p
}

// leave frees a place, or ends the wait for one.
func (q *Queue) leave(p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	source := p.source
	if p.in != nil {
		q.unwait(p)
	} else {
		q.taken--
		source.taken--
		q.giveFree()
	}
	if source.taken == 0 && source.in == nil {
		delete(q.sources, source.network)
	}
}

func (q *Queue) may(s *origin) bool {
	free := q.size - q.taken
	return free > 0 && (s.all || s.taken < share*free)
}

func (q *Queue) take(s *origin) {
	q.taken++
	s.taken++
}

// giveFree gives free places to waiting clients. It visits few addresses in vain: each of these has
// several places.
func (q *Queue) giveFree() {
	for e := q.order.Front(); e != nil && q.taken < q.size; {
		source, next := e.Value.(*origin), e.Next()
		if q.may(source) {
			p := source.waiting.Front().Value.(*place)
			q.unwait(p)
			q.take(source)
			close(p.given)
			if source.in != nil {
				q.order.MoveToBack(source.in)
			}
			next = q.order.Front()
		}
		e = next
	}
}

// unwait removes a client from the waiting ones.
func (q *Queue) unwait(p *place) {
	s := p.source
	s.waiting.Remove(p.in)
	p.in = nil
	if s.waiting.Len() == 0 {
		q.order.Remove(s.in)
		s.in = nil
	}
}
