package hangup

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"seqproxy/protocol"
)

// canPoll reports whether the end of a connection can be seen while no goroutine reads it.
const canPoll = true

// Poller reports which of many connections their peers have closed, even with unread data and
// without a reader. The runtime's poller cannot do that: it wakes readers only.
type Poller struct {
	// The epoll descriptor. It is in the runtime's poller, so a wait holds no thread.
	file   *os.File
	raw    syscall.RawConn
	closed atomic.Bool
	events [64]unix.EpollEvent
}

func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	// Otherwise os would not register it with the poller.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{file: os.NewFile(uintptr(fd), "epoll")}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	if err := p.file.SetReadDeadline(time.Time{}); err != nil { // it is not in the poller
		p.file.Close()
		return nil, fmt.Errorf("wait for epoll: %w", err)
	}
	return p, nil
}

// Add makes Wait report the end of c with a token, once, even if c has already ended. Closing c
// stops that, except for a report on its way.
func (p *Poller) Add(c *protocol.Conn, token uint64) error {
	var err error
	watchErr := p.raw.Control(func(epoll uintptr) {
		connErr := c.Control(func(fd uintptr) {
			event := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(token), Pad: int32(token >> 32)}
			err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, int(fd), &event))
		})
		if err == nil {
			err = connErr
		}
	})
	if watchErr != nil {
		return watchErr
	}
	return err
}

// Wait appends the tokens of ended connections to into. If there are none, it waits for one, until
// the given time (zero: for ever), or until Close, with os.ErrClosed. Only one goroutine may wait.
func (p *Poller) Wait(into []uint64, until time.Time) ([]uint64, error) {
	if err := p.file.SetReadDeadline(until); err != nil {
		return into, p.orClosed(err)
	}
	n := 0
	var epollErr error
	err := p.raw.Read(func(epoll uintptr) bool {
		n, epollErr = unix.EpollWait(int(epoll), p.events[:], 0)
		return n > 0 || epollErr != nil && epollErr != unix.EINTR
	})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return into, nil
	case err != nil:
		return into, p.orClosed(err)
	case epollErr != nil:
		return into, os.NewSyscallError("epoll_wait", epollErr)
	}
	for _, e := range p.events[:n] {
		into = append(into, uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32)
	}
	return into, nil
}

// Close ends the wait.
func (p *Poller) Close() {
	p.closed.Store(true)
	_ = p.file.Close()
}

// orClosed returns os.ErrClosed for the errors of a wait on a closed file.
func (p *Poller) orClosed(err error) error {
	if p.closed.Load() {
		return os.ErrClosed
	}
	return err
}

// Seen reports whether the peer has closed c, or will send nothing more.
func Seen(c *protocol.Conn) bool {
	gone := false
	err := c.Control(func(fd uintptr) {
		fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		for {
			n, err := unix.Poll(fds[:], 0)
			if err == unix.EINTR {
				continue
			}
			gone = err == nil && n > 0 && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) != 0
			return
		}
	})
	return gone || err != nil // closed on this side
}
