package rawio

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// Error returns the net package's error for a failed read or write on a connection with addr. err
// is an error of a [syscall.RawConn] or an [os.File], or the number of a system call's error.
//
// The difference matters: crypto/tls can continue after a deadline only if the error is a temporary
// [net.Error]. It keeps any other error and returns it for ever.
func Error(op string, addr net.Addr, err error) *net.OpError {
	var ofNet *net.OpError
	var ofFile *fs.PathError
	switch {
	case errors.As(err, &ofNet):
		err = ofNet.Err // its op is "raw-read"
	case errors.As(err, &ofFile):
		err = ofFile.Err
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		err = os.NewSyscallError(op, errno)
	case !errors.Is(err, os.ErrDeadlineExceeded):
		err = net.ErrClosed // only that ends a wait, and a file has its own error for it
	}
	return &net.OpError{Op: op, Net: addr.Network(), Addr: addr, Err: err}
}
