package proxy

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// loginQueue bounds how many clients log in at the same time: the others wait before they
// are greeted. So neither their TLS handshakes nor the checks of their passwords take the
// processor from those that are ahead, and from the sessions that run. It is nil where there
// is no bound.
//
// Each address has a share of the places: it gets no further one while it has loginShare
// times as many as are free. So clients that connect and say nothing do not keep those of
// other addresses out, and an address that is alone may use nearly all. A place that
// becomes free goes to one address after the other, and in each to who came first.
type loginQueue struct {
	size int

	mu      sync.Mutex // guards what follows
	taken   int
	sources map[netip.Prefix]*loginSource // those with places or with waiting clients
	order   list.List                     // *loginSource, those with waiting clients; the next one first
}

// loginShare: with 4 an address that is alone gets four fifths of the places.
const loginShare = 4

// loginSource is an address, or a network of IPv6, that clients come from.
type loginSource struct {
	network netip.Prefix
	all     bool // it may take all places
	taken   int
	waiting list.List     // *loginPlace
	in      *list.Element // of loginQueue.order; nil if nobody waits
}

// loginPlace is the place of one login, or what waits for one.
type loginPlace struct {
	source *loginSource
	given  chan struct{} // closed when the place is given; nil if that was at once
	in     *list.Element // of loginSource.waiting; nil once the place is given
}

func newLoginQueue(size int) *loginQueue {
	if size <= 0 {
		return nil
	}
	return &loginQueue{size: size, sources: make(map[netip.Prefix]*loginSource)}
}

// enter takes a place, or waits for one: until given is closed.
func (q *loginQueue) enter(network netip.Prefix, all bool) *loginPlace {
	q.mu.Lock()
	defer q.mu.Unlock()
	source := q.sources[network]
	if source == nil {
		source = &loginSource{network: network}
		q.sources[network] = source
	}
	source.all = all
	p := &loginPlace{source: source}
	if source.in == nil && q.may(source) {
		q.take(source)
		return p
	}
	p.given = make(chan struct{})
	p.in = source.waiting.PushBack(p)
	if source.in == nil {
		source.in = q.order.PushBack(source)
	}
	return p
}

// leave gives a place back, or gives up the wait for it.
func (q *loginQueue) leave(p *loginPlace) {
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

func (q *loginQueue) may(s *loginSource) bool {
	free := q.size - q.taken
	return free > 0 && (s.all || s.taken < loginShare*free)
}

func (q *loginQueue) take(s *loginSource) {
	q.taken++
	s.taken++
}

// giveFree gives free places to who waits for one. It looks at few addresses that may not
// have one: each of these has several.
func (q *loginQueue) giveFree() {
	for e := q.order.Front(); e != nil && q.taken < q.size; {
		source, next := e.Value.(*loginSource), e.Next()
		if q.may(source) {
			p := source.waiting.Front().Value.(*loginPlace)
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

// unwait has a client wait no longer.
func (q *loginQueue) unwait(p *loginPlace) {
	s := p.source
	s.waiting.Remove(p.in)
	p.in = nil
	if s.waiting.Len() == 0 {
		q.order.Remove(s.in)
		s.in = nil
	}
}

// enterLogin waits until the session may log in, until a time. After an error it may not,
// and the client has not been answered. leaveLogin has to follow.
func (s *session) enterLogin(until time.Time) error {
	q := s.set.logins
	if q == nil || s.atAdmin {
		return nil
	}
	addr := s.client.RemoteAddr()
	network, exempt := s.set.failures.source(addr)
	s.queue, s.place = q, q.enter(network, exempt || !network.IsValid() || s.set.fromBalancer(addr))
	if s.place.given == nil {
		return nil
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	var err error
	select {
	case <-s.place.given:
		return nil
	case <-timer.C:
		err = errTooManyLogins
	case <-s.srv.stopping:
		err = errShutdown
	case <-s.ctx.Done():
		err = errClientGone
	}
	s.leaveLogin()
	return err
}

// leaveLogin lets the next client log in, if this session is among those that do.
func (s *session) leaveLogin() {
	if s.queue != nil {
		s.queue.leave(s.place)
		s.queue, s.place = nil, nil
	}
}

// errTooManyLogins is for a client whose turn to log in did not come in time.
var errTooManyLogins = &loginRefused{sqlError(mysql.ER_CON_COUNT_ERROR, "08004", "Too many connections (seqproxy: max_logins of them are logging in)")}
