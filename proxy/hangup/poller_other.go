//go:build !linux

package hangup

import (
	"errors"
	"time"

	"seqproxy/protocol"
)

// canPoll reports whether the end of a connection can be seen while no goroutine reads it. Here
// the next read or write notices it.
const canPoll = false

// Poller does not exist on this system: see poller_linux.go.
type Poller struct{}

func NewPoller() (*Poller, error) { return nil, errors.ErrUnsupported }

func (*Poller) Add(*protocol.Conn, uint64) error { return errors.ErrUnsupported }

func (*Poller) Wait(into []uint64, _ time.Time) ([]uint64, error) {
	return into, errors.ErrUnsupported
}

func (*Poller) Close() {}

func Seen(*protocol.Conn) bool { return false }
