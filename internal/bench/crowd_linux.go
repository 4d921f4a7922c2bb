package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// crowd asks for numbers over many connections from one thread, each as soon as it has been answered. A goroutine for each would take as much of the CPUs
// as the targets do: what is measured would be the client for a good part, and the more so the faster the target is.
type crowd struct {
	poll    int // epoll
	members []*numberWorker
	began   []moment // of what each waits for
	ready   []syscall.EpollEvent
}

// newCrowd takes over connections that no answer is awaited on. They are still closed by those who opened them.
func newCrowd(workers []worker) (_ *crowd, err error) {
	c := &crowd{members: make([]*numberWorker, len(workers)), began: make([]moment, len(workers)), ready: make([]syscall.EpollEvent, len(workers))}
	if c.poll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	for i, w := range workers {
		c.members[i] = w.(*numberWorker)
		fd, err := c.members[i].c.leavePoller()
		if err == nil {
			err = syscall.EpollCtl(c.poll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)})
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connection %d: %w", i, err), c.close())
		}
	}
	return c, nil
}

// loadCrowd is loadTarget with one crowd.
func loadCrowd(ctx context.Context, t *target, tm timing, workers []worker) (figures, error) {
	c, err := newCrowd(workers)
	if err != nil {
		return nil, err
	}
	fig, err := loadBy(ctx, t, tm, []loader{c})
	return fig, errors.Join(err, c.close())
}

func (c *crowd) close() error { return syscall.Close(c.poll) }

// leavePoller has reads and writes block, and Go's poller, which would be woken by each answer, know nothing of the connection any more.
func (c *client) leavePoller() (fd int, err error) {
	tcp, ok := c.net.(*net.TCPConn)
	if !ok {
		return 0, fmt.Errorf("a connection of type %T has no file", c.net)
	}
	file, err := tcp.File()
	if err != nil {
		return 0, fmt.Errorf("duplicate a connection: %w", err)
	}
	fd = int(file.Fd()) // blocks from here on
	c.forget()
	c.forget = func() bool { return true }
	err = tcp.Close()
	c.net = file
	patience := syscall.NsecToTimeval(ioTimeout.Nanoseconds()) // for the rest of an answer that came in pieces
	return fd, errors.Join(err, syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &patience))
}

// run implements [loader].
func (c *crowd) run(ctx context.Context, n *tally) error {
	for i, m := range c.members {
		c.began[i] = n.now()
		if err := m.send(); err != nil {
			return fmt.Errorf("connection %d: %w", i, err)
		}
	}
	const look = 100 * time.Millisecond // how long at most until the end of ctx is seen
	last := time.Now()
	for waiting := len(c.members); waiting > 0; {
		got, err := syscall.EpollWait(c.poll, c.ready, int(look.Milliseconds()))
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("epoll_wait: %w", err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case got > 0:
			last = time.Now()
		case time.Since(last) > ioTimeout:
			return fmt.Errorf("no answer within %v on any of %d connections", ioTimeout, waiting)
		}
		for _, event := range c.ready[:got] {
			i := int(event.Fd)
			m := c.members[i]
			if err := m.take(); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
			ended := n.now()
			n.add(1, c.began[i], ended)
			if c.began[i] = ended; ended.in == stopping {
				waiting--
				continue
			}
			if err := m.send(); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
		}
	}
	return nil
}
