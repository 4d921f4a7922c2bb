//go:build !linux

package kill

import (
	"errors"
	"time"

	"seqproxy/protocol"
)

// CanWatch reports whether the end of a connection can be seen while no goroutine reads it. Here
// the next read or write notices it.
const CanWatch = false

// Watcher does not exist on this system: see watcher_linux.go.
type Watcher struct{}

func NewWatcher() (*Watcher, error) { return nil, errors.ErrUnsupported }

func (*Watcher) Add(*protocol.Conn, uint64) error { return errors.ErrUnsupported }

func (*Watcher) Wait(into []uint64, _ time.Time) ([]uint64, error) {
	return into, errors.ErrUnsupported
}

func (*Watcher) Close() {}

func HungUp(*protocol.Conn) bool { return false }
