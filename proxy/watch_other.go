//go:build !linux

package proxy

import (
	"errors"
	"time"

	"seqproxy/protocol"
)

// canWatch says whether the end of a connection can be seen while nobody reads it.
// Here it is noticed with the next read or write.
const canWatch = false

// watcher is not there on this system: see watch_linux.go.
type watcher struct{}

func newWatcher() (*watcher, error) { return nil, errors.ErrUnsupported }

func (*watcher) add(*protocol.Conn, uint64) error { return errors.ErrUnsupported }

func (*watcher) wait(into []uint64, _ time.Time) ([]uint64, error) {
	return into, errors.ErrUnsupported
}

func (*watcher) close() {}

func hungUp(*protocol.Conn) bool { return false }
